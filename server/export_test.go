package server

import (
	"net/netip"
	"time"

	"zabra/conf"
	"zabra/server/replica"
	"zabra/zab/zxid"
)

// What tests of whole servers need of the inside: the replica's own connections instead of sockets, the tree, and a purge
// without waiting for its hour.

// Replica returns the server's replica.
func (s *Server) Replica() *replica.Replica { return s.replica }

// OpenConn opens a connection without a socket. Nobody flushes it: who opened it takes its output.
func (s *Server) OpenConn(remote netip.AddrPort) *replica.Conn {
	return s.replica.Open(&conn{s: s}, remote, s.clock.now())
}

// Now returns the server's time, as its readers give it to the replica.
func (s *Server) Now() replica.Now { return s.clock.now() }

// Purge removes old snapshots and logs without waiting for its hour. At most one purge may run.
func (s *Server) Purge(done chan<- error) {
	s.spawn(func() { done <- s.store.Purge(s.cfg.AutopurgeSnapRetainCount, s.verifySnapshot) })
}

// SnapshotsPassed occupies the place of the snapshot that is being written, has a member look for one that is not older
// than after meanwhile, and gives the place back without a snapshot a moment later. It returns the point of what was found.
func (s *Server) SnapshotsPassed(after zxid.Zxid) (zxid.Zxid, error) {
	run := s.snaps.begin()
	time.AfterFunc(20*time.Millisecond, func() { s.snaps.end(run) }) // after the member has begun to wait; if not, nothing is tested
	t, err := s.member.newTransfer(after)
	if err != nil {
		return 0, err
	}
	return t.File().Zxid, t.Close()
}

// CatchUp returns what the settings for learners have become: the core's window, and the storage's share of a snapshot.
func CatchUp(cfg *conf.Config) (windowEntries int, sizeFactor float64) {
	s := &Server{cfg: cfg}
	return s.windowEntries(), s.storageConfig().SnapshotSizeFactor
}

// ScrapeConnsMax is how many connections the port for Prometheus takes.
const ScrapeConnsMax = scrapeConnsMax

// Held counts the connections that have sockets: also those that are ending, until their sockets are closed.
func (s *Server) Held() int {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	return len(s.conns.conns)
}
