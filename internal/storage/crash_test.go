package storage

import (
	"flag"
	"fmt"
	"math/rand/v2"
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

	// history is everything appended, with the life that appended it as the tag; acked how much of it was
	// acknowledged; kept the zxid up to which snapshots may have taken over.
	history []zab.Entry
	acked   int
	life    uint64
	checks  int
}

// entry returns the index in the history of the first transaction after z.
func (w *world) after(z zxid.Zxid) int {
	for i, e := range w.history {
		if e.Zxid > z {
			return i
		}
	}
	return len(w.history)
}

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
		Compression: []string{"", "gz", "snappy"}[w.seed%3]}
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
// beginning of what was appended behind. It returns the open store and how much of the history is there.
func (w *world) recovered(disk *vfs.Mem, acked int) (*Store, int) {
	s := w.open(disk)
	files, err := s.Snapshots()
	w.ok(err, "list snapshots")
	if len(files) == 0 {
		w.require(acked == 0, "%d transactions were acknowledged, but there is no snapshot", acked)
		entries, err := readLog(s, 0)
		w.ok(err, "read log")
		w.require(len(entries) == 0, "logs without a snapshot")
		return s, 0
	}
	n := -1
	for i, f := range files {
		r, err := s.OpenSnapshot(f)
		w.ok(err, f.Name)
		w.ok(checkSnapshot(r, f), f.Name)
		w.ok(r.Close(), f.Name)
		if i >= snapRetainMin {
			continue // its logs may have been purged, while its removal was lost
		}
		from := w.after(f.Zxid)
		entries, err := readLog(s, f.Zxid)
		w.ok(err, "read log after "+f.Name)
		got := from + len(entries)
		w.require(got >= acked, "after %s: %d transactions are left, %d were acknowledged", f.Name, got, acked)
		w.require(got <= len(w.history), "after %s: %d transactions, only %d were appended", f.Name, got, len(w.history))
		for k, e := range entries {
			want := w.history[from+k]
			w.require(e.Zxid == want.Zxid && string(e.Payload) == string(want.Payload), "transaction %v differs from what was appended as %v", e.Zxid, want.Zxid)
		}
		w.require(n < 0 || n == got, "from different snapshots the log ends differently")
		n = got
	}
	return s, n
}

// begin opens the store for appending and lets the strict reader have a look.
func (w *world) begin(s *Store, disk *vfs.Mem, n int) {
	last := zxid.Zxid(0)
	if n > 0 {
		last = w.history[n-1].Zxid
	}
	w.ok(s.Begin(last), "begin")
	base, entries, err := referenceLoad(w.t, disk, "/data/version-2")
	w.ok(err, "ZooKeeper would not start")
	w.require(w.after(base)+len(entries) == n, "ZooKeeper sees %d transactions, we %d", w.after(base)+len(entries), n)
}

// check crashes the disk and sees what is left of it, twice: the recovery itself may crash too.
func (w *world) check(acked int) {
	w.checks++
	disk := w.disk.CrashClone(w.rng)
	s, n := w.recovered(disk, acked)
	w.begin(s, disk, n)
	again := disk.CrashClone(w.rng) // Begin has acknowledged everything that it found
	s.crash()
	s, m := w.recovered(again, n)
	w.require(m == n, "after a second crash %d transactions are left of %d", m, n)
	s.crash()
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

// live runs one server until it crashes in the middle of an operation. It returns false when it was closed in peace.
func (w *world) live() {
	w.life++
	steps := 5 + w.rng.IntN(25)
	crashAt := w.rng.IntN(steps * 6)
	fault := vfs.NewFault(w.disk)
	var next *vfs.Mem
	var nextAcked int
	var nextHistory []zab.Entry
	busy := false
	fault.Observe(func(op vfs.Op, err error) {
		if busy || !op.Kind.Changes() || next != nil {
			return
		}
		busy = true // the checks below do operations of their own
		defer func() { busy = false }()
		if w.rng.IntN(4) == 0 {
			w.check(w.acked)
		}
		if crashAt--; crashAt < 0 {
			nextAcked, nextHistory = w.acked, w.history
			if next = w.disk.CrashClone(w.rng); w.rng.IntN(4) == 0 {
				next = w.disk.Clone() // only the process dies
			}
		}
	})
	s, n := w.recoveredBy(fault)
	w.history = w.history[:n]
	w.begin(s, w.disk, n)
	w.acked = n
	for i := 0; i < steps && next == nil; i++ {
		w.step(s, fault)
	}
	if next == nil && w.rng.IntN(2) == 0 {
		w.ok(s.Close(), "close")
		w.acked = len(w.history)
		w.check(w.acked)
		return
	}
	if next == nil {
		next, nextAcked, nextHistory = w.disk.CrashClone(w.rng), w.acked, w.history
	}
	s.crash()
	w.disk, w.acked, w.history = next, nextAcked, nextHistory
}

// recoveredBy opens the store of this life on the observed disk, and writes the first snapshot if there is none.
func (w *world) recoveredBy(fault *vfs.Fault) (*Store, int) {
	probe, n := w.recovered(w.disk, w.acked)
	probe.crash()
	s := w.open(fault)
	if files, err := s.Snapshots(); err == nil && len(files) == 0 {
		w.ok(writeSnapshot(s, 0, w.rng.IntN(5000)), "first snapshot")
	}
	return s, n
}

// step does one random thing.
func (w *world) step(s *Store, fault *vfs.Fault) {
	switch p := w.rng.IntN(20); {
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
	default:
		if n := w.acked - w.rng.IntN(4); n > 0 && n < len(w.history) && w.acked == len(w.history) {
			w.truncate(s, n)
		}
	}
}

func (w *world) lastZxid() zxid.Zxid {
	if len(w.history) == 0 {
		return 0
	}
	return w.history[len(w.history)-1].Zxid
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
	w.disk = vfs.NewMem()
	for range 3 + w.rng.IntN(3) {
		w.live()
	}
	s, n := w.recovered(w.disk, w.acked)
	w.begin(s, w.disk, n)
	w.ok(s.Close(), "close")
}

func TestCrash(t *testing.T) {
	seeds := uint64(crashSeeds)
	if testing.Short() {
		seeds = min(seeds, 60)
	}
	var mu sync.Mutex
	checks := 0
	run := func(seed uint64) {
		w := &world{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0))}
		w.run()
		mu.Lock()
		defer mu.Unlock()
		checks += w.checks
	}
	if *crashSeed != 0 {
		run(*crashSeed)
		return
	}
	for seed := range seeds {
		run(seed + 1)
	}
	t.Logf("%d worlds, %d crashes looked into", seeds, checks)
	require.Greater(t, checks, int(seeds))
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
