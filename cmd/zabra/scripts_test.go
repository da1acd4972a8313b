package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scripts are the stand-ins for ZooKeeper's scripts.
const scripts = "../../deploy/bin"

// installation is a folder with a configuration that the scripts are pointed to.
type installation struct {
	dir, cfg string
	port     int
	environ  []string
}

// install writes a configuration. The program is this test's binary.
func install(t *testing.T, extra string) *installation {
	t.Helper()
	i := &installation{dir: t.TempDir(), port: closedPort(t)}
	i.cfg = filepath.Join(i.dir, "conf", "zoo.cfg")
	require.NoError(t, os.Mkdir(filepath.Dir(i.cfg), 0o755))
	text := fmt.Sprintf("tickTime=500\n dataDir = %s/data \nclientPort=%d\nclientPortAddress=127.0.0.1\n%s", i.dir, i.port, extra)
	require.NoError(t, os.WriteFile(i.cfg, []byte(text), 0o600))
	i.environ = append(os.Environ(), asMain+"=1", "ZABRA="+os.Args[0], "JVMFLAGS=", "SERVER_JVMFLAGS=", "ZOO_LOG_DIR="+i.dir+"/logs",
		"ZOOCFGDIR="+filepath.Dir(i.cfg), "USER=u", "HOSTNAME=h", "ZOOCFG=", "ZOOPIDFILE=")
	t.Cleanup(func() {
		if pid := i.pid(); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return i
}

// pid is the number in the pid file; 0 without one.
func (i *installation) pid() int {
	text, err := os.ReadFile(filepath.Join(i.dir, "data", "zookeeper_server.pid"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(text))
	return n
}

// sh runs a script and returns its exit code and what it said.
func (i *installation) sh(t *testing.T, environ []string, script string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(scripts, script))
	require.NoError(t, err)
	cmd := exec.Command("sh", append([]string{path}, args...)...)
	cmd.Dir, cmd.Env = i.dir, append(i.environ, environ...)
	var out, say strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &say
	cmd.WaitDelay = time.Second // a server in the background does not keep the output open, and must not
	err = cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), say.String()
}

// TestZkServer takes a server through the verbs.
func TestZkServer(t *testing.T) {
	t.Parallel()
	i := install(t, "")
	found := fmt.Sprintf("Client port found: %d. Client address: 127.0.0.1. Client SSL: false.\n", i.port)

	code, out, stderr := i.sh(t, nil, "zkServer.sh", "status")
	require.Equal(t, 1, code)
	require.Equal(t, found+"Error contacting service. It is probably not running.\n", out)
	require.Contains(t, stderr, "Using config: "+i.cfg+"\n")

	code, out, stderr = i.sh(t, nil, "zkServer.sh", "start")
	require.Zero(t, code, stderr)
	require.Equal(t, "Starting zookeeper ... STARTED\n", out)
	require.FileExists(t, filepath.Join(i.dir, "logs", "zookeeper-u-server-h.out"))
	first := i.pid()
	require.NotZero(t, first)
	require.Eventually(t, func() bool {
		code, out, _ = i.sh(t, nil, "zkServer.sh", "status")
		return code == 0
	}, deadline, 50*time.Millisecond)
	require.Equal(t, found+"Mode: standalone\n", out)

	code, out, _ = i.sh(t, nil, "zkServer.sh", "start")
	require.Equal(t, 1, code)
	require.Equal(t, fmt.Sprintf("Starting zookeeper ... already running as process %d.\n", first), out)
	require.Equal(t, first, i.pid())

	code, out, _ = i.sh(t, nil, "zkServer.sh", "restart")
	require.Zero(t, code)
	require.Equal(t, "Stopping zookeeper ... STOPPED\nStarting zookeeper ... STARTED\n", out)
	require.NotEqual(t, first, i.pid())

	code, out, _ = i.sh(t, nil, "zkServer.sh", "stop")
	require.Zero(t, code)
	require.Equal(t, "Stopping zookeeper ... STOPPED\n", out)
	require.Zero(t, i.pid())
	code, _, stderr = i.sh(t, nil, "zkServer.sh", "status")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "connection refused")

	code, out, _ = i.sh(t, nil, "zkServer.sh", "stop")
	require.Zero(t, code)
	require.Equal(t, "Stopping zookeeper ... no zookeeper to stop (could not find file "+i.dir+"/data/zookeeper_server.pid)\n", out)
}

