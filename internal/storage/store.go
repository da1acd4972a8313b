package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// Config says where the data is and how it is written. The zero value of a field means its default.
type Config struct {
	// SnapDir and LogDir are the parents of the version-2 folders: dataDir and dataLogDir. An empty LogDir is SnapDir.
	SnapDir, LogDir string
	// PreAllocBytes is the step in which logs grow ahead of use; 0 turns that off.
	PreAllocBytes int64
	// SnapCount is how many transactions may lie between two snapshots, 2 at least. A snapshot is due after a random
	// number between half of it and all of it, so that the members of an ensemble do not take theirs together.
	SnapCount int
	// SnapSizeLimitBytes does the same for bytes of log; 0 or less turns it off.
	SnapSizeLimitBytes int64
	// LogSizeLimitBytes starts a new log when one is larger; 0 or less turns it off.
	LogSizeLimitBytes int64
	// Compression of new snapshots: "", "gz" or "snappy".
	Compression string
	// RecordBytesMax bounds a transaction: one of that many bytes or more is refused. Default 2,097,150.
	RecordBytesMax int
	// NoForceSync skips the sync of each commit. A power cut may then lose acknowledged transactions.
	NoForceSync bool
	// Rand spreads the snapshots. Nil takes one with a random seed.
	Rand *rand.Rand
	// TrustEmpty lets a log that does not begin at the first transaction be replayed without a snapshot.
	TrustEmpty bool
	// NoAutocreate refuses missing directories instead of creating them.
	NoAutocreate bool
	// ID is this server's: a learner resumes a transfer only from the server that began it.
	ID zxid.ServerID
	// SnapshotSizeFactor is the share of the newest snapshot's size that the log may have to be handed on instead of it.
	// 0 and values above 1 mean the default of 0.33, but +Inf is without a bound. A negative value never hands on the log
	// unless it is asked for.
	SnapshotSizeFactor float64
	// Verify reads a snapshot from beginning to end and returns an error if it is damaged. Without it no snapshot can be
	// transferred to another server.
	Verify func(r io.Reader, f zab.SnapshotFile) error

	// LockWait is how long Open waits for somebody else who uses a directory to be done with it. 0 does not wait.
	LockWait time.Duration
	// SyncWarn is the duration from which a sync of the log counts as slow. Default 1 s.
	SyncWarn time.Duration
	// Now reads a clock for statistics. Nil takes the system's.
	Now func() time.Time
	// Removed, if set, is told each snapshot and log that Purge has removed, by its path.
	Removed func(path string)
	// Go runs background work: writing zeros ahead of the log. Nil starts a goroutine; a simulator runs it at once.
	Go func(func())
	// Failed, if set, is told the error that ended the store, at once and once only. It is called from whatever
	// goroutine met the error, a background one perhaps, and must neither block nor call the store.
	Failed func(error)
}

// Store is the data directory of one server: its log, its snapshots, its epoch files.
//
// One goroutine, the disk goroutine, calls Begin, Perform, Append, Sync, SnapshotDue, SnapshotStarted, SetAcceptedEpoch,
// SetCurrentEpoch, EpochsForStart, Truncate and Close. WriteSnapshot and Purge may run beside it, each on one goroutine at
// a time, and so may the one Reception that is open.
// Everything else may be called from anywhere.
//
// An error of the disk is final: the operation returns it, and so does every later one except Close. Nothing is retried,
// because after a failed sync nobody knows what is durable. Reading, and removing what Purge finds old, are the exceptions.
type Store struct {
	fs      vfs.FS
	cfg     Config
	snapDir string
	logDir  string
	locks   []io.Closer

	// failure is the error that ended the store, nil while all is well.
	failure atomic.Pointer[error]
	// hasSnapshot: a snapshot is durable, so that logs may be created.
	hasSnapshot atomic.Bool
	// batchMax is batchBytesMax; tests lower it to get many batches out of little data.
	batchMax int
	// snapLimits are when a snapshot is due.
	snapLimits atomic.Pointer[snapLimits]
	// logServed is logServedBytes; tests lower it.
	logServed  int64
	background sync.WaitGroup
	stats      statsKeeper

	state    *stateFile // disk goroutine
	mark     mark       // what the state file promised at Open; recovery only
	appender appender   // disk goroutine
	incoming incoming

	// barrier is the zxid of the snapshot that was installed last: logs that begin at or before it, and snapshots below it,
	// do not count. 0 if there is none.
	barrier atomic.Int64
	// generation counts how often history was cut or replaced.
	generation atomic.Uint64
	// purging is held by the call of Purge that is under way. It is taken before all others.
	purging sync.Mutex
	// files is held while files are deleted or moved away, while a snapshot gets its name, and while a reader lists the
	// logs. It is taken after incoming.mu and before mu.
	files gate

	mu struct {
		sync.Mutex
		begun bool
		// tail is what a reader found at the end of the log; Begin mends it.
		tail *tail
		// durable is how far the log may be read while the store runs.
		durable position
		// floor is the zxid before which the log is not handed on.
		floor zxid.Zxid
		// pins are open readers and transfers: a purge keeps what they may still need.
		pins map[*pin]struct{}
		// cursors are where answers of History ended, the oldest at nextCursor.
		cursors    [historyCursors]cursor
		nextCursor int
		// announced is the generation in which SnapshotStarted was called for a snapshot that WriteSnapshot has not begun
		// yet; 0 if there is none.
		announced uint64
		// verified names snapshots that were read in full by this process.
		verified map[string]bool
	}
}

