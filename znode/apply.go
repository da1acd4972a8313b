package znode

import (
	"fmt"

	"zabra/wire"
	"zabra/zab/zxid"
)

// Result is what a transaction did, as far as a reply needs it.
type Result struct {
	// Code is CodeOK, or why the transaction changed nothing or not all: the code of an error transaction, or what a replay
	// over a newer tree runs into. Of a multi it is the first operation's that failed.
	Code wire.Code
	// Path is the transaction's own, except that the root is always "/".
	Path []byte
	// Stat is the node's right after a create of any kind, setData, setACL or reconfig.
	Stat wire.Stat
	// Ops has one entry for each operation of a multi.
	Ops []OpResult
}

// OpResult is what one operation of a multi did. Op is that of the transaction, OpError if the multi failed: the
// operations before the one that failed then have CodeOK, those after it CodeRuntimeInconsistency. Path and Stat are as
// in Result; the stat is that after this operation, not after the whole multi.
type OpResult struct {
	Op   wire.Op
	Code wire.Code
	Path []byte
	Stat wire.Stat
}

// Apply changes the tree as the transaction says and fires the watches, in ZooKeeper's order. The caller holds Lock, or
// nobody else knows the tree. It is the same for a new transaction and for a replay: transactions hold results, so that
// those which the tree has seen already (after a snapshot that was written while they were applied) leave it, once all
// are replayed, in the state that it would have without. The zxid becomes visible after the whole transaction.
//
// txn.ACL is kept and must not be changed; everything else is copied. res is overwritten, its memory used again; its
// paths alias txn.
func (t *Tree) Apply(h *TxnHeader, txn *Txn, res *Result) {
	t.reclaimSome()
	res.Ops = res.Ops[:0]
	if txn.Type == wire.OpMulti {
		t.applyMulti(h, txn, res)
	} else {
		t.applyOp(h, txn, &t.op)
		res.Code, res.Path, res.Stat = t.op.Code, t.op.Path, t.op.Stat
	}
	t.lastZxid = max(t.lastZxid, h.Zxid)
}

// applyMulti applies all operations, or none if one of them is an error. (An operation that fails for another reason
// can do so in a replay only, and stops none of the others.)
func (t *Tree) applyMulti(h *TxnHeader, txn *Txn, res *Result) {
	res.Code, res.Path, res.Stat = wire.CodeOK, nil, wire.Stat{}
	failed := false
	for i := range txn.Multi {
		failed = failed || txn.Multi[i].Type == wire.OpError
	}
	after := wire.CodeOK // of the operations that are no errors in a failed multi
	for i := range txn.Multi {
		op := &txn.Multi[i]
		var r OpResult
		switch {
		case op.Type == wire.OpError:
			r = OpResult{Op: wire.OpError, Code: op.Err}
			after = wire.CodeRuntimeInconsistency
		case failed:
			r = OpResult{Op: wire.OpError, Code: after}
		default:
			t.applyOp(h, op, &r)
		}
		if res.Code == wire.CodeOK {
			res.Code = r.Code
		}
		res.Ops = append(res.Ops, r)
	}
}

// applyOp applies one transaction that is not a multi, or one operation of a multi. What a node is depends on the type
// only, never on what a client may have put into flags.
func (t *Tree) applyOp(h *TxnHeader, txn *Txn, r *OpResult) {
	*r = OpResult{Op: txn.Type, Path: txn.Path}
	if len(txn.Path) == 0 && txn.Path != nil {
		r.Path = []byte(RootPath)
	}
	switch txn.Type {
	case wire.OpCreate, wire.OpCreate2:
		var owner int64
		if txn.Ephemeral {
			owner = int64(h.ClientID)
		}
		t.create(h, txn, owner, r)
	case wire.OpCreateContainer:
		t.create(h, txn, OwnerContainer, r)
	case wire.OpCreateTTL:
		t.create(h, txn, OwnerTTL(txn.TTL), r)
	case wire.OpDelete, wire.OpDeleteContainer:
		r.Code = t.delete(r.Path, h.Zxid)
	case wire.OpSetData, wire.OpReconfig:
		t.setData(h, txn, r)
	case wire.OpSetACL:
		t.setACL(h, txn, r)
	case wire.OpCreateSession:
		t.sessions.set(h.ClientID, txn.Timeout)
	case wire.OpCloseSession:
		t.closeSession(h, txn)
	case wire.OpCheck:
	case wire.OpError:
		r.Code = txn.Err
	default:
		// DecodeTxn refuses such types, and the server makes none.
		panic(fmt.Sprintf("znode: no transaction of type %d", txn.Type))
	}
}

