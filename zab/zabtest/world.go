package zabtest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"zabra/zab"
	"zabra/zab/ensemble"
	"zabra/zab/zxid"
)

// Options says what a World is made of. The voters have the ids from 1, the observers those that follow.
type Options struct {
	Voters, Observers int
	Plant             zab.Plant
	// WindowEntries is that of every Node: how many transactions are kept in memory for learners; 0 for the default.
	WindowEntries int
	// Rand makes the World draw what happens next; without it everything happens in the order in which it came about.
	Rand *rand.Rand
}

// World is an ensemble and all that surrounds it.
type World struct {
	Ensemble *ensemble.Config
	NowMs    int64
	// Servers are ordered by id.
	Servers []*Server
	// Committed is what some server has applied as committed, in order: all others must agree with it for ever.
	Committed []zab.Entry
	// Hold, if set, keeps back the events for which it is true.
	Hold func(Event) bool
	// ChunkEntries bounds the entries in one answer from the log, 0 for no bound. PreferSnapshots answers with a snapshot
	// whenever there is one that may be sent.
	ChunkEntries    int
	PreferSnapshots bool

	rng    *rand.Rand
	plant  zab.Plant
	window int
	lanes  []*lane
	seq    uint64
	cuts   map[[2]zxid.ServerID]bool
	muted  map[[2]zxid.ServerID]bool
	judge  judge
	write  func(format string, args ...any) // the transcript
	counts map[zab.MessageKind]int
	bytes  map[zxid.ServerID]int // of transactions, by receiver
	err    error
}

// Server is one member with its disk, and what it has applied.
type Server struct {
	ID   zxid.ServerID
	Up   bool
	Node *zab.Node
	Disk Disk
	// State is what is applied, from the first transaction on.
	State []zab.Entry
	// Conns are its ends of open connections.
	Conns map[zab.ConnID]*Conn
	// Delivered are the messages for the layer above, and Proven the syncs that a leader may answer, both since the start.
	Delivered []zab.Message
	Proven    []zab.Barrier
	// Synced are the syncs of this server that are answered, by id, and Done the own writes that were applied here, by
	// the sequence numbers of their origins.
	Synced map[uint64]zxid.Zxid
	Done   map[uint64]zxid.Zxid

	w          *World
	nextConn   zab.ConnID
	ops        []zab.PersistOp // given to the disk, not confirmed
	performed  int             // how many of ops the disk has done
	reload     *[]zab.Entry    // what the shell has loaded anew
	received   *Snapshot
	learnerEnd zab.ConnID // as a learner
	dialling   bool
	links      map[zxid.ServerID]bool // election links that it was told of
	lazy       bool                   // Ready was not taken after the last step
	last       zab.Status
	barriers   map[uint64]barrierOrigin
	nextID     uint64
}

// barrierOrigin says who asked for a sync: a learner, on its connection and with its number, or the leader itself.
type barrierOrigin struct {
	conn zab.ConnID
	id   uint64
	own  bool
	must zxid.Zxid // what was committed when it was asked for
}

// New makes a World in which nobody is up.
func New(o Options) *World {
	var members []ensemble.Member
	for i := range o.Voters + o.Observers {
		members = append(members, ensemble.Member{ID: zxid.ServerID(i + 1), Observer: i >= o.Voters})
	}
	cfg, err := ensemble.New(members, 0)
	if err != nil {
		panic(err) // the caller wants no voters
	}
	w := &World{
		Ensemble: cfg, NowMs: beginMs, rng: o.Rand, plant: o.Plant, window: o.WindowEntries, cuts: map[[2]zxid.ServerID]bool{}, muted: map[[2]zxid.ServerID]bool{}, judge: newJudge(),
		write: func(string, ...any) {}, counts: map[zab.MessageKind]int{}, bytes: map[zxid.ServerID]int{},
	}
	for _, m := range members {
		w.Servers = append(w.Servers, &Server{ID: m.ID, w: w})
	}
	return w
}

// Server returns the server with an id.
func (w *World) Server(id zxid.ServerID) *Server { return w.Servers[id-1] }

// Err is the first thing that must not happen and did.
func (w *World) Err() error { return w.err }

// Sent is how many messages of a kind were sent.
func (w *World) Sent(k zab.MessageKind) int { return w.counts[k] }

// SentBytes is how many bytes of transactions were sent to a server.
func (w *World) SentBytes(id zxid.ServerID) int { return w.bytes[id] }

func (w *World) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %d ms: %s", w.NowMs, fmt.Sprintf(format, args...))
	}
}

// Given puts transactions and epochs on the disk of a server that is not up, as if it had got them in the past.
func (w *World) Given(id zxid.ServerID, accepted, current zxid.Epoch, log ...zxid.Zxid) {
	d := &w.Server(id).Disk
	d.Accepted, d.Current = accepted, current
	for _, at := range log {
		e := zab.Entry{Zxid: at, Payload: []byte("given " + at.String())}
		w.judge.proposed[at] = string(e.Payload)
		d.Log = append(d.Log, e)
	}
}

// GivenSnapshot puts a snapshot of what Given has put into the log on disk, up to a transaction; purge lets the log
// begin there.
func (w *World) GivenSnapshot(id zxid.ServerID, at zxid.Zxid, purge bool) {
	d := &w.Server(id).Disk
	i, _ := d.find(at)
	d.Snaps = append(d.Snaps, Snapshot{Zxid: at, State: slices.Clone(d.Log[:i+1])})
	if purge {
		d.purge()
	}
}

