package lock

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// revocation is the data by which a holder is asked to give up its lock, in Curator as here.
var revocation = []byte("__REVOKE__")

// Revoke asks the holder of a lock's node, which is one of Participants, to give it up. It does no more than ask: the holder
// learns it by Guard.Revoked, or by Curator's RevocationListener, if it wants to know. A waiter may be asked, too; it learns
// it when the lock is granted. A node that is gone is not an error. The node's identity is overwritten.
func Revoke(ctx context.Context, c *recipes.Client, path string) error {
	for {
		_, err := c.Set(ctx, path, revocation, -1)
		switch {
		case errors.Is(err, recipes.ErrUnknown): // to ask twice does no harm
			if stat, err := c.Exists(ctx, path); err != nil || stat == nil {
				return err
			}
		case errors.Is(err, zk.ErrNoNode):
			return nil
		default:
			return err
		}
	}
}

// Revoked returns a channel that is closed when somebody asks for the lock by Revoke or by Curator's Revoker, or has deleted
// its node: then the lock is gone already. From the first call on the node is watched; a request that came earlier is seen,
// too. To go on is no fault, the lock is held until Unlock.
func (g *Guard) Revoked() <-chan struct{} {
	h := g.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked == nil {
		h.revoked = make(chan struct{})
		go h.watchRevocation()
	}
	return h.revoked
}

func (h *hold) watchRevocation() {
	ctx, cancel := during(h.c.Background(), h.node.Session)
	defer cancel()
	go func() {
		select {
		case <-h.released:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		data, _, changed, err := h.c.GetW(ctx, h.node.Path)
		if ctx.Err() != nil {
			return
		}
		if err == nil && bytes.Equal(data, revocation) || errors.Is(err, zk.ErrNoNode) {
			close(h.revoked)
			return
		}
		if err != nil {
			return // the server refuses to let the node be read
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
