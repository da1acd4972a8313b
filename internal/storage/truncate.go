package storage

import (
	"io"

	"zabra/zab/zxid"
)

// Truncate makes z the last transaction, exactly: what is behind it goes, and so do snapshots that contain more, because
// loading one would bring it back. It returns ErrNotInLog, with nothing changed, when z is neither in the log nor the
// point of the oldest history that is kept. It is durable on return; after a crash on the way the log ends somewhere
// between z and its old end, and the call is to be repeated.
//
// Nothing appended may be waiting for a Sync.
func (s *Store) Truncate(z zxid.Zxid) error {
	if err := s.writable(); err != nil {
		return err
	}
	if z == s.appender.last {
		return s.Sync()
	}
	if err := s.Sync(); err != nil {
		return err
	}
	base, err := s.baseFor(z)
	if err != nil {
		return err
	}
	end, err := s.find(base, z)
	if err != nil {
		return err
	}
	end.Last = z
	if err := s.roll(); err != nil {
		return err
	}
	// The mark goes first: it must never promise more than there is.
	if err := s.setMark(end, true); err != nil {
		return err
	}
	if err := s.removeBehind(z, end); err != nil {
		return s.fail(err)
	}
	s.appender.last = z
	s.setDurable(end)
	return nil
}

// baseFor returns the newest snapshot at or below z: without one, what is left could not be loaded.
func (s *Store) baseFor(z zxid.Zxid) (zxid.Zxid, error) {
	files, err := s.listSnapshots()
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if f.Zxid <= z {
			return f.Zxid, nil
		}
	}
	return 0, ErrNotInLog
}

// find returns where z ends in the log. When z is the snapshot's own point, it may be in no log.
func (s *Store) find(base, z zxid.Zxid) (position, error) {
	r, err := s.openLog(base)
	if err != nil {
		return position{}, err
	}
	defer r.Close()
	r.wanted = z
	for r.found.Last != z {
		e, err := r.Next()
		if err != nil && err != io.EOF {
			return position{}, err
		}
		if err == io.EOF || e.Zxid > z {
			break
		}
	}
	if r.found.Last != z && base != z {
		return position{}, ErrNotInLog
	}
	return r.found, nil
}

// removeBehind deletes newest first, so that a crash leaves a log without a hole.
func (s *Store) removeBehind(z zxid.Zxid, end position) error {
	files, err := s.listSnapshots()
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Zxid > z {
			if err := s.fs.Remove(s.snapPath(f.Name)); err != nil {
				return err
			}
		}
	}
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return err
	}
	names, err := s.fs.List(s.logDir)
	if err != nil {
		return err
	}
	logs := logNames(names)
	for i := len(logs) - 1; i >= 0 && logs[i] > z; i-- {
		if err := s.fs.Remove(s.logPath(logName(logs[i]))); err != nil {
			return err
		}
		// One at a time: unsynced removals may reach the disk in any order.
		if err := s.fs.SyncDir(s.logDir); err != nil {
			return err
		}
	}
	if end.File == noFile {
		return nil
	}
	return s.cut(cut{file: end.File, off: end.End})
}
