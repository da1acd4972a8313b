package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/ensemble"
	"zabra/zab/zxid"
	"zabra/znode"
)

// server is one member of the ensemble: its disk, which stays, and what runs on it from a start to the next crash. It
// plays the part that the shell plays around a replica, without goroutines.
type server struct {
	w      *world
	id     zxid.ServerID
	member ensemble.Member

	// What outlives a crash: the disk and what must be on it, the clocks, the count of lives (it grows with each start and
	// with each end), the numbers of connections, and the epochs for which a counting ACKEPOCH was sent.
	mem       *vfs.Mem
	durable   durable
	driftPPM  int64
	baseMs    int64 // the monotonic clock at the beginning
	wallOffMs int64
	// wallOffMaxMs is the most that it ever was ahead.
	wallOffMaxMs int64
	life         uint32
	lastConn     zab.ConnID
	ackEpochs    map[zxid.Epoch]bool
	// pausedUntil is when the process goes on that stands still, restarting tells that a start is planned.
	pausedUntil Micros
	restarting  bool
	orders      orders

	process
}

// orders are what faults want of a server in time to come.
type orders struct {
	// downFor is how long it is to be down after the next crash that its disk brings about.
	downFor Micros
	// wipe empties its disk before the next start, if that breaks no promise.
	wipe bool
	// snapAtStart makes the next start write a snapshot.
	snapAtStart bool
	// breakAtChunk breaks the connection when so many pieces of a snapshot have come in; 0 is never.
	breakAtChunk int
}

// process is what a crash takes.
type process struct {
	running     bool
	closed      bool // the disk was closed in order
	fs          vfs.FS
	store       *storage.Store
	replica     *replica.Replica
	status      zab.Status
	inputs      []zab.Input
	stepPlanned bool
	steps       int
	wakeAt      Micros
	disk        disk
	conns       map[zab.ConnID]*connEnd
	clientConns []*clientConn
	dialling    bool
	receiving   *receiver

	// snapshot counts the snapshots begun and given up: one is written only if the number is still that of its beginning.
	snapshot int
	writing  *znode.Snapshot

	applied     zxid.Zxid // last transaction in the tree that was checked
	servedSince Micros
	logTail     zxid.Zxid // end of the log as it was handed to the disk
	// electedFor is what was durable when the present role began, promises are the answers to LEADERINFO that voters have
	// given to it.
	electedFor zab.Vote
	promises   []zab.Vote
}

func newServer(w *world, m ensemble.Member) *server {
	s := &server{w: w, id: m.ID, member: m, mem: vfs.NewMem(), ackEpochs: map[zxid.Epoch]bool{}}
	s.driftPPM = w.rnd.Int64N(60_001) - 30_000
	s.baseMs = 1_000_000 * int64(m.ID)
	s.wallOffMs = w.rnd.Int64N(2001) - 1000
	s.wallOffMaxMs = s.wallOffMs
	return s
}

func (s *server) up() bool { return s.running }

// now is the time on the server's own clocks.
func (s *server) now() replica.Now {
	mono := s.baseMs + int64(s.w.queue.now)*(1_000_000+s.driftPPM)/1_000_000/1000
	return replica.Now{MonoMs: mono, WallMs: 1_700_000_000_000 + s.wallOffMs + int64(s.w.queue.now)/1000}
}

// when turns a time on the server's monotonic clock into the world's.
func (s *server) when(monoMs int64) Micros {
	return Micros((monoMs-s.baseMs)*1000*1_000_000/(1_000_000+s.driftPPM)) + 1
}

func (s *server) replicaConfig() replica.Config {
	return replica.Config{
		ServerByte: byte(s.id), TickMs: tickMs, MinSessionTimeoutMs: 2 * tickMs, MaxSessionTimeoutMs: 20 * tickMs,
		FieldBytesMax: fieldBytesMax, RecordBytesMax: fieldBytesMax, Tree: s.w.treeConfig,
		Snapshot: znode.SnapshotOptions{Digest: true, LastZxid: true}, Wake: func() { s.poke() },
		ApplyBatchMax: applyBatchMax, FlushEarly: flushConns,
	}
}

func (s *server) storageConfig() storage.Config {
	return storage.Config{
		SnapDir: "/data", SnapCount: s.w.snapCount, Compression: s.w.compress, RecordBytesMax: fieldBytesMax,
		PreAllocBytes: s.w.preAlloc, ID: s.id, SnapshotSizeFactor: s.w.sizeFactor, Verify: verifySnapshot,
		Rand: rand.New(rand.NewPCG(s.w.opts.Seed, uint64(s.id)<<32|uint64(s.life))),
		Now:  func() time.Time { return time.UnixMicro(int64(s.w.queue.now)) },
		Go:   func(f func()) { f() },
	}
}

