package replica

import (
	"fmt"

	"go.uber.org/zap"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// applyScratch is memory that apply uses again and again.
type applyScratch struct {
	h       znode.TxnHeader
	txn     znode.Txn
	res     znode.Result
	results []wire.MultiResult
}

// apply carries committed transactions out, in batches under the tree's write lock. Events, then replies, go to the
// outboxes under the same lock.
func (r *Replica) apply(entries []zab.Entry) {
	for len(entries) > 0 {
		n, bytes := 0, 0
		for n < len(entries) && n < r.cfg.ApplyBatchMax && (n == 0 || bytes+len(entries[n].Payload) <= applyBatchBytesMax) {
			bytes += len(entries[n].Payload)
			n++
		}
		tree := r.Tree()
		tree.Lock()
		for i := range entries[:n] {
			r.applyEntry(&entries[i])
		}
		tree.Unlock()
		entries = entries[n:]
		if len(entries) > 0 && len(r.dirty) > 0 && r.cfg.FlushEarly != nil {
			r.cfg.FlushEarly(r.takeDirty())
			r.dirty = r.dirty[:0]
		}
	}
}

func (r *Replica) applyEntry(e *zab.Entry) {
	s := &r.scratch
	if last := r.Tree().LastZxid(); e.Zxid <= last {
		panic(fmt.Sprintf("replica: transaction %v is to be applied, but %v is already", e.Zxid, last))
	}
	// A leader with a larger limit may have let it through. It is committed: there is nothing left to refuse.
	digest, hasDigest, err := znode.DecodeTxn(e.Payload, max(r.cfg.FieldBytesMax, len(e.Payload)), &s.h, &s.txn)
	if err != nil {
		panic(fmt.Sprintf("replica: committed transaction %v cannot be read: %v", e.Zxid, err))
	}
	if r.audit.on && s.h.Type == wire.OpCloseSession {
		r.auditEphemerals(e)
	}
	r.Tree().ApplyHinted(&s.h, &s.txn, &s.res, r.takeHint(e.Zxid))
	if hasDigest && !r.cfg.Tree.NoDigest && digest.Value != r.Tree().Digest() {
		r.counters.digestMismatches.Add(1)
		r.log.Error("the tree after a transaction is not the one that was foreseen; "+r.divergenceHint(),
			zap.Stringer("zxid", e.Zxid), zap.Stringer("op", s.h.Type),
			zap.Uint64("foreseen", digest.Value), zap.Uint64("actual", r.Tree().Digest()))
	}
	if !r.cfg.Tree.NoDigest {
		r.digests.note(e.Zxid, r.Tree().Digest())
	}
	r.noteApplied(&s.h)
	r.noteWrites(&s.txn)
	if r.term.leading {
		r.pending.applied(e.Zxid)
		r.pending.appliedEphemeral(s.h.ClientID, e.Zxid)
		r.proposed.Add(-1) // a leader begins with everything applied: it is its own
		r.proposedBytes.Add(-int64(len(e.Payload)))
	}
	if r.audit.on {
		r.auditApplied(e)
	}
	if c := r.connOf(e.Origin); c != nil && !c.cut {
		r.answer(c, e)
	} else if e.Origin.Conn != 0 && e.Origin.Server == r.id {
		r.counters.staleReplies.Add(1)
	}
	switch s.h.Type {
	case wire.OpCreateSession:
		r.ids.Raise(s.h.ClientID)
	case wire.OpCloseSession:
		r.sessionEnded(s.h.ClientID)
	}
}

// divergenceHint says what to do about a tree that is not what it should be.
func (r *Replica) divergenceHint() string {
	if r.cfg.Ensemble == nil {
		return "copy the data directory, and report this line with the copy"
	}
	return "stop this server, empty its data directory but for myid, and start it again: it gets the data of the others"
}

// hinted is where the node of a transaction was when it was proposed.
type hinted struct {
	zxid zxid.Zxid
	hint znode.Hint
}

// takeHint returns the hint of a transaction, if there is one.
func (r *Replica) takeHint(z zxid.Zxid) (hint znode.Hint) {
	for r.hintsTaken < len(r.hints) && r.hints[r.hintsTaken].zxid <= z {
		if h := &r.hints[r.hintsTaken]; h.zxid == z {
			hint = h.hint
		}
		r.hintsTaken++
	}
	switch n := len(r.hints); {
	case r.hintsTaken == n:
		r.hints, r.hintsTaken = r.hints[:0], 0
	case r.hintsTaken >= hintsTakenMax: // never empty under load
		r.hints, r.hintsTaken = append(r.hints[:0], r.hints[r.hintsTaken:]...), 0
	}
	return hint
}

// answer replies to the request that an applied transaction came from, and to the reads that waited behind it.
func (r *Replica) answer(c *Conn, e *zab.Entry) {
	r.drain(c)
	if c.fifo.empty() {
		return // the connection has ended before the answer
	}
	it := c.fifo.front()
	if !it.proposed || it.seq != e.Origin.Seq {
		panic(fmt.Sprintf("replica: transaction %v answers request %d, but request %d is due", e.Zxid, e.Origin.Seq, it.seq))
	}
	if it.kind == itemConnect {
		c.answered(it)
		c.fifo.pop()
		if c.connect != nil && !c.closed.Load() {
			r.establish(c, c.session.Load())
		}
		return
	}
	r.meter.Commit.Add(r.now.MonoMs - it.recvMs)
	if r.scratch.h.Type == wire.OpError && r.scratch.txn.Err == wire.CodeSessionMoved {
		it.silent, it.last = true, true // no client knows this code: the connection ends instead
	} else {
		r.replyWrite(c, it, e.Zxid)
	}
	r.markDirty(c)
	if !r.done(c, it) {
		r.drain(c)
	}
}

// dropRest throws away what a client sent behind its last request.
func (c *Conn) dropRest() {
	for !c.fifo.empty() {
		c.r.counters.droppedRequests.Add(1)
		c.answered(c.fifo.front())
		c.fifo.pop()
	}
	c.syncs = 0
}

// replyWrite writes the reply of an applied transaction.
func (r *Replica) replyWrite(c *Conn, it *item, z zxid.Zxid) {
	res := &r.scratch.res
	code := res.Code
	if r.scratch.h.Type == wire.OpError {
		code = r.scratch.txn.Err
	}
	if it.op == wire.OpMulti && r.scratch.h.Type == wire.OpMulti {
		r.replyMulti(c.beginReply(it.xid, z, wire.CodeOK))
		c.endReply(it.op, it.xid, z, it.recvMs, r.now.MonoMs)
		return
	}
	e := c.beginReply(it.xid, z, code)
	if code == wire.CodeOK {
		encodeResult(e, it.op, res)
	}
	c.endReply(it.op, it.xid, z, it.recvMs, r.now.MonoMs)
}

func encodeResult(e *jute.Encoder, op wire.Op, res *znode.Result) {
	switch op {
	case wire.OpCreate:
		e.UString(res.Path)
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		e.UString(res.Path)
		res.Stat.Encode(e)
	case wire.OpSetData, wire.OpSetACL:
		res.Stat.Encode(e)
	}
}

// replyMulti writes one result per operation. A multi that failed has an error in each place.
func (r *Replica) replyMulti(e *jute.Encoder) {
	results := r.scratch.results[:0]
	failed := r.scratch.res.Code != wire.CodeOK
	for i := range r.scratch.res.Ops {
		sub := &r.scratch.res.Ops[i]
		out := wire.MultiResult{Op: sub.Op, Path: sub.Path, Stat: sub.Stat}
		switch {
		case failed:
			out = wire.MultiResult{Op: wire.OpError, Err: sub.Code}
		case sub.Op == wire.OpCreateContainer || sub.Op == wire.OpCreateTTL:
			out.Op = wire.OpCreate2
		}
		results = append(results, out)
	}
	wire.AppendMultiResults(e, results)
	clear(results)
	r.scratch.results = results[:0]
}
