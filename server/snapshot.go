package server

import (
	"errors"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// snapshots knows the snapshot that is being written, if one is.
type snapshots struct {
	mu      sync.Mutex
	current *snapshotRun
	// barred is set while the state is being replaced.
	barred bool
}

// snapshotRun is a snapshot from the moment at which it is wanted until it is written or given up.
type snapshotRun struct {
	stop chan struct{} // closed to give it up
	done chan struct{} // closed when nothing of it is under way any more
	// write makes something other than the server's own snapshot of the state; nil for that.
	write snapshotWrite
	// zxid and err are what has become of it, to be read when it is done.
	zxid zxid.Zxid
	err  error
}

// snapshotWrite takes the pieces of a snapshot until stop is closed.
type snapshotWrite func(snap *znode.Snapshot, stop <-chan struct{}) error

// begin returns a new run, nil if there is one already or the state is being replaced.
func (sn *snapshots) begin() *snapshotRun {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	if sn.current != nil || sn.barred {
		return nil
	}
	sn.current = &snapshotRun{stop: make(chan struct{}), done: make(chan struct{})}
	return sn.current
}

func (sn *snapshots) end(run *snapshotRun) {
	sn.mu.Lock()
	sn.current = nil
	sn.mu.Unlock()
	close(run.done)
}

// running returns the run under way, nil if there is none.
func (sn *snapshots) running() *snapshotRun {
	sn.mu.Lock()
	defer sn.mu.Unlock()
	return sn.current
}

func (run *snapshotRun) stopped() bool {
	select {
	case <-run.stop:
		return true
	default:
		return false
	}
}

// barSnapshots gives up the snapshot that is being written, waits until nothing of it is left, and lets none begin until
// the new state is there. It belongs to the disk goroutine.
func (s *Server) barSnapshots() {
	s.snaps.mu.Lock()
	s.snaps.barred = true
	run := s.snaps.current
	s.snaps.mu.Unlock()
	if run == nil {
		return
	}
	close(run.stop)
	select {
	case <-run.done:
	case <-s.quit:
	}
}

// allowSnapshots ends what barSnapshots has begun.
func (s *Server) allowSnapshots() {
	s.snaps.mu.Lock()
	s.snaps.barred = false
	s.snaps.mu.Unlock()
}

// maybeSnapshot begins a snapshot when enough has been logged since the last one. It belongs to the disk goroutine,
// between two batches. The log begins a new file also when no snapshot can be taken, so that its files do not grow
// without bound.
func (s *Server) maybeSnapshot() {
	if !s.store.SnapshotDue() {
		return
	}
	s.store.SnapshotStarted()
	run := s.snaps.begin()
	if run == nil {
		s.log.Warn("Too busy to snap, skipping; the last snapshot is still being written. If this comes often, raise snapCount or give dataDir a faster disk")
		return
	}
	s.post(func() { s.openSnapshot(run) })
}

// openSnapshot fixes the state that the snapshot shows. It belongs to the stepping goroutine, which goes on at once.
func (s *Server) openSnapshot(run *snapshotRun) {
	if run.stopped() {
		run.err = errSnapshotStopped
		s.snaps.end(run)
		return
	}
	snap, err := s.replica.OpenSnapshot()
	if err != nil {
		run.err = err
		s.snapshotFailed(err)
		s.snaps.end(run)
		return
	}
	s.spawn(func() {
		defer s.snaps.end(run)
		defer snap.Close()
		run.zxid = snap.Zxid()
		if run.write != nil {
			run.err = run.write(snap, run.stop)
			return
		}
		if run.err = s.writeSnapshot(snap, run.stop); run.err != nil && !run.stopped() {
			s.snapshotFailed(run.err)
		}
	})
}

// writeSnapshot writes a snapshot to its file. When the server is closed, or stop is, it gives up, and the file never gets
// its name.
func (s *Server) writeSnapshot(snap *znode.Snapshot, stop <-chan struct{}) error {
	s.log.Info("Snapshotting: " + snap.Zxid().String() + " to " + s.store.SnapshotPath(snap.Zxid()))
	began := time.Now()
	err := s.store.WriteSnapshot(snap.Zxid(), s.pieces(snap, stop))
	if err == nil {
		s.meter.snapshot.Add(time.Since(began).Milliseconds())
	}
	return err
}

// pieces gives the bytes of a snapshot until stop is closed or the server is.
func (s *Server) pieces(snap *znode.Snapshot, stop <-chan struct{}) func([]byte, int) ([]byte, bool, error) {
	return func(b []byte, budget int) ([]byte, bool, error) {
		select {
		case <-s.quit:
			return b, false, errSnapshotClosed
		case <-stop:
			return b, false, errSnapshotStopped
		default:
			return snap.Next(b, budget)
		}
	}
}

// snapshotFailed tells of a snapshot that was not taken. An error of the disk has ended the storage, and with it the
// server. Any other is of the data that was to be written; that is no reason to stop: the log has everything.
func (s *Server) snapshotFailed(err error) {
	if s.phase.Load() == phaseClosed {
		return
	}
	s.meter.snapshotErrors.Add(1)
	if s.storeFailed(err) {
		s.log.Error("cannot write a snapshot; the disk failed, and the server stops", zap.String("dataDir", s.cfg.DataDir), zap.Error(err))
		return
	}
	s.log.Error("cannot make a snapshot of the data; the server goes on, and tries again when as many transactions have been logged. "+
		"Until one succeeds the logs are kept, and the next start takes longer", zap.Error(err))
}

// storeFailed reports whether err is the failure that has ended the storage: from then on that is its answer to
// everything. The storage itself has told of it, so that the server stops.
func (s *Server) storeFailed(err error) bool {
	_, final := s.store.Snapshots()
	return final != nil && errors.Is(err, final)
}

// purgeTimer lets the goroutine that purges hear of a change of its settings.
type purgeTimer struct{ changed changeSignal }

func (p *purgeTimer) tell() { p.changed.tell() }

// purgeLoop removes old snapshots and logs at the start and then periodically, until the server ends. While no interval is set
// it waits for one.
func (s *Server) purgeLoop() {
	scheduled := true
	for {
		changed := s.purging.changed.wait()
		hours := s.live.Load().AutopurgePurgeIntervalHours
		switch {
		case hours > 0:
			if !s.purge(hours) {
				return
			}
			scheduled = true
		case scheduled:
			s.log.Info("Purge task is not scheduled.")
			scheduled = false
		}
		if !s.awaitPurge(hours, changed) {
			return
		}
	}
}

// awaitPurge waits until the next purge is due, after that many hours or because the interval was changed. It reports false if
// the server is being closed.
func (s *Server) awaitPurge(hours int, changed <-chan struct{}) bool {
	var due <-chan time.Time
	if hours > 0 {
		timer := time.NewTimer(time.Duration(hours) * time.Hour)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-due:
			return true
		case <-changed:
			if s.live.Load().AutopurgePurgeIntervalHours != hours {
				return true
			}
			changed = s.purging.changed.wait()
		case <-s.draining:
			return false
		}
	}
}

