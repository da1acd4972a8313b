package znode

import (
	"bytes"
	"fmt"
	"sort"
	"strings"

	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
	"zabra/wire"
	"zabra/zab/zxid"
)

// history makes random transactions as a server would that has checked them against the model.
type history struct {
	rt *rapid.T
	m  *model
	// bodyless lets closeSession transactions come without paths, as old servers wrote them.
	bodyless bool
	now      int64
}

func newHistory(rt *rapid.T, cfg Config) *history {
	return &history{rt: rt, m: newModel(cfg), bodyless: true, now: 1_700_000_000_000}
}

var testACLs = [][]wire.ACL{
	wire.OpenACL,
	nil,
	wire.ReadACL,
	{{Perms: 31, Scheme: "digest", ID: "bob:hash"}},
	{{Perms: 31, Scheme: "digest", ID: "bob:hash"}, {Perms: 1, Scheme: "world", ID: "anyone"}},
	{{Perms: 3, Scheme: "ip", ID: "10.0.0.0/8"}},
	{},
}

var testSessions = []zxid.SessionID{0x100000000000001, 0x200000000000002, 3, -0x100000000000000}

func (g *history) draw(n int, label string) int { return rapid.IntRange(0, n-1).Draw(g.rt, label) }

// next makes a transaction and applies it to the model.
func (g *history) next() (TxnHeader, Txn) {
	h := TxnHeader{Zxid: g.m.zxid + 1, Cxid: int32(g.draw(100, "cxid"))}
	if g.draw(40, "epoch") == 0 {
		h.Zxid = zxid.Make(g.m.zxid.Epoch()+1, 1)
	}
	g.now += int64(g.draw(500, "ms"))
	h.Time = g.now
	t := g.op(&h)
	h.Type = t.Type
	g.m.apply(&h, &t)
	return h, t
}

func (g *history) op(h *TxnHeader) Txn {
	switch k := g.draw(20, "op"); k {
	case 0:
		h.ClientID = g.session()
		return Txn{Type: wire.OpCreateSession, Timeout: int32(1000 * (1 + g.draw(30, "timeout")))}
	case 1:
		if len(g.m.sessions) == 0 {
			return Txn{Type: wire.OpError, Err: wire.CodeSessionExpired}
		}
		h.ClientID = g.liveSession()
		return g.closeSession(h.ClientID)
	case 2:
		return Txn{Type: wire.OpError, Err: wire.CodeNoNode}
	case 3, 4:
		return g.multi(h)
	default:
		return g.nodeOp(h)
	}
}

func (g *history) session() zxid.SessionID { return testSessions[g.draw(len(testSessions), "session")] }

func (g *history) liveSession() zxid.SessionID {
	var live []zxid.SessionID
	for s := range g.m.sessions {
		live = append(live, s)
	}
	sort.Slice(live, func(i, j int) bool { return live[i] < live[j] })
	return live[g.draw(len(live), "session")]
}

func (g *history) closeSession(s zxid.SessionID) Txn {
	t := Txn{Type: wire.OpCloseSession}
	if g.bodyless && g.draw(3, "body") == 0 {
		return t
	}
	t.HasPaths = true
	for _, p := range g.m.ephemerals(s) {
		t.Paths = append(t.Paths, []byte(p))
	}
	return t
}

// multi makes its operations one after the other, each for the tree that the ones before it leave.
func (g *history) multi(h *TxnHeader) Txn {
	t := Txn{Type: wire.OpMulti}
	before := g.m.clone()
	for n := g.draw(5, "ops"); n > 0; n-- {
		op := g.nodeOp(h)
		if op.Type == wire.OpSetACL || op.Type == wire.OpReconfig || op.Type == wire.OpDeleteContainer {
			op = Txn{Type: wire.OpCheck, Path: op.Path, Version: 1}
		}
		g.m.applyOp(h, &op)
		t.Multi = append(t.Multi, op)
	}
	g.m = before
	if n := len(t.Multi); n > 0 && g.draw(4, "fails") == 0 {
		failed := g.draw(n, "failed")
		t.Multi[failed] = Txn{Type: wire.OpError, Err: wire.CodeBadVersion}
		for i := failed + 1; i < n; i++ {
			t.Multi[i] = Txn{Type: wire.OpError, Err: wire.CodeRuntimeInconsistency}
		}
	}
	return t
}

