package sim

import (
	"slices"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// ghost is what is true, as nobody inside the world knows it: every transaction that was ever proposed, the sequence of
// those that are committed, the state that follows from it, and what is durable on each disk.
type ghost struct {
	w *world
	// txns are all transactions that any server has handed to its disk or sent.
	txns map[zxid.Zxid]*txn
	// committed is G: what a leader has counted as committed, in order.
	committed []*txn
	// tree is the state after the last committed transaction, made by nothing but applying.
	tree  *znode.Tree
	paths map[string]*pathHistory
	// sessions are those that a committed transaction has created.
	sessions map[zxid.SessionID]*sessionHistory
	// leaders says who has the right to propose in an epoch, initial the last transaction of that leader's history at
	// the time.
	leaders map[zxid.Epoch]leadership
	// lastSequence is the highest number of a sequential name.
	lastSequence int
	scratch      struct {
		h   znode.TxnHeader
		txn znode.Txn
		res znode.Result
	}
}

// txn is a transaction.
type txn struct {
	z, pred   zxid.Zxid
	hash      uint64
	digest    uint64
	hasDigest bool
	session   zxid.SessionID
	cxid      int32
	op        wire.Op
	origin    zab.Origin
	payload   []byte
	// place is where it stands among the committed ones, from 1; 0 while it is not committed.
	place int
	// by is the epoch of the leader that committed it.
	by zxid.Epoch
	at Micros
}

// leadership is the reign of one server in one epoch.
type leadership struct {
	server     zxid.ServerID
	life       uint32
	generation uint32
	initial    zxid.Zxid
}

// sessionHistory is the life of a session.
type sessionHistory struct {
	born, died zxid.Zxid // 0 while it lives
	diedAt     Micros
	timeoutMs  int32
	// owners are the connections from which its transactions came, in order; none may come back after another.
	owners []connKey
}

// connKey names a client's connection. Servers never use a number twice.
type connKey struct {
	server zxid.ServerID
	conn   uint64
}

// pathHistory is what became of a path.
type pathHistory struct {
	changes []pathChange
	// children is the sum of the hashes of the names of the children that it has now.
	children uint64
}

// pathChange is the state of a path from a transaction on.
type pathChange struct {
	z        zxid.Zxid
	kinds    changeKind
	exists   bool
	stat     wire.Stat
	data     uint64
	children uint64
}

// changeKind is a set of what happened to a path, as watches tell it apart.
type changeKind uint8

const (
	changeCreated changeKind = 1 << iota
	changeDeleted
	changeData
	changeChildren
)

func (g *ghost) init(w *world) {
	g.w = w
	g.txns = map[zxid.Zxid]*txn{}
	g.tree = znode.NewTree(w.treeConfig)
	g.paths = map[string]*pathHistory{}
	g.sessions = map[zxid.SessionID]*sessionHistory{}
	g.leaders = map[zxid.Epoch]leadership{}
	g.lastSequence = -1
}

// hashBytes is FNV-1a: the same in every run.
func hashBytes(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

// last is the last committed transaction, 0 if there is none.
func (g *ghost) last() zxid.Zxid {
	if n := len(g.committed); n > 0 {
		return g.committed[n-1].z
	}
	return 0
}

// isCommitted reports whether z is in G, or the beginning of everything.
func (g *ghost) isCommitted(z zxid.Zxid) bool {
	t := g.txns[z]
	return z == 0 || t != nil && t.place > 0
}

// see takes note of a transaction behind pred, as a server has it in its hands.
func (g *ghost) see(s *server, e *zab.Entry, pred zxid.Zxid) *txn {
	hash := hashBytes(e.Payload)
	t := g.txns[e.Zxid]
	if t != nil {
		g.checkSame(s, t, hash, pred)
		return t
	}
	t = &txn{z: e.Zxid, pred: pred, hash: hash, origin: e.Origin, payload: e.Payload, at: g.w.queue.now}
	sc := &g.scratch
	digest, has, err := znode.DecodeTxn(e.Payload, fieldBytesMax, &sc.h, &sc.txn)
	if err != nil {
		g.w.fail("E-05", "s%d has a transaction %v that cannot be read: %v", s.id, e.Zxid, err)
	}
	t.digest, t.hasDigest = digest.Value, has
	t.session, t.cxid, t.op = sc.h.ClientID, sc.h.Cxid, sc.h.Type
	g.checkProposed(s, t, sc.h.Zxid)
	g.txns[e.Zxid] = t
	return t
}

// commitUpTo enters everything up to z into G: leader has counted it as committed.
func (g *ghost) commitUpTo(s *server, z zxid.Zxid, epoch zxid.Epoch) {
	last := g.last()
	if z <= last {
		if !g.isCommitted(z) {
			g.w.fail("E-15", "s%d counts %v as committed, which is not among what is committed up to %v", s.id, z, last)
		}
		return
	}
	var chain []*txn
	for at := z; at != last; {
		t := g.txns[at]
		if t == nil || t.pred < last || at < last {
			g.w.fail("E-15", "s%d counts %v as committed, which does not continue the committed history that ends at %v", s.id, z, last)
		}
		chain = append(chain, t)
		at = t.pred
	}
	g.checkCommitQuorum(s, z)
	for _, t := range slices.Backward(chain) {
		t.place, t.by = len(g.committed)+1, epoch
		g.committed = append(g.committed, t)
		g.apply(t)
	}
	g.w.checkRecoverable()
}

// apply moves the state on and takes note of what the transaction changed.
func (g *ghost) apply(t *txn) {
	sc := &g.scratch
	if _, _, err := znode.DecodeTxn(t.payload, fieldBytesMax, &sc.h, &sc.txn); err != nil {
		panic(err)
	}
	g.w.count.Txns++
	g.checkSession(t)
	g.checkRequest(t, &sc.txn)
	var ended []string
	if t.op == wire.OpCloseSession {
		g.tree.VisitEphemerals(t.session, func(path []byte) bool {
			ended = append(ended, string(path))
			return true
		})
	}
	g.tree.Apply(&sc.h, &sc.txn, &sc.res)
	if t.hasDigest && g.tree.Digest() != t.digest {
		g.w.fail("E-27", "transaction %v leads to the digest %#x, and carries %#x", t.z, g.tree.Digest(), t.digest)
	}
	g.applied(t, &sc.txn, ended)
}

// applied takes note of changed paths, sessions and names.
func (g *ghost) applied(t *txn, body *znode.Txn, ended []string) {
	switch t.op {
	case wire.OpCreateSession:
		g.sessions[t.session] = &sessionHistory{born: t.z, timeoutMs: body.Timeout}
	case wire.OpCloseSession:
		if s := g.sessions[t.session]; s != nil {
			s.died, s.diedAt = t.z, t.at
		}
		for _, p := range ended {
			g.deleted(t, p)
		}
		g.w.count.Ephemerals += len(ended)
	case wire.OpError:
		g.w.count.ErrorTxns++
	case wire.OpMulti:
		g.w.count.Multis++
		for i := range body.Multi {
			if body.Multi[i].Type == wire.OpError {
				return // nothing was changed
			}
		}
		for i := range body.Multi {
			g.changed(t, &body.Multi[i])
		}
	default:
		g.changed(t, body)
	}
}

// changed takes note of one operation.
func (g *ghost) changed(t *txn, op *znode.Txn) {
	path := string(op.Path)
	switch op.Type {
	case wire.OpCreate, wire.OpCreate2:
		g.checkSequence(t, path)
		g.record(t, path, changeCreated)
		g.recordParent(t, path, 1)
	case wire.OpDelete:
		g.deleted(t, path)
	case wire.OpSetData:
		g.record(t, path, changeData)
	}
}

func (g *ghost) deleted(t *txn, path string) {
	g.record(t, path, changeDeleted)
	g.recordParent(t, path, -1)
}

func (g *ghost) recordParent(t *txn, path string, sign int) {
	parent, name := znode.SplitPath([]byte(path))
	h := g.history(string(parent))
	h.children += uint64(sign) * hashBytes(name)
	g.record(t, string(parent), changeChildren)
}

func (g *ghost) history(path string) *pathHistory {
	if path == "" {
		path = "/"
	}
	h := g.paths[path]
	if h == nil {
		h = &pathHistory{}
		g.paths[path] = h
	}
	return h
}

// record notes the state of a path after a transaction. The state is that after all of a multi, which nobody can look
// into.
func (g *ghost) record(t *txn, path string, kind changeKind) {
	h := g.history(path)
	c := pathChange{z: t.z, kinds: kind, children: h.children}
	if id, ok := g.tree.Find([]byte(path)); ok {
		c.exists, c.stat, c.data = true, g.tree.Stat(id), hashBytes(g.tree.Data(id))
	}
	if n := len(h.changes); n > 0 && h.changes[n-1].z == t.z {
		c.kinds |= h.changes[n-1].kinds
		h.changes[n-1] = c
		return
	}
	h.changes = append(h.changes, c)
}

// at returns the state of a path after transaction z.
func (g *ghost) at(path string, z zxid.Zxid) pathChange {
	h := g.paths[path]
	if h == nil {
		return pathChange{}
	}
	if i := h.upTo(z); i > 0 {
		return h.changes[i-1]
	}
	return pathChange{}
}

// upTo returns how many changes there are up to z.
func (h *pathHistory) upTo(z zxid.Zxid) int {
	i, found := slices.BinarySearchFunc(h.changes, z, func(c pathChange, z zxid.Zxid) int { return int(min(max(c.z-z, -1), 1)) })
	if found {
		i++
	}
	return i
}

// firstAfter returns the first change behind after of one of some kinds.
func (g *ghost) firstAfter(path string, after zxid.Zxid, kinds changeKind) (pathChange, bool) {
	h := g.paths[path]
	if h == nil {
		return pathChange{}, false
	}
	for _, c := range h.changes[h.upTo(after):] {
		if c.kinds&kinds != 0 {
			return c, true
		}
	}
	return pathChange{}, false
}
