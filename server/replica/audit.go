package replica

import (
	"cmp"
	"net/netip"
	"slices"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
)

// This file makes the records of the audit log: who has changed what, and what came of it. They are about writes of clients of
// this server; what forwarding and committing servers do with them is not told again there.

// AuditResult tells how an operation ended.
type AuditResult uint8

const (
	// AuditSuccess: the change is committed.
	AuditSuccess AuditResult = iota + 1
	// AuditFailure: nothing was changed.
	AuditFailure
	// AuditInvoked: it was on its way when the role of this server ended. It may still be carried out, and this server does
	// not hear which request that was.
	AuditInvoked
)

// AuditRecord is one operation. What it holds is its own.
type AuditRecord struct {
	// Op is the operation: that inside of a multi that has succeeded, OpMulti of one that has not. OpCloseSession stands for an
	// ephemeral node that went with its session, OpDeleteContainer without a session for a container or TTL node that the
	// server has deleted. Neither has identities or an address.
	Op      wire.Op
	Session zxid.SessionID
	// IDs are the identities that the connection had when the request arrived.
	IDs    []wire.ID
	Remote netip.Addr
	// Path is that of the node: for a create that has succeeded the one that it got; "" of a multi, and of a request that
	// cannot be read.
	Path string
	// Flags say what kind of node was to be created, as CreateMode does; HasFlags is set for creates.
	Flags    int32
	HasFlags bool
	// ACL is what setACL was to set. The identities that stand for "auth" are in it when it has succeeded.
	ACL    []wire.ACL
	Result AuditResult
}

// auditing remembers writes from when they are set going until their end is known. It belongs to the stepping goroutine, and
// does nothing while it is off.
type auditing struct {
	on       bool
	inFlight map[writeKey]auditedWrite
	body     writeBody
}

// writeKey is the place of a write among those of this server's connections.
type writeKey struct{ conn, seq uint64 }

// auditedWrite is a write in flight. It is kept apart from its connection, which may end before.
type auditedWrite struct {
	op      wire.Op
	session zxid.SessionID
	remote  netip.Addr
	ids     []wire.ID
	body    []byte
}

// SetAudit switches the records in Ready.Audit on or off. Writes in flight when it is switched on have none. It belongs to the
// stepping goroutine.
func (r *Replica) SetAudit(on bool) {
	if on == r.audit.on {
		return
	}
	r.audit = auditing{on: on}
	if on {
		r.audit.inFlight = make(map[writeKey]auditedWrite)
	}
}

// auditPrepared is called for a write when it is on its way, or known not to go.
func (r *Replica) auditPrepared(c *Conn, it *item) {
	if it.op == wire.OpCloseSession || it.silent {
		return // it changes nothing by itself, or was not looked at
	}
	w := auditedWrite{op: it.op, session: c.SessionID(), remote: c.remote.Addr(), ids: it.ids, body: it.body}
	if !it.proposed {
		r.auditFailed(&w, AuditFailure)
		return
	}
	r.audit.inFlight[writeKey{c.gen, it.seq}] = w
}

// auditTake takes a write of this server off those in flight.
func (r *Replica) auditTake(o zab.Origin) (w auditedWrite, ok bool) {
	if o.Conn == 0 || o.Server != r.id {
		return w, false
	}
	key := writeKey{o.Conn, o.Seq}
	w, ok = r.audit.inFlight[key]
	delete(r.audit.inFlight, key)
	return w, ok
}

// auditRefused is called for a request that the leader made no transaction of.
func (r *Replica) auditRefused(o zab.Origin) {
	if w, ok := r.auditTake(o); ok {
		r.auditFailed(&w, AuditFailure)
	}
}

// auditEnd is called when the role of this server ends: nobody will tell it what becomes of the rest.
func (r *Replica) auditEnd() {
	keys := make([]writeKey, 0, len(r.audit.inFlight))
	for key := range r.audit.inFlight { // order: sorted below
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b writeKey) int { return cmp.Or(cmp.Compare(a.conn, b.conn), cmp.Compare(a.seq, b.seq)) })
	for _, key := range keys {
		w := r.audit.inFlight[key]
		r.auditFailed(&w, AuditInvoked)
	}
	clear(r.audit.inFlight)
}

