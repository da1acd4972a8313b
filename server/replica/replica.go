package replica

import (
	"fmt"
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
	tree *znode.Tree
	log  *zap.Logger

	lastGen     atomic.Uint64
	outstanding atomic.Int64
	queuedBytes atomic.Int64
	// proposed and proposedBytes count transactions that are not applied, whether anybody waits for them or not.
	proposed        atomic.Int64
	proposedBytes   atomic.Int64
	statsGeneration atomic.Uint64
	counters        counters
	digests         digestLog

	conns struct {
		mu    sync.Mutex
		byGen map[uint64]*Conn
		gone  totals // of connections that are closed
	}
	inbox struct {
		mu    sync.Mutex
		conns []*Conn
	}

	// The rest is the stepping goroutine's.
	now       Now
	node      *zab.Node
	tracker   *session.Tracker
	ids       *session.IDs
	bySession map[zxid.SessionID]*Conn
	// toldExpired holds connections that asked for a session whose end is on its way: they are told when it is applied.
	toldExpired map[zxid.SessionID][]*Conn
	pending     *pendingView
	dirty       []*Conn
	taken       []*Conn // spare for the inbox
	reaper      reaper
	orphans     []zxid.SessionID
	scratch     applyScratch
}

// counters are read by Stats from any goroutine.
type counters struct {
	proposals, commits, expired, digestMismatches, connects, revalidations atomic.Uint64
}

// Ready is what the shell has to do after a step. Its slices are valid until the next step.
type Ready struct {
	// Persist goes to disk in order; the shell confirms tokens with the next Step.
	Persist []zab.PersistOp
	// Flush holds connections that have output or are to be closed.
	Flush []*Conn
	// WakeAtMs is the monotonic time at which Step wants to be called at the latest; 0 when nothing is due.
	WakeAtMs int64
}

// New makes a replica of a recovered state. Sessions of that state get their full timeout from now on.
func New(cfg Config, rec *Recovered, now Now) *Replica {
	cfg.setDefaults()
	r := &Replica{
		cfg:         cfg,
		auth:        cfg.Tree.Auth,
		tree:        rec.Tree,
		log:         cfg.Log,
		now:         now,
		node:        zab.NewFixedEpoch(zab.Config{LastZxid: rec.LastZxid}),
		tracker:     session.NewTracker(cfg.TickMs),
		bySession:   make(map[zxid.SessionID]*Conn),
		toldExpired: make(map[zxid.SessionID][]*Conn),
		pending:     newPendingView(rec.Tree, cfg.Tree.NoDigest),
		orphans:     rec.Tree.Orphans(),
	}
	r.conns.byGen = make(map[uint64]*Conn)
	r.ids = session.NewIDs(session.FirstID(cfg.ServerByte, now.WallMs, rec.SessionFloor))
	r.reaper.nextScanMs = now.MonoMs + cfg.ContainerCheckMs
	r.tree.VisitSessions(func(s zxid.SessionID, timeoutMs int32) bool {
		r.tracker.Add(s, timeoutMs, now.MonoMs)
		return true
	})
	return r
}

// Tree gives the tree to readers that hold its read lock.
func (r *Replica) Tree() *znode.Tree { return r.tree }

// OpenSnapshot starts a snapshot of the applied state. It belongs to the stepping goroutine.
func (r *Replica) OpenSnapshot() (*znode.Snapshot, error) { return r.tree.OpenSnapshot(r.cfg.Snapshot) }

// SessionBuckets lists the sessions by the time at which they would expire. It visits all of them; it belongs to the
// stepping goroutine.
func (r *Replica) SessionBuckets() []session.Bucket { return r.tracker.Buckets() }

// Idle tells whether nothing is queued, in flight or undurable. It belongs to the stepping goroutine.
func (r *Replica) Idle() bool {
	r.inbox.mu.Lock()
	defer r.inbox.mu.Unlock()
	return len(r.inbox.conns) == 0 && r.node.Outstanding() == 0
}

