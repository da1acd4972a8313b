package storage

import (
	"io"

	"zabra/zab/zxid"
)

// Truncate makes z the last transaction, exactly: what is behind it goes, and so do snapshots that contain more, because
// loading one would bring it back. It returns ErrNotInLog, with nothing changed, when z is neither in the log nor the
// point of the oldest history that is kept, or when another server wrote the directory beyond z: a snapshot of ZooKeeper
// may hold more than its name says. It is durable on return; after a crash on the way the log ends somewhere between z and
// its old end, and the call is to be repeated.
//
// What was appended before is synced first. Readers that are open end with an error, and a snapshot that is being written
// never gets its name.
func (s *Store) Truncate(z zxid.Zxid) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.Sync(); err != nil || z == s.appender.last {
		return err
	}
	if z < s.state.rec.cutFloor {
		return ErrNotInLog
	}
	base, err := s.baseFor(z)
	if err != nil {
		return err
	}
	end, cuts, err := s.find(base, z)
	if err != nil {
		return err
	}
	if err := s.roll(); err != nil {
		return err
	}
	s.files.Lock()
	defer s.files.Unlock()
	s.generation.Add(1)
	// The mark goes first: it must never promise more than there is.
	if err := s.setMark(end, true); err != nil {
		return err
	}
	if err := s.removeBehind(z, cuts); err != nil {
		return s.fail(err)
	}
	s.state.rec.own = min(s.state.rec.own, z)
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

// find returns where z ends in the log, and where to cut the files that hold more. When z is the snapshot's own point, it
// may be in no log.
func (s *Store) find(base, z zxid.Zxid) (position, []cut, error) {
	r, err := s.openLog(base)
	if err != nil {
		return position{}, nil, err
	}
	defer r.Close()
	r.cutting, r.wanted = true, z
	for {
		_, err := r.Next()
		if err != nil && err != io.EOF {
			return position{}, nil, err
		}
		if err == io.EOF || r.file.first > z {
			break
		}
	}
	if r.found.Last != z && base != z {
		return position{}, nil, ErrNotInLog
	}
	r.found.Last = z
	return r.found, r.beyond, nil
}

// removeBehind deletes newest first, so that a crash leaves a log without a hole.
func (s *Store) removeBehind(z zxid.Zxid, cuts []cut) error {
	files, err := s.listSnapshots()
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Zxid > z {
			if err := s.fs.Remove(s.snapPath(f.Name)); err != nil {
				return err
			}
			s.forgetVerified(f.Name)
		}
	}
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return err
	}
	names, err := s.fs.List(s.logDir)
	if err != nil {
		return err
	}
	logs := s.current(logNames(names))
	for i := len(logs) - 1; i >= 0 && logs[i] > z; i-- {
		if err := s.fs.Remove(s.logPath(logName(logs[i]))); err != nil {
			return err
		}
		// One at a time: unsynced removals may reach the disk in any order.
		if err := s.fs.SyncDir(s.logDir); err != nil {
			return err
		}
	}
	for _, c := range cuts {
		if c.file > z {
			continue // gone
		}
		if err := s.cut(c); err != nil {
			return err
		}
	}
	return nil
}
