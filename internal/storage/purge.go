package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"

	"zabra/zab"
	"zabra/zab/zxid"
)

// Purge deletes snapshots and logs that nobody needs any more. It keeps the newest retain snapshots (three at least) that
// verify finds whole: verify reads one from beginning to end and returns an error if it is damaged. Before they guard a
// deletion they are synced, because ZooKeeper does not sync its own. With Z the zxid of the oldest of them, older
// snapshots go, and logs older than the newest one that begins at or before Z: that one may hold the transaction after Z.
// What an open log reader or transfer still needs stays. What an installation has moved away goes too. Fewer than retain
// whole snapshots: nothing is deleted.
//
// A file that cannot be removed is no danger to anything: the error is returned, the store goes on, and a later purge tries
// again. A failed sync ends the store, as everywhere: the same directories hold the names of new logs and snapshots, and
// the kernel may have told this call of an error that theirs would then not see.
//
// It runs beside the disk goroutine. A call waits for one that is under way.
func (s *Store) Purge(retain int, verify func(r io.Reader, f zab.SnapshotFile) error) error {
	s.purging.Lock()
	defer s.purging.Unlock()
	if err := s.err(); err != nil {
		return err
	}
	generation := s.generation.Load()
	files, err := s.listSnapshots()
	if err != nil {
		return err
	}
	oldest, enough, err := s.retained(files, max(retain, snapRetainMin), verify)
	s.files.Lock()
	defer s.files.Unlock()
	if s.generation.Load() != generation {
		return s.err() // what was listed is gone or replaced; the next purge looks again
	}
	if err != nil || !enough {
		return err
	}
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return s.fail(err)
	}
	pinned, after := s.pinned()
	for i := len(files) - 1; i >= 0 && files[i].Zxid < oldest; i-- {
		if pinned[files[i].Name] {
			continue
		}
		if err := s.removeOld(s.snapPath(files[i].Name)); err != nil {
			return err
		}
		s.forgetVerified(files[i].Name)
	}
	// The old snapshots must be gone before their logs are: one without the other would look like damage.
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return s.fail(err)
	}
	if err := s.purgeLogs(min(oldest, after)); err != nil {
		return err
	}
	return s.clearSuperseded()
}

// pinned returns the snapshots that are being transferred, and the zxid after which the log is still needed.
func (s *Store) pinned() (map[string]bool, zxid.Zxid) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names, after := map[string]bool{}, zxid.Zxid(math.MaxInt64)
	for p := range s.mu.pins {
		after = min(after, p.after)
		if p.snapshot != "" {
			names[p.snapshot] = true
		}
	}
	return names, after
}

// retained verifies snapshots from the newest on and returns the zxid of the last one to keep. Damaged ones do not count.
func (s *Store) retained(files []zab.SnapshotFile, retain int, verify func(io.Reader, zab.SnapshotFile) error) (zxid.Zxid, bool, error) {
	kept := 0
	var oldest zxid.Zxid = -1
	for _, f := range files {
		if f.Zxid == oldest {
			continue // the same state under another compression
		}
		if kept == retain {
			break
		}
		ok, err := s.verified(f, verify)
		if err != nil {
			return 0, false, err
		}
		if ok {
			kept++
			oldest = f.Zxid
		}
	}
	return oldest, kept == retain, nil
}

// verified reads a snapshot once in the life of this process.
func (s *Store) verified(f zab.SnapshotFile, verify func(io.Reader, zab.SnapshotFile) error) (bool, error) {
	s.mu.Lock()
	known := s.mu.verified[f.Name]
	s.mu.Unlock()
	if known {
		return true, nil
	}
	r, err := s.openSnapshot(f)
	var format *formatError
	if errors.As(err, &format) {
		return false, nil // not even its beginning is right
	}
	if err != nil {
		return false, err
	}
	verifyErr := verify(r, f)
	if err := r.Close(); err != nil {
		return false, err
	}
	if verifyErr != nil {
		return false, r.failed // nil when the disk read well: then the file is bad
	}
	err = s.syncFile(s.snapPath(f.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, err // moved away meanwhile
	}
	if err != nil {
		return false, s.fail(fmt.Errorf("sync %s: %w", f.Name, err))
	}
	s.mu.Lock()
	s.mu.verified[f.Name] = true
	s.mu.Unlock()
	return true, nil
}

// purgeLogs deletes the logs below the newest one that begins at or before z.
func (s *Store) purgeLogs(z zxid.Zxid) error {
	names, err := s.fs.List(s.logDir)
	if err != nil {
		return err
	}
	logs := logNames(names)
	keep := 0
	for i, first := range logs {
		if first <= z {
			keep = i
		}
	}
	for _, first := range logs[:keep] {
		if err := s.removeOld(s.logPath(logName(first))); err != nil {
			return err
		}
	}
	return s.fail(s.fs.SyncDir(s.logDir))
}

// removeOld removes a file that nobody needs. If it is gone already, so much the better.
func (s *Store) removeOld(name string) error {
	err := s.fs.Remove(name)
	switch {
	case err == nil && s.cfg.Removed != nil:
		s.cfg.Removed(name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("storage: purge: %w", err)
	}
	return nil
}
