package server

// SnapshotNow begins a snapshot, unless one is being written.
func (s *Server) SnapshotNow() {
	if s.snaps.running.CompareAndSwap(false, true) {
		s.post(s.openSnapshot)
	}
}

// SnapshotRunning tells whether one is being written.
func (s *Server) SnapshotRunning() bool { return s.snaps.running.Load() }
