package server

import (
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/certs"
	"zabra/internal/certs/certstest"
	"zabra/wire/peer"
)

// newPeerTLS is the TLS of a server whose certificate is good for the hosts.
func newPeerTLS(t *testing.T, ca *certstest.CA, hosts ...string) *peerTLS {
	t.Helper()
	own := ca.Issue(t, pkix.Name{CommonName: "server"}, hosts...)
	set, err := certs.OpenQuorum(&conf.Security{FIPSMode: true, Quorum: conf.TLS{
		KeyStore:   conf.Store{Location: certstest.Write(t, "key.pem", own.PEM(t))},
		TrustStore: conf.Store{Location: certstest.Write(t, "trust.pem", ca.CertPEM())},
		ClientAuth: "need", HostnameVerification: true, ClientHostnameVerification: true,
	}})
	require.NoError(t, err)
	return &peerTLS{set: set, log: zap.NewNop(), dials: true, detect: memberWaitMax, limit: memberWaitMax}
}

// sockets returns the two ends of a connection.
func sockets(t *testing.T) (dialed, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialed, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { dialed.Close() })
	accepted, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { accepted.Close() })
	return dialed, accepted
}

// meet connects two servers by what they have, says a word each way, and returns who has failed.
func meet(t *testing.T, client, server peer.Authenticator, dialed string) (clientErr, serverErr error) {
	t.Helper()
	nc, in := sockets(t)
	for _, c := range []net.Conn{nc, in} {
		require.NoError(t, c.SetDeadline(time.Now().Add(memberWaitMax)))
	}
	done := make(chan error, 1)
	go func() {
		c, err := server.Server(in)
		if err == nil {
			_, err = io.CopyN(c, c, 5)
		}
		in.(*net.TCPConn).CloseWrite()
		done <- err
	}()
	c, err := client.Client(withHost(nc, net.JoinHostPort(dialed, "1")))
	if err == nil {
		_, err = io.WriteString(c, "hello")
	}
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 5))
	}
	nc.(*net.TCPConn).CloseWrite()
	return err, <-done
}

func TestPeerTLS(t *testing.T) {
	ca, other := certstest.NewCA(t, "ca"), certstest.NewCA(t, "other")
	with := func(p *peerTLS, change func(*peerTLS)) *peerTLS {
		change(p)
		return p
	}
	here := func() *peerTLS { return newPeerTLS(t, ca, "127.0.0.1", "zk1.example") }
	takesBoth := with(here(), func(p *peerTLS) { p.plainToo = true })
	dialsPlain := with(here(), func(p *peerTLS) { p.plainToo, p.dials = true, false })
	tests := []struct {
		name           string
		client, server peer.Authenticator
		dialed         string
		want           string // in one of the errors; "" for success
	}{
		{"by address", here(), here(), "127.0.0.1", ""},
		{"by name", here(), newPeerTLS(t, ca, "zk1.example"), "zk1.example", ""},
		{"another name", here(), newPeerTLS(t, ca, "zk1.example"), "zk2.example", "the certificate is for zk1.example, not for zk2.example"},
		{"client elsewhere", newPeerTLS(t, ca, "192.0.2.1"), here(), "127.0.0.1", "not for 127.0.0.1"},
		{"another authority", newPeerTLS(t, other, "127.0.0.1"), here(), "127.0.0.1", "signed by unknown authority"},
		{"plain to both", authChain{}, takesBoth, "127.0.0.1", ""},
		{"TLS to both", here(), takesBoth, "127.0.0.1", ""},
		{"first round to plain", dialsPlain, authChain{}, "127.0.0.1", ""},
		{"first round to first round", dialsPlain, dialsPlain, "127.0.0.1", ""},
		{"second round to first", takesBoth, dialsPlain, "127.0.0.1", ""},
		{"first round to second", dialsPlain, takesBoth, "127.0.0.1", ""},
		{"plain to TLS", authChain{}, here(), "127.0.0.1", "what came is not TLS: tls: first record does not look like a TLS handshake; a server without sslQuorum can only be taken with portUnification=true"},
		{"chain", authChain{here(), turn{}}, authChain{here(), turn{}}, "127.0.0.1", ""},
		{"chain that breaks", authChain{here(), turn{}}, authChain{here(), turn{errors.New("not you")}}, "127.0.0.1", "not you"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clientErr, serverErr := meet(t, tt.client, tt.server, tt.dialed)
			if tt.want == "" {
				require.NoError(t, clientErr)
				require.NoError(t, serverErr)
				return
			}
			require.Error(t, serverErr)
			require.NotErrorIs(t, clientErr, syscall.ECONNRESET, "who is refused hears why")
			require.ErrorContains(t, errors.Join(clientErr, serverErr), tt.want)
		})
	}
}

// turn is an authenticator inside of another: it says a byte.
type turn struct{ err error }

func (a turn) Client(conn net.Conn) (net.Conn, error) {
	_, err := conn.Write([]byte{7})
	return conn, err
}

func (a turn) Server(conn net.Conn) (net.Conn, error) {
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return nil, err
	}
	return conn, a.err
}

// TestPeerThatIsSilent: where plain servers are taken, one that says nothing is a plain one.
func TestPeerThatIsSilent(t *testing.T) {
	p := newPeerTLS(t, certstest.NewCA(t, "ca"), "127.0.0.1")
	p.plainToo, p.detect = true, time.Millisecond
	nc, in := sockets(t)
	got, err := p.Server(in)
	require.NoError(t, err)
	require.Equal(t, in, got)
	_, err = nc.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(got, make([]byte, 1))
	require.NoError(t, err, "the deadline of the detection is over")
}

// TestTLSPeerIsNoSocket: nobody can get past the encryption, and closing does not wait.
func TestTLSPeerIsNoSocket(t *testing.T) {
	var c net.Conn = tlsPeer{}
	_, socket := c.(syscall.Conn)
	require.False(t, socket)
	_, half := c.(interface{ CloseWrite() error })
	require.True(t, half)
	var plain net.Conn = dialedConn{}
	_, socket = plain.(syscall.Conn)
	require.True(t, socket)
	_, half = plain.(interface{ CloseWrite() error })
	require.True(t, half, "a plain connection stays a socket that can be closed by halves")
}