// splitTarget cuts the path of a node other than the root. A path that no node can have gives false.
func splitTarget(path []byte) (parent, name []byte, ok bool) {
	parent, name = SplitPath(path)
	slash := len(path) - len(name) - 1 // 1 is that of "//x", which splits as "/x" does
	return parent, name, len(path) > 0 && path[0] == '/' && len(name) > 0 && slash != 1
}

// create adds a node, unless it is there. The order matters: the parent's counter moves before the child is entered, the
// quota is counted when the node is in, the reply's stat is taken after both, and the watches come last, when a reader
// who is told can see all of it.
func (t *Tree) create(h *TxnHeader, txn *Txn, owner int64, r *OpResult) {
	parentPath, name, ok := splitTarget(r.Path)
	if !ok {
		// The root is there; for other such paths there is no place.
		if r.Code = wire.CodeBadArguments; string(r.Path) == RootPath {
			r.Code = wire.CodeNodeExists
		}
		return
	}
	parent, ok := t.findHinted(parentPath)
	if !ok {
		r.Code = wire.CodeNoNode
		return
	}
	hash := t.index.hash(parent, name)
	if id := t.childHashed(hash, parent, name); id != noNode {
		t.createAgain(id, parentPath, h, txn)
		r.Code, r.Stat = wire.CodeNodeExists, t.Stat(id)
		return
	}
	acl := t.acls.retain(txn.ACL)
	t.countChild(parent, parentPath, txn.ParentCVersion, h.Zxid)
	st := StoredStat{Czxid: h.Zxid, Mzxid: h.Zxid, Pzxid: h.Zxid, Ctime: h.Time, Mtime: h.Time, Owner: owner}
	id := t.insert(parent, hash, r.Path, name, txn.Data, &st, acl)
	r.Stat = t.Stat(id) // if the node is one of a quota's, the server may now replace its data
	t.quotaCreated(r.Path, len(txn.Data))
	t.watches.NodeCreated(r.Path, h.Zxid, t.ACL(id), t.ACL(parent))
}

// createAgain replays a create whose node is there already, from a snapshot that was written later. The node gets the
// transaction's ACL, because the snapshot may lack the one that it refers to; a later setACL is replayed as well. The
// parent's counter moves on if the snapshot took the parent before the create and the node after it, which happens when
// another node of that name had been there. ZooKeeper does the latter for the operation create alone, though
// the other kinds of creates need it just as much: without it such a parent would differ from the other servers'.
func (t *Tree) createAgain(id Node, parentPath []byte, h *TxnHeader, txn *Txn) {
	acl := t.acls.retain(txn.ACL)
	n := t.nodes.mut(id)
	t.acls.release(n.acl)
	n.acl = acl
	t.countChild(n.parent, parentPath, txn.ParentCVersion, h.Zxid)
}

// countChild sets a parent's cversion and pzxid after a create. Both only move forward. A cversion of -1 says that the
// log does not tell it.
func (t *Tree) countChild(parent Node, path []byte, cversion int32, z zxid.Zxid) {
	n := t.nodes.at(parent)
	if cversion == -1 {
		cversion = n.cversion + 1
	}
	if cversion <= n.cversion {
		return
	}
	n = t.begin(parent, path)
	n.cversion, n.pzxid = cversion, int64(z)
	t.end(n, path)
	t.updateExpiry(parent)
}

