package server

// SnapshotNow begins a snapshot, unless one is being written.
func (s *Server) SnapshotNow() {
	if run := s.snaps.begin(); run != nil {
		s.post(func() { s.openSnapshot(run) })
	}
}

// SnapshotRunning tells whether one is being written.
func (s *Server) SnapshotRunning() bool { return s.snaps.running() != nil }

// SnapshotsWritten counts the snapshots that were written since the start.
func (s *Server) SnapshotsWritten() int64 { return int64(s.meter.snapshot.SinceReset().Count) }
