package election

import (
	"context"
	"errors"
	"sync"
	"time"

	"zabra/recipes"
	"zabra/recipes/lock"
)

var (
	// ErrRelinquished ends a term that this process has given up: by Relinquish, by Interrupt, or by the return of the
	// function that led.
	ErrRelinquished = errors.New("election: leadership was relinquished")
	// ErrDeposed ends a term whose node was deleted by somebody else.
	ErrDeposed = errors.New("election: the leader's node was deleted")
	// ErrClosed is the end of a latch that was closed.
	ErrClosed = errors.New("election: the latch is closed")
	// ErrRunning is a second Run of a selector while the first one goes on.
	ErrRunning = errors.New("election: the selector is running")
	// ErrID is an id that is too long.
	ErrID = errors.New("election: id too long")
)

const (
	// idBytesMax bounds an id. A server cuts the connection at what is too large for it, again and again.
	idBytesMax = 64 << 10
	// checkPeriodMin bounds how often a leader looks for its node, however short the session timeout is.
	checkPeriodMin = 100 * time.Millisecond
	// Between two attempts to take part that failed, a latch waits for retryFirst, then for twice that, up to retryMost.
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
)

// Term is one time of leadership. It ends once, and the next one is another Term with a larger token. Its methods may be
// called from any goroutine.
type Term struct {
	c     *recipes.Client
	guard *lock.Guard
	// ctx ends with the term; end gives the reason.
	ctx      context.Context
	end      context.CancelCauseFunc
	release  context.CancelFunc
	checking sync.WaitGroup
}

// begin makes the term that a granted lock stands for. It ends with ctx at the latest, and finish has to be called.
func begin(ctx context.Context, c *recipes.Client, guard *lock.Guard) *Term {
	t := &Term{c: c, guard: guard}
	held, release := guard.Context(ctx)
	t.release = release
	t.ctx, t.end = context.WithCancelCause(held)
	t.checking.Go(t.check)
	return t
}

// finish gives the leadership back. Until then nobody else has it, unless it is lost.
func (t *Term) finish(ctx context.Context) {
	t.end(ErrRelinquished)
	t.release()
	t.checking.Wait()
	_ = t.guard.Unlock(ctx) // what fails goes on in the background
}

// check looks from time to time whether the leader's node is still there.
func (t *Term) check() {
	tick := time.NewTicker(max(t.c.Session().Timeout(), checkPeriodMin))
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
		}
		if stat, err := t.c.Exists(t.ctx, t.guard.Path()); err == nil && stat == nil {
			t.end(ErrDeposed)
		}
	}
}

// Token is the fencing token: the zxid of the transaction that created the leader's node. It is larger than that of every
// term before, on the same path.
func (t *Term) Token() int64 { return t.guard.Token() }

// Path is that of the leader's node, below the client's namespace.
func (t *Term) Path() string { return t.guard.Path() }

// Lost is closed when the term is over, for whatever reason: when the session is expired or closed or cannot be relied on any
// more, when the node is found to be deleted, and when the leadership is given up. It is closed before this process does
// anything that lets somebody else lead.
func (t *Term) Lost() <-chan struct{} { return t.ctx.Done() }

// Context ends with the term, with Err as its cause. It is for what the leader does.
func (t *Term) Context() context.Context { return t.ctx }

// Err is nil while the term lasts. Then it is ErrRelinquished, ErrDeposed, ErrClosed, recipes.ErrSessionLost, or the cause of
// the context that ended.
func (t *Term) Err() error {
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case !t.guard.Held():
		return recipes.ErrSessionLost
	}
	return nil
}

// Leads tells whether the term lasts. It is sharper than a look at Lost, which a busy machine may close some moments late.
// Even so it speaks of the past: see the package's text about the token.
func (t *Term) Leads() bool { return t.Err() == nil }

// Relinquish ends the term. It does not wait for the node to be gone. A latch then queues again, behind all others; under a
// selector the leadership is given back when the function that leads has returned. It does nothing if the term is over.
func (t *Term) Relinquish() { t.end(ErrRelinquished) }
