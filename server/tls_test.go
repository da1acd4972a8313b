package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"zabra/conf"
	"zabra/internal/certs/certstest"
	"zabra/server"
	"zabra/server/client"
	"zabra/wire"
)

// tlsServer is a server with a secure port, and the authority of its certificate.
type tlsServer struct {
	*shell
	ca  *certstest.CA
	key string // the key store
}

// secureConfig is a configuration with a secure port, for clients of an authority.
func secureConfig(t testing.TB, ca *certstest.CA, changes ...func(*conf.Config)) *conf.Config {
	own := ca.Issue(t, pkix.Name{CommonName: "server"}, "127.0.0.1", "localhost")
	return shellConfig(t, append([]func(*conf.Config){func(cfg *conf.Config) {
		s := &cfg.Security
		s.SecureClientPort, s.SecureClientPortAddress = 0, "127.0.0.1"
		s.Client.KeyStore = conf.Store{Location: certstest.Write(t, "key.pem", own.PEM(t))}
		s.Client.TrustStore = conf.Store{Location: certstest.Write(t, "trust.pem", ca.CertPEM())}
	}}, changes...)...)
}

func startSecure(t testing.TB, changes ...func(*conf.Config)) *tlsServer {
	t.Helper()
	ca := certstest.NewCA(t, "authority")
	cfg := secureConfig(t, ca, changes...)
	return &tlsServer{shell: startShell(t, cfg), ca: ca, key: cfg.Security.Client.KeyStore.Location}
}

// client is a client's TLS, with a certificate of its own for name, or without one for "".
func (s *tlsServer) client(name string) *tls.Config {
	if name == "" {
		return s.ca.Client(nil)
	}
	return s.ca.Client(s.ca.Issue(s.t, pkix.Name{CommonName: name, Organization: []string{"Zabra, Tests"}}))
}

// open opens a session.
func (s *tlsServer) open(addr net.Addr, config *tls.Config) *client.Client {
	s.t.Helper()
	c, err := client.Dial(context.Background(), addr.String(), client.Options{TLS: config, Timeout: 20 * time.Second})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Abandon)
	return c
}

// connect makes an encrypted connection.
func (s *tlsServer) connect(addr net.Addr, config *tls.Config) *tls.Conn {
	s.t.Helper()
	d := tls.Dialer{Config: config}
	c, err := d.Dial("tcp", addr.String())
	require.NoError(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	require.NoError(s.t, c.SetDeadline(time.Now().Add(shellWaitMax)))
	return c.(*tls.Conn)
}

// TestSecurePort: sessions, watches, large and many answers over both versions of TLS, beside the plain port.
func TestSecurePort(t *testing.T) {
	s := startSecure(t)
	plain, err := client.Dial(t.Context(), s.Addr().String(), client.Options{})
	require.NoError(t, err)
	t.Cleanup(plain.Abandon)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		config := s.client("somebody")
		config.MaxVersion = version
		c := s.open(s.SecureAddr(), config)
		path := fmt.Sprintf("/v%x", version)
		_, err := c.Create(t.Context(), path, nil, wire.OpenACL, 0)
		require.NoError(t, err)
		_, _, err = c.GetData(t.Context(), path, true)
		require.NoError(t, err)
		data := bytes.Repeat([]byte("0123456789abcdef"), 60_000)
		_, err = plain.SetData(t.Context(), path, data, -1)
		require.NoError(t, err)
		require.Equal(t, wire.EventNodeDataChanged, (<-c.Events()).Type)
		got, _, err := c.GetData(t.Context(), path, false)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
		_, err = c.SetData(t.Context(), path, data[1:], -1)
		require.NoError(t, err)
		got, _, err = plain.GetData(t.Context(), path, false)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data[1:], got))

		var many sync.WaitGroup
		for i := range 200 {
			many.Go(func() {
				name := fmt.Sprintf("%s/%d", path, i)
				_, err := c.Create(t.Context(), name, []byte(name), wire.OpenACL, 0)
				require.NoError(t, err)
				got, _, err := c.GetData(t.Context(), name, false)
				require.NoError(t, err)
				require.Equal(t, name, string(got))
			})
		}
		many.Wait()
		require.Equal(t, 1, s.SecureConnections())
		require.NoError(t, c.Close(t.Context()))
		until(t, "the connection is gone", func() bool { return s.SecureConnections() == 0 })
	}
	require.Contains(t, s.word("conf"), fmt.Sprintf("secureClientPort=%d\n", s.SecureAddr().(*net.TCPAddr).Port))
	require.Equal(t, server.TLSCounts{Local: 2}, s.TLSCounts(), "the plain client and the word")
}

