package znode

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"os"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

func reload(t testing.TB, tree *Tree) *Tree {
	raw := writeSnapshot(t, tree, SnapshotOptions{Digest: true, LastZxid: true}, 1000)
	got, _, err := ReadSnapshot(bytes.NewReader(raw), tree.cfg, 0, tree.LastZxid())
	require.NoError(t, err)
	return got
}

// changer makes random changes of a large tree, all over its memory.
type changer struct {
	*grower
	tb    testing.TB
	rng   *rand.Rand
	paths []string // leaves that it may delete
	n     int
}

func newChanger(tb testing.TB, seed int64, nodes int) *changer {
	c := &changer{grower: newGrower(Config{}, 0), tb: tb, rng: rand.New(rand.NewSource(seed))}
	c.create(tb, []byte("/q"))
	for i := range 20 {
		c.create(tb, fmt.Appendf(nil, "/p%d", i))
	}
	for range nodes {
		c.add()
	}
	// These are to be in another page than the root.
	for _, p := range []string{"/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_limits", "/zookeeper/quota/q/zookeeper_stats"} {
		c.create(tb, []byte(p))
	}
	return c
}

func (c *changer) add() {
	parent := fmt.Sprintf("/p%d", c.rng.Intn(20))
	if c.rng.Intn(10) == 0 {
		parent = "/q"
	}
	c.n++
	path := fmt.Sprintf("%s/n%d", parent, c.n)
	c.data = make([]byte, c.rng.Intn(60))
	c.create(c.tb, []byte(path))
	c.paths = append(c.paths, path)
}

func (c *changer) change() {
	i := c.rng.Intn(len(c.paths))
	c.h.Zxid++
	c.h.ClientID = zxid.SessionID(1 + c.rng.Intn(50))
	switch c.rng.Intn(8) {
	case 0, 1:
		c.add()
		return
	case 2, 3:
		c.delete(c.tb, []byte(c.paths[i]))
		c.paths[i] = c.paths[len(c.paths)-1]
		c.paths = c.paths[:len(c.paths)-1]
		return
	case 4:
		c.txn = Txn{Type: wire.OpSetData, Path: []byte(c.paths[i]), Data: make([]byte, c.rng.Intn(60)), Version: int32(c.h.Zxid)}
	case 5:
		c.txn = Txn{Type: wire.OpSetACL, Path: []byte(c.paths[i]), ACL: []wire.ACL{{Perms: int32(c.rng.Intn(40)), Scheme: "digest", ID: "a:b"}}, Version: 1}
	case 6: // a replay
		c.txn = Txn{Type: wire.OpCreate, Path: []byte(c.paths[i]), ACL: []wire.ACL{{Perms: int32(c.rng.Intn(40)), Scheme: "digest", ID: "a:b"}}}
		c.t.Apply(&c.h, &c.txn, &c.res)
		require.Equal(c.tb, wire.CodeNodeExists, c.res.Code)
		return
	case 7:
		c.txn = Txn{Type: wire.OpCreateSession, Timeout: int32(c.rng.Intn(9))}
		if c.rng.Intn(2) == 0 {
			c.txn = Txn{Type: wire.OpCloseSession}
		}
	}
	c.t.Apply(&c.h, &c.txn, &c.res)
	require.Equal(c.tb, wire.CodeOK, c.res.Code)
}

// TestSnapshotOfLargeTree changes a tree of many pages between the steps of a snapshot and wants the very bytes that
// come out of one without changes.
func TestSnapshotOfLargeTree(t *testing.T) {
	for seed := range int64(8) {
		c := newChanger(t, seed, 3000)
		for range 500 {
			c.change()
		}
		for round := range 3 {
			opt := SnapshotOptions{Digest: true, LastZxid: true}
			want := writeSnapshot(t, c.t, opt, 1<<20)
			s, err := c.t.OpenSnapshot(opt)
			require.NoError(t, err)
			var got []byte
			for done := false; !done; {
				for range c.rng.Intn(100) {
					c.change()
				}
				got, done, err = s.Next(got, 1+c.rng.Intn(3000))
				require.NoError(t, err)
			}
			require.NotEmpty(t, c.t.deferred)
			require.NoError(t, c.t.Check())
			s.Close()
			require.True(t, bytes.Equal(want, got), "seed %d, round %d", seed, round)
		}
		for len(c.t.reclaim) > 0 { // bit by bit
			before := len(c.t.reclaim)
			c.change()
			require.Less(t, len(c.t.reclaim), before)
		}
		require.NoError(t, c.t.Check())
	}
}

