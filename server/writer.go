package server

import (
	"context"
	"sync"
)

// writer sees to it that a connection is written by one goroutine at a time, in the order in which the replica queued.
// Whoever finds it busy leaves a note, and the busy one goes round once more.
type writer struct {
	mu    sync.Mutex
	busy  bool
	again bool // output may have come since the busy one looked
	over  bool // the connection is finished or cut: nothing more is written
	// finishing makes the writer finish the connection when nothing is left to write.
	finishing bool
	// changed is closed when the writer becomes free or over; made by who waits for that.
	changed chan struct{}
}

// claim makes the caller the writer, unless there is one, who then sees to the caller's output too.
func (w *writer) claim() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	if w.busy {
		w.again = true
		return false
	}
	w.busy = true
	return true
}

// awaitTurn makes the caller the writer as soon as there is none. It reports false when the connection is over.
func (w *writer) awaitTurn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy && !w.over {
		w.waitLocked(context.Background())
	}
	if w.over {
		return false
	}
	w.busy = true
	return true
}

// awaitOver waits until the connection is finished or cut.
func (w *writer) awaitOver(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.over {
		if err := w.waitLocked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitLocked waits for a change, without the lock.
func (w *writer) waitLocked(ctx context.Context) error {
	if w.changed == nil {
		w.changed = make(chan struct{})
	}
	ch := w.changed
	w.mu.Unlock()
	defer w.mu.Lock()
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) changeLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

func (w *writer) overLocked() {
	w.over = true
	w.changeLocked()
}

// state returns whether somebody is writing and whether the connection is over.
func (w *writer) state() (busy, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.busy, w.over
}

func (w *writer) isOver() bool {
	_, over := w.state()
	return over
}

// yield gives the writer up. It is not free when there is more to be done first: output, or the end.
func (w *writer) yield() (free, finish bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
	case w.again:
		w.again = false
		return false, false
	case w.finishing:
		return false, true
	}
	w.busy = false
	w.changeLocked()
	return true, false
}
