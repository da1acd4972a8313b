package main

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/certs/certstest"
	"zabra/server/client"
)

// TestServerWithSecurePortOnly: a process that speaks TLS and nothing else takes new certificates at SIGHUP, and one that cannot read
// its stores ends at once.
func TestServerWithSecurePortOnly(t *testing.T) {
	ca := certstest.NewCA(t, "authority")
	issue := func(name string) *certstest.Pair { return ca.Issue(t, pkix.Name{CommonName: name}, "127.0.0.1") }
	key := certstest.Write(t, "key.pem", issue("first").PEM(t))
	port := freePort(t)
	text := fmt.Sprintf("dataDir=%s\nsecureClientPort=%d\nsecureClientPortAddress=127.0.0.1\nssl.clientAuth=none\nssl.keyStore.location=%s\nssl.trustStore.location=%s\n",
		t.TempDir(), port, key, certstest.Write(t, "trust.pem", ca.CertPEM()))
	r, line := launch(t, program(t, "server", writeFile(t, "zoo.cfg", text)), "] - serving {")
	require.Contains(t, line, fmt.Sprintf(`serving {"secureAddress": "127.0.0.1:%d", "dataDir"`, port))
	addr := fmt.Sprint("127.0.0.1:", port)
	c, err := client.Dial(t.Context(), addr, client.Options{TLS: ca.Client(nil)})
	require.NoError(t, err)
	t.Cleanup(c.Abandon)

	certstest.Overwrite(t, key, issue("second").PEM(t))
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGHUP))
	require.Contains(t, r.await(t, "new certificates loaded"), key)
	nc, err := tls.Dial("tcp", addr, ca.Client(nil))
	require.NoError(t, err)
	require.Equal(t, "second", nc.ConnectionState().PeerCertificates[0].Subject.CommonName)
	require.NoError(t, nc.Close())
	require.NoError(t, c.Ping(t.Context()), "who was there before stays")
	require.NoError(t, r.stop(t, syscall.SIGTERM))

	certstest.Overwrite(t, key, []byte("rubbish"))
	code, stderr := fail(t, "server", writeFile(t, "zoo.cfg", text))
	require.Equal(t, exitConfig, code)
	require.Equal(t, "Invalid config, exiting abnormally\n", stderr)
}