// TestZkServerInTheForeground: the server takes the place of the script, and the exit code is its own.
func TestZkServerInTheForeground(t *testing.T) {
	i := install(t, "")
	path, err := filepath.Abs(filepath.Join(scripts, "zkServer.sh"))
	require.NoError(t, err)
	cmd := exec.Command("sh", path, "start-foreground", i.cfg)
	cmd.Env = append(i.environ, "ZOO_LOG4J_PROP=INFO, CONSOLE", "SERVER_JVMFLAGS=-Xmx1g -Dzookeeper.4lw.commands.whitelist=conf")
	r, _ := launch(t, cmd, "] - serving {")
	require.Contains(t, ask(t, i.port, "conf"), "tickTime=500\n")
	require.NoError(t, r.stop(t, syscall.SIGTERM))

	bad := writeFile(t, "bad.cfg", "clientPort=x\n")
	for _, environ := range [][]string{nil, {"ZOO_NOEXEC=1"}} {
		code, out, stderr := i.sh(t, environ, "zkServer.sh", "start-foreground", bad)
		require.Equal(t, exitConfig, code)
		require.Contains(t, out, "dataDir is not set")
		require.Contains(t, stderr, "Invalid config, exiting abnormally")
	}
}

// TestZkServerThatDoesNotStart: the script notices, and shows why.
func TestZkServerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	i := install(t, "initLimit=soon\n")
	pidFile := filepath.Join(i.dir, "run", "zk.pid")
	code, out, stderr := i.sh(t, []string{"ZOOPIDFILE=" + pidFile}, "zkServer.sh", "start")
	require.Equal(t, 1, code)
	require.Equal(t, "Starting zookeeper ... FAILED TO START\n", out)
	require.Contains(t, stderr, `initLimit: For input string: "soon"`)
	require.NoFileExists(t, pidFile)
	code, out, _ = i.sh(t, []string{"ZOOPIDFILE=" + pidFile}, "zkServer.sh", "stop")
	require.Zero(t, code)
	require.Equal(t, "Stopping zookeeper ... no zookeeper to stop (could not find file "+pidFile+")\n", out)
}

// TestZkServerWhosePortIsInUse fails to start, though somebody answers on the port.
func TestZkServerWhosePortIsInUse(t *testing.T) {
	t.Parallel()
	addr := answering(t, map[string]string{"ruok": "imok"})
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	i := install(t, "clientPort="+port+"\n")
	code, out, stderr := i.sh(t, nil, "zkServer.sh", "start")
	require.Equal(t, 1, code)
	require.Equal(t, "Starting zookeeper ... FAILED TO START\n", out)
	require.Contains(t, stderr, "address already in use")
	require.Zero(t, i.pid())
}

// TestZkServerAndAStranger: a number that was left behind may belong to another program by now, which is left alone.
func TestZkServerAndAStranger(t *testing.T) {
	i := install(t, "")
	stranger := exec.Command("sleep", "1000")
	require.NoError(t, stranger.Start())
	ended := make(chan error, 1)
	go func() { ended <- stranger.Wait() }()
	t.Cleanup(func() { _ = stranger.Process.Kill() })
	file := filepath.Join(i.dir, "zk.pid")
	require.NoError(t, os.WriteFile(file, fmt.Append(nil, stranger.Process.Pid), 0o600))
	code, out, stderr := i.sh(t, []string{"ZOOPIDFILE=" + file}, "zkServer.sh", "stop")
	require.Zero(t, code)
	require.Equal(t, "Stopping zookeeper ... STOPPED\n", out)
	require.Contains(t, stderr, fmt.Sprintf("process %d is another program, and is left alone", stranger.Process.Pid))
	require.NoFileExists(t, file)
	require.NoError(t, stranger.Process.Kill(), "it is still there")
	var exit *exec.ExitError
	require.ErrorAs(t, <-ended, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "and nobody else has ended it")
}

// TestZkServerTakesFilesForBash: ZooKeeper's scripts are run by bash, and so may be what they source.
func TestZkServerTakesFilesForBash(t *testing.T) {
	i := install(t, "")
	file := filepath.Join(filepath.Dir(i.cfg), "zookeeper-env.sh")
	require.NoError(t, os.WriteFile(file, []byte("logs=(/a /from/bash)\nif [[ $USER == u ]]; then ZOO_LOG_DIR=${logs[1]}; fi\n"), 0o600))
	code, out, stderr := i.sh(t, nil, "zkServer.sh", "print-cmd")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "/from/bash/zookeeper-u-server-h.out")
}

