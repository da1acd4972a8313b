package replica

import (
	"math"

	"zabra/jute"
	"zabra/session"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
)

// This file is the learner's side: what it asks the leader for, and what it does with the answers.

// receiveAsLearner takes a message of the leader.
func (r *Replica) receiveAsLearner(m *zab.Message) {
	switch m.Kind {
	case zab.MessageRefused:
		r.refused(m)
	case zab.MessageSynced:
		r.syncProven(m.ID, m.Zxid)
	case zab.MessageRevalidated:
		r.revalidated(m)
	}
}

// forward sends a write to the leader. What can be seen to be malformed is answered here, as the leader would.
func (r *Replica) forward(c *Conn, it *item) {
	h := c.session.Load()
	if h.Closing() || r.bySession[h.ID()] != c {
		it.silent = true // the session ends, or has moved to another connection and goes on there
		return
	}
	if it.op == wire.OpCloseSession {
		h.SetClosing()
		c.state.Store(stateClosing)
		it.last = true
	} else {
		d := jute.NewDecoder(it.body, r.cfg.FieldBytesMax)
		if !r.body.decode(it.op, &d) {
			it.code = wire.CodeMarshalling
			return
		}
	}
	if len(it.body) >= r.cfg.RecordBytesMax {
		r.refuseTooLarge(&op{code: it.op, session: h.ID(), conn: c, bodyBytes: len(it.body)}, nil)
		it.code = wire.CodeMarshalling // as the leader would, whom it would not reach in one piece
		return
	}
	it.proposed, it.forwarded = true, true
	r.forwardedBytes += it.travelBytes()
	r.sendRequest(zab.Request{Origin: r.originOf(c, it.seq), Session: h.ID(), Cxid: it.xid, Op: int32(it.op), Body: it.body,
		Identities: c.identities(it.ids)})
}

// sendRequest gathers the requests of a step: they leave together, in front of whatever else is sent.
func (r *Replica) sendRequest(req zab.Request) {
	size := requestCostBytes + len(req.Body)
	for _, id := range req.Identities {
		size += requestCostBytes + len(id.Scheme) + len(id.ID)
	}
	if r.requestBytes+size > requestBatchBytesMax {
		r.sendRequests()
	}
	r.requestBytes += size
	r.requests = append(r.requests, req)
}

// sendRequests sends what was gathered.
func (r *Replica) sendRequests() {
	if len(r.requests) == 0 {
		return
	}
	batch := r.requests
	r.requests, r.requestBytes = nil, 0
	r.send(zab.Message{Kind: zab.MessageRequest, To: r.term.leader, Requests: batch})
}

// identities returns ids as they travel. They change rarely, so the last ones are kept.
func (c *Conn) identities(ids []wire.ID) []zab.Identity {
	if len(ids) != len(c.sentIDs) || &ids[0] != c.sentOf {
		c.sentIDs, c.sentOf = make([]zab.Identity, len(ids)), &ids[0]
		for i, id := range ids {
			c.sentIDs[i] = zab.Identity(id)
		}
	}
	return c.sentIDs
}

// forwardSession asks the leader for a new session with an id of this server.
func (r *Replica) forwardSession(c *Conn, id zxid.SessionID, seq uint64) {
	var e jute.Encoder
	e.Int32(c.timeoutMs)
	r.sendRequest(zab.Request{Origin: r.originOf(c, seq), Session: id, Op: int32(wire.OpCreateSession), Body: e.Bytes()})
}

// refused takes the leader's answer to a request that became no transaction.
func (r *Replica) refused(m *zab.Message) {
	o := m.Owner
	if r.audit.on {
		r.auditRefused(o)
	}
	c := r.connOf(o)
	if c == nil || c.cut {
		return
	}
	it := c.fifo.find(o.Seq)
	if it == nil || !it.proposed {
		return // the connection has ended before the answer
	}
	it.proposed = false
	it.code = wire.Code(m.Code)
	if it.kind == itemConnect || it.code == wire.CodeSessionExpired {
		// There is nothing to tell: the connection ends, and the client learns the rest when it connects again.
		it.silent, it.last = true, true
	}
	r.drain(c)
}

