package replica

import (
	"sync"
	"time"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
)

// latency sums up request latencies in milliseconds.
type latency struct {
	count, sum, min, max int64
}

func (l *latency) add(ms int64) {
	if l.count == 0 || ms < l.min {
		l.min = ms
	}
	if ms > l.max {
		l.max = ms
	}
	l.count++
	l.sum += ms
}

func (l *latency) merge(o latency) {
	if o.count == 0 {
		return
	}
	if l.count == 0 || o.min < l.min {
		l.min = o.min
	}
	l.max = max(l.max, o.max)
	l.count += o.count
	l.sum += o.sum
}

// connStats counts for one connection. Guarded by the connection's out.mu, since that is held at every reply.
type connStats struct {
	frameStart int // of the reply being written
	openedMs   int64

	// received and sent since the server's statistics were last reset; serverGen says which reset that was.
	serverGen             uint64
	serverIn, serverOut   int64
	serverLatency         latency
	lastSize              int
	minSize, maxSize      int
	received, sent        int64
	lastOp                wire.Op
	hasOp                 bool
	lastCxid              int32
	hasCxid               bool
	lastZxid              zxid.Zxid
	lastRespMs, lastLatMs int64
	lat                   latency
	countedSent           int64 // how much of sent is in serverOut
	// replyBytes and eventBytes are what was sent, pings how many of them came, since the connection was opened.
	replyBytes, eventBytes, pings int64
}

// sync starts the server-wide counters anew if they were reset since the last call.
func (s *connStats) sync(gen uint64) {
	if s.serverGen != gen {
		s.serverGen = gen
		s.serverIn, s.serverOut, s.serverLatency = 0, 0, latency{}
		s.lastSize, s.minSize, s.maxSize = 0, 0, 0
		s.countedSent = s.sent
	}
	s.serverOut += s.sent - s.countedSent
	s.countedSent = s.sent
}

func (s *connStats) replied(op wire.Op, xid int32, z zxid.Zxid, size int, recvMs, nowMs int64, gen uint64) (lat int64) {
	s.sync(gen)
	s.sent++
	s.replyBytes += int64(size)
	lat = max(nowMs-recvMs, 0)
	s.lat.add(lat)
	s.serverLatency.add(lat)
	s.lastOp, s.hasOp = op, true
	if xid >= 0 {
		s.lastCxid, s.hasCxid = xid, true
	}
	s.lastZxid, s.lastRespMs, s.lastLatMs = z, nowMs, lat
	s.lastSize = size
	if s.minSize == 0 || size < s.minSize {
		s.minSize = size
	}
	s.maxSize = max(s.maxSize, size)
	return lat
}

// countReceived counts a request. Its caller names the opcode as it came.
func (c *Conn) countReceived(op wire.Op) {
	c.out.Lock()
	c.out.stats.sync(c.r.statsGeneration.Load())
	c.out.stats.received++
	c.out.stats.serverIn++
	if op == wire.OpPing {
		c.out.stats.pings++
	}
	c.out.Unlock()
}

// totals adds up what connections counted.
type totals struct {
	gen     uint64
	in, out int64
	lat     latency
	last    int
	min     int
	max     int
	// replyBytes, eventBytes and pings do not begin anew.
	replyBytes, eventBytes, pings int64
}

// sync starts the totals anew if the statistics were reset since the last call.
func (t *totals) sync(gen uint64) {
	if t.gen != gen {
		*t = totals{gen: gen, replyBytes: t.replyBytes, eventBytes: t.eventBytes, pings: t.pings}
	}
}

func (t *totals) add(s *connStats, gen uint64) {
	t.sync(gen)
	s.sync(gen)
	t.replyBytes += s.replyBytes
	t.eventBytes += s.eventBytes
	t.pings += s.pings
	t.in += s.serverIn
	t.out += s.serverOut
	t.lat.merge(s.serverLatency)
	if s.maxSize > 0 {
		t.last = s.lastSize
		if t.min == 0 || s.minSize < t.min {
			t.min = s.minSize
		}
		t.max = max(t.max, s.maxSize)
	}
}

