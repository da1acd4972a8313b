package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/sasl"
	"zabra/server/servertest"
)

const jaasForTests = `Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="hunter2"; };
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="hunter2"; };
Wrong { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="hunter3"; };
Empty {};
`

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLoginOptions(t *testing.T) {
	file := writeFile(t, jaasForTests)
	bob, wrong := &sasl.Login{User: "bob", Password: "hunter2"}, &sasl.Login{User: "bob", Password: "hunter3"}
	define := "-Djava.security.auth.login.config=" + file
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want *sasl.Login
	}{
		"nothing":              {nil, nil, nil},
		"option":               {nil, []string{define, "-server", "a:1", "ls", "/"}, bob},
		"environment":          {map[string]string{"CLIENT_JVMFLAGS": "-Xmx1g " + define}, nil, bob},
		"environment of all":   {map[string]string{"JVMFLAGS": define}, nil, bob},
		"client configuration": {nil, []string{"-client-configuration", writeFile(t, "java.security.auth.login.config="+file)}, bob},
		"section":              {nil, []string{define, "-Dzookeeper.sasl.clientconfig=Wrong"}, wrong},
		"the option counts":    {map[string]string{"CLIENT_JVMFLAGS": define + " -Dzookeeper.sasl.clientconfig=Wrong"}, []string{"-Dzookeeper.sasl.clientconfig=Client"}, bob},
		"switched off":         {nil, []string{define, "-Dzookeeper.sasl.client=false"}, nil},
		"name of the servers":  {nil, []string{define, "-Dzookeeper.sasl.client.username=zk", "-Dzookeeper.fips-mode=false"}, bob},
		"a server's file":      {nil, []string{"-Djava.security.auth.login.config=" + writeFile(t, "Server {};")}, nil},
	} {
		opt, stderr, err := parse(tt.env, tt.args...)
		require.NoError(t, err, name)
		require.Empty(t, stderr, name)
		require.Equal(t, tt.want, opt.Login, name)
	}
	for want, args := range map[string][]string{
		"no such file":                          {"-Djava.security.auth.login.config=/none"},
		"there is no section Nobody":            {define, "-Dzookeeper.sasl.clientconfig=Nobody"},
		"no user to log in as":                  {define, "-Dzookeeper.sasl.clientconfig=Empty"},
		"line 1: '{' behind the name":           {"-Djava.security.auth.login.config=" + writeFile(t, "Client hunter2")},
		"fips-mode=true excludes DIGEST-MD5, a": {define, "-Dzookeeper.fips-mode=true"},
	} {
		_, _, err := parse(nil, args...)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter")
	}
}

func TestLogin(t *testing.T) {
	file := writeFile(t, jaasForTests)
	server := servertest.Start(t, servertest.WithConfig("java.security.auth.login.config", file), servertest.WithConfig("fips-mode", "false"),
		servertest.WithConfig("authProvider.1", "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"),
		servertest.WithConfig("sessionRequireClientSASLAuth", "true"))
	define := "-Djava.security.auth.login.config=" + file
	run := func(args ...string) result { return quiet(t, server.Addr(), args...) }
	require.Equal(t, result{0, "Auth scheme: User\nip: 127.0.0.1\nsasl: bob\n", ""}, run(define, "whoami"))
	require.Equal(t, result{0, "", "Created /mine\n"}, run(define, "create", "/mine", "x", "auth::cdrwa"))
	require.Equal(t, result{0, "'sasl,'bob\n: cdrwa\n", ""}, run(define, "getAcl", "/mine"))
	require.Equal(t, result{1, "", "KeeperErrorCode = Session closed because client failed to authenticate for /\n"}, run("ls", "/"))
	failed := run(define, "-Dzookeeper.sasl.clientconfig=Wrong", "ls", "/")
	require.Equal(t, 1, failed.code)
	require.Empty(t, failed.out)
	require.Contains(t, failed.err, "KeeperErrorCode = AuthFailed\nthe login by SASL was refused: ")
	require.NotContains(t, failed.err, "hunter")
}
