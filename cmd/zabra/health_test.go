package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// answering is a server that knows a few words, and nothing else.
func answering(t *testing.T, answers map[string]string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			if n, _ := conn.Read(word); n == len(word) {
				_, _ = conn.Write([]byte(answers[string(word)]))
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestHealth(t *testing.T) {
	const waiting = "This ZooKeeper instance is not currently serving requests\n"
	tests := []struct {
		name, ruok, srvr string
		alive            string // "" for not alive
		ready            string
		why              string
	}{
		{"serving", "imok", "Zookeeper version: 3.9.5\nMode: leader\nNode count: 5\n", "imok\n", "Mode: leader\n", ""},
		{"without a quorum", "imok", waiting, "imok\n", "", "not serving: " + strings.TrimSpace(waiting)},
		{"word not allowed", "ruok is not executed because it is not in the whitelist.\n", "Mode: standalone\n", "alive (ruok is not in 4lw.commands.whitelist)\n", "Mode: standalone\n", ""},
		{"something else listens", "HTTP/1.1 400 Bad Request\r\n", "", "", "", "not serving: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr := answering(t, map[string]string{"ruok": tt.ruok, "srvr": tt.srvr})
			code, out, stderr := execute("health", "--server", addr)
			require.Equal(t, tt.alive, out)
			require.Equal(t, tt.alive == "", code == exitFailure, stderr)
			code, out, stderr = execute("health", "--ready", "--server", addr)
			require.Equal(t, tt.ready, out)
			require.Equal(t, tt.ready == "", code == exitFailure)
			require.Equal(t, tt.why, strings.TrimSuffix(stderr, "\n"))
		})
	}
}

func TestHealthOfNobody(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", closedPort(t))
	for _, args := range [][]string{{"health", "--server", addr}, {"health", "--ready", "--server", addr}} {
		code, out, stderr := execute(args...)
		require.Equal(t, exitFailure, code)
		require.Empty(t, out)
		require.Contains(t, stderr, "connection refused")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	code, _, stderr := execute("health", "--timeout=500ms", "--server", silent.Addr().String())
	require.Equal(t, exitFailure, code)
	require.Regexp(t, "no answer to ruok: |i/o timeout", stderr, "the second where half a second is too short to connect in")
	code, _, _ = execute("health", "--server", "a:1", "--config", "b")
	require.Equal(t, exitConfig, code)
	code, _, _ = execute("health", "--config", "/nowhere")
	require.Equal(t, exitConfig, code)
	code, _, stderr = execute("health", "--config", writeFile(t, "zoo.cfg", "dataDir=/d\n"))
	require.Equal(t, exitFailure, code)
	require.Equal(t, noClientPort+"\n", stderr)
}

// TestHealthOfAServer asks one of ours.
func TestHealthOfAServer(t *testing.T) {
	s := servertest.Start(t)
	host, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "zoo.cfg")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "dataDir=/d\nclientPort=%s\nclientPortAddress=%s\n", port, host), 0o600))

	code, out, _ := execute("health", "--config", file)
	require.Equal(t, exitOK, code)
	require.NotEmpty(t, out)
	code, out, _ = execute("health", "--ready", "--config", file)
	require.Equal(t, exitOK, code)
	require.Equal(t, "Mode: standalone\n", out)
	code, out, _ = execute("status", file)
	require.Equal(t, exitOK, code)
	require.Equal(t, fmt.Sprintf("Client port found: %s. Client address: %s. Client SSL: false.\nMode: standalone\n", port, host), out)
}

func TestStatusOfNobody(t *testing.T) {
	port := closedPort(t)
	code, out, stderr := execute("status", writeFile(t, "zoo.cfg", fmt.Sprintf("dataDir=/d\nclientPort=%d\nclientPortAddress=0.0.0.0\n", port)))
	require.Equal(t, exitFailure, code)
	require.Equal(t, fmt.Sprintf("Client port found: %d. Client address: localhost. Client SSL: false.\nError contacting service. It is probably not running.\n", port), out)
	require.Contains(t, stderr, "connection refused")

	code, _, stderr = execute("status", writeFile(t, "zoo.cfg", "dataDir=/d\n"))
	require.Equal(t, exitFailure, code)
	require.Equal(t, noClientPort+"\n", stderr)
	code, _, _ = execute("status", "/nowhere/zoo.cfg")
	require.Equal(t, exitFailure, code)
}
