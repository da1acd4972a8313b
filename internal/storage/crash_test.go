package storage

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

var crashSeed = flag.Uint64("crash.seed", 0, "run only this world of the crash test")

// world is a disk and what was promised about it. One seed is one world: several servers' lives on the same directory,
// each ended by a crash in the middle of some file operation.
type world struct {
	t    testing.TB
	seed uint64
	rng  *rand.Rand
	disk *vfs.Mem

	past
	// replacing is the history that a snapshot being installed is about to bring, nil while none is.
	replacing *past
	epochs    promisedEpochs
	life      uint64
	checks    int
	installs  int
}

// past is what was promised: history is everything appended after the transaction base, with the life that appended it as
// the tag; acked is how much of it was acknowledged.
type past struct {
	base    zxid.Zxid
	history []zab.Entry
	acked   int
}

// after returns the index in the history of the first transaction after z.
func (p *past) after(z zxid.Zxid) int {
	for i, e := range p.history {
		if e.Zxid > z {
			return i
		}
	}
	return len(p.history)
}

func (p *past) lastZxid() zxid.Zxid {
	if len(p.history) == 0 {
		return p.base
	}
	return p.history[len(p.history)-1].Zxid
}

// promisedEpochs are the epochs that the files may show: those acknowledged first, and behind them those of changes that
// are under way.
type promisedEpochs []Epochs

func (p promisedEpochs) allow(fits func(Epochs) bool) bool { return slices.ContainsFunc(p, fits) }

func (w *world) require(ok bool, format string, args ...any) {
	if !ok {
		w.t.Helper()
		w.t.Fatalf("seed %d life %d: %s", w.seed, w.life, fmt.Sprintf(format, args...))
	}
}

func (w *world) ok(err error, what string) {
	w.t.Helper()
	w.require(err == nil, "%s: %v", what, err)
}

func (w *world) config() Config {
	return Config{SnapDir: "/data", PreAllocBytes: []int64{0, 8 << 10, 64 << 10}[w.seed%3], SnapCount: 2 + int(w.seed%20),
		LogSizeLimitBytes: []int64{0, 3000}[w.seed%2], Rand: rand.New(rand.NewPCG(w.seed, 1)), Go: func(f func()) { f() },
		Compression: []string{"", "gz", "snappy"}[w.seed%3], Verify: checkSnapshot}
}

// batchMax is small in most worlds: then batches tear often and windows are narrow.
func (w *world) batchMax() int {
	if w.seed%32 == 0 {
		return batchBytesMax
	}
	return 6000 + int(w.seed%7)*4096
}

func (w *world) open(disk vfs.FS) *Store {
	s, err := Open(disk, w.config())
	w.ok(err, "open")
	s.batchMax = w.batchMax()
	return s
}

// recovered checks what a server finds on a disk: every acknowledged transaction, in order, and nothing else but the
// beginning of what was appended behind; or, while a snapshot is being installed, that and nothing else. It returns the open
// store and the history as far as it is there.
func (w *world) recovered(disk *vfs.Mem, p past) (*Store, past) {
	s := w.open(disk)
	if r := w.replacing; r != nil && s.barrier.Load() == int64(r.base) {
		p = *r
	}
	files, err := s.Snapshots()
	w.ok(err, "list snapshots")
	if len(files) == 0 {
		w.require(p.acked == 0 && p.base == 0, "%d transactions were acknowledged, but there is no snapshot", p.acked)
		entries, err := readLog(s, 0)
		w.ok(err, "read log")
		w.require(len(entries) == 0, "logs without a snapshot")
		return s, past{}
	}
	n := -1
	for i, f := range files {
		w.require(f.Zxid >= p.base, "%s is older than the snapshot that was installed", f.Name)
		r, err := s.OpenSnapshot(f)
		w.ok(err, f.Name)
		w.ok(checkSnapshot(r, f), f.Name)
		w.ok(r.Close(), f.Name)
		if i >= snapRetainMin {
			continue // its logs may have been purged, while its removal was lost
		}
		from := p.after(f.Zxid)
		entries, err := readLog(s, f.Zxid)
		w.ok(err, "read log after "+f.Name)
		got := from + len(entries)
		w.require(got >= p.acked, "after %s: %d transactions are left, %d were acknowledged", f.Name, got, p.acked)
		w.require(got <= len(p.history), "after %s: %d transactions, only %d were appended", f.Name, got, len(p.history))
		for k, e := range entries {
			want := p.history[from+k]
			w.require(e.Zxid == want.Zxid && string(e.Payload) == string(want.Payload), "transaction %v differs from what was appended as %v", e.Zxid, want.Zxid)
		}
		w.require(n < 0 || n == got, "from different snapshots the log ends differently")
		n = got
	}
	return s, past{base: p.base, history: p.history[:n:n], acked: n}
}

