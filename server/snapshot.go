package server

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"zabra/zab"
	"zabra/znode"
)

// snapshots knows whether one is being written.
type snapshots struct {
	running atomic.Bool
}

// maybeSnapshot begins a snapshot when enough has been logged since the last one. It belongs to the disk goroutine,
// between two batches. The log begins a new file also when no snapshot can be taken, so that its files do not grow
// without bound.
func (s *Server) maybeSnapshot() {
	if !s.store.SnapshotDue() {
		return
	}
	s.store.SnapshotStarted()
	if !s.snaps.running.CompareAndSwap(false, true) {
		s.log.Warn("Too busy to snap, skipping")
		return
	}
	s.post(s.openSnapshot)
}

// openSnapshot fixes the state that the snapshot shows. It belongs to the stepping goroutine, which goes on at once.
func (s *Server) openSnapshot() {
	snap, err := s.replica.OpenSnapshot()
	if err != nil {
		s.snapshotFailed(err)
		s.snaps.running.Store(false)
		return
	}
	s.spawn(func() {
		defer s.snaps.running.Store(false)
		defer snap.Close()
		if err := s.writeSnapshot(snap); err != nil {
			s.snapshotFailed(err)
		}
	})
}

// writeSnapshot writes a snapshot to its file. When the server is closed it gives up, and the file never gets its name.
func (s *Server) writeSnapshot(snap *znode.Snapshot) error {
	s.log.Info("Snapshotting: " + snap.Zxid().String() + " to " + s.snapshotDir())
	began := time.Now()
	err := s.store.WriteSnapshot(snap.Zxid(), func(b []byte, budget int) ([]byte, bool, error) {
		select {
		case <-s.quit:
			return b, false, errSnapshotClosed
		default:
			return snap.Next(b, budget)
		}
	})
	if err == nil {
		s.meter.snapshot.add(time.Since(began).Milliseconds())
	}
	return err
}

// snapshotFailed tells of a snapshot that could not be taken. As far as the storage can go on that is no reason to stop:
// the log has everything. It only grows, and the next start takes longer.
func (s *Server) snapshotFailed(err error) {
	if s.phase.Load() == phaseClosed {
		return
	}
	s.meter.snapshotErrors.Add(1)
	if _, dead := s.store.Snapshots(); dead != nil {
		s.diskFailed(fmt.Errorf("a snapshot cannot be written: %w", err))
		return
	}
	s.log.Error("cannot write a snapshot; the server goes on, but the transaction log grows until one succeeds. "+
		"Check free space and permissions", zap.String("dataDir", s.cfg.DataDir), zap.Error(err))
}

// purgeLoop removes old snapshots and logs at the start and then periodically.
func (s *Server) purgeLoop() {
	for {
		s.log.Info("Purge task started.")
		if err := s.store.Purge(s.cfg.AutopurgeSnapRetainCount, s.verifySnapshot); err != nil {
			s.log.Error("cannot purge old snapshots and logs; the next attempt follows after the purge interval", zap.Error(err))
		} else {
			s.log.Info("Purge task completed.")
		}
		if !s.pause(time.Duration(s.cfg.AutopurgePurgeIntervalHours) * time.Hour) {
			return
		}
	}
}

// verifySnapshot reads a snapshot in full, before older ones are deleted because it is there.
func (s *Server) verifySnapshot(r io.Reader, _ zab.SnapshotFile) error {
	return znode.VerifySnapshot(r, s.fieldBytesMax())
}
