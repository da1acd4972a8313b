package server_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/server/client"
	"zabra/wire"
)

const (
	scaleNodes       = 1_000_000
	scaleParents     = 1000
	scaleDataBytes   = 100
	scaleWritesPerMs = 1
	scaleWindow      = 2048 // requests in flight while filling
)

// BenchmarkMillionNodes fills a server with a million nodes of 100 bytes, takes a snapshot while an open loop writes
// 1,000 times a second, and starts again from the snapshot. It reports the live heap per node, the longest time that a
// write took from the moment at which it was due, with and without the snapshot, and the time of the start.
//
//	go test ./server -run '^$' -bench MillionNodes -benchtime 1x
func BenchmarkMillionNodes(b *testing.B) {
	for b.Loop() {
		cfg := shellConfig(b, func(c *conf.Config) { c.SnapCount = 1 << 30 })
		before := heapAfterGC()
		s := startShell(b, cfg)
		fill(b, s)
		b.ReportMetric(float64(heapAfterGC()-before)/scaleNodes, "heap-B/node")
		b.ReportMetric(openLoop(b, s, func(since time.Duration) bool { return since < 5*time.Second }), "ms-stall-without")
		began := time.Now()
		s.SnapshotNow()
		stall := openLoop(b, s, func(time.Duration) bool { return s.SnapshotRunning() })
		b.ReportMetric(time.Since(began).Seconds(), "s-snapshot")
		b.ReportMetric(stall, "ms-stall-snapshot")
		s.shutdown()
		s = nil
		began = time.Now()
		again := startShell(b, cfg)
		b.ReportMetric(time.Since(began).Seconds(), "s-start")
		require.Greater(b, again.Stats().Nodes, scaleNodes)
		again.shutdown()
	}
}

func heapAfterGC() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func dialClient(b *testing.B, s *shell) *client.Client {
	c, err := client.Dial(b.Context(), s.Addr().String(), client.Options{Timeout: time.Minute})
	require.NoError(b, err)
	return c
}

func scalePath(i int) string { return fmt.Sprintf("/p%03d/node-%06d", i%scaleParents, i) }

// fill creates the nodes, many at once.
func fill(b *testing.B, s *shell) {
	c := dialClient(b, s)
	ctx := context.Background()
	defer c.Close(ctx)
	calls := make(chan *client.Call, scaleWindow)
	failed := make(chan error, 1)
	go func() {
		defer close(failed)
		for call := range calls {
			<-call.Done()
			if call.Err != nil {
				failed <- call.Err
				return
			}
		}
	}()
	data := make([]byte, scaleDataBytes)
	create := func(path string) {
		calls <- c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte(path), Data: data, ACL: wire.OpenACL})
	}
	for i := range scaleParents {
		create(fmt.Sprintf("/p%03d", i))
	}
	for i := range scaleNodes {
		create(scalePath(i))
	}
	close(calls)
	require.NoError(b, <-failed)
}

// openLoop writes at a fixed rate while the condition holds, whether answers come or not, and returns the longest time
// from when a write was due to its answer, in milliseconds.
func openLoop(b *testing.B, s *shell, while func(since time.Duration) bool) float64 {
	c := dialClient(b, s)
	ctx := context.Background()
	defer c.Close(ctx)
	type due struct {
		at   time.Time
		call *client.Call
	}
	sent := make(chan due, 1<<20)
	longest := make(chan time.Duration)
	go func() {
		var worst time.Duration
		for d := range sent {
			<-d.call.Done()
			worst = max(worst, time.Since(d.at))
		}
		longest <- worst
	}()
	data := make([]byte, scaleDataBytes)
	began := time.Now()
	for n := 0; while(time.Since(began)); n++ {
		at := began.Add(time.Duration(n) * time.Millisecond / scaleWritesPerMs)
		time.Sleep(time.Until(at)) // the rate is the point
		path := scalePath(n * 7919 % scaleNodes)
		sent <- due{at, c.Go(wire.OpSetData, &wire.SetDataRequest{Path: []byte(path), Data: data, Version: -1})}
	}
	close(sent)
	return float64((<-longest).Microseconds()) / 1000
}