// TestSnapshotFreesWhatItDoesNotNeed rewrites one node over and over under an open snapshot: only its first data are kept.
func TestSnapshotFreesWhatItDoesNotNeed(t *testing.T) {
	c := newChanger(t, 1, 100)
	s, err := c.t.OpenSnapshot(SnapshotOptions{})
	require.NoError(t, err)
	for range 1000 {
		c.h.Zxid++
		c.txn = Txn{Type: wire.OpSetData, Path: []byte(c.paths[0]), Data: make([]byte, 40)}
		c.t.Apply(&c.h, &c.txn, &c.res)
	}
	require.LessOrEqual(t, len(c.t.deferred), 2, "its data, and those of a usage node")
	s.Close()
	_, _, err = s.Next(nil, 100)
	require.Error(t, err)
}

// TestSnapshotBesideReaders runs the writer of a snapshot, readers, and the goroutine that changes the tree at once.
func TestSnapshotBesideReaders(t *testing.T) {
	c := newChanger(t, 2, 500)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for shard := range uint32(3) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				c.t.RLock(shard)
				if id, ok := c.t.Find([]byte("/p1")); ok {
					c.t.VisitChildren(id, func(name []byte) bool { return len(name) > 0 })
					_ = c.t.Stat(id)
					_ = c.t.Data(id)
				}
				c.t.RUnlock(shard)
			}
		}()
	}
	for range 5 {
		s, err := c.t.OpenSnapshot(SnapshotOptions{Digest: true})
		require.NoError(t, err)
		want := c.t.Digest()
		raw := make(chan []byte)
		go func() {
			defer s.Close()
			raw <- drain(t, s, 500)
		}()
		var got []byte
		for got == nil {
			select {
			case got = <-raw:
			default:
				c.t.Lock()
				c.change()
				c.t.Unlock()
			}
		}
		tree, _, err := ReadSnapshot(bytes.NewReader(got), Config{}, 0, s.Zxid())
		require.NoError(t, err)
		require.Equal(t, want, tree.Digest())
		for open := true; open; {
			c.t.RLock(1)
			open = c.t.snapshot != nil
			c.t.RUnlock(1)
		}
	}
	close(stop)
	wg.Wait()
	require.NoError(t, c.t.Check())
}

// TestFuzzySnapshotBeforeBodies is TestFuzzySnapshotConverges for logs whose closeSession transactions name no nodes.
// Then nobody can tell later which parents lost a child, so pzxid is left out; all else must converge, the counters of
// parents whose child was taken over by another session included.
func TestFuzzySnapshotBeforeBodies(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := newHistory(rt, Config{ExtendedTypes: true})
		type record struct {
			h   TxnHeader
			txn Txn
		}
		var log []record
		apply := func(max int) func() {
			return func() {
				for range rapid.IntRange(0, max).Draw(rt, "txns") {
					h, txn := g.next()
					if txn.Type == wire.OpCloseSession {
						txn.HasPaths, txn.Paths = false, nil
					}
					log = append(log, record{h, txn})
				}
			}
		}
		apply(30)()
		w := &fuzzyWriter{g: g, apply: apply(4), ids: make(map[string]int64)}
		start := g.m.zxid
		var sessions []session
		for s, ms := range g.m.sessions {
			sessions = append(sessions, session{s, ms})
		}
		w.apply()
		acls := make(map[int64][]wire.ACL)
		for _, n := range g.m.nodes {
			acls[w.id(n.acl)] = n.acl
		}
		w.walk("")
		raw := fuzzySnapshot(sessions, acls, w.nodes, g.m.zxid, g.m.digest())
		apply(5)()
		tree, _, err := ReadSnapshot(bytes.NewReader(raw), g.m.cfg, 0, start)
		require.NoError(rt, err)
		var res Result
		for _, r := range log {
			if r.h.Zxid > start {
				applyEncoded(rt, tree, r.h, r.txn, &res)
			}
		}
		require.NoError(rt, tree.Check())
		require.Equal(rt, withoutPzxid(g.m.dump()), withoutPzxid(dumpTree(tree)))
	})
}