func TestZkServerSays(t *testing.T) {
	i := install(t, "")
	other := filepath.Join(i.dir, "other")
	require.NoError(t, os.Mkdir(other, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "java.env"), []byte("ZOO_LOG_DIR=/from/java.env\n"), 0o600))
	tests := []struct {
		name    string
		environ []string
		args    []string
		code    int
		stdout  string
		stderr  string
	}{
		{"version", nil, []string{"version"}, 0, "Apache ZooKeeper, version 3.", ""},
		{"print-cmd", nil, []string{"print-cmd"}, 0, "\" server -Dzabra.stands.in.for=org.apache.zookeeper.server.quorum.QuorumPeerMain \"" + i.cfg + "\" > \"" + i.dir + "/logs/zookeeper-u-server-h.out\" 2>&1 < /dev/null\n", ""},
		{"log level", []string{"ZOO_LOG4J_PROP=DEBUG,CONSOLE"}, []string{"print-cmd"}, 0, " --log-level=debug ", ""},
		{"no autocreate", []string{"ZOO_DATADIR_AUTOCREATE_DISABLE=1"}, []string{"print-cmd"}, 0, " -Dzookeeper.datadir.autocreate=false ", ""},
		{"no folder", []string{"ZOO_DATADIR_AUTOCREATE_DISABLE=1"}, []string{"start"}, 1, "ZooKeeper data directory is missing at " + i.dir + "/data fix the path or run initialize\n", ""},
		{"another folder", nil, []string{"--config", other, "print-cmd"}, 0, "/from/java.env/zookeeper-u-server-h.out", "Using config: " + other + "/zoo.cfg"},
		{"another name", nil, []string{"print-cmd", "a.cfg"}, 0, "/conf/a.cfg", "Using config: " + i.dir + "/conf/a.cfg"},
		{"another path", nil, []string{"print-cmd", "./a.cfg"}, 0, "\"./a.cfg\"", "Using config: ./a.cfg"},
		{"another name by variable", []string{"ZOOCFG=b.cfg"}, []string{"print-cmd"}, 0, "/conf/b.cfg", ""},
		{"folder that is none", nil, []string{"--config", "/nowhere", "start"}, 1, "", "Error: /nowhere is not a folder"},
		{"nothing", nil, nil, 0, "", "{start|start-foreground|stop|version|restart|status|print-cmd}"},
		{"nonsense", nil, []string{"nonsense"}, 0, "", "Usage: "},
		{"without dataDir", nil, []string{"stop", other + "/java.env"}, 1, "", "dataDir is not set in " + other + "/java.env"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, stderr := i.sh(t, tt.environ, "zkServer.sh", tt.args...)
			require.Equal(t, tt.code, code, stderr)
			require.Contains(t, out, tt.stdout)
			require.Contains(t, stderr, tt.stderr)
		})
	}
}

// TestZkCliAndZkCleanup call the verbs with the arguments and folders that are meant, whatever those do with them.
func TestZkCliAndZkCleanup(t *testing.T) {
	i := install(t, "")
	program := filepath.Join(i.dir, "says")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done\nexit 7\n"), 0o755))
	environ := []string{"ZABRA=" + program}
	code, out, _ := i.sh(t, environ, "zkCli.sh", "-server", "a:1", "get", "/a b")
	require.Equal(t, 7, code)
	require.Equal(t, "cli\n-server\na:1\nget\n/a b\n", out)
	code, out, _ = i.sh(t, environ, "zkCleanup.sh", "-n", "5")
	require.Equal(t, 7, code)
	require.Equal(t, "purge\n"+i.dir+"/data\n"+i.dir+"/data\n-n\n5\n", out)

	two := install(t, "dataLogDir=/log dir\n")
	_, out, _ = two.sh(t, environ, "zkCleanup.sh", "-n", "5")
	require.Equal(t, "purge\n/log dir\n"+two.dir+"/data\n-n\n5\n", out)
	code, _, stderr := two.sh(t, append(environ, "ZOOCFG=none.cfg"), "zkCleanup.sh")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "dataDir is not set in ")
}

// TestZkCleanupPurges goes through to the real verb.
func TestZkCleanupPurges(t *testing.T) {
	i := install(t, "")
	code, out, stderr := i.sh(t, nil, "zkCleanup.sh", "-n", "2")
	require.Equal(t, 1, code)
	require.Contains(t, out+stderr, "count should be greater than or equal to 3")
	require.NoError(t, os.MkdirAll(filepath.Join(i.dir, "data", "version-2"), 0o755))
	code, out, stderr = i.sh(t, nil, "zkCleanup.sh", "-n", "3")
	require.Zero(t, code, out+stderr)
}
