package znode

import (
	"bytes"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"zabra/wire"
)

// applyEncoded applies a transaction that went through its encoding.
func applyEncoded(t require.TestingT, tree *Tree, h TxnHeader, txn Txn, res *Result) {
	digest := Digest{Version: DigestVersion, Value: 42}
	raw := AppendTxn(nil, &h, &txn, &digest)
	var h2 TxnHeader
	var txn2 Txn
	d, has, err := DecodeTxn(raw, 0, &h2, &txn2)
	require.NoError(t, err)
	require.True(t, has)
	require.Equal(t, digest, d)
	require.Equal(t, h, h2)
	tree.Apply(&h2, &txn2, res)
	res.Path = bytes.Clone(res.Path)
	for i := range res.Ops {
		res.Ops[i].Path = bytes.Clone(res.Ops[i].Path)
	}
	for i := range raw { // the tree must have copied what it keeps
		raw[i] = 0xee
	}
}

func TestTreeAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{ExtendedTypes: rapid.Bool().Draw(rt, "extended"), HashSeed: rapid.Uint64().Draw(rt, "seed")}
		g := newHistory(rt, cfg)
		tree := NewTree(cfg)
		var res Result
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			h, txn := g.next()
			applyEncoded(rt, tree, h, txn, &res)
			require.NoError(rt, tree.Check())
			require.Equal(rt, g.m.dump(), dumpTree(tree))
			require.Equal(rt, g.m.digest(), tree.Digest())
			require.Equal(rt, g.m.zxid, tree.LastZxid())
			requireResult(rt, g.m, &txn, &res)
			requireIndexes(rt, g.m, tree, g.now)
		}
		requireRoundTrip(rt, tree, cfg)
	})
}

func requireResult(t require.TestingT, m *model, txn *Txn, res *Result) {
	switch txn.Type {
	case wire.OpError:
		require.Equal(t, txn.Err, res.Code)
		return
	case wire.OpMulti:
		require.Len(t, res.Ops, len(txn.Multi))
		failed := false
		for i := range txn.Multi {
			failed = failed || txn.Multi[i].Type == wire.OpError
		}
		for i, op := range txn.Multi {
			if !failed {
				require.Equal(t, wire.CodeOK, res.Ops[i].Code)
				require.Equal(t, op.Type, res.Ops[i].Op)
				require.Equal(t, op.Path, res.Ops[i].Path)
			} else {
				require.Equal(t, wire.OpError, res.Ops[i].Op)
				require.Equal(t, op.Err, res.Ops[i].Code) // 0 for those before the one that failed
			}
		}
		require.Equal(t, failed, res.Code != wire.CodeOK)
		return
	}
	require.Equal(t, wire.CodeOK, res.Code)
	require.Equal(t, txn.Path, res.Path)
	if n := m.nodes[modelPath(txn.Path)]; txn.Path != nil && n != nil {
		want := m.stat(modelPath(txn.Path))
		if txn.Type != wire.OpSetData && txn.Type != wire.OpSetACL {
			want.DataLength = int32(len(txn.Data)) // of a quota's usage, the server writes its own over it
		}
		require.Equal(t, want, res.Stat)
	}
}

func requireIndexes(t require.TestingT, m *model, tree *Tree, now int64) {
	for _, s := range testSessions {
		var got []string
		tree.VisitEphemerals(s, func(p []byte) bool {
			got = append(got, string(p))
			return true
		})
		sort.Strings(got)
		require.Equal(t, m.ephemerals(s), got)
	}
	var children, descendants, ephemerals, containers, ttls int
	for p, n := range m.nodes {
		id, ok := tree.Find([]byte(p))
		require.True(t, ok)
		tree.VisitChildren(id, func([]byte) bool { children++; return true })
		require.Equal(t, len(m.subtree(p))-1, tree.CountDescendants(id))
		descendants++
		require.Equal(t, PathDataCRC([]byte(p), n.data), tree.PathDataCRC(id))
		require.Equal(t, n.st.Kind(&m.cfg), tree.Kind(id))
		switch tree.Kind(id) {
		case KindEphemeral:
			ephemerals++
		case KindContainer:
			containers++
		case KindTTL:
			ttls++
		}
	}
	require.Equal(t, descendants-1, children)
	require.Equal(t, descendants, tree.NodeCount())
	require.Equal(t, []int{ephemerals, containers, ttls}, []int{tree.EphemeralCount(), tree.ContainerCount(), tree.TTLCount()})
	for _, unused := range []int64{0, 700} {
		var got []string
		tree.Expired(now+2000, unused, func(p []byte) bool {
			got = append(got, string(p))
			return true
		})
		sort.Strings(got)
		require.Equal(t, m.expired(now+2000, unused), got)
	}
}

