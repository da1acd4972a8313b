package server_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	"zabra/wire"
)

// startPurging starts a server that has old snapshots to purge, on a disk that fails as told.
func startPurging(t *testing.T, fail func(op vfs.Op) error) *shell {
	t.Helper()
	cfg := shellConfig(t, func(cfg *conf.Config) { cfg.SnapCount = 4 })
	first := startShell(t, cfg)
	c, _ := first.session()
	for i := 0; len(snapshotsOf(t, cfg)) < 6; i++ {
		c.send(createFrame(int32(i+1), fmt.Sprintf("/n%d", i), nil))
		c.reply(int32(i+1), wire.CodeOK)
	}
	first.shutdown()

	cfg.AutopurgePurgeIntervalHours = 1
	core, logs := observer.New(zapcore.DebugLevel)
	s := &shell{t: t, cfg: cfg, logs: logs, disk: vfs.NewFault(vfs.OS{}), served: make(chan error, 1)}
	s.disk.Inject(fail)
	var err error
	s.Server, err = server.New(cfg, server.Options{Log: zap.New(core), FS: s.disk, Version: "test"})
	require.NoError(t, err)
	go func() { s.served <- s.Serve() }()
	t.Cleanup(func() { s.Close() })
	return s
}

// A disk that fails beside the log ends the server at once, without a write that would meet it.
func TestFailureInTheBackgroundEndsTheServer(t *testing.T) {
	var removed atomic.Bool
	s := startPurging(t, func(op vfs.Op) error {
		isSnapshot := strings.HasPrefix(filepath.Base(op.Name), "snapshot.")
		if op.Kind == vfs.KindRemove && isSnapshot {
			removed.Store(true)
		}
		if op.Kind == vfs.KindSyncDir && removed.Load() {
			return syscall.EIO
		}
		return nil
	})
	err := s.ended()
	require.ErrorIs(t, err, syscall.EIO)
	require.False(t, errors.Is(err, server.ErrServerClosed))
	require.Equal(t, 1, s.logs.FilterMessageSnippet("Severe unrecoverable error").Len())
	require.Zero(t, s.logs.FilterMessageSnippet("next attempt").Len())
}

// A file that cannot be deleted is left for the next purge.
func TestFailedRemovalDoesNotEndTheServer(t *testing.T) {
	s := startPurging(t, func(op vfs.Op) error {
		if op.Kind == vfs.KindRemove && strings.HasPrefix(filepath.Base(op.Name), "snapshot.") {
			return syscall.EPERM
		}
		return nil
	})
	until(t, "the purge gives up", func() bool { return s.logs.FilterMessageSnippet("next attempt").Len() == 1 })
	c, _ := s.session()
	c.send(createFrame(1, "/after", nil))
	c.reply(1, wire.CodeOK)
	s.shutdown()
	require.Zero(t, s.logs.FilterMessageSnippet("Severe unrecoverable error").Len())
}

// What fails in the last sync is told by Shutdown itself, and not only beside the sign of a normal end.
func TestFailureInTheLastSync(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c, _ := s.session()
	c.send(createFrame(1, "/a", nil))
	c.reply(1, wire.CodeOK)
	s.disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindTruncate && strings.Contains(op.Name, "log.") {
			return syscall.EIO
		}
		return nil
	})
	err := s.Shutdown(context.Background())
	require.ErrorIs(t, err, syscall.EIO)
	require.False(t, errors.Is(err, server.ErrServerClosed))
}
