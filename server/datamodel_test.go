package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// dataModel is what a server's data must be after a list of transactions: a map of paths, as naive as possible. The root's
// path is "". Unlike a server that replays its log it forgives nothing: a transaction that does not fit the state is an
// error.
type dataModel struct {
	nodes    map[string]*dataNode
	sessions map[zxid.SessionID]int32
	last     zxid.Zxid
}

type dataNode struct {
	data     []byte
	acl      []wire.ACL
	st       znode.StoredStat
	children int32
}

// applied is what a transaction did: the header, the record, and for each operation (one, unless it is a multi) the
// node's stat right after it.
type applied struct {
	h     znode.TxnHeader
	txn   znode.Txn
	stats []wire.Stat
	// sequences are the parents' counters before each create.
	sequences []int32
}

// Of many nodes the digest is compared after each so many transactions: it is computed anew each time.
const (
	nodesFew    = 150
	digestEvery = 50
)

func newDataModel() *dataModel {
	m := &dataModel{nodes: map[string]*dataNode{}, sessions: map[zxid.SessionID]int32{}}
	m.nodes[""] = &dataNode{data: []byte{}, acl: wire.OpenACL, children: 1}
	m.nodes["/zookeeper"] = &dataNode{data: []byte{}, acl: wire.OpenACL, children: 2}
	m.nodes["/zookeeper/quota"] = &dataNode{data: []byte{}, acl: wire.OpenACL}
	m.nodes["/zookeeper/config"] = &dataNode{data: []byte{}, acl: wire.ReadACL, st: znode.StoredStat{AVersion: -1}}
	return m
}

// replayed returns the state after transactions from the first on.
func replayed(payloads [][]byte) (*dataModel, error) {
	m := newDataModel()
	return m, m.replay(payloads)
}

func (m *dataModel) replay(payloads [][]byte) error {
	for _, p := range payloads {
		if _, err := m.apply(p); err != nil {
			return err
		}
	}
	return nil
}

func (m *dataModel) clone() *dataModel {
	c := &dataModel{nodes: make(map[string]*dataNode, len(m.nodes)), sessions: make(map[zxid.SessionID]int32, len(m.sessions)), last: m.last}
	for p, n := range m.nodes {
		copied := *n
		c.nodes[p] = &copied
	}
	for s, ms := range m.sessions {
		c.sessions[s] = ms
	}
	return c
}

