package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// Without a terminal there is a line for each round, and a server that lives for the run only.
func TestLabLock(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for mode, want := range map[string]string{
		"queue": "    2  released       c3           5        1      1        2       0 ",
		"herd":  "        5        5      5       10       8 ",
	} {
		code, stdout, stderr := execute("lab", "lock", "--mode", mode, "--waiters", "5", "--rounds", "2", "--hold", "0s", "--session-timeout", "30s")
		require.Equal(t, exitOK, code, stderr)
		require.Empty(t, stderr)
		lines := strings.Split(stdout, "\n")
		require.Regexp(t, `^A lock with 5 waiters, mode `+mode+`, server 127\.0\.0\.1:\d+$`, lines[0])
		require.Contains(t, lines[3], want)
		require.NotContains(t, stdout, "\x1b")
		require.Contains(t, stdout, "counted by     the server: mntr of 127.0.0.1:")
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// On a server that is there already, with kills, for programs.
func TestLabLockJSON(t *testing.T) {
	s := servertest.Start(t)
	code, stdout, stderr := execute("lab", "lock", "--server", s.Addr(), "--waiters", "3", "--rounds", "2", "--hold", "0s",
		"--session-timeout", "2s", "--kill-holder-every", "2", "--kill-waiter-every", "2", "--json")
	require.Equal(t, exitOK, code, stderr)
	var causes []string
	for line := range strings.Lines(stdout) {
		var v struct {
			Type, Cause   string
			Round         int
			Notifications *int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &v))
		require.NotNil(t, v.Notifications)
		causes = append(causes, v.Type+" "+v.Cause)
	}
	require.Equal(t, []string{"round released", "round waiter killed", "round holder killed", "summary "}, causes)
	children, err := s.Client(t).GetChildren(t.Context(), "/", false)
	require.NoError(t, err)
	require.Equal(t, []string{"zookeeper"}, children)
}

func TestLabRefuses(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", exitConfig, ""}, // with its help
		{"race", exitConfig, `unknown command "race"`},
		{"lock now", exitConfig, "unknown command"},
		{"lock --waiters 0 --mode mob", exitConfig, "--waiters 0: it must be between 1 and 1000"},
		{"lock --waiters 0 --mode mob", exitConfig, `--mode "mob": choose one of queue, herd`},
		{"lock --waiters many", exitConfig, "--waiters"},
		{"lock --rounds 0", exitConfig, "--rounds 0: it must be between 1 and 100000"},
		{"lock --hold 2m", exitConfig, "--hold 2m0s: it must be between 0s and 1m0s"},
		{"lock --session-timeout 1ms", exitConfig, "--session-timeout 1ms: it must be between 200ms and 1m0s"},
		{"lock --kill-holder-every -1", exitConfig, "--kill-holder-every -1: it must be between 0 and 100000"},
		{"lock --server here", exitConfig, `--server "here": it must be HOST:PORT, of one server`},
		{"lock --server 127.0.0.1:1", exitFailure, "connection refused"},
		{"lock --metrics http://127.0.0.1:7000/metrics", exitConfig, "--metrics: it belongs to a --server"},
		{"lock --server 127.0.0.1:1 --metrics 127.0.0.1:7000", exitConfig, `--metrics "127.0.0.1:7000": it must be a URL`},
	} {
		code, _, stderr := execute(append([]string{"lab"}, strings.Fields(tc.args)...)...)
		require.Equal(t, tc.code, code, tc.args)
		require.Contains(t, stderr, tc.want)
	}
}

// On a terminal the board is drawn in place, and obeys keys.
func TestLabLockOnATerminal(t *testing.T) {
	cmd := program(t, "lab", "lock", "--waiters", "4", "--rounds", "1000", "--session-timeout", "2s", "--hold", "50ms")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 100})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		tty.Close()
	})
	late := time.AfterFunc(deadline, func() { _ = cmd.Process.Kill() }) // whatever is waited for does not come then
	defer late.Stop()
	var text strings.Builder
	in := bufio.NewReader(tty)
	expect := func(want string) {
		t.Helper()
		for !strings.Contains(text.String(), want) {
			b, err := in.ReadByte()
			require.NoError(t, err, "%q does not come: %q", want, text.String())
			text.WriteByte(b)
		}
		text.Reset()
	}
	press := func(key string) {
		t.Helper()
		_, err := tty.WriteString(key)
		require.NoError(t, err)
	}
	expect("A lock with 4 waiters, mode queue, server 127.0.0.1:")
	expect("    3  released ")
	expect("\x1b[") // back to the top
	expect("k kills a waiter   h kills the holder   space pauses   q quits")
	press(" ")
	expect("; paused")
	press("k")
	expect(", a waiter, is killed: its connection is cut and its session is not closed.")
	expect("  waiter killed  - ")
	press("h")
	expect(", the holder, is killed: its connection is cut")
	expect("  holder killed  c")
	press(" ")
	expect("  released  ")
	press("q")
	expect("killed: 1 as holder, 1 as waiter\r\n")
	expect("counted by     the server: mntr of 127.0.0.1:")
	require.NoError(t, cmd.Wait())
}

// A signal ends it like the key does.
func TestLabLockInterrupted(t *testing.T) {
	cmd := program(t, "lab", "lock", "--waiters", "2", "--rounds", "100000", "--hold", "1ms")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	var last string
	for lines.Scan() {
		last = lines.Text()
		if strings.HasPrefix(last, "    2  released ") {
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		}
	}
	require.Contains(t, last, "counted by     the server")
	require.NoError(t, cmd.Wait())
}
