package replica

import (
	"zabra/jute"
	"zabra/session"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// This file is the leader's side of what learners ask for.

// receiveAsLeader takes a message of a learner.
func (r *Replica) receiveAsLeader(m *zab.Message) {
	switch m.Kind {
	case zab.MessageRequest:
		for i := range m.Requests {
			r.serveForwarded(m, &m.Requests[i])
		}
	case zab.MessageSync:
		round := r.gather()
		round.learners = append(round.learners, zab.Message{From: m.From, Conn: m.Conn, ID: m.ID})
	case zab.MessageRevalidate:
		r.serveRevalidate(m)
	case zab.MessagePong:
		r.touch(m)
	}
}

// serveForwarded makes a transaction of a request that a learner has taken.
func (r *Replica) serveForwarded(m *zab.Message, q *zab.Request) {
	w := write{op: wire.Op(q.Op), session: q.Session, cxid: q.Cxid, body: q.Body, ids: r.wireIDs(q.Identities),
		origin: zab.Origin{Server: m.From, Conn: q.Origin.Conn, Seq: q.Origin.Seq}}
	if w.op == wire.OpCreateSession {
		r.createForwarded(m, &w)
		return
	}
	if w.op.Info().Class != wire.ClassWrite {
		r.refuse(m, w.origin, wire.CodeUnimplemented)
		return
	}
	h := r.tracker.Get(w.session)
	if h == nil || !h.Touch(r.now.MonoMs) {
		r.refuse(m, w.origin, wire.CodeSessionExpired)
		return
	}
	owner := session.Owner{Server: w.origin.Server, Conn: w.origin.Conn}
	switch {
	case w.op == wire.OpCloseSession: // whoever asks: the client means it
	case h.Owner() == session.Owner{}: // unknown since this server leads
		h.SetOwner(owner)
	case h.Owner() != owner:
		r.propose(w.session, w.cxid, &znode.Txn{Type: wire.OpError, Err: wire.CodeSessionMoved}, w.origin)
		return
	}
	if !r.transact(&w, h) {
		r.refuse(m, w.origin, wire.CodeMarshalling)
	}
}

// wireIDs returns identities as they are checked. Requests that came together mostly have the same, so the last ones are kept.
func (r *Replica) wireIDs(ids []zab.Identity) []wire.ID {
	if len(ids) == 0 {
		return nil
	}
	if last := &r.lastIDs; last.of != &ids[0] || len(last.ids) != len(ids) {
		*last = receivedIDs{&ids[0], make([]wire.ID, len(ids))}
		for i, id := range ids {
			last.ids[i] = wire.ID(id)
		}
	}
	return r.lastIDs.ids
}

// receivedIDs are the identities of a forwarded request, which were read into the list that begins at of.
type receivedIDs struct {
	of  *zab.Identity
	ids []wire.ID
}

// refuse answers a request that became no transaction.
func (r *Replica) refuse(m *zab.Message, origin zab.Origin, code wire.Code) {
	r.send(zab.Message{Kind: zab.MessageRefused, To: m.From, Conn: m.Conn, Owner: origin, Code: int32(code)})
}

// createForwarded proposes a new session of a learner's client. An id that is in use is refused: two clients would share
// the session.
func (r *Replica) createForwarded(m *zab.Message, w *write) {
	d := jute.NewDecoder(w.body, r.cfg.FieldBytesMax)
	timeoutMs := d.Int32()
	if d.Err() != nil || w.session == 0 || timeoutMs <= 0 {
		r.refuse(m, w.origin, wire.CodeMarshalling)
		return
	}
	if r.sessionKnown(w.session) {
		r.refuse(m, w.origin, wire.CodeSessionExpired)
		return
	}
	r.tracker.Add(w.session, timeoutMs, r.now.MonoMs).SetOwner(session.Owner{Server: m.From, Conn: w.origin.Conn})
	r.proposeSession(w.session, timeoutMs, w.origin)
}

// sessionKnown tells whether an id is that of a session already.
func (r *Replica) sessionKnown(s zxid.SessionID) bool {
	if _, known := r.Tree().SessionTimeout(s); known {
		return true
	}
	return r.tracker != nil && r.tracker.Get(s) != nil
}

// serveRevalidate tells a learner whether a session can be taken up there, and binds it to the connection that asks. The
// answer carries the last proposed transaction: the end of a session that is not valid is among what comes up to it.
func (r *Replica) serveRevalidate(m *zab.Message) {
	r.counters.learnerRevalidations.Add(1)
	h := r.tracker.Get(m.Session)
	valid := h != nil && h.Touch(r.now.MonoMs)
	if valid {
		h.SetTimeout(m.TimeoutMs)
		h.SetOwner(session.Owner{Server: m.From, Conn: m.Owner.Conn})
		if old := r.bySession[m.Session]; old != nil {
			r.leaveBehind(old)
		}
	}
	r.send(zab.Message{Kind: zab.MessageRevalidated, To: m.From, Conn: m.Conn, ID: m.ID, Session: m.Session, Valid: valid,
		Zxid: r.core.Status().LastProposed})
}

// touch takes what a learner has heard of its sessions.
func (r *Replica) touch(m *zab.Message) {
	for _, t := range m.Touches {
		h := r.tracker.Get(t.Session)
		if h == nil || !h.Touch(r.now.MonoMs-int64(max(t.AgeMs, 0))) {
			continue
		}
		// The timeout was negotiated on a connection there. A leader that is new knows only the one of the session's creation.
		if at := h.Owner().Server; t.TimeoutMs != h.Timeout() && (at == m.From || h.Owner() == session.Owner{}) {
			h.SetTimeout(t.TimeoutMs)
		}
	}
}
