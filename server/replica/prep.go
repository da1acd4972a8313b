package replica

import (
	"strconv"

	"go.uber.org/zap"

	"zabra/jute"
	"zabra/session"
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
	// conn, nil if the request was forwarded, and bodyBytes are for telling that the room is not enough.
	conn      *Conn
	bodyBytes int
	// hint is where the node of the transaction is, as far as it was found.
	hint znode.Hint
}

// refuseTooLarge tells of a transaction that could not be read back.
func (r *Replica) refuseTooLarge(o *op, path []byte) {
	const why = "the transaction would be larger than what can be read back (jute.maxbuffer plus extrasize)"
	if o.conn == nil {
		r.log.Warn("a request of another server's client is refused: "+why, zap.Stringer("session", o.session), zap.Stringer("op", o.code),
			zap.ByteString("path", path[:min(len(path), shownPathBytesMax)]), zap.Int("bytes", o.bodyBytes), zap.Int("limit", r.cfg.RecordBytesMax))
		return
	}
	r.cfg.Refused(Refusal{Conn: o.conn, Session: o.session, Op: o.code, Path: string(path), Bytes: o.bodyBytes, Limit: r.cfg.RecordBytesMax, Why: why})
}

// txnFixedBytes is the most that the parts of fixed size of one operation take in a transaction.
const txnFixedBytes = 64

// fits takes the bytes of one operation out of the room. A transaction that could not be read back is refused before
// anything of it is noted: lists of ACLs can grow far beyond the request when "auth" is replaced by identities.
func (r *Replica) fits(o *op, path, data []byte, acl []wire.ACL) bool {
	o.room -= txnFixedBytes + encodedBytesMax(len(path)) + len(data)
	for i := range acl {
		o.room -= 12 + encodedBytesMax(len(acl[i].Scheme)+len(acl[i].ID))
	}
	if o.room < 0 {
		r.refuseTooLarge(o, path)
	}
	return o.room >= 0
}

// encodedBytesMax is the most that n bytes of UTF-8 take when they are written: the four bytes of a character beyond
// U+FFFF become six.
func encodedBytesMax(n int) int { return n + n/2 }

// write is a request to change something: of a connection of this server, or forwarded by a learner.
type write struct {
	op      wire.Op
	session zxid.SessionID
	cxid    int32
	body    []byte
	// ids are the identities that the connection had when the request arrived.
	ids    []wire.ID
	origin zab.Origin
	conn   *Conn // nil if it was forwarded
}

// prepWrite makes a transaction of a write of a connection of this server.
func (r *Replica) prepWrite(c *Conn, it *item) {
	h := c.session.Load()
	if h.Closing() || h.Owner() != r.ownerOf(c) {
		it.silent = true // the session ends, or has moved to another connection and goes on there
		return
	}
	r.meter.Prepare.Add(r.now.MonoMs - it.recvMs)
	w := write{op: it.op, session: h.ID(), cxid: it.xid, body: it.body, ids: it.ids, origin: r.originOf(c, it.seq), conn: c}
	if it.op == wire.OpCloseSession {
		c.state.Store(stateClosing)
		it.last = true
	}
	if it.proposed = r.transact(&w, h); !it.proposed {
		it.code = wire.CodeMarshalling
	}
}

// transact makes a transaction of a write of a living session and proposes it. A write that the rules refuse becomes an
// error transaction: it uses up a zxid like any other. Only what cannot even be read uses none, and false is returned.
func (r *Replica) transact(w *write, h *session.Handle) bool {
	r.counters.prepared.Add(1)
	if w.op == wire.OpCloseSession {
		h.SetClosing()
		r.proposeClose(w.session, w.cxid, w.origin)
		return true
	}
	d := jute.NewDecoder(w.body, r.cfg.FieldBytesMax)
	if !r.body.decode(w.op, &d) {
		return false
	}
	o := op{code: w.op, session: w.session, ids: w.ids, zxid: r.core.NextZxid(),
		room: r.cfg.RecordBytesMax - 2*txnFixedBytes, conn: w.conn, bodyBytes: len(w.body)}
	txn, code := r.prepBody(&o, &r.body)
	if code != wire.CodeOK {
		txn = znode.Txn{Type: wire.OpError, Err: code}
	}
	if code == wire.CodeOK && w.op != wire.OpMulti { // whose operations have a node each
		r.hint = o.hint
	}
	r.propose(w.session, w.cxid, &txn, w.origin)
	return true
}

