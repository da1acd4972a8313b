package znode

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

// script applies transactions one after the other.
type script struct {
	t    *testing.T
	tree *Tree
	h    TxnHeader
	res  Result
}

func newScript(t *testing.T, cfg Config) *script {
	return &script{t: t, tree: NewTree(cfg), h: TxnHeader{ClientID: 7, Time: 1000}}
}

// do applies a transaction with the next zxid and checks the tree.
func (s *script) do(txn Txn) *Result {
	s.t.Helper()
	s.h.Zxid++
	return s.at(s.h.Zxid, txn)
}

func (s *script) at(z zxid.Zxid, txn Txn) *Result {
	s.t.Helper()
	h := s.h
	h.Zxid, h.Type = z, txn.Type
	s.tree.Apply(&h, &txn, &s.res)
	require.NoError(s.t, s.tree.Check())
	return &s.res
}

func (s *script) node(path string) Node {
	s.t.Helper()
	id, ok := s.tree.Find([]byte(path))
	require.True(s.t, ok, path)
	return id
}

func (s *script) exists(path string) bool {
	_, ok := s.tree.Find([]byte(path))
	return ok
}

func createTxn(path string, cversion int32) Txn {
	return Txn{Type: wire.OpCreate, Path: []byte(path), Data: []byte("d"), ACL: wire.OpenACL, ParentCVersion: cversion}
}

func deleteTxn(path string) Txn { return Txn{Type: wire.OpDelete, Path: []byte(path)} }

func TestFreshTree(t *testing.T) {
	tree := NewTree(Config{})
	require.NoError(t, tree.Check())
	require.EqualValues(t, 1371985504, tree.Digest())
	require.Equal(t, 4, tree.NodeCount())
	require.EqualValues(t, 44, tree.DataSize()) // as Apache's zk_approximate_data_size
	require.Zero(t, tree.LastZxid())
	for _, tt := range []struct {
		path               string
		cversion, aversion int32
		children           int32
		perms              int32
	}{
		{"/", -1, 0, 1, wire.PermAll},
		{"/zookeeper", -2, 0, 2, wire.PermAll},
		{"/zookeeper/quota", 0, 0, 0, wire.PermAll},
		{"/zookeeper/config", 0, -1, 0, wire.PermRead},
	} {
		id, ok := tree.Find([]byte(tt.path))
		require.True(t, ok)
		require.Equal(t, wire.Stat{CVersion: tt.cversion, AVersion: tt.aversion, NumChildren: tt.children}, tree.Stat(id), tt.path)
		require.Equal(t, []wire.ACL{{Perms: tt.perms, Scheme: "world", ID: "anyone"}}, tree.ACL(id).Entries())
		require.Equal(t, []byte{}, tree.Data(id))
		require.Equal(t, tt.path, string(tree.AppendPath(nil, id)))
	}
}

func TestDigestVectors(t *testing.T) {
	require.EqualValues(t, 68323592, NodeDigest(nil, PathDataCRC(nil, nil), &StoredStat{}))
	require.EqualValues(t, 68323592, NodeDigest([]byte("/"), PathDataCRC([]byte("/"), []byte{}), &StoredStat{}))
	require.EqualValues(t, 1303661912, NodeDigest([]byte("/zookeeper"), PathDataCRC([]byte("/zookeeper"), nil), &StoredStat{}))
	require.Zero(t, NodeDigest([]byte("/zookeeper/x"), PathDataCRC([]byte("/zookeeper/x"), nil), &StoredStat{}))
	require.NotZero(t, NodeDigest([]byte("/zookeeperx"), 0, &StoredStat{}))
	require.Zero(t, NewTree(Config{NoDigest: true}).Digest())
}

func TestFind(t *testing.T) {
	s := newScript(t, Config{})
	s.do(createTxn("/a", 1))
	s.do(createTxn("/a/b", 1))
	for _, p := range []string{"", "/", "/a", "/a/b"} {
		require.True(t, s.exists(p), p)
	}
	for _, p := range []string{"a", "//", "/a/", "//a", "/a//b", "/b", "/a/b/c", "/ab", "a/b", "x"} {
		require.False(t, s.exists(p), p)
	}
	allocs := testing.AllocsPerRun(100, func() {
		id, _ := s.tree.Find([]byte("/a/b"))
		st := s.tree.Stat(id)
		if len(s.tree.Data(id)) != int(st.DataLength) {
			t.Fail()
		}
	})
	require.Zero(t, allocs)
}