// delete removes a node. In a replay the node may be gone, or be a later one of that name with children of its own: then
// these go with it, since the transactions that made them are still to be replayed. (Left alone, they would be found
// again when their parent is created anew, with the stats of another life.) The parent's pzxid moves in any case, for
// the deletion may have been too late for the parent in the snapshot.
//
// The built-in nodes are never deleted. No server makes such a transaction; refusing it here keeps a damaged log from
// taking away what all other code relies on.
func (t *Tree) delete(path []byte, z zxid.Zxid) wire.Code {
	parentPath, name, ok := splitTarget(path)
	if !ok || ReservedPath(path) {
		return wire.CodeBadArguments
	}
	parent, ok := t.findHinted(parentPath)
	if !ok {
		return wire.CodeNoNode
	}
	if n := t.nodes.at(parent); int64(z) > n.pzxid {
		n = t.begin(parent, parentPath)
		n.pzxid = int64(z)
		t.end(n, parentPath)
	}
	id := t.child(parent, name)
	if id == noNode {
		return wire.CodeNoNode
	}
	acl, parentACL := t.ACL(id), t.ACL(parent)
	t.remove(id, path)
	t.watches.NodeDeleted(path, z, acl, parentACL)
	return wire.CodeOK
}

// remove takes a node out of the tree, and first what is below it.
func (t *Tree) remove(top Node, path []byte) {
	if t.nodes.at(top).numChildren == 0 {
		t.removeAccounted(top, path)
		return
	}
	below := append([]byte(nil), path...)
	for id := top; ; {
		for n := t.nodes.at(id); n.firstChild != noNode; n = t.nodes.at(id) {
			id = n.firstChild
			below = append(append(below, '/'), t.name(t.nodes.at(id))...)
		}
		n := t.nodes.at(id)
		parent, size := n.parent, len(below)-1-int(n.nameLen)
		t.removeAccounted(id, below)
		if id == top {
			return
		}
		id, below = parent, below[:size]
	}
}

// removeAccounted removes a node without children and tells the quotas, which look it up by path and so can come after.
func (t *Tree) removeAccounted(id Node, path []byte) {
	dataBytes := int(max(t.nodes.at(id).dataLen, 0))
	t.removeLeaf(id, path)
	t.quotaDeleted(path, dataBytes)
}

// laterLife says that a node was created after transaction z: a replay has met a snapshot that holds a later node of
// that name. A change of the earlier node is no business of this one. ZooKeeper makes it nevertheless, and when the
// transaction that removed the earlier node does not name it (closeSession as old servers wrote it), nothing undoes it.
func (t *Tree) laterLife(id Node, z zxid.Zxid) bool { return t.nodes.at(id).czxid > int64(z) }

// setData sets what the transaction says: the version is not counted up but given, so that a replay comes out the same.
func (t *Tree) setData(h *TxnHeader, txn *Txn, r *OpResult) {
	id, ok := t.findHinted(r.Path)
	if !ok || t.laterLife(id, h.Zxid) {
		r.Code = wire.CodeNoNode
		return
	}
	n := t.begin(id, r.Path)
	delta := len(txn.Data) - int(max(n.dataLen, 0))
	t.replaceData(id, r.Path, txn.Data)
	n.version, n.mzxid, n.mtime = txn.Version, int64(h.Zxid), h.Time
	t.end(n, r.Path)
	t.updateExpiry(id)
	t.quotaChanged(r.Path, delta)
	r.Stat = t.Stat(id)
	t.watches.NodeDataChanged(r.Path, h.Zxid, t.ACL(id))
}

// setACL changes the list and its version, and no other field: in ZooKeeper neither mzxid nor mtime tell of it, and
// nobody is notified.
func (t *Tree) setACL(h *TxnHeader, txn *Txn, r *OpResult) {
	id, ok := t.findHinted(r.Path)
	if !ok || t.laterLife(id, h.Zxid) {
		r.Code = wire.CodeNoNode
		return
	}
	acl := t.acls.retain(txn.ACL)
	n := t.begin(id, r.Path)
	t.acls.release(n.acl)
	n.acl, n.aversion = acl, txn.Version
	t.end(n, r.Path)
	r.Stat = t.Stat(id)
}

// closeSession removes the session, the nodes that the transaction names, and whatever else the session still owns:
// everything, if an old server wrote the transaction without names.
func (t *Tree) closeSession(h *TxnHeader, txn *Txn) {
	t.sessions.remove(h.ClientID)
	for _, path := range txn.Paths {
		t.delete(path, h.Zxid)
	}
	var path []byte
	for {
		id := t.ephemerals.owners[h.ClientID].first
		if id == noNode {
			return
		}
		path = t.AppendPath(path[:0], id)
		t.delete(path, h.Zxid)
	}
}
