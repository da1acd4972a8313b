package replica

import (
	"bytes"
	"fmt"

	"zabra/jute"
	"zabra/session"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// receiveConnect takes the first frame. The checks are those of the protocol's handshake, in its order.
func (c *Conn) receiveConnect(frame []byte) (Verdict, error) {
	req := &wire.ConnectRequest{}
	d := jute.NewDecoder(frame, c.r.cfg.FieldBytesMax)
	req.Decode(&d)
	if d.Err() != nil {
		return Closing, fmt.Errorf("%w: %w", ErrHandshake, d.Err())
	}
	c.countReceived(wire.OpCreateSession)
	tree := c.r.Tree()
	tree.RLock(c.shard)
	last := tree.LastZxid()
	tree.RUnlock(c.shard)
	if req.LastZxidSeen > last {
		return Closing, &ClientAheadError{Seen: req.LastZxidSeen, Last: last}
	}
	req.Password = bytes.Clone(req.Password)
	c.connect = req
	c.timeoutMs = session.Negotiate(req.TimeoutMs, c.r.cfg.MinSessionTimeoutMs, c.r.cfg.MaxSessionTimeoutMs)
	if !c.state.CompareAndSwap(stateNew, stateConnecting) {
		return Closing, nil // the server has ceased to serve
	}
	c.r.counters.connects.Add(1)
	c.r.postReceived(c)
	return Wait, nil
}

// ClientAheadError is an ErrClientAhead: such a client was used with other data, or with a server that is further on.
type ClientAheadError struct {
	// Seen is the last transaction that the client knows of, Last the last one that is applied here.
	Seen, Last zxid.Zxid
}

func (e *ClientAheadError) Error() string {
	return fmt.Sprintf("it has seen zxid %v our last zxid is %v", e.Seen, e.Last)
}

func (e *ClientAheadError) Unwrap() error { return ErrClientAhead }

// serveConnect opens a session or takes one over. The password is looked at before anything else, so that a stranger
// cannot throw the rightful client off.
func (r *Replica) serveConnect(c *Conn) {
	id := c.connect.SessionID
	if id == 0 {
		r.openSession(c)
		return
	}
	r.counters.revalidations.Add(1)
	want := session.Password(id)
	if !bytes.Equal(c.connect.Password, want[:]) {
		c.refuseSession()
		r.markDirty(c)
		return
	}
	if !r.term.leading {
		r.revalidate(c)
		return
	}
	h := r.tracker.Get(id)
	switch {
	case h == nil:
		c.refuseSession()
		r.markDirty(c)
	case h.Closing():
		r.toldExpired[id] = append(r.toldExpired[id], c)
	default:
		h.SetTimeout(c.timeoutMs)
		h.Touch(r.now.MonoMs)
		r.establish(c, h)
	}
}

// leaveBehind ends a connection whose session goes on elsewhere.
func (r *Replica) leaveBehind(old *Conn) {
	delete(r.bySession, old.SessionID())
	if !r.term.leading {
		old.session.Load().SetClosing() // a learner's handles are the connections' own
	}
	old.finish()
	r.markDirty(old)
}

// openSession asks for a new session. Its client is answered when the transaction is applied.
func (r *Replica) openSession(c *Conn) {
	id := r.ids.Next()
	for r.sessionKnown(id) {
		id = r.ids.Next()
	}
	var h *session.Handle
	if r.term.leading {
		h = r.tracker.Add(id, c.timeoutMs, r.now.MonoMs)
	} else {
		h = r.heard.Open(id, c.timeoutMs, r.now.MonoMs)
	}
	h.Busy(1)
	c.session.Store(h)
	c.nextSeq++
	c.pending.Add(1)
	r.outstanding.Add(1)
	c.fifo.push(item{kind: itemConnect, proposed: true, op: wire.OpCreateSession, seq: c.nextSeq, recvMs: r.now.MonoMs})
	c.fifo.unproposed++
	if !r.term.leading {
		r.forwardSession(c, id, c.nextSeq)
		return
	}
	r.proposeSession(id, c.timeoutMs, r.originOf(c, c.nextSeq))
}

func (r *Replica) proposeSession(s zxid.SessionID, timeoutMs int32, origin zab.Origin) {
	txn := znode.Txn{Type: wire.OpCreateSession, Timeout: timeoutMs}
	r.propose(s, 0, &txn, origin)
}

// establish binds the session to the connection and answers the handshake.
func (r *Replica) establish(c *Conn, h *session.Handle) {
	if old := r.bySession[h.ID()]; old != nil && old != c {
		r.leaveBehind(old)
	}
	h.SetOwner(r.ownerOf(c))
	c.session.Store(h)
	r.bySession[h.ID()] = c
	c.watches = r.Tree().Watches()
	c.watcher = c.watches.Attach(c)
	pw := session.Password(h.ID())
	c.answerConnect(wire.ConnectResponse{TimeoutMs: c.timeoutMs, SessionID: h.ID(), Password: pw[:], HasReadOnly: c.connect.HasReadOnly})
	c.connect = nil
	c.state.Store(stateEstablished)
	r.markDirty(c)
	c.resume()
}

// refuseSession gives the answer for a session that is unknown, expired or asked for with a wrong password: all zero, so
// that every client's own test for it succeeds.
func (c *Conn) refuseSession() {
	var zero [16]byte
	c.answerConnect(wire.ConnectResponse{Password: zero[:], HasReadOnly: c.connect.HasReadOnly})
	c.connect = nil
	c.finish()
	c.resume()
}

func (c *Conn) answerConnect(resp wire.ConnectResponse) {
	c.out.Lock()
	defer c.out.Unlock()
	e := &c.out.enc
	start := e.Len()
	e.Int32(0)
	resp.Encode(e)
	e.PatchInt32(start, int32(e.Len()-start-4))
	c.out.stats.replyBytes += int64(e.Len() - start)
	c.out.stats.sent++
	c.out.stats.lastOp, c.out.stats.hasOp = wire.OpCreateSession, true
}

// expireSessions proposes the end of sessions that were silent for too long.
func (r *Replica) expireSessions() {
	for _, h := range r.tracker.Advance(r.now.MonoMs) {
		r.expire(h)
	}
}

func (r *Replica) expire(h *session.Handle) {
	h.SetClosing()
	r.counters.expired.Add(1)
	r.log.Info(fmt.Sprintf("Expiring session %v, timeout of %dms exceeded", h.ID(), h.Timeout()))
	r.proposeClose(h.ID(), 0, zab.Origin{})
}

// closeOrphans ends, with ordinary transactions, sessions that own ephemeral nodes but do not exist. Such nodes come from
// data directories of other servers; deleting them silently would leave the log without a trace.
func (r *Replica) closeOrphans() {
	for _, s := range r.orphans {
		r.proposeClose(s, 0, zab.Origin{})
	}
	r.orphans = nil
}

// proposeClose proposes the end of a session with all its ephemeral nodes, those in flight included.
func (r *Replica) proposeClose(s zxid.SessionID, cxid int32, origin zab.Origin) {
	txn := znode.Txn{Type: wire.OpCloseSession, HasPaths: !r.cfg.BodylessCloseSession}
	z := r.core.NextZxid()
	paths := r.pending.ephemeralsOf(s)
	size := 2 * txnFixedBytes // header and digest
	for _, p := range paths {
		txn.Paths = append(txn.Paths, []byte(p))
		r.pending.remove([]byte(p), z)
		size += 4 + len(p)
	}
	if size > r.cfg.RecordBytesMax {
		// It could not be read back. Without the list a server deletes what the session owns at that point of the log,
		// which is the same set.
		txn.HasPaths, txn.Paths = false, nil
	}
	r.propose(s, cxid, &txn, origin)
}

// sessionEnded is called when a closeSession is applied: nothing of the session is visible any more, so whoever asked
// for it may be told, and its connection ends.
func (r *Replica) sessionEnded(s zxid.SessionID) {
	if r.tracker != nil {
		r.tracker.Remove(s)
	}
	if c := r.bySession[s]; c != nil {
		c.session.Load().SetClosing()
		r.leaveBehind(c)
	}
	for _, c := range r.toldExpired[s] {
		if !c.closed.Load() {
			c.refuseSession()
			r.markDirty(c)
		}
	}
	delete(r.toldExpired, s)
}

// ReservedSessions returns the session id up to which this replica may get. The caller makes it durable before it serves.
func (r *Replica) ReservedSessions() zxid.SessionID { return r.ids.Reserved() }
