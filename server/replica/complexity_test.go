package replica

import (
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// costBatches is how often a batch of requests is measured. The least of them counts: what else runs on the machine
	// can only add.
	costBatches = 8
	// costBatchMin is the CPU time of a batch beside few, far above what the clock of CPU time can tell apart.
	costBatchMin = time.Millisecond
	// costBatchRequestsMax bounds a batch whose requests cost next to nothing.
	costBatchRequestsMax = 1 << 12
	// costMax ends a comparison early that is lost already: the CPU time of all batches beside many.
	costMax = 2 * time.Second
	// costFactorMax is how much more a request may cost beside many than beside few. The crowds grow thousandfold, and what
	// grows with them would show as hundreds; larger tables that do not fit into caches are the rest.
	costFactorMax = 4
	// costAllocsMore and costBytesMore are how many allocations and bytes more a request may take: what grows by doubling
	// grows at other moments there, and short batches do not even it out. A word for each of a crowd would be far more.
	costAllocsMore = 1
	costBytesMore  = 4 << 10
)

// cost is what a number of requests take.
type cost struct {
	cpu           time.Duration
	allocs, bytes uint64
}

// least takes the smaller of each.
func (c *cost) least(o cost) {
	c.cpu, c.allocs, c.bytes = min(c.cpu, o.cpu), min(c.allocs, o.allocs), min(c.bytes, o.bytes)
}

// per is the cost of one of n requests.
func (c cost) per(n int) cost {
	requests := uint64(n)
	return cost{c.cpu / time.Duration(n), (c.allocs + requests/2) / requests, (c.bytes + requests/2) / requests}
}

// cpuTime is what the process has used. Unlike the clock it does not depend on what else runs on the machine.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// costOf measures n requests.
func (s *stage) costOf(do func(*stage), n int) cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime(s.t)
	for range n {
		do(s)
	}
	used := cpuTime(s.t) - began
	runtime.ReadMemStats(&after)
	return cost{used, after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc}
}

// compareCost measures the same requests beside few and beside many, in turn.
func compareCost(few, many *stage, do func(*stage)) (beside [2]cost) {
	n := 1
	for n < costBatchRequestsMax && few.costOf(do, n).cpu < costBatchMin {
		n *= 2
	}
	var spent time.Duration
	for i := 0; i < costBatches && spent < costMax; i++ {
		for j, s := range []*stage{few, many} {
			c := s.costOf(do, n)
			if i == 0 {
				beside[j] = c
			}
			beside[j].least(c)
			if s == many {
				spent += c.cpu
			}
		}
	}
	return [2]cost{beside[0].per(n), beside[1].per(n)}
}

// TestCostDoesNotGrow compares what a request costs beside a few sessions, watches, children or nodes with what it costs
// beside very many. With the build tag complexity the crowds are as large as a busy server's (make complexity).
func TestCostDoesNotGrow(t *testing.T) {
	for _, crowd := range crowds {
		t.Run(crowd.name, func(t *testing.T) {
			few, many := newStage(t, crowd, crowd.few), newStage(t, crowd, crowd.many)
			runtime.GC() // and none while it is measured: what it costs depends on when it comes
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			for _, req := range append(slices.Clone(measuredRequests), measured{"tick", (*stage).tick}) {
				c := compareCost(few, many, req.do)
				t.Logf("%-17s %8v %3d allocations %5d B, beside %d: %8v %3d allocations %5d B", req.name,
					c[0].cpu, c[0].allocs, c[0].bytes, crowd.many, c[1].cpu, c[1].allocs, c[1].bytes)
				require.LessOrEqual(t, c[1].cpu, costFactorMax*c[0].cpu, "CPU time of %s", req.name)
				require.LessOrEqual(t, c[1].allocs, c[0].allocs+costAllocsMore, "allocations of %s", req.name)
				require.LessOrEqual(t, c[1].bytes, c[0].bytes+costBytesMore, "bytes allocated by %s", req.name)
			}
			few.check()
			many.check()
		})
	}
}
