package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// container prepares the program as the only process of a container whose folders are below root.
func container(t *testing.T, root string, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, args...)
	cmd.Env = append(cmd.Env, "ZOO_CONF_DIR="+root+"/conf", "ZOO_DATA_DIR="+root+"/data", "ZOO_DATA_LOG_DIR="+root+"/datalog")
	cmd.Env = append(cmd.Env, environ...)
	return cmd
}

// TestEntrypointServes: an empty root becomes a server, and starts again on what the first start left.
func TestEntrypointServes(t *testing.T) {
	root, port := t.TempDir(), freePort(t)
	environ := []string{
		"ZOO_MY_ID=3", fmt.Sprintf("ZOO_SERVERS=server.3=localhost:2888:3888;127.0.0.1:%d", port), "ZOO_TICK_TIME=500",
		"ZOO_CFG_EXTRA=4lw.commands.whitelist=ruok, conf", "JVMFLAGS=-Xmx1g -Dzookeeper.maxCnxns=9",
	}
	for _, line := range []string{"zkServer.sh start-foreground", "server --log-level debug -D a=b"} {
		r, _ := launch(t, container(t, root, environ, append([]string{entrypointVerb}, strings.Fields(line)...)...), "] - serving {")
		require.Equal(t, "imok", ask(t, port, "ruok"))
		text := ask(t, port, "conf")
		require.Contains(t, text, "tickTime=500\n")
		require.Contains(t, text, "dataLogDir="+root+"/datalog/version-2\n")

		status, err := container(t, root, environ, entrypointVerb, "zkServer.sh", "status").Output()
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("Client port found: %d. Client address: 127.0.0.1. Client SSL: false.\nMode: standalone\n", port), string(status))
		require.NoError(t, r.stop(t, syscall.SIGTERM))
	}
	text, err := os.ReadFile(filepath.Join(root, "data", "myid"))
	require.NoError(t, err)
	require.Equal(t, "3\n", string(text))
}

// TestEntrypointByName: in the image ZooKeeper's scripts are links to the binary.
func TestEntrypointByName(t *testing.T) {
	for _, name := range []string{"zkServer.sh", "zkCli.sh", "zkCleanup.sh"} {
		require.Equal(t, []string{entrypointVerb, name, "a", "b"}, commandLine([]string{"/bin/" + name, "a", "b"}))
	}
	require.Equal(t, []string{"server", "x"}, commandLine([]string{"/usr/bin/zabra", "server", "x"}))

	link := filepath.Join(t.TempDir(), "zkServer.sh")
	require.NoError(t, os.Symlink(os.Args[0], link))
	cmd := container(t, t.TempDir(), nil, "version")
	cmd.Path, cmd.Args[0] = link, link
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Regexp(t, `^Apache ZooKeeper, version \d+\.\d+\.\d+-zabra-devel`, string(out))
}

func TestEntrypointRefuses(t *testing.T) {
	tests := []struct {
		environ []string
		args    string
		want    string
	}{
		{[]string{"ZOO_MY_ID=x"}, "", `ZOO_MY_ID: "x" is not a number`},
		{[]string{"ZOO_SERVERS=zoo1"}, "", "ZOO_SERVERS: "},
		{[]string{"ZOO_TICK_TIME=soon"}, "", "Invalid config, exiting abnormally"},
		{nil, "bash", `"bash" is not in this image`},
		{nil, "zkServer.sh stop", "stop or restart the container"},
		{nil, "zkCleanup.sh -n 3", "Error processing "},
	}
	for _, tt := range tests {
		cmd := container(t, t.TempDir(), tt.environ, append([]string{entrypointVerb}, strings.Fields(tt.args)...)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, tt.args)
		require.Equal(t, exitConfig, exit.ExitCode())
		require.Contains(t, stderr.String(), tt.want)
	}
}

// TestEntrypointRunsOtherVerbs in this process, with the environment of the test.
func TestEntrypointRunsOtherVerbs(t *testing.T) {
	code, out, _ := execute(entrypointVerb, "version")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "zabra devel")
	code, out, _ = execute(entrypointVerb, "--help")
	require.Equal(t, exitOK, code)
	require.Contains(t, out, "Available Commands")
	code, _, _ = execute(entrypointVerb, "check-conf", "/nowhere")
	require.Equal(t, exitConfig, code)
}

func TestPositionalArgumentsOfAServer(t *testing.T) {
	tests := []struct{ args, want string }{
		{"", ""},
		{"--log-level debug", ""},
		{"-D a=b --log-format json -Dc=d", ""},
		{"--log-level debug /x/zoo.cfg", "/x/zoo.cfg"},
		{"2181 -D a=b /data", "2181 /data"},
	}
	for _, tt := range tests {
		got, err := positional(strings.Fields(tt.args))
		require.NoError(t, err, tt.args)
		require.Equal(t, tt.want, strings.Join(got, " "), tt.args)
	}
	for _, args := range []string{"--help", "--nonsense", "--log-level"} {
		_, err := positional([]string{args})
		require.Error(t, err, args)
	}
}

func TestLogLevelOfTheEnvironment(t *testing.T) {
	tests := []struct{ property, line, want string }{
		{"", "server /c", "server /c"},
		{"WARN,CONSOLE", "server /c", "server --log-level=warn /c"},
		{"TRACE", "server /c", "server --log-level=debug /c"},
		{"LOUD", "server /c", "server /c"},
		{"WARN", "server --log-level=info /c", "server --log-level=info /c"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, strings.Join(withLogLevel(strings.Fields(tt.line), tt.property), " "))
	}
}
