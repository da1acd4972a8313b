package servertest

import (
	"slices"
	"testing"
	"time"

	"zabra/server/client"
	"zabra/wire"
)

// BenchmarkStart measures from nothing to the answer to the first request.
func BenchmarkStart(b *testing.B) {
	benchmarkStart(b, func() []*Server { return []*Server{Start(b)} })
}

// BenchmarkStartEnsemble does the same for three servers that form an ensemble.
func BenchmarkStartEnsemble(b *testing.B) {
	benchmarkStart(b, func() []*Server { return StartEnsemble(b, 3).servers })
}

// benchmarkStart tells the median beside the mean: one slow sync of a disk says little.
func benchmarkStart(b *testing.B, start func() []*Server) {
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		servers := start()
		c := servers[0].Client(b)
		if err := c.Go(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/")}).Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		b.StopTimer()
		end(c, servers)
		b.StartTimer()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}

// end leaves nothing for the end of the benchmark, when there would be very many.
func end(c *client.Client, servers []*Server) {
	c.Abandon()
	for _, s := range servers {
		s.Kill()
	}
}
