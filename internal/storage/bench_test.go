package storage

import (
	"fmt"
	"io"
	"testing"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// BenchmarkCommit appends and syncs batches of transactions of 200 bytes on the real disk.
func BenchmarkCommit(b *testing.B) {
	for _, batch := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			s := benchStore(b)
			last := zxid.Zxid(0)
			b.SetBytes(int64(batch * 213))
			b.ReportAllocs()
			entries := make([]zab.Entry, batch)
			for b.Loop() {
				for i := range entries {
					last++
					entries[i] = benchEntry(entries[i], last)
				}
				if s.Append(entries) != nil || s.Sync() != nil {
					b.Fatal(s.err())
				}
			}
			b.StopTimer()
			st := s.Stats()
			b.ReportMetric(float64(st.Records)/b.Elapsed().Seconds(), "txn/s")
			b.ReportMetric(float64(st.SyncTotal.Microseconds())/float64(st.Syncs), "us/sync")
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func benchStore(b *testing.B) *Store {
	cfg := testConfig()
	cfg.SnapDir, cfg.Go = b.TempDir(), nil
	cfg.PreAllocBytes = 64 << 20
	return newStore(b, vfs.OS{}, cfg)
}

// benchEntry reuses the payload of a transaction whose batch is durable.
func benchEntry(e zab.Entry, z zxid.Zxid) zab.Entry {
	if e.Payload == nil {
		return txn(z, 1, 200)
	}
	for i := range 8 {
		e.Payload[txnZxidOffset+i] = byte(uint64(z) >> (56 - 8*i))
	}
	e.Zxid = z
	return e
}

// BenchmarkReadLog reads a log of 64 MiB.
func BenchmarkReadLog(b *testing.B) {
	s := benchStore(b)
	const count = 300000
	var entries []zab.Entry
	for z := zxid.Zxid(1); z <= count; z++ {
		entries = append(entries, txn(z, 1, 200))
	}
	if s.Append(entries) != nil || s.Sync() != nil {
		b.Fatal(s.err())
	}
	b.SetBytes(count * 213)
	b.ReportAllocs()
	for b.Loop() {
		r, err := s.OpenLog(0)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != count {
			b.Fatal(n)
		}
		r.Close()
	}
	b.StopTimer()
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
