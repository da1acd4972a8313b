package bench

import (
	"fmt"
	"sync/atomic"

	"github.com/HdrHistogram/hdrhistogram-go"

	"zabra/wire"
)

// The steps of a round. The thread of the writer takes the next one when everything of the last is through.
const (
	roundNew     int32 = iota // the watches are to be set
	roundArming               // they are being set
	roundArmed                // all of them are
	roundWritten              // the write is on its way, then its events
	roundOver
)

// rounds is what the threads of a watch run share: the sessions watch, one more writes, all wait for the events.
type rounds struct {
	step atomic.Int32
	// number of the round whose watches are to be set; each thread sets its own.
	number atomic.Int64
	// left is how many answers and events of the step are awaited.
	left atomic.Int64
	// When the write was sent and answered, and when the first and the last event came, on the run's clock.
	wrote, answered, first, last atomic.Int64
}

// fanout are the latencies of all rounds, by what was waited for, in nanoseconds.
type fanout struct{ answer, first, last *hdrhistogram.Histogram }

func (f *fanout) result(watchers int) *Fanout {
	return &Fanout{Watchers: watchers, Answer: quantiles(f.answer), First: quantiles(f.first), Last: quantiles(f.last)}
}

func (r *run) watches() error {
	r.rounds = &rounds{}
	r.fanout = &fanout{newHistogram(), newHistogram(), newHistogram()}
	return r.measureFor(func(t *thread) work { return &watchers{base: base{t}, rounds: r.rounds} })
}

// watchers is the work of the sessions of one thread that watch, and on the first thread of the one that writes.
type watchers struct {
	base
	*rounds
	armed int64 // the last round whose watches were set
}

func (w *watchers) isWriter(s *session) bool { return s.index == w.run.Sessions }

func (w *watchers) done() bool { return w.stopped() }

func (w *watchers) turn() (int64, error) {
	if w.index == 0 {
		if err := w.conduct(); err != nil {
			return 0, err
		}
	}
	if n := w.number.Load(); n > w.armed {
		w.armed = n
		if err := w.arm(); err != nil {
			return 0, err
		}
	}
	return w.recorder.until, nil
}

// conduct goes on to the next step if the last is through.
func (w *watchers) conduct() error {
	switch w.step.Load() {
	case roundOver:
		w.count()
		if w.stopped() {
			return nil
		}
		fallthrough
	case roundNew:
		w.left.Store(int64(w.run.Sessions * w.run.Watches))
		w.step.Store(roundArming)
		w.number.Add(1)
		w.run.wake()
	case roundArmed:
		w.left.Store(int64(w.run.Sessions*w.run.Watches) + 1)
		w.first.Store(never)
		w.last.Store(0)
		w.step.Store(roundWritten)
		w.wrote.Store(w.clock())
		return w.write(w.sessions[len(w.sessions)-1])
	}
	return nil
}

// count adds a round to the result.
func (w *watchers) count() {
	wrote := w.wrote.Load()
	if w.recorder.counts(w.now) {
		record(w.run.fanout.answer, w.answered.Load()-wrote)
		record(w.run.fanout.first, w.first.Load()-wrote)
		record(w.run.fanout.last, w.last.Load()-wrote)
	}
	w.operation(w.last.Load()-wrote, wire.CodeOK)
}

func record(h *hdrhistogram.Histogram, ns int64) {
	if err := h.RecordValue(max(0, min(ns, int64(latencyMax)))); err != nil {
		panic("bench: " + err.Error()) // it is within the bounds
	}
}

func (w *watchers) path(i int) []byte {
	return fmt.Appendf(nil, "%s/%0*d", w.run.dir(), numberDigits, i)
}

// arm sets the watches of all sessions of this thread.
func (w *watchers) arm() error {
	for _, s := range w.sessions {
		if w.isWriter(s) {
			continue
		}
		b := w.out[:0]
		for i := range w.run.Watches {
			b = w.encode(b, s, wire.OpGetData, &wire.PathWatchRequest{Path: w.path(i), Watch: true})
		}
		w.out = b
		if err := w.send(s, b); err != nil {
			return err
		}
	}
	return nil
}

// write changes all that is watched, in one transaction.
func (w *watchers) write(s *session) error {
	ops := make([]wire.MultiOp, w.run.Watches)
	for i := range ops {
		ops[i] = wire.MultiOp{Op: wire.OpSetData, Path: w.path(i), Data: w.run.data, Version: -1}
	}
	if len(ops) == 1 {
		return w.request(s, wire.OpSetData, &wire.SetDataRequest{Path: ops[0].Path, Data: ops[0].Data, Version: -1})
	}
	return w.request(s, wire.OpMulti, &multiRequest{ops})
}

func (w *watchers) replied(s *session, _ *stamp, code wire.Code, _ []byte) error {
	if code != wire.CodeOK {
		return fmt.Errorf("watch fan-out: %w", code)
	}
	if w.isWriter(s) {
		w.answered.Store(w.now)
		w.passed(roundOver)
	} else {
		w.passed(roundArmed)
	}
	return nil
}

func (w *watchers) event(*session, []byte) error {
	for at := w.first.Load(); w.now < at && !w.first.CompareAndSwap(at, w.now); at = w.first.Load() {
	}
	for at := w.last.Load(); w.now > at && !w.last.CompareAndSwap(at, w.now); at = w.last.Load() {
	}
	w.passed(roundOver)
	return nil
}

// passed counts one of those that are awaited, and ends the step with the last.
func (w *watchers) passed(next int32) {
	if w.left.Add(-1) == 0 {
		w.step.Store(next)
		w.run.threads[0].poll.wake()
	}
}