// begin opens the store for appending and lets the strict reader have a look.
func (w *world) begin(s *Store, disk *vfs.Mem, p past) {
	w.ok(s.Begin(p.lastZxid()), "begin")
	base, entries, err := referenceLoad(w.t, disk, "/data/version-2")
	w.ok(err, "ZooKeeper would not start")
	w.require(p.after(base)+len(entries) == len(p.history), "ZooKeeper sees %d transactions, we %d", p.after(base)+len(entries), len(p.history))
	w.checkEpochs(s, p.lastZxid())
	w.checkHistory(s, p)
}

// checkEpochs sees the epochs before and after the start: each is the acknowledged one or that which was on its way, and
// after the start they fit the log.
func (w *world) checkEpochs(s *Store, last zxid.Zxid) {
	e, err := s.Epochs()
	w.ok(err, "epochs")
	e.CurrentTmp, e.HasCurrentTmp = 0, false
	w.require(w.epochs.allow(func(p Epochs) bool { return p.Accepted == e.Accepted && p.HasAccepted == e.HasAccepted }),
		"accepted epoch of %v is none of %v", e, w.epochs)
	w.require(w.epochs.allow(func(p Epochs) bool { return p.Current == e.Current && p.HasCurrent == e.HasCurrent }),
		"current epoch of %v is none of %v", e, w.epochs)
	accepted, current, err := s.EpochsForStart(last)
	w.ok(err, "epochs for the start")
	w.require(accepted >= current && current >= last.Epoch(), "epochs %d and %d, but the last transaction is %v", accepted, current, last)
	w.require(accepted >= e.Accepted && current >= e.Current, "an epoch went back")
}

// checkHistory asks for the log as another server would, from a random point on.
func (w *world) checkHistory(s *Store, p past) {
	at := w.rng.IntN(len(p.history) + 1)
	after := p.base
	if at > 0 {
		after = p.history[at-1].Zxid
	}
	h := s.History(zab.HistoryRequest{After: after, LogOnly: true}, 64<<20)
	if h.Err != nil {
		oldest := p.base // the log must reach back to each snapshot that is kept
		files, err := s.Snapshots()
		w.ok(err, "snapshots")
		for _, f := range files[:min(len(files), snapRetainMin)] {
			oldest = f.Zxid
		}
		w.require(after < oldest, "history after %v: %v", after, h.Err)
		return
	}
	w.require(h.Prev == after, "history after %v begins behind %v", after, h.Prev)
	w.require(len(h.Entries) == len(p.history)-at, "history after %v has %d entries of %d", after, len(h.Entries), len(p.history)-at)
	for k, e := range h.Entries {
		w.require(string(e.Payload) == string(p.history[at+k].Payload), "history after %v: entry %v", after, e.Zxid)
	}
}

// check crashes the disk and sees what is left of it, twice: the recovery itself may crash too.
func (w *world) check(p past) {
	w.checks++
	disk := w.disk.CrashClone(w.rng)
	if w.rng.IntN(2) == 0 { // the very opening may crash: it ends an installation
		disk = w.openingCrashes(disk)
	}
	s, found := w.recovered(disk, p)
	w.begin(s, disk, found)
	again := disk.CrashClone(w.rng) // Begin has acknowledged everything that it found
	s.crash()
	was := w.epochs
	w.epochs = promisedEpochs{w.readEpochs(disk)}
	s, left := w.recovered(again, found)
	w.epochs = was
	w.require(len(left.history) == len(found.history), "after a second crash %d transactions are left of %d", len(left.history), len(found.history))
	s.crash()
}

