package server_test

import (
	"crypto/x509/pkix"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/internal/certs/certstest"
	"zabra/server/servertest"
)

// quorumStores are the keys with stores for a server at an address.
func quorumStores(t *testing.T, ca *certstest.CA) []servertest.Option {
	own := ca.Issue(t, pkix.Name{CommonName: "server"}, "127.0.0.1")
	return []servertest.Option{
		servertest.WithConfig("ssl.quorum.keyStore.location", certstest.Write(t, "key.pem", own.PEM(t))),
		servertest.WithConfig("ssl.quorum.trustStore.location", certstest.Write(t, "trust.pem", ca.CertPEM())),
	}
}

// TestEnsembleWithTLS: three servers that speak TLS only, with each other's certificates and names checked.
func TestEnsembleWithTLS(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	ca := certstest.NewCA(t, "authority")
	e := servertest.StartEnsemble(t, 3, append(quorumStores(t, ca), servertest.WithConfig("sslQuorum", "true"), servertest.WithLog(zap.New(core)))...)
	for id := 1; id <= 3; id++ {
		createOn(t, e, id, fmt.Sprint("/from-", id))
	}
	for id := 1; id <= 3; id++ {
		requireOn(t, e, id, "/from-1", "/from-2", "/from-3")
	}
	for line, least := range map[string]int{
		"Using TLS encrypted quorum communication": 3, "Port unification disabled": 3, "Creating TLS-only quorum server socket": 4, "Accepted TLS connection from 127.0.0.1:": 5,
	} {
		require.GreaterOrEqual(t, logs.FilterMessageSnippet(line).Len(), least, line)
	}
	require.Positive(t, logs.FilterMessageSnippet(" - TLSv1.2 - TLS_ECDHE_ECDSA_WITH_").Len())
	require.Zero(t, logs.FilterMessageSnippet("Using insecure").Len())

	old := e.Leader()
	e.Kill(old)
	createOn(t, e, e.Leader(), "/after")
	e.Restart(old)
	requireOn(t, e, old, "/after")
	requireSame(t, e)

	// A stranger who speaks no TLS is closed and told of.
	c, err := net.Dial("tcp", e.ElectionAddr(1))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(memberTimeMax)))
	_, err = c.Write(make([]byte, 100))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1000))
	for err == nil { // an alert may come first
		_, err = c.Read(make([]byte, 1000))
	}
	until(t, "it is told of", func() bool { return logs.FilterMessageSnippet("a connection of another server was refused").Len() > 0 })
}

const memberTimeMax = 30 * time.Second

// TestEnsembleTakesUpTLS: a plain ensemble gets encrypted in three rounds of restarts, one server at a time, and serves between any
// two.
func TestEnsembleTakesUpTLS(t *testing.T) {
	ca := certstest.NewCA(t, "authority")
	e := servertest.StartEnsemble(t, 3, quorumStores(t, ca)...)
	createOn(t, e, 1, "/first")
	for round, keys := range [][2]string{{"portUnification", "true"}, {"sslQuorum", "true"}, {"portUnification", "false"}} {
		for id := 1; id <= 3; id++ {
			servertest.WithConfig(keys[0], keys[1])(e.Server(id))
			e.Restart(id)
			e.Await()
			createOn(t, e, id, fmt.Sprintf("/round-%d-%d", round, id))
		}
	}
	for id := 1; id <= 3; id++ {
		requireOn(t, e, id, "/first", "/round-0-1", "/round-1-2", "/round-2-3")
	}
	requireSame(t, e)
}
