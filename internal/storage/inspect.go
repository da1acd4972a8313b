package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// This file and those beside it that are called inspect_ serve the offline tools: they look at files one by one, and take
// no directory for themselves.

// Kind is what a name in a version-2 folder stands for.
type Kind int

// The kinds of files. A Leftover is what an interrupted write left: the next start removes or finishes it. Foreign is
// everything else; ForeignData has a name that ZooKeeper takes for a log or a snapshot, and we do not.
const (
	KindLog Kind = iota
	KindSnapshot
	KindEpoch
	KindOwn
	KindLeftover
	KindForeignData
	KindForeign
)

// KindOf tells what a name in a version-2 folder stands for, and the zxid in it if it is a log or a snapshot.
func KindOf(name string) (Kind, zxid.Zxid) {
	if z, ok := parseLogName(name); ok {
		return KindLog, z
	}
	if z, _, ok := parseSnapshotName(name); ok {
		return KindSnapshot, z
	}
	switch name {
	case acceptedName, currentName:
		return KindEpoch, 0
	case stateName, lockName:
		return KindOwn, 0
	case logTmpName, snapshotTmpName, stateTmpName, backupTmpName, restoreTmpName, receivedName, receivedInfoName, receivedInfoName + tmpSuffix,
		acceptedName + tmpSuffix, currentName + tmpSuffix:
		return KindLeftover, 0
	}
	if strings.HasPrefix(name, logPrefix) || strings.HasPrefix(name, snapshotPrefix) {
		return KindForeignData, 0
	}
	return KindForeign, 0
}

// RetainMin is the fewest snapshots that a purge keeps.
const RetainMin = snapRetainMin

// OpenSnapshotFile opens a snapshot anywhere and undoes its compression, which the end of the name tells, or how the file
// begins if that is not the name of a snapshot. The zxid is the one in the name, 0 if it has none.
func OpenSnapshotFile(fsys vfs.FS, name string) (io.ReadCloser, zxid.Zxid, error) {
	z, compression, ok := parseSnapshotName(path.Base(name))
	if !ok {
		r, _, _, err := OpenBackupFile(fsys, name)
		return r, 0, err
	}
	s := &Store{fs: fsys}
	r, err := s.openSnapshotAt(name, zab.SnapshotFile{Zxid: z, Name: snapshotName(z, compression)})
	if err != nil {
		return nil, z, err
	}
	return r, z, nil
}

// OpenBackupFile opens a snapshot whatever its name is, and undoes its compression, which is told from how the file begins.
// named says whether its name is that of a snapshot, and z is the zxid in that.
func OpenBackupFile(fsys vfs.FS, name string) (r io.ReadCloser, z zxid.Zxid, named bool, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, 0, false, err
	}
	size, err := f.Size()
	if err == nil {
		var sr *snapshotReader
		if sr, err = openSniffed(f, size); err == nil {
			z, _, named = parseSnapshotName(path.Base(name))
			return sr, z, named, nil
		}
	}
	f.Close()
	return nil, 0, false, err
}

// State is what the state file of a directory says, see state.go.
type State struct {
	// Present tells that there is a state file with a whole slot; Holds that no other server has changed the epochs since.
	Present, Holds bool
	// DurableLog, DurableEnd and DurableLast are the promise about the log: durable up to that offset and transaction.
	DurableLog  zxid.Zxid
	DurableEnd  int64
	DurableLast zxid.Zxid
	// Own is the last transaction of which it is certain that this server wrote it, 0 if there is none.
	Own zxid.Zxid
	// Barrier is the snapshot that was installed last, 0 if there is none: nothing older counts.
	Barrier zxid.Zxid
	// Installing tells that an installation of a snapshot has been announced and not finished.
	Installing bool
}

// ReadState reads the state file of a directory and changes nothing.
func ReadState(fsys vfs.FS, cfg Config) (State, error) {
	s := inspectStore(fsys, cfg)
	rec, err := s.peekState()
	if err != nil || rec == nil {
		return State{}, err
	}
	epochs, err := s.readEpochPair()
	if err != nil {
		return State{}, err
	}
	return State{
		Present: true, Holds: epochs == rec.epochs || epochs == rec.previous,
		DurableLog: rec.log.File, DurableEnd: rec.log.End, DurableLast: rec.log.Last,
		Own: rec.own, Barrier: rec.barrier, Installing: rec.install.zxid >= 0,
	}, nil
}

// The names of the epoch files.
const (
	AcceptedEpochFile = acceptedName
	CurrentEpochFile  = currentName
)

// ReadEpochFile reads one of the epoch files as a start does. The answer is false if there is none; one that holds no epoch
// is an error.
func ReadEpochFile(fsys vfs.FS, cfg Config, name string) (zxid.Epoch, bool, error) {
	return inspectStore(fsys, cfg).readEpoch(name)
}

