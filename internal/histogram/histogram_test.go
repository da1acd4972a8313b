package histogram

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The buckets follow one another without a gap, and each value lies in its own.
func TestBuckets(t *testing.T) {
	next := int64(0)
	for i := range bucketCount {
		low, high := bucketBounds(i)
		require.Equal(t, next, low, "bucket %d", i)
		require.GreaterOrEqual(t, high, low)
		require.Equal(t, i, bucketOf(low))
		require.Equal(t, i, bucketOf(high))
		require.LessOrEqual(t, high-low, low/subBuckets)
		next = high + 1
	}
	require.EqualValues(t, valueMax+1, next)
	require.Equal(t, bucketCount-1, bucketOf(1<<62))
}

func TestEmpty(t *testing.T) {
	var h Histogram
	require.Equal(t, Snapshot{}, h.Total())
	require.Zero(t, h.SinceReset().Quantile(0.99))
	require.Zero(t, h.Total().Below(1000))
}

func TestSmallValuesAreExact(t *testing.T) {
	var h Histogram
	for v := range int64(10) {
		h.Add(v)
	}
	h.Add(-5)
	s := h.SinceReset()
	require.EqualValues(t, 11, s.Count)
	require.EqualValues(t, 45, s.Sum)
	require.EqualValues(t, 0, s.Min)
	require.EqualValues(t, 9, s.Max)
	require.EqualValues(t, 4, s.Quantile(0.5))
	require.EqualValues(t, 9, s.Quantile(0.99))
	require.EqualValues(t, 0, s.Quantile(0))
	require.EqualValues(t, 5, s.Below(4))
}

// A series of one value has that value as each of its quantiles, however large it is.
func TestOneValue(t *testing.T) {
	var h Histogram
	h.AddN(12345, 7)
	for _, q := range []float64{0, 0.5, 0.95, 0.999, 1} {
		require.EqualValues(t, 12345, h.SinceReset().Quantile(q))
		require.EqualValues(t, 99, Single(99).Quantile(q))
	}
	require.EqualValues(t, 7*12345, h.Total().Sum)
	require.InEpsilon(t, 12345, h.Total().Quantile(0.5), 0.07)
}

func TestQuantilesAreNear(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var s Striped
	values := make([]int64, 20000)
	for i := range values {
		values[i] = rng.Int64N(1 << rng.IntN(20))
		h.Add(values[i])
		s.Add(uint32(i), values[i])
	}
	slices.Sort(values)
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999} {
		want := values[int(q*float64(len(values)))-1]
		require.InDelta(t, want, h.SinceReset().Quantile(q), float64(want)/subBuckets+1, "quantile %v", q)
		require.Equal(t, h.SinceReset().Quantile(q), s.SinceReset().Quantile(q))
	}
	require.Equal(t, h.SinceReset(), s.SinceReset())
	require.Equal(t, h.Total(), s.Total())
	below := uint64(slices.IndexFunc(values, func(v int64) bool { return v >= 96 }))
	require.Equal(t, below, h.Total().Below(96))
}

func TestReset(t *testing.T) {
	var h Histogram
	h.Add(100)
	h.Add(3)
	before := h.Total()
	h.Reset()
	require.Zero(t, h.SinceReset().Count)
	require.Zero(t, h.SinceReset().Max)
	h.Add(7)
	s := h.SinceReset()
	require.EqualValues(t, 1, s.Count)
	require.EqualValues(t, []int64{7, 7, 7}, []int64{s.Sum, s.Min, s.Max})
	require.EqualValues(t, 3, h.Total().Count)
	require.EqualValues(t, 110, h.Total().Sum)
	require.EqualValues(t, 1, h.Total().Since(before).Count)

	var st Striped
	st.Add(3, 5)
	st.Reset()
	require.Zero(t, st.SinceReset().Count)
	require.EqualValues(t, 1, st.Total().Count)
}

// Nothing is lost when many add at once.
func TestConcurrentAdds(t *testing.T) {
	const adders, each = 8, 5000
	var h Histogram
	var s Striped
	var wg sync.WaitGroup
	for a := range adders {
		wg.Go(func() {
			for i := range each {
				h.Add(int64(a*each + i))
				s.Add(uint32(a), int64(i))
				if i%1000 == 0 {
					_ = s.SinceReset()
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, adders*each, h.Total().Count)
	require.EqualValues(t, adders*each*(adders*each-1)/2, h.Total().Sum)
	require.EqualValues(t, 0, h.SinceReset().Min)
	require.EqualValues(t, adders*each-1, h.SinceReset().Max)
	require.EqualValues(t, adders*each, s.SinceReset().Count)
	require.EqualValues(t, each-1, s.SinceReset().Max)
}

// Adding takes no memory.
func TestAddDoesNotAllocate(t *testing.T) {
	var h Histogram
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Add(3); h.Add(70000) }))
}

func BenchmarkAdd(b *testing.B) {
	var h Histogram
	b.ReportAllocs()
	for b.Loop() {
		h.Add(0)
	}
}

func BenchmarkStripedAddParallel(b *testing.B) {
	var h Striped
	var stripe uint32
	var mu sync.Mutex
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		mu.Lock()
		stripe++
		mine := stripe
		mu.Unlock()
		for pb.Next() {
			h.Add(mine, 1)
		}
	})
}