// Step takes everything that waits: the confirmation of the disk, the requests of the connections, the timers. It
// belongs to one goroutine.
func (r *Replica) Step(now Now, persisted zab.Token) Ready {
	r.now = now
	r.dirty = r.dirty[:0]
	if persisted > 0 {
		r.node.Persisted(persisted)
		if rd := r.node.Ready(); len(rd.Committed) > 0 {
			r.apply(rd.Committed)
		} else if len(rd.Persist) > 0 {
			panic("replica: proposals were made outside of a step")
		}
	}
	r.closeOrphans()
	r.expireSessions()
	r.reap()
	for _, c := range r.takeInbox() {
		r.serve(c)
	}
	rd := r.node.Ready()
	if len(rd.Committed) > 0 {
		panic(fmt.Sprintf("replica: %d transactions committed without a sync", len(rd.Committed)))
	}
	return Ready{Persist: rd.Persist, Flush: r.takeDirty(), WakeAtMs: r.wakeAtMs()}
}

// post puts c into the inbox, from any goroutine.
func (r *Replica) post(c *Conn) {
	r.inbox.mu.Lock()
	first := len(r.inbox.conns) == 0
	if !c.queued {
		c.queued = true
		r.inbox.conns = append(r.inbox.conns, c)
	}
	r.inbox.mu.Unlock()
	if first {
		r.cfg.Wake()
	}
}

func (r *Replica) takeInbox() []*Conn {
	r.inbox.mu.Lock()
	conns := r.inbox.conns
	r.inbox.conns = r.taken[:0]
	for _, c := range conns {
		c.queued = false
	}
	r.inbox.mu.Unlock()
	r.taken = conns
	return conns
}

// markDirty notes that c has output or is to be closed.
func (r *Replica) markDirty(c *Conn) {
	if !c.dirty {
		c.dirty = true
		r.dirty = append(r.dirty, c)
	}
}

func (r *Replica) takeDirty() []*Conn {
	for _, c := range r.dirty {
		c.dirty = false
	}
	return r.dirty
}

// serve takes what a connection's reader has put in, and makes transactions of the writes among it.
func (r *Replica) serve(c *Conn) {
	if c.closed.Load() {
		r.forget(c)
		return
	}
	if c.connect != nil && c.fifo.empty() && c.state.Load() == stateConnecting {
		r.serveConnect(c)
		return
	}
	c.in.Lock()
	items := c.in.items
	c.in.items = nil
	c.in.Unlock()
	for i := range items {
		c.fifo.push(items[i])
	}
	for it := c.fifo.nextUnproposed(); it != nil; it = c.fifo.nextUnproposed() {
		if it.kind == itemWrite {
			r.prepWrite(c, it)
		}
	}
	r.drain(c)
}

// drain answers what is due at the head of a connection's line: everything up to the next write in flight.
func (r *Replica) drain(c *Conn) {
	for !c.fifo.empty() {
		if c.ended() { // nobody will get the answers: not a read more
			c.dropRest()
			return
		}
		it := c.fifo.front()
		switch {
		case it.kind == itemRead:
			r.execute(c, it.op, it.xid, it.body, it.ids, it.recvMs, r.now)
		case it.kind == itemReply || it.kind == itemSASL:
			c.answerKnown(it, r.now.MonoMs)
		case it.proposed:
			return
		case it.silent: // no reply at all
		default: // a write that could not be read: the answer is known, and no zxid was used
			z := r.tree.LastZxid()
			c.beginReply(it.xid, z, it.code)
			c.endReply(it.op, it.xid, z, it.recvMs, r.now.MonoMs)
		}
		r.markDirty(c)
		last := it.last
		c.answered(it)
		c.fifo.pop()
		if last {
			c.dropRest()
			return
		}
	}
}

// forget takes a connection whose socket is gone out of everything. Its transactions in flight are still applied.
func (r *Replica) forget(c *Conn) {
	r.tree.Watches().Detach(c.watcher)
	if id := c.SessionID(); id != 0 && r.bySession[id] == c {
		delete(r.bySession, id)
	}
	c.in.Lock()
	for i := range c.in.items {
		c.fifo.push(c.in.items[i])
	}
	c.in.items = nil
	c.in.Unlock()
	c.dropRest()
	c.resume()
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

// connOf finds the connection of a transaction's origin; nil when nobody waits for it.
func (r *Replica) connOf(o zab.Origin) *Conn {
	if o.Conn == 0 {
		return nil
	}
	r.conns.mu.Lock()
	defer r.conns.mu.Unlock()
	return r.conns.byGen[o.Conn]
}

// wakeAtMs is the next moment at which a session may expire or a node is to be reaped.
func (r *Replica) wakeAtMs() int64 {
	at := r.nextReapMs()
	if d, ok := r.tracker.NextDeadline(); ok && (at == 0 || d < at) {
		at = d
	}
	return at
}
