package znode

import (
	"fmt"
	"runtime"
	"testing"
)

// The cost of a change when others watch elsewhere: the common case of every write.
func BenchmarkTriggerNothing(b *testing.B) {
	for _, recursive := range []bool{false, true} {
		b.Run(fmt.Sprintf("recursive=%v", recursive), func(b *testing.B) {
			w := NewWatches()
			id := w.Attach(&silent{})
			w.AddWatch(id, []byte("/elsewhere"), recursive)
			path := []byte("/service/discovery/members/n-0000000001")
			b.ReportAllocs()
			for b.Loop() {
				w.NodeDataChanged(path, 1, watchACL)
			}
		})
	}
}

// Firing one change to many persistent watchers.
func BenchmarkTriggerMany(b *testing.B) {
	const watchers = 10_000
	w := NewWatches()
	path := []byte("/service/leader")
	for range watchers {
		w.AddWatch(w.Attach(&silent{}), path, false)
	}
	b.ReportAllocs()
	for b.Loop() {
		w.NodeDataChanged(path, 1, watchACL)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/watchers, "ns/watch")
}

// One-shot watches that are set again after each event, as most clients do.
func BenchmarkOneShotMany(b *testing.B) {
	const watchers = 10_000
	w := NewWatches()
	path := []byte("/service/leader")
	var ids []WatcherID
	for range watchers {
		ids = append(ids, w.Attach(&silent{}))
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range ids {
			w.Add(ids[(i*7919)%watchers], TableData, path, WatchStandard)
		}
		w.NodeDataChanged(path, 1, watchACL)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/watchers, "ns/watch")
}

// Heap per watch: many watchers of one path, and each path watched by one.
func BenchmarkWatchMemory(b *testing.B) {
	const n = 200_000
	b.Run("shared", func(b *testing.B) {
		for b.Loop() {
			w := NewWatches()
			paths := make([][]byte, 20)
			for i := range paths {
				paths[i] = fmt.Appendf(nil, "/service/discovery/members/n-%010d", i)
			}
			var ids []WatcherID
			for range n / len(paths) {
				ids = append(ids, w.Attach(&silent{}))
			}
			before := heapInUse()
			for _, id := range ids {
				for _, p := range paths {
					w.Add(id, TableData, p, WatchStandard)
				}
			}
			b.ReportMetric(float64(heapInUse()-before)/n, "B/watch")
			runtime.KeepAlive(w)
		}
	})
	b.Run("unique", func(b *testing.B) {
		for b.Loop() {
			w := NewWatches()
			id := w.Attach(&silent{})
			before := heapInUse()
			for i := range n {
				w.Add(id, TableData, fmt.Appendf(nil, "/service/discovery/members/n-%010d", i), WatchStandard)
			}
			b.ReportMetric(float64(heapInUse()-before)/n, "B/watch")
			runtime.KeepAlive(w)
		}
	})
}
