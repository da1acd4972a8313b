package barrier

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

var (
	// ErrMembers is a double barrier for less than one member.
	ErrMembers = errors.New("barrier: a double barrier needs a member at least")
	// ErrRemoved is a member whose node was deleted by somebody else while its session went on.
	ErrRemoved = errors.New("barrier: the member's node was removed by somebody else")
)

// readyName is the name of the node that tells members that the barrier is open.
const readyName = "ready"

// Double is a barrier that opens when enough members have entered, and lets nobody go before all have left. It holds
// nothing of its own: each Enter makes another member, in this process or elsewhere, and the same Double serves for one
// round after the other.
type Double struct {
	c           *recipes.Client
	path, ready string
	members     int
}

// NewDouble returns the barrier at a path that opens for that many members. The number is what it takes, not a limit: a member
// that comes while the others are in enters at once. It has to be the same for all. NewDouble asks nothing of the server
// yet: a path that cannot be one fails in Enter.
func NewDouble(c *recipes.Client, at string, members int) (*Double, error) {
	if members < 1 {
		return nil, fmt.Errorf("%w: %d", ErrMembers, members)
	}
	return &Double{c: c, path: at, ready: path.Join(at, readyName), members: members}, nil
}

// Member is one that has entered. Leave is for one goroutine at a time.
type Member struct {
	d    *Double
	node *recipes.Node
	own  string // the name of the node
	// The rest belongs to Leave.
	leaving bool            // the node may be deleted already
	others  map[string]bool // the names that were there when leaving began, nil before
	opened  int64           // the czxid of "ready" at that time, 0 if there was none
}

// Enter joins, and returns when the barrier is open. If it fails, for example because ctx ends, no node is left behind,
// though it may take until the next connection to delete it, and until then others may count it. It fails with
// recipes.ErrSessionLost when the session ends meanwhile; then it may be called again.
func (d *Double) Enter(ctx context.Context) (*Member, error) {
	s, err := d.c.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	node, err := d.c.CreateProtected(ctx, s, path.Join(d.path, "member"), nil, zk.FlagEphemeral)
	if err != nil {
		return nil, err
	}
	m := &Member{d: d, node: node, own: path.Base(node.Path)}
	if err := m.enter(ctx); err != nil {
		d.c.DeleteSurely(node.Path)
		return nil, fmt.Errorf("barrier %s: %w", d.path, err)
	}
	return m, nil
}

// Lost is closed when the session of the member is over, or cannot be relied on any more: then the others need not wait for
// it, and may have left already.
func (m *Member) Lost() <-chan struct{} { return m.node.Session.Done() }

// Path returns the path of the member's node.
func (m *Member) Path() string { return m.node.Path }

// enter waits until the barrier is open.
func (m *Member) enter(ctx context.Context) error {
	for {
		watch, err := m.tryEnter(ctx)
		if err != nil {
			return err
		}
		if watch == nil {
			break
		}
		e, err := await(ctx, m.d.c, watch, m.node.Session.Done())
		if err != nil {
			return err
		}
		if e.Type == zk.EventNodeCreated { // it need not exist any more: others may be faster
			break
		}
	}
	if m.node.Session.Over() {
		return recipes.ErrSessionLost
	}
	return nil
}

// tryEnter opens the barrier if that is the member's part, and returns nothing if it is open. Otherwise it returns what
// tells when to look again.
func (m *Member) tryEnter(ctx context.Context) (<-chan zk.Event, error) {
	ready, watch, err := m.d.c.ExistsW(ctx, m.d.ready)
	if err != nil {
		return nil, err
	}
	names, err := m.d.present(ctx)
	switch {
	case err != nil:
		return nil, err
	case !slices.Contains(names, m.own):
		return nil, m.missing()
	case ready != nil && (ready.Czxid > m.node.Czxid || len(names) >= m.d.members):
		return nil, nil // it was made for this member too, or would be made again
	case len(names) >= m.d.members:
		return m.d.open(ctx)
	case ready == nil:
		return watch, nil
	}
	if on, err := m.d.goingOn(ctx, names, ready.Czxid); on || err != nil {
		return nil, err
	}
	return fired, m.d.sweep(ctx)
}

// goingOn tells whether the round for which "ready" was made is still going on: a member is there that was there before. If
// not, a crash has left the node behind.
func (d *Double) goingOn(ctx context.Context, names []string, ready int64) (bool, error) {
	for _, name := range names {
		stat, err := d.c.Exists(ctx, path.Join(d.path, name))
		if err != nil {
			return false, err
		}
		if stat != nil && stat.Czxid < ready {
			return true, nil
		}
	}
	return false, nil
}

// fired is a watch that has fired: look again at once.
var fired = func() <-chan zk.Event {
	c := make(chan zk.Event)
	close(c)
	return c
}()

// open makes the node that opens the barrier. It returns nothing if the barrier is open then.
func (d *Double) open(ctx context.Context) (<-chan zk.Event, error) {
	_, err := d.c.Create(ctx, d.ready, nil, zk.FlagPersistent)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil, nil
	case ctx.Err() == nil && errors.Is(err, recipes.ErrUnknown):
		return fired, nil
	}
	return nil, err
}

// sweep deletes the node that opens the barrier.
func (d *Double) sweep(ctx context.Context) error {
	err := d.c.Delete(ctx, d.ready, -1)
	if errors.Is(err, zk.ErrNoNode) || ctx.Err() == nil && errors.Is(err, recipes.ErrUnknown) {
		return nil
	}
	return err
}

// present returns the sorted names of the members that are there.
func (d *Double) present(ctx context.Context) ([]string, error) {
	names, _, err := d.c.Children(ctx, d.path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == readyName })
	slices.Sort(names)
	return names, err
}

// missing tells why the member's node is not there.
func (m *Member) missing() error {
	if m.node.Session.Over() {
		return recipes.ErrSessionLost
	}
	return fmt.Errorf("%w: %s", ErrRemoved, m.node.Path)
}
