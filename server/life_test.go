package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/server"
	"zabra/wire"
)

const (
	stageConfig  = server.StageConfig
	stageDataDir = server.StageDataDir
	stagePort    = server.StagePort
)

func requireStartError(t *testing.T, cfg *conf.Config, stage server.Stage) {
	t.Helper()
	_, err := server.New(cfg, server.Options{})
	var start *server.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, stage, start.Stage, "%v", err)
}

// Every way to end a server leaves no goroutine behind and gives the data directory back.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	cfg := shellConfig(t, func(cfg *conf.Config) { cfg.AutopurgePurgeIntervalHours = 1 })
	for name, end := range map[string]func(s *shell){
		"close": func(s *shell) {
			require.NoError(t, s.Close())
			require.NoError(t, s.Close())
			require.ErrorIs(t, s.ended(), server.ErrServerClosed)
		},
		"shutdown":           func(s *shell) { s.shutdown() },
		"shutdown and close": func(s *shell) { s.shutdown(); require.NoError(t, s.Close()) },
		"shutdown without time": func(s *shell) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			require.ErrorIs(t, s.Shutdown(ctx), context.Canceled)
			require.ErrorIs(t, s.ended(), server.ErrServerClosed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startShell(t, cfg)
			idle := s.dial()
			established, _ := s.session()
			word := s.dial()
			word.send([]byte("ru"))
			end(s)
			for _, c := range []*wireConn{idle, established, word} {
				c.gone()
				c.Close()
			}
			goleak.VerifyNone(t, before)
		})
	}
}

func TestNeverServed(t *testing.T) {
	before := goleak.IgnoreCurrent()
	cfg := shellConfig(t)
	for _, end := range []func(s *server.Server) error{
		(*server.Server).Close,
		func(s *server.Server) error { return s.Shutdown(context.Background()) },
	} {
		s, err := server.New(cfg, server.Options{})
		require.NoError(t, err)
		require.NoError(t, end(s))
		require.ErrorIs(t, s.Serve(), server.ErrServerClosed)
	}
	goleak.VerifyNone(t, before)
}

func TestNoClientPort(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.ClientPort, cfg.ClientPortAddress = conf.Unset, "" }))
	require.Nil(t, s.Addr())
	s.shutdown()
}

// Shutdown answers everything that was read, ends the connections in an orderly way, and keeps sessions for the next
// start.
func TestShutdownWithRequestsInFlight(t *testing.T) {
	cfg := shellConfig(t)
	s := startShell(t, cfg)
	// Syncs take long enough that much is in flight.
	s.disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindSyncData {
			time.Sleep(2 * time.Millisecond)
		}
		return nil
	})
	c, session := s.session()
	const n = 20_000
	go func() {
		for i := range n {
			if _, err := c.Write(createFrame(int32(i+1), fmt.Sprintf("/n%05d", i), []byte("x"))); err != nil {
				return
			}
		}
	}()
	c.reply(1, wire.CodeOK)
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), shellWaitMax)
		defer cancel()
		down <- s.Shutdown(ctx)
	}()
	answered := 1
	for {
		body, err := readFrame(c)
		if err != nil {
			break
		}
		answered++
		require.NotEmpty(t, body)
	}
	require.NoError(t, <-down)
	require.ErrorIs(t, s.ended(), server.ErrServerClosed)

	s = startShell(t, cfg)
	again, resp := s.session(session)
	require.Equal(t, session.SessionID, resp.SessionID)
	again.send(requestFrame(1, wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte("/")}))
	body := string(again.reply(1, wire.CodeOK))
	for i := range answered {
		require.Contains(t, body, fmt.Sprintf("n%05d", i))
	}
	// What was carried out was answered.
	require.Equal(t, answered, strings.Count(body, "n0")+strings.Count(body, "n1"), "answered and present")
}

func readFrame(c *wireConn) ([]byte, error) {
	var head [4]byte
	if _, err := readFull(c, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, int(head[0])<<24|int(head[1])<<16|int(head[2])<<8|int(head[3]))
	_, err := readFull(c, body)
	return body, err
}

func readFull(c *wireConn, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = c.Read(b[n:])
		n += k
	}
	if n == len(b) {
		err = nil
	}
	return n, err
}

// A disk that fails ends the server: it says what to do, answers nothing that may be lost, and Serve returns the reason.
func TestDiskFailureEndsTheServer(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.KindSyncData, vfs.KindWrite} {
		t.Run(kind.String(), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			cfg := shellConfig(t)
			s := startShell(t, cfg)
			c, session := s.session()
			c.send(createFrame(1, "/a", nil))
			c.reply(1, wire.CodeOK)
			var failing atomic.Bool
			s.disk.Inject(func(op vfs.Op) error {
				if failing.Load() && op.Kind == kind && strings.Contains(op.Name, "log.") {
					return syscall.EIO
				}
				return nil
			})
			failing.Store(true)
			c.send(createFrame(2, "/b", nil))
			c.gone()
			err := s.ended()
			require.ErrorIs(t, err, syscall.EIO)
			require.False(t, errors.Is(err, server.ErrServerClosed))
			require.Equal(t, 1, s.logs.FilterMessageSnippet("Severe unrecoverable error").Len())
			c.Close()
			goleak.VerifyNone(t, before)

			s = startShell(t, cfg)
			again, resp := s.session(session)
			require.Equal(t, session.SessionID, resp.SessionID)
			again.send(getFrame(1, "/a"))
			again.reply(1, wire.CodeOK)
		})
	}
}

