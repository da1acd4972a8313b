package lock

import (
	"context"
	"errors"
	"math"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// line is where contenders wait: the children of one node.
type line struct {
	c   *recipes.Client
	dir string
	// identity is the data of the own nodes.
	identity []byte
}

// path is that of a node in the line. The root cannot be a line: then it is none, and the client says so.
func (l *line) path(name string) string { return l.dir + "/" + name }

// during returns a context that ends with the session, too; then its cause is recipes.ErrSessionLost.
func during(ctx context.Context, s *recipes.Session) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.Done():
			cancel(recipes.ErrSessionLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// lostPlace tells that an attempt has come to nothing because of its session or node, so that the next one may do better.
func lostPlace(err error) bool {
	return errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, errGone)
}

// lock makes a contender of that name and returns when its turn has come, which turn waits for or refuses. If the session
// ends meanwhile, nothing was granted: it lines up again under the next one.
func (l *line) lock(ctx context.Context, name string, turn func(context.Context, string) error) (*Guard, error) {
	for {
		s, err := l.c.AwaitSession(ctx)
		if err != nil {
			return nil, err
		}
		node, err := l.queue(ctx, s, name, turn)
		if err == nil {
			return newGuard(l.c, node, node.Czxid), nil
		}
		// A context that has ended may say the same, of a session that it belongs to.
		if !lostPlace(err) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// queue is one attempt, in one session.
func (l *line) queue(ctx context.Context, s *recipes.Session, name string, turn func(context.Context, string) error) (*recipes.Node, error) {
	ctx, cancel := during(ctx, s)
	defer cancel()
	node, err := l.c.CreateProtected(ctx, s, l.path(name), l.identity, zk.FlagEphemeralSequential)
	if err != nil {
		return nil, err
	}
	err = turn(ctx, path.Base(node.Path))
	switch {
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && s.Over():
		err = recipes.ErrSessionLost
	case errors.Is(err, ErrHeld):
		// The caller is not the one who waits here. It may try again at once and must not find itself.
		if release(ctx, l.c, node.Path) == nil {
			return nil, err
		}
	}
	if err != nil {
		l.c.DeleteSurely(node.Path)
		return nil, err
	}
	return node, nil
}

// await returns when nobody is before the contender of that name. Of all that happens in the line it is told only of the one
// directly before it.
func (l *line) await(ctx context.Context, name string) error {
	for {
		ahead, found, err := l.ahead(ctx, name)
		if err != nil || !found {
			return err
		}
		// Not exists, which would leave a watch behind on a node that has gone meanwhile.
		_, _, changed, err := l.c.GetW(ctx, l.path(ahead.name))
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refuse is await for those who do not want to wait.
func (l *line) refuse(ctx context.Context, name string) error {
	_, found, err := l.ahead(ctx, name)
	if err == nil && found {
		err = ErrHeld
	}
	return err
}

// ahead returns the contender that the one of that name has to wait for.
func (l *line) ahead(ctx context.Context, name string) (contender, bool, error) {
	children, _, err := l.c.Children(ctx, l.dir)
	if errors.Is(err, zk.ErrNoNode) || err == nil && !slices.Contains(children, name) {
		err = errGone
	}
	if err != nil {
		return contender{}, false, err
	}
	self, ok := parse(name)
	if !ok {
		return contender{}, false, errGone // the server gives every sequential node a number
	}
	ahead, found := before(order(children), self)
	return ahead, found, nil
}

// try is lock for those who do not want to wait. It looks before it makes a node, since most of the time that is enough.
func (l *line) try(ctx context.Context, name string) (*Guard, error) {
	children, _, err := l.c.Children(ctx, l.dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	if _, found := before(order(children), contender{sequence: math.MaxInt64, reader: isReader(name)}); found {
		return nil, ErrHeld
	}
	return l.lock(ctx, name, l.refuse)
}

// release deletes a node. It returns nil when it is gone.
func release(ctx context.Context, c *recipes.Client, path string) error {
	for {
		err := c.Delete(ctx, path, -1)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, recipes.ErrUnknown) {
			return err
		}
		// The read waits for the connection, as the next attempt has to.
		stat, err := c.Exists(ctx, path)
		if err != nil || stat == nil {
			return err
		}
	}
}
