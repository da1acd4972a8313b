package barrier

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Barrier is a node that makes processes wait while it exists. It holds nothing else than the client and the path; any
// number of them may speak of the same node.
type Barrier struct {
	c    *recipes.Client
	path string
}

// New returns the barrier at a path. It asks nothing of the server yet: a path that cannot be one fails in the first call.
func New(c *recipes.Client, path string) *Barrier { return &Barrier{c, path} }

// Set closes the barrier: the node is made unless it exists, its missing parents as containers. The node is an ordinary one
// and outlives the session. If the reply is lost, and somebody removes the barrier before it is looked for, Set
// closes it once more.
func (b *Barrier) Set(ctx context.Context) error {
	for {
		if err := b.c.EnsurePath(ctx, path.Dir(b.path)); err != nil {
			return err
		}
		_, err := b.c.Create(ctx, b.path, nil, zk.FlagPersistent)
		switch {
		case err == nil || errors.Is(err, zk.ErrNodeExists):
			return nil
		case ctx.Err() != nil:
			return err
		case errors.Is(err, recipes.ErrUnknown):
			if stat, err := b.c.Exists(ctx, b.path); stat != nil || err != nil {
				return err
			}
		case !errors.Is(err, zk.ErrNoNode): // which is a parent that was removed just now
			return err
		}
	}
}

// Remove opens the barrier, and tells whether it was closed. If the reply is lost, the node that was there before is
// looked for: one that somebody has made anew is left alone.
func (b *Barrier) Remove(ctx context.Context) (bool, error) {
	before, err := b.c.Exists(ctx, b.path)
	if err != nil || before == nil {
		return false, err
	}
	for {
		err := b.c.Delete(ctx, b.path, -1)
		if errors.Is(err, zk.ErrNoNode) {
			return false, nil
		}
		if ctx.Err() != nil || !errors.Is(err, recipes.ErrUnknown) {
			return err == nil, err
		}
		now, err := b.stat(ctx)
		if err != nil {
			return false, err
		}
		if now == nil || now.Czxid != before.Czxid {
			return true, nil // by this call, or by another one at the same time
		}
	}
}

// stat looks at the node as it is after all that was sent before.
func (b *Barrier) stat(ctx context.Context) (*zk.Stat, error) {
	if err := b.c.Sync(ctx, b.path); err != nil {
		return nil, err
	}
	return b.c.Exists(ctx, b.path)
}

// Wait returns when the barrier is open, which it may be from the beginning: a barrier that was set before, by anybody, is
// waited for. It goes on through lost connections and ended sessions. A barrier that is opened and closed again at once
// may be missed, as by somebody who blinks.
func (b *Barrier) Wait(ctx context.Context) error {
	var r reader
	for {
		var gone <-chan zk.Event
		err := r.read(ctx, b.c, b.path, func() (err error) {
			_, _, gone, err = b.c.GetW(ctx, b.path)
			if errors.Is(err, zk.ErrNoNode) {
				gone, err = nil, nil
			}
			return err
		})
		if err != nil || gone == nil {
			return err
		}
		if e, err := await(ctx, b.c, gone, nil); err != nil || e.Type == zk.EventNodeDeleted {
			return err
		}
	}
}

// await waits for the event of a watch. It fails when ctx ends, the client is closed, or over is.
func await(ctx context.Context, c *recipes.Client, watch <-chan zk.Event, over <-chan struct{}) (zk.Event, error) {
	select {
	case e := <-watch:
		return e, nil
	case <-over:
		return zk.Event{}, recipes.ErrSessionLost
	case <-ctx.Done():
		return zk.Event{}, context.Cause(ctx)
	case <-c.Closed():
		return zk.Event{}, recipes.ErrClosed
	}
}