// TestTakenOverByAnotherSession is the case that needs the parent's counter to move although the node is there: the
// parent was written before, the node after a session had closed (without telling its nodes) and another had created the
// node anew.
func TestTakenOverByAnotherSession(t *testing.T) {
	for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL, wire.OpCreateContainer} {
		create := Txn{Type: op, Path: []byte("/p/x"), ParentCVersion: 2, Ephemeral: true, TTL: 5}
		st := StoredStat{Czxid: 12, Mzxid: 12, Pzxid: 12, Owner: 2}
		switch op {
		case wire.OpCreateTTL:
			st.Owner = OwnerTTL(5)
		case wire.OpCreateContainer:
			st.Owner = OwnerContainer
		}
		raw := fuzzySnapshot([]session{{1, 1000}, {2, 1000}}, map[int64][]wire.ACL{}, []fuzzyNode{
			{path: "", acl: -1},
			{path: "/p", acl: -1, node: modelNode{st: StoredStat{Czxid: 5, Mzxid: 5, Pzxid: 6, CVersion: 1}}},
			{path: "/p/x", acl: -1, node: modelNode{st: st}},
		}, 12, 0)
		tree, _, err := ReadSnapshot(bytes.NewReader(raw), Config{ExtendedTypes: true}, 0, 10)
		require.NoError(t, err)
		var res Result
		tree.Apply(&TxnHeader{ClientID: 1, Zxid: 11}, &Txn{Type: wire.OpCloseSession}, &res)
		tree.Apply(&TxnHeader{ClientID: 2, Zxid: 12}, &create, &res)
		p, _ := tree.Find([]byte("/p"))
		require.Equal(t, StoredStat{Czxid: 5, Mzxid: 5, Pzxid: 12, CVersion: 2}, tree.Stored(p), "%v", op)
		require.NoError(t, tree.Check())
	}
}

// TestChangesOfAnEarlierLife replays changes of a node that the snapshot only knows as a later one of that name, where
// the closeSession between them does not name what it removed: the later node stays as it was created.
func TestChangesOfAnEarlierLife(t *testing.T) {
	later := StoredStat{Czxid: 14, Mzxid: 14, Pzxid: 14, Ctime: 7, Mtime: 7}
	raw := fuzzySnapshot([]session{{1, 1000}}, map[int64][]wire.ACL{}, []fuzzyNode{
		{path: "", acl: -1},
		{path: "/x", acl: -1, node: modelNode{st: later, data: []byte("later")}},
	}, 14, 0)
	tree, _, err := ReadSnapshot(bytes.NewReader(raw), Config{}, 0, 9)
	require.NoError(t, err)
	var res Result
	for i, txn := range []Txn{
		{Type: wire.OpCreate, Path: []byte("/x"), Ephemeral: true, ParentCVersion: 1, ACL: wire.OpenACL},
		{Type: wire.OpSetACL, Path: []byte("/x"), ACL: wire.ReadACL, Version: 1},
		{Type: wire.OpSetData, Path: []byte("/x"), Data: []byte("earlier"), Version: 1},
		{Type: wire.OpCloseSession},
		{Type: wire.OpCreate, Path: []byte("/x"), Data: []byte("later"), ParentCVersion: 2, ACL: wire.OpenACL},
	} {
		tree.Apply(&TxnHeader{ClientID: 1, Zxid: zxid.Zxid(10 + i), Time: int64(i)}, &txn, &res)
	}
	x, ok := tree.Find([]byte("/x"))
	require.True(t, ok)
	require.Equal(t, later, tree.Stored(x))
	require.Equal(t, "later", string(tree.Data(x)))
	require.Equal(t, wire.OpenACL, tree.ACL(x).Entries())
	require.NoError(t, tree.Check())
}

