//go:build interop && linux

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

const digestModule = "org.apache.zookeeper.server.auth.DigestLoginModule required "

// writeJAAS writes a login configuration with the users of the server, and two clients of which the second is wrong.
func writeJAAS(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "jaas.conf")
	require.NoError(t, os.WriteFile(path, []byte(
		"Server { "+digestModule+"user_bob=\"secret of bob\" user_root=\"secret of root\"; };\n"+
			"Client { "+digestModule+"username=\"bob\" password=\"secret of bob\"; };\n"+
			"Wrong { "+digestModule+"username=\"bob\" password=\"secret of nobody\"; };\n"+
			"QuorumServer { "+digestModule+"user_zk=\"secret of servers\"; };\n"+
			"QuorumLearner { "+digestModule+"username=\"zk\" password=\"secret of servers\"; };\n"), 0o600))
	return path
}

// loginDefines have a server read that file, and allow DIGEST-MD5.
func loginDefines(jaas string) []string {
	return []string{"-Djava.security.auth.login.config=" + jaas, "-Dzookeeper.fips-mode=false", "-Dznode.container.checkIntervalMs=500"}
}

var loginSettings = map[string]string{
	"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "superUser.1": "root",
}

// loggedInZkCli runs one command of the Java client's shell, and returns what it printed and its exit code.
func loggedInZkCli(t *testing.T, addr string, defines []string, words ...string) (string, int) {
	args := []string{"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"}
	args = append(append(args, defines...), "-cp", filepath.Join(harness.Cache(), "jars", "*"), "org.apache.zookeeper.ZooKeeperMain", "-server", addr)
	out, err := exec.CommandContext(t.Context(), "java", append(args, words...)...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	require.NoError(t, err)
	return string(out), 0
}

// TestInteropLogin: clients log in by SASL with DIGEST-MD5, Java's and kazoo with pure-sasl.
func TestInteropLogin(t *testing.T) {
	jaas := writeJAAS(t)
	server := newServer(t, serverUnderTest(t), loginSettings)
	server.Defines = loginDefines(jaas)
	require.NoError(t, server.Start())
	t.Run("kazoo", func(t *testing.T) {
		runClient(t, clientProgram{"kazoo", 5, func(addr string) *exec.Cmd {
			return exec.Command(filepath.Join(harness.Cache(), "venv", "bin", "python"), "-B",
				filepath.Join(harness.Root(), "integration", "interop", "python", "login.py"), addr)
		}}, server)
	})
	t.Run("java", func(t *testing.T) {
		out, code := loggedInZkCli(t, server.Addr(), loginDefines(jaas), "whoami")
		require.Zero(t, code, out)
		require.Contains(t, out, "\nsasl: bob\n")
		// The shell goes on after a refusal, and has nobody to show.
		out, _ = loggedInZkCli(t, server.Addr(), append(loginDefines(jaas), "-Dzookeeper.sasl.clientconfig=Wrong"), "whoami")
		require.NotContains(t, out, "sasl: bob")
	})
}

// TestInteropQuorumLogin: three servers that log in to one another.
func TestInteropQuorumLogin(t *testing.T) {
	e := startEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3, Defines: loginDefines(writeJAAS(t)), Settings: map[string]string{
		"quorum.auth.enableSasl": "true", "quorum.auth.learnerRequireSasl": "true", "quorum.auth.serverRequireSasl": "true",
	}})
	for i := range e.Members {
		call(t, clientOf(t, e, i), createPath(fmt.Sprint("/by-", i), 0))
	}
}
