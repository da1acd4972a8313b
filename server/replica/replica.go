package replica

import (
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"zabra/session"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// Replica is one server's state: the tree, the sessions, the broadcast and the connections.
type Replica struct {
	cfg  Config
	auth *znode.Auth
	log  *zap.Logger
	id   zxid.ServerID // 0 for a standalone server
	// trees holds the tree. Restore replaces it.
	trees atomic.Pointer[znode.Tree]

	lastGen     atomic.Uint64
	outstanding atomic.Int64
	queuedBytes atomic.Int64
	limits      atomic.Pointer[Limits]
	// largeBytes are those of large requests in process, and of such that are being read.
	largeBytes atomic.Int64
	// proposed and proposedBytes count transactions that are not applied, whether anybody waits for them or not.
	proposed        atomic.Int64
	proposedBytes   atomic.Int64
	proposals       proposalSizes
	statsGeneration atomic.Uint64
	counters        counters
	meter           Meter
	digests         digestLog

	conns struct {
		mu      sync.Mutex
		byGen   map[uint64]*Conn
		gone    totals // of connections that are closed
		serving bool
	}
	status struct {
		mu sync.Mutex
		zab.Status
		syncs int // that wait
	}
	inbox struct {
		mu    sync.Mutex
		conns []*Conn
	}

	// The rest is the stepping goroutine's.
	now  Now
	core broadcast
	out  Ready // of this step
	term term
	ids  *session.IDs
	// tracker and pending are a leader's, heard is a learner's.
	tracker   *session.Tracker
	pending   *pendingView
	heard     *session.Heard
	syncs     syncs
	reattach  reattachments
	lastID    uint64
	bySession map[zxid.SessionID]*Conn
	// toldExpired holds connections that asked for a session whose end is on its way: they are told when it is applied.
	toldExpired map[zxid.SessionID][]*Conn
	dirty       []*Conn
	taken       []*Conn // spare for the inbox
	arrived     int     // requests that this step has found
	lastWritten *Namespace
	again       []*Conn // have requests that could not be looked at before
	parked      []*Conn // have writes that wait until the leader has answered others
	// forwardedBytes are those of the requests, and of the identities with them, that the leader has not answered.
	forwardedBytes int
	// requests are to be sent to the leader with the next message, requestBytes is what they take.
	requests     []zab.Request
	requestBytes int
	lastIDs      receivedIDs
	reaper       reaper
	audit        auditing
	quotaToldMs  int64
	orphans      []zxid.SessionID
	scratch      applyScratch
	body         writeBody
	payloads     slab
	proposal     [1]zab.Entry
	// hint is that of the next proposal; hints are those of what is proposed and not applied, in order.
	hint  znode.Hint
	hints []hinted
	// hintsTaken is how many of them belong to transactions that are applied.
	hintsTaken int
}

// counters are read by Stats from any goroutine.
type counters struct {
	proposals, commits, expired, digestMismatches, connects, revalidations atomic.Uint64

	applied, learnerRevalidations, prepared, staleRequests, droppedRequests, staleReplies, readPauses atomic.Uint64
	throttled, staleDropped, largeRejected                                                            atomic.Uint64
}

// Ready is what the shell has to do after a step. Its slices are valid until the next step.
type Ready struct {
	// Persist goes to disk in order; the shell confirms tokens with inputs of the steps to come.
	Persist []zab.PersistOp
	// Send, Hangup and History are as in zab.Ready.
	Send    []zab.Message
	Hangup  []zab.Hangup
	History []zab.HistoryRequest
	// Audit holds what the audit log is to tell, in order. Whoever takes it may keep it.
	Audit []AuditRecord
	// Flush holds connections that have output or are to be closed.
	Flush []*Conn
	// WakeAtMs is the monotonic time at which Step wants to be called at the latest; 0 when nothing is due.
	WakeAtMs int64
	// Status is what the server is to its ensemble after the step.
	Status zab.Status
}

// clear forgets the last step's work and keeps the memory.
func (rd *Ready) clear() {
	clear(rd.Persist)
	clear(rd.Send)
	*rd = Ready{Persist: rd.Persist[:0], Send: rd.Send[:0], Hangup: rd.Hangup[:0], History: rd.History[:0]}
}

// New makes a replica of a recovered state. A standalone server serves at once, and the sessions of that state get their
// full timeout from now on; a member of an ensemble serves when the ensemble has decided.
func New(cfg Config, rec *Recovered, now Now) *Replica {
	cfg.setDefaults()
	r := &Replica{
		cfg:         cfg,
		payloads:    slab{bytes: payloadChunkBytes},
		auth:        cfg.Tree.Auth,
		log:         cfg.Log,
		now:         now,
		core:        newCore(&cfg, rec, now),
		bySession:   make(map[zxid.SessionID]*Conn),
		toldExpired: make(map[zxid.SessionID][]*Conn),
	}
	r.trees.Store(rec.Tree)
	r.SetLimits(Limits{OutstandingMax: cfg.OutstandingMax, EnforceQuota: cfg.EnforceQuota, Throttle: cfg.Throttle})
	r.SetAudit(cfg.Audit)
	r.conns.byGen = make(map[uint64]*Conn)
	r.ids = session.NewIDs(session.FirstID(cfg.ServerByte, now.WallMs, rec.SessionFloor))
	r.ids.Raise(rec.SessionMark)
	if cfg.Ensemble != nil {
		r.id = cfg.Ensemble.ID
		// A request of this server's last life may still be on its way through the ensemble: no connection of this life may
		// have the same number. A clock that was set back makes no difference, unless it shows the very millisecond at which
		// an earlier life began.
		r.lastGen.Store(uint64(now.WallMs) << connNumberBits)
	}
	r.followRole()
	r.publish()
	return r
}

// Tree gives the tree to readers that hold its read lock. Restore may replace it: whoever takes the lock of a tree has to
// release that of the same tree.
func (r *Replica) Tree() *znode.Tree { return r.trees.Load() }

// OpenSnapshot starts a snapshot of the applied state. It belongs to the stepping goroutine.
func (r *Replica) OpenSnapshot() (*znode.Snapshot, error) {
	return r.Tree().OpenSnapshot(r.cfg.Snapshot)
}

// SessionBuckets lists the sessions by the time at which they would expire, which only a leader knows. It visits all of
// them; it belongs to the stepping goroutine.
func (r *Replica) SessionBuckets() []session.Bucket {
	if r.tracker == nil {
		return nil
	}
	return r.tracker.Buckets()
}

// Idle tells whether nothing is queued, in flight or undurable; in an ensemble, where others have requests in flight all
// the time, whether no request of a client of this server waits. It belongs to the stepping goroutine.
func (r *Replica) Idle() bool {
	r.inbox.mu.Lock()
	defer r.inbox.mu.Unlock()
	if len(r.inbox.conns) > 0 {
		return false
	}
	if r.cfg.Ensemble != nil {
		return r.outstanding.Load() == 0
	}
	return !r.core.Busy()
}

// Step takes everything that waits: what has happened (the disk, the other servers), the requests of the connections,
// the timers. NowMs of the inputs is filled in. A standalone server has InputPersisted only. It belongs to one goroutine.
func (r *Replica) Step(now Now, inputs []zab.Input) Ready {
	r.now = now
	r.dirty = r.dirty[:0]
	r.out.clear()
	if r.heard != nil {
		r.heard.Advance(now.MonoMs)
	}
	for i := range inputs {
		r.feed(inputs[i])
	}
	if r.cfg.Ensemble != nil { // after what has come in: it may have waited while we stood still
		r.feed(zab.Input{Kind: zab.InputTick})
	}
	r.collect()
	if r.term.leading {
		r.closeOrphans()
		r.expireSessions()
		r.reap()
	}
	for _, c := range r.takeInbox() {
		r.serve(c)
	}
	r.askBarrier()
	r.sendRequests()
	r.collect()
	for r.unpark(); len(r.again) > 0; {
		r.serveAgain()
		r.askBarrier()
		r.sendRequests()
		r.collect()
	}
	r.publish()
	r.out.Flush, r.out.WakeAtMs = r.takeDirty(), r.wakeAtMs()
	return r.out
}

// Serve makes transactions of the requests that wait, or sends them to the leader, and nothing else: the next Step follows
// soon. For the server it is still the time of the last step, so that no deadline passes before what has come in is heard.
// Its Ready is as that of Step. It belongs to the stepping goroutine.
func (r *Replica) Serve(now Now) Ready {
	r.now.WallMs = now.WallMs
	r.dirty = r.dirty[:0]
	r.out.clear()
	for _, c := range r.takeInbox() {
		r.serve(c)
	}
	r.askBarrier()
	r.sendRequests()
	r.collect()
	r.publish()
	r.out.Flush, r.out.WakeAtMs = r.takeDirty(), r.wakeAtMs()
	return r.out
}

// publish gives everybody the status.
func (r *Replica) publish() {
	r.noteArrivals()
	r.out.Status = r.core.Status()
	r.status.mu.Lock()
	r.status.Status, r.status.syncs = r.out.Status, r.syncs.waiting
	r.status.mu.Unlock()
}

// snapshotConns lists the open connections by age.
func (r *Replica) snapshotConns() []*Conn {
	r.conns.mu.Lock()
	list := make([]*Conn, 0, len(r.conns.byGen))
	for _, c := range r.conns.byGen { // order: sorted below
		list = append(list, c)
	}
	r.conns.mu.Unlock()
	slices.SortFunc(list, func(a, b *Conn) int { return int(int64(a.gen) - int64(b.gen)) })
	return list
}

// originOf names a request of a connection of this server.
func (r *Replica) originOf(c *Conn, seq uint64) zab.Origin {
	return zab.Origin{Server: r.id, Conn: c.gen, Seq: seq}
}

// ownerOf names a connection of this server as the owner of a session.
func (r *Replica) ownerOf(c *Conn) session.Owner { return session.Owner{Server: r.id, Conn: c.gen} }

// connOf finds the connection of a transaction's origin; nil when nobody here waits for it.
func (r *Replica) connOf(o zab.Origin) *Conn {
	if o.Conn == 0 || o.Server != r.id {
		return nil
	}
	r.conns.mu.Lock()
	defer r.conns.mu.Unlock()
	return r.conns.byGen[o.Conn]
}

// wakeAtMs is the next moment at which a session may expire, a node is to be reaped, or the core wants to be told that
// time passes.
func (r *Replica) wakeAtMs() int64 {
	at := r.core.WakeAtMs()
	if at != 0 {
		at += r.now.AheadMs
	}
	if !r.term.leading {
		return at
	}
	at = earlier(at, r.nextReapMs())
	if d, ok := r.tracker.NextDeadline(); ok {
		at = earlier(at, d)
	}
	return at
}

// earlier is the earlier of two times, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