// openingCrashes opens the directory and returns the disk as a crash during that leaves it.
func (w *world) openingCrashes(disk *vfs.Mem) *vfs.Mem {
	fault := vfs.NewFault(disk)
	at, crashed := w.rng.IntN(20), disk
	fault.Observe(func(op vfs.Op, err error) {
		if at--; at == 0 && op.Kind.Changes() {
			crashed = disk.CrashClone(w.rng)
		}
	})
	w.open(fault).crash()
	return crashed
}

func (w *world) readEpochs(disk *vfs.Mem) Epochs {
	s := &Store{fs: disk, snapDir: "/data/version-2"}
	e, err := s.Epochs()
	w.ok(err, "epochs")
	e.CurrentTmp, e.HasCurrentTmp = 0, false
	return e
}

// crash ends a store without another operation on its disk.
func (s *Store) crash() {
	failure := errDisk
	s.failure.CompareAndSwap(nil, &failure)
	s.background.Wait()
	s.appender.drop()
	if s.state != nil {
		s.state.close()
	}
	s.unlock()
}

// live runs one server until it crashes in the middle of an operation, or is closed in peace.
func (w *world) live() {
	w.life++
	steps := 5 + w.rng.IntN(25)
	crashAt := w.rng.IntN(steps * 8)
	fault := vfs.NewFault(w.disk)
	var next *world // as it is at the crash
	busy := false
	fault.Observe(func(op vfs.Op, err error) {
		if busy || !op.Kind.Changes() || next != nil {
			return
		}
		busy = true // the checks below do operations of their own
		defer func() { busy = false }()
		if w.rng.IntN(4) == 0 {
			w.check(w.past)
		}
		if crashAt--; crashAt < 0 {
			next = w.crashed()
		}
	})
	s := w.recoveredBy(fault)
	e := startEpochs(w.readEpochs(w.disk), w.lastZxid().Epoch())
	w.epochs = append(w.epochs, w.readEpochs(w.disk), e)
	w.begin(s, w.disk, w.past)
	w.acked = len(w.history)
	w.require(w.readEpochs(w.disk) == e, "epochs at the start are %v, not %v", w.readEpochs(w.disk), e)
	w.epochs = promisedEpochs{e}
	for i := 0; i < steps && next == nil; i++ {
		w.step(s, fault)
	}
	if next == nil && w.rng.IntN(2) == 0 {
		w.closeStore(s)
		return
	}
	if next == nil {
		next = w.crashed()
	}
	s.crash()
	w.disk, w.past, w.replacing, w.epochs = next.disk, next.past, next.replacing, next.epochs
}

// startEpochs returns what the epoch files are to say after a start.
func startEpochs(e Epochs, last zxid.Epoch) Epochs {
	if !e.HasAccepted {
		e.Accepted, e.HasAccepted = last, true
	}
	if !e.HasCurrent {
		e.Current, e.HasCurrent = last, true
	}
	if e.Current < last {
		e.Current, e.Accepted = last, max(last, e.Accepted)
	}
	return e
}

// closeStore closes the store, which may raise the epochs to those of the log.
func (w *world) closeStore(s *Store) {
	e := startEpochs(w.readEpochs(w.disk), w.lastZxid().Epoch())
	w.epochs = append(w.epochs, e)
	w.ok(s.Close(), "close")
	w.acked = len(w.history)
	w.require(w.readEpochs(w.disk) == e, "epochs after the end are %v, not %v", w.readEpochs(w.disk), e)
	w.epochs = promisedEpochs{e}
	w.check(w.past)
}

// crashed returns the world as a crash at this moment leaves it.
func (w *world) crashed() *world {
	next := *w
	if next.disk = w.disk.CrashClone(w.rng); w.rng.IntN(4) == 0 {
		next.disk = w.disk.Clone() // only the process dies
	}
	return &next
}

