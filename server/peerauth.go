package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"

	"zabra/internal/certs"
	"zabra/internal/sasl"
	"zabra/wire/peer"
)

// authChain lets two servers prove who they are in several ways, one inside of the other: the first is the outermost. An empty
// chain trusts everybody.
type authChain []peer.Authenticator

// Client implements [peer.Authenticator].
func (a authChain) Client(conn net.Conn) (_ net.Conn, err error) {
	for _, auth := range a {
		if conn, err = auth.Client(conn); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

// Server implements [peer.Authenticator].
func (a authChain) Server(conn net.Conn) (_ net.Conn, err error) {
	for _, auth := range a {
		if conn, err = auth.Server(conn); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

// newAuthChain makes the chain that the configuration asks for.
func (m *member) newAuthChain() authChain {
	var chain authChain
	if m.s.cfg.ServerTLS() {
		set, _ := m.s.peerCerts() // it was opened at the start
		sec := &m.s.cfg.Security
		chain = append(chain, &peerTLS{
			set: set, log: m.s.log, dials: sec.QuorumTLS, plainToo: sec.QuorumPortUnification, limit: m.limits.dial,
			detect: time.Duration(sec.Quorum.DetectionTimeoutMs) * time.Millisecond,
		})
	}
	if m.s.cfg.Security.SASL.Quorum {
		chain = append(chain, peerLogins(m.s))
	}
	return chain
}

// peerLogins has the other servers log in. The users are those of the configuration as it is at the moment of the login.
func peerLogins(s *Server) *peer.SASL {
	cfg := &s.cfg.Security
	return &peer.SASL{
		LogsIn: cfg.SASL.QuorumLearnerRequired, Requires: cfg.SASL.QuorumServerRequired, Random: random,
		Login: func() sasl.Login { return s.live.Load().Security.SASL.QuorumLogin },
		Password: func(user string) (string, bool) {
			return s.live.Load().Security.SASL.QuorumUsers.Password(user)
		},
		Off: cfg.FIPSMode,
	}
}

// tellEncryption says at the start how servers speak to each other.
func (m *member) tellEncryption() {
	sec := &m.s.cfg.Security
	text := "Using insecure (non-TLS) quorum communication"
	if sec.QuorumTLS {
		text = "Using TLS encrypted quorum communication"
	}
	m.s.log.Info(text)
	text = "Port unification disabled"
	if sec.QuorumPortUnification {
		text = "Port unification enabled"
	}
	m.s.log.Info(text)
	if m.s.cfg.ServerTLS() && sec.Quorum.HostnameVerification && sec.FIPSMode {
		m.s.log.Info("names in the certificates of other servers are checked, which ZooKeeper leaves out in fips-mode; " +
			"if they are not those of the server lines, ssl.quorum.hostnameVerification=false turns that off")
	}
}

// tellSocket says what a port for other servers takes.
func (m *member) tellSocket(l net.Listener) {
	switch sec := &m.s.cfg.Security; {
	case sec.QuorumPortUnification:
		m.s.log.Info("Creating TLS-enabled quorum server socket", zap.Stringer("address", l.Addr()))
	case sec.QuorumTLS:
		m.s.log.Info("Creating TLS-only quorum server socket", zap.Stringer("address", l.Addr()))
	}
}

// dialedConn is a connection that was made to a host, which its certificate has to be for.
type dialedConn struct {
	*net.TCPConn
	host string
}

// withHost remembers the host of an address that was dialled.
func withHost(conn net.Conn, addr string) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	host, _, err := net.SplitHostPort(addr)
	if !ok || err != nil {
		return conn
	}
	return dialedConn{tcp, host}
}

// peerTLS is TLS between servers.
type peerTLS struct {
	set *certs.Set
	log *zap.Logger
	// dials has connections encrypted that are made here; plainToo takes plain ones beside encrypted ones.
	dials, plainToo bool
	// detect is how long a connection has to show which of the two it is; limit bounds what follows.
	detect, limit time.Duration
}

// Client implements [peer.Authenticator].
func (p *peerTLS) Client(conn net.Conn) (net.Conn, error) {
	if !p.dials {
		return conn, nil
	}
	host := ""
	if dialed, ok := conn.(dialedConn); ok {
		host = dialed.host
	}
	c := tls.Client(conn, p.set.Client(host, conn.RemoteAddr()))
	if err := c.Handshake(); err != nil {
		return nil, hinted(err, "does the other server have sslQuorum or portUnification?")
	}
	return tlsPeer{c}, nil
}

// Server implements [peer.Authenticator].
func (p *peerTLS) Server(conn net.Conn) (net.Conn, error) {
	if p.plainToo {
		encrypted, err := p.isEncrypted(conn)
		if err != nil || !encrypted {
			return conn, err
		}
	}
	c := tls.Server(conn, p.set.Server())
	if err := c.Handshake(); err != nil {
		sayWhy(conn)
		return nil, hinted(err, "a server without sslQuorum can only be taken with portUnification=true")
	}
	state := c.ConnectionState()
	p.log.Info("Accepted TLS connection from " + conn.RemoteAddr().String() + " - " + versionName(state.Version) + " - " + tls.CipherSuiteName(state.CipherSuite))
	return tlsPeer{c}, nil
}

// sayWhy lets the other server read the alert that says why it is refused: closing a socket with unread input would reset it.
func sayWhy(conn net.Conn) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(peerLingerTime))
	_, _ = io.CopyN(io.Discard, conn, peerWriteBytes)
}

// isEncrypted looks at the first byte. A server that says nothing is taken for a plain one.
func (p *peerTLS) isEncrypted(conn net.Conn) (bool, error) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false, errors.New("not a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(min(p.detect, p.limit)))
	first, err := peekFirst(raw)
	_ = conn.SetReadDeadline(time.Now().Add(p.limit))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return first == tlsRecordHandshake, err
}

// hinted adds what to look at where one side seems to speak TLS and the other not.
func hinted(err error, hint string) error {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) {
		return errors.New(tlsFault(err).Error() + "; " + hint)
	}
	return tlsFault(err)
}

// versionName names a version of TLS as Java does.
func versionName(v uint16) string {
	switch v {
	case tls.VersionTLS13:
		return "TLSv1.3"
	case tls.VersionTLS12:
		return "TLSv1.2"
	case tls.VersionTLS11:
		return "TLSv1.1"
	}
	return "TLSv1"
}

// tlsPeer is an encrypted connection between servers. It is no socket to those who would write to one directly: encrypting may
// wait for the socket, so that it is left to the connection's own goroutine.
type tlsPeer struct{ *tls.Conn }

// Close cuts the connection. Unlike that of the library it never waits for the other side to take a farewell; CloseWrite says one.
func (p tlsPeer) Close() error { return p.NetConn().Close() }