// gate is a lock that is held across operations of the disk. It is a channel and no mutex, so that whoever waits for it
// counts as waiting: a clock that runs on when everybody waits, as in tests, does.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

// position is a place in the log: the file that begins with zxid File up to offset End, whose last record is Last.
type position struct {
	File zxid.Zxid
	End  int64
	Last zxid.Zxid
}

// cursor is a position at which an answer of History on a connection ended, in one generation of the directory.
type cursor struct {
	position
	conn       zab.ConnID
	generation uint64 // 0: no position yet
}

// pin keeps a purge away from the log after a zxid, and from a snapshot if it names one.
type pin struct {
	after    zxid.Zxid
	snapshot string
}

func (s *Store) unpin(p *pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.pins, p)
}

// noFile is the position's file where there is none.
const noFile zxid.Zxid = -1

// Open opens a data directory and takes it for this process alone. Temporary files that a crash left are removed, and an
// installation that it interrupted is carried to its end; nothing else is changed. A directory that cannot be used gives a
// *DirError.
func Open(fsys vfs.FS, cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{fs: fsys, cfg: cfg, snapDir: path.Join(cfg.SnapDir, versionDir), logDir: path.Join(cfg.LogDir, versionDir)}
	s.batchMax, s.logServed, s.files = batchBytesMax, logServedBytes, newGate()
	s.mu.pins = map[*pin]struct{}{}
	s.mu.verified = map[string]bool{}
	s.mu.durable.File = noFile
	s.generation.Store(1)
	s.snapLimits.Store(&snapLimits{cfg.SnapCount, cfg.SnapSizeLimitBytes})
	s.stats.init(cfg.SyncWarn)
	if err := s.open(); err != nil {
		s.unlock()
		return nil, err
	}
	return s, nil
}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.LogDir == "" {
		cfg.LogDir = cfg.SnapDir
	}
	if cfg.RecordBytesMax <= 0 {
		cfg.RecordBytesMax = recordBytesMaxDefault
	}
	cfg.RecordBytesMax = min(cfg.RecordBytesMax, recordReadBytesMax)
	cfg.SnapCount = max(cfg.SnapCount, snapCountMin)
	cfg.PreAllocBytes = max(cfg.PreAllocBytes, 0)
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if f := cfg.SnapshotSizeFactor; f == 0 || f > 1 && !math.IsInf(f, 1) {
		cfg.SnapshotSizeFactor = snapshotSizeFactorDefault
	}
	if cfg.SyncWarn <= 0 {
		cfg.SyncWarn = syncWarnDefault
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Go == nil {
		cfg.Go = func(f func()) { go f() }
	}
	switch cfg.Compression {
	case compressionNone, compressionGzip, compressionSnappy:
		return cfg, nil
	}
	return cfg, fmt.Errorf("storage: unknown snapshot compression %q", cfg.Compression)
}

func (s *Store) open() error {
	for _, dir := range s.dirs() {
		if err := s.openDir(dir); err != nil {
			return err
		}
	}
	if err := s.checkSeparation(); err != nil {
		return err
	}
	for _, tmp := range []string{s.logPath(logTmpName), s.logPath(stateTmpName), s.snapPath(snapshotTmpName),
		s.snapPath(receivedInfoName + tmpSuffix), s.snapPath(backupTmpName), s.snapPath(restoreTmpName)} {
		if err := s.fs.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &DirError{Dir: tmp, Why: "Cannot remove temporary file", Err: err}
		}
	}
	if err := s.openState(); err != nil {
		return err
	}
	if err := s.openIncoming(); err != nil {
		return err
	}
	snapshots, err := s.Snapshots()
	if err != nil {
		return err
	}
	s.hasSnapshot.Store(len(snapshots) > 0)
	return nil
}

