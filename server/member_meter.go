package server

import (
	"sync"
	"sync/atomic"
	"time"

	"zabra/internal/histogram"
	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// memberMeter counts what concerns the ensemble. As in meter, counters are never set back.
type memberMeter struct {
	looking           atomic.Int64
	leaders           atomic.Int64 // how often clients came to be served under a new leader, or a new epoch of the same
	proposalsReceived atomic.Int64
	commitsReceived   atomic.Int64
	diffs, snaps      atomic.Int64

	// Times in milliseconds.
	election, unavailable, leaderUnavailable histogram.Histogram
	followerSync, observerSync               histogram.Histogram
	// proposed, ackCreation and committed are the ages of transactions when a learner has received them, when they are
	// durable there, and when it has heard that they are committed: for the last, of the newest of each message.
	proposed, ackCreation, committed histogram.Histogram
	// diffing and snapping are how many learners were being brought up to date when another one began to be.
	diffing, snapping histogram.Histogram

	learnersMu sync.Mutex
	learners   map[zxid.ServerID]*learnerMeter

	// servingMs is since when clients are served, by the monotonic clock; 0: they are not.
	servingMs atomic.Int64
}

// learnerMeter is what a leader measures of one member; of itself only ackMs.
type learnerMeter struct {
	// queued is how many messages waited for the member when one more came, queuedMs how long the first of those that were
	// taken together had waited.
	queued, queuedMs histogram.Histogram
	// ackMs is how long the member took to acknowledge proposals, in milliseconds: a sample for each message, of itself for
	// each transaction.
	ackMs histogram.Histogram
}

// servedUnder is a leader and its epoch.
type servedUnder struct {
	leader zxid.ServerID
	epoch  zxid.Epoch
}

// reset is srst.
func (m *memberMeter) reset() {
	for _, h := range []*histogram.Histogram{&m.election, &m.unavailable, &m.leaderUnavailable, &m.followerSync, &m.observerSync,
		&m.proposed, &m.ackCreation, &m.committed, &m.diffing, &m.snapping} {
		h.Reset()
	}
	m.learnersMu.Lock()
	defer m.learnersMu.Unlock()
	for _, l := range m.learners {
		for _, h := range []*histogram.Histogram{&l.queued, &l.queuedMs, &l.ackMs} {
			h.Reset()
		}
	}
}

// learner returns the series of a member, whose ids are those of the configuration.
func (m *memberMeter) learner(id zxid.ServerID) *learnerMeter {
	m.learnersMu.Lock()
	defer m.learnersMu.Unlock()
	l := m.learners[id]
	if l == nil {
		if m.learners == nil {
			m.learners = make(map[zxid.ServerID]*learnerMeter)
		}
		l = &learnerMeter{}
		m.learners[id] = l
	}
	return l
}

// measure counts what a leader sends.
func (m *member) measure(rd *replica.Ready) {
	if rd.Status.Role != zab.RoleLeading {
		return
	}
	for i := range rd.Send {
		switch kind := rd.Send[i].Kind; kind {
		case zab.MessageDiff, zab.MessageTrunc:
			m.meter.diffs.Add(1)
			m.meter.diffing.Add(m.conns.beginSync(rd.Send[i].Conn, zab.MessageDiff))
		case zab.MessageSnap:
			m.meter.snaps.Add(1)
			m.meter.snapping.Add(m.conns.beginSync(rd.Send[i].Conn, zab.MessageSnap))
		case zab.MessageUpToDate:
			m.conns.beginSync(rd.Send[i].Conn, 0)
		}
	}
}

// beginSync notes in which way the learner at the other end is being brought up to date, and returns how many are in that
// way.
func (t *quorumConns) beginSync(id zab.ConnID, kind zab.MessageKind) (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.open {
		if c.id == id {
			c.syncing = kind
		}
		if c.syncing == kind {
			n++
		}
	}
	return n
}

// notePhase measures how long a learner is brought up to date.
func (m *member) notePhase(now *zab.Status) {
	if now.Phase == zab.PhaseSynchronization {
		m.syncMs = m.s.clock.now().MonoMs
	}
}

// noteServing is called when clients begin to be served.
func (m *member) noteServing(now *zab.Status, nowMs int64) {
	since := m.syncMs
	if m.syncMs = 0; since == 0 { // it was done before anybody saw it begin
		since = nowMs
	}
	switch now.Role {
	case zab.RoleFollowing:
		m.meter.followerSync.Add(nowMs - since)
	case zab.RoleObserving:
		m.meter.observerSync.Add(nowMs - since)
	}
	if under := (servedUnder{now.Leader, now.Epoch}); under != m.served {
		m.served = under
		m.meter.leaders.Add(1)
	}
}

// noteSentLocked measures what a leader sends to a learner. out is locked.
func (c *quorumConn) noteSentLocked(msg *zab.Message) {
	if c.learner == nil {
		return
	}
	c.learner.queued.Add(int64(len(c.out.queue)))
	if n := len(msg.Entries); n > 0 && msg.Kind == zab.MessageProposal {
		c.out.flights.note(msg.Entries[n-1].Zxid, c.m.sendMs)
	}
}

// noteTakenLocked measures how long the queue to a learner has waited. out is locked.
func (c *quorumConn) noteTakenLocked() {
	if c.learner != nil && len(c.out.queue) > 0 {
		c.learner.queuedMs.Add(c.m.s.clock.now().MonoMs - c.out.sinceMs)
	}
}

// noteReceived counts and measures what arrives. It belongs to the reader.
func (c *quorumConn) noteReceived(msg *zab.Message) {
	meter := &c.m.meter
	switch msg.Kind {
	case zab.MessageAck:
		if c.learner != nil {
			nowMs := c.m.s.clock.now().MonoMs
			c.out.Lock()
			c.out.flights.reached(msg.Zxid, nowMs, &c.learner.ackMs)
			c.out.Unlock()
		}
	case zab.MessageProposal, zab.MessageInform:
		meter.proposalsReceived.Add(int64(len(msg.Entries)))
		c.noteProposal(msg)
	case zab.MessageCommit:
		meter.commitsReceived.Add(1)
		c.noteCommitted(msg.Zxid)
	}
}

// noteProposal measures how old transactions are on their arrival. While the history is handed on they are as old as they
// are.
func (c *quorumConn) noteProposal(msg *zab.Message) {
	n := len(msg.Entries)
	if n == 0 || !c.m.isServing() {
		return
	}
	wallMs := time.Now().UnixMilli()
	for i := range msg.Entries {
		addAge(&c.m.meter.proposed, wallMs, msg.Entries[i].Payload)
	}
	last := &msg.Entries[n-1]
	c.arrivals.note(last.Zxid, znode.TxnTime(last.Payload))
	committed := msg.Committed
	if msg.Kind == zab.MessageInform {
		committed = last.Zxid
	}
	c.arrivals.reached(committed, wallMs, &c.m.meter.committed)
}

// noteCommitted measures how old transactions are when it is known that they are committed.
func (c *quorumConn) noteCommitted(z zxid.Zxid) {
	if len(c.arrivals.list) > 0 {
		c.arrivals.reached(z, time.Now().UnixMilli(), &c.m.meter.committed)
	}
}

// passages remembers when transactions went by, to tell how long they took when they have got further. It holds no more
// than passagesMax: of those beyond nothing is measured.
type passages struct{ list []passage }

type passage struct {
	zxid zxid.Zxid
	ms   int64
}

func (p *passages) note(z zxid.Zxid, ms int64) {
	if len(p.list) < passagesMax {
		p.list = append(p.list, passage{z, ms})
	}
}

// reached adds how long all up to z took.
func (p *passages) reached(z zxid.Zxid, nowMs int64, h *histogram.Histogram) {
	i := 0
	for ; i < len(p.list) && p.list[i].zxid <= z; i++ {
		if ms := nowMs - p.list[i].ms; ms >= 0 {
			h.Add(ms)
		}
	}
	if i > 0 {
		p.list = append(p.list[:0], p.list[i:]...)
	}
}