// TestApplyCodes are the failures of single transactions, which happen in replays only, and what they change all the same.
func TestApplyCodes(t *testing.T) {
	s := newScript(t, Config{})
	s.do(createTxn("/a", 1))
	before := dumpTree(s.tree)
	for _, tt := range []struct {
		txn  Txn
		code wire.Code
	}{
		{createTxn("/no/b", 1), wire.CodeNoNode},
		{createTxn("/", 1), wire.CodeNodeExists},
		{createTxn("", 1), wire.CodeNodeExists},
		{createTxn("/a/", 1), wire.CodeBadArguments},
		{createTxn("b", 1), wire.CodeBadArguments},
		{deleteTxn("/no/b"), wire.CodeNoNode},
		{deleteTxn("/"), wire.CodeBadArguments},
		{deleteTxn(""), wire.CodeBadArguments},
		{deleteTxn("/zookeeper"), wire.CodeBadArguments},
		{deleteTxn("/zookeeper/config"), wire.CodeBadArguments},
		{deleteTxn("/a/"), wire.CodeBadArguments},
		{Txn{Type: wire.OpSetData, Path: []byte("/no"), Version: 1}, wire.CodeNoNode},
		{Txn{Type: wire.OpSetACL, Path: []byte("/no"), Version: 1}, wire.CodeNoNode},
		{Txn{Type: wire.OpError, Err: wire.CodeNotEmpty}, wire.CodeNotEmpty},
		{Txn{Type: wire.OpCheck, Path: []byte("/no"), Version: 1}, wire.CodeOK},
	} {
		require.Equal(t, tt.code, s.do(tt.txn).Code, "%v %s", tt.txn.Type, tt.txn.Path)
		require.Equal(t, before, dumpTree(s.tree))
		require.Equal(t, s.h.Zxid, s.tree.LastZxid())
	}
	require.Equal(t, wire.CodeNoNode, s.do(deleteTxn("/a/gone")).Code)
	require.Equal(t, s.h.Zxid, s.tree.Stat(s.node("/a")).Pzxid, "also when the node is gone")
	require.Equal(t, wire.CodeNoNode, s.at(1, deleteTxn("/a/gone")).Code)
	require.Equal(t, s.h.Zxid, s.tree.Stat(s.node("/a")).Pzxid, "never back")
	require.Equal(t, s.h.Zxid, s.tree.LastZxid(), "never back")
}

func TestCreateCountsChildren(t *testing.T) {
	s := newScript(t, Config{})
	s.do(createTxn("/p", 1))
	p := func() wire.Stat { return s.tree.Stat(s.node("/p")) }
	s.do(createTxn("/p/a", 5)) // later creates are in the tree already
	require.EqualValues(t, 2*5-1, p().CVersion)
	require.EqualValues(t, 2, p().Pzxid)
	s.do(createTxn("/p/b", 3))
	require.EqualValues(t, 2*5-2, p().CVersion, "moves forward only")
	require.EqualValues(t, 2, p().Pzxid)
	s.do(createTxn("/p/c", -1)) // a log that does not tell
	require.EqualValues(t, 2*6-3, p().CVersion)
	require.EqualValues(t, 4, p().Pzxid)
	s.do(createTxn("/p/a", 6))
	require.Equal(t, wire.CodeNodeExists, s.res.Code)
	require.EqualValues(t, 2*6-3, p().CVersion)
	for i, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL} {
		txn := createTxn("/p/a", int32(7+i))
		txn.Type, txn.ACL, txn.Data = op, wire.ReadACL, []byte("other")
		require.Equal(t, wire.CodeNodeExists, s.do(txn).Code)
		require.EqualValues(t, 2*(7+i)-3, p().CVersion, "%v", op)
		require.Equal(t, s.h.Zxid, p().Pzxid)
		require.Equal(t, wire.ReadACL, s.tree.ACL(s.node("/p/a")).Entries())
		require.Equal(t, "d", string(s.tree.Data(s.node("/p/a"))))
		require.Equal(t, KindPersistent, s.tree.Kind(s.node("/p/a")))
	}
}

