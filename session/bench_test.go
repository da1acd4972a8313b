package session

import (
	"testing"

	"zabra/zab/zxid"
)

const benchSessions = 100_000

func benchTracker() (*Tracker, []*Handle) {
	tr := NewTracker(2000)
	handles := make([]*Handle, benchSessions)
	for i := range handles {
		// Spread over a timeout, as clients are that connected at different times.
		handles[i] = tr.Add(zxid.SessionID(i+1), 10_000, int64(i)/10)
	}
	return tr, handles
}

// BenchmarkTouch is what every request pays.
func BenchmarkTouch(b *testing.B) {
	_, handles := benchTracker()
	now := int64(20_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%benchSessions == 0 {
			now++
		}
		handles[i%benchSessions].Touch(now)
	}
}

// BenchmarkSecond is the tracker's own work for a second of 100,000 living sessions with timeouts of ten seconds. The
// touches of that second (each session every third second) are in it.
func BenchmarkSecond(b *testing.B) {
	tr, handles := benchTracker()
	now := int64(10_000)
	b.ReportAllocs()
	for b.Loop() {
		for range 10 {
			now += 100
			for i := int(now/100) % 33; i < len(handles); i += 33 {
				handles[i].Touch(now)
			}
			if len(tr.Advance(now)) > 0 {
				b.Fatal("a living session expired")
			}
		}
	}
}

// BenchmarkConnectAndClose is the life of a short session beside 100,000 others.
func BenchmarkConnectAndClose(b *testing.B) {
	tr, _ := benchTracker()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := zxid.SessionID(benchSessions + 1 + i)
		tr.Add(id, 10_000, 10_000)
		tr.Remove(id)
	}
}