// inspectStore is a store that was not opened: it has its paths and nothing else.
func inspectStore(fsys vfs.FS, cfg Config) *Store {
	if cfg.LogDir == "" {
		cfg.LogDir = cfg.SnapDir
	}
	s := &Store{fs: fsys, cfg: cfg, snapDir: path.Join(cfg.SnapDir, versionDir), logDir: path.Join(cfg.LogDir, versionDir)}
	s.files = newGate()
	s.mu.pins, s.mu.verified = map[*pin]struct{}{}, map[string]bool{}
	s.generation.Store(1)
	return s
}

// peekState returns the newest slot of the state file; nil if there is none.
func (s *Store) peekState() (*stateRecord, error) {
	f, err := s.fs.Open(s.logPath(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := readState(f)
	if err != nil || st == nil {
		return nil, err
	}
	return &st.rec, nil
}

// LockFiles returns the lock files of the one or two directories; a server holds a lock on each while it runs.
func LockFiles(cfg Config) []string {
	s := inspectStore(nil, cfg)
	var names []string
	for _, dir := range s.dirs() {
		names = append(names, path.Join(dir, lockName))
	}
	return names
}

// PurgeOffline does what Store.Purge does for a directory that no server of ours has open: a *DirError says that one has it.
// A ZooKeeper server may be running on the directory. It refuses when an installation of a snapshot was interrupted, which
// only a start finishes.
//
// Reading the snapshots may take minutes, and whoever starts a server meanwhile must not find the directory taken: the lock
// is held only while files are removed. What is there then and was not read does not count. A directory in which no server
// of ours ever was has no lock file; it gets none, and a server that is about to start there needs nothing of what goes.
func PurgeOffline(fsys vfs.FS, cfg Config, retain int, verify func(r io.Reader, f zab.SnapshotFile) error) (err error) {
	s := inspectStore(fsys, cfg)
	for _, dir := range s.dirs() {
		if info, err := fsys.Stat(dir); err != nil || !info.Dir {
			return &DirError{Dir: dir, Why: "There is no data directory", Err: err}
		}
	}
	s.stats.init(0)
	if err := s.checkPurgeable(); err != nil {
		return err
	}
	sizes, err := s.verifyAhead(retain, verify)
	if err != nil {
		return fmt.Errorf("purge %s: %w", cfg.SnapDir, err)
	}
	defer s.unlock()
	if err := s.lockWhereServersWere(); err != nil {
		return err
	}
	if err := s.checkPurgeable(); err != nil {
		return err
	}
	if err := s.checkSizes(sizes); err != nil {
		return err
	}
	if err := s.Purge(retain, func(io.Reader, zab.SnapshotFile) error { return errNotRead }); err != nil {
		return fmt.Errorf("purge %s: %w", cfg.SnapDir, err)
	}
	return nil
}

// errNotRead says that a snapshot was damaged when it was read, or came after that.
var errNotRead = errors.New("the snapshot was not read")

// checkPurgeable refuses directories that are mixed up or half installed, and learns what does not count in them.
func (s *Store) checkPurgeable() error {
	if err := s.checkSeparation(); err != nil {
		return err
	}
	st, err := ReadState(s.fs, s.cfg)
	if err != nil {
		return err
	}
	if st.Holds && st.Installing {
		return &DirError{Dir: s.snapDir, Why: "An installation of a snapshot was interrupted; start the server once, it finishes it"}
	}
	if st.Holds {
		s.barrier.Store(int64(st.Barrier))
	}
	return nil
}

// verifyAhead reads the snapshots that a purge is to keep and returns the sizes that they had.
func (s *Store) verifyAhead(retain int, verify func(io.Reader, zab.SnapshotFile) error) (map[string]int64, error) {
	files, err := s.listSnapshots()
	if err != nil {
		return nil, err
	}
	sizes := map[string]int64{}
	_, _, err = s.retained(files, max(retain, snapRetainMin), func(r io.Reader, f zab.SnapshotFile) error {
		info, err := s.fs.Stat(s.snapPath(f.Name))
		if err != nil {
			return err
		}
		if err := verify(r, f); err != nil {
			return err
		}
		sizes[f.Name] = info.Size
		return nil
	})
	return sizes, err
}

// checkSizes refuses to go on with snapshots that were replaced or removed since they were read.
func (s *Store) checkSizes(sizes map[string]int64) error {
	for name, size := range sizes {
		if info, err := s.fs.Stat(s.snapPath(name)); err != nil || info.Size != size {
			return &DirError{Dir: s.snapDir, Err: err,
				Why: name + " changed while the snapshots were read; nothing was removed, run the purge again"}
		}
	}
	return nil
}

// lockWhereServersWere takes the lock of each directory that has a lock file.
func (s *Store) lockWhereServersWere() error {
	for _, dir := range s.dirs() {
		_, err := s.fs.Stat(path.Join(dir, lockName))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := s.openDir(dir); err != nil {
			return err
		}
	}
	return nil
}
