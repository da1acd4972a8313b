package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// cliProcess runs zabra cli as a process of its own, the way scripts do.
func cliProcess(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, append([]string{"cli"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestCLI(t *testing.T) {
	addr := servertest.Start(t).Addr()
	const greeting = "\n\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null zxid: -1\n"
	code, out, errs := cliProcess(t, "", "-server", addr, "create", "-s", "/a", "data")
	require.Equal(t, 0, code)
	require.Equal(t, "Connecting to "+addr+greeting, out)
	require.Equal(t, "Created /a0000000000\n", errs)

	code, out, _ = cliProcess(t, "ls /\nget /a0000000000\n", "-server", addr, "-q")
	require.Equal(t, 0, code)
	require.Equal(t, "[a0000000000, zookeeper]\ndata\n", out)

	code, _, errs = cliProcess(t, "", "-server", addr, "-q", "get", "/none")
	require.Equal(t, exitFailure, code)
	require.Equal(t, "Node does not exist: /none\n", errs)

	code, _, errs = cliProcess(t, "", "-server", addr, "--what", "get", "/none")
	require.Equal(t, exitConfig, code)
	require.Equal(t, "unknown option --what, zabra cli --help lists all\n", errs)

	code, _, _ = cliProcess(t, "", "-server", addr, "nosuch")
	require.Equal(t, 127, code)

	code, out, _ = execute("cli", "--help")
	require.Equal(t, 0, code)
	require.Contains(t, out, "-waitforconnection")
	code, out, _ = execute("cli", "-q", "help", "export")
	require.Equal(t, 0, code)
	require.Equal(t, "export [--force] path [file]\n -force   Overwrite what exists\n\n", out)
}
