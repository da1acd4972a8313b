package zab

import (
	"fmt"

	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// Config is what a Node must know at its start.
type Config struct {
	// LastZxid is the last transaction that is durable and applied here; 0 on a fresh directory.
	LastZxid zxid.Zxid

	// Ensemble is the membership; nil means fixed-epoch mode, and the rest is unused.
	Ensemble *ensemble.Config
	// ID is this server's, one of the members'.
	ID zxid.ServerID
	// AcceptedEpoch and CurrentEpoch are what is durable here.
	AcceptedEpoch, CurrentEpoch zxid.Epoch
	// Ends are the last transactions of the epochs in the log, as far as is known, ascending; the last one is LastZxid.
	// Floor is the lowest transaction that the log can be truncated to: the point of the snapshot that it begins at.
	Ends  []zxid.Zxid
	Floor zxid.Zxid
	// TickMs is tickTime. InitLimitMs bounds each step of the start of a leader and its learners, SyncLimitMs the
	// silence of a peer after that.
	TickMs, InitLimitMs, SyncLimitMs int64
	// NowMs is the monotonic clock at the start, in milliseconds.
	NowMs int64
	// WindowEntries is how many committed transactions are kept in memory for learners; 0 takes the default.
	WindowEntries int
	// Plant re-plants known bugs, for the simulator to find. It is zero everywhere else.
	Plant Plant
}

// Status is what a server is at a moment.
type Status struct {
	Role  Role
	Phase Phase
	// Leader is the server that is followed or is about to be; it counts if HasLeader.
	Leader    zxid.ServerID
	HasLeader bool
	// Epoch is the current epoch as it is durable, Accepted the accepted one.
	Epoch, Accepted zxid.Epoch
	// Serving tells that clients may be served: as the leader, or as a learner that is level.
	Serving bool
	// Generation grows with each change of the role.
	Generation uint32
	// LastDurable and LastProposed are the ends of the durable log and of the log; LastCommitted is known to be committed.
	LastDurable, LastProposed, LastCommitted zxid.Zxid
	// SyncedFollowers, SyncedObservers and Learners count a leader's connections.
	SyncedFollowers, SyncedObservers, Learners int
	// LevelVoters are those of a leader's followers to whom it could hand over.
	LevelVoters int
	// ElectionMs is how long the last election took.
	ElectionMs int64
	// Why says why the last role ended; empty at first.
	Why string
}

// Node is the state of one server's part in the broadcast.
type Node struct {
	cfg   Config
	nowMs int64
	// step is the behaviour of the current role. Only the become methods set it.
	step       func(*Input)
	role       Role
	phase      Phase
	generation uint32
	serving    bool
	// served is set once this role has served; failures counts the roles since then that did not.
	served   bool
	failures int
	// epochBegun is the epoch of the transactions that this server proposes.
	epochBegun zxid.Epoch
	why        string

	hist history
	// committed is the last transaction known to be committed, applied the last one handed out in Ready.Committed or
	// contained in the state. At the start applied may be ahead: the state has the whole log, and nothing is served.
	committed, applied zxid.Zxid
	disk               disk

	links    map[zxid.ServerID]bool // election links that can be used
	election election
	learner  learner
	leader   leader
	// epochSeen is the highest accepted epoch that a voter has told.
	epochSeen zxid.Epoch

	out Ready // what the next Ready hands out
	in  Input // the one that Step is about: kept here so that none is allocated
}

// New returns the Node of a member of an ensemble, or of a standalone server if cfg.Ensemble is nil.
func New(cfg Config) *Node {
	n := &Node{cfg: cfg, hist: newHistory(cfg.LastZxid, cfg.Floor, cfg.Ends), applied: cfg.LastZxid}
	n.nowMs, n.disk.nowMs = cfg.NowMs, cfg.NowMs
	n.disk.init(cfg.LastZxid, cfg.AcceptedEpoch, cfg.CurrentEpoch)
	n.links, n.election.out = make(map[zxid.ServerID]bool), make(map[zxid.ServerID]bool)
	if cfg.Ensemble == nil {
		n.becomeFixedEpoch()
		return n
	}
	if _, ok := cfg.Ensemble.Member(cfg.ID); !ok {
		panic(fmt.Sprintf("zab: server %d is not a member of its own ensemble", cfg.ID))
	}
	n.epochSeen = cfg.AcceptedEpoch
	n.becomeLooking("")
	return n
}

// NewFixedEpoch returns the Node of a standalone server.
func NewFixedEpoch(cfg Config) *Node {
	cfg.Ensemble = nil
	return New(cfg)
}

// Step feeds one input. What follows from it comes out of the next Ready.
func (n *Node) Step(in Input) {
	n.nowMs = max(n.nowMs, in.NowMs)
	n.disk.nowMs = n.nowMs
	switch in.Kind {
	case InputPersisted:
		if !n.disk.persisted(in.Token) {
			return
		}
		n.afterPersist()
	case InputLinkUp:
		n.links[in.Peer], n.election.out[in.Peer] = true, false
	case InputLinkDown:
		n.links[in.Peer], n.election.out[in.Peer] = false, false
	}
	n.in = in
	n.step(&n.in)
	n.in = Input{}
	if n.serving {
		n.served, n.failures, n.election.yieldUntilMs = true, 0, 0
	}
	if in.Kind != InputPropose { // by that nothing is committed yet
		n.takeCommitted()
	}
}

// Propose orders entries. Their zxids must be those that NextZxid told, one after the other. It is short for Step with
// InputPropose at the time of the last input.
func (n *Node) Propose(entries ...Entry) {
	n.Step(Input{Kind: InputPropose, NowMs: n.nowMs, Entries: entries})
}

// Persisted confirms all persist operations up to tok. It is short for Step with InputPersisted at the time of the last
// input.
func (n *Node) Persisted(tok Token) {
	n.Step(Input{Kind: InputPersisted, NowMs: n.nowMs, Token: tok})
}

// Outstanding returns how many transactions of the log are not applied.
func (n *Node) Outstanding() int { return len(n.hist.entries) - n.hist.index(n.applied) }

// Busy reports whether something waits for the disk or for a commit.
func (n *Node) Busy() bool { return n.Outstanding() > 0 || !n.disk.idle() }

// NextZxid returns the id of the next proposal. When the counter of an epoch is used up, a fixed-epoch server goes on in
// the next epoch at counter 1: counters 0 and 0xffffffff are never those of a transaction. The leader of an ensemble
// makes room for a new one before that.
func (n *Node) NextZxid() zxid.Zxid {
	last := n.hist.last()
	switch {
	case n.role == RoleLeading && last.Epoch() < n.epochBegun:
		return zxid.Make(n.epochBegun, zxid.CounterMin)
	case last.Counter() >= zxid.CounterMax:
		return zxid.Make(last.Epoch()+1, zxid.CounterMin)
	}
	return last + 1
}

// Serves reports whether clients may be served, and in which generation of the role: Status in short.
func (n *Node) Serves() (generation uint32, serving bool) { return n.generation, n.serving }

// Status returns what the server is now.
func (n *Node) Status() Status {
	s := Status{
		Role: n.role, Phase: n.phase, Epoch: n.disk.current, Accepted: n.disk.accepted, Serving: n.serving, Generation: n.generation,
		LastDurable: n.disk.durable, LastProposed: n.hist.last(), LastCommitted: n.committed, ElectionMs: n.election.tookMs, Why: n.why,
	}
	switch n.role {
	case RoleFollowing, RoleObserving:
		s.Leader, s.HasLeader = n.learner.leader, true
	case RoleLeading:
		s.Leader, s.HasLeader = n.cfg.ID, true
		n.leader.count(&s)
		s.LevelVoters = n.levelVoters()
	}
	return s
}

// WakeAtMs is the time at which InputTick is wanted at the latest; 0 if never.
func (n *Node) WakeAtMs() int64 {
	switch n.role {
	case RoleLooking:
		return n.election.wakeAtMs()
	case RoleFollowing, RoleObserving:
		return n.learner.deadlineMs
	case RoleLeading:
		return n.leader.wakeAtMs(n)
	}
	return 0
}

// propose enters entries into the log.
func (n *Node) propose(entries []Entry) {
	for i := range entries {
		if want := n.NextZxid(); entries[i].Zxid != want {
			panic(fmt.Sprintf("zab: proposal %v is not the next one after %v", entries[i].Zxid, n.hist.last()))
		}
		n.hist.append(entries[i : i+1])
	}
}

// Ready returns what is to be done and forgets it. All proposals since the last call become one append, so that they
// reach the disk with one write and one sync, and one message per learner.
func (n *Node) Ready() Ready {
	n.appendFresh()
	if n.role == RoleLeading {
		n.pumpAll()
	}
	rd := n.out
	rd.Persist = n.disk.takeOps()
	n.out = Ready{}
	return rd
}

// appendFresh hands what is new in the log to the disk.
func (n *Node) appendFresh() {
	fresh, ok := n.hist.after(n.disk.handed, n.hist.last())
	if !ok {
		panic(fmt.Sprintf("zab: the disk was given %v, which the log does not have", n.disk.handed))
	}
	if len(fresh) > 0 {
		n.disk.append(fresh)
	}
}

// takeCommitted moves on with what is committed and durable here, and forgets what nobody needs in memory.
func (n *Node) takeCommitted() {
	upTo := min(n.committed, n.disk.durable)
	if n.planted(PlantApplyUndurable) {
		upTo = min(n.committed, n.hist.last())
	}
	if n.planted(PlantApplyUncommitted) && n.role != RoleLooking {
		upTo = n.disk.durable
	}
	if upTo > n.applied && n.disk.restoring == 0 {
		entries, ok := n.hist.after(n.applied, upTo)
		if !ok {
			panic(fmt.Sprintf("zab: %v is applied and not in memory, the log in memory begins after %v", n.applied, n.hist.prev))
		}
		if len(n.out.Committed) == 0 {
			n.out.Committed = entries
		} else {
			n.out.Committed = append(n.out.Committed[:len(n.out.Committed):len(n.out.Committed)], entries...)
		}
		if len(entries) > 0 {
			n.applied = entries[len(entries)-1].Zxid
		}
	}
	if n.role == RoleStandalone {
		n.hist.trim(n.applied, 0, 0)
		return
	}
	entries, bytes := windowEntriesMin, windowBytesMax
	if n.cfg.WindowEntries > 0 {
		entries = n.cfg.WindowEntries
	}
	if entries < windowEntriesMin {
		bytes = 0 // as small as that only to see what learners are served with from disk
	}
	n.hist.trim(n.trimLimit(), entries, bytes)
}

// trimLimit is the last transaction that need not be kept in memory. A leader keeps what its learners have not been sent
// yet, up to a bound: one that stands still for a moment must not lose its clients. One that stands still for longer than
// syncLimit is let go for that.
func (n *Node) trimLimit() zxid.Zxid {
	limit := min(n.applied, n.disk.durable)
	if n.role != RoleLeading || n.hist.bytes >= windowBehindBytesMax {
		return limit
	}
	for _, p := range n.leader.learners {
		if p.stage >= stageNewLeader {
			limit = min(limit, p.sent)
		}
	}
	return limit
}

func (n *Node) send(m Message) {
	m.From = n.cfg.ID
	n.out.Send = append(n.out.Send, m)
}

func (n *Node) hangup(conn ConnID, why string) {
	n.out.Hangup = append(n.out.Hangup, Hangup{Conn: conn, Why: why})
}

// deliver hands a message to the layer above.
func (n *Node) deliver(m *Message) { n.out.Delivered = append(n.out.Delivered, *m) }
