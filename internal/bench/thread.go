package bench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zabra/wire"
)

// work is what the sessions of one thread do. An error ends the run. Methods that take a session may cut it.
type work interface {
	// ready is called when a session is established.
	ready(s *session) error
	// replied is called for every reply, in order. The body is valid during the call.
	replied(s *session, sent *stamp, code wire.Code, body []byte) error
	// settled is called when the replies of one read are through, and when everything pending was written.
	settled(s *session) error
	// ponged is called when a ping is answered, which was sent at that time.
	ponged(s *session, at int64) error
	// event is called for watch events, with the WatcherEvent.
	event(s *session, body []byte) error
	// lost is called when a connection has ended with so many requests outstanding.
	lost(s *session, outstanding int, cause error) error
	// turn is called once in each turn of the thread. It returns when it has something to do next, never for never.
	turn() (next int64, err error)
	// done tells that the thread can stop turning.
	done() bool
}

// never is a time that does not come.
const never = 1<<63 - 1

// base is the work of a session that only waits.
type base struct{ *thread }

func (base) ready(*session) error                                         { return nil }
func (base) settled(*session) error                                       { return nil }
func (base) ponged(*session, int64) error                                 { return nil }
func (base) event(*session, []byte) error                                 { return nil }
func (base) turn() (int64, error)                                         { return never, nil }
func (base) lost(_ *session, _ int, cause error) error                    { return cause }
func (base) replied(_ *session, _ *stamp, code wire.Code, _ []byte) error { return code.Err() }

// thread drives some of the sessions of a run, in one goroutine.
type thread struct {
	run      *run
	index    int
	poll     poller
	sessions []*session
	work     work
	recorder *recorder

	now    int64 // on the run's clock, in nanoseconds
	check  int64 // when to look after silence and pings again
	heard  int64 // when anything was answered, or began to be waited for
	flying int   // requests outstanding on all sessions
	open   int   // connections
	in     []byte
	out    []byte // requests that are being put together
	random *rand.PCG
}

func newThread(r *run, index int) (*thread, error) {
	p, err := newPoller(r.portable)
	if err != nil {
		return nil, err
	}
	return &thread{run: r, index: index, poll: p, in: make([]byte, readBytes), random: newRandom(r.Seed, index)}, nil
}

func newRandom(seed uint64, index int) *rand.PCG { return rand.NewPCG(seed, uint64(index)) }

// clock is the time since the run began.
func (t *thread) clock() int64 { return int64(time.Since(t.run.began)) }

// below draws a number below n.
func (t *thread) below(n int) uint32 {
	return uint32(t.random.Uint64() >> 32 * uint64(n) >> 32)
}

// do turns until the work is done. What fails on one thread stops the others.
func (t *thread) do(w work) error {
	t.work = w
	t.now = t.clock()
	t.heard, t.check = t.now, t.now
	defer t.recorder.flush()
	for !w.done() && !t.run.failed() {
		if err := t.turn(); err != nil {
			t.run.fail()
			return err
		}
	}
	return nil
}

// stopped tells whether the measurement is over.
func (t *thread) stopped() bool { return t.now >= t.recorder.until || t.run.stopping() }

// operation counts one of the measurement that ends now. The last one, if their number is bounded, ends the run.
func (t *thread) operation(latency int64, code wire.Code) {
	if !t.recorder.counts(t.now) {
		return
	}
	n := t.run.finished.Add(1)
	if t.run.Count > 0 && n > t.run.Count {
		return
	}
	t.recorder.reply(t.now, &stamp{at: t.now - latency}, code)
	if n == t.run.Count {
		t.run.stop()
	}
}

// turn waits for something to do and does it.
func (t *thread) turn() error {
	next, err := t.work.turn()
	if err != nil {
		return err
	}
	t.now = t.clock()
	// Looking after sessions can wait a little, so that the poller need not set its timer for it.
	events, err := t.poll.wait(max(0, min(time.Duration(next-t.now), max(time.Duration(t.check-t.now), coarse))))
	if err != nil {
		return err
	}
	t.now = t.clock()
	for i := range events {
		if err := t.handle(&events[i]); err != nil {
			return err
		}
	}
	if t.now >= t.check {
		t.check = t.now + int64(checkPeriod)
		return t.lookAfter()
	}
	return nil
}

func (t *thread) handle(e *event) error {
	s := e.s
	if s.gen == e.gen && s.state == stateConnecting && e.writable {
		if err := t.greet(s); err != nil {
			return err
		}
	}
	if s.gen == e.gen && e.writable && len(s.pending) > 0 {
		if err := t.flush(s); err != nil {
			return err
		}
	}
	if s.gen == e.gen && e.readable && s.state > stateConnecting {
		t.heard = t.now
		return t.read(s, e.ended)
	}
	return nil
}

// lookAfter sends pings where nothing was sent for a while, as clients do, and ends what is silent.
func (t *thread) lookAfter() error {
	for _, s := range t.sessions {
		if err := t.lookAfterSession(s); err != nil {
			return err
		}
	}
	if t.heard < t.now-int64(t.run.SilenceMax) && (t.flying > 0 || t.open < len(t.sessions)) {
		return fmt.Errorf("no answer for %v (%d requests outstanding): the run ends", t.run.SilenceMax, t.flying)
	}
	return nil
}

func (t *thread) lookAfterSession(s *session) error {
	switch s.state {
	case stateClosed:
		return nil
	case stateReady:
		// A client speaks when it has said nothing for a third of the timeout, and leaves a server that is silent for two.
		if t.now-s.spoke > int64(s.timeout/3) && s.pinged == 0 {
			return t.ping(s)
		}
		if (s.flying > 0 || s.pinged > 0) && t.now-max(s.heard, s.since) > t.patience(s.timeout*2/3) {
			return t.lost(s, errSilent)
		}
	default:
		if t.now-s.since > t.patience(t.run.SessionTimeout/time.Duration(len(t.run.Servers))) {
			return t.lost(s, errSilent)
		}
	}
	return nil
}

// patience is how long a session waits for an answer: as long as a client does where the session may go on with another
// server, as long as the run otherwise.
func (t *thread) patience(client time.Duration) int64 {
	if t.run.Rate > 0 {
		return int64(client)
	}
	return int64(t.run.SilenceMax)
}