// reattachments are the handshakes of a term that take up a session again.
type reattachments struct {
	// asked are those that wait for the leader's answer, by the number of the question.
	asked map[uint64]*Conn
	// answered wait for transactions to be applied, in the order of the answers.
	answered []answeredReattachment
}

type answeredReattachment struct {
	zxid  zxid.Zxid
	c     *Conn
	valid bool
}

// revalidate asks the leader whether a session can be taken up here. Only the answer with the number of this question
// counts. The connection that the client left behind here ends at once.
func (r *Replica) revalidate(c *Conn) {
	s := c.connect.SessionID
	if old := r.bySession[s]; old != nil {
		r.leaveBehind(old)
	}
	if r.reattach.asked == nil {
		r.reattach.asked = make(map[uint64]*Conn)
	}
	r.sendRequests() // the leader must see what was received before the question
	id := r.nextID()
	r.reattach.asked[id] = c
	r.send(zab.Message{Kind: zab.MessageRevalidate, To: r.term.leader, ID: id, Session: s, TimeoutMs: c.timeoutMs, Owner: r.originOf(c, 0)})
}

// revalidated takes the leader's answer.
func (r *Replica) revalidated(m *zab.Message) {
	c := r.reattach.asked[m.ID]
	delete(r.reattach.asked, m.ID)
	if c == nil || c.closed.Load() || c.connect == nil || c.connect.SessionID != m.Session {
		return
	}
	r.settle(answeredReattachment{m.Zxid, c, m.Valid})
}

// settle ends a handshake now or later.
func (r *Replica) settle(a answeredReattachment) {
	if !r.decide(&a) {
		r.reattach.answered = append(r.reattach.answered, a)
	}
}

// decide ends a handshake if everything is applied that the leader had proposed when it was decided. A client that lost its
// connection with a write on its way looks for it with its next read, so it must not be let in before that write; and when it
// is told "expired", nothing of the session may be visible any more. A session that was valid and is unknown by then has ended
// since.
func (r *Replica) decide(a *answeredReattachment) bool {
	if r.Tree().LastZxid() < a.zxid {
		return false
	}
	id := a.c.connect.SessionID
	if r.term.leading {
		r.decideHere(a.c, id)
		return true
	}
	if _, known := r.Tree().SessionTimeout(id); a.valid && known {
		r.establish(a.c, r.heard.Open(id, a.c.timeoutMs, r.now.MonoMs))
		return true
	}
	a.c.refuseSession()
	r.markDirty(a.c)
	return true
}

// releaseReattachments ends the handshakes that have waited long enough.
func (r *Replica) releaseReattachments() {
	list := r.reattach.answered
	for len(list) > 0 && (list[0].c.closed.Load() || r.decide(&list[0])) {
		list = list[1:]
	}
	if len(list) == 0 {
		list = nil
	}
	r.reattach.answered = list
}

// releaseWaiters answers whatever has waited for transactions to be applied.
func (r *Replica) releaseWaiters() {
	r.releaseSyncs()
	r.releaseReattachments()
}

// answerPing tells the leader which sessions were heard since its last ping.
func (r *Replica) answerPing(m *zab.Message) {
	pong := zab.Message{Kind: zab.MessagePong, To: m.From, Conn: m.Conn, ID: m.ID}
	if r.heard != nil {
		pong.Touches = touches(r.heard.Take(r.now.MonoMs))
	}
	r.send(pong)
}

func touches(heard []session.Touched) []zab.Touch {
	list := make([]zab.Touch, len(heard))
	for i, t := range heard {
		list[i] = zab.Touch{Session: t.Session, TimeoutMs: t.TimeoutMs, AgeMs: int32(min(t.AgeMs, math.MaxInt32))}
	}
	return list
}