func TestDeleteTakesLaterChildren(t *testing.T) {
	s := newScript(t, Config{ExtendedTypes: true})
	s.do(createTxn("/p", 1))
	for i := range 200 {
		s.do(createTxn(fmt.Sprintf("/p/%d", i), -1))
		txn := createTxn(fmt.Sprintf("/p/%d/e", i), -1)
		txn.Ephemeral, txn.ACL, txn.Data = true, wire.ReadACL, make([]byte, i*17)
		s.do(txn)
	}
	require.Equal(t, 200, s.tree.EphemeralCount())
	require.Equal(t, wire.CodeOK, s.do(deleteTxn("/p")).Code)
	require.Equal(t, 4, s.tree.NodeCount())
	require.Zero(t, s.tree.EphemeralCount())
	require.EqualValues(t, 44, s.tree.DataSize())
}

func TestCloseSession(t *testing.T) {
	s := newScript(t, Config{})
	s.do(Txn{Type: wire.OpCreateSession, Timeout: 5000})
	ms, ok := s.tree.SessionTimeout(7)
	require.True(t, ok)
	require.EqualValues(t, 5000, ms)
	s.do(createTxn("/p", 1))
	ephemeral := func(path string) {
		txn := createTxn(path, -1)
		txn.Ephemeral = true
		s.do(txn)
	}
	ephemeral("/e1")
	ephemeral("/p/e2")
	ephemeral("/e3")
	s.do(deleteTxn("/e1"))
	require.EqualValues(t, 7, s.tree.Stat(s.node("/e3")).EphemeralOwner)
	// /e1 is gone, /e3 not named.
	s.do(Txn{Type: wire.OpCloseSession, HasPaths: true, Paths: [][]byte{[]byte("/e1"), []byte("/p/e2")}})
	require.False(t, s.exists("/e3") || s.exists("/p/e2"))
	require.Equal(t, s.h.Zxid, s.tree.Stat(s.node("/p")).Pzxid)
	require.Equal(t, s.h.Zxid, s.tree.Stat(s.node("/")).Pzxid)
	require.Zero(t, s.tree.SessionCount())
	ephemeral("/e4")
	require.Equal(t, []zxid.SessionID{7}, s.tree.Orphans())
	s.do(Txn{Type: wire.OpCloseSession})
	require.False(t, s.exists("/e4"))
	require.Empty(t, s.tree.Orphans())
}

func TestSessionsSorted(t *testing.T) {
	s := newScript(t, Config{})
	for _, id := range []zxid.SessionID{5, -3, 9, 1, 5} {
		s.h.ClientID = id
		s.do(Txn{Type: wire.OpCreateSession, Timeout: int32(id) * 10})
	}
	s.h.ClientID = 9
	s.do(Txn{Type: wire.OpCloseSession})
	var got []string
	s.tree.VisitSessions(func(id zxid.SessionID, ms int32) bool {
		got = append(got, fmt.Sprint(int64(id), ms))
		return len(got) < 3
	})
	require.Equal(t, []string{"-3 -30", "1 10", "5 50"}, got)
	require.Equal(t, 3, s.tree.SessionCount())
}

func TestMultiResults(t *testing.T) {
	s := newScript(t, Config{})
	r := s.do(Txn{Type: wire.OpMulti, Multi: []Txn{
		createTxn("/m", 1),
		{Type: wire.OpSetData, Path: []byte("/m"), Data: []byte("xy"), Version: 1},
		{Type: wire.OpCheck, Path: []byte("/m"), Version: 2},
		{Type: wire.OpSetData, Path: []byte("/m"), Data: []byte("xyz"), Version: 2},
		createTxn("/m/c", 1),
	}})
	require.Equal(t, wire.CodeOK, r.Code)
	require.Len(t, r.Ops, 5)
	require.EqualValues(t, 1, r.Ops[0].Stat.DataLength)
	require.EqualValues(t, 2, r.Ops[1].Stat.DataLength, "right after the operation")
	require.EqualValues(t, 1, r.Ops[1].Stat.Version)
	require.EqualValues(t, 0, r.Ops[3].Stat.NumChildren)
	require.Equal(t, "/m/c", string(r.Ops[4].Path))
	require.EqualValues(t, 1, s.tree.LastZxid())

	before := dumpTree(s.tree)
	r = s.do(Txn{Type: wire.OpMulti, Multi: []Txn{
		createTxn("/n", 2), {Type: wire.OpError, Err: wire.CodeNoNode}, deleteTxn("/m/c"), {Type: wire.OpError, Err: wire.CodeRuntimeInconsistency},
	}})
	require.Equal(t, before, dumpTree(s.tree))
	require.Equal(t, wire.CodeNoNode, r.Code)
	var codes []wire.Code
	for _, op := range r.Ops {
		require.Equal(t, wire.OpError, op.Op)
		codes = append(codes, op.Code)
	}
	require.Equal(t, []wire.Code{0, wire.CodeNoNode, wire.CodeRuntimeInconsistency, wire.CodeRuntimeInconsistency}, codes)

	r = s.do(Txn{Type: wire.OpMulti})
	require.Equal(t, wire.CodeOK, r.Code)
	require.Empty(t, r.Ops)

	r = s.do(Txn{Type: wire.OpMulti, Multi: []Txn{deleteTxn("/gone"), deleteTxn("/m/c")}}) // a replay
	require.Equal(t, wire.CodeNoNode, r.Code)
	require.False(t, s.exists("/m/c"), "one that fails stops none of the others")
}

