package znode

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

// hotTxns are transactions as they are applied most. Applying one again and again is like applying the next.
func hotTxns() []struct {
	name string
	txns []Txn
} {
	path, data := []byte("/parent-000050/n000050500"), make([]byte, 100)
	created := []byte("/parent-000050/new")
	set := Txn{Type: wire.OpSetData, Path: path, Data: data, Version: 1}
	multi := Txn{Type: wire.OpMulti}
	for range 10 {
		multi.Multi = append(multi.Multi, set)
	}
	create := Txn{Type: wire.OpCreate, Path: created, Data: data, ACL: wire.OpenACL, ParentCVersion: -1}
	remove := Txn{Type: wire.OpDelete, Path: created}
	ephemeral := create
	ephemeral.Ephemeral = true
	return []struct {
		name string
		txns []Txn
	}{
		{"setData", []Txn{set}},
		{"create+delete", []Txn{create, remove}},
		{"ephemeral+delete", []Txn{ephemeral, remove}},
		{"multi=10", []Txn{multi}},
		{"session", []Txn{{Type: wire.OpCreateSession, Timeout: 10_000}, {Type: wire.OpCloseSession, HasPaths: true}}},
	}
}

func BenchmarkApply(b *testing.B) {
	g := newGrower(Config{}, 100)
	g.fill(b, 100_000)
	for _, hot := range hotTxns() {
		b.Run(hot.name, func(b *testing.B) {
			g.h.ClientID = 77
			b.ReportAllocs()
			for b.Loop() {
				for i := range hot.txns {
					g.h.Zxid++
					g.h.Type = hot.txns[i].Type
					if g.t.Apply(&g.h, &hot.txns[i], &g.res); g.res.Code != wire.CodeOK {
						b.Fatal(g.res.Code)
					}
				}
			}
		})
	}
}

func BenchmarkTxnEncode(b *testing.B) {
	for _, hot := range hotTxns() {
		b.Run(hot.name, func(b *testing.B) {
			h, digest := TxnHeader{ClientID: 77, Zxid: 1}, Digest{Version: DigestVersion}
			buf := make([]byte, 0, 64<<10)
			b.ReportAllocs()
			for b.Loop() {
				for i := range hot.txns {
					h.Type = hot.txns[i].Type
					AppendTxn(buf, &h, &hot.txns[i], &digest)
				}
			}
		})
	}
}

// BenchmarkTxnDecode decodes into a transaction that was used before.
func BenchmarkTxnDecode(b *testing.B) {
	for _, hot := range hotTxns() {
		b.Run(hot.name, func(b *testing.B) {
			var payloads [][]byte
			for i := range hot.txns {
				payloads = append(payloads, AppendTxn(nil, &TxnHeader{Type: hot.txns[i].Type, Zxid: 1}, &hot.txns[i], &Digest{Version: DigestVersion}))
			}
			var h TxnHeader
			var txn Txn
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range payloads {
					if _, ok, err := DecodeTxn(p, 1<<20, &h, &txn); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
			}
		})
	}
}

func BenchmarkChildren(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			g := newGrower(Config{}, 0)
			g.create(b, []byte("/p"))
			for i := range n {
				g.create(b, fmt.Appendf(nil, "/p/n%09d", i))
			}
			id, _ := g.t.Find([]byte("/p"))
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				size = 0
				g.t.VisitChildren(id, func(name []byte) bool {
					size += len(name)
					return true
				})
			}
			require.Equal(b, 10*n, size)
		})
	}
}

// BenchmarkWatch sets one-shot watches of as many watchers at one node, and changes it.
func BenchmarkWatch(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("watchers=%d", n), func(b *testing.B) {
			g := newGrower(Config{}, 100)
			path := []byte("/p")
			g.create(b, path)
			watches := g.t.Watches()
			var ids []WatcherID
			for range n {
				ids = append(ids, watches.Attach(&silent{}))
			}
			txn := Txn{Type: wire.OpSetData, Path: path, Data: g.data}
			b.ReportAllocs()
			for b.Loop() {
				for _, id := range ids {
					watches.Add(id, TableData, path, WatchStandard)
				}
				g.h.Zxid++
				g.t.Apply(&g.h, &txn, &g.res)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/watch")
		})
	}
}

func BenchmarkDigest(b *testing.B) {
	path, data := []byte("/services/orders/instance-0000000042"), make([]byte, 100)
	st := StoredStat{Czxid: 1, Mzxid: 2, Pzxid: 3, Ctime: 4, Mtime: 5}
	b.Run("pathAndData", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			PathDataCRC(path, data)
		}
	})
	crc := PathDataCRC(path, data)
	b.Run("node", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			NodeDigest(path, crc, &st)
		}
	})
}

// BenchmarkSnapshotNode is what a snapshot costs per node.
func BenchmarkSnapshotNode(b *testing.B) {
	const nodes = 100_000
	g := newGrower(Config{}, 100)
	g.fill(b, nodes)
	opt := SnapshotOptions{Digest: true, LastZxid: true}
	perNode := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/nodes, "ns/node")
	}
	b.Run("write", func(b *testing.B) {
		buf := make([]byte, 0, 2<<20)
		b.ReportAllocs()
		for b.Loop() {
			s, err := g.t.OpenSnapshot(opt)
			require.NoError(b, err)
			for done := false; !done; {
				buf, done, err = s.Next(buf[:0], 256<<10)
				require.NoError(b, err)
			}
			s.Close()
		}
		perNode(b)
	})
	b.Run("load", func(b *testing.B) {
		raw := writeSnapshot(b, g.t, opt, 1<<20)
		b.ReportAllocs()
		for b.Loop() {
			_, _, err := ReadSnapshot(struct{ io.Reader }{bytes.NewReader(raw)}, Config{}, 0, zxid.Zxid(nodes))
			require.NoError(b, err)
		}
		perNode(b)
	})
}

// BenchmarkReadParallel is the path of reads through the tree, with as many goroutines as processors (-cpu 1,2,4).
func BenchmarkReadParallel(b *testing.B) {
	g := newGrower(Config{}, 100)
	g.fill(b, 100_000)
	var shards atomic.Uint32
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		shard := shards.Add(1)
		path := fmt.Appendf(nil, "/parent-%06d/n%09d", shard, shard*1000+7)
		for pb.Next() {
			g.t.RLock(shard)
			id, ok := g.t.Find(path)
			if !ok || g.t.Stat(id).DataLength != 100 || len(g.t.Data(id)) != 100 {
				panic(string(path))
			}
			g.t.RUnlock(shard)
		}
	})
}