// dirs returns the one or two version-2 folders.
func (s *Store) dirs() []string {
	if s.snapDir == s.logDir {
		return []string{s.snapDir}
	}
	return []string{s.snapDir, s.logDir}
}

func (s *Store) openDir(dir string) error {
	if info, err := s.fs.Stat(dir); err != nil || !info.Dir {
		if s.cfg.NoAutocreate {
			return &DirError{Dir: dir, Why: "Missing data directory, automatic data directory creation is disabled"}
		}
		if err := s.fs.MkdirAll(dir); err != nil {
			return &DirError{Dir: dir, Why: "Unable to create data directory", Err: err}
		}
	}
	lock, err := s.lock(path.Join(dir, lockName))
	if errors.Is(err, vfs.ErrLocked) {
		return &DirError{Dir: dir, Why: "Another server uses data directory", Err: err}
	}
	if err != nil {
		return &DirError{Dir: dir, Why: "Cannot write to data directory", Err: err}
	}
	s.locks = append(s.locks, lock)
	return nil
}

// lock takes a directory. Somebody who has it only for a moment, such as a purge by hand, is waited for.
func (s *Store) lock(name string) (io.Closer, error) {
	for waited := time.Duration(0); ; waited += lockRetryPause {
		lock, err := s.fs.Lock(name)
		if !errors.Is(err, vfs.ErrLocked) || waited >= s.cfg.LockWait {
			return lock, err
		}
		time.Sleep(lockRetryPause)
	}
}

// checkSeparation refuses mixed-up settings when logs and snapshots have a directory each.
func (s *Store) checkSeparation() error {
	if s.snapDir == s.logDir {
		return nil
	}
	check := func(dir, prefix, why string) error {
		names, err := s.fs.List(dir)
		if err != nil {
			return &DirError{Dir: dir, Why: "Cannot read data directory", Err: err}
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				return &DirError{Dir: dir, Why: why}
			}
		}
		return nil
	}
	const hint = " Check if dataLogDir and dataDir configuration is correct."
	if err := check(s.logDir, snapshotPrefix, "Log directory has snapshot files."+hint); err != nil {
		return err
	}
	return check(s.snapDir, logPrefix, "Snapshot directory has log files."+hint)
}

func (s *Store) logPath(name string) string  { return path.Join(s.logDir, name) }
func (s *Store) snapPath(name string) string { return path.Join(s.snapDir, name) }

// err returns the failure that ended the store.
func (s *Store) err() error {
	if p := s.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// fail ends the store for good. The first failure stays; it is what all later calls return.
func (s *Store) fail(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("storage: %w", err)
	if !s.failure.CompareAndSwap(nil, &err) {
		return s.err()
	}
	if s.cfg.Failed != nil {
		s.cfg.Failed(err)
	}
	return err
}

func (s *Store) unlock() {
	for _, l := range s.locks {
		l.Close()
	}
	s.locks = nil
}

// Close writes what was appended, trims the log and gives the directory back. It returns the failure that ended the
// store earlier, if any. Readers that are still open stay usable until they are closed.
func (s *Store) Close() error {
	if errors.Is(s.err(), ErrClosed) {
		return nil
	}
	err := s.err()
	if err == nil {
		err = s.finish()
	}
	s.background.Wait()
	s.appender.drop()
	s.incoming.close()
	if s.state != nil {
		s.state.close()
	}
	s.unlock()
	closed := ErrClosed
	s.failure.Store(&closed)
	return err
}

// finish ends a healthy store: all durable, the log trimmed, the mark exact.
func (s *Store) finish() error {
	if !s.begun() {
		return nil
	}
	if err := s.Sync(); err != nil {
		return err
	}
	if err := s.roll(); err != nil {
		return err
	}
	if err := s.levelEpoch(); err != nil {
		return err
	}
	return s.writeState(true)
}

func (s *Store) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.begun
}

// RecordBytesMax is the size from which on a transaction is refused.
func (s *Store) RecordBytesMax() int { return s.cfg.RecordBytesMax }
