package bench

import (
	"fmt"
	"time"
)

// load opens the sessions and does the workload.
func (r *run) load() error {
	if r.Workload == Connect {
		return r.measureFor(func(t *thread) work { return &connects{base: base{t}} })
	}
	if err := r.parallel(func(t *thread) error { return t.do(&opener{base: base{t}}) }); err != nil {
		return fmt.Errorf("opening the sessions: %w", err)
	}
	switch r.Workload {
	case Lock:
		return r.lockLine()
	case Watch:
		return r.watches()
	case Idle:
		r.Warmup, r.Duration, r.Count = 0, r.Hold, 0
		return r.measureFor(func(t *thread) work { return &idle{base: base{t}} })
	case Fill:
		r.Warmup, r.Count, r.Duration = 0, int64(r.Nodes), never
		return r.counted()
	case Get, Set, Create, Exists, Children, Mixed, Multi:
		if r.Count > 0 {
			return r.counted()
		}
		return r.streams()
	}
	panic("bench: workload " + r.Workload) // Check has refused it
}

// streams measures during a window of time, under a load that was there before.
func (r *run) streams() error {
	return r.measureFor(func(t *thread) work {
		if r.Rate > 0 {
			return r.paced(t, r.from-int64(r.Warmup), int64(r.Rate*(r.Warmup+r.Duration).Seconds()))
		}
		return &stream{thread: t, make: t.maker(), budget: &budget{total: never}, stopAt: r.until}
	})
}

// counted measures a number of requests from the first to the last.
func (r *run) counted() error {
	if r.Warmup > 0 {
		r.from, r.until = never, r.clock()+int64(r.Warmup)
		err := r.parallel(func(t *thread) error {
			return t.do(&stream{thread: t, make: t.maker(), budget: &budget{total: never}, stopAt: r.until})
		})
		if err != nil {
			return err
		}
	}
	r.Warmup = 0
	shared := &budget{total: r.Count}
	return r.measureFor(func(t *thread) work {
		if r.Rate > 0 {
			return r.paced(t, r.from, r.Count)
		}
		return &stream{thread: t, make: t.maker(), budget: shared, stopAt: r.until}
	})
}

// paced makes a thread's share of an open loop of so many requests.
func (r *run) paced(t *thread, begin, total int64) work {
	n := int64(len(r.threads))
	step := float64(time.Second) / r.Rate
	own := total / n
	if int64(t.index) < total%n {
		own++
	}
	w := &paced{stream: stream{thread: t, make: t.maker()}, interval: step * float64(n), total: own}
	w.start = begin + int64(step*float64(t.index))
	return w
}

// measureFor runs a workload for the warm-up and the duration.
func (r *run) measureFor(work func(t *thread) work) error {
	r.from = r.clock() + int64(r.Warmup)
	r.until = never
	if r.Duration < never-time.Duration(r.from) {
		r.until = r.from + int64(r.Duration)
	}
	for _, t := range r.threads {
		t.recorder.from, t.recorder.until = r.from, r.until
	}
	r.usage = r.sample()
	err := r.parallel(func(t *thread) error { return t.do(work(t)) })
	r.ended = r.clock()
	r.usage.end()
	return err
}
