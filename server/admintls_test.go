package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/server"
)

// selfMade is a certificate of its own authority, for a server on the loopback interface and for clients.
func selfMade(t *testing.T, serial int64) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool
}

// adminServer is a server of which a test sets the keys of the admin server.
type adminServer struct {
	*server.Server
	t    *testing.T
	logs *observer.ObservedLogs
}

func startAdmin(t *testing.T, change func(*conf.Admin), keys func() (*tls.Config, error)) *adminServer {
	t.Helper()
	cfg := shellConfig(t)
	core, logs := observer.New(zapcore.DebugLevel)
	s, err := server.New(cfg, server.Options{Log: zap.New(core)})
	require.NoError(t, err)
	adminOnFreePort(cfg)
	change(&cfg.Admin)
	s.ListenAdmin(cfg.Admin, keys)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, server.ErrServerClosed)
	})
	return &adminServer{s, t, logs}
}

// get asks for ruok, on a connection of its own.
func (s *adminServer) get(scheme string, cfg *tls.Config) (*http.Response, error) {
	client := &http.Client{Timeout: shellWaitMax, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: cfg}}
	ctx, cancel := context.WithTimeout(s.t.Context(), shellWaitMax)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+s.AdminAddr().String()+"/commands/ruok", nil)
	require.NoError(s.t, err)
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp, nil
}

func constant(cfg *tls.Config) func() (*tls.Config, error) {
	return func() (*tls.Config, error) { return cfg, nil }
}

// One port for both: the first byte tells, and who comes in the clear is counted.
func TestAdminPortForBoth(t *testing.T) {
	cert, pool := selfMade(t, 1)
	s := startAdmin(t, func(a *conf.Admin) { a.PortUnification = true }, constant(&tls.Config{Certificates: []tls.Certificate{cert}}))
	resp, err := s.get("https", &tls.Config{RootCAs: pool})
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "HTTP/1.1", resp.Proto)
	require.Equal(t, "max-age=86400; includeSubDomains", resp.Header.Get("Strict-Transport-Security"))
	addr := s.AdminAddr().String()
	for range 2 {
		resp, err = s.get("http", nil)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Empty(t, resp.Header.Get("Strict-Transport-Security"))
	}
	require.Contains(t, command(t, "http://"+addr, "monitor"), `"insecure_admin_count" : 3,`)
	// Who says nothing, and who leaves at once, holds up nobody.
	quiet, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer quiet.Close()
	gone, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	require.Contains(t, command(t, "http://"+addr, "ruok"), "null")
}

// Encryption only: admin.forceHttps wins over admin.portUnification.
func TestAdminEncryptedOnly(t *testing.T) {
	cert, pool := selfMade(t, 1)
	s := startAdmin(t, func(a *conf.Admin) { a.PortUnification, a.ForceHTTPS = true, true }, constant(&tls.Config{Certificates: []tls.Certificate{cert}}))
	resp, err := s.get("https", &tls.Config{RootCAs: pool})
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	resp, err = s.get("http", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	_, err = s.get("https", &tls.Config{RootCAs: x509.NewCertPool()})
	require.Error(t, err, "the client does not trust the certificate")
	require.Equal(t, 1, s.logs.FilterMessageSnippet("Started AdminServer on address 127.0.0.1, port ").Len())
}

// A certificate is asked of clients if the configuration says so, whatever the key stores' configuration says, and not
// otherwise.
func TestAdminClientCertificates(t *testing.T) {
	cert, pool := selfMade(t, 1)
	base := &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	with, without := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}, &tls.Config{RootCAs: pool}
	s := startAdmin(t, func(a *conf.Admin) { a.ForceHTTPS, a.NeedClientAuth = true, true }, constant(base))
	_, err := s.get("https", with)
	require.NoError(t, err)
	_, err = s.get("https", without)
	require.Error(t, err)
	s = startAdmin(t, func(a *conf.Admin) { a.ForceHTTPS = true }, constant(base))
	_, err = s.get("https", without)
	require.NoError(t, err)
}

// A new certificate is used from the next connection on.
func TestAdminCertificateIsRenewed(t *testing.T) {
	var now atomic.Pointer[tls.Config]
	first, pool := selfMade(t, 1)
	second, _ := selfMade(t, 2)
	pool.AddCert(second.Leaf)
	now.Store(&tls.Config{Certificates: []tls.Certificate{first}})
	s := startAdmin(t, func(a *conf.Admin) { a.ForceHTTPS = true }, func() (*tls.Config, error) {
		if cfg := now.Load(); cfg != nil {
			return cfg, nil
		}
		return nil, errors.New("the file is being written")
	})
	serial := func() int64 {
		t.Helper()
		resp, err := s.get("https", &tls.Config{RootCAs: pool})
		require.NoError(t, err)
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	require.EqualValues(t, 1, serial())
	now.Store(&tls.Config{Certificates: []tls.Certificate{second}})
	require.EqualValues(t, 2, serial())
	now.Store(nil)
	_, err := s.get("https", &tls.Config{RootCAs: pool})
	require.Error(t, err)
}

// Without keys there is no encryption: that is told, and what was to be encrypted is not there in the clear.
func TestAdminWithoutKeys(t *testing.T) {
	s := startAdmin(t, func(a *conf.Admin) { a.PortUnification = true }, nil)
	require.Equal(t, 1, s.logs.FilterMessageSnippet("admin.portUnification without a key store: the admin server takes plain requests only").Len())
	require.Contains(t, command(t, "http://"+s.AdminAddr().String(), "monitor"), `"insecure_admin_count" : 0,`)

	bad := func() (*tls.Config, error) { return nil, errors.New("keystore password was incorrect") }
	for name, keys := range map[string]func() (*tls.Config, error){"none": nil, "bad": bad} {
		s = startAdmin(t, func(a *conf.Admin) { a.ForceHTTPS = true }, keys)
		require.Nil(t, s.AdminAddr(), name)
		require.Equal(t, 1, s.logs.FilterMessageSnippet("Problem starting AdminServer").Len(), name)
	}
	s = startAdmin(t, func(a *conf.Admin) { a.PortUnification = true }, bad)
	require.Nil(t, s.AdminAddr())
}
