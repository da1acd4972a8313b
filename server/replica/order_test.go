package replica

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

func xids(list []reply) (x []int32) {
	for _, rp := range list {
		x = append(x, rp.Xid)
	}
	return x
}

func TestNothingIsAcknowledgedBeforeItIsDurable(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.send(wire.OpCreate, create("/a"))
	w.step()
	w.step()
	require.Empty(t, cl.replies(), "a reply came before the log was synced")
	other := w.open()
	require.Equal(t, int64(1), w.r.outstanding.Load())
	_, exists := w.r.Tree().Find([]byte("/a"))
	require.False(t, exists, "the tree shows what is not durable")
	w.stepWith(w.written)
	require.Len(t, cl.replies(), 1)
	_, exists = w.r.Tree().Find([]byte("/a"))
	require.True(t, exists)
	other.c.Closed()
}

func TestReadBehindAWriteWaitsAndSeesIt(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.send(wire.OpCreate, create("/a"))
	cl.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a")})
	cl.send(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Data: []byte("2"), Version: -1})
	cl.send(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a")})
	cl.sendXid(99, wire.OpPing, nil)
	w.step()
	require.Empty(t, cl.replies())
	w.settle()
	got := cl.replies()
	require.Equal(t, []int32{1, 2, 3, 4, wire.XidPing}, xids(got))
	var stat wire.Stat
	got[1].decode(t, &stat)
	require.Equal(t, int32(0), stat.Version, "a read ahead of a write must not see it")
	var data wire.DataReply
	got[3].decode(t, &data)
	require.Equal(t, "2", string(data.Data))
	for i := 1; i < len(got); i++ {
		require.GreaterOrEqual(t, got[i].Zxid, got[i-1].Zxid, "zxids of a session go back")
	}
}

func TestReadOfAnotherSessionDoesNotWait(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect(), w.connect()
	a.send(wire.OpCreate, create("/a"))
	w.step()
	b.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a")})
	got := b.replies()
	require.Len(t, got, 1, "a plain read is answered at once")
	require.Equal(t, wire.CodeNoNode, got[0].Err)
	w.settle()
	require.Equal(t, wire.CodeOK, b.exists("/a"))
}

func TestEachRefusedWriteUsesOneZxidUnreadableOnesNone(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	first := cl.call(wire.OpCreate, create("/a"))
	refused := cl.call(wire.OpCreate, create("/a"))
	require.Equal(t, wire.CodeNodeExists, refused.Err)
	require.Equal(t, first.Zxid+1, refused.Zxid)
	unreadable := cl.call(wire.OpSetData, &wire.PathRequest{Path: []byte("/a")})
	require.Equal(t, wire.CodeMarshalling, unreadable.Err)
	require.Equal(t, refused.Zxid, unreadable.Zxid)
	require.Equal(t, refused.Zxid+1, cl.call(wire.OpCreate, create("/b")).Zxid)
}