// withoutPzxid drops also usage, as withoutUsage.
func withoutPzxid(dump string) string {
	var out bytes.Buffer
	for _, l := range bytes.SplitAfter([]byte(withoutUsage(dump)), []byte("\n")) {
		if i := bytes.Index(l, []byte(" Pzxid:")); i >= 0 {
			j := i + bytes.IndexByte(l[i:], '}')
			l = append(bytes.Clone(l[:i]), l[j:]...)
		}
		out.Write(l)
	}
	return out.String()
}

// TestDanglingACLs loads nodes whose lists the snapshot lacks: nobody may do anything until the log repairs them.
func TestDanglingACLs(t *testing.T) {
	node := func(path string, acl int64) fuzzyNode { return fuzzyNode{path: path, acl: acl} }
	raw := fuzzySnapshot(nil, map[int64][]wire.ACL{1: wire.ReadACL, 3: {{Perms: 5}}}, []fuzzyNode{
		node("", -1), node("/a", 2), node("/b", 2), node("/c", 1), node("/d", 9),
	}, 5, 0)
	tree, info, err := ReadSnapshot(bytes.NewReader(raw), Config{}, 0, 5)
	require.NoError(t, err)
	require.Equal(t, 2, info.DanglingACLs)
	require.ErrorContains(t, tree.Check(), "missing")
	auth, err := NewAuth(AuthConfig{})
	require.NoError(t, err)
	a, _ := tree.Find([]byte("/a"))
	require.False(t, auth.Allows(tree.ACL(a), wire.PermAll, []wire.ID{{Scheme: "ip", ID: "1.1.1.1"}}))
	var res Result
	txns := []Txn{
		{Type: wire.OpCreate, Path: []byte("/a"), ACL: []wire.ACL{{Perms: 7}}},
		{Type: wire.OpSetACL, Path: []byte("/b"), ACL: wire.ReadACL, Version: 1},
		{Type: wire.OpDelete, Path: []byte("/d")},
	}
	for i := range txns {
		require.Positive(t, tree.DanglingACLs())
		tree.Apply(&TxnHeader{Zxid: zxid.Zxid(6 + i)}, &txns[i], &res)
	}
	require.Zero(t, tree.DanglingACLs())
	require.NoError(t, tree.Check())
	require.EqualValues(t, 7, tree.ACL(a).Entries()[0].Perms)
	require.EqualValues(t, 10, tree.acls.lastID, "no id of the snapshot is used again")
}

