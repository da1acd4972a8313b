package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/server/client"
	"zabra/wire"
)

// memberConfig is that of an ensemble of one, with the election port given.
func memberConfig(t *testing.T, electionPort int) *conf.Config {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("7\n"), 0o600))
	file := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("dataDir=%s\nclientPort=3\nclientPortAddress=127.0.0.1\ntickTime=500\ninitLimit=5\nsyncLimit=2\nstandaloneEnabled=false\n"+
		"admin.enableServer=false\nelectionPortBindRetry=1\nserver.7=127.0.0.1:%d:%d\n", filepath.ToSlash(dir), closedPort(t), electionPort)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cfg, err := load([]string{file}, nil)
	require.NoError(t, err)
	cfg.ClientPort = closedPort(t)
	return cfg
}

// closedPort returns a port of the loopback interface that was free a moment ago.
func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A configuration with servers makes a member of an ensemble, which a signal stops in an orderly way.
func TestMemberRunsUntilASignal(t *testing.T) {
	cfg := memberConfig(t, closedPort(t))
	core, logs := observer.New(zap.InfoLevel)
	signals := make(chan os.Signal, 2)
	stopped := make(chan error, 1)
	go func() { stopped <- runServer(cfg, zap.New(core), time.Now(), signals, reloading{}) }()
	require.Eventually(t, func() bool { return logs.FilterMessage("serving clients").Len() == 1 }, 30*time.Second, time.Millisecond)
	c, err := client.Dial(t.Context(), cfg.ClientAddr(), client.Options{})
	require.NoError(t, err)
	_, err = c.Create(t.Context(), "/a", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	c.Abandon()
	signals <- syscall.SIGTERM
	require.NoError(t, <-stopped)
	require.Equal(t, 1, logs.FilterMessage("Starting quorum peer, myid=7").Len())
	require.Equal(t, 1, logs.FilterMessageSnippet("LEADING - LEADER ELECTION TOOK - ").Len())
}

// An election port in use has an exit code of its own.
func TestElectionPortInUseExitsWith14(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	err = runServer(memberConfig(t, l.Addr().(*net.TCPAddr).Port), zap.NewNop(), time.Now(), nil, reloading{})
	var code *exit
	require.True(t, errors.As(err, &code))
	require.Equal(t, 14, code.code)
	require.Contains(t, code.stderr, "election address")
}
