package server

import (
	"net/netip"

	"zabra/server/replica"
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