// purge removes old snapshots and logs. It reports false if there will be no further purge.
func (s *Server) purge(hours int) bool {
	s.log.Info("Purge task started.")
	err := s.store.Purge(s.live.Load().AutopurgeSnapRetainCount, s.verifySnapshot)
	switch {
	case s.phase.Load() == phaseClosed:
		return false // it was broken off, or the disk has failed at last, which Close tells
	case err == nil:
		s.log.Info("Purge task completed.")
	case s.storeFailed(err):
		s.log.Error("cannot purge old snapshots and logs; the disk failed, and the server stops", zap.Error(err))
		return false
	default:
		s.log.Error("cannot purge all old snapshots and logs; look at the rights of the data directories. The next attempt follows after the purge interval",
			zap.Int("hours", hours), zap.Error(err))
	}
	return true
}

// verifySnapshot reads a snapshot in full, before older ones are deleted because it is there. When the server is closed
// it gives up. Then the snapshot counts as damaged, which keeps files rather than deletes them.
func (s *Server) verifySnapshot(r io.Reader, _ zab.SnapshotFile) error {
	return znode.VerifySnapshot(&quitReader{r, s.quit}, s.fieldBytesMax())
}

// quitReader reads until quit is closed.
type quitReader struct {
	r    io.Reader
	quit <-chan struct{}
}

func (q *quitReader) Read(b []byte) (int, error) {
	select {
	case <-q.quit:
		return 0, errSnapshotClosed
	default:
		return q.r.Read(b)
	}
}
