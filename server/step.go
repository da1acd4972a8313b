package server

import (
	"sync"
	"sync/atomic"
	"time"

	"zabra/server/replica"
	"zabra/zab"
)

// stepper is what goroutines have to say to the replica, and the right to step it.
type stepper struct {
	wake chan struct{} // holds at most one
	// due is set while something waits that no step has begun to take.
	due atomic.Bool

	// running is held by who steps the replica: one goroutine at a time, whichever, is the stepping goroutine. The next
	// fields belong to it.
	running sync.Mutex
	timer   *time.Timer
	armedMs int64 // when timer fires, monotonic; 0: it has fired
	spare   []zab.Input
	// direct and peers are what the step has left to be written: the first where that is little.
	direct []*replica.Conn
	peers  []*quorumConn
	ended  bool // no step is taken any more

	mu    sync.Mutex
	calls []func() // to be run between two steps
	// inputs is what has happened since the last step; restores are states that come between two of the inputs.
	inputs   []zab.Input
	restores []restore
	// durable counts the transactions that have become durable.
	durable int
	// bytes is what the other members' messages among the inputs take; room tells who waits for it to become less.
	bytes  int
	room   sync.Cond
	closed bool
	// idle is closed as soon as nothing is queued, in flight or undurable; nil while nobody asks.
	idle chan struct{}
}

// restore is a state that replaces the replica's, before the input at index at is stepped.
type restore struct {
	at    int
	state *replica.Recovered
}

func (st *stepper) init() {
	st.wake = make(chan struct{}, 1)
	st.timer = time.NewTimer(0) // the first step is due at once: it tells when the next one is
	st.room.L = &st.mu
}

// wakeUp has a step taken soon, on another goroutine. It never waits.
func (st *stepper) wakeUp() {
	st.due.Store(true)
	st.signal()
}

// signal wakes the stepping goroutine.
func (st *stepper) signal() {
	select {
	case st.wake <- struct{}{}:
	default: // a step is due already, and it begins after what the caller has done
	}
}

// input queues what has happened. It never waits.
func (st *stepper) input(in zab.Input) {
	st.mu.Lock()
	st.inputs = append(st.inputs, in)
	st.mu.Unlock()
	st.wakeUp()
}

// message queues a message of another member, and waits while too much of that kind is queued: then its sender is not
// read. It gives up when the server is being closed. The caller sees to a step.
func (st *stepper) message(m *zab.Message, bytes int) {
	st.mu.Lock()
	for st.bytes > inputBytesMax && !st.closed {
		st.signal()
		st.room.Wait()
	}
	st.inputs = append(st.inputs, zab.Input{Kind: zab.InputMessage, Message: m, Conn: m.Conn, Peer: m.From})
	st.bytes += bytes
	st.mu.Unlock()
}

// confirm tells that everything up to the operation is durable, and which state is to replace the present one because of
// it, if any. Operations come in order. The caller sees to a step.
func (st *stepper) confirm(op *zab.PersistOp, entries int, state *replica.Recovered) {
	st.mu.Lock()
	st.durable += entries
	if state != nil {
		st.restores = append(st.restores, restore{len(st.inputs), state})
	}
	st.inputs = append(st.inputs, zab.Input{Kind: zab.InputPersisted, Token: op.Token})
	st.mu.Unlock()
}

// work is what one round of the stepping goroutine has to do.
type work struct {
	calls    []func()
	inputs   []zab.Input
	restores []restore
	// durable tells that many transactions have become durable.
	durable bool
}

// take returns everything that waits; the memory of done becomes the empty queue.
func (st *stepper) take(done []zab.Input) work {
	clear(done)
	st.mu.Lock()
	w := work{st.calls, st.inputs, st.restores, st.durable >= manyEntriesMin}
	st.calls, st.restores, st.durable = nil, nil, 0
	st.inputs = done[:0]
	if st.bytes > 0 {
		st.bytes = 0
		st.room.Broadcast()
	}
	st.mu.Unlock()
	return w
}

// end lets no step begin any more. It waits for one that is under way.
func (st *stepper) end() {
	st.running.Lock()
	st.ended = true
	st.running.Unlock()
}