func TestKinds(t *testing.T) {
	plain, extended, emulated := Config{}, Config{ExtendedTypes: true}, Config{ExtendedTypes: true, Emulate353TTL: true}
	for _, tt := range []struct {
		owner int64
		cfg   Config
		kind  Kind
		ttl   int64
	}{
		{0, plain, KindPersistent, 0},
		{0x100000f52dc0000, extended, KindEphemeral, 0},
		{OwnerContainer, plain, KindContainer, 0},
		{OwnerContainer, emulated, KindContainer, 0},
		{OwnerTTL(1), extended, KindTTL, 1},
		{OwnerTTL(TTLMsMax), extended, KindTTL, TTLMsMax},
		{OwnerTTL(1), plain, KindTTL, 1},
		{OwnerTTL(77), emulated, KindTTL, 77},
		{math.MinInt64 + 5000, emulated, KindTTL, 5000},
		{math.MinInt64 + 5000, extended, KindEphemeral, 0},
		{math.MinInt64 + 5000, Config{Emulate353TTL: true}, KindEphemeral, 0},
		{-0x00ffff0000000000, extended, KindEphemeral, 0}, // 0xff00010000000000: another feature than TTL
		{-0x0100000000000000 | 1<<62, extended, KindTTL, 0},
	} {
		st := StoredStat{Owner: tt.owner}
		require.Equal(t, tt.kind, st.Kind(&tt.cfg), "%#x", uint64(tt.owner))
		if tt.kind == KindTTL {
			require.Equal(t, tt.ttl, st.TTL(), "%#x", uint64(tt.owner))
		}
	}
	require.EqualValues(t, uint64(0xff00000000000064), uint64(OwnerTTL(100)))
}

// TestKindFollowsType: what a node is depends on the transaction's type, and clients do not see the coding.
func TestKindFollowsType(t *testing.T) {
	s := newScript(t, Config{ExtendedTypes: true})
	for _, tt := range []struct {
		op        wire.Op
		ephemeral bool
		kind      Kind
		owner     zxid.SessionID
	}{
		{wire.OpCreate, false, KindPersistent, 0},
		{wire.OpCreate2, true, KindEphemeral, 7},
		{wire.OpCreateContainer, true, KindContainer, 0},
		{wire.OpCreateTTL, true, KindTTL, 0},
	} {
		txn := createTxn("/"+tt.op.String()+fmt.Sprint(tt.ephemeral), -1)
		txn.Type, txn.Ephemeral, txn.TTL = tt.op, tt.ephemeral, 9
		r := s.do(txn)
		require.Equal(t, tt.owner, r.Stat.EphemeralOwner)
		require.Equal(t, tt.kind, s.tree.Kind(s.node(string(txn.Path))))
	}
	require.Equal(t, []int{1, 1, 1}, []int{s.tree.EphemeralCount(), s.tree.ContainerCount(), s.tree.TTLCount()})
	require.Equal(t, 1, s.tree.EphemeralOwners())
}

