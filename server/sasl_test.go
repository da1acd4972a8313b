package server_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"zabra/conf"
	"zabra/internal/sasl"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

const (
	digestModule   = "org.apache.zookeeper.server.auth.DigestLoginModule"
	saslProvider   = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	bobsPassword   = "hunter-of-bob"
	rootsPassword  = "hunter-of-root"
	supersPassword = "hunter-of-super"
	zksPassword    = "hunter-of-zk"
	otherPassword  = "hunter-of-nobody"
)

// writeJAAS writes a file with users, of clients and of servers.
func writeJAAS(t testing.TB, path, quorumPassword string) {
	t.Helper()
	text := "Server { " + digestModule + " required user_bob=\"" + bobsPassword + "\" user_root=\"" + rootsPassword + "\"; };\n" +
		"QuorumServer { " + digestModule + " required user_zk=\"" + zksPassword + "\"; };\n" +
		"QuorumLearner { " + digestModule + " required username=\"zk\" password=\"" + quorumPassword + "\"; };\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// withLogins has a server take logins.
func withLogins(t testing.TB) servertest.Option {
	path := filepath.Join(t.TempDir(), "jaas.conf")
	writeJAAS(t, path, zksPassword)
	return func(s *servertest.Server) {
		for _, kv := range [][2]string{
			{"java.security.auth.login.config", path}, {"authProvider.1", saslProvider}, {"fips-mode", "false"},
			{"superUser.1", "root"}, {"SASLAuthenticationProvider.superPassword", supersPassword},
		} {
			servertest.WithConfig(kv[0], kv[1])(s)
		}
	}
}

// fullLog is everything that a server says, with all details.
type fullLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *fullLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *fullLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *fullLog) logger() *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(l), zapcore.DebugLevel))
}

func loginContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
	t.Cleanup(cancel)
	return ctx
}

func whoAmI(t testing.TB, c *client.Client) (ids []string) {
	t.Helper()
	infos, err := c.WhoAmI(loginContext(t))
	require.NoError(t, err)
	for _, info := range infos {
		ids = append(ids, info.Scheme+":"+info.User)
	}
	return ids
}

// TestLogins: who knows a password is that user, who does not is cut off, and the log tells of the second without a secret.
func TestLogins(t *testing.T) {
	var log fullLog
	s := servertest.Start(t, withLogins(t), servertest.WithLog(log.logger()))
	ctx := loginContext(t)

	bob := s.Client(t)
	exchange := sasl.NewClient(sasl.TargetClient, func(b []byte) { copy(b, "spice") }, sasl.Login{User: "bob", Password: bobsPassword})
	challenge, err := bob.SASL(ctx, []byte{})
	require.NoError(t, err)
	response, err := exchange.Respond(challenge)
	require.NoError(t, err)
	last, err := bob.SASL(ctx, response)
	require.NoError(t, err)
	require.NoError(t, exchange.Verify(last))
	require.Equal(t, []string{"ip:127.0.0.1", "sasl:bob"}, whoAmI(t, bob))
	acl := []wire.ACL{{Perms: wire.PermAll, Scheme: "sasl", ID: "bob"}}
	_, err = bob.Create(ctx, "/bobs", []byte("x"), acl, 0)
	require.NoError(t, err)

	stranger := s.Client(t)
	_, _, err = stranger.GetData(ctx, "/bobs", false)
	require.Equal(t, wire.CodeNoAuth, err)
	for _, login := range []sasl.Login{{User: "root", Password: rootsPassword}, {User: "super", Password: supersPassword}} {
		c := s.Client(t)
		require.NoError(t, c.SASLLogin(ctx, login))
		_, _, err = c.GetData(ctx, "/bobs", false)
		require.NoError(t, err, login.User)
	}

	for _, login := range []sasl.Login{{User: "bob", Password: otherPassword}, {User: "nobody", Password: bobsPassword}, {User: otherPassword, Password: "x"}} {
		c := s.Client(t)
		require.ErrorIs(t, c.SASLLogin(ctx, login), wire.CodeAuthFailed)
		<-c.Done()
	}
	thief := s.Client(t)
	_, err = thief.SASL(ctx, []byte{})
	require.NoError(t, err)
	_, err = thief.SASL(ctx, response)
	require.Equal(t, wire.CodeAuthFailed, err, "an answer that was overheard")

	until(t, "the log tells", func() bool { return strings.Contains(log.String(), "authentication refused") })
	s.Stop()
	requireNoSecrets(t, log.String(), response, last, challenge)
}