// close lets nobody wait any more.
func (st *stepper) close() {
	st.mu.Lock()
	st.closed = true
	st.mu.Unlock()
	st.room.Broadcast()
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

// stepLoop sees to the steps that nobody else sees to: those that a timer asks for, and all that came in while others
// were busy.
func (s *Server) stepLoop() {
	for {
		select {
		case <-s.steps.wake:
		case <-s.steps.timer.C:
			s.steps.running.Lock()
			s.steps.armedMs = 0
			s.steps.running.Unlock()
		case <-s.quit:
			return
		}
		s.advance(0)
	}
}

// advance has steps taken until nothing waits, unless somebody else is at it, who then does it for the caller too. So the
// goroutine that brings a request in, or the news that the disk has it, mostly steps the replica itself, and no other has to
// be woken for it. After roundsMax steps (0: without bound) the rest is left to the stepping goroutine: the caller has work of
// its own.
func (s *Server) advance(roundsMax int) {
	st := &s.steps
	st.due.Store(true)
	for n := 0; st.due.Load() && st.running.TryLock(); n++ {
		if st.ended || roundsMax > 0 && n == roundsMax {
			st.running.Unlock()
			st.signal()
			return
		}
		st.due.Store(false)
		s.round()
		var out output
		out.take(st)
		st.running.Unlock()
		if st.due.Load() && out.some() { // somebody has left his work to us, and writing takes a while
			st.signal()
		}
		out.write()
	}
}

// wakePeers leaves what is to be written to other servers to the writing goroutines.
func (st *stepper) wakePeers() {
	for _, c := range st.peers {
		signal(c.out.wake)
	}
	clear(st.peers)
	st.peers = st.peers[:0]
}

// output is what the goroutine that took a step writes when others can step again.
type output struct {
	direct [flushDirectMax]*replica.Conn
	peers  [peersDirectMax]*quorumConn
}

func (o *output) take(st *stepper) {
	copy(o.direct[:], st.direct)
	clear(st.direct)
	st.direct = st.direct[:0]
	for i, c := range st.peers {
		if i < len(o.peers) {
			o.peers[i] = c
		} else {
			signal(c.out.wake)
		}
	}
	clear(st.peers)
	st.peers = st.peers[:0]
}

func (o *output) some() bool { return o.direct[0] != nil || o.peers[0] != nil }

// write lets the other servers go first: they have others who wait.
func (o *output) write() {
	for _, c := range o.peers {
		if c == nil {
			break
		}
		c.writeSoon()
	}
	for _, rc := range o.direct {
		if rc == nil {
			break
		}
		rc.Owner().(*conn).flushOnce()
	}
}

// round takes everything that waits in one step, so that one sync of the log serves all requests that came in during the
// last one. The caller holds running.
func (s *Server) round() {
	st := &s.steps
	w := st.take(st.spare)
	if w.durable && len(w.restores) == 0 && s.replica.HasRequests() {
		// The disk and the other servers get what has come in before what has become durable is applied, which takes a while:
		// so they are at work meanwhile.
		rd := s.replica.Serve(s.clock.now())
		s.carryOut(&rd)
		st.wakePeers()
	}
	wakeAtMs := s.step(&w)
	st.spare = w.inputs
	// A timer that fires too early costs a step in which nothing happens; setting it anew at each step costs more.
	if wakeAtMs != 0 && (st.armedMs == 0 || wakeAtMs < st.armedMs) {
		st.armedMs = wakeAtMs
		st.timer.Reset(s.clock.until(wakeAtMs))
	}
}

// step takes one step, hands on what it has left to do, and returns when the next one is due at the latest. A state that
// replaces the replica's divides it into two: what was confirmed before belongs to the old state.
func (s *Server) step(w *work) (wakeAtMs int64) {
	for _, f := range w.calls {
		f()
	}
	from := 0
	for _, r := range w.restores {
		if r.at > from {
			s.stepInputs(w.inputs[from:r.at])
			from = r.at
		}
		s.replica.Restore(r.state)
		s.allowSnapshots()
	}
	wakeAtMs = s.stepInputs(w.inputs[from:])
	if len(w.restores) > 0 {
		s.actions.tellRestored()
	}
	s.tellIdle()
	return wakeAtMs
}

// stepInputs feeds the replica and carries out what it asks for.
func (s *Server) stepInputs(inputs []zab.Input) (wakeAtMs int64) {
	rd := s.replica.Step(s.clock.now(), inputs)
	s.carryOut(&rd)
	return rd.WakeAtMs
}

// carryOut does what the replica asks for.
func (s *Server) carryOut(rd *replica.Ready) {
	if s.member != nil {
		s.member.carryOut(rd)
	}
	if len(rd.Audit) > 0 {
		s.audit.add(s.clock.now().WallMs, rd.Audit)
	}
	s.disk.add(rd.Persist)
	if len(rd.Flush) <= flushDirectMax && len(s.steps.direct) == 0 {
		s.steps.direct = append(s.steps.direct, rd.Flush...) // who steps writes it, when others can step again
	} else {
		s.flush.add(rd.Flush)
	}
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
