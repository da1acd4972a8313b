package server

import (
	"sync"
	"sync/atomic"
	"time"

	"zabra/zab"
)

// stepper is what other goroutines say to the stepping goroutine.
type stepper struct {
	wake chan struct{} // holds at most one
	// persisted is the last token that is durable.
	persisted atomic.Uint64

	mu    sync.Mutex
	calls []func() // to be run between two steps
	// idle is closed as soon as nothing is queued, in flight or undurable; nil while nobody asks.
	idle chan struct{}
}

func (st *stepper) init() { st.wake = make(chan struct{}, 1) }

// wakeUp makes the stepping goroutine take a step soon. It never waits.
func (st *stepper) wakeUp() {
	select {
	case st.wake <- struct{}{}:
	default: // a step is due already, and it begins after what the caller has done
	}
}

// confirm tells that everything up to token is durable. Tokens come in order.
func (st *stepper) confirm(token zab.Token) {
	st.persisted.Store(uint64(token))
	st.wakeUp()
}

// whenIdle returns a channel that is closed as soon as the replica has nothing left to do.
func (st *stepper) whenIdle() <-chan struct{} {
	st.mu.Lock()
	if st.idle == nil {
		st.idle = make(chan struct{})
	}
	ch := st.idle
	st.mu.Unlock()
	st.wakeUp()
	return ch
}

// onStep runs f on the stepping goroutine and waits for it. It reports false if the server is being closed, and f was
// or will not be run to its end.
func (s *Server) onStep(f func()) bool {
	ran := make(chan struct{})
	s.post(func() {
		f()
		close(ran)
	})
	select {
	case <-ran:
		return true
	case <-s.quit:
		return false
	}
}

// post runs f on the stepping goroutine, without waiting for it.
func (s *Server) post(f func()) {
	s.steps.mu.Lock()
	s.steps.calls = append(s.steps.calls, f)
	s.steps.mu.Unlock()
	s.steps.wakeUp()
}

// stepLoop is the stepping goroutine: the only one that changes the replica's state. Each round takes everything that is
// waiting, so that one sync of the log serves all requests that came in during the last one.
func (s *Server) stepLoop() {
	timer := time.NewTimer(0) // the first step is due at once: it tells when the next one is
	defer timer.Stop()
	armedMs := int64(0) // when timer fires; 0: it has fired
	for {
		select {
		case <-s.steps.wake:
		case <-timer.C:
			armedMs = 0
		case <-s.quit:
			return
		}
		wakeAtMs := s.step()
		// A timer that fires too early costs a step in which nothing happens; setting it anew at each step costs more.
		if wakeAtMs != 0 && (armedMs == 0 || wakeAtMs < armedMs) {
			armedMs = wakeAtMs
			timer.Reset(s.clock.until(wakeAtMs))
		}
	}
}

// step takes one step, hands on what it has left to do, and returns when the next one is due at the latest.
func (s *Server) step() (wakeAtMs int64) {
	s.steps.mu.Lock()
	calls := s.steps.calls
	s.steps.calls = nil
	s.steps.mu.Unlock()
	for _, f := range calls {
		f()
	}
	rd := s.replica.Step(s.clock.now(), zab.Token(s.steps.persisted.Load()))
	s.disk.add(rd.Persist)
	s.flush.add(rd.Flush)
	s.tellIdle()
	return rd.WakeAtMs
}

// tellIdle answers whenIdle.
func (s *Server) tellIdle() {
	s.steps.mu.Lock()
	defer s.steps.mu.Unlock()
	if s.steps.idle != nil && s.replica.Idle() {
		close(s.steps.idle)
		s.steps.idle = nil
	}
}