func TestSnapshotReadErrors(t *testing.T) {
	fresh := writeSnapshot(t, NewTree(Config{}), SnapshotOptions{Digest: true, LastZxid: true}, 1<<20)
	read := func(raw []byte, max int) error {
		tree, _, err := ReadSnapshot(bytes.NewReader(raw), Config{}, max, 0)
		require.Equal(t, err != nil, tree == nil)
		return err
	}
	require.NoError(t, read(fresh, 0))
	for n := range fresh {
		err := read(fresh[:n], 0)
		if n == 424 || n == 457 { // without one or both blocks
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrSnapshot, "%d bytes", n)
	}
	for i := range fresh {
		bad := bytes.Clone(fresh)
		bad[i] ^= 0x10
		if err := read(bad, 0); err == nil {
			t.Fatalf("byte %d is not covered", i)
		}
	}
	require.ErrorIs(t, read(append(bytes.Clone(fresh), 0), 0), ErrSnapshot)
	require.ErrorIs(t, read(fresh, 15), ErrSnapshot, "the longest field has 16 bytes and more")
	boom := errors.New("boom")
	_, _, err := ReadSnapshot(io.MultiReader(bytes.NewReader(fresh[:300]), iotest.ErrReader(boom)), Config{}, 0, 0)
	require.ErrorIs(t, err, boom)
	_, _, err = ReadSnapshot(iotest.OneByteReader(bytes.NewReader(fresh)), Config{}, 0, 0)
	require.NoError(t, err)

	node := func(path string) fuzzyNode { return fuzzyNode{path: path, acl: -1} }
	owned := node("/zookeeper")
	owned.node.st.Owner = 5
	root := node("")
	root.node.st.Owner = 5
	for name, nodes := range map[string][]fuzzyNode{
		"no root":         {node("/a")},
		"two roots":       {node(""), node("")},
		"no parent":       {node(""), node("/a/b")},
		"twice":           {node(""), node("/a"), node("/a")},
		"relative":        {node(""), node("a")},
		"no name":         {node(""), node("/a"), node("/a/")},
		"empty name":      {node(""), node("//")},
		"owned built-in":  {node(""), owned},
		"owned root":      {root},
		"id out of range": {node(""), {path: "/a", acl: math.MaxInt64}},
	} {
		require.ErrorIs(t, read(fuzzySnapshot(nil, nil, nodes, 1, 1), 0), ErrSnapshot, name)
	}
	require.NoError(t, read(fuzzySnapshot(nil, nil, []fuzzyNode{node(""), node("/a"), node("/b"), node("/a/x"), node("/b/y"), node("/a/x/z")}, 1, 1), 0), "not depth-first")
}

// TestSnapshotBadCounts are headers that promise more than there is, or less than nothing.
func TestSnapshotBadCounts(t *testing.T) {
	for name, f := range map[string]func(e *jute.Encoder){
		"null sessions":    func(e *jute.Encoder) { e.Count(-1) },
		"endless sessions": func(e *jute.Encoder) { e.Count(math.MaxInt32) },
		"null ACLs":        func(e *jute.Encoder) { e.Count(0); e.Count(-1) },
		"endless ACLs":     func(e *jute.Encoder) { e.Count(0); e.Count(math.MaxInt32) },
		"null ACL":         func(e *jute.Encoder) { e.Count(0); e.Count(1); e.Int64(1); e.Count(-1) },
		"endless ACL":      func(e *jute.Encoder) { e.Count(0); e.Count(1); e.Int64(1); e.Count(math.MaxInt32) },
		"ACL id twice": func(e *jute.Encoder) {
			e.Count(0)
			e.Count(2)
			for range 2 {
				e.Int64(1)
				e.Count(0)
			}
		},
		"ACL id of open": func(e *jute.Encoder) { e.Count(0); e.Count(1); e.Int64(-1); e.Count(0) },
		"null path":      func(e *jute.Encoder) { e.Count(0); e.Count(0); e.Buffer(nil) },
		"long path":      func(e *jute.Encoder) { e.Count(0); e.Count(0); e.Count(1 << 30) },
		"long data":      func(e *jute.Encoder) { e.Count(0); e.Count(0); e.String(""); e.Count(1 << 30) },
		"negative data":  func(e *jute.Encoder) { e.Count(0); e.Count(0); e.String(""); e.Count(-2) },
	} {
		var e jute.Encoder
		e.Raw([]byte("ZKSN"))
		e.Int32(2)
		e.Int64(-1)
		f(&e)
		e.Raw(make([]byte, 200))
		_, _, err := ReadSnapshot(bytes.NewReader(e.Bytes()), Config{}, 0, 0)
		require.ErrorIs(t, err, ErrSnapshot, name)
	}
	for _, head := range []string{"ZKLG\x00\x00\x00\x02", "ZKSN\x00\x00\x00\x03"} {
		_, _, err := ReadSnapshot(bytes.NewReader(append([]byte(head), make([]byte, 100)...)), Config{}, 0, 0)
		require.ErrorIs(t, err, ErrSnapshot)
	}
}

