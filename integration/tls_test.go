//go:build interop && linux

package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// TestInteropTLS has real clients speak TLS with a server whose stores openssl and keytool have made: once in Java's own format, once
// in PEM with an encrypted key. The reference servers would need Netty's libraries for it; they are not judged.
func TestInteropTLS(t *testing.T) {
	if serverUnderTest(t) != harness.Zabra {
		return
	}
	here := filepath.Join(harness.Root(), "integration", "interop")
	folder := t.TempDir()
	out, err := exec.Command(filepath.Join(here, "stores.sh"), folder).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, name := range []string{"jks", "encrypted.pem"} {
		t.Run(name, func(t *testing.T) {
			port, err := harness.FreePort()
			require.NoError(t, err)
			server := startServer(t, harness.Zabra, map[string]string{
				"secureClientPort": fmt.Sprint(port), "secureClientPortAddress": "127.0.0.1",
				"ssl.keyStore.location": filepath.Join(folder, "server."+name), "ssl.keyStore.passwordPath": filepath.Join(folder, "password"),
				"ssl.trustStore.location": filepath.Join(folder, "trust.p12"), "ssl.trustStore.passwordPath": filepath.Join(folder, "password"),
			})
			addr := fmt.Sprint("127.0.0.1:", port)
			runSecure(t, server, "java", 4, javaProgram("SecureClient", folder, addr))
			python := filepath.Join(harness.Cache(), "venv", "bin", "python")
			runSecure(t, server, "kazoo", 2, exec.Command(python, "-B", filepath.Join(here, "python", "secure.py"), folder, addr))
			file := func(name string) string { return filepath.Join(folder, name) }
			certificates := strings.Join([]string{file("ca.pem"), file("alice.crt"), file("alice.key"), ""}, ",")
			runSecure(t, server, "c", 10, exec.Command(filepath.Join(harness.Cache(), "bin", "interop-c-tls"), addr, certificates))
			for _, version := range []string{"-tls1_2", "-tls1_3"} {
				openssl(t, folder, addr, version)
			}
		})
	}
}

// runSecure runs a program that needs nothing done to the server.
func runSecure(t *testing.T, server *harness.Server, name string, checksMin int, cmd *exec.Cmd) {
	t.Run(name, func(t *testing.T) {
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		require.NoError(t, harness.StartChild(cmd))
		limit := time.AfterFunc(clientTimeout, func() { _ = cmd.Process.Kill() })
		defer limit.Stop()
		checks, ended := followClient(t, stdout, stdin, server, nil)
		err = cmd.Wait()
		require.NoError(t, err, "%s\n%s", lastLines(stderr.String(), 8), lastLines(server.Log(), 8))
		require.Equal(t, ended, checks)
		require.GreaterOrEqual(t, checks, checksMin)
	})
}

// openssl asks for a word as the probes of container images do.
func openssl(t *testing.T, folder, addr, version string) {
	t.Run("openssl"+version, func(t *testing.T) {
		file := func(name string) string { return filepath.Join(folder, name) }
		cmd := exec.Command("openssl", "s_client", "-quiet", "-crlf", "-verify_return_error", version, "-connect", addr,
			"-CAfile", file("ca.pem"), "-cert", file("alice.crt"), "-key", file("alice.key"))
		cmd.Stdin = strings.NewReader("ruok\n")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		require.Equal(t, "imok", string(out))
	})
}
