package histogram

import "math"

// Snapshot is a Histogram at one moment, or what was added to it between two. It is a plain value that nobody changes.
type Snapshot struct {
	Count uint64
	Sum   int64
	// Min and Max are 0 where they are not known, and without values.
	Min, Max int64
	bounded  bool // Min and Max are known
	counts   []uint64
}

// Single is the Snapshot of one value.
func Single(v int64) Snapshot {
	v = max(v, 0)
	s := Snapshot{Count: 1, Sum: v, Min: v, Max: v, bounded: true}
	s.grow(bucketOf(v) + 1)
	s.counts[bucketOf(v)] = 1
	return s
}

// grow makes room for n buckets.
func (s *Snapshot) grow(n int) {
	if n > len(s.counts) {
		s.counts = append(s.counts, make([]uint64, n-len(s.counts))...)
	}
}

// Since returns what came to s since an earlier Snapshot of the same Histogram.
func (s Snapshot) Since(earlier Snapshot) Snapshot {
	d := Snapshot{Sum: s.Sum - earlier.Sum, counts: make([]uint64, len(s.counts))}
	for i, n := range s.counts {
		if i < len(earlier.counts) {
			n -= earlier.counts[i]
		}
		d.counts[i] = n
		d.Count += n
	}
	return d
}

// merge adds the values of another Snapshot, which must be about the same period.
func (s *Snapshot) merge(o Snapshot) {
	if o.Count == 0 {
		return
	}
	switch {
	case s.Count == 0:
		s.Min, s.Max, s.bounded = o.Min, o.Max, o.bounded
	case o.bounded:
		s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
	}
	s.Count, s.Sum = s.Count+o.Count, s.Sum+o.Sum
	s.grow(len(o.counts))
	for i, n := range o.counts {
		s.counts[i] += n
	}
}

// Quantile estimates the value that the share q of all values does not exceed, 0 to 1: 0.5 is the median. Without values it
// is 0.
func (s Snapshot) Quantile(q float64) int64 {
	rank := uint64(math.Ceil(q * float64(s.Count)))
	var seen uint64
	for i, n := range s.counts {
		if seen += n; n > 0 && seen >= rank {
			low, high := bucketBounds(i)
			v := low + (high-low)/2
			if s.bounded {
				v = min(max(v, s.Min), s.Max)
			}
			return v
		}
	}
	return 0
}

// Below returns how many values are less than limit. It is exact where limit is 16 or less, or a multiple of an eighth of a
// power of two between it and the next; otherwise the values of the bucket of limit are left out.
func (s Snapshot) Below(limit int64) (n uint64) {
	for i, count := range s.counts {
		if _, high := bucketBounds(i); high >= limit {
			break
		}
		n += count
	}
	return n
}