// Start brings servers up with what is on their disks.
func (w *World) Start(ids ...zxid.ServerID) {
	for _, id := range ids {
		w.start(w.Server(id))
	}
}

func (w *World) start(s *Server) {
	s.Up, s.ops, s.performed, s.reload, s.received, s.dialling, s.lazy = true, nil, 0, nil, nil, false, false
	s.Conns, s.learnerEnd, s.nextConn, s.links = map[zab.ConnID]*Conn{}, 0, 0, map[zxid.ServerID]bool{}
	s.Synced, s.Done, s.barriers, s.Delivered, s.Proven = map[uint64]zxid.Zxid{}, map[uint64]zxid.Zxid{}, map[uint64]barrierOrigin{}, nil, nil
	state, ends, floor := s.Disk.recover()
	s.State = state
	s.Disk.rollForward()
	s.Node = zab.New(zab.Config{
		LastZxid: s.Disk.Last(), Ensemble: w.Ensemble, ID: s.ID, AcceptedEpoch: s.Disk.Accepted, CurrentEpoch: s.Disk.Current,
		Ends: ends, Floor: floor, TickMs: TickMs, InitLimitMs: InitLimitMs, SyncLimitMs: SyncLimitMs, Plant: w.plant,
		NowMs: w.NowMs, WindowEntries: w.window,
	})
	s.last = zab.Status{Role: zab.RoleStandalone} // so that the first status is news
	w.judge.started(s)
	w.step(s, zab.Input{Kind: zab.InputTick})
	for _, o := range w.Servers {
		if o != s && o.Up && !w.Cut(s.ID, o.ID) {
			w.link(s, o, true)
		}
	}
}

// Kill ends servers at once: what their disks have not done is lost, and so is what they have sent and nobody received.
func (w *World) Kill(ids ...zxid.ServerID) {
	for _, id := range ids {
		w.kill(w.Server(id))
	}
}

func (w *World) kill(s *Server) {
	s.Up, s.learnerEnd = false, 0
	w.dropLanes(func(l *lane) bool { return l.to == s && l.kind != laneDial || l.from == s && l.kind != laneStream })
	for n := zab.ConnID(1); n <= s.nextConn; n++ {
		if c := s.Conns[n]; c != nil {
			w.breakConn(c, s)
		}
	}
	for _, o := range w.Servers {
		if o != s && o.Up && !w.Cut(s.ID, o.ID) {
			w.link(o, s, false)
		}
	}
}

// Resign has a server give up its role for good.
func (w *World) Resign(id zxid.ServerID) { w.step(w.Server(id), zab.Input{Kind: zab.InputResign}) }

// HandOver has a leader leave the lead to another server.
func (w *World) HandOver(id zxid.ServerID) { w.step(w.Server(id), zab.Input{Kind: zab.InputHandOver}) }

// Cut reports whether two servers cannot reach each other.
func (w *World) Cut(a, b zxid.ServerID) bool { return w.cuts[pair(a, b)] }

func pair(a, b zxid.ServerID) [2]zxid.ServerID { return [2]zxid.ServerID{min(a, b), max(a, b)} }

// Part takes the network between two servers away: links and connections break.
func (w *World) Part(a, b zxid.ServerID) {
	w.cuts[pair(a, b)] = true
	sa, sb := w.Server(a), w.Server(b)
	w.dropLanes(func(l *lane) bool {
		return l.kind == laneNotes && (l.from == sa && l.to == sb || l.from == sb && l.to == sa)
	})
	if !sa.Up || !sb.Up {
		return
	}
	w.link(sa, sb, false)
	w.link(sb, sa, false)
	w.BreakConn(a, b)
}

// Join brings it back.
func (w *World) Join(a, b zxid.ServerID) {
	delete(w.cuts, pair(a, b))
	if w.Server(a).Up && w.Server(b).Up {
		w.link(w.Server(a), w.Server(b), true)
	}
}

// link tells both of a link that has come up, or a of one that is gone.
func (w *World) link(a, b *Server, up bool) {
	a.links[b.ID] = up
	if !up {
		w.step(a, zab.Input{Kind: zab.InputLinkDown, Peer: b.ID})
		return
	}
	b.links[a.ID] = true
	w.step(a, zab.Input{Kind: zab.InputLinkUp, Peer: b.ID})
	w.step(b, zab.Input{Kind: zab.InputLinkUp, Peer: a.ID})
}

// step feeds a Node, and does what follows unless the World leaves that for later.
func (w *World) step(s *Server, in zab.Input) {
	if !s.Up {
		return
	}
	in.NowMs = w.NowMs
	s.Node.Step(in)
	if w.rng != nil && w.rng.IntN(3) == 0 {
		if !s.lazy {
			s.lazy = true
			w.enqueue(laneReady, s, s, nil, Event{do: func() { w.drain(s) }})
		}
		return
	}
	w.drain(s)
}

// Tick lets every server that is up know the time.
func (w *World) Tick(ms int64) {
	w.NowMs += ms
	for _, s := range w.Servers {
		w.step(s, zab.Input{Kind: zab.InputTick})
	}
}