func TestExpired(t *testing.T) {
	s := newScript(t, Config{ExtendedTypes: true})
	expired := func(now, unused int64) []string {
		var paths []string
		s.tree.Expired(now, unused, func(p []byte) bool {
			paths = append(paths, string(p))
			return true
		})
		return paths
	}
	ttl := createTxn("/ttl", -1)
	ttl.Type, ttl.TTL = wire.OpCreateTTL, 100
	container := createTxn("/container", -1)
	container.Type = wire.OpCreateContainer
	s.do(ttl)
	s.do(container)
	require.Empty(t, expired(1100, 0))
	require.Equal(t, []string{"/ttl"}, expired(1101, 0))
	require.Equal(t, []string{"/ttl"}, expired(1200, 200))
	require.Equal(t, []string{"/ttl", "/container"}, expired(1201, 200))
	s.h.Time = 1500
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/ttl"), Version: 1})
	s.do(createTxn("/container/c", 1))
	require.Empty(t, expired(1600, 1))
	require.Equal(t, []string{"/ttl"}, expired(1601, 1))
	s.do(createTxn("/ttl/c", 1))
	require.Empty(t, expired(math.MaxInt64, 1))
	s.do(deleteTxn("/ttl/c"))
	s.do(deleteTxn("/container/c"))
	require.Equal(t, []string{"/container", "/ttl"}, expired(1601, 0))
	stopped := 0
	s.tree.Expired(1601, 0, func([]byte) bool { stopped++; return false })
	require.Equal(t, 1, stopped)
}

// TestSequenceCounterSticks: the counter of a parent with 2^31-1 children created does not wrap.
func TestSequenceCounterSticks(t *testing.T) {
	s := newScript(t, Config{})
	s.do(createTxn("/p", 1))
	s.do(createTxn("/p/a", math.MaxInt32))
	s.do(createTxn("/p/b", math.MinInt32))
	require.EqualValues(t, math.MaxInt32, s.tree.Stored(s.node("/p")).CVersion)
}

type recordedEvent struct {
	typ  wire.EventType
	path string
	zxid zxid.Zxid
	acl  int32
}

type eventLog struct{ events []recordedEvent }

func (r *eventLog) Notify(e *Event) {
	r.events = append(r.events, recordedEvent{e.Type, string(e.Path), e.Zxid, e.ACL.Entries()[0].Perms})
}

// TestTriggers follows one persistent watcher of everything through transactions of all kinds.
func TestTriggers(t *testing.T) {
	s := newScript(t, Config{})
	var rec eventLog
	id := s.tree.Watches().Attach(&rec)
	for _, p := range []string{"/", "/a", "/a/e", ConfigPath} {
		s.tree.Watches().Add(id, TableData, []byte(p), WatchPersistent)
		s.tree.Watches().Add(id, TableChild, []byte(p), WatchPersistent)
	}
	take := func() []recordedEvent {
		defer func() { rec.events = nil }()
		return rec.events
	}
	a := createTxn("/a", 1)
	a.ACL = wire.ReadACL
	s.do(a)
	require.Equal(t, []recordedEvent{{wire.EventNodeCreated, "/a", 1, 1}, {wire.EventNodeChildrenChanged, "/", 1, 31}}, take())
	e := createTxn("/a/e", 1)
	e.Ephemeral = true
	s.do(e)
	require.Equal(t, []recordedEvent{{wire.EventNodeCreated, "/a/e", 2, 31}, {wire.EventNodeChildrenChanged, "/a", 2, 1}}, take())
	s.do(Txn{Type: wire.OpSetACL, Path: []byte("/a"), ACL: wire.OpenACL, Version: 1})
	require.Empty(t, take())
	s.do(Txn{Type: wire.OpSetData, Path: []byte("/"), Version: 1})
	require.Equal(t, []recordedEvent{{wire.EventNodeDataChanged, "/", 4, 31}}, take())
	s.do(Txn{Type: wire.OpReconfig, Path: []byte(ConfigPath), Data: []byte("version=5"), Version: -1})
	require.Equal(t, []recordedEvent{{wire.EventNodeDataChanged, ConfigPath, 5, 1}}, take())
	s.do(Txn{Type: wire.OpMulti, Multi: []Txn{deleteTxn("/a/e"), {Type: wire.OpError, Err: wire.CodeNoNode}}})
	require.Empty(t, take())
	s.do(Txn{Type: wire.OpCloseSession})
	require.Equal(t, []recordedEvent{{wire.EventNodeDeleted, "/a/e", 7, 31}, {wire.EventNodeChildrenChanged, "/a", 7, 31}}, take())
	s.do(Txn{Type: wire.OpMulti, Multi: []Txn{{Type: wire.OpSetData, Path: []byte("/a"), Version: 1}, deleteTxn("/a")}})
	require.Equal(t, []recordedEvent{
		{wire.EventNodeDataChanged, "/a", 8, 31}, {wire.EventNodeDeleted, "/a", 8, 31}, {wire.EventNodeChildrenChanged, "/", 8, 31},
	}, take())
	s.do(deleteTxn("/a"))
	s.do(createTxn("/zookeeper", 1))
	require.Empty(t, take(), "failures fire nothing")
}