func (g *history) nodeOp(h *TxnHeader) Txn {
	switch k := g.draw(12, "node op"); {
	case k < 5:
		return g.create(h)
	case k < 8:
		if p, ok := g.leaf(); ok {
			typ := wire.OpDelete
			if g.draw(5, "reaped") == 0 {
				typ = wire.OpDeleteContainer
			}
			return Txn{Type: typ, Path: []byte(p)}
		}
		return g.create(h)
	case k < 10:
		p := g.node()
		return Txn{Type: wire.OpSetData, Path: publicPath(p), Data: g.data(), Version: g.m.nodes[p].st.Version + 1}
	case k < 11:
		p := g.node()
		return Txn{Type: wire.OpSetACL, Path: publicPath(p), ACL: g.acl(), Version: g.m.nodes[p].st.AVersion + 1}
	default:
		return Txn{Type: wire.OpReconfig, Path: []byte(ConfigPath), Data: g.data(), Version: -1}
	}
}

func publicPath(p string) []byte {
	if p == "" {
		return []byte("/")
	}
	return []byte(p)
}

func (g *history) create(h *TxnHeader) Txn {
	parent := g.parent()
	names := []string{"a", "b", "c", "name-0000000001", "ünïcode", strings.Repeat("long", 50)}
	if belowPath([]byte(parent), QuotaPath) {
		names = []string{"a", quotaLimitsName, quotaStatsName, quotaLimitsName, quotaStatsName}
	}
	path := parent + "/" + names[g.draw(len(names), "name")]
	for g.m.nodes[path] != nil {
		path += "x"
	}
	t := Txn{Path: []byte(path), Data: g.data(), ACL: g.acl(), ParentCVersion: g.m.nodes[parent].st.CVersion + 1}
	switch k := g.draw(8, "kind"); {
	case k < 3:
		t.Type = wire.OpCreate
	case k == 3:
		t.Type = wire.OpCreate2
	case k == 4:
		t.Type = wire.OpCreateContainer
	case k == 5:
		t.Type, t.TTL = wire.OpCreateTTL, int64(1+g.draw(5000, "ttl"))
	default:
		t.Type = wire.OpCreate2
		if k == 6 {
			t.Type = wire.OpCreate
		}
		// The order in which a session's nodes go is unspecified; a quota that is one of them would make it count.
		if len(g.m.sessions) > 0 && !belowPath([]byte(parent), QuotaPath) {
			t.Ephemeral, h.ClientID = true, g.multiSession(h)
		}
	}
	return t
}

// multiSession keeps one session for all of a multi.
func (g *history) multiSession(h *TxnHeader) zxid.SessionID {
	if _, ok := g.m.sessions[h.ClientID]; ok {
		return h.ClientID
	}
	return g.liveSession()
}

func (g *history) paths(keep func(p string, n *modelNode) bool) []string {
	var paths []string
	for p, n := range g.m.nodes {
		if keep(p, n) {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	return paths
}

func (g *history) parent() string {
	paths := g.paths(func(p string, n *modelNode) bool {
		return n.st.Kind(&g.m.cfg) != KindEphemeral && strings.Count(p, "/") < 5 && p != ConfigPath &&
			!strings.Contains(p, quotaLimitsName) && !strings.Contains(p, quotaStatsName)
	})
	return paths[g.draw(len(paths), "parent")]
}

// node is any whose data mean nothing.
func (g *history) node() string {
	paths := g.paths(func(p string, _ *modelNode) bool {
		return !strings.HasSuffix(p, quotaLimitsName) && !strings.HasSuffix(p, quotaStatsName)
	})
	return paths[g.draw(len(paths), "node")]
}

func (g *history) leaf() (string, bool) {
	paths := g.paths(func(p string, _ *modelNode) bool { return !ReservedPath(publicPath(p)) && len(g.m.children(p)) == 0 })
	if len(paths) == 0 {
		return "", false
	}
	return paths[g.draw(len(paths), "leaf")], true
}

func (g *history) acl() []wire.ACL { return testACLs[g.draw(len(testACLs), "acl")] }

func (g *history) data() []byte {
	switch k := g.draw(12, "data"); k {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return bytes.Repeat([]byte{'L'}, 30_000+g.draw(20_000, "large"))
	case 3:
		return bytes.Repeat([]byte{'M'}, 100+g.draw(3000, "medium"))
	default:
		return fmt.Appendf(nil, "data-%0*d", g.draw(40, "width"), k)
	}
}

// withoutUsage drops the quota usage from a dump: it is counted anew at each load, while the live one tells what
// happened since it was switched on.
func withoutUsage(dump string) string {
	var lines []string
	for _, l := range strings.Split(dump, "\n") {
		if !strings.Contains(l, quotaStatsName) {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}