// Stats is the state of a replica at one moment, for the operator.
type Stats struct {
	LastZxid                                  zxid.Zxid
	Received, Sent                            int64
	LatencyCount, LatencySumMs                int64
	LatencyMinMs, LatencyMaxMs                int64
	LastResponseBytes, MinResponseBytes       int // -1 before any
	MaxResponseBytes                          int
	Outstanding                               int64
	Connections                               int
	Nodes, Ephemerals, Containers             int
	DataBytes                                 int64
	Sessions                                  int
	WatchConnections, WatchPaths, DataWatches int
	Watches                                   int
	Proposals, Commits, ExpiredSessions       uint64
	DigestMismatches                          uint64
	SessionRequests, Revalidations            uint64
	// Since the start, like those before: transactions applied, in any role; sessions that learners asked the leader about;
	// writes of which a transaction was to be made; requests of connections that were closed when their turn came, requests
	// that were thrown away with their connection, transactions whose client had gone; and how often a connection was not
	// read because too much was in process.
	Applied, LearnerRevalidations, Prepared      uint64
	StaleRequests, DroppedRequests, StaleReplies uint64
	ReadPauses                                   uint64
	// ReplyBytes and EventBytes are what was sent to clients since the start, Pings are theirs.
	ReplyBytes, EventBytes, Pings int64
	// Throttled were refused because they had waited too long, StaleDropped thrown away because nobody waited for them any
	// more, LargeRejected were beyond the budget of large requests.
	Throttled, StaleDropped, LargeRejected uint64
	// Sizes of the transactions that were proposed here since the server's statistics were reset; -1 before any.
	LastProposalBytes, MinProposalBytes, MaxProposalBytes int
	// PendingSyncs counts the syncs, of clients here and of learners, that wait for the proof that the leader leads.
	PendingSyncs int
	// Zab is what the server is to its ensemble: role, phase, and for a leader its learners.
	Zab zab.Status
}

// proposalSizes notes how large the transactions are that this server proposes.
type proposalSizes struct {
	mu             sync.Mutex
	gen            uint64
	last, min, max int
}

func (p *proposalSizes) note(bytes int, gen uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != gen || p.max == 0 {
		p.gen, p.min, p.max = gen, bytes, bytes
	}
	p.last, p.min, p.max = bytes, min(p.min, bytes), max(p.max, bytes)
}

func (p *proposalSizes) sizes(gen uint64) (lastBytes, minBytes, maxBytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gen != gen || p.max == 0 {
		return -1, -1, -1
	}
	return p.last, p.min, p.max
}