// TestSecureOutput: a client that does not read for a while gets all of it, in order, and then an orderly end.
func TestSecureOutput(t *testing.T) {
	s := startSecure(t)
	c := s.connect(s.SecureAddr(), s.client("somebody"))
	send := func(b []byte) {
		_, err := c.Write(b)
		require.NoError(t, err)
	}
	send(connectFrame(0, nil))
	head := make([]byte, 4)
	next := func() []byte {
		_, err := io.ReadFull(c, head)
		require.NoError(t, err)
		body := make([]byte, int(head[2])<<8|int(head[3])|int(head[1])<<16)
		_, err = io.ReadFull(c, body)
		require.NoError(t, err)
		return body
	}
	next()
	const gets = 200
	data := bytes.Repeat([]byte("x"), 100_000)
	send(createFrame(1, "/big", data))
	for i := range gets {
		send(getFrame(int32(i+2), "/big"))
	}
	send(requestFrame(gets+2, wire.OpCloseSession, nil))
	for i := range gets + 2 {
		body := next()
		require.Equal(t, byte(i+1), body[3])
		if i > 0 && i <= gets {
			require.Greater(t, len(body), len(data))
		}
	}
	_, err := c.Read(head)
	require.ErrorIs(t, err, io.EOF, "with a farewell; without one it would be an unexpected end")
}

// TestSecureFramesAreRecords: clients that wait for the socket before each frame, as the C client does, would miss a frame that came
// in one record with another.
func TestSecureFramesAreRecords(t *testing.T) {
	s := startSecure(t)
	c := s.connect(s.SecureAddr(), s.client("somebody"))
	_, err := c.Write(connectFrame(0, nil))
	require.NoError(t, err)
	record := make([]byte, 1<<16)
	_, err = c.Read(record) // gives no more than one record
	require.NoError(t, err)
	const gets = 50
	var requests []byte
	for i := range gets {
		requests = append(requests, getFrame(int32(i+1), "/")...)
	}
	_, err = c.Write(requests)
	require.NoError(t, err)
	for i := range gets {
		n, err := c.Read(record)
		require.NoError(t, err)
		require.Equal(t, n-4, int(binary.BigEndian.Uint32(record)), "one frame")
		require.Equal(t, uint32(i+1), binary.BigEndian.Uint32(record[4:]))
	}
}

// TestSecureWords: four-letter words come over TLS, too, and end cleanly.
func TestSecureWords(t *testing.T) {
	s := startSecure(t, func(cfg *conf.Config) { cfg.Security.Client.ClientAuth = "none" })
	for _, word := range []string{"ruok", "ruok\r\n"} {
		c := s.connect(s.SecureAddr(), s.client(""))
		_, err := io.WriteString(c, word)
		require.NoError(t, err)
		answer, err := io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, "imok", string(answer))
	}
	require.EqualValues(t, 2, s.TLSCounts().Local, "connections without a certificate")
}