// paths returns the paths of all nodes, in order.
func (m *dataModel) paths() []string {
	paths := make([]string, 0, len(m.nodes))
	for p := range m.nodes {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

func (m *dataModel) children(path string) []string {
	names := []string{}
	for p := range m.nodes {
		if name, ok := strings.CutPrefix(p, path+"/"); ok && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *dataModel) ephemerals(s zxid.SessionID) []string {
	paths := []string{}
	for p, n := range m.nodes {
		if s != 0 && n.st.Owner == int64(s) {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// stat is a node's as clients see it.
func (m *dataModel) stat(path string) wire.Stat {
	n := m.nodes[path]
	st := wire.Stat{
		Czxid: n.st.Czxid, Mzxid: n.st.Mzxid, Ctime: n.st.Ctime, Mtime: n.st.Mtime, Version: n.st.Version,
		CVersion: 2*n.st.CVersion - n.children, AVersion: n.st.AVersion, DataLength: int32(len(n.data)),
		NumChildren: n.children, Pzxid: n.st.Pzxid,
	}
	if n.st.Owner > 0 { // those of containers and TTL nodes are negative
		st.EphemeralOwner = zxid.SessionID(n.st.Owner)
	}
	return st
}

// digest is the sum of the nodes' checksums, by the text of the rule.
func (m *dataModel) digest() (sum uint64) {
	var b []byte
	for p, n := range m.nodes {
		if strings.HasPrefix(p, "/zookeeper/") {
			continue
		}
		b = append(append(b[:0], p...), n.data...)
		for _, v := range []int64{int64(n.st.Czxid), int64(n.st.Mzxid), int64(n.st.Pzxid), n.st.Ctime, n.st.Mtime} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
		for _, v := range []int32{n.st.Version, n.st.CVersion, n.st.AVersion} {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
		b = binary.BigEndian.AppendUint64(b, uint64(n.st.Owner))
		sum += uint64(crc32.ChecksumIEEE(b))
	}
	return sum
}

// apply carries out the next transaction, all of it or nothing.
func (m *dataModel) apply(payload []byte) (*applied, error) {
	a := &applied{}
	digest, hasDigest, err := znode.DecodeTxn(payload, jute.FieldBytesMaxDefault, &a.h, &a.txn)
	if err != nil {
		return nil, err
	}
	if a.h.Zxid != m.last+1 {
		return nil, fmt.Errorf("transaction %v comes after %v", a.h.Zxid, m.last)
	}
	ops := []znode.Txn{a.txn}
	if a.txn.Type == wire.OpMulti {
		ops = a.txn.Multi
		if slices.ContainsFunc(ops, func(t znode.Txn) bool { return t.Type == wire.OpError }) {
			ops = nil
		}
	}
	for i := range ops {
		if err := m.applyOp(a, &ops[i]); err != nil {
			return nil, fmt.Errorf("transaction %v, operation %d (%v %s): %w", a.h.Zxid, i, ops[i].Type, ops[i].Path, err)
		}
	}
	m.last = a.h.Zxid
	if hasDigest && (len(m.nodes) < nodesFew || m.last%digestEvery == 0) {
		if got := m.digest(); got != digest.Value {
			return nil, fmt.Errorf("transaction %v: its digest is %#x, that of the state after it %#x", a.h.Zxid, digest.Value, got)
		}
	}
	return a, nil
}

func (m *dataModel) applyOp(a *applied, t *znode.Txn) error {
	path := strings.TrimSuffix(string(t.Path), "/")
	node := m.nodes[path]
	stat := wire.Stat{}
	sequence := int32(-1)
	var err error
	switch t.Type {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		if sequence, err = m.create(a, t, path); err == nil {
			stat = m.stat(path)
		}
	case wire.OpDelete, wire.OpDeleteContainer:
		err = m.delete(path, a.h.Zxid)
	case wire.OpSetData:
		if node == nil || t.Version != node.st.Version+1 {
			return fmt.Errorf("no such node, or version %d is not the next one", t.Version)
		}
		node.data, node.st.Version, node.st.Mzxid, node.st.Mtime = t.Data, t.Version, a.h.Zxid, a.h.Time
		stat = m.stat(path)
	case wire.OpSetACL:
		if node == nil || t.Version != node.st.AVersion+1 {
			return fmt.Errorf("no such node, or version %d is not the next one", t.Version)
		}
		node.acl, node.st.AVersion = t.ACL, t.Version
		stat = m.stat(path)
	case wire.OpCheck:
		if node == nil || t.Version != 0 && t.Version != node.st.Version+1 {
			return fmt.Errorf("no such node, or version %d is not its own", t.Version-1)
		}
	case wire.OpCreateSession:
		if _, ok := m.sessions[a.h.ClientID]; ok {
			return fmt.Errorf("session %v exists", a.h.ClientID)
		}
		m.sessions[a.h.ClientID] = t.Timeout
	case wire.OpCloseSession:
		err = m.closeSession(a.h.ClientID, a.h.Zxid, t)
	case wire.OpError:
	default:
		return fmt.Errorf("unexpected")
	}
	a.stats, a.sequences = append(a.stats, stat), append(a.sequences, sequence)
	return err
}

func (m *dataModel) create(a *applied, t *znode.Txn, path string) (sequence int32, err error) {
	parent := m.nodes[path[:max(strings.LastIndexByte(path, '/'), 0)]]
	if parent == nil || m.nodes[path] != nil {
		return 0, fmt.Errorf("no parent, or the node exists")
	}
	if sequence = parent.st.CVersion; t.ParentCVersion != sequence+1 {
		return 0, fmt.Errorf("child number %d, but the parent had %d", t.ParentCVersion, sequence)
	}
	parent.st.CVersion, parent.st.Pzxid = sequence+1, a.h.Zxid
	parent.children++
	var owner int64
	switch {
	case t.Type == wire.OpCreateContainer:
		owner = znode.OwnerContainer
	case t.Type == wire.OpCreateTTL:
		owner = znode.OwnerTTL(t.TTL)
	case t.Ephemeral:
		if owner = int64(a.h.ClientID); m.sessions[a.h.ClientID] == 0 {
			return 0, fmt.Errorf("the owner %v is no session", a.h.ClientID)
		}
	}
	m.nodes[path] = &dataNode{data: t.Data, acl: t.ACL, st: znode.StoredStat{
		Czxid: a.h.Zxid, Mzxid: a.h.Zxid, Pzxid: a.h.Zxid, Ctime: a.h.Time, Mtime: a.h.Time, Owner: owner,
	}}
	return sequence, nil
}

func (m *dataModel) delete(path string, z zxid.Zxid) error {
	if n := m.nodes[path]; n == nil || n.children > 0 {
		return fmt.Errorf("no such node, or it has children")
	}
	delete(m.nodes, path)
	parent := m.nodes[path[:strings.LastIndexByte(path, '/')]]
	parent.children--
	parent.st.Pzxid = z
	return nil
}

func (m *dataModel) closeSession(s zxid.SessionID, z zxid.Zxid, t *znode.Txn) error {
	if _, ok := m.sessions[s]; !ok {
		return fmt.Errorf("no session %v", s)
	}
	owned := m.ephemerals(s)
	if t.HasPaths {
		named := []string{}
		for _, p := range t.Paths {
			named = append(named, string(p))
		}
		slices.Sort(named)
		if !slices.Equal(named, owned) {
			return fmt.Errorf("it owns %q, the transaction names %q", owned, named)
		}
	}
	for _, p := range owned {
		if err := m.delete(p, z); err != nil {
			return err
		}
	}
	delete(m.sessions, s)
	return nil
}

// diff tells the first difference between the model and a tree that nobody changes meanwhile; nil if there is none.
func (m *dataModel) diff(t *znode.Tree, digests bool) error {
	if t.LastZxid() != m.last {
		return fmt.Errorf("last zxid %v, expected %v", t.LastZxid(), m.last)
	}
	if t.NodeCount() != len(m.nodes) {
		return fmt.Errorf("%d nodes, expected %d", t.NodeCount(), len(m.nodes))
	}
	for _, p := range m.paths() {
		id, ok := t.Find([]byte(p))
		if !ok {
			return fmt.Errorf("%q is missing", p)
		}
		n := m.nodes[p]
		switch {
		case !bytes.Equal(t.Data(id), n.data) || (t.Data(id) == nil) != (n.data == nil):
			return fmt.Errorf("%q: data %.50q, expected %.50q", p, t.Data(id), n.data)
		case t.Stored(id) != n.st:
			return fmt.Errorf("%q: %+v, expected %+v", p, t.Stored(id), n.st)
		case t.Stat(id) != m.stat(p):
			return fmt.Errorf("%q: %+v, expected %+v", p, t.Stat(id), m.stat(p))
		case !slices.Equal(t.ACL(id).Entries(), n.acl):
			return fmt.Errorf("%q: ACL %v, expected %v", p, t.ACL(id).Entries(), n.acl)
		}
	}
	return m.diffSessions(t, digests)
}

func (m *dataModel) diffSessions(t *znode.Tree, digests bool) error {
	if t.SessionCount() != len(m.sessions) {
		return fmt.Errorf("%d sessions, expected %d", t.SessionCount(), len(m.sessions))
	}
	for s, want := range m.sessions {
		if ms, ok := t.SessionTimeout(s); !ok || ms != want {
			return fmt.Errorf("session %v: timeout %d, expected %d", s, ms, want)
		}
		owned := []string{}
		t.VisitEphemerals(s, func(path []byte) bool {
			owned = append(owned, string(path))
			return true
		})
		slices.Sort(owned)
		if want := m.ephemerals(s); !slices.Equal(owned, want) {
			return fmt.Errorf("session %v owns %q, expected %q", s, owned, want)
		}
	}
	if want := m.digest(); digests && t.Digest() != want {
		return fmt.Errorf("digest %#x, expected %#x", t.Digest(), want)
	}
	return nil
}
