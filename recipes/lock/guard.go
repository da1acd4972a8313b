package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"zabra/recipes"
)

// Guard is a lock that was granted. Its methods may be called from any goroutine.
type Guard struct {
	hold *hold
	// done is guarded by hold.mu: a guard is unlocked once.
	done bool
}

// hold is the node that one or several guards stand on.
type hold struct {
	c     *recipes.Client
	node  *recipes.Node
	token int64
	// released is closed when the last guard is unlocked.
	released chan struct{}

	mu      sync.Mutex
	guards  int           // that are not unlocked
	revoked chan struct{} // nil until somebody asks
}

func newGuard(c *recipes.Client, node *recipes.Node, token int64) *Guard {
	h := &hold{c: c, node: node, token: token, released: make(chan struct{}), guards: 1}
	go h.clear()
	return &Guard{hold: h}
}

// clear removes what a lost session may have left. When a lease has run out and the connection comes back in time for the
// ensemble, the session goes on, and with it a node that nobody may rely on any more and others wait for.
func (h *hold) clear() {
	select {
	case <-h.node.Session.Done():
		h.c.DeleteSurely(h.node.Path)
	case <-h.released:
	}
}

// Token is the fencing token: the zxid of the transaction that created the lock's node. Each grant of a Mutex, and each write
// lock, has a larger token than every grant before it. Give it to the resource with each access; see Fence.
//
// Readers of an RWMutex share the lock, and theirs are for Fence.CheckShared: larger than those of all writers before them,
// smaller than those of all writers after them, and in no order among each other. Permits of a Semaphore are granted in the
// order of their tokens, but several are held at a time, so a smaller one is not a late one.
func (g *Guard) Token() int64 { return g.hold.token }

// Path is that of the lock's node, below the client's namespace.
func (g *Guard) Path() string { return g.hold.node.Path }

// Lost is closed when the lock cannot be relied on any more: the session is expired or closed, or the connection has been
// gone for as long as the ensemble must keep the session. Another may hold the lock then. The node, if the ensemble still
// has it, is deleted as soon as the connection is back; a lost lock never comes back, and Unlock remains to be called.
// Unlock does not close Lost.
func (g *Guard) Lost() <-chan struct{} { return g.hold.node.Session.Done() }

// Held tells whether the lock is neither lost nor unlocked by this guard. It is sharper than a look at Lost, which a busy
// machine may close some moments late. Even so it speaks of the past.
func (g *Guard) Held() bool {
	g.hold.mu.Lock()
	defer g.hold.mu.Unlock()
	return !g.done && !g.hold.node.Session.Over()
}

// Context returns a context for work under the lock: it ends when ctx does or when the lock is lost, and in the latter case
// its cause is recipes.ErrSessionLost. The work should end with cancel, which frees what the context needs.
func (g *Guard) Context(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return during(ctx, g.hold.node.Session)
}

// Again returns another guard of the same lock: what a reentrant lock is where there are no threads to know the holder by.
// The lock is held until all guards are unlocked. It fails with ErrUnlocked when this guard has been, and with
// recipes.ErrSessionLost when the lock is lost.
func (g *Guard) Again() (*Guard, error) {
	h := g.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.done {
		return nil, fmt.Errorf("%s: %w", h.node.Path, ErrUnlocked)
	}
	if h.node.Session.Over() {
		return nil, fmt.Errorf("%s: %w", h.node.Path, recipes.ErrSessionLost)
	}
	h.guards++
	return &Guard{hold: h}, nil
}

// Unlock gives the lock back. When it returns nil the node is gone, or another guard of Again still holds it. An error is for
// information only: the lock was lost before (recipes.ErrSessionLost), or ctx ended or the server refused before the node was
// known to be gone. In all of these cases deleting it goes on in the background until it is gone, and there is nothing left
// for the caller to do. A second Unlock does nothing and returns nil.
func (g *Guard) Unlock(ctx context.Context) error {
	last, again := g.leave()
	if again {
		return nil
	}
	h := g.hold
	if h.node.Session.Over() {
		if last {
			h.c.DeleteSurely(h.node.Path)
		}
		return fmt.Errorf("unlock %s: %w", h.node.Path, recipes.ErrSessionLost)
	}
	if !last {
		return nil
	}
	ctx, cancel := during(ctx, h.node.Session)
	defer cancel()
	if err := release(ctx, h.c, h.node.Path); err != nil {
		h.c.DeleteSurely(h.node.Path)
		return fmt.Errorf("unlock %s, goes on in the background: %w", h.node.Path, err)
	}
	return nil
}

// leave counts the guard out. It tells whether it was the hold's last one, and whether it had left before.
func (g *Guard) leave() (last, again bool) {
	h := g.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.done {
		return false, true
	}
	g.done = true
	h.guards--
	if h.guards == 0 {
		close(h.released)
	}
	return h.guards == 0, false
}

// Guards are several locks or permits that were granted together, in one session.
type Guards []*Guard

// Lost is closed when all of them are lost, which happens at once; see Guard.Lost. It is nil when there are none.
func (g Guards) Lost() <-chan struct{} {
	if len(g) == 0 {
		return nil
	}
	return g[0].Lost()
}

// Unlock gives all of them back, the last one first; see Guard.Unlock.
func (g Guards) Unlock(ctx context.Context) error {
	var errs []error
	for _, one := range slices.Backward(g) {
		errs = append(errs, one.Unlock(ctx))
	}
	return errors.Join(errs...)
}