// start runs the server on what its disk holds. Everything is as in the shell: open, recover, cut off what is torn,
// write a first snapshot, begin.
func (s *server) start() {
	if s.running {
		return
	}
	s.life++
	s.pausedUntil, s.restarting = 0, false
	s.maybeWipe()
	s.process = process{running: true, conns: map[zab.ConnID]*connEnd{}}
	s.disk.s = s
	s.fs = s.newFS()
	s.w.note(s.id, "starts", int64(s.life), 0)
	if err := s.open(); err != nil {
		if s.disk.dead { // the power went again
			s.crash(false, "while it started")
			s.restartIn(second)
			return
		}
		s.w.fail("E-26", "s%d does not start: %v", s.id, err)
	}
	s.w.net.serverUp(s)
	s.poke()
}

// open brings the state in memory.
func (s *server) open() (err error) {
	if s.store, err = storage.Open(s.fs, s.storageConfig()); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	cfg := s.replicaConfig()
	rec, err := replica.Recover(s.store, cfg)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	s.disk.beginning = true
	if err = s.store.Begin(rec.LastZxid); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	s.disk.beginning = false
	s.checkRecovered(rec)
	// A server whose settings have changed writes a snapshot at its start, of a state that may not be committed.
	if rec.Snapshot == nil || s.orders.snapAtStart || s.w.diskRnd.chance(4) {
		s.orders.snapAtStart = false
		if err = s.writeFirstSnapshot(rec); err != nil {
			return fmt.Errorf("snapshot at the start: %w", err)
		}
	}
	accepted, current, err := s.store.EpochsForStart(rec.LastZxid)
	if err != nil {
		return fmt.Errorf("epochs: %w", err)
	}
	s.checkRecoveredEpochs(accepted, current)
	cfg.Ensemble = s.coreConfig(rec, accepted, current)
	s.replica = replica.New(cfg, rec, s.now())
	if err = s.store.ReserveSessions(s.replica.ReservedSessions()); err != nil {
		return fmt.Errorf("reserve sessions: %w", err)
	}
	s.applied, s.logTail = rec.LastZxid, rec.LastZxid
	return nil
}

func (s *server) coreConfig(rec *replica.Recovered, accepted, current zxid.Epoch) *zab.Config {
	return &zab.Config{
		LastZxid: rec.LastZxid, Ensemble: s.w.ensemble, ID: s.id, AcceptedEpoch: accepted, CurrentEpoch: current,
		Ends: rec.Ends, Floor: max(rec.Floor, s.store.CutFloor()),
		TickMs: tickMs, InitLimitMs: initLimitMs, SyncLimitMs: syncLimitMs, Plant: s.w.opts.Core,
	}
}

func (s *server) writeFirstSnapshot(rec *replica.Recovered) error {
	snap, err := rec.Tree.OpenSnapshot(s.replicaConfig().Snapshot)
	if err != nil {
		return err
	}
	defer snap.Close()
	return s.store.WriteSnapshot(snap.Zxid(), snap.Next)
}

// crash ends the server's life. Without loud its peers are not told: they find out by their own timers, or when it
// comes back. What is left on its disk is decided here.
func (s *server) crash(loud bool, why string) {
	if !s.running {
		return
	}
	w := s.w
	w.noteText(s.id, "crashes", "%s", why)
	w.count.Crashes++
	s.running = false
	s.life++ // what was planned for it does not happen
	s.lastConn += 1000
	switch {
	case s.closed:
		s.mem = s.mem.Clone()
	case s.disk.after != nil:
		s.mem = s.disk.after
	case loud && w.diskRnd.chance(3):
		s.mem = s.mem.Clone() // the process was killed: what it wrote is still in the page cache
	default:
		s.disk.tear()
		s.mem = s.mem.CrashClone(w.diskRnd.Rand)
		if s.disk.after != nil {
			s.mem = s.disk.after
		}
	}
	w.net.serverDown(s, loud)
	for _, c := range slices.Clone(s.clientConns) {
		c.cut()
	}
	s.clientConns, s.store, s.replica = nil, nil, nil
	w.checkRecoverable()
}

// end closes the disk and ends the process, as it is meant to be.
func (s *server) end() {
	err := s.store.Close()
	if err != nil && !s.disk.dead && !s.disk.failed {
		s.w.fail("E-14", "s%d cannot close its disk: %v", s.id, err)
	}
	s.closed = err == nil
	if s.closed {
		s.disk.synced() // what was appended and not confirmed is durable now
	}
	s.crash(true, "it was shut down")
}

// restartIn starts the server again after a while.
func (s *server) restartIn(d Micros) {
	if s.running || s.restarting {
		return
	}
	s.restarting = true
	life := s.life
	s.w.after(d, func() {
		if s.life == life {
			s.restarting = false
			s.start()
		}
	})
}

// pause keeps the process from running; the machine and its network go on.
func (s *server) pause(until Micros) {
	s.w.note(s.id, "is paused until", int64(until), 0)
	s.w.count.Pauses++
	s.pausedUntil = max(s.pausedUntil, until)
}

// verifySnapshot reads a snapshot in full.
func verifySnapshot(r io.Reader, _ zab.SnapshotFile) error {
	return znode.VerifySnapshot(r, fieldBytesMax)
}