// TestSecureRefusals: who is refused hears why, is counted, and told of in one line.
func TestSecureRefusals(t *testing.T) {
	stranger := certstest.NewCA(t, "stranger")
	tests := []struct {
		name   string
		change func(*conf.Config)
		config func(s *tlsServer) *tls.Config
		want   string // what the client hears
		line   string // in the log
	}{
		{"no certificate", nil, func(s *tlsServer) *tls.Config { return s.client("") }, "certificate required", "client didn't provide a certificate"},
		{"other authority", nil, func(s *tlsServer) *tls.Config {
			c := s.client("")
			own := stranger.Issue(t, pkix.Name{CommonName: "x"})
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: [][]byte{own.Cert.Raw}, PrivateKey: own.Key}, nil
			}
			return c
		}, "unknown certificate authority", "signed by unknown authority"},
		{"from elsewhere", func(cfg *conf.Config) { cfg.Security.Client.ClientHostnameVerification = true },
			func(s *tlsServer) *tls.Config { return s.client("elsewhere") }, "bad certificate", "not for 127.0.0.1"},
		{"too old", nil, func(s *tlsServer) *tls.Config {
			c := s.client("x")
			c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
			return c
		}, "protocol version not supported", "unsupported versions"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := startSecure(t, append([]func(*conf.Config){}, func(cfg *conf.Config) {
				if tt.change != nil {
					tt.change(cfg)
				}
			})...)
			ctx, cancel := context.WithTimeout(t.Context(), shellWaitMax)
			defer cancel()
			_, err := client.Dial(ctx, s.SecureAddr().String(), client.Options{TLS: tt.config(s)})
			require.ErrorContains(t, err, tt.want)
			until(t, "it is counted", func() bool { return s.TLSCounts().Unsuccessful == 1 })
			require.EqualValues(t, 1, s.TLSCounts().AuthFailed)
			until(t, "it is told", func() bool { return s.logs.FilterMessageSnippet(tt.line).Len() == 1 })
		})
	}

	s := startSecure(t)
	c, err := net.Dial("tcp", s.SecureAddr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(shellWaitMax)))
	_, err = io.WriteString(c, "ruok\r\n")
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, c)
	require.NoError(t, err, "an orderly end")
	until(t, "it is told", func() bool { return s.logs.FilterMessageSnippet("plain clients belong on clientPort").Len() == 1 })

	// A probe that connects and goes away is no failure.
	c, err = net.Dial("tcp", s.SecureAddr().String())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	until(t, "it is gone", func() bool { return s.logs.FilterMessageSnippet("connection ended in the TLS handshake").Len() == 1 })
	require.EqualValues(t, 1, s.TLSCounts().Unsuccessful)
}

// byByte hands on what is written byte by byte.
type byByte struct{ net.Conn }

func (d byByte) Write(b []byte) (n int, err error) {
	for i := range b {
		if _, err = d.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// TestSlowHandshakes: bytes may come one by one, and those who say nothing keep nobody out but up to the limit.
func TestSlowHandshakes(t *testing.T) {
	s := startSecure(t, func(cfg *conf.Config) { cfg.Security.HandshakesMax = 2 })
	nc, err := net.Dial("tcp", s.SecureAddr().String())
	require.NoError(t, err)
	config := s.client("slow")
	config.ServerName = "127.0.0.1"
	c, err := client.Dial(t.Context(), "", client.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		return tls.Client(byByte{nc}, config), nil
	}})
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	require.NoError(t, c.Ping(t.Context()))

	var silent []net.Conn
	for range 2 {
		nc, err := net.Dial("tcp", s.SecureAddr().String())
		require.NoError(t, err)
		silent = append(silent, nc)
		until(t, "it is under way", func() bool { return s.TLSCounts().Outstanding == int64(len(silent)) })
	}
	_, err = (&tls.Dialer{Config: config}).Dial("tcp", s.SecureAddr().String())
	require.Error(t, err)
	require.EqualValues(t, 1, s.TLSCounts().Exceeded)
	require.NoError(t, c.Ping(t.Context()), "who is in stays in")
	require.NoError(t, silent[0].Close())
	until(t, "there is room", func() bool { return s.TLSCounts().Outstanding == 1 })
	s.open(s.SecureAddr(), s.client("next"))
	s.shutdown()
}

// TestClientPortUnification: one port for plain and encrypted clients.
func TestClientPortUnification(t *testing.T) {
	s := startSecure(t, func(cfg *conf.Config) {
		cfg.Security.SecureClientPort, cfg.Security.ClientPortUnification = conf.Unset, true
		cfg.Security.SecureClientPortAddress = ""
		cfg.Security.Client.DetectionTimeoutMs = 50
	})
	require.Nil(t, s.SecureAddr())
	late := s.dial()
	secure := s.open(s.Addr(), s.client("somebody"))
	_, err := secure.Create(t.Context(), "/a", []byte("secret"), wire.OpenACL, 0)
	require.NoError(t, err)
	plain, _ := s.session()
	plain.send(getFrame(1, "/a"))
	plain.reply(1, wire.CodeOK)
	require.Equal(t, 1, s.SecureConnections())
	require.Equal(t, "imok", s.word("ruok"))
	c := s.connect(s.Addr(), s.client("somebody"))
	_, err = io.WriteString(c, "ruok")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "imok", string(answer))

	// Who says nothing for a while is taken for a plain client.
	until(t, "it is counted as one", func() bool { return s.TLSCounts().Local == 3 })
	late.send([]byte("ruok"))
	require.Equal(t, "imok", late.rest())
	s.shutdown()
}