// A fresh directory has a snapshot before its first log; Apache's server would not start on it otherwise.
func TestFirstSnapshot(t *testing.T) {
	cfg := shellConfig(t)
	startShell(t, cfg)
	require.FileExists(t, filepath.Join(cfg.DataDir, "version-2", "snapshot.0"))
	logs, err := filepath.Glob(filepath.Join(cfg.DataDir, "version-2", "log.*"))
	require.NoError(t, err)
	require.Empty(t, logs)
}

func snapshotsOf(t *testing.T, cfg *conf.Config) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(cfg.DataDir, "version-2", "snapshot.*"))
	require.NoError(t, err)
	return names
}

// Snapshots are taken beside the running server; the next start builds on the newest.
func TestSnapshotsByCount(t *testing.T) {
	cfg := shellConfig(t, func(cfg *conf.Config) { cfg.SnapCount = 20 })
	s := startShell(t, cfg)
	c, _ := s.session()
	for i := range 100 {
		c.send(createFrame(int32(i+1), fmt.Sprintf("/n%d", i), []byte("x")))
		c.reply(int32(i+1), wire.CodeOK)
	}
	until(t, "two snapshots more", func() bool { return len(snapshotsOf(t, cfg)) >= 3 })
	s.shutdown()
	s = startShell(t, cfg)
	require.Equal(t, 1+4+100, nodesOf(s))
	entry := s.logs.FilterMessage("data loaded").All()[0]
	require.Less(t, entry.ContextMap()["replayed"], int64(100))
}

// nodesOf counts as ZooKeeper does.
func nodesOf(s *shell) int { return s.Stats().Nodes + 1 }

// A snapshot that the disk does not take ends the server, like every failure of the disk. Nothing is lost by it.
func TestSnapshotFailure(t *testing.T) {
	cfg := shellConfig(t, func(cfg *conf.Config) { cfg.SnapCount = 20 })
	s := startShell(t, cfg)
	s.disk.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindCreate && strings.Contains(op.Name, "snapshot") {
			return syscall.ENOSPC
		}
		return nil
	})
	c, _ := s.session()
	answered := 0
	for {
		if _, err := c.Write(createFrame(int32(answered+1), fmt.Sprintf("/n%d", answered), nil)); err != nil {
			break
		}
		if _, err := readFrame(c); err != nil {
			break
		}
		answered++
	}
	require.ErrorIs(t, s.ended(), syscall.ENOSPC)
	require.Equal(t, 1, s.logs.FilterMessageSnippet("Severe unrecoverable error").Len())
	require.Len(t, snapshotsOf(t, cfg), 1)
	s = startShell(t, cfg)
	require.GreaterOrEqual(t, nodesOf(s), 1+4+answered)
}

// A snapshot that disagrees with the settings is replaced at the start, since Apache's server could not load it.
func TestSnapshotFollowsTheSettings(t *testing.T) {
	cfg := shellConfig(t)
	s := startShell(t, cfg)
	c, _ := s.session()
	c.send(createFrame(1, "/a", nil))
	c.reply(1, wire.CodeOK)
	s.shutdown()
	sizes := map[int64]bool{}
	for _, set := range []func(){
		func() { cfg.DigestEnabled = false },
		func() { cfg.DigestEnabled, cfg.SerializeLastProcessedZxidEnabled = true, false },
		func() { cfg.SerializeLastProcessedZxidEnabled = true },
	} {
		set()
		s = startShell(t, cfg)
		require.Equal(t, 1, s.logs.FilterMessage("writing a snapshot before serving").Len())
		s.shutdown()
		info, err := os.Stat(filepath.Join(cfg.DataDir, "version-2", "snapshot.2"))
		require.NoError(t, err)
		require.False(t, sizes[info.Size()])
		sizes[info.Size()] = true

		s = startShell(t, cfg)
		require.Zero(t, s.logs.FilterMessage("writing a snapshot before serving").Len())
		s.shutdown()
	}
}

// Purging runs at the start and keeps what the setting says.
func TestPurgeAtStart(t *testing.T) {
	cfg := shellConfig(t, func(cfg *conf.Config) { cfg.SnapCount = 4 })
	s := startShell(t, cfg)
	c, _ := s.session()
	for i := 0; len(snapshotsOf(t, cfg)) < 6; i++ {
		c.send(createFrame(int32(i+1), fmt.Sprintf("/n%d", i), nil))
		c.reply(int32(i+1), wire.CodeOK)
	}
	s.shutdown()
	nodes := nodesOf(s)
	cfg.AutopurgePurgeIntervalHours = 1
	s = startShell(t, cfg)
	until(t, "the purge is done", func() bool { return s.logs.FilterMessage("Purge task completed.").Len() == 1 })
	require.Len(t, snapshotsOf(t, cfg), 3)
	s.shutdown()
	require.Equal(t, nodes, nodesOf(startShell(t, cfg)))
}
