package storage

import (
	"time"

	"zabra/zab/zxid"
)

// NewestSnapshot returns the zxid of the newest file with the name of a snapshot, and when it was written; ok is false if
// there is none, or none can be seen. Any goroutine may ask.
func (s *Store) NewestSnapshot() (z zxid.Zxid, written time.Time, ok bool) {
	files, err := s.Snapshots()
	if err != nil || len(files) == 0 {
		return 0, time.Time{}, false
	}
	info, err := s.fs.Stat(s.snapPath(files[0].Name))
	if err != nil {
		return 0, time.Time{}, false
	}
	return files[0].Zxid, info.ModTime, true
}