// expired is the rule as written down.
func (m *model) expired(now, maxNeverUsed int64) []string {
	var paths []string
	for p, n := range m.nodes {
		if len(m.children(p)) > 0 {
			continue
		}
		switch n.st.Kind(&m.cfg) {
		case KindContainer:
			if n.st.CVersion > 0 || maxNeverUsed > 0 && now-n.st.Mtime > maxNeverUsed {
				paths = append(paths, p)
			}
		case KindTTL:
			if now-n.st.Mtime > n.st.TTL() {
				paths = append(paths, p)
			}
		}
	}
	sort.Strings(paths)
	return paths
}

// requireRoundTrip writes a snapshot, reads it, and writes what was read.
func requireRoundTrip(t require.TestingT, tree *Tree, cfg Config) {
	for _, opt := range []SnapshotOptions{{}, {Digest: true}, {LastZxid: true}, {Digest: true, LastZxid: true}} {
		s, err := tree.OpenSnapshot(opt)
		require.NoError(t, err)
		raw := drain(t, s, 1000)
		s.Close()
		got, info, err := ReadSnapshot(bytes.NewReader(raw), cfg, 0, s.Zxid())
		require.NoError(t, err)
		require.NoError(t, got.Check())
		require.Equal(t, withoutUsage(dumpTree(tree)), withoutUsage(dumpTree(got)))
		require.Equal(t, tree.Digest(), got.Digest())
		require.Equal(t, tree.LastZxid(), got.LastZxid())
		require.Equal(t, opt.Digest && tree.LastZxid() > 0, info.HasDigest)
		if info.HasDigest {
			require.Equal(t, tree.Digest(), info.Digest)
			require.Equal(t, tree.LastZxid(), info.DigestZxid)
		}
		require.Equal(t, opt.LastZxid, info.HasLastZxid)
		if info.HasLastZxid {
			require.Equal(t, tree.LastZxid(), info.LastZxid)
		}
		if withoutUsage(dumpTree(tree)) == dumpTree(tree) { // else the usage may have been counted anew
			again, err := got.OpenSnapshot(opt)
			require.NoError(t, err)
			require.Equal(t, raw, drain(t, again, 1<<20))
			again.Close()
		}
	}
}

func drain(t require.TestingT, s *Snapshot, budget int) []byte {
	var b []byte
	for done := false; !done; {
		var err error
		b, done, err = s.Next(b, budget)
		require.NoError(t, err)
	}
	return b
}

// TestSnapshotPointInTime applies transactions between the steps of a snapshot: it must be exactly the state in which
// it was opened.
func TestSnapshotPointInTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{ExtendedTypes: true}
		g := newHistory(rt, cfg)
		tree := NewTree(cfg)
		var res Result
		apply := func(max int) {
			for range rapid.IntRange(0, max).Draw(rt, "txns") {
				h, txn := g.next()
				applyEncoded(rt, tree, h, txn, &res)
			}
		}
		apply(40)
		for range rapid.IntRange(1, 3).Draw(rt, "snapshots") {
			want, digest, z := g.m.dump(), tree.Digest(), tree.LastZxid()
			s, err := tree.OpenSnapshot(SnapshotOptions{Digest: true})
			require.NoError(rt, err)
			_, err = tree.OpenSnapshot(SnapshotOptions{})
			require.ErrorIs(rt, err, ErrSnapshotOpen)
			var raw []byte
			done := false
			abandon := rapid.IntRange(0, 60).Draw(rt, "abandon")
			for i := 0; !done && i < abandon; i++ {
				apply(5)
				require.NoError(rt, tree.Check())
				raw, done, err = s.Next(raw, rapid.SampledFrom([]int{1, 50, 300, 100_000}).Draw(rt, "budget"))
				require.NoError(rt, err)
			}
			if done {
				got, info, err := ReadSnapshot(bytes.NewReader(raw), cfg, 0, s.Zxid())
				require.NoError(rt, err)
				require.NoError(rt, got.Check())
				require.Equal(rt, withoutUsage(want), withoutUsage(dumpTree(got)))
				require.Equal(rt, digest, got.Digest())
				require.Equal(rt, z, s.Zxid())
				if z > 0 {
					require.Equal(rt, digest, info.Digest)
				}
			}
			s.Close()
			s.Close()
			apply(20)
			require.NoError(rt, tree.Check())
			require.Equal(rt, g.m.dump(), dumpTree(tree))
		}
	})
}