// Stats may be called from any goroutine.
func (r *Replica) Stats() Stats {
	gen := r.statsGeneration.Load()
	r.conns.mu.Lock()
	sum := r.conns.gone
	sum.sync(gen)
	for _, c := range r.conns.byGen { // order: sums do not depend on it
		c.out.Lock()
		sum.add(&c.out.stats, gen)
		c.out.Unlock()
	}
	connections := len(r.conns.byGen)
	r.conns.mu.Unlock()
	s := Stats{
		Received: sum.in, Sent: sum.out, Connections: connections,
		LatencyCount: sum.lat.count, LatencySumMs: sum.lat.sum, LatencyMinMs: sum.lat.min, LatencyMaxMs: sum.lat.max,
		LastResponseBytes: -1, MinResponseBytes: -1, MaxResponseBytes: -1,
		Outstanding:      r.outstanding.Load(),
		Proposals:        r.counters.proposals.Load(),
		Commits:          r.counters.commits.Load(),
		ExpiredSessions:  r.counters.expired.Load(),
		DigestMismatches: r.counters.digestMismatches.Load(),
		SessionRequests:  r.counters.connects.Load(),
		Revalidations:    r.counters.revalidations.Load(),
		Applied:          r.counters.applied.Load(), LearnerRevalidations: r.counters.learnerRevalidations.Load(),
		Prepared: r.counters.prepared.Load(), StaleRequests: r.counters.staleRequests.Load(),
		DroppedRequests: r.counters.droppedRequests.Load(), StaleReplies: r.counters.staleReplies.Load(),
		ReadPauses: r.counters.readPauses.Load(), ReplyBytes: sum.replyBytes, EventBytes: sum.eventBytes, Pings: sum.pings,
		Throttled:     r.counters.throttled.Load(),
		StaleDropped:  r.counters.staleDropped.Load(),
		LargeRejected: r.counters.largeRejected.Load(),
	}
	if sum.max > 0 {
		s.LastResponseBytes, s.MinResponseBytes, s.MaxResponseBytes = sum.last, sum.min, sum.max
	}
	s.LastProposalBytes, s.MinProposalBytes, s.MaxProposalBytes = r.proposals.sizes(gen)
	r.status.mu.Lock()
	s.Zab, s.PendingSyncs = r.status.Status, r.status.syncs
	r.status.mu.Unlock()
	tree := r.Tree()
	tree.RLock(0)
	s.LastZxid = tree.LastZxid()
	s.Nodes, s.Ephemerals, s.Containers = tree.NodeCount(), tree.EphemeralCount(), tree.ContainerCount()
	s.DataBytes = tree.DataSize()
	s.Sessions = tree.SessionCount()
	tree.RUnlock(0)
	s.WatchConnections, s.WatchPaths, s.DataWatches = tree.Watches().Counts()
	s.Watches = tree.Watches().Total()
	return s
}

// ResetStats starts the server's packet and latency statistics anew, and a new period of the meter (srst).
func (r *Replica) ResetStats() {
	r.statsGeneration.Add(1)
	r.meter.reset()
}

// ConnInfo is the state of one connection at one moment, for the operator.
type ConnInfo struct {
	Remote              string // host:port
	Queued              int
	Received, Sent      int64
	Session             zxid.SessionID // 0 before the handshake
	LastOp              wire.Op
	HasOp               bool
	Opened              time.Time
	TimeoutMs           int32
	LastCxid            int32
	HasCxid             bool
	LastZxid            zxid.Zxid
	LastRespMs          int64 // monotonic
	LastLatencyMs       int64
	MinMs, AvgMs, MaxMs int64
}

// Info may be called from any goroutine.
func (c *Conn) Info() ConnInfo {
	info := ConnInfo{Remote: c.remote.String(), Queued: int(c.pending.Load())}
	if h := c.session.Load(); h != nil {
		info.Session, info.TimeoutMs = h.ID(), h.Timeout()
	}
	c.out.Lock()
	defer c.out.Unlock()
	s := &c.out.stats
	info.Received, info.Sent = s.received, s.sent
	info.LastOp, info.HasOp, info.LastCxid, info.HasCxid = s.lastOp, s.hasOp, s.lastCxid, s.hasCxid
	info.Opened = time.UnixMilli(s.openedMs)
	info.LastZxid, info.LastRespMs, info.LastLatencyMs = s.lastZxid, s.lastRespMs, s.lastLatMs
	info.MinMs, info.MaxMs = s.lat.min, s.lat.max
	if s.lat.count > 0 {
		info.AvgMs = s.lat.sum / s.lat.count
	}
	return info
}

// ResetInfo starts the connection's statistics anew (crst).
func (c *Conn) ResetInfo() {
	c.out.Lock()
	defer c.out.Unlock()
	s := &c.out.stats
	s.sync(c.r.statsGeneration.Load())
	s.received, s.sent, s.countedSent = 0, 0, 0
	s.hasOp, s.hasCxid = false, false
	s.lastZxid, s.lastRespMs, s.lastLatMs, s.lat = -1, 0, 0, latency{}
}

// VisitConns calls f for every open connection, in the order in which they were opened.
func (r *Replica) VisitConns(f func(*Conn)) {
	for _, c := range r.snapshotConns() {
		f(c)
	}
}
