package znode

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"sort"
	"strings"

	"zabra/wire"
	"zabra/zab/zxid"
)

// modelNode is a node of the naive model.
type modelNode struct {
	data []byte
	acl  []wire.ACL
	st   StoredStat
}

// model is the tree as the documentation describes it: a map of paths. The root's path is "".
type model struct {
	cfg      Config
	nodes    map[string]*modelNode
	sessions map[zxid.SessionID]int32
	zxid     zxid.Zxid
}

func newModel(cfg Config) *model {
	m := &model{cfg: cfg, nodes: make(map[string]*modelNode), sessions: make(map[zxid.SessionID]int32)}
	for _, p := range []string{"", ZookeeperPath, QuotaPath} {
		m.nodes[p] = &modelNode{data: []byte{}, acl: wire.OpenACL}
	}
	m.nodes[ConfigPath] = &modelNode{data: []byte{}, acl: wire.ReadACL, st: StoredStat{AVersion: -1}}
	return m
}

func (m *model) clone() *model {
	c := &model{cfg: m.cfg, nodes: make(map[string]*modelNode, len(m.nodes)), sessions: make(map[zxid.SessionID]int32), zxid: m.zxid}
	for p, n := range m.nodes {
		copied := *n
		c.nodes[p] = &copied
	}
	for s, ms := range m.sessions {
		c.sessions[s] = ms
	}
	return c
}

func modelPath(path []byte) string {
	if string(path) == "/" {
		return ""
	}
	return string(path)
}

func modelParent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

func (m *model) children(path string) []string {
	var names []string
	for p := range m.nodes {
		if p != "" && modelParent(p) == path {
			names = append(names, p[len(path)+1:])
		}
	}
	sort.Strings(names)
	return names
}

