package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/bench"
	"zabra/server/servertest"
	"zabra/wire"
)

func TestBench(t *testing.T) {
	server := servertest.Start(t)
	args := []string{"bench", "set", "--servers", server.Addr() + "," + server.Addr(), "--sessions", "4", "--nodes", "10", "--warmup", "0s", "--count", "50"}

	code, stdout, stderr := execute(append(args, "--format", "json")...)
	require.Equal(t, exitOK, code, stderr)
	require.Empty(t, stderr, "progress is for terminals")
	require.Equal(t, 1, strings.Count(stdout, "\n"))
	var res bench.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &res))
	require.EqualValues(t, 50, res.Operations)
	require.Equal(t, 4, res.Sessions)
	require.Len(t, res.Servers, 2)

	for format, want := range map[string]string{"text": "operations  50 in", "markdown": "| set, 4 sessions x 16, 10 nodes of 100 bytes |"} {
		code, stdout, stderr = execute(append(args, "--format", format)...)
		require.Equal(t, exitOK, code, stderr)
		require.Contains(t, stdout, want)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"", exitConfig, "accepts 1 arg"},
		{"nonsense", exitConfig, "choose one of get, set"},
		{"get --sessions 0 --outstanding 0", exitConfig, "--sessions 0: it must be between"},
		{"get --sessions 0 --outstanding 0", exitConfig, "--outstanding 0: it must be between"},
		{"get --format xml", exitConfig, "choose one of text, json, markdown"},
		{"get --sessions many", exitConfig, "--sessions"},
		{"get --servers 127.0.0.1:1", exitFailure, "connection refused"},
		{"get --pid 999999999", exitFailure, "--pid 999999999"},
	} {
		code, stdout, stderr := execute(append([]string{"bench"}, strings.Fields(tc.args)...)...)
		require.Equal(t, tc.code, code, tc.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, tc.want)
	}
}

// Ctrl-C ends the measurement, with a result and without the nodes.
func TestBenchInterrupted(t *testing.T) {
	server := servertest.Start(t)
	cmd := program(t, "bench", "set", "--servers", server.Addr(), "--nodes", "1", "--duration", "1h", "--warmup", "0s", "--sessions", "2", "--format", "json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	c := server.Client(t)
	loaded := func() bool {
		stat, err := c.Exists(t.Context(), "/zabra-bench/nodes/000000", false)
		return err == nil && stat.Version > 0
	}
	require.Eventually(t, loaded, deadline, time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, cmd.Wait(), stderr.String())
	_, err := c.Exists(t.Context(), "/zabra-bench", false)
	require.ErrorIs(t, err, wire.CodeNoNode)
	var res bench.Result
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &res))
	require.Positive(t, res.Operations)
	require.Empty(t, stderr.String())
}

// The nodes of others are refused, with what to do.
func TestBenchForeignRoot(t *testing.T) {
	server := servertest.Start(t)
	c := server.Client(t)
	for _, path := range []string{"/app", "/app/folders", "/app/folders/theirs"} {
		_, err := c.Create(t.Context(), path, []byte("data"), wire.OpenACL, 0)
		require.NoError(t, err)
	}
	code, stdout, stderr := execute("bench", "children", "--servers", server.Addr(), "--root", "/app", "--count", "5", "--warmup", "0s")
	require.Equal(t, exitFailure, code)
	require.Empty(t, stdout)
	require.Equal(t, "zabra bench: preparing: /app/folders is not from zabra bench, nothing was changed: choose a --root that does not exist, or is empty\n", stderr)
	_, err := c.Exists(t.Context(), "/app/folders/theirs", false)
	require.NoError(t, err)
}

func TestBenchProgress(t *testing.T) {
	var b bytes.Buffer
	show := progressOn(&b)
	show(bench.Progress{Seconds: -1})
	show(bench.Progress{Seconds: 2.01, Operations: 5000, PerSecond: 2500.4, Errors: 3})
	require.Equal(t, "\r\x1b[K     -1s  warming up\r\x1b[K      2s  5000 operations, 2500 per second, 3 errors", b.String())
}