func TestEventComesBeforeTheWritersReplyAndAfterTheReplyThatSetTheWatch(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.send(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a"), Watch: true})
	cl.send(wire.OpCreate, create("/a"))
	w.settle()
	got := cl.replies()
	require.Equal(t, []int32{1, wire.XidNotification, 2}, xids(got))
	require.Equal(t, got[2].Zxid, got[1].Zxid)
}

func TestPipelinedWritesSeeEachOther(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.send(wire.OpCreate, create("/p"))
	for range 3 {
		cl.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/p/s-"), ACL: wire.OpenACL, Flags: wire.FlagSequential})
	}
	cl.send(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/p/s-0000000001"), Version: -1})
	cl.send(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/p"), Version: -1})
	cl.send(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/p"), Version: 1})
	w.settle()
	var codes []wire.Code
	var names []string
	for i, rp := range cl.replies() {
		codes = append(codes, rp.Err)
		if i >= 1 && i <= 3 {
			var p wire.PathReply
			rp.decode(t, &p)
			names = append(names, string(p.Path))
		}
	}
	require.Equal(t, []string{"/p/s-0000000000", "/p/s-0000000001", "/p/s-0000000002"}, names)
	require.Equal(t, []wire.Code{0, 0, 0, 0, 0, wire.CodeNotEmpty, wire.CodeBadVersion}, codes)
}

func TestCloseSessionTakesItsPendingEphemeralsAndDropsWhatFollows(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect(), w.connect()
	a.mustCreate("/old", wire.FlagEphemeral)
	a.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/new"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
	a.send(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/old"), Version: -1})
	a.send(wire.OpCreate, create("/old")) // the same name, not the session's any more
	a.send(wire.OpCloseSession, nil)
	a.send(wire.OpCreate, create("/late"))
	w.settle()
	require.Equal(t, []int32{2, 3, 4, 5}, xids(a.replies()))
	_, fin := a.c.Output(nil)
	require.True(t, fin)
	require.Equal(t, wire.CodeNoNode, b.exists("/new"))
	require.Equal(t, wire.CodeOK, b.exists("/old"))
	require.Equal(t, wire.CodeNoNode, b.exists("/late"))
	require.Zero(t, w.r.outstanding.Load())
}

func TestFailedMultiLeavesNothingPending(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.mustCreate("/m", 0)
	ops := multi{
		{Op: wire.OpCreate, Create: wire.CreateTTLRequest{Path: []byte("/m/s-"), ACL: wire.OpenACL, Flags: wire.FlagSequential, TTL: -1}},
		{Op: wire.OpCreate, Create: wire.CreateTTLRequest{Path: []byte("/m/e"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral, TTL: -1}},
		{Op: wire.OpDelete, Path: []byte("/none"), Version: -1},
		{Op: wire.OpCheck, Path: []byte("/m"), Version: -1},
	}
	cl.send(wire.OpMulti, ops)
	cl.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/m/s-"), ACL: wire.OpenACL, Flags: wire.FlagSequential})
	w.settle()
	got := cl.replies()
	require.Equal(t, wire.CodeOK, got[0].Err)
	var results multiResults
	got[0].decode(t, &results)
	var codes []wire.Code
	for _, res := range results {
		codes = append(codes, res.Err)
	}
	require.Equal(t, []wire.Code{0, 0, wire.CodeNoNode, wire.CodeRuntimeInconsistency}, codes)
	var p wire.PathReply
	got[1].decode(t, &p)
	require.Equal(t, "/m/s-0000000000", string(p.Path), "a failed multi gives its sequence numbers back")
	require.Empty(t, w.r.pending.nodes)
	require.Empty(t, w.r.pending.ephemerals)
}

func TestSequenceNumbersSaturate(t *testing.T) {
	require.Equal(t, "/a0000000007", string(appendSequence([]byte("/a"), 7)))
	require.Equal(t, "/a2147483647", string(appendSequence([]byte("/a"), 2147483647)))
	parent := pendingNode{exists: true}
	parent.stat.CVersion = 2147483647
	w := newWorld(t, nil)
	none := pendingNode{}
	w.r.pending.put([]byte("/p"), &none, &parent, 1)
	o := op{code: wire.OpCreate, session: 1, zxid: 2, room: 1 << 20}
	req := wire.CreateTTLRequest{Path: []byte("/p/x"), ACL: wire.OpenACL, Flags: wire.FlagSequential, TTL: -1}
	parent.acl = openACL
	w.r.pending.put([]byte("/p"), &none, &parent, 1)
	txn, code := w.r.prepCreate(&o, &req)
	require.Equal(t, wire.CodeOK, code)
	require.Equal(t, "/p/x2147483647", string(txn.Path))
	_, code = w.r.prepCreate(&o, &req)
	require.Equal(t, wire.CodeNodeExists, code)
}

func TestBackPressureStopsTheReaderUntilItsRequestsAreAnswered(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.OutstandingMax = 3 })
	cl := w.connect()
	require.Equal(t, Continue, cl.sendXid(1, wire.OpCreate, create("/a")))
	require.Equal(t, Continue, cl.sendXid(2, wire.OpCreate, create("/b")))
	require.Equal(t, Wait, cl.sendXid(3, wire.OpCreate, create("/c")))
	select {
	case <-cl.c.Resumed():
		t.Fatal("resumed too early")
	default:
	}
	w.settle()
	<-cl.c.Resumed()
	require.Len(t, cl.replies(), 3)
	require.Equal(t, Continue, cl.sendXid(4, wire.OpCreate, create("/d")))
}

// TestShareOfAConnection: whatever others have in flight, a connection is read until it has its share.
func TestShareOfAConnection(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.OutstandingMax = 100 })
	crowd, late := w.connect(), w.connect()
	for i := range 99 {
		require.Equal(t, Continue, crowd.sendXid(int32(i+1), wire.OpCreate, create(fmt.Sprintf("/crowd%d", i))))
	}
	require.Equal(t, Wait, crowd.sendXid(100, wire.OpCreate, create("/crowd-last")))
	for i := range connShare - 1 {
		require.Equal(t, Continue, late.sendXid(int32(i+1), wire.OpCreate, create(fmt.Sprintf("/late%d", i))))
	}
	require.Equal(t, Wait, late.sendXid(connShare, wire.OpCreate, create("/late-last")))
	w.settle()
	<-crowd.c.Resumed()
	<-late.c.Resumed()
	require.Len(t, crowd.replies(), 100)
	require.Len(t, late.replies(), connShare)
}

func TestClientThatDoesNotReadIsCutOff(t *testing.T) {
	var why []string
	w := newWorld(t, func(c *Config) { c.Refused = func(r Refusal) { why = append(why, r.Why) } })
	cl := w.connect()
	big := make([]byte, 1<<20)
	cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/big"), Data: big, ACL: wire.OpenACL})
	verdict := Continue
	for i := 0; verdict != Closing; i++ {
		require.Less(t, i, 40)
		verdict = cl.sendXid(int32(i), wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/big")})
		require.NotEqual(t, Continue, verdict, "the reader must be asked to flush")
	}
	out, fin := cl.c.Output(nil)
	require.Empty(t, out)
	require.True(t, fin)
	require.Equal(t, []string{"client does not read its replies and events"}, why)
}

func TestSessionsOfTheClientAheadAreRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.connect()
	cl := w.open()
	req := wire.ConnectRequest{TimeoutMs: 5000, LastZxidSeen: zxid.Zxid(2), Password: make([]byte, 16)}
	_, err := cl.c.Receive(encode(&req), w.now)
	require.ErrorIs(t, err, ErrClientAhead)
}

func TestDigestsOfThePastAreRemembered(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	for i := range 300 {
		cl.call(wire.OpCreate, create("/n"+string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	list := w.r.Digests()
	require.Len(t, list, 2)
	require.Equal(t, zxid.Zxid(128), list[0].Zxid)
	require.Equal(t, zxid.Zxid(256), list[1].Zxid)
	require.NotEqual(t, list[0].Digest, list[1].Digest)
}

// Paths that no node has, though they split into a parent and a name as the path of one does.
func TestWeakPathsNameNoNode(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, create("/a")).Err)
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, create("/a/b")).Err)
	for _, path := range []string{"//a", "/a//b", "//a/b", "a/b", "/a/", "//"} {
		for _, op := range []wire.Op{wire.OpDelete, wire.OpDeleteContainer} {
			rp := cl.call(op, &wire.PathVersionRequest{Path: []byte(path), Version: -1})
			require.NotEqual(t, wire.CodeOK, rp.Err, "%v %q", op, path)
		}
		for _, part := range []wire.MultiOp{
			{Op: wire.OpDelete, Path: []byte(path), Version: -1},
			{Op: wire.OpSetData, Path: []byte(path), Version: -1},
			{Op: wire.OpCheck, Path: []byte(path), Version: -1},
			{Op: wire.OpCreate, Create: wire.CreateTTLRequest{Path: []byte(path), ACL: wire.OpenACL, TTL: -1}},
		} {
			cl.call(wire.OpMulti, multi{part})
		}
		require.Equal(t, wire.CodeOK, cl.exists("/a"), path)
		require.Equal(t, wire.CodeOK, cl.exists("/a/b"), path)
		require.Equal(t, w.r.pending.digest, w.r.Tree().Digest(), path)
	}
	require.Zero(t, w.r.Stats().DigestMismatches)
	replayed(t, w)
}

// A client may send its last requests and go: they were received, so they are carried out, in order.
func TestRequestsOfAConnectionThatIsGoneAreCarriedOut(t *testing.T) {
	w := newWorld(t, nil)
	gone, other := w.connect(), w.connect()
	gone.send(wire.OpCreate, create("/left"))
	gone.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/left/e"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
	gone.send(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/left"), Data: []byte("last"), Version: 0})
	gone.c.Closed()
	w.settle()
	require.Equal(t, wire.CodeOK, other.exists("/left/e"))
	n, ok := w.r.Tree().Find([]byte("/left"))
	require.True(t, ok)
	require.Equal(t, []byte("last"), w.r.Tree().Data(n))

	last := w.connect()
	last.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/left/f"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
	last.send(wire.OpCloseSession, nil)
	last.c.Closed()
	w.settle()
	require.Equal(t, wire.CodeNoNode, other.exists("/left/f"))
	require.Zero(t, w.r.outstanding.Load())
	require.Zero(t, w.r.queuedBytes.Load())
}
