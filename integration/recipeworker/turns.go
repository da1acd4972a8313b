//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
	"zabra/recipes/election"
	"zabra/recipes/lock"
)

const (
	recordPause = 10 * time.Millisecond // between two attempts at a record
	// lostWait is how long a holder whose late write was refused may take to be told that it holds no more.
	lostWait = 30 * time.Second
	// writeEvery is which turns at a read-write lock are writers'.
	writeEvery = 3
)

// grant is what a holder has, whatever the recipe.
type grant interface {
	Token() int64
	Path() string
	Lost() <-chan struct{}
}

// turnOf returns what one turn is: KIND DIR JOURNAL [LEASES]. The kinds with "stock" are for lines with kazoo as it comes.
func (w *worker) turnOf(word []string) (func(context.Context) error, error) {
	dir, journal, o := word[1], word[2], lock.Options{Identity: []byte(w.name)}
	var acquire func(context.Context) (*lock.Guard, error)
	switch word[0] {
	case "lock-stock":
		o.Names = lock.Kazoo
		fallthrough
	case "lock":
		acquire = lock.NewMutex(w.c, dir, o).Lock
	case "rw-stock":
		o.Names = lock.Kazoo
		fallthrough
	case "rw":
		acquire = w.readOrWrite(lock.NewRWMutex(w.c, dir, o))
	case "semaphore":
		leases, err := strconv.Atoi(word[3])
		if err != nil {
			return nil, err
		}
		acquire = lock.NewSemaphore(w.c, dir, leases, o).Acquire
	case "latch":
		return func(ctx context.Context) error { return w.latchTurn(ctx, dir, journal) }, nil
	case "election", "election-stock":
		return w.electionTurn(dir, journal, word[0] == "election-stock"), nil
	default:
		return nil, fmt.Errorf("unknown kind")
	}
	return func(ctx context.Context) error {
		guard, err := acquire(ctx)
		if err != nil {
			return err
		}
		return errors.Join(w.hold(ctx, journal, guard), informational(guard.Unlock(ctx)))
	}, nil
}

// informational drops what Unlock says of a lock that was lost: it goes without saying.
func informational(err error) error {
	if errors.Is(err, recipes.ErrSessionLost) {
		return nil
	}
	return err
}

func (w *worker) readOrWrite(m *lock.RWMutex) func(context.Context) (*lock.Guard, error) {
	return func(ctx context.Context) (*lock.Guard, error) {
		w.turns++
		if w.turns%writeEvery == 1 {
			return m.Lock(ctx)
		}
		return m.RLock(ctx)
	}
}

func (w *worker) latchTurn(ctx context.Context, dir, journal string) error {
	latch, err := election.StartLatch(w.c, dir, w.name)
	if err != nil {
		return err
	}
	defer latch.Close()
	term, err := latch.Await(ctx)
	if err != nil {
		return err
	}
	return w.hold(ctx, journal, term)
}

func (w *worker) electionTurn(dir, journal string, stock bool) func(context.Context) error {
	o := election.SelectorOptions{}
	if stock {
		o.Names = lock.Kazoo
	}
	selector := election.NewSelector(w.c, dir, w.name, o)
	return func(ctx context.Context) error {
		// What the leader does goes on when its term is over: it is to try a late write.
		return selector.Run(ctx, func(_ context.Context, term *election.Term) error { return w.hold(ctx, journal, term) })
	}
}

// hold is what a holder does.
func (w *worker) hold(ctx context.Context, journal string, g grant) error {
	accepted, err := w.record(ctx, journal, g)
	if err != nil {
		return err
	}
	if !accepted {
		w.say("REFUSED %d", g.Token())
		return w.mustBeLost(g)
	}
	w.say("IN %d", g.Token())
	if !w.keep.CompareAndSwap(true, false) {
		return nil
	}
	w.say("KEPT %d", g.Token())
	<-w.freed
	if accepted, err = w.record(ctx, journal, g); err != nil {
		return err
	}
	if accepted {
		w.say("LATE accepted")
		return nil
	}
	if err := w.mustBeLost(g); err != nil {
		w.say("LATE refused, but %v", err)
		return err
	}
	w.say("LATE refused")
	return nil
}

// record makes the record of a holder, again until it is known whether it was accepted: to repeat it does no harm.
func (w *worker) record(ctx context.Context, journal string, g grant) (accepted bool, err error) {
	for {
		_, err := w.c.Txn().Check(g.Path(), -1).Set(journal, fmt.Appendf(nil, "%s %d", w.name, g.Token()), -1).Commit(ctx)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case errors.Is(err, recipes.ErrClosed), ctx.Err() != nil:
			return false, err
		}
		time.Sleep(recordPause) // the connection is on its way back
	}
}

// mustBeLost waits until a holder whose node is gone is told so.
func (w *worker) mustBeLost(g grant) error {
	select {
	case <-g.Lost():
		return nil
	case <-time.After(lostWait):
		return fmt.Errorf("the holder with token %d is not told within %v", g.Token(), lostWait)
	}
}
