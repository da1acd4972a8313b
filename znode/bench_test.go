package znode

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/ahead"
	"zabra/wire"
	"zabra/zab/zxid"
)

// grower applies creates, without the cost of making their transactions.
type grower struct {
	t    *Tree
	h    TxnHeader
	txn  Txn
	res  Result
	data []byte
}

func newGrower(cfg Config, dataBytes int) *grower {
	return &grower{t: NewTree(cfg), data: bytes.Repeat([]byte{'d'}, dataBytes)}
}

func (g *grower) create(tb testing.TB, path []byte) {
	g.h.Zxid++
	g.h.Time = 1700000000000 + int64(g.h.Zxid)
	g.txn = Txn{Type: wire.OpCreate, Path: path, Data: g.data, ACL: wire.OpenACL, ParentCVersion: -1}
	g.t.Apply(&g.h, &g.txn, &g.res)
	if g.res.Code != wire.CodeOK {
		tb.Fatal(g.res.Code)
	}
}

func (g *grower) delete(tb testing.TB, path []byte) {
	g.h.Zxid++
	g.txn = Txn{Type: wire.OpDelete, Path: path}
	g.t.Apply(&g.h, &g.txn, &g.res)
	if g.res.Code != wire.CodeOK {
		tb.Fatal(g.res.Code)
	}
}

// fill makes n nodes, a thousand to a parent.
func (g *grower) fill(tb testing.TB, n int) {
	var path []byte
	for i := range n {
		if i%1000 == 0 {
			g.create(tb, fmt.Appendf(path[:0], "/parent-%06d", i/1000))
			continue
		}
		path = fmt.Appendf(path[:0], "/parent-%06d/n%09d", i/1000, i)
		g.create(tb, path)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// cpuTime is what the process has used, which says more than the clock on a machine that others use too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const millionNodes = 1_000_000

// BenchmarkHeapPerNode measures the live heap of a tree with a million nodes of 100 bytes.
func BenchmarkHeapPerNode(b *testing.B) {
	for range b.N {
		before := liveHeap()
		g := newGrower(Config{}, 100)
		cpu := cpuTime()
		g.fill(b, millionNodes)
		b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/millionNodes, "cpu-ns/create")
		start := time.Now()
		runtime.GC()
		b.ReportMetric(float64(time.Since(start).Microseconds())/1000, "ms/gc")
		b.ReportMetric(float64(liveHeap()-before)/millionNodes, "bytes/node")
		runtime.KeepAlive(g)
	}
}

func BenchmarkGetData(b *testing.B) {
	g := newGrower(Config{}, 100)
	g.fill(b, 100_000)
	paths := make([][]byte, 0, 1000)
	for i := 1; i < 100_000; i += 99 {
		if i%1000 != 0 {
			paths = append(paths, fmt.Appendf(nil, "/parent-%06d/n%09d", i/1000, i))
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	size := 0
	for i := range b.N {
		g.t.RLock(uint32(i))
		id, ok := g.t.Find(paths[i%len(paths)])
		if !ok {
			b.Fatal("not found")
		}
		s := g.t.Stat(id)
		size += len(g.t.Data(id)) + int(s.DataLength)
		g.t.RUnlock(uint32(i))
	}
	require.Equal(b, 200*b.N, size)
}

func BenchmarkSetData(b *testing.B) {
	g := newGrower(Config{}, 100)
	g.fill(b, 100_000)
	path := []byte("/parent-000050/n000050500")
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		g.h.Zxid++
		g.txn = Txn{Type: wire.OpSetData, Path: path, Data: g.data, Version: int32(g.h.Zxid)}
		g.t.Apply(&g.h, &g.txn, &g.res)
	}
	require.Equal(b, wire.CodeOK, g.res.Code)
}

// BenchmarkSiblings creates and deletes beside a million children of one parent.
func BenchmarkSiblings(b *testing.B) {
	g := newGrower(Config{}, 0)
	g.create(b, []byte("/p"))
	var path []byte
	for i := range millionNodes {
		path = fmt.Appendf(path[:0], "/p/n%09d", i)
		g.create(b, path)
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime()
	for i := range b.N {
		path = fmt.Appendf(path[:0], "/p/x%09d", i)
		g.create(b, path)
		g.delete(b, path)
	}
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func BenchmarkSnapshotWrite(b *testing.B) {
	g := newGrower(Config{}, 100)
	g.fill(b, millionNodes)
	buf := make([]byte, 0, 2<<20)
	b.ResetTimer()
	for range b.N {
		var size, longest int64
		cpu := cpuTime()
		opened := time.Now()
		s, err := g.t.OpenSnapshot(SnapshotOptions{Digest: true, LastZxid: true})
		require.NoError(b, err)
		b.ReportMetric(float64(time.Since(opened).Microseconds()), "us/open")
		for done := false; !done; {
			start := time.Now()
			buf, done, err = s.Next(buf[:0], 256<<10)
			longest = max(longest, time.Since(start).Microseconds())
			require.NoError(b, err)
			size += int64(len(buf))
		}
		s.Close()
		b.ReportMetric(float64((cpuTime() - cpu).Milliseconds()), "cpu-ms")
		b.ReportMetric(float64(longest), "us/longest-step")
		b.SetBytes(size)
	}
}

// filledSnapshot is a snapshot of n nodes of 100 bytes in folders of a thousand.
func filledSnapshot(tb testing.TB, n int) []byte {
	g := newGrower(Config{}, 0)
	g.create(tb, []byte("/base"))
	g.create(tb, []byte("/base/fill"))
	data := bytes.Repeat([]byte{'d'}, 100)
	var path []byte
	for i := range n {
		if i%1000 == 0 {
			g.data = nil
			g.create(tb, fmt.Appendf(path[:0], "/base/fill/%06d", i/1000))
		}
		g.data = data
		path = fmt.Appendf(path[:0], "/base/fill/%06d/%06d", i/1000, i%1000)
		g.create(tb, path)
	}
	return writeSnapshot(tb, g.t, SnapshotOptions{Digest: true, LastZxid: true}, 1<<20)
}

// BenchmarkSnapshotRead loads a million nodes, on one goroutine and on two, and with what a server verifies of a snapshot
// that it receives.
func BenchmarkSnapshotRead(b *testing.B) {
	raw := filledSnapshot(b, millionNodes)
	read := func(ahead Ahead) func() {
		return func() {
			t, info, err := ReadSnapshot(bytes.NewReader(raw), Config{Ahead: ahead}, 0, zxid.Zxid(millionNodes))
			require.NoError(b, err)
			require.Equal(b, info.Digest, t.Digest())
		}
	}
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"alone", read(nil)}, {"ahead", read(ahead.Run)},
		{"verify", func() { require.NoError(b, VerifySnapshot(bytes.NewReader(raw), 0)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			cpu := cpuTime()
			for range b.N {
				c.f()
			}
			b.ReportMetric(float64((cpuTime()-cpu).Milliseconds())/float64(b.N), "cpu-ms")
		})
	}
}