// requireNoSecrets requires that no password, and nothing of what was exchanged to prove one, is in the text.
func requireNoSecrets(t testing.TB, text string, tokens ...[]byte) {
	t.Helper()
	secrets := []string{bobsPassword, rootsPassword, supersPassword, zksPassword, otherPassword}
	for _, secret := range secrets[:5] {
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	for _, token := range tokens {
		for _, name := range []string{"response=", "rspauth=", `nonce="`, `cnonce="`} {
			if _, value, ok := strings.Cut(string(token), name); ok {
				require.Greater(t, len(value), 15)
				secrets = append(secrets, value[:16])
			}
		}
	}
	for _, secret := range secrets {
		require.NotContains(t, text, secret)
	}
}

func TestLoginIsAskedFor(t *testing.T) {
	s := servertest.Start(t, withLogins(t), servertest.WithConfig("sessionRequireClientSASLAuth", "true"))
	ctx := loginContext(t)
	c := s.Client(t, client.Options{NoPings: true})
	_, err := c.Exists(ctx, "/", false)
	require.Equal(t, wire.CodeAuthRequired, err)
	<-c.Done()
	c = s.Client(t, client.Options{NoPings: true})
	require.ErrorIs(t, c.SASLLogin(ctx, sasl.Login{User: "bob", Password: otherPassword}), wire.CodeAuthRequired)
	c = s.Client(t, client.Options{NoPings: true})
	require.NoError(t, c.SASLLogin(ctx, sasl.Login{User: "bob", Password: bobsPassword}))
	_, err = c.Exists(ctx, "/", false)
	require.NoError(t, err)
	require.NoError(t, c.Close(ctx))
}

// TestEnforcedSchemesOfClients: each scheme that may be asked for.
func TestEnforcedSchemesOfClients(t *testing.T) {
	digest := func(t *testing.T, c *client.Client) error { return c.AddAuth(loginContext(t), "digest", []byte("a:a")) }
	login := func(t *testing.T, c *client.Client) error {
		return c.SASLLogin(loginContext(t), sasl.Login{User: "bob", Password: bobsPassword})
	}
	nothing := func(*testing.T, *client.Client) error { return nil }
	for _, tt := range []struct {
		schemes string
		prove   func(*testing.T, *client.Client) error
		served  bool
	}{
		{"digest", digest, true}, {"digest", login, false}, {"digest", nothing, false},
		{"sasl", login, true}, {"sasl", digest, false},
		{"sasl,digest", digest, true}, {"sasl, digest", login, true}, {"sasl,digest", nothing, false},
		{"ip", nothing, true},
	} {
		s := servertest.Start(t, withLogins(t), servertest.WithConfig("enforce.auth.enabled", "true"), servertest.WithConfig("enforce.auth.schemes", tt.schemes))
		c := s.Client(t, client.Options{NoPings: true})
		require.NoError(t, tt.prove(t, c))
		_, err := c.Exists(loginContext(t), "/", false)
		if tt.served {
			require.NoError(t, err, tt.schemes)
		} else {
			require.Equal(t, wire.CodeAuthRequired, err, tt.schemes)
		}
		s.Stop()
	}
}

// TestLoginsOfTheMode: with fips-mode nobody gets in by DIGEST-MD5, and without users a server knows no logins.
func TestLoginsOfTheMode(t *testing.T) {
	ctx := loginContext(t)
	login := sasl.Login{User: "bob", Password: bobsPassword}
	fips := servertest.Start(t, withLogins(t), servertest.WithConfig("fips-mode", "true"))
	c := fips.Client(t)
	require.ErrorIs(t, c.SASLLogin(ctx, login), wire.CodeAuthFailed)
	<-c.Done()
	plain := servertest.Start(t)
	c = plain.Client(t)
	require.ErrorContains(t, c.SASLLogin(ctx, login), "the server does not take logins by SASL")
	require.Equal(t, []string{"ip:127.0.0.1"}, whoAmI(t, c), "the connection stays")
	kept := servertest.Start(t, withLogins(t), servertest.WithConfig("allowSaslFailedClients", "true"))
	c = kept.Client(t)
	require.ErrorContains(t, c.SASLLogin(ctx, sasl.Login{User: "bob", Password: otherPassword}), "wrong user or password")
	require.Equal(t, []string{"ip:127.0.0.1"}, whoAmI(t, c))
}

// TestUsersAreTakenWhileRunning: a user that is added can log in, one that is taken out cannot, and who is in stays.
func TestUsersAreTakenWhileRunning(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.Security.FIPSMode = false
		cfg.Security.Providers = map[string]string{"1": saslProvider}
		cfg.Security.SASL.Users = sasl.Users{"old": "o"}
	}))
	ctx := loginContext(t)
	dial := func() *client.Client {
		c, err := client.Dial(ctx, s.Addr().String(), client.Options{})
		require.NoError(t, err)
		t.Cleanup(c.Abandon)
		return c
	}
	old := dial()
	require.NoError(t, old.SASLLogin(ctx, sasl.Login{User: "old", Password: "o"}))
	taken, needRestart := s.reconfigure(func(cfg *conf.Config) { cfg.Security.SASL.Users = sasl.Users{"new": "n"} })
	require.Equal(t, []string{"java.security.auth.login.config"}, taken)
	require.Empty(t, needRestart)
	require.NoError(t, dial().SASLLogin(ctx, sasl.Login{User: "new", Password: "n"}))
	require.ErrorIs(t, dial().SASLLogin(ctx, sasl.Login{User: "old", Password: "o"}), wire.CodeAuthFailed)
	require.Equal(t, []string{"ip:127.0.0.1", "sasl:old"}, whoAmI(t, old))
	require.EqualValues(t, 1, s.AuthFailed())
}

