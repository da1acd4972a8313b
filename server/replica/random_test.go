package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
	"zabra/wire"
	"zabra/zab"
	"zabra/znode"
)

// TestPendingViewForeseesTheTree lets clients send random writes while the disk confirms now and then. Whatever was
// foreseen when a write was checked must come true when it is applied: the digest that each transaction carries, the
// codes, the zxids, the ephemerals of a closing session.
func TestPendingViewForeseesTheTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, nil)
		clients := []*client{w.connect(), w.connect(), w.connect()}
		sent := map[*client][]int32{}
		steps := rapid.IntRange(1, 60).Draw(rt, "steps")
		for range steps {
			cl := rapid.SampledFrom(clients).Draw(rt, "client")
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				w.step()
			case 1:
				w.stepWith(zab.Token(rapid.Uint64Range(0, uint64(w.written)).Draw(rt, "confirmed")))
			default:
				op, req := randomWrite(rt)
				sent[cl] = append(sent[cl], cl.send(op, req))
			}
		}
		if rapid.Bool().Draw(rt, "close one") {
			sent[clients[0]] = append(sent[clients[0]], clients[0].send(wire.OpCloseSession, nil))
		}
		w.settle()
		for _, cl := range clients {
			require.Equal(rt, sent[cl], xids(cl.replies()), "one reply for each request, in order")
		}
		require.Empty(rt, w.r.pending.nodes)
		require.Empty(rt, w.r.pending.touched)
		require.Empty(rt, w.r.pending.ephemerals)
		require.Equal(rt, w.r.Tree().Digest(), w.r.pending.digest)
		require.Zero(rt, w.r.outstanding.Load())
		require.Zero(rt, w.r.queuedBytes.Load())
		require.Empty(rt, w.r.Tree().Orphans())
		replayed(rt, w)
	})
}

// replayed checks that the log alone gives the same tree.
func replayed(t require.TestingT, w *world) {
	tree := znode.NewTree(w.r.cfg.Tree)
	var (
		h   znode.TxnHeader
		txn znode.Txn
		res znode.Result
	)
	for _, e := range w.log {
		digest, ok, err := znode.DecodeTxn(e.Payload, 1<<21, &h, &txn)
		require.NoError(t, err)
		tree.Apply(&h, &txn, &res)
		if ok {
			require.Equal(t, digest.Value, tree.Digest(), "at %v", e.Zxid)
		}
	}
	require.Equal(t, w.r.Tree().Digest(), tree.Digest())
	require.NoError(t, tree.Check())
}

func randomPath(rt *rapid.T) []byte {
	return []byte(rapid.SampledFrom([]string{
		"/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/1", "/zookeeper/q", "/", "", "/a/", "/c", "//a", "/a//x",
	}).Draw(rt, "path"))
}

func randomWrite(rt *rapid.T) (wire.Op, wire.Record) {
	if rapid.IntRange(0, 4).Draw(rt, "kind") == 0 {
		var m multi
		for range rapid.IntRange(0, 5).Draw(rt, "parts") {
			m = append(m, randomPart(rt))
		}
		return wire.OpMulti, m
	}
	part := randomPart(rt)
	switch part.Op {
	case wire.OpDelete:
		return part.Op, &wire.PathVersionRequest{Path: part.Path, Version: part.Version}
	case wire.OpSetData:
		return part.Op, &wire.SetDataRequest{Path: part.Path, Data: part.Data, Version: part.Version}
	case wire.OpCheck:
		return wire.OpSetACL, &wire.SetACLRequest{Path: part.Path, ACL: wire.OpenACL, Version: -1}
	case wire.OpCreateTTL:
		return part.Op, &part.Create
	default:
		c := part.Create
		return part.Op, &wire.CreateRequest{Path: c.Path, Data: c.Data, ACL: c.ACL, Flags: c.Flags}
	}
}

func randomPart(rt *rapid.T) wire.MultiOp {
	path := randomPath(rt)
	version := rapid.SampledFrom([]int32{-1, -1, -1, 0, 1}).Draw(rt, "version")
	data := []byte(fmt.Sprint(rapid.IntRange(0, 99).Draw(rt, "data")))
	op := rapid.SampledFrom([]wire.Op{
		wire.OpCreate, wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL,
		wire.OpDelete, wire.OpDelete, wire.OpSetData, wire.OpCheck,
	}).Draw(rt, "op")
	switch op {
	case wire.OpDelete, wire.OpCheck:
		return wire.MultiOp{Op: op, Path: path, Version: version}
	case wire.OpSetData:
		return wire.MultiOp{Op: op, Path: path, Data: data, Version: version}
	}
	create := wire.CreateTTLRequest{Path: path, Data: data, ACL: wire.OpenACL, TTL: -1}
	create.Flags = int32(rapid.IntRange(0, 4).Draw(rt, "flags"))
	if op == wire.OpCreateTTL {
		create.Flags = rapid.SampledFrom([]int32{wire.FlagTTL, wire.FlagTTLSequential}).Draw(rt, "ttl flags")
		create.TTL = 5000
	}
	return wire.MultiOp{Op: op, Create: create}
}