// TestOldDigestBlock reads the digest block of version 1, whose digest is text.
func TestOldDigestBlock(t *testing.T) {
	plain := writeSnapshot(t, NewTree(Config{}), SnapshotOptions{}, 1<<20)
	for _, lastZxid := range []bool{false, true} {
		for digest, ok := range map[string]bool{"2ae3": true, "0123456789abcdef": true, "": false, "xyz": false} {
			b := binary.BigEndian.AppendUint64(bytes.Clone(plain), 7)
			b = binary.BigEndian.AppendUint32(b, 1)
			b = binary.BigEndian.AppendUint32(b, uint32(len(digest)))
			b = fuzzySeal(append(b, digest...))
			if lastZxid {
				b = fuzzySeal(binary.BigEndian.AppendUint64(b, 8))
			}
			_, info, err := ReadSnapshot(bytes.NewReader(b), Config{}, 0, 5)
			require.Equal(t, ok, err == nil, "%q: %v", digest, err)
			if ok {
				require.EqualValues(t, 7, info.DigestZxid)
				require.EqualValues(t, 1, info.DigestVersion)
				require.False(t, info.HasDigest, "cannot be compared")
				require.Equal(t, lastZxid, info.HasLastZxid)
			}
		}
	}
}

// TestOldSnapshotGetsConfigNode: before 3.5 there was no config node.
func TestOldSnapshotGetsConfigNode(t *testing.T) {
	raw := fuzzySnapshot(nil, nil, []fuzzyNode{
		{path: "", acl: -1}, {path: "/zookeeper", acl: -1}, {path: "/zookeeper/quota", acl: -1},
	}, 1, 1371985504)
	tree, info, err := ReadSnapshot(bytes.NewReader(raw), Config{}, 0, 1)
	require.NoError(t, err)
	require.Equal(t, info.Digest, tree.Digest())
	require.Equal(t, 3, info.Nodes)
	require.Equal(t, 4, tree.NodeCount())
	id, ok := tree.Find([]byte(ConfigPath))
	require.True(t, ok)
	require.Equal(t, wire.ReadACL, tree.ACL(id).Entries())
	require.NoError(t, tree.Check())
}

func TestSnapshotBudget(t *testing.T) {
	g := newGrower(Config{}, 1000)
	g.fill(t, 3000)
	s, err := g.t.OpenSnapshot(SnapshotOptions{})
	require.NoError(t, err)
	defer s.Close()
	for done := false; !done; {
		var b []byte
		b, done, err = s.Next(make([]byte, 0, 4096), math.MaxInt)
		require.NoError(t, err)
		require.Less(t, len(b), snapshotStepBytesMax+2000)
	}
}

func FuzzSnapshot(f *testing.F) {
	for _, dir := range apacheDirs(f) {
		for _, file := range apacheFiles(f, dir, "snapshot") {
			b, err := os.ReadFile(file.path)
			if err != nil || len(b) > 3000 {
				continue
			}
			f.Add(b)
			tree, _ := readApacheSnapshot(f, file)
			b = writeSnapshot(f, tree, SnapshotOptions{}, 1<<20)
			f.Add(b[:len(b)-snapshotSealBytes])
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fuzzSnapshotRead(t, raw)
		fuzzSnapshotRead(t, fuzzySeal(bytes.Clone(raw))) // without luck, no changed input would pass its checksum
	})
}

func fuzzSnapshotRead(t *testing.T, raw []byte) {
	tree, info, err := ReadSnapshot(bytes.NewReader(raw), Config{ExtendedTypes: true}, 1<<16, 1)
	if err != nil {
		require.ErrorIs(t, err, ErrSnapshot)
		return
	}
	if info.DanglingACLs == 0 {
		require.NoError(t, tree.Check())
	}
	again := reload(t, tree)
	require.Equal(t, withoutUsage(dumpTree(tree)), withoutUsage(dumpTree(again)))
	for _, s := range tree.Orphans() {
		var res Result
		tree.Apply(&TxnHeader{ClientID: s, Zxid: 2}, &Txn{Type: wire.OpCloseSession}, &res)
	}
	require.Empty(t, tree.Orphans())
}