// auditEphemerals notes what goes with a session, before its end is applied. Where a client has asked for the end, that is told
// by its server; otherwise by the one that has decided it.
func (r *Replica) auditEphemerals(e *zab.Entry) {
	if e.Origin.Conn == 0 && !r.term.leading || e.Origin.Conn != 0 && e.Origin.Server != r.id {
		return
	}
	s := r.scratch.h.ClientID
	r.Tree().VisitEphemerals(s, func(path []byte) bool {
		r.note(&AuditRecord{Op: wire.OpCloseSession, Session: s, Path: string(path), Result: AuditSuccess})
		return true
	})
}

// auditApplied tells of the write that an applied transaction came from, and of a node whose time was over.
func (r *Replica) auditApplied(e *zab.Entry) {
	w, ok := r.auditTake(e.Origin)
	switch {
	case e.Origin.Conn == 0 && r.term.leading && r.scratch.h.Type == wire.OpDeleteContainer:
		r.note(&AuditRecord{Op: wire.OpDeleteContainer, Path: string(r.scratch.res.Path), Result: AuditSuccess})
	case !ok:
	case r.scratch.h.Type == wire.OpError || r.scratch.res.Code != wire.CodeOK:
		r.auditFailed(&w, AuditFailure)
	default:
		r.auditSucceeded(&w)
	}
}

// auditSucceeded tells of a write whose transaction is in r.scratch.
func (r *Replica) auditSucceeded(w *auditedWrite) {
	b := &r.audit.body
	d := jute.NewDecoder(w.body, r.cfg.FieldBytesMax)
	if !b.decode(w.op, &d) {
		panic("replica: a transaction was made of a request that cannot be read: " + w.op.String())
	}
	if w.op != wire.OpMulti {
		rec := w.record(w.op, r.scratch.res.Path, AuditSuccess)
		rec.setKind(w.op, &b.create)
		if w.op == wire.OpSetACL {
			rec.ACL = r.scratch.txn.ACL
		}
		r.note(&rec)
		return
	}
	for i := range r.scratch.res.Ops {
		done := &r.scratch.res.Ops[i]
		if done.Op == wire.OpCheck {
			continue // it changes nothing
		}
		rec := w.record(done.Op, done.Path, AuditSuccess)
		rec.setMultiKind(done.Op, &b.multi[i].Create)
		r.note(&rec)
	}
}

// auditFailed tells of a write that has not succeeded, by what it asked for.
func (r *Replica) auditFailed(w *auditedWrite, result AuditResult) {
	b := &r.audit.body
	d := jute.NewDecoder(w.body, r.cfg.FieldBytesMax)
	rec := w.record(w.op, nil, result)
	if b.decode(w.op, &d) {
		switch w.op {
		case wire.OpDelete, wire.OpDeleteContainer:
			rec.Path = string(b.target.Path)
		case wire.OpSetData:
			rec.Path = string(b.data.Path)
		case wire.OpSetACL:
			rec.Path, rec.ACL = string(b.acl.Path), b.acl.ACL
		case wire.OpMulti, wire.OpReconfig:
		default:
			rec.Path = string(b.create.Path)
			rec.setKind(w.op, &b.create)
		}
	}
	r.note(&rec)
}

func (w *auditedWrite) record(op wire.Op, path []byte, result AuditResult) AuditRecord {
	return AuditRecord{Op: op, Session: w.session, IDs: w.ids, Remote: w.remote, Path: string(path), Result: result}
}

// setKind fills in what a single create makes: only createContainer makes a container, whatever the flags say.
func (rec *AuditRecord) setKind(op wire.Op, req *wire.CreateTTLRequest) {
	switch op {
	case wire.OpCreateContainer:
		rec.Flags, rec.HasFlags = wire.FlagContainer, true
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL:
		rec.Flags, rec.HasFlags = req.Flags, true
		if req.Flags == wire.FlagContainer && rec.Result == AuditSuccess {
			rec.Flags = wire.FlagPersistent
		}
	}
}

// setMultiKind does the same for a create of a multi, where the flags decide.
func (rec *AuditRecord) setMultiKind(op wire.Op, req *wire.CreateTTLRequest) {
	switch op {
	case wire.OpCreateContainer:
		rec.Flags, rec.HasFlags = wire.FlagContainer, true
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateTTL:
		rec.Flags, rec.HasFlags = req.Flags, true
	}
}

// note hands a record out with the step.
func (r *Replica) note(rec *AuditRecord) { r.out.Audit = append(r.out.Audit, *rec) }
