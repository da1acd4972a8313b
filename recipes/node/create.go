package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	pathpkg "path"
	"strings"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// creation is a create that was sent. It goes on when the node is closed: only its end tells whether there is something to
// clear away.
type creation struct {
	done chan struct{} // closed when the others are set
	made string
	err  error
}

// send makes a create of the node as it should be called.
func (n *Node) send() *creation {
	p := &creation{done: make(chan struct{})}
	path, flags := n.called()
	data, _ := n.wanted()
	go func() {
		defer close(p.done)
		p.made, p.err = n.c.Create(n.c.Background(), path, data, flags)
	}()
	return p
}

// called returns the path and the flags to create the node with. A sequential node has a number already when it is made
// again, and keeps it.
func (n *Node) called() (path string, flags int32) {
	if n.opts.Mode.ephemeral() {
		flags = zk.FlagEphemeral
	}
	if n.opts.Mode.sequential() && n.number == "" {
		flags |= zk.FlagSequence
	}
	dir, name := pathpkg.Split(n.path)
	return pathpkg.Join(dir, n.prefix()+name+n.number), flags
}

// prefix is what stands before the name of a protected node.
func (n *Node) prefix() string {
	if !n.opts.Protect {
		return ""
	}
	if n.guid == "" {
		n.guid = newGUID()
	}
	return "_c_" + n.guid + "-"
}

// newGUID returns 16 random bytes in the usual form.
func newGUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// create makes the node, or finds one in its place, and notes where it is. It may return without either: then it is to be
// called again.
func (n *Node) create(ctx context.Context) error {
	if n.pending != nil && n.opts.Protect { // the reply was lost; without protection the next create meets the node
		found, err := n.find(ctx)
		if err != nil {
			return err
		}
		if n.pending = nil; found != "" {
			n.stay(found)
			return nil
		}
	}
	n.pending = n.send()
	select {
	case <-n.pending.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	made, err := n.pending.made, n.pending.err
	if errors.Is(err, recipes.ErrUnknown) {
		return err
	}
	n.pending = nil
	switch {
	case err == nil:
		n.stay(made)
		n.ours = true
	case errors.Is(err, zk.ErrNodeExists):
		path, _ := n.called()
		n.stay(path)
	case errors.Is(err, zk.ErrNoNode):
		return n.c.EnsurePath(ctx, pathpkg.Dir(n.path))
	default:
		return err
	}
	return nil
}

// stay notes where the node is, and the number that the server has given it.
func (n *Node) stay(path string) {
	n.at = path
	if n.opts.Mode.sequential() && n.number == "" {
		n.number = strings.TrimPrefix(pathpkg.Base(path), n.prefix()+pathpkg.Base(n.path))
	}
}

// find returns the path of a node that may have been made, "" if there is none.
func (n *Node) find(ctx context.Context) (string, error) {
	if !n.opts.Protect {
		return n.path, nil
	}
	// The sync has the list show what the ensemble has carried out of a request whose reply was lost.
	dir := pathpkg.Dir(n.path)
	if err := n.c.Sync(ctx, dir); err != nil {
		return "", err
	}
	names, _, err := n.c.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, n.prefix()) {
			return pathpkg.Join(dir, name), nil
		}
	}
	return "", err
}

// leave deletes the node, or what may have been made of it.
func (n *Node) leave() {
	switch {
	case n.at != "" && n.ours:
		n.c.DeleteSurely(n.at)
	case n.pending != nil, n.at != "" && !n.seenOnce:
		go n.sweep(n.c.Background())
	}
}

// sweep looks for a node of which it is not known whether it exists and whose it is, and deletes it if it is ours.
func (n *Node) sweep(ctx context.Context) {
	if n.pending != nil {
		<-n.pending.done
	}
	policy := recipes.Exponential(retryFirst, retryMost)
	for attempt := 0; ctx.Err() == nil; attempt++ {
		if n.swept(ctx) == nil {
			return
		}
		wait, _ := policy(attempt)
		_ = n.c.Sleep(ctx, wait)
	}
}

func (n *Node) swept(ctx context.Context) error {
	found, err := n.find(ctx)
	if err != nil || found == "" {
		return err
	}
	stat, err := n.c.Exists(ctx, found)
	if err != nil || stat == nil {
		return err
	}
	if ephemeral := n.opts.Mode.ephemeral(); !ephemeral && stat.EphemeralOwner == 0 ||
		ephemeral && stat.EphemeralOwner == n.c.Session().ID() {
		n.c.DeleteSurely(found)
	}
	return nil
}