// fuzzyWriter writes a snapshot as Apache does, while transactions go on: the sessions first, then the ACLs, then each
// node with its list of children; the children, as far as they still exist, follow later.
type fuzzyWriter struct {
	g     *history
	apply func()
	ids   map[string]int64
	last  int64
	nodes []fuzzyNode
}

type fuzzyNode struct {
	path string
	node modelNode
	acl  int64
}

// id gives each list a number that is never used for another one, and forgets lists that no node has.
func (w *fuzzyWriter) id(acl []wire.ACL) int64 {
	if acl == nil || isOpen(acl) {
		return aclOpenID
	}
	used := make(map[string]bool)
	for _, n := range w.g.m.nodes {
		used[aclText(n.acl)] = true
	}
	for key := range w.ids {
		if !used[key] {
			delete(w.ids, key)
		}
	}
	key := aclText(acl)
	if w.ids[key] == 0 {
		w.last++
		w.ids[key] = w.last
	}
	return w.ids[key]
}

func aclText(acl []wire.ACL) string {
	var a aclTable
	return string(a.keyOf(acl))
}

func (w *fuzzyWriter) walk(path string) {
	w.apply()
	n, ok := w.g.m.nodes[path]
	if !ok {
		return
	}
	w.nodes = append(w.nodes, fuzzyNode{path, *n, w.id(n.acl)})
	for _, c := range w.g.m.children(path) {
		w.walk(path + "/" + c)
	}
}

// TestFuzzySnapshotConverges loads snapshots of the kind that Apache writes and replays the log from the zxid in the
// name: all of it must be as in the tree that just went on, and the digest from the end of the snapshot on.
func TestFuzzySnapshotConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{ExtendedTypes: true}
		g := newHistory(rt, cfg)
		g.bodyless = false // those do not tell which parents they change: the reason why they got a body
		type record struct {
			h      TxnHeader
			txn    Txn
			digest uint64
		}
		var log []record
		apply := func(max int) func() {
			return func() {
				for range rapid.IntRange(0, max).Draw(rt, "txns") {
					h, txn := g.next()
					log = append(log, record{h, txn, g.m.digest()})
				}
			}
		}
		apply(30)()
		w := &fuzzyWriter{g: g, apply: apply(3), ids: make(map[string]int64)}
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
		trusted := g.m.zxid
		apply(10)()

		tree, info, err := ReadSnapshot(bytes.NewReader(raw), cfg, 0, start)
		require.NoError(rt, err)
		require.Equal(rt, len(w.nodes), info.Nodes)
		var res Result
		for _, r := range log {
			if r.h.Zxid > start {
				applyEncoded(rt, tree, r.h, r.txn, &res)
				if r.h.Zxid >= trusted {
					require.Equal(rt, r.digest, tree.Digest(), "after %v", r.h.Zxid)
				}
			}
		}
		require.NoError(rt, tree.Check())
		require.Equal(rt, withoutUsage(g.m.dump()), withoutUsage(dumpTree(tree)))
		require.Equal(rt, g.m.digest(), tree.Digest())
		require.Empty(rt, tree.Orphans())
	})
}