// prepBody checks a single write.
func (r *Replica) prepBody(o *op, b *writeBody) (txn znode.Txn, code wire.Code) {
	switch o.code {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return r.prepCreate(o, &b.create)
	case wire.OpDelete:
		return r.prepDelete(o, b.target.Path, b.target.Version)
	case wire.OpSetData:
		return r.prepSetData(o, b.data.Path, b.data.Data, b.data.Version)
	case wire.OpSetACL:
		return r.prepSetACL(o, &b.acl)
	case wire.OpDeleteContainer:
		return r.prepClientDeleteContainer(o, b.target.Path)
	case wire.OpReconfig:
		if r.cfg.Ensemble == nil && r.cfg.ReconfigEnabled {
			return txn, wire.CodeUnimplemented // a standalone server has nothing to reconfigure
		}
		return txn, wire.CodeReconfigDisabled
	case wire.OpMulti:
		return r.prepMulti(o, b)
	default:
		panic("replica: not a write: " + o.code.String())
	}
}

// propose numbers a transaction, adds the digest of the tree after it, and hands it to the broadcast. If the leadership
// has just been lost it does nothing: the term is about to end, and with it whatever waits for the transaction.
func (r *Replica) propose(s zxid.SessionID, cxid int32, txn *znode.Txn, origin zab.Origin) {
	if generation, serving := r.core.Serves(); !serving || generation != r.term.generation {
		return
	}
	z := r.core.NextZxid()
	h := znode.TxnHeader{ClientID: s, Cxid: cxid, Zxid: z, Time: r.now.WallMs, Type: txn.Type}
	var digest *znode.Digest
	if !r.cfg.Tree.NoDigest && txn.Type != wire.OpError {
		digest = &znode.Digest{Version: znode.DigestVersion, Value: r.pending.digest}
	}
	payload := r.payloads.keep(znode.AppendTxn(r.payloads.room(txnSizeGuess(txn)), &h, txn, digest))
	if len(payload) >= r.cfg.RecordBytesMax {
		panic("replica: a transaction of " + strconv.Itoa(len(payload)) + " bytes was let through: " + txn.Type.String())
	}
	r.hints = append(r.hints, hinted{z, r.hint})
	r.hint = znode.Hint{}
	r.proposed.Add(1)
	r.proposedBytes.Add(int64(len(payload)))
	r.counters.proposals.Add(1)
	r.proposals.note(len(payload), r.statsGeneration.Load())
	r.proposal[0] = zab.Entry{Zxid: z, Payload: payload, Origin: origin}
	r.feed(zab.Input{Kind: zab.InputPropose, Entries: r.proposal[:]})
	r.proposal[0] = zab.Entry{}
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
	if _, exists := r.pending.getChild(&parent, path); exists {
		return txn, wire.CodeNodeExists
	}
	if parent.stat.Kind(&r.cfg.Tree) == znode.KindEphemeral {
		return txn, wire.CodeNoChildrenForEphemerals
	}
	if r.limits.Load().EnforceQuota && r.overQuota(o, path, 1, int64(len(req.Data))) {
		return txn, wire.CodeQuotaExceeded
	}
	if !r.fits(o, path, req.Data, acl) {
		return txn, wire.CodeMarshalling
	}
	o.hint = r.pending.hint(&parent)
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
	node, ok := r.pending.getChild(&parent, path)
	switch {
	case !ok:
		return txn, wire.CodeNoNode
	case version != -1 && version != node.stat.Version:
		return txn, wire.CodeBadVersion
	case node.children > 0:
		return txn, wire.CodeNotEmpty
	}
	if !r.fits(o, path, nil, nil) {
		return txn, wire.CodeMarshalling
	}
	o.hint = r.pending.hint(&parent)
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
	r.pending.remove(path, r.core.NextZxid())
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
	case !r.fits(o, path, nil, nil):
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
	if grown != 0 && r.limits.Load().EnforceQuota && r.overQuota(o, path, 0, grown) {
		return txn, wire.CodeQuotaExceeded
	}
	if version != -1 && version != node.stat.Version {
		return txn, wire.CodeBadVersion
	}
	if !r.fits(o, path, data, nil) {
		return txn, wire.CodeMarshalling
	}
	after := node
	after.stat.Version++
	after.stat.Mzxid, after.stat.Mtime = o.zxid, r.now.WallMs
	after.dataBytes = int32(len(data))
	after.pathDataCRC = znode.PathDataCRC(canonical(path), data)
	o.hint = r.pending.hint(&node)
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
	if !r.fits(o, req.Path, nil, acl) {
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
	if !r.fits(o, path, nil, nil) {
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
