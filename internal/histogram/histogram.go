// Package histogram sums up series of numbers in a fixed amount of memory, so that quantiles can be told later.
//
// A Histogram counts its values in buckets that grow with the value: exact below 16, then eight to each power of two, so
// that a quantile is off by a sixteenth of itself at most. Adding a value is two or three atomic operations and takes no
// memory; looking is for reports.
package histogram

import (
	"math/bits"
	"sync/atomic"
)

const (
	// exactMax is the number of small values that have a bucket each; subBuckets is into how many parts each further power
	// of two is divided, subBits its logarithm.
	exactMax   = 16
	subBuckets = 8
	subBits    = 3
	// valueMax is the highest value that is told apart; greater ones count as it. In milliseconds it is 49 days.
	valueMax = 1<<32 - 1
	// bucketCount follows from the three.
	bucketCount = exactMax + (32-subBits-1)*subBuckets
)

// Histogram is a series of numbers. The zero value is empty and ready. All methods may be called from any goroutine at any
// time; a Snapshot that is taken beside an Add may or may not have it.
//
// A Histogram has about 2 KB.
type Histogram struct {
	counts [bucketCount]atomic.Uint64
	sum    atomic.Int64
	// lowest is one more than the lowest value since the last Reset, 0 before any; highest is the highest.
	lowest, highest atomic.Int64
	base            atomic.Pointer[Snapshot] // as of the last Reset; nil before
}

// Add counts one value. A negative one counts as 0.
func (h *Histogram) Add(v int64) { h.AddN(v, 1) }

// AddN counts a value n times.
func (h *Histogram) AddN(v int64, n uint64) {
	v = max(v, 0)
	h.counts[bucketOf(v)].Add(n)
	if v > 0 {
		h.sum.Add(v * int64(n))
	}
	for low := h.lowest.Load(); low == 0 || v+1 < low; low = h.lowest.Load() {
		if h.lowest.CompareAndSwap(low, v+1) {
			break
		}
	}
	for high := h.highest.Load(); v > high; high = h.highest.Load() {
		if h.highest.CompareAndSwap(high, v) {
			break
		}
	}
}

// Total returns all values ever added. Min and Max are not known.
func (h *Histogram) Total() Snapshot {
	s := Snapshot{Sum: h.sum.Load()}
	for i := range h.counts {
		if n := h.counts[i].Load(); n > 0 {
			s.grow(i + 1)
			s.counts[i] = n
			s.Count += n
		}
	}
	return s
}

// SinceReset returns the values that were added since the last Reset.
func (h *Histogram) SinceReset() Snapshot {
	s := h.Total()
	if base := h.base.Load(); base != nil {
		s = s.Since(*base)
	}
	if low := h.lowest.Load(); low > 0 && s.Count > 0 {
		s.Min, s.Max, s.bounded = low-1, h.highest.Load(), true
	}
	return s
}

// Reset begins a new period for SinceReset. Total goes on.
func (h *Histogram) Reset() {
	now := h.Total()
	h.base.Store(&now)
	h.lowest.Store(0)
	h.highest.Store(0)
}

// stripes is the number of parts of a Striped.
const stripes = 8

// Striped is a Histogram for values that many processors add at once: each stripe has memory of its own.
type Striped struct{ stripes [stripes]Histogram }

// Add counts one value. The stripe may be any number; who adds often uses the same.
func (h *Striped) Add(stripe uint32, v int64) { h.stripes[stripe%stripes].Add(v) }

// Total is as that of a Histogram.
func (h *Striped) Total() (s Snapshot) {
	for i := range h.stripes {
		s.merge(h.stripes[i].Total())
	}
	return s
}

// SinceReset is as that of a Histogram.
func (h *Striped) SinceReset() (s Snapshot) {
	for i := range h.stripes {
		s.merge(h.stripes[i].SinceReset())
	}
	return s
}

// Reset is as that of a Histogram.
func (h *Striped) Reset() {
	for i := range h.stripes {
		h.stripes[i].Reset()
	}
}

// bucketOf returns the bucket of a value that is not negative.
func bucketOf(v int64) int {
	if v < exactMax {
		return int(v)
	}
	v = min(v, valueMax)
	shift := bits.Len64(uint64(v)) - subBits - 1
	return exactMax + (shift-1)*subBuckets + int(v>>shift) - subBuckets
}

// bucketBounds returns the lowest and the highest value of a bucket.
func bucketBounds(i int) (low, high int64) {
	if i < exactMax {
		return int64(i), int64(i)
	}
	shift := (i-exactMax)/subBuckets + 1
	part := int64((i-exactMax)%subBuckets + subBuckets)
	return part << shift, (part+1)<<shift - 1
}
