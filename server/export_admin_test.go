package server

import (
	"crypto/tls"

	"zabra/conf"
)

// What tests of the admin server need of the inside.

// AdminConnsMax is how many connections the admin server has at a time.
const AdminConnsMax = adminConnsMax

// ListenAdmin binds the admin server of a server that was made without one and does not serve yet.
func (s *Server) ListenAdmin(a conf.Admin, keys func() (*tls.Config, error)) {
	cfg := *s.cfg
	cfg.Admin = a
	s.cfg, s.adminTLS = &cfg, keys
	s.listenAdmin()
}

// AdminConns is how many connections the admin server has.
func (s *Server) AdminConns() int {
	l := s.admin.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}