// recoveredBy opens the store of this life on the observed disk, and writes the first snapshot if there is none.
func (w *world) recoveredBy(fault *vfs.Fault) *Store {
	probe, found := w.recovered(w.disk.Clone(), w.past)
	probe.crash()
	was := w.past
	s := w.open(fault)
	w.past, w.replacing = found, nil
	w.acked = min(was.acked, found.acked) // until Begin
	w.require(s.barrier.Load() == int64(found.base) || found.base == was.base, "opened twice, with different results")
	if files, err := s.Snapshots(); err == nil && len(files) == 0 {
		w.ok(writeSnapshot(s, 0, w.rng.IntN(5000)), "first snapshot")
	}
	_, err := readLog(s, newestSnapshot(w.t, s))
	w.ok(err, "read log")
	return s
}

// step does one random thing.
func (w *world) step(s *Store, fault *vfs.Fault) {
	switch p := w.rng.IntN(24); {
	case p < 14:
		w.append(s, fault)
	case p < 16:
		s.SnapshotStarted()
		w.ok(s.err(), "roll")
		w.acked = len(w.history)
	case p < 18:
		s.SnapshotStarted()
		w.acked = len(w.history)
		w.ok(writeSnapshot(s, w.lastZxid(), w.rng.IntN(9000)), "snapshot")
	case p < 19:
		w.ok(s.Purge(snapRetainMin, checkSnapshot), "purge")
	case p < 20:
		w.install(s)
	case p < 22:
		w.setEpoch(s)
	default:
		if n := w.acked - w.rng.IntN(4); n > 0 && n < len(w.history) && w.acked == len(w.history) {
			w.truncate(s, n)
		}
	}
}

// install receives and installs the snapshot of another history: it ends before ours, behind it, or where ours does.
func (w *world) install(s *Store) {
	z := max(w.base, w.lastZxid()+zxid.Zxid(w.rng.IntN(12))-6)
	if w.rng.IntN(4) == 0 {
		z = zxid.Make(w.lastZxid().Epoch()+1, uint32(w.rng.IntN(9)))
	}
	if z <= w.base {
		return // the barrier would not tell the two apart
	}
	compression := []string{"", "gz", "snappy"}[w.rng.IntN(3)]
	receive(w.t, s, z, compression, w.rng.IntN(9000))
	w.replacing = &past{base: z}
	w.ok(s.Perform(zab.PersistOp{Kind: zab.PersistInstallSnapshot, Zxid: z}), "install")
	w.past, w.replacing = past{base: z}, nil
	w.installs++
}

// setEpoch raises an epoch, the way in which they are raised.
func (w *world) setEpoch(s *Store) {
	e := w.epochs[0]
	op := zab.PersistOp{Kind: zab.PersistSetAccepted, Epoch: max(e.Accepted, w.lastZxid().Epoch()) + zxid.Epoch(w.rng.IntN(2))}
	if e.Accepted > e.Current && w.rng.IntN(2) == 0 {
		op = zab.PersistOp{Kind: zab.PersistSetCurrent, Epoch: e.Accepted}
		e.Current, e.HasCurrent = op.Epoch, true
	} else {
		e.Accepted, e.HasAccepted = op.Epoch, true
	}
	w.epochs = append(w.epochs, e)
	w.ok(s.Perform(op), "set epoch")
	w.epochs = promisedEpochs{e}
	w.acked = len(w.history)
}

// append logs a few transactions and acknowledges them when Sync returns, and not before that really synced.
func (w *world) append(s *Store, fault *vfs.Fault) {
	var entries []zab.Entry
	last := w.lastZxid()
	for range 1 + w.rng.IntN(8) {
		if last++; w.rng.IntN(30) == 0 {
			last = zxid.Make(last.Epoch()+1+zxid.Epoch(w.rng.IntN(2)), 1)
		}
		size := w.rng.IntN(300)
		switch w.rng.IntN(200) {
		case 0:
			size = w.batchMax() + w.rng.IntN(5000)
		case 1, 2, 3, 4:
			size = w.rng.IntN(10000)
		case 5, 6, 7, 8, 9:
			size = 4096 + w.rng.IntN(64) - 32
		}
		entries = append(entries, txn(last, w.life, size))
	}
	w.history = append(w.history, entries...)
	syncs := fault.Syncs()
	w.ok(s.Append(entries), "append")
	if w.rng.IntN(4) == 0 {
		return // several appends share a sync
	}
	w.ok(s.Sync(), "sync")
	w.require(fault.Syncs() > syncs, "acknowledged without a sync")
	w.acked = len(w.history)
}