// TestLimitsOfBothPorts: the limits count the clients of both ports together.
func TestLimitsOfBothPorts(t *testing.T) {
	s := startSecure(t, func(cfg *conf.Config) { cfg.MaxClientCnxns = 2 })
	s.session()
	s.open(s.SecureAddr(), s.client("somebody"))
	s.refused()
	_, err := (&tls.Dialer{Config: s.client("another")}).Dial("tcp", s.SecureAddr().String())
	require.Error(t, err)
}

// TestX509: a client is who its certificate says.
func TestX509(t *testing.T) {
	s := startSecure(t, func(cfg *conf.Config) {
		cfg.Security.Client.ClientAuth = "want"
		cfg.Security.X509SuperUser = `CN=root,O=Zabra\, Tests`
	})
	const alice = `CN=alice,O=Zabra\, Tests`
	a, b, root, nobody := s.open(s.SecureAddr(), s.client("alice")), s.open(s.SecureAddr(), s.client("bob")), s.open(s.SecureAddr(), s.client("root")), s.open(s.SecureAddr(), s.client(""))
	who, err := a.WhoAmI(t.Context())
	require.NoError(t, err)
	require.Equal(t, []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "x509", User: alice}}, who)
	who, err = nobody.WhoAmI(t.Context())
	require.NoError(t, err)
	require.Equal(t, []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}}, who)

	_, err = a.Create(t.Context(), "/mine", []byte("x"), []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}, 0)
	require.NoError(t, err)
	acl, _, err := a.GetACL(t.Context(), "/mine")
	require.NoError(t, err)
	require.Equal(t, []wire.ACL{{Perms: wire.PermAll, Scheme: "x509", ID: alice}}, acl)
	for _, c := range []*client.Client{b, nobody} {
		_, _, err = c.GetData(t.Context(), "/mine", false)
		require.ErrorIs(t, err, wire.CodeNoAuth)
	}
	_, _, err = root.GetData(t.Context(), "/mine", false)
	require.NoError(t, err)
	_, err = nobody.Create(t.Context(), "/theirs", nil, []wire.ACL{{Perms: wire.PermAll, Scheme: "x509", ID: alice}}, 0)
	require.NoError(t, err)
	_, err = nobody.Create(t.Context(), "/wrong", nil, []wire.ACL{{Perms: wire.PermAll, Scheme: "x509", ID: "alice"}}, 0)
	require.ErrorIs(t, err, wire.CodeInvalidACL)

	require.NoError(t, a.AddAuth(t.Context(), "x509", nil), "proved already")
	require.NoError(t, a.AddAuth(t.Context(), "digest", []byte("u:p")))
	who, err = a.WhoAmI(t.Context())
	require.NoError(t, err)
	require.Len(t, who, 3)
	require.ErrorIs(t, nobody.AddAuth(t.Context(), "x509", []byte(alice)), wire.CodeAuthFailed)

	plain := startShell(t, shellConfig(t))
	c, err := client.Dial(t.Context(), plain.Addr().String(), client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	_, err = c.Create(t.Context(), "/x", nil, []wire.ACL{{Perms: wire.PermAll, Scheme: "x509", ID: alice}}, 0)
	require.ErrorIs(t, err, wire.CodeInvalidACL, "a server without TLS has no such scheme")
}

// TestCertificateRotation: new certificates are taken up under load, at SIGHUP's way, and no session is lost.
func TestCertificateRotation(t *testing.T) {
	s := startSecure(t)
	var clients []*client.Client
	var sets atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for i := range 8 {
		c := s.open(s.SecureAddr(), s.client("somebody"))
		clients = append(clients, c)
		path := fmt.Sprint("/", i)
		_, err := c.Create(t.Context(), path, nil, wire.OpenACL, wire.FlagEphemeral)
		require.NoError(t, err)
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.SetData(context.Background(), path, []byte("x"), -1); err != nil {
					t.Error(err)
					return
				}
				sets.Add(1)
			}
		})
	}
	for i := range 5 {
		name := fmt.Sprint("server-", i)
		certstest.Overwrite(t, s.key, s.ca.Issue(t, pkix.Name{CommonName: name}, "127.0.0.1").PEM(t))
		before := sets.Load()
		s.Reconfigure(s.cfg)
		require.Equal(t, i+1, s.logs.FilterMessageSnippet("new certificates loaded").Len())
		c := s.connect(s.SecureAddr(), s.client("somebody"))
		require.Equal(t, name, c.ConnectionState().PeerCertificates[0].Subject.CommonName)
		until(t, "the load goes on", func() bool { return sets.Load() > before+100 })
	}
	require.NoError(t, os.WriteFile(s.key, []byte("rubbish"), 0o600))
	s.Reconfigure(s.cfg)
	require.Equal(t, 1, s.logs.FilterMessageSnippet("new certificates cannot be used, those in force stay").Len())
	s.open(s.SecureAddr(), s.client("somebody"))
	close(stop)
	load.Wait()
	for _, c := range clients {
		require.NoError(t, c.Err())
		require.NoError(t, c.Ping(t.Context()))
	}
}

