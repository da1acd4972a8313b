// Package ahead lets one half of a piece of work run ahead of the other half. It is the goroutine that pure packages do not
// have: they are given Run and say themselves what the halves are.
package ahead

import "sync"

// Run calls fill on a goroutine of its own, for one slot after the other, until it reports false or stop is called. The
// slots are numbered from 0; one that was filled is free again when its consumer takes the next one. So no more than slots
// are ever in use, and neither side touches what the other has.
//
// take waits for the next slot that was filled, in that order, and reports false when there will be none. stop waits until
// fill has returned; it must be called, and may be called again. take and stop belong to one goroutine.
func Run(slots int, fill func(slot int) bool) (take func() (slot int, ok bool), stop func()) {
	r := &run{free: make(chan int, slots), full: make(chan int, slots), quit: make(chan struct{}), held: noSlot}
	for slot := range slots {
		r.free <- slot
	}
	go r.produce(fill)
	return r.take, sync.OnceFunc(r.stop)
}

// run is one piece of work. Each channel has room for all slots, so sending never waits.
type run struct {
	free, full chan int
	quit       chan struct{}
	held       int // by the consumer
}

const noSlot = -1

func (r *run) produce(fill func(int) bool) {
	defer close(r.full)
	for {
		select {
		case <-r.quit:
			return
		case slot := <-r.free:
			if !fill(slot) {
				return
			}
			r.full <- slot
		}
	}
}

func (r *run) take() (int, bool) {
	if r.held != noSlot {
		r.free <- r.held
		r.held = noSlot
	}
	slot, ok := <-r.full
	if ok {
		r.held = slot
	}
	return slot, ok
}

// stop waits for the end of produce by emptying the slots that it has filled.
func (r *run) stop() {
	close(r.quit)
	for range r.full {
	}
}
