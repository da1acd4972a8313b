package replica

import (
	"fmt"

	"go.uber.org/zap"

	"zabra/jute"
	"zabra/wire"
)

// Limits are bounds on what clients may ask for that can change while the replica is in use. The zero value of Throttle
// bounds nothing.
type Limits struct {
	// OutstandingMax and EnforceQuota are those of Config.
	OutstandingMax int
	EnforceQuota   bool
	Throttle       Throttle

	// outstanding is the number of requests in process above which a connection that has one is not read.
	outstanding int64
}

// Throttle bounds what a server under too much load takes on.
type Throttle struct {
	// RequestsMax bounds the requests in process below OutstandingMax; 0 is off.
	RequestsMax int
	// DropStale throws away requests, in a server that RequestsMax bounds, which nobody waits for any more: with
	// StaleByConnection those of connections that are closed, with StaleByLatency those that have waited longer than their
	// session's timeout, and then the connection ends. The request to close a session is none of them.
	DropStale, StaleByConnection, StaleByLatency bool
	// OpWaitMs refuses, with CodeThrottled, a request that has waited longer than that before it was looked at; 0 is off.
	OpWaitMs int64
	// LargeAboveBytes is the length of a frame above which it counts against LargeBytesMax from when its length is known until
	// it is answered. What would go beyond costs its connection. 0 is off.
	LargeAboveBytes, LargeBytesMax int
}

// timed tells whether it matters how long requests have waited.
func (t *Throttle) timed() bool { return t.OpWaitMs > 0 || t.dropsOld() }

func (t *Throttle) dropsOld() bool { return t.RequestsMax > 0 && t.DropStale && t.StaleByLatency }

func (t *Throttle) dropsUnheard() bool {
	return t.RequestsMax > 0 && t.DropStale && t.StaleByConnection
}

// SetLimits changes the limits. They count for what comes from now on. Any goroutine may call it.
func (r *Replica) SetLimits(l Limits) {
	if l.OutstandingMax <= 0 {
		l.OutstandingMax = outstandingDefault
	}
	l.outstanding = int64(l.OutstandingMax)
	if r.cfg.Ensemble != nil {
		if voters := int64(len(r.cfg.Ensemble.Ensemble.Voters())); voters > 2 {
			l.outstanding = max(l.outstanding/(voters-1), 1)
		}
	}
	if n := int64(l.Throttle.RequestsMax); n > 0 {
		l.outstanding = min(l.outstanding, n)
	}
	r.limits.Store(&l)
}

// stale throws away what a connection that is closed has asked for and nobody has looked at, if that is wanted. A client
// that ends its session and goes means it all the same.
func (r *Replica) stale(c *Conn) {
	if t := &r.limits.Load().Throttle; !t.dropsUnheard() {
		return
	}
	for i := c.fifo.unproposed; i < len(c.fifo.items); i++ {
		it := &c.fifo.items[i]
		if it.op != wire.OpCloseSession && !it.last {
			it.kind, it.silent = itemRefused, true
			r.counters.staleDropped.Add(1)
		}
	}
}

// waited looks at a request whose turn has come, and refuses it if it has waited too long. It reports false if that ends the
// connection.
func (r *Replica) waited(c *Conn, it *item, t *Throttle) bool {
	if !throttles(it) {
		return true
	}
	ms := r.now.MonoMs - it.recvMs
	switch {
	case t.dropsOld() && ms > int64(c.timeoutMs):
		r.counters.staleDropped.Add(1)
		r.tellWait(c, it, fmt.Sprintf("the request has waited %d ms, longer than its session's timeout; the connection is closed. "+
			"The server has more to do than it can, or its disk is slow", ms))
		c.finish()
		r.markDirty(c)
		return false
	case t.OpWaitMs > 0 && ms > t.OpWaitMs:
		r.counters.throttled.Add(1)
		r.tellWait(c, it, fmt.Sprintf("the request has waited %d ms and is refused, as throttled_op_wait_time=%d says. "+
			"The server has more to do than it can, or its disk is slow", ms, t.OpWaitMs))
		if it.code = wire.CodeThrottled; it.kind == itemWrite && r.audit.on {
			r.auditPrepared(c, it)
		}
		it.kind = itemRefused
	}
	return true
}

// throttles tells whether a request may be refused for the time that it has waited: not what keeps a session alive or ends it.
func throttles(it *item) bool {
	switch it.kind {
	case itemWrite:
		return it.op != wire.OpCloseSession
	case itemSync:
		return true
	case itemRead:
		class := it.op.Info().Class
		return class == wire.ClassRead || class == wire.ClassSync
	}
	return false
}

func (r *Replica) tellWait(c *Conn, it *item, why string) {
	var path []byte
	if it.op != wire.OpMulti && it.op != wire.OpMultiRead { // every other such request begins with its path
		d := jute.NewDecoder(it.body, r.cfg.FieldBytesMax)
		path = d.UString()
	}
	r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: it.op, Path: string(path[:min(len(path), shownPathBytesMax)]), Why: why})
}

// overQuota reports whether a write would go beyond a hard limit of a quota, and tells of that, and of a soft limit, in the log.
func (r *Replica) overQuota(o *op, path []byte, countDelta, bytesDelta int64) bool {
	breach, over := r.Tree().CheckQuota(path, countDelta, bytesDelta)
	if !over {
		return false
	}
	why := breach.String() + "; delete what is not needed there, or raise the quota"
	switch {
	case o.conn != nil:
		r.cfg.Refused(Refusal{Conn: o.conn, Session: o.session, Op: o.code, Path: string(path[:min(len(path), shownPathBytesMax)]), Why: why})
	case r.quotaToldMs == 0 || r.now.MonoMs-r.quotaToldMs >= quotaQuietMs: // of another server's client
		r.quotaToldMs = r.now.MonoMs
		r.log.Warn(why, zap.Stringer("session", o.session), zap.Stringer("op", o.code))
	}
	if breach.Hard {
		r.countOverQuota(path)
	}
	return breach.Hard
}

// ReserveLarge asks whether a frame of that length may be taken in. If it counts as a large one, its bytes are taken from the
// budget, and reserved is what ReleaseLarge has to get when the frame was handed to Receive, or never will be. Any goroutine may
// call it.
func (r *Replica) ReserveLarge(frameBytes int) (reserved int, ok bool) {
	t := &r.limits.Load().Throttle
	if t.LargeAboveBytes <= 0 || frameBytes <= t.LargeAboveBytes {
		return 0, true
	}
	if r.largeBytes.Add(int64(frameBytes)) > int64(t.LargeBytesMax) {
		r.largeBytes.Add(-int64(frameBytes))
		r.counters.largeRejected.Add(1)
		return 0, false
	}
	return frameBytes, true
}

// ReleaseLarge gives back what ReserveLarge has taken.
func (r *Replica) ReleaseLarge(reserved int) { r.largeBytes.Add(-int64(reserved)) }

// LargeRequestsReason is why a connection ends whose request is beyond the budget.
const LargeRequestsReason = "with this request the large ones in process would take more than largeRequestMaxBytes; the connection is closed. " +
	"Raise it if there is memory for it, or write less at a time"

// refuseLarge ends the connection of a request that does not fit into the budget.
func (c *Conn) refuseLarge(it *item) Verdict {
	c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: it.op, Bytes: len(it.body),
		Limit: c.r.limits.Load().Throttle.LargeBytesMax, Why: LargeRequestsReason})
	c.finish()
	return Closing
}