// TestCheckFindsDamage breaks one thing at a time.
func TestCheckFindsDamage(t *testing.T) {
	for name, damage := range map[string]func(s *script){
		"digest":      func(s *script) { s.tree.digest++ },
		"data size":   func(s *script) { s.tree.dataBytes++ },
		"crc":         func(s *script) { s.tree.nodes.at(s.node("/a")).crc++ },
		"children":    func(s *script) { s.tree.nodes.at(s.node("/a")).numChildren++ },
		"links":       func(s *script) { s.tree.nodes.at(s.node("/a/b")).prev = 0 },
		"index":       func(s *script) { s.tree.index.remove(&s.tree.nodes, s.node("/a/b")) },
		"hash":        func(s *script) { s.tree.nodes.at(s.node("/a/b")).hash++ },
		"acl":         func(s *script) { s.tree.nodes.at(s.node("/a")).acl = 0 },
		"acl key":     func(s *script) { clear(s.tree.acls.byKey) },
		"ephemeral":   func(s *script) { s.tree.ephemerals.remove(7, s.node("/a/e")) },
		"owner":       func(s *script) { s.tree.nodes.at(s.node("/a/e")).owner = 8 },
		"container":   func(s *script) { s.tree.expiry.unused.remove(s.node("/c")) },
		"counts":      func(s *script) { s.tree.expiry.ttls++ },
		"blob":        func(s *script) { s.tree.blobs.put(10) },
		"shared blob": func(s *script) { s.tree.nodes.at(s.node("/a/b")).blob = s.tree.nodes.at(s.node("/a/e")).blob },
		"free node":   func(s *script) { s.tree.nodes.alloc() },
		"session":     func(s *script) { s.tree.sessions.pos[9] = 0 },
		"quota":       func(s *script) { s.tree.quotas.prefixes["/x"] = struct{}{} },
		"dangling":    func(s *script) { s.tree.nodes.at(s.node("/a/b")).acl = s.tree.acls.loadNode(99, map[int64]uint32{}) },
	} {
		s := newScript(t, Config{})
		a, e, c := createTxn("/a", 1), createTxn("/a/e", 2), createTxn("/c", 2)
		a.ACL, e.Ephemeral, c.Type = []wire.ACL{{Perms: 1, Scheme: "ip", ID: "1.1.1.1"}}, true, wire.OpCreateContainer
		s.do(a)
		s.do(createTxn("/a/b", 1))
		s.do(e)
		s.do(c)
		damage(s)
		require.Error(t, s.tree.Check(), name)
	}
}

func TestACLsAreShared(t *testing.T) {
	s := newScript(t, Config{})
	acl := func() []wire.ACL { return []wire.ACL{{Perms: 3, Scheme: "digest", ID: "u:h"}} }
	for i := range 10 {
		txn := createTxn(fmt.Sprintf("/%d", i), -1)
		txn.ACL = acl()
		s.do(txn)
	}
	require.Same(t, s.tree.ACL(s.node("/0")), s.tree.ACL(s.node("/9")))
	require.Len(t, s.tree.acls.entries, 3) // with the open one and the config node's
	for i := range 10 {
		s.do(deleteTxn(fmt.Sprintf("/%d", i)))
	}
	require.Len(t, s.tree.acls.unused, 1)
	txn := createTxn("/again", -1)
	txn.ACL = acl()
	s.do(txn)
	require.EqualValues(t, 3, s.tree.acls.lastID, "ids are not used twice")
	require.Len(t, s.tree.acls.entries, 3)
	var null []wire.ACL
	s.do(Txn{Type: wire.OpSetACL, Path: []byte("/again"), ACL: null, Version: 1})
	require.True(t, s.tree.ACL(s.node("/again")).Open())
	s.do(Txn{Type: wire.OpSetACL, Path: []byte("/again"), ACL: []wire.ACL{}, Version: 2})
	require.Equal(t, []wire.ACL{}, s.tree.ACL(s.node("/again")).Entries())
}

func TestUnknownTxnPanics(t *testing.T) {
	s := newScript(t, Config{})
	require.Panics(t, func() { s.do(Txn{Type: wire.OpPing}) })
	require.Panics(t, func() { AppendTxn(nil, &TxnHeader{}, &Txn{Type: wire.OpPing}, nil) })
	require.False(t, errors.Is(ErrTxn, ErrSnapshot))
}
