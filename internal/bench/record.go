package bench

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"zabra/wire"
)

const (
	significantDigits = 3
	reads, writes     = 0, 1
)

// recorder counts what one thread has measured.
type recorder struct {
	// from and until bound the measurement, on the run's clock; what falls outside is not counted.
	from, until int64
	step        int64 // of the timeline, 0 for none

	latencies [2]*hdrhistogram.Histogram // by reads and writes, in nanoseconds
	codes     map[wire.Code]int64
	timeline  []Interval

	// operations that are not in the histogram yet: they have the same latency, and ended at the same time.
	run struct {
		latency, at, n int64
		class          int
	}
	operations, errors int64
	// shown are the same numbers for whoever watches, shown as of the last read.
	shown struct{ operations, errors atomic.Int64 }
}

func newRecorder(step time.Duration) *recorder {
	r := &recorder{step: int64(step), codes: map[wire.Code]int64{}, from: never}
	for i := range r.latencies {
		r.latencies[i] = newHistogram()
	}
	return r
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(latencyMax), significantDigits)
}

// counts tells whether something that happened, or was due, at that time belongs to the measurement.
func (r *recorder) counts(at int64) bool { return at >= r.from && at < r.until }

// success counts an operation that ended at that time.
func (r *recorder) success(at, latency int64, write bool) {
	class := reads
	if write {
		class = writes
	}
	if r.run.n > 0 && r.run.latency == latency && r.run.at == at && r.run.class == class {
		r.run.n++
		return
	}
	r.flush()
	r.run.latency, r.run.at, r.run.class, r.run.n = latency, at, class, 1
}

// flush puts the operations that were kept back into the histogram.
func (r *recorder) flush() {
	n := r.run.n
	if n == 0 {
		return
	}
	r.run.n = 0
	latency := max(0, min(r.run.latency, int64(latencyMax)))
	if err := r.latencies[r.run.class].RecordValues(latency, n); err != nil {
		panic("bench: " + err.Error()) // it is within the bounds
	}
	r.operations += n
	r.shown.operations.Store(r.operations)
	if i := r.interval(r.run.at); i != nil {
		i.Operations += n
		i.MaxUs = max(i.MaxUs, micros(latency))
	}
}

// failure counts n operations that ended at that time without success.
func (r *recorder) failure(at int64, code wire.Code, n int) {
	if n == 0 {
		return
	}
	r.errors += int64(n)
	r.codes[code] += int64(n)
	r.shown.errors.Store(r.errors)
	if i := r.interval(at); i != nil {
		i.Errors += int64(n)
	}
}

// interval is the one of the timeline that a time falls into.
func (r *recorder) interval(at int64) *Interval {
	if r.step == 0 {
		return nil
	}
	i := int(min(max(0, at-r.from)/r.step, intervalsMax-1))
	for len(r.timeline) <= i {
		r.timeline = append(r.timeline, Interval{AtSeconds: seconds(int64(len(r.timeline)) * r.step)})
	}
	return &r.timeline[i]
}

// merge adds what another has counted.
func (r *recorder) merge(o *recorder) {
	for i, h := range o.latencies {
		r.latencies[i].Merge(h)
	}
	for code, n := range o.codes {
		r.codes[code] += n
	}
	r.operations += o.operations
	r.errors += o.errors
	for i, piece := range o.timeline {
		into := r.interval(r.from + int64(i)*r.step)
		into.Operations += piece.Operations
		into.Errors += piece.Errors
		into.MaxUs = max(into.MaxUs, piece.MaxUs)
	}
}

// all is the histogram of reads and writes together.
func (r *recorder) all() *hdrhistogram.Histogram {
	h := newHistogram()
	h.Merge(r.latencies[reads])
	h.Merge(r.latencies[writes])
	return h
}

// quantiles reads a histogram; everything is 0 if it is empty.
func quantiles(h *hdrhistogram.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	at := func(percent float64) float64 { return micros(h.ValueAtPercentile(percent)) }
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: micros(h.Max()), Mean: micros(int64(h.Mean()))}
}

// micros turns nanoseconds into microseconds, to the tenth.
func micros(ns int64) float64 { return math.Round(float64(ns)/100) / 10 }

// seconds turns nanoseconds into seconds, to the microsecond.
func seconds(ns int64) float64 { return math.Round(float64(ns)/1000) / 1e6 }
