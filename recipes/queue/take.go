package queue

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Take waits for an entry, locks it and returns it; the entry stays in the queue until its Done. Every entry that is taken has to
// be ended by Done or Release, also after Lost. If ctx ends first, no lock is left behind.
func (t *Taker) Take(ctx context.Context) (*Entry, error) {
	for {
		c, wait, err := t.next(ctx)
		if err != nil {
			return nil, fmt.Errorf("queue: take from %s: %w", t.entries, err)
		}
		if c == nil {
			wait.until(ctx)
			continue
		}
		entry, err := t.claim(ctx, *c)
		if entry != nil {
			return entry, nil
		}
		if err != nil {
			t.again() // for the others: this entry has been taken off the list
			return nil, fmt.Errorf("queue: take from %s: %w", t.entries, err)
		}
	}
}

// Pop waits for an entry, removes it and returns it; it cannot come back. If the error is ErrUnknown and there is an entry, that
// may have been removed or not; any other error comes without an entry, and none has been removed.
func (t *Taker) Pop(ctx context.Context) (*Entry, error) {
	for {
		entry, err := t.Take(ctx)
		if err != nil {
			return nil, err
		}
		err = entry.Done(ctx)
		switch {
		case err == nil:
			return entry, nil
		case entry.doubtful:
			return entry, fmt.Errorf("queue: pop from %s: %w: %w", t.entries, ErrUnknown, err)
		case errors.Is(err, ErrLost): // nothing was removed
		default:
			entry.Release(ctx)
			return nil, fmt.Errorf("queue: pop from %s: %w", t.entries, err)
		}
	}
}

// view is the list of entries as it was read last, without those that have been tried since.
type view struct {
	candidates []candidate
	watch      <-chan zk.Event // of the entries; nil before the first reading
	lockWatch  <-chan zk.Event
	redo       <-chan struct{} // somebody has tried an entry in vain
	taken      map[string]bool
}

// waiting is what ends the wait for an entry.
type waiting struct {
	watch, lockWatch <-chan zk.Event
	redo             <-chan struct{}
	due              time.Time // zero if no entry waits for its time
}

func (w waiting) until(ctx context.Context) {
	var timer <-chan time.Time
	if !w.due.IsZero() {
		t := time.NewTimer(time.Until(w.due))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-w.watch:
	case <-w.lockWatch:
	case <-w.redo:
	case <-timer:
	case <-ctx.Done():
	}
}

// next takes the first entry off the list, or says what to wait for. The list is read again when it has changed and is used
// up; for queues in which a new entry may be the first, whenever it has changed.
func (t *Taker) next(ctx context.Context) (*candidate, waiting, error) {
	select {
	case t.gate <- struct{}{}:
		defer func() { <-t.gate }()
	case <-ctx.Done():
		return nil, waiting{}, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		return nil, waiting{}, context.Cause(ctx)
	}
	t.follow.Do(func() { go t.followConnection(t.client.States(context.Background())) })
	v := &t.view
	stale := fired(v.watch) || fired(v.redo)
	if len(v.candidates) == 0 && (stale || fired(v.lockWatch)) || t.layout.ranked && stale {
		if err := t.read(ctx); err != nil {
			return nil, waiting{}, err
		}
	}
	w := waiting{watch: v.watch, lockWatch: v.lockWatch, redo: v.redo}
	if len(v.candidates) == 0 {
		return nil, w, nil
	}
	first := v.candidates[0]
	if first.due().After(time.Now()) {
		w.due = first.due()
		return nil, w, nil
	}
	v.candidates = v.candidates[1:]
	return &first, waiting{}, nil
}

// fired tells whether a watch has fired, or was never set. A watch that has is closed and goes on to say so.
func fired[E any](watch <-chan E) bool {
	if watch == nil {
		return true
	}
	select {
	case <-watch:
		return true
	default:
		return false
	}
}

// read reads entries and locks. A watch of the locks that has not fired is not set again: what it watches has not changed.
func (t *Taker) read(ctx context.Context) error {
	v := &t.view
	again := fired(v.redo)
	t.mu.Lock()
	redo := t.redo
	t.mu.Unlock()
	names, watch, err := t.list(ctx, t.entries)
	if err != nil {
		return err
	}
	v.watch = watch
	if again || fired(v.lockWatch) {
		taken, lockWatch, err := t.list(ctx, t.locks)
		if err != nil {
			return err
		}
		v.taken, v.lockWatch = map[string]bool{}, lockWatch
		for _, name := range taken {
			v.taken[name] = true
		}
	}
	v.candidates, v.redo = t.candidates(names), redo
	return nil
}

// list reads the children of a node of the queue, and makes the node if it is missing.
func (t *Taker) list(ctx context.Context, dir string) ([]string, <-chan zk.Event, error) {
	for {
		names, _, watch, err := t.client.ChildrenW(ctx, dir)
		if !errors.Is(err, zk.ErrNoNode) {
			return names, watch, err
		}
		if err := t.ensure(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// candidates sorts the entries that are not locked. Nodes that are no entries are told about each time they are seen.
func (t *Taker) candidates(names []string) []candidate {
	t.mu.Lock()
	bad := map[string]bool{}
	for _, name := range names {
		if t.bad[name] {
			bad[name] = true // the others have gone
		}
	}
	t.bad = bad
	t.mu.Unlock()
	var list []candidate
	for _, name := range names {
		c, ok := t.layout.candidate(name)
		switch {
		case !ok:
			t.opt.Skipped(path.Join(t.entries, name), errForeign)
		case !bad[name] && !t.view.taken[name]:
			list = append(list, c)
		}
	}
	slices.SortFunc(list, candidate.compare)
	return list
}

var errForeign = errors.New("queue: not an entry of this kind of queue")

// followConnection has the list read again after each reconnection, until the client is closed: when connections break one after
// the other, package zk may set its watches again as of too late a moment, and what has changed before is never told.
func (t *Taker) followConnection(states <-chan recipes.State) {
	for state := range states {
		if state == recipes.Reconnected {
			t.again()
		}
	}
}

// again has the list read again.
func (t *Taker) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.redo)
	t.redo = make(chan struct{})
}