// TestCertificatePolling: client.certReload finds new files by itself, of a trust store, too.
func TestCertificatePolling(t *testing.T) {
	ca, next := certstest.NewCA(t, "authority"), certstest.NewCA(t, "next")
	cfg := secureConfig(t, ca, func(cfg *conf.Config) { cfg.Security.ClientCertReload = true })
	srv, err := server.New(cfg, server.Options{Log: zap.NewNop()})
	require.NoError(t, err)
	srv.SetCertPoll(time.Millisecond)
	served := make(chan error, 1)
	go func() { served <- srv.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		<-served
	})
	config := ca.Client(next.Issue(t, pkix.Name{CommonName: "x"}))
	dial := func() error {
		c, err := client.Dial(t.Context(), srv.SecureAddr().String(), client.Options{TLS: config})
		if err == nil {
			c.Abandon()
		}
		return err
	}
	require.Error(t, dial())
	certstest.Overwrite(t, cfg.Security.Client.TrustStore.Location, append(ca.CertPEM(), next.CertPEM()...))
	until(t, "the new authority is trusted", func() bool { return dial() == nil })
}

// TestTLSFaultsAtStart: a server that could not encrypt does not start, and says which file is to blame.
func TestTLSFaultsAtStart(t *testing.T) {
	ca := certstest.NewCA(t, "authority")
	for want, change := range map[string]func(*conf.Config){
		"Keystore is required for SSL server: ssl.keyStore.location": func(cfg *conf.Config) { cfg.Security.Client.KeyStore = conf.Store{} },
		"ssl.keyStore.location: open /none/key.jks":                  func(cfg *conf.Config) { cfg.Security.Client.KeyStore.Location = "/none/key.jks" },
		"ssl.trustStore.passwordPath: open /none/password":           func(cfg *conf.Config) { cfg.Security.Client.TrustStore.PasswordPath = "/none/password" },
	} {
		cfg := secureConfig(t, ca, change)
		_, err := server.New(cfg, server.Options{})
		var e *server.StartError
		require.ErrorAs(t, err, &e)
		require.Equal(t, server.StageConfig, e.Stage)
		require.ErrorContains(t, err, want)
		entries, err := os.ReadDir(cfg.DataDir)
		require.NoError(t, err)
		require.Empty(t, entries, "the data directory is not touched")
	}
}

// TestAdminTLS: the admin server takes the stores of ssl.quorum, and asks for certificates by a key of its own.
func TestAdminTLS(t *testing.T) {
	ca := certstest.NewCA(t, "authority")
	own := ca.Issue(t, pkix.Name{CommonName: "server"}, "127.0.0.1")
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.Security.Quorum.KeyStore.Location = certstest.Write(t, "key.pem", own.PEM(t))
		cfg.Security.Quorum.TrustStore.Location = certstest.Write(t, "trust.pem", ca.CertPEM())
		cfg.Admin.NeedClientAuth = true
	}))
	config, err := s.AdminTLS()
	require.NoError(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(c, "hello")
				_ = c.Close()
			}()
		}
	}()
	read := func(p *certstest.Pair) (string, error) {
		c, err := (&tls.Dialer{Config: ca.Client(p)}).Dial("tcp", l.Addr().String())
		if err != nil {
			return "", err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		return string(b), err
	}
	text, err := read(ca.Issue(t, pkix.Name{CommonName: "operator"}))
	require.NoError(t, err)
	require.Equal(t, "hello", text)
	_, err = read(nil)
	require.Error(t, err)

	_, err = startShell(t, shellConfig(t)).AdminTLS()
	require.ErrorContains(t, err, "Keystore is required for SSL server: ssl.quorum.keyStore.location")
}
