//go:build interop && linux

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

func serverUnderTest(t *testing.T) harness.Kind {
	kind, err := harness.UnderTest()
	require.NoError(t, err)
	return kind
}

// startServer starts a server in a temporary folder and stops it when the test ends.
func startServer(t *testing.T, kind harness.Kind, settings map[string]string) *harness.Server {
	server := newServer(t, kind, settings)
	require.NoError(t, server.Start())
	return server
}

// newServer prepares a server in a temporary folder; it is killed when the test ends. With $ZABRA_INTEROP_KEEP set to a
// folder, everything stays there for a look.
func newServer(t *testing.T, kind harness.Kind, settings map[string]string) *harness.Server {
	dir := t.TempDir()
	if keep := os.Getenv("ZABRA_INTEROP_KEEP"); keep != "" {
		dir = filepath.Join(keep, strings.ReplaceAll(t.Name(), "/", "_"))
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	server, err := harness.New(kind, dir, settings)
	require.NoError(t, err)
	// Containers and TTL nodes are to be reaped while a test looks; this can only be said on the command line.
	server.Defines = []string{"-Dznode.container.checkIntervalMs=500"}
	watchOver(t, server)
	return server
}

// serverFault is what a server written in Go prints when it has a bug of its own.
var serverFault = regexp.MustCompile(`(?m)^(panic: |fatal error: |WARNING: DATA RACE).*$`)

// watchOver kills the server when the test ends and looks through the output of each of its starts.
func watchOver(t *testing.T, server *harness.Server) {
	t.Cleanup(func() {
		server.Kill()
		logs, err := filepath.Glob(filepath.Join(server.Dir, "server.*.log"))
		require.NoError(t, err)
		for _, log := range logs {
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			if at := serverFault.FindIndex(text); at != nil {
				t.Errorf("%s: %.4000s", filepath.Base(log), text[at[0]:])
			}
		}
	})
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
