package replica

import (
	"strconv"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// op is one operation that is to become a transaction, or a part of one.
type op struct {
	code    wire.Op
	session zxid.SessionID
	ids     []wire.ID
	zxid    zxid.Zxid
	inMulti bool
	// room is what is left of the bytes that a transaction may have.
	room int
	// conn and bodyBytes are for telling that the room is not enough.
	conn      *Conn
	bodyBytes int
}

// refuseTooLarge tells of a transaction that could not be read back.
func (o *op) refuseTooLarge(path []byte) {
	if o.conn == nil {
		return
	}
	cfg := &o.conn.r.cfg
	cfg.Refused(Refusal{Conn: o.conn, Session: o.session, Op: o.code, Path: string(path), Bytes: o.bodyBytes, Limit: cfg.RecordBytesMax,
		Why: "the transaction would be larger than what can be read back (jute.maxbuffer plus extrasize)"})
}

// txnFixedBytes is the most that the parts of fixed size of one operation take in a transaction.
const txnFixedBytes = 64

// fits takes the bytes of one operation out of the room. A transaction that could not be read back is refused before
// anything of it is noted: lists of ACLs can grow far beyond the request when "auth" is replaced by identities.
func (o *op) fits(path, data []byte, acl []wire.ACL) bool {
	o.room -= txnFixedBytes + encodedBytesMax(len(path)) + len(data)
	for i := range acl {
		o.room -= 12 + encodedBytesMax(len(acl[i].Scheme)+len(acl[i].ID))
	}
	if o.room < 0 {
		o.refuseTooLarge(path)
	}
	return o.room >= 0
}

// encodedBytesMax is the most that n bytes of UTF-8 take when they are written: the four bytes of a character beyond
// U+FFFF become six.
func encodedBytesMax(n int) int { return n + n/2 }

// prepWrite makes a transaction of a write and proposes it. A write that the rules refuse becomes an error transaction:
// it uses up a zxid like any other. Only what cannot even be read, and requests of a session that is ending, use none.
func (r *Replica) prepWrite(c *Conn, it *item) {
	h := c.session.Load()
	if h.Closing() || h.Owner() != c.gen {
		it.silent = true // the session ends, or has moved to another connection and goes on there
		return
	}
	o := op{code: it.op, session: h.ID(), ids: it.ids, zxid: r.node.NextZxid(),
		room: r.cfg.RecordBytesMax - 2*txnFixedBytes, conn: c, bodyBytes: len(it.body)}
	if it.op == wire.OpCloseSession {
		h.SetClosing()
		c.state.Store(stateClosing)
		it.proposed, it.last = true, true
		r.proposeClose(h.ID(), it.xid, zab.Origin{Conn: c.gen, Seq: it.seq})
		return
	}
	d := jute.NewDecoder(it.body, r.cfg.FieldBytesMax)
	txn, code, readable := r.prepBody(&o, &d)
	if !readable {
		it.code = wire.CodeMarshalling
		return
	}
	if code != wire.CodeOK {
		txn = znode.Txn{Type: wire.OpError, Err: code}
	}
	it.proposed = true
	r.propose(o.session, it.xid, &txn, zab.Origin{Conn: c.gen, Seq: it.seq})
}

// prepBody decodes the record of a single write and checks it. It reports false for a record that cannot be read.
func (r *Replica) prepBody(o *op, d *jute.Decoder) (txn znode.Txn, code wire.Code, readable bool) {
	switch o.code {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		var plain wire.CreateRequest
		plain.Decode(d)
		if d.Err() != nil {
			return txn, 0, false
		}
		req := wire.CreateTTLRequest{Path: plain.Path, Data: plain.Data, ACL: plain.ACL, Flags: plain.Flags, TTL: -1}
		txn, code = r.prepCreate(o, &req)
	case wire.OpCreateTTL:
		var req wire.CreateTTLRequest
		req.Decode(d)
		if d.Err() != nil {
			return txn, 0, false
		}
		txn, code = r.prepCreate(o, &req)
	case wire.OpDelete:
		var req wire.PathVersionRequest
		req.Decode(d)
		if d.Err() != nil {
			return txn, 0, false
		}
		txn, code = r.prepDelete(o, req.Path, req.Version)
	case wire.OpSetData:
		var req wire.SetDataRequest
		req.Decode(d)
		if d.Err() != nil {
			return txn, 0, false
		}
		txn, code = r.prepSetData(o, req.Path, req.Data, req.Version)
	case wire.OpSetACL:
		var req wire.SetACLRequest
		req.Decode(d)
		if d.Err() != nil {
			return txn, 0, false
		}
		txn, code = r.prepSetACL(o, &req)
	case wire.OpDeleteContainer:
		var req wire.PathRequest
		req.Decode(d)
		if d.Err() != nil || req.Path == nil {
			return txn, 0, false
		}
		txn, code = r.prepClientDeleteContainer(o, req.Path)
	case wire.OpReconfig:
		var req wire.ReconfigRequest
		req.Decode(d)
		if d.Err() != nil {
			return txn, 0, false
		}
		code = wire.CodeReconfigDisabled
		if r.cfg.ReconfigEnabled {
			code = wire.CodeUnimplemented // a standalone server has nothing to reconfigure
		}
	case wire.OpMulti:
		return r.prepMulti(o, d)
	default:
		panic("replica: not a write: " + o.code.String())
	}
	return txn, code, true
}

// propose numbers a transaction, adds the digest of the tree after it, and hands it to the broadcast.
func (r *Replica) propose(s zxid.SessionID, cxid int32, txn *znode.Txn, origin zab.Origin) {
	z := r.node.NextZxid()
	h := znode.TxnHeader{ClientID: s, Cxid: cxid, Zxid: z, Time: r.now.WallMs, Type: txn.Type}
	var digest *znode.Digest
	if !r.cfg.Tree.NoDigest && txn.Type != wire.OpError {
		digest = &znode.Digest{Version: znode.DigestVersion, Value: r.pending.digest}
	}
	payload := znode.AppendTxn(make([]byte, 0, txnSizeGuess(txn)), &h, txn, digest)
	if len(payload) >= r.cfg.RecordBytesMax {
		panic("replica: a transaction of " + strconv.Itoa(len(payload)) + " bytes was let through: " + txn.Type.String())
	}
	r.proposed.Add(1)
	r.proposedBytes.Add(int64(len(payload)))
	r.counters.proposals.Add(1)
	r.node.Propose(zab.Entry{Zxid: z, Payload: payload, Origin: origin})
}

// txnSizeGuess is the room that an encoded transaction most likely takes.
func txnSizeGuess(txn *znode.Txn) int {
	n := 96 + len(txn.Path) + len(txn.Data) + 32*len(txn.ACL)
	for i := range txn.Multi {
		n += 40 + len(txn.Multi[i].Path) + len(txn.Multi[i].Data)
	}
	for _, p := range txn.Paths {
		n += 4 + len(p)
	}
	return n
}

// createKind is what becomes of a create: the type of its transaction, the owner it stores, and whether its name gets
// a sequence number.
type createKind struct {
	txn        wire.Op
	owner      int64
	ephemeral  bool
	sequential bool
}

// createKindOf decides the kind of node from opcode, flags and TTL. It is the only place that does. A single create
// ignores the container flag; in a multi the flags decide.
func (r *Replica) createKindOf(o *op, flags int32, ttl int64) (createKind, wire.Code) {
	if flags < wire.FlagPersistent || flags > wire.FlagTTLSequential {
		return createKind{}, wire.CodeBadArguments
	}
	isTTL := flags == wire.FlagTTL || flags == wire.FlagTTLSequential
	if isTTL && !r.cfg.Tree.ExtendedTypes {
		return createKind{}, wire.CodeUnimplemented
	}
	k := createKind{txn: o.code}
	k.sequential = flags == wire.FlagSequential || flags == wire.FlagEphemeralSequential || flags == wire.FlagTTLSequential
	code := o.code
	if code == wire.OpCreateTTL && !isTTL && o.inMulti {
		code, k.txn = wire.OpCreate, wire.OpCreate
	}
	switch {
	case code == wire.OpCreateTTL && !isTTL, code != wire.OpCreateTTL && isTTL:
		return createKind{}, wire.CodeBadArguments
	case isTTL:
		if ttl <= 0 || ttl > znode.TTLMsMax {
			return createKind{}, wire.CodeBadArguments
		}
		k.txn, k.owner = wire.OpCreateTTL, znode.OwnerTTL(ttl)
	case code == wire.OpCreateContainer, flags == wire.FlagContainer && o.inMulti:
		k.txn, k.owner = wire.OpCreateContainer, znode.OwnerContainer
	case flags == wire.FlagEphemeral || flags == wire.FlagEphemeralSequential:
		k.ephemeral, k.owner = true, int64(o.session)
	}
	return k, wire.CodeOK
}

func (r *Replica) prepCreate(o *op, req *wire.CreateTTLRequest) (txn znode.Txn, code wire.Code) {
	kind, code := r.createKindOf(o, req.Flags, req.TTL)
	if code != wire.CodeOK {
		return txn, code
	}
	if req.Path == nil {
		return txn, wire.CodeMarshalling
	}
	if znode.WeakPath(req.Path) != nil {
		return txn, wire.CodeBadArguments
	}
	acl, code := r.auth.Fix(req.ACL, o.ids)
	if code != wire.CodeOK {
		return txn, code
	}
	parentPath, _ := znode.SplitPath(req.Path)
	parent, ok := r.pending.get(parentPath)
	if !ok {
		return txn, wire.CodeNoNode
	}
	if !r.auth.Allows(parent.acl, wire.PermCreate, o.ids) {
		return txn, wire.CodeNoAuth
	}
	path := req.Path
	if kind.sequential {
		path = appendSequence(req.Path, parent.stat.CVersion)
	}
	if znode.ValidatePath(path) != nil {
		return txn, wire.CodeBadArguments
	}
	if _, exists := r.pending.get(path); exists {
		return txn, wire.CodeNodeExists
	}
	if parent.stat.Kind(&r.cfg.Tree) == znode.KindEphemeral {
		return txn, wire.CodeNoChildrenForEphemerals
	}
	if r.cfg.EnforceQuota && r.tree.QuotaExceeded(path, 1, int64(len(req.Data))) {
		return txn, wire.CodeQuotaExceeded
	}
	if !o.fits(path, req.Data, acl) {
		return txn, wire.CodeMarshalling
	}
	txn = znode.Txn{Type: kind.txn, Path: path, Data: req.Data, ACL: acl, Ephemeral: kind.ephemeral, TTL: req.TTL,
		ParentCVersion: r.noteCreate(o, kind, path, parentPath, &parent, req.Data, acl)}
	return txn, wire.CodeOK
}

// noteCreate puts a checked create into the pending view and returns the parent's new count of children ever created.
// That count saturates: no negative sequence number is ever made.
func (r *Replica) noteCreate(o *op, kind createKind, path, parentPath []byte, parent *pendingNode, data []byte, acl []wire.ACL) int32 {
	after := *parent
	after.children++
	if next := parent.stat.CVersion + 1; next > parent.stat.CVersion {
		after.stat.CVersion, after.stat.Pzxid = next, o.zxid
	}
	r.pending.put(parentPath, parent, &after, o.zxid)
	none, node := pendingNode{}, newNode(path, data, aclList(acl), kind.owner, o.zxid, r.now.WallMs)
	r.pending.put(path, &none, &node, o.zxid)
	if kind.ephemeral {
		r.pending.addEphemeral(o.session, path, o.zxid)
	}
	return after.stat.CVersion
}

// appendSequence returns prefix with the ten-digit sequence number behind it.
func appendSequence(prefix []byte, n int32) []byte {
	const digits = 10
	path := make([]byte, len(prefix), len(prefix)+digits)
	copy(path, prefix)
	var buf [20]byte
	text := strconv.AppendInt(buf[:0], int64(n), 10)
	for range digits - len(text) {
		path = append(path, '0')
	}
	return append(path, text...)
}

func (r *Replica) prepDelete(o *op, path []byte, version int32) (txn znode.Txn, code wire.Code) {
	if path == nil {
		return txn, wire.CodeMarshalling
	}
	if znode.WeakPath(path) != nil || znode.ReservedPath(path) {
		return txn, wire.CodeBadArguments
	}
	parentPath, _ := znode.SplitPath(path)
	parent, ok := r.pending.get(parentPath)
	if !ok {
		return txn, wire.CodeNoNode
	}
	if !r.auth.Allows(parent.acl, wire.PermDelete, o.ids) {
		return txn, wire.CodeNoAuth
	}
	node, ok := r.pending.get(path)
	switch {
	case !ok:
		return txn, wire.CodeNoNode
	case version != -1 && version != node.stat.Version:
		return txn, wire.CodeBadVersion
	case node.children > 0:
		return txn, wire.CodeNotEmpty
	}
	if !o.fits(path, nil, nil) {
		return txn, wire.CodeMarshalling
	}
	r.pending.remove(path, o.zxid)
	return znode.Txn{Type: wire.OpDelete, Path: path}, wire.CodeOK
}

// prepDeleteContainer checks the deletion of a container or TTL node by the server itself. Candidates may have waited for
// their turn: one that was written to in the meantime has its whole time to live again.
func (r *Replica) prepDeleteContainer(path []byte) (txn znode.Txn, code wire.Code) {
	node, ok := r.pending.get(path)
	switch {
	case !ok:
		return txn, wire.CodeNoNode
	case node.children > 0:
		return txn, wire.CodeNotEmpty
	case !r.reapable(&node):
		return txn, wire.CodeBadVersion
	}
	r.pending.remove(path, r.node.NextZxid())
	return znode.Txn{Type: wire.OpDeleteContainer, Path: path}, wire.CodeOK
}

func (r *Replica) reapable(n *pendingNode) bool {
	switch n.stat.Kind(&r.cfg.Tree) {
	case znode.KindContainer:
		return true
	case znode.KindTTL:
		return r.now.WallMs-n.stat.Mtime > n.stat.TTL()
	}
	return false
}

// prepClientDeleteContainer checks the same request when a client sends it. Like Apache's server it deletes any empty node
// that is not ephemeral; unlike it, only for somebody who may delete it.
func (r *Replica) prepClientDeleteContainer(o *op, path []byte) (txn znode.Txn, code wire.Code) {
	if znode.WeakPath(path) != nil || znode.ReservedPath(path) {
		return txn, wire.CodeBadArguments
	}
	parentPath, _ := znode.SplitPath(path)
	node, ok := r.pending.get(path)
	switch {
	case !ok:
		return txn, wire.CodeNoNode
	case node.children > 0:
		return txn, wire.CodeNotEmpty
	case node.stat.Kind(&r.cfg.Tree) == znode.KindEphemeral:
		return txn, wire.CodeBadVersion
	}
	parent, ok := r.pending.get(parentPath)
	switch {
	case !ok:
		return txn, wire.CodeNoNode
	case !r.auth.Allows(parent.acl, wire.PermDelete, o.ids):
		return txn, wire.CodeNoAuth
	case !o.fits(path, nil, nil):
		return txn, wire.CodeMarshalling
	}
	r.pending.remove(path, o.zxid)
	return znode.Txn{Type: wire.OpDeleteContainer, Path: path}, wire.CodeOK
}

func (r *Replica) prepSetData(o *op, path, data []byte, version int32) (txn znode.Txn, code wire.Code) {
	node, code := r.target(path, wire.PermWrite, o.ids)
	if code != wire.CodeOK {
		return txn, code
	}
	grown := int64(len(data)) - int64(node.dataBytes)
	if grown != 0 && r.cfg.EnforceQuota && r.tree.QuotaExceeded(path, 0, grown) {
		return txn, wire.CodeQuotaExceeded
	}
	if version != -1 && version != node.stat.Version {
		return txn, wire.CodeBadVersion
	}
	if !o.fits(path, data, nil) {
		return txn, wire.CodeMarshalling
	}
	after := node
	after.stat.Version++
	after.stat.Mzxid, after.stat.Mtime = o.zxid, r.now.WallMs
	after.dataBytes = int32(len(data))
	after.pathDataCRC = znode.PathDataCRC(canonical(path), data)
	r.pending.put(path, &node, &after, o.zxid)
	return znode.Txn{Type: wire.OpSetData, Path: path, Data: data, Version: after.stat.Version}, wire.CodeOK
}

func (r *Replica) prepSetACL(o *op, req *wire.SetACLRequest) (txn znode.Txn, code wire.Code) {
	if req.Path == nil || znode.ValidatePath(req.Path) != nil {
		return txn, wire.CodeBadArguments
	}
	acl, code := r.auth.Fix(req.ACL, o.ids)
	if code != wire.CodeOK {
		return txn, code
	}
	node, code := r.target(req.Path, wire.PermAdmin, o.ids)
	if code != wire.CodeOK {
		return txn, code
	}
	if req.Version != -1 && req.Version != node.stat.AVersion {
		return txn, wire.CodeBadVersion
	}
	if !o.fits(req.Path, nil, acl) {
		return txn, wire.CodeMarshalling
	}
	after := node
	after.stat.AVersion++
	after.acl = aclList(acl)
	r.pending.put(req.Path, &node, &after, o.zxid)
	return znode.Txn{Type: wire.OpSetACL, Path: req.Path, ACL: acl, Version: after.stat.AVersion}, wire.CodeOK
}

// prepCheck is the check of a multi.
func (r *Replica) prepCheck(o *op, path []byte, version int32) (txn znode.Txn, code wire.Code) {
	node, code := r.target(path, wire.PermRead, o.ids)
	if code != wire.CodeOK {
		return txn, code
	}
	if version != -1 && version != node.stat.Version {
		return txn, wire.CodeBadVersion
	}
	if !o.fits(path, nil, nil) {
		return txn, wire.CodeMarshalling
	}
	// The record carries the node's version plus one, as on Apache's disk. Nobody reads it.
	return znode.Txn{Type: wire.OpCheck, Path: path, Version: node.stat.Version + 1}, wire.CodeOK
}

// target returns an existing node on which the identities have the permission.
func (r *Replica) target(path []byte, perm int32, ids []wire.ID) (pendingNode, wire.Code) {
	if path == nil || znode.ValidatePath(path) != nil {
		return pendingNode{}, wire.CodeBadArguments
	}
	node, ok := r.pending.get(path)
	if !ok {
		return pendingNode{}, wire.CodeNoNode
	}
	if !r.auth.Allows(node.acl, perm, ids) {
		return pendingNode{}, wire.CodeNoAuth
	}
	return node, wire.CodeOK
}
