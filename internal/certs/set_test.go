package certs

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/internal/certs/certstest"
)

// security is a configuration with the same stores for both sets.
func security(t *testing.T, key, trust []byte) *conf.Security {
	t.Helper()
	set := conf.TLS{
		KeyStore: conf.Store{Location: certstest.Write(t, "key.pem", key)}, TrustStore: conf.Store{Location: certstest.Write(t, "trust.pem", trust)},
		ClientAuth: "need", HostnameVerification: true,
	}
	quorum := set
	quorum.ClientHostnameVerification = true
	return &conf.Security{Client: set, Quorum: quorum, FIPSMode: true}
}

// shake lets two sides meet on a socket, and returns how each has found it.
func shake(t *testing.T, server *tls.Config, client func(net.Conn) *tls.Config) (state tls.ConnectionState, serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer nc.Close()
	in, err := l.Accept()
	require.NoError(t, err)
	defer in.Close()
	for _, c := range []net.Conn{nc, in} {
		require.NoError(t, c.SetDeadline(time.Now().Add(30*time.Second)))
	}
	done := make(chan error, 1)
	go func() {
		c := tls.Client(nc, client(nc))
		err := c.Handshake()
		if err == nil { // a refusal of a client's certificate is told behind its handshake
			_, err = c.Read(make([]byte, 1))
		}
		done <- err
	}()
	c := tls.Server(in, server)
	if serverErr = c.Handshake(); serverErr == nil {
		_, err = c.Write([]byte{1})
		require.NoError(t, err)
	} else {
		in.(*net.TCPConn).CloseWrite()
	}
	return c.ConnectionState(), serverErr, <-done
}

func TestHandshakes(t *testing.T) {
	ca, other := certstest.NewCA(t, "ca"), certstest.NewCA(t, "other")
	good, foreign := ca.Issue(t, pkix.Name{CommonName: "good"}, "127.0.0.1"), other.Issue(t, pkix.Name{CommonName: "foreign"}, "127.0.0.1")
	elsewhere := ca.Issue(t, pkix.Name{CommonName: "elsewhere"}, "192.0.2.1", "elsewhere.example")
	own := func(p *certstest.Pair) *conf.Security { return security(t, p.PEM(t), ca.CertPEM()) }
	tests := []struct {
		name           string
		server, client *conf.Security
		change         func(server, client *conf.TLS)
		want           string // of one of the two; "" for success
	}{
		{"both good", own(good), own(good), nil, ""},
		{"server of another authority", own(foreign), own(good), nil, "signed by unknown authority"},
		{"client of another authority", own(good), own(foreign), nil, "signed by unknown authority"},
		{"client of another authority, not looked at", own(good), own(foreign), func(s, _ *conf.TLS) { s.ClientAuth = "none" }, ""},
		{"client of another authority, wanted", own(good), own(foreign), func(s, _ *conf.TLS) { s.ClientAuth = "want" }, "signed by unknown authority"},
		{"server elsewhere", own(elsewhere), own(good), nil, "the certificate is for elsewhere.example, 192.0.2.1, not for 127.0.0.1"},
		{"client elsewhere", own(good), own(elsewhere), nil, "the certificate is for elsewhere.example, 192.0.2.1, not for 127.0.0.1"},
		{"client elsewhere, not looked at", own(good), own(elsewhere), func(s, _ *conf.TLS) { s.ClientHostnameVerification = false }, ""},
		{"both elsewhere, names off", own(elsewhere), own(elsewhere), func(s, c *conf.TLS) { s.HostnameVerification, c.HostnameVerification = false, false }, ""},
		{"versions apart", own(good), own(good), func(s, c *conf.TLS) { s.Protocol, c.EnabledProtocols = "TLSv1.2", []string{"TLSv1.3"} }, "protocol version not supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(&tt.server.Quorum, &tt.client.Quorum)
			}
			s, err := OpenQuorum(tt.server)
			require.NoError(t, err)
			c, err := OpenQuorum(tt.client)
			require.NoError(t, err)
			state, serverErr, clientErr := shake(t, s.Server(), func(nc net.Conn) *tls.Config { return c.Client("127.0.0.1", nc.RemoteAddr()) })
			if tt.want == "" {
				require.NoError(t, serverErr)
				require.NoError(t, clientErr)
				require.EqualValues(t, tls.VersionTLS12, state.Version, "fips-mode")
				return
			}
			require.Error(t, serverErr)
			require.Error(t, clientErr)
			require.Contains(t, serverErr.Error()+clientErr.Error(), tt.want)
		})
	}
}

// TestVersionOfClients: clients get the newest version, servers only without fips-mode.
func TestVersionOfClients(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	p := ca.Issue(t, pkix.Name{CommonName: "a"}, "127.0.0.1")
	sec := security(t, p.PEM(t), ca.CertPEM())
	sec.FIPSMode = false
	clients, err := OpenClient(sec)
	require.NoError(t, err)
	servers, err := OpenQuorum(sec)
	require.NoError(t, err)
	for _, set := range []*Set{clients, servers} {
		state, serverErr, clientErr := shake(t, set.Server(), func(net.Conn) *tls.Config {
			c := ca.Client(p)
			c.ServerName = "127.0.0.1"
			return c
		})
		require.NoError(t, serverErr)
		require.NoError(t, clientErr)
		require.EqualValues(t, tls.VersionTLS13, state.Version)
	}
	_, serverErr, clientErr := shake(t, clients.Server(), func(net.Conn) *tls.Config {
		c := ca.Client(nil)
		c.ServerName = "127.0.0.1"
		return c
	})
	require.ErrorContains(t, serverErr, "client didn't provide a certificate")
	require.ErrorContains(t, clientErr, "certificate required")
	_, serverErr, clientErr = shake(t, clients.ServerWith(tls.NoClientCert), func(net.Conn) *tls.Config {
		c := ca.Client(nil)
		c.ServerName = "127.0.0.1"
		return c
	})
	require.NoError(t, serverErr)
	require.NoError(t, clientErr)
}