// TestServersLogIn: an ensemble whose servers log in to one another works, and a server with a wrong password stays outside
// until it has the right one.
func TestServersLogIn(t *testing.T) {
	var log fullLog
	path := filepath.Join(t.TempDir(), "jaas.conf")
	writeJAAS(t, path, zksPassword)
	e := servertest.StartEnsemble(t, 3, servertest.WithConfig("java.security.auth.login.config", path), servertest.WithConfig("fips-mode", "false"),
		servertest.WithConfig("quorum.auth.enableSasl", "true"), servertest.WithConfig("quorum.auth.learnerRequireSasl", "true"),
		servertest.WithConfig("quorum.auth.serverRequireSasl", "true"), servertest.WithLog(log.logger()))
	createOn(t, e, 1, "/before")
	e.Stop(3) // the one that dials the others
	writeJAAS(t, path, otherPassword)
	e.Start(3)
	until(t, "the others refuse server 3", func() bool {
		return strings.Contains(log.String(), `wrong password of user \"zk\"`) && strings.Contains(log.String(), "cannot log in to server")
	})
	require.Empty(t, e.Stats(3).Mode)
	createOn(t, e, e.Leader(), "/without")
	require.Empty(t, e.Stats(3).Mode)
	writeJAAS(t, path, zksPassword)
	e.Restart(3)
	requireOn(t, e, 3, "/before", "/without")

	nc := dialPeer(t, e.ElectionAddr(1))
	require.NoError(t, nc.SetDeadline(time.Now().Add(shellWaitMax)))
	_, err := nc.Write([]byte("\x89Zabra\r\n and nothing more of sense, but enough of it"))
	require.NoError(t, err)
	requireCutOff(t, nc)
	requireNoSecrets(t, log.String())
}

// TestServersLogInOneByOne: an ensemble changes over while it serves, as ZooKeeper's does: servers that take logins, then those
// that log in, then those that require it.
func TestServersLogInOneByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jaas.conf")
	writeJAAS(t, path, zksPassword)
	e := servertest.StartEnsemble(t, 3, servertest.WithConfig("java.security.auth.login.config", path), servertest.WithConfig("fips-mode", "false"),
		servertest.WithConfig("quorum.auth.enableSasl", "true"))
	createOn(t, e, 1, "/a")
	for _, step := range [][2]string{{"quorum.auth.learnerRequireSasl", "true"}, {"quorum.auth.serverRequireSasl", "true"}} {
		for id := 1; id <= 3; id++ {
			e.Stop(id)
			servertest.WithConfig(step[0], step[1])(e.Server(id))
			e.Restart(id)
		}
	}
	createOn(t, e, 2, "/b")
	requireOn(t, e, 3, "/a", "/b")
}
