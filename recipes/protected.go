package recipes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Node is a node that a session has made.
type Node struct {
	Path    string // below the namespace
	Session *Session
	// Czxid is the transaction that made the node. It grows with each node that is made anywhere in the ensemble, which makes
	// it a fencing token.
	Czxid int64
	Stat  zk.Stat // as it was soon after
}

// protectedPrefix begins the names of nodes that carry a GUID, as Curator's do.
const protectedPrefix = "_c_"

// CreateProtected makes an ephemeral node of the session s, sequential or not as flags say (zk.FlagEphemeral,
// zk.FlagEphemeralSequential). Missing parents are made as containers.
//
// The name begins with a GUID ("_c_<guid>-lock-0000000007" for ".../lock-"), by which the node is found again if the reply
// is lost; the create is repeated only when it certainly has not happened. The node that is returned has been seen to belong
// to s. If the call fails, whether because ctx ends, because s is over (ErrSessionLost), or for another reason, it leaves no
// node behind: what may have been made is deleted in the background, as soon as there is a connection.
func (c *Client) CreateProtected(ctx context.Context, s *Session, p string, data []byte, flags int32) (*Node, error) {
	if err := checkPath(p); err != nil {
		return nil, err
	}
	if flags&zk.FlagEphemeral == 0 || flags&^zk.FlagEphemeralSequential != 0 {
		return nil, fmt.Errorf("create %s: flags %d are not those of an ephemeral node: %w", p, flags, zk.ErrInvalidFlags)
	}
	dir, name := path.Split(c.Path(p))
	pr := &protected{c: c, s: s, dir: path.Clean(dir), guid: newGUID(), data: data, flags: flags}
	pr.path = path.Join(pr.dir, protectedPrefix+pr.guid+"-"+name)
	ctx, cancel := s.during(ctx)
	defer cancel()
	node, err := pr.create(ctx)
	if err != nil {
		pr.clear()
		return nil, wrap("create", p, err)
	}
	return node, nil
}

// newGUID returns 16 random bytes in the usual form, which is the one that Curator looks for.
func newGUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// protected is a create that is under way.
type protected struct {
	c         *Client
	s         *Session
	dir, path string // absolute
	guid      string
	data      []byte
	flags     int32
	// pending is a create whose result nobody has waited for.
	pending <-chan result[string]
	// may tells that there may be a node.
	may bool
}

// create makes the node and proves whose it is.
func (p *protected) create(ctx context.Context) (*Node, error) {
	for attempt := 0; ; attempt++ {
		made, err := p.attempt(ctx)
		if err == nil && made != "" {
			node, err := p.prove(ctx, made)
			if node != nil || err != nil {
				return node, err
			}
			continue // somebody has deleted it already
		}
		if err != nil && !passing(err) {
			return nil, err
		}
		if err == nil {
			continue
		}
		if again, waitErr := p.c.pause(ctx, attempt); !again {
			return nil, errors.Join(waitErr, err)
		}
	}
}

// attempt sends one create, and returns the absolute path of the node if there is one now. Both results are empty if it is
// to be tried again at once.
func (p *protected) attempt(ctx context.Context) (string, error) {
	if p.may { // the reply of an earlier one was lost
		if found, err := p.find(ctx); found != "" || err != nil {
			return found, err
		}
		p.may = false
	}
	if p.s.Over() {
		return "", ErrSessionLost
	}
	p.may = true
	p.pending = begin(p.c, func(conn *zk.Conn) (string, error) { return conn.Create(p.path, p.data, p.flags, p.c.opts.ACL) })
	var r result[string]
	select {
	case r = <-p.pending:
		p.pending = nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-p.s.Done():
		return "", ErrSessionLost
	case <-p.c.closed:
		return "", ErrClosed
	}
	if errors.Is(r.err, zk.ErrNodeExists) { // only an earlier attempt can have made it
		return p.path, nil
	}
	p.may = r.err == nil || noAnswer(r.err)
	if errors.Is(r.err, zk.ErrNoNode) {
		return "", p.c.ensure(ctx, p.dir, p.c.createContainer)
	}
	return r.value, r.err
}

// find looks for the node by its GUID. The sync has it see what the ensemble has carried out of the lost request.
func (p *protected) find(ctx context.Context) (string, error) {
	names, err := repeated(ctx, p.c, func(conn *zk.Conn) ([]string, error) {
		if _, err := conn.Sync(p.dir); err != nil {
			return nil, err
		}
		names, _, err := conn.Children(p.dir)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, protectedPrefix+p.guid+"-") {
			return path.Join(p.dir, name), nil
		}
	}
	return "", err
}

// prove reads what the token is and whose node it is. A create that waited in this process while the session expired was
// carried out under the next one. It returns nothing if the node is gone.
func (p *protected) prove(ctx context.Context, made string) (*Node, error) {
	stat, err := repeated(ctx, p.c, func(conn *zk.Conn) (*zk.Stat, error) {
		found, stat, err := conn.Exists(made)
		return only(stat, found), err
	})
	switch {
	case err != nil:
		return nil, err
	case p.s.Over() || stat != nil && stat.EphemeralOwner != p.s.ID():
		return nil, ErrSessionLost
	case stat == nil:
		p.may = false
		return nil, nil
	}
	return &Node{Path: p.c.below(made), Session: p.s, Czxid: stat.Czxid, Stat: *stat}, nil
}

// clear deletes in the background what may have been made.
func (p *protected) clear() {
	if !p.may {
		return
	}
	p.c.goBackground(func() {
		if p.pending != nil {
			<-p.pending
		}
		for attempt := 0; ; attempt++ {
			found, err := p.find(p.c.ctx)
			if found != "" {
				p.c.deleteSurely(found)
			}
			if err == nil || !passing(err) {
				return
			}
			p.c.persist(attempt)
		}
	})
}