func TestOpenFaults(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	p := ca.Issue(t, pkix.Name{CommonName: "a"})
	_, err := OpenClient(&conf.Security{})
	require.ErrorContains(t, err, "Keystore is required for SSL server: ssl.keyStore.location")
	_, err = OpenQuorum(&conf.Security{Quorum: conf.TLS{Protocol: "x"}})
	require.ErrorContains(t, err, "Keystore is required for SSL server: ssl.quorum.keyStore.location")
	require.ErrorContains(t, err, "ssl.quorum.protocol", "all faults together")

	sec := security(t, p.PEM(t), ca.CertPEM())
	sec.Client.KeyStore.Location, sec.Client.TrustStore.Location = "/none/k.pem", "/none/t.pem"
	_, err = OpenClient(sec)
	require.ErrorContains(t, err, "ssl.keyStore.location: open /none/k.pem")
	require.ErrorContains(t, err, "ssl.trustStore.location: open /none/t.pem")
	_, err = OpenClient(security(t, ca.CertPEM(), ca.CertPEM()))
	require.ErrorContains(t, err, "key.pem: there is no key in it that can be opened")
	_, err = OpenClient(security(t, p.PEM(t), []byte("nothing")))
	require.ErrorContains(t, err, "trust.pem: there is no certificate in PEM")

	sec = security(t, p.PEM(t), nil)
	sec.Client.TrustStore = conf.Store{}
	s, err := OpenClient(sec)
	require.NoError(t, err)
	require.Equal(t, []string{"ssl.trustStore.location not specified: the authorities of this system are trusted"}, s.Remarks())
	require.Equal(t, p.Cert.NotAfter, s.Expiry())
}

// TestReload: new files count when they are good, and complaints are not repeated.
func TestReload(t *testing.T) {
	ca := certstest.NewCA(t, "ca")
	a, b := ca.Issue(t, pkix.Name{CommonName: "a"}, "127.0.0.1"), ca.Issue(t, pkix.Name{CommonName: "b"}, "127.0.0.1")
	sec := security(t, a.PEM(t), ca.CertPEM())
	sec.Client.ClientAuth = "none"
	s, err := OpenClient(sec)
	require.NoError(t, err)
	config := s.Server()
	served := func() string {
		var name string
		_, serverErr, clientErr := shake(t, config, func(net.Conn) *tls.Config {
			c := ca.Client(nil)
			c.ServerName = "127.0.0.1"
			c.VerifyConnection = func(cs tls.ConnectionState) error {
				name = cs.PeerCertificates[0].Subject.CommonName
				return nil
			}
			return c
		})
		require.NoError(t, serverErr)
		require.NoError(t, clientErr)
		return name
	}
	reload := func(want bool) {
		t.Helper()
		changed, err := s.Reload()
		require.NoError(t, err)
		require.Equal(t, want, changed)
	}
	key := sec.Client.KeyStore.Location
	reload(false)
	require.Equal(t, "a", served())
	certstest.Overwrite(t, key, b.PEM(t))
	reload(true)
	reload(false)
	require.Equal(t, "b", served(), "a configuration that was handed out goes with the files")

	// Half of a change, nothing at all, and no file: told once each, and the old ones serve.
	half := append(a.CertPEM(), b.PEM(t)[len(b.CertPEM()):]...)
	for _, spoil := range []func(){
		func() { certstest.Overwrite(t, key, half) },
		func() { certstest.Overwrite(t, key, nil) },
		func() { require.NoError(t, os.Remove(key)) },
	} {
		spoil()
		changed, err := s.Reload()
		require.False(t, changed)
		require.ErrorContains(t, err, "ssl.keyStore.location: ")
		reload(false)
		require.Equal(t, "b", served())
	}
	certstest.Overwrite(t, key, a.PEM(t))
	reload(true)
	require.Equal(t, "a", served())
	certstest.Overwrite(t, key, half)
	_, err = s.Reload()
	require.Error(t, err, "the same fault again, after a good one")

	// As Kubernetes swaps files: the name that is configured is a link through a link, which is what changes.
	dir := t.TempDir()
	for name, p := range map[string]*certstest.Pair{"..1": a, "..2": b} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "key.pem"), p.PEM(t), 0o600))
	}
	require.NoError(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/key.pem", filepath.Join(dir, "key.pem")))
	sec.Client.KeyStore.Location = filepath.Join(dir, "key.pem")
	s, err = OpenClient(sec)
	require.NoError(t, err)
	config = s.Server()
	require.Equal(t, "a", served())
	require.NoError(t, os.Symlink("..2", filepath.Join(dir, "..new")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")))
	reload(true)
	require.Equal(t, "b", served())
}
