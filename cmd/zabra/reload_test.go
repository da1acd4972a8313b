package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/server/client"
	"zabra/wire"
)

// TestReload: at SIGHUP a running server takes what can change, says what cannot, and keeps its sessions.
func TestReload(t *testing.T) {
	port, dir := freePort(t), t.TempDir()
	text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nnio.numWorkerThreads=2\n", dir, port)
	cfg := writeFile(t, "zoo.cfg", text+"4lw.commands.whitelist=conf\n")
	r, _ := launch(t, program(t, "server", cfg), "] - serving {")
	c, err := client.Dial(t.Context(), fmt.Sprint("127.0.0.1:", port), client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	_, err = c.Create(t.Context(), "/e", nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	require.Contains(t, ask(t, port, "ruok"), "is not executed because it is not in the whitelist")
	reload := func(text, line string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(cfg, []byte(text), 0o600))
		require.NoError(t, r.cmd.Process.Signal(syscall.SIGHUP))
		return r.await(t, line)
	}

	// A word more, another limit, and a tick that has to wait.
	changed := text + "4lw.commands.whitelist=conf, ruok\nmaxClientCnxns=8\ntickTime=1234\n"
	line := reload(changed, "configuration loaded again {")
	require.Contains(t, line, `"taken": ["maxClientCnxns: 60 -> 8", "4lw.commands.whitelist: conf -> conf, ruok"]`)
	line = r.await(t, "changed, takes effect at a restart: tickTime, minSessionTimeout, maxSessionTimeout {")
	require.Contains(t, line, `"tickTime: 3000 -> 1234"`)
	require.Equal(t, "imok", ask(t, port, "ruok"))
	require.Contains(t, ask(t, port, "conf"), "tickTime=3000\nmaxClientCnxns=8\n")
	requireLimit(t, port, 8)

	// All faults are told, and nothing changes.
	reload(text+"4lw.commands.whitelist=*\nclientPort=x\nmaxClientCnxns=many\n", `clientPort: For input string: "x"`)
	r.await(t, `maxClientCnxns: For input string: "many"`)
	r.await(t, "the configuration has faults, so nothing has changed")
	require.Equal(t, "imok", ask(t, port, "ruok"))
	require.Contains(t, ask(t, port, "srst"), "is not executed because it is not in the whitelist")
	requireLimit(t, port, 8)

	// What was not taken is told again, and nothing else. Then the log is switched on.
	reload(changed, "configuration loaded again; it has nothing new that a running server takes")
	r.await(t, "changed, takes effect at a restart: tickTime, minSessionTimeout, maxSessionTimeout {")
	reload(strings.Replace(changed, "tickTime=1234\n", "root.logger=DEBUG, CONSOLE\n", 1), `"taken": ["root.logger: nothing -> debug"]`)
	require.Equal(t, "imok", ask(t, port, "ruok"))
	require.Contains(t, r.await(t, "Processing ruok command"), "- DEBUG [")

	stat, err := c.Exists(t.Context(), "/e", false)
	require.NoError(t, err)
	require.Equal(t, c.Session(), stat.EphemeralOwner)
	require.NoError(t, r.stop(t, syscall.SIGTERM))
}

// requireLimit requires that a server that has one client lets as many more in as maxClientCnxns says.
func requireLimit(t *testing.T, port, maxClientCnxns int) {
	t.Helper()
	require.Eventually(t, func() bool { return letIn(port, maxClientCnxns+3) == maxClientCnxns-1 }, deadline, time.Millisecond,
		"a connection of a word may be on its way out for a moment, not for long")
}

// letIn counts which of n connections that say nothing are not closed at once.
func letIn(port, n int) (count int) {
	var conns []net.Conn
	for range n {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue // reset before it was connected
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		if netErr, ok := err.(net.Error); ok && netErr.Timeout() {
			count++
		}
	}
	return count
}

// TestReloadKeepsTheLevelOfTheCommandLine: --log-level counts more than the configuration.
func TestReloadKeepsTheLevelOfTheCommandLine(t *testing.T) {
	file := writeFile(t, "zoo.cfg", "dataDir=/d\nclientPort=2181\nroot.logger=WARN\n")
	for option, want := range map[string]string{"": "warn", "debug": "debug"} {
		flags := serverFlags{logLevel: option}
		cfg, err := flags.load([]string{file})
		require.NoError(t, err)
		require.Equal(t, want, levelOf(cfg).String())
	}
	require.Equal(t, "info", levelOf(&conf.Config{}).String())
	_, err := newLevel("loud")
	require.EqualError(t, err, `--log-level: "loud" is not debug, info, warn or error`)
}

// TestLevelOfTheConfiguration: zookeeper.root.logger counts from the start on, and what has no effect is named once.
func TestLevelOfTheConfiguration(t *testing.T) {
	port := freePort(t)
	cfg := writeFile(t, "zoo.cfg", fmt.Sprintf("dataDir=%s\nclientPort=%d\nnio.numWorkerThreads=2\nflushDelay=7\n", t.TempDir(), port))
	r, line := launch(t, program(t, "server", "-Dzookeeper.root.logger=TRACE,CONSOLE", cfg), "some keys of the configuration have no effect in this version {")
	require.Contains(t, line, `"keys": ["nio.numWorkerThreads", "flushDelay"]`)
	r.await(t, "] - serving {")
	require.Contains(t, ask(t, port, "srvr"), "Mode: standalone")
	require.Contains(t, r.await(t, "Processing srvr command"), "- DEBUG [")
	require.NoError(t, r.stop(t, syscall.SIGTERM))
}

// TestTerminalGoesAway: SIGHUP means a reload on a terminal, too, but when the terminal is gone the server stops.
func TestTerminalGoesAway(t *testing.T) {
	cmd := program(t, "server", fmt.Sprint(freePort(t)), "data")
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	watchdog := time.AfterFunc(deadline, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	await := func(text string) {
		t.Helper()
		var all strings.Builder
		for buf := make([]byte, 4096); !strings.Contains(all.String(), text); {
			n, err := terminal.Read(buf)
			all.Write(buf[:n])
			require.NoError(t, err, "%s is not in %s", text, &all)
		}
	}
	await("serving {")
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	await("configuration loaded again")
	require.NoError(t, terminal.Close()) // the system sends SIGHUP
	require.NoError(t, cmd.Wait(), "a graceful stop")
}

// TestReloadByCommand: the admin server does what SIGHUP does, and tells what came of it.
func TestReloadByCommand(t *testing.T) {
	port, admin := freePort(t), freePort(t)
	text := fmt.Sprintf("dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.serverAddress=127.0.0.1\nadmin.serverPort=%d\n", t.TempDir(), port, admin)
	cfg := writeFile(t, "zoo.cfg", text)
	r, _ := launch(t, program(t, "server", cfg), fmt.Sprintf("Started AdminServer on address 127.0.0.1, port %d and command URL /commands", admin))
	reload := func(more string) (int, string) {
		t.Helper()
		require.NoError(t, os.WriteFile(cfg, []byte(text+more), 0o600))
		resp, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/commands/reload", admin), "", nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	status, answer := reload("maxCnxns=9\ntickTime=1234\n")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `{
  "taken" : [ "maxCnxns: 0 -> 9" ],
  "needs_restart" : [ "tickTime: 3000 -> 1234", "minSessionTimeout: 6000 -> 2468", "maxSessionTimeout: 60000 -> 24680" ],
  "command" : "reload",
  "error" : null
}`, answer)
	r.await(t, `"taken": ["maxCnxns: 0 -> 9"]`)
	status, answer = reload("maxClientCnxns=many\n")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, answer, `maxClientCnxns: For input string: \"many\"`)
	r.await(t, "the configuration has faults, so nothing has changed")
	require.NoError(t, r.stop(t, syscall.SIGTERM))
}
