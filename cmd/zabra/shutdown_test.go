package main

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/server"
	"zabra/server/client"
	"zabra/wire"
)

// started serves on a disk that fails the last sync of the log once failing is set.
func started(t *testing.T) (s *server.Server, stopped chan error, failing *atomic.Bool) {
	t.Helper()
	cfg := conf.Default()
	cfg.DataDir, cfg.ClientPort, cfg.ClientPortAddress = t.TempDir(), 0, "127.0.0.1"
	cfg.Admin.Enabled = false
	failing = new(atomic.Bool)
	disk := vfs.NewFault(vfs.OS{})
	disk.Inject(func(op vfs.Op) error {
		if failing.Load() && op.Kind == vfs.KindSync && strings.Contains(op.Name, "log.") {
			return syscall.EIO
		}
		return nil
	})
	s, err := server.New(cfg, server.Options{FS: disk})
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	stopped = make(chan error, 1)
	go func() { stopped <- s.Serve() }()
	c, err := client.Dial(t.Context(), s.Addr().String(), client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	_, err = c.Create(t.Context(), "/a", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	return s, stopped, failing
}

func TestShutdownIsClean(t *testing.T) {
	s, stopped, _ := started(t)
	require.NoError(t, shutdown(s, stopped, zap.NewNop()))
}

// A disk that fails in the last sync is a failure, though the server was asked to stop, and the exit code says so.
func TestShutdownFailsWithTheDisk(t *testing.T) {
	s, stopped, failing := started(t)
	failing.Store(true)
	core, logs := observer.New(zapcore.ErrorLevel)
	err := ended(shutdown(s, stopped, zap.NewNop()), zap.New(core))
	var code *exit
	require.ErrorAs(t, err, &code)
	require.Equal(t, exitFailure, code.code)
	require.Contains(t, code.stderr, syscall.EIO.Error())
	require.Equal(t, 1, logs.Len())
}
