package storage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// sinkFS is a file system in memory whose files forget what is written to them, so that a benchmark is bounded in memory
// and measures nothing but our own work.
type sinkFS struct{ *vfs.Mem }

type sinkFile struct{ vfs.File }

// Create implements vfs.FS.
func (s sinkFS) Create(name string) (vfs.File, error) { return sink(s.Mem.Create(name)) }

// OpenWrite implements vfs.FS.
func (s sinkFS) OpenWrite(name string) (vfs.File, error) { return sink(s.Mem.OpenWrite(name)) }

func sink(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return sinkFile{f}, nil
}

// WriteAt implements vfs.File.
func (sinkFile) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }

// SyncData implements vfs.File.
func (sinkFile) SyncData() error { return nil }

// BenchmarkAppend appends batches of transactions of 200 bytes and syncs each batch, on a disk that costs nothing.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			cfg := testConfig()
			cfg.SnapCount, cfg.PreAllocBytes = 1<<30, 64<<20
			s := newStore(b, sinkFS{vfs.NewMem()}, cfg)
			last := zxid.Zxid(0)
			entries := make([]zab.Entry, batch)
			b.SetBytes(int64(batch * 213))
			b.ReportAllocs()
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
			require.Equal(b, uint64(last), s.Stats().Records)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(last), "ns/txn")
			require.NoError(b, s.Close())
		})
	}
}
