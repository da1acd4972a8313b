package election

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"zabra/recipes"
	"zabra/recipes/lock"
)

// Latch takes part in an election until it is closed: it queues, leads when its turn has come, and queues again when it has
// lost the leadership or has given it up. Its methods may be called from any goroutine.
type Latch struct {
	c      *recipes.Client
	mutex  *lock.Mutex
	id     string
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when run has returned

	mu struct {
		sync.Mutex
		term    *Term         // nil while somebody else leads
		err     error         // why the last attempt to take part has failed
		changed chan struct{} // closed and replaced when the others change
	}
}

// StartLatch takes part in the election at path, under an id that others can see: see Participants. Ids need not differ. It
// returns at once and does not wait for the server; Await does.
func StartLatch(c *recipes.Client, path, id string) (*Latch, error) {
	if len(id) > idBytesMax {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrID, len(id), idBytesMax)
	}
	l := &Latch{c: c, id: id, done: make(chan struct{})}
	l.mutex = lock.NewMutex(c, path, lock.Options{Identity: []byte(id), Names: lock.CuratorLatch})
	l.mu.changed = make(chan struct{})
	ctx, cancel := context.WithCancelCause(context.Background())
	l.cancel = cancel
	go l.run(ctx)
	return l, nil
}

// run takes part until ctx ends or the client is closed.
func (l *Latch) run(ctx context.Context) {
	defer close(l.done)
	policy := recipes.Exponential(retryFirst, retryMost)
	for attempt := 0; ctx.Err() == nil; {
		guard, err := l.mutex.Lock(ctx)
		if err == nil {
			attempt = 0
			l.lead(ctx, guard)
			continue
		}
		l.publish(nil, err)
		if errors.Is(err, recipes.ErrClosed) || errors.Is(err, recipes.ErrPath) {
			return
		}
		wait, _ := policy(attempt)
		_ = l.c.Sleep(ctx, wait) // the next attempt tells why
		attempt++
	}
	l.publish(nil, context.Cause(ctx))
}

// lead is one term.
func (l *Latch) lead(ctx context.Context, guard *lock.Guard) {
	term := begin(ctx, l.c, guard)
	l.publish(term, nil)
	<-term.Lost()
	l.publish(nil, nil)
	term.finish(ctx)
}

func (l *Latch) publish(term *Term, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.term, l.mu.err = term, err
	close(l.mu.changed)
	l.mu.changed = make(chan struct{})
}

// Await waits until this latch leads, and returns the term; if it leads already, at once. The term was not over a moment ago:
// its session was not done, and its lease had not run out.
//
// It fails with the cause of ctx when that ends, with ErrClosed when the latch is closed, with recipes.ErrClosed when its
// client is. Any other error is what has just kept the latch from taking part, such as zk.ErrNoAuth; it goes on trying, so
// Await may be called again.
func (l *Latch) Await(ctx context.Context) (*Term, error) {
	for {
		l.mu.Lock()
		term, err, changed := l.mu.term, l.mu.err, l.mu.changed
		l.mu.Unlock()
		if term != nil && term.Leads() {
			return term, nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Term returns the present term, or nil if this latch does not lead.
func (l *Latch) Term() *Term {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.term == nil || !l.mu.term.Leads() {
		return nil
	}
	return l.mu.term
}

// ID is what the latch is called among the participants.
func (l *Latch) ID() string { return l.id }

// Close leaves the election. The term is over when it returns, if there was one, and the node is deleted in the background if
// need be. A second call does nothing.
func (l *Latch) Close() {
	l.cancel(ErrClosed)
	<-l.done
}