func (m *model) subtree(path string) []string {
	var paths []string
	for p := range m.nodes {
		if p == path || strings.HasPrefix(p, path+"/") {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	return paths
}

func (m *model) ephemerals(s zxid.SessionID) []string {
	var paths []string
	for p, n := range m.nodes {
		if n.st.Owner == int64(s) && n.st.Kind(&m.cfg) == KindEphemeral {
			paths = append(paths, p)
		}
	}
	sort.Strings(paths)
	return paths
}

// stat is what clients see.
func (m *model) stat(path string) wire.Stat {
	n := m.nodes[path]
	children := int32(len(m.children(path)))
	s := wire.Stat{
		Czxid: n.st.Czxid, Mzxid: n.st.Mzxid, Ctime: n.st.Ctime, Mtime: n.st.Mtime,
		Version: n.st.Version, CVersion: 2*n.st.CVersion - children, AVersion: n.st.AVersion,
		DataLength: int32(len(n.data)), NumChildren: children, Pzxid: n.st.Pzxid,
	}
	if n.st.Owner != 0 && n.st.Kind(&m.cfg) == KindEphemeral {
		s.EphemeralOwner = zxid.SessionID(n.st.Owner)
	}
	return s
}

// digest recomputes the tree's digest from the text of the rule.
func (m *model) digest() uint64 {
	var sum uint64
	for p, n := range m.nodes {
		if strings.HasPrefix(p, "/zookeeper/") {
			continue
		}
		var b bytes.Buffer
		b.WriteString(p)
		b.Write(n.data)
		for _, v := range []int64{int64(n.st.Czxid), int64(n.st.Mzxid), int64(n.st.Pzxid), n.st.Ctime, n.st.Mtime} {
			fmt.Fprintf(&b, "%s", be(uint64(v), 8))
		}
		for _, v := range []int32{n.st.Version, n.st.CVersion, n.st.AVersion} {
			fmt.Fprintf(&b, "%s", be(uint64(uint32(v)), 4))
		}
		fmt.Fprintf(&b, "%s", be(uint64(n.st.Owner), 8))
		sum += uint64(crc32.ChecksumIEEE(b.Bytes()))
	}
	return sum
}

func be(v uint64, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[size-1-i] = byte(v >> (8 * i))
	}
	return b
}

// apply is for transactions that a server has checked: they do not fail.
func (m *model) apply(h *TxnHeader, t *Txn) {
	if t.Type == wire.OpMulti {
		failed := false
		for i := range t.Multi {
			failed = failed || t.Multi[i].Type == wire.OpError
		}
		for i := range t.Multi {
			if !failed {
				m.applyOp(h, &t.Multi[i])
			}
		}
	} else {
		m.applyOp(h, t)
	}
	m.zxid = max(m.zxid, h.Zxid)
}

func (m *model) applyOp(h *TxnHeader, t *Txn) {
	path := modelPath(t.Path)
	switch t.Type {
	case wire.OpCreate, wire.OpCreate2:
		owner := int64(0)
		if t.Ephemeral {
			owner = int64(h.ClientID)
		}
		m.create(h, t, path, owner)
	case wire.OpCreateContainer:
		m.create(h, t, path, OwnerContainer)
	case wire.OpCreateTTL:
		m.create(h, t, path, OwnerTTL(t.TTL))
	case wire.OpDelete, wire.OpDeleteContainer:
		m.delete(path, h.Zxid)
	case wire.OpSetData, wire.OpReconfig:
		n := m.nodes[path]
		delta := len(t.Data) - len(n.data)
		n.data, n.st.Version, n.st.Mzxid, n.st.Mtime = t.Data, t.Version, h.Zxid, h.Time
		m.quota(path, 0, delta)
	case wire.OpSetACL:
		n := m.nodes[path]
		n.acl, n.st.AVersion = t.ACL, t.Version
		if t.ACL == nil {
			n.acl = wire.OpenACL
		}
	case wire.OpCreateSession:
		m.sessions[h.ClientID] = t.Timeout
	case wire.OpCloseSession:
		for _, p := range m.ephemerals(h.ClientID) {
			m.delete(p, h.Zxid)
		}
		delete(m.sessions, h.ClientID)
	}
}

func (m *model) create(h *TxnHeader, t *Txn, path string, owner int64) {
	parent := m.nodes[modelParent(path)]
	parent.st.CVersion++
	parent.st.Pzxid = h.Zxid
	m.nodes[path] = &modelNode{data: t.Data, acl: t.ACL, st: StoredStat{
		Czxid: h.Zxid, Mzxid: h.Zxid, Pzxid: h.Zxid, Ctime: h.Time, Mtime: h.Time, Owner: owner,
	}}
	if t.ACL == nil {
		m.nodes[path].acl = wire.OpenACL
	}
	if prefix, ok := modelQuota(path, "/zookeeper_stats"); ok {
		count, size := 0, 0
		for _, p := range m.subtree(prefix) {
			count++
			size += len(m.nodes[p].data)
		}
		m.nodes[path].data = fmt.Appendf(nil, "count=%d,bytes=%d", count, size)
	}
	m.quota(path, 1, len(t.Data))
}

func (m *model) delete(path string, z zxid.Zxid) {
	n := m.nodes[path]
	delete(m.nodes, path)
	m.nodes[modelParent(path)].st.Pzxid = z
	m.quota(path, -1, -len(n.data))
}

func modelQuota(path, name string) (string, bool) {
	prefix, ok := strings.CutPrefix(path, QuotaPath)
	if !ok {
		return "", false
	}
	prefix, ok = strings.CutSuffix(prefix, name)
	return prefix, ok && prefix != ""
}

// quota rewrites the usage of the deepest prefix that has limits.
func (m *model) quota(path string, count, size int) {
	for p := path; p != ""; p = modelParent(p) {
		if m.nodes[QuotaPath+p+"/zookeeper_limits"] == nil {
			continue
		}
		if stats := m.nodes[QuotaPath+p+"/zookeeper_stats"]; stats != nil {
			var c, b int
			if _, err := fmt.Sscanf(string(stats.data), "count=%d,bytes=%d", &c, &b); err == nil {
				stats.data = fmt.Appendf(nil, "count=%d,bytes=%d", c+count, b+size)
			}
		}
		return
	}
}

// dump renders everything that counts of a tree, so that two can be compared.
func (m *model) dump() string {
	var lines []string
	for p, n := range m.nodes {
		lines = append(lines, dumpLine(p, n.data, n.acl, &n.st, m.stat(p)))
	}
	for s, ms := range m.sessions {
		lines = append(lines, fmt.Sprintf("session %v %d", s, ms))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func dumpTree(t *Tree) string {
	var lines []string
	for id := rootNode; id != noNode; id = t.nextBelow(rootNode, id) {
		path := string(t.AppendPath(nil, id))
		st := t.Stored(id)
		lines = append(lines, dumpLine(strings.TrimSuffix(path, "/"), t.Data(id), t.ACL(id).Entries(), &st, t.Stat(id)))
	}
	t.VisitSessions(func(s zxid.SessionID, ms int32) bool {
		lines = append(lines, fmt.Sprintf("session %v %d", s, ms))
		return true
	})
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func dumpLine(path string, data []byte, acl []wire.ACL, st *StoredStat, seen wire.Stat) string {
	text := fmt.Sprintf("%q", data)
	if data == nil {
		text = "null"
	}
	if len(text) > 80 {
		text = fmt.Sprintf("%d bytes with CRC %#x", len(data), crc32.ChecksumIEEE(data))
	}
	return fmt.Sprintf("%q %s %v %+v children %d cversion %d owner %v length %d", path, text, acl, *st,
		seen.NumChildren, seen.CVersion, seen.EphemeralOwner, seen.DataLength)
}