// truncate cuts acknowledged history, which from then on is not promised any more.
func (w *world) truncate(s *Store, n int) {
	full := w.history
	w.acked = n // while it runs, anything between is right
	err := s.Truncate(full[n-1].Zxid)
	if err == ErrNotInLog { // the snapshots begin later
		w.acked = len(full)
		return
	}
	w.ok(err, "truncate")
	w.history = full[:n:n]
}

func (w *world) run() {
	w.disk, w.epochs = vfs.NewMem(), promisedEpochs{{}}
	for range 3 + w.rng.IntN(3) {
		w.live()
	}
	s, found := w.recovered(w.disk, w.past)
	w.begin(s, w.disk, found)
	w.ok(s.Close(), "close")
}

func TestCrash(t *testing.T) {
	seeds := uint64(crashSeeds)
	if testing.Short() {
		seeds = min(seeds, 60)
	}
	var mu sync.Mutex
	checks, installs := 0, 0
	run := func(seed uint64) {
		w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0))}
		w.run()
		mu.Lock()
		defer mu.Unlock()
		checks += w.checks
		installs += w.installs
	}
	if *crashSeed != 0 {
		run(*crashSeed)
		return
	}
	for seed := range seeds {
		run(seed + 1)
	}
	t.Logf("%d worlds, %d crashes looked into, %d snapshots installed", seeds, checks, installs)
	require.Greater(t, checks, int(seeds))
	require.Greater(t, installs, int(seeds)/4)
}

// The crash test must notice a store that acknowledges too early: without syncs it has to find a loss soon.
func TestCrashTestFindsMissingSyncs(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.KindSyncData, vfs.KindSync, vfs.KindSyncDir} {
		t.Run(kind.String(), func(t *testing.T) {
			found := 0
			for seed := range uint64(20) {
				if lossWithout(kind, seed) {
					found++
				}
			}
			require.Greater(t, found, 0)
		})
	}
}

// lossWithout commits transactions on a disk whose calls of one kind do nothing, crashes it and tells whether something
// acknowledged is missing or the directory does not load.
func lossWithout(kind vfs.Kind, seed uint64) bool {
	rng := rand.New(rand.NewPCG(seed, 3))
	disk := vfs.NewMem()
	if err := disk.MkdirAll("/data/version-2"); err != nil {
		return false
	}
	cfg := testConfig()
	cfg.PreAllocBytes = 0 // the syncs of background zeros would help
	s, err := Open(lyingFS{disk, kind}, cfg)
	if err != nil {
		return false
	}
	defer s.crash()
	_ = writeSnapshot(s, 0, 10)
	_ = s.Begin(0)
	count := zxid.Zxid(1 + seed%3*10)
	for z := zxid.Zxid(1); z <= count; z++ {
		_ = s.Append([]zab.Entry{txn(z, 1, 500)})
		_ = s.Sync()
	}
	after, err := Open(disk.CrashClone(rng), cfg)
	if err != nil {
		return true
	}
	defer after.crash()
	entries, err := readLog(after, 0)
	return err != nil || len(entries) < int(count)
}

// lyingFS reports success for one kind of call without making it.
type lyingFS struct {
	*vfs.Mem
	kind vfs.Kind
}

func (l lyingFS) Create(name string) (vfs.File, error) {
	f, err := l.Mem.Create(name)
	return lyingFile{f, l.kind}, err
}

func (l lyingFS) SyncDir(dir string) error {
	if l.kind == vfs.KindSyncDir {
		return nil
	}
	return l.Mem.SyncDir(dir)
}

type lyingFile struct {
	vfs.File
	kind vfs.Kind
}

func (f lyingFile) Sync() error {
	if f.kind == vfs.KindSync {
		return nil
	}
	return f.File.Sync()
}

func (f lyingFile) SyncData() error {
	if f.kind == vfs.KindSyncData {
		return nil
	}
	return f.File.SyncData()
}
