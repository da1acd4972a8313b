package session

import (
	"fmt"
	"testing"

	"zabra/zab/zxid"
)

// BenchmarkTick is a millisecond in which no session is due, beside few and beside many.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			tr := NewTracker(2000)
			for i := range n {
				tr.Add(zxid.SessionID(i+1), 1_000_000_000+int32(i), 0)
			}
			now := int64(1)
			b.ReportAllocs()
			for b.Loop() {
				now++
				if len(tr.Advance(now)) > 0 {
					b.Fatal("a session expired")
				}
				if _, ok := tr.NextDeadline(); !ok {
					b.Fatal("no session is watched")
				}
			}
		})
	}
}

// BenchmarkExpiry opens sessions that say nothing, and lets them expire together.
func BenchmarkExpiry(b *testing.B) {
	const n = 1000
	tr := NewTracker(2000)
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		for i := range n {
			tr.Add(zxid.SessionID(i+1), 4000, now)
		}
		expired := 0
		for range 8 {
			now += 1000
			for _, h := range tr.Advance(now) {
				tr.Remove(h.ID())
				expired++
			}
		}
		if expired != n {
			b.Fatal(expired)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/session")
}

// BenchmarkTouchParallel touches sessions from as many goroutines as processors (-cpu 1,2,4).
func BenchmarkTouchParallel(b *testing.B) {
	tr := NewTracker(2000)
	id := make(chan zxid.SessionID, 1)
	id <- 1
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		next := <-id
		h := tr.Add(next, 10_000, 0)
		id <- next + 1
		for pb.Next() {
			h.Touch(1)
		}
	})
}
