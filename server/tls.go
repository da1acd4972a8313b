package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/certs"
	"zabra/znode"
)

// encryption is what the server has of TLS. It is fixed at the start, but for what the files of the sets hold.
type encryption struct {
	clients *certs.Set  // nil: clients cannot use TLS
	config  *tls.Config // for connections of clients
	x509    znode.X509Provider
	// pollTime is the pause between two looks at the files.
	pollTime time.Duration

	mu    sync.Mutex
	peers *certs.Set // nil: neither other servers nor the admin server have used TLS yet
}

// openTLS reads the stores that the configuration names, and checks them: a server that could not encrypt does not start.
func (s *Server) openTLS() error {
	e := &s.tls
	e.pollTime = certPollTime
	e.x509.SuperUser = s.cfg.Security.X509SuperUser
	var clientsErr, peersErr error
	if s.cfg.ClientTLS() {
		if e.clients, clientsErr = certs.OpenClient(&s.cfg.Security); clientsErr == nil {
			e.config = e.clients.Server()
			s.tellRemarks(e.clients)
		}
	}
	if s.cfg.ServerTLS() {
		_, peersErr = s.peerCerts()
	}
	return errors.Join(clientsErr, peersErr)
}

func (s *Server) tellRemarks(set *certs.Set) {
	for _, remark := range set.Remarks() {
		s.log.Warn(remark)
	}
}

// peerCerts returns the set for other servers, which is also the admin server's.
func (s *Server) peerCerts() (*certs.Set, error) {
	e := &s.tls
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peers != nil {
		return e.peers, nil
	}
	set, err := certs.OpenQuorum(&s.cfg.Security)
	if err != nil {
		return nil, err
	}
	e.peers = set
	s.tellRemarks(set)
	return set, nil
}

// adminTLSConfig is the TLS of the admin server: the stores of ssl.quorum, and the demand of admin.needClientAuth. It goes with
// the files while it is used.
func (s *Server) adminTLSConfig() (*tls.Config, error) {
	set, err := s.peerCerts()
	if err != nil {
		return nil, err
	}
	auth := tls.NoClientCert
	if s.cfg.Admin.NeedClientAuth {
		auth = tls.RequireAndVerifyClientCert
	}
	return set.ServerWith(auth), nil
}

// certLoop looks for new certificates again and again, where the configuration asks for that.
func (s *Server) certLoop() {
	for s.pause(s.tls.pollTime) {
		s.reloadCerts(s.cfg.Security.ClientCertReload, s.cfg.Security.QuorumCertReload)
	}
}

// pollsCerts tells whether there is something to look for.
func (s *Server) pollsCerts() bool {
	sec := &s.cfg.Security
	return s.cfg.ClientTLS() && sec.ClientCertReload || (s.cfg.ServerTLS() || s.cfg.AdminTLS()) && sec.QuorumCertReload
}

// reloadCerts takes up stores that have changed. Connections that are there are not touched.
func (s *Server) reloadCerts(clients, peers bool) {
	e := &s.tls
	if clients && e.clients != nil {
		s.reloadSet(e.clients, "ssl", &s.cfg.Security.Client)
	}
	e.mu.Lock()
	set := e.peers
	e.mu.Unlock()
	if peers && set != nil {
		s.reloadSet(set, "ssl.quorum", &s.cfg.Security.Quorum)
	}
}

func (s *Server) reloadSet(set *certs.Set, name string, t *conf.TLS) {
	changed, err := set.Reload()
	switch {
	case err != nil:
		s.log.Error("new certificates cannot be used, those in force stay; mend the files", zap.String("keys", name), zap.Error(err))
	case changed:
		s.log.Info("new certificates loaded; they serve connections from now on", zap.String("keys", name),
			zap.String("keyStore", t.KeyStore.Location), zap.String("trustStore", t.TrustStore.Location), zap.Time("expires", set.Expiry()))
	}
}

// tlsFault explains a handshake that has failed to whoever looks after the servers.
func tlsFault(err error) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return fmt.Errorf("what came is not TLS: %w", err)
	}
	return fmt.Errorf("TLS handshake: %w", err)
}
