package server

import (
	"crypto/tls"
	"time"
)

// TLSCounts are the counters of TLS with clients.
type TLSCounts struct{ Unsuccessful, Exceeded, Outstanding, Local, Remote, AuthFailed int64 }

// TLSCounts returns the counters.
func (s *Server) TLSCounts() TLSCounts {
	m := &s.meter
	return TLSCounts{
		m.unsuccessfulHandshake.Load(), m.tlsHandshakeExceeded.Load(), m.outstandingTLSHandshakes.Load(),
		m.nonMTLSLocal.Load(), m.nonMTLSRemote.Load(), m.authFailed.Load(),
	}
}

// SetCertPoll sets the pause between two looks at the files of certificates. It comes before Serve.
func (s *Server) SetCertPoll(d time.Duration) { s.tls.pollTime = d }

// AdminTLS returns the TLS of the admin server.
func (s *Server) AdminTLS() (*tls.Config, error) { return s.adminTLSConfig() }

// SecureConnections counts the connections by TLS, as the admin commands see them.
func (s *Server) SecureConnections() (n int) {
	for _, c := range (source{s}).Connections() {
		if c.Secure {
			n++
		}
	}
	return n
}
