package server_test

import (
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

// The words in these tests are matched by alert rules and runbooks of ZooKeeper's users. They must not change.

// loggedAs waits for a line of the log that matches the whole pattern, and returns its level.
func loggedAs(t *testing.T, logs *observer.ObservedLogs, pattern string) zapcore.Level {
	t.Helper()
	whole := regexp.MustCompile("^" + pattern + "$")
	var level zapcore.Level
	until(t, pattern, func() bool {
		return slices.ContainsFunc(logs.All(), func(e observer.LoggedEntry) bool {
			level = e.Level
			return whole.MatchString(e.Message)
		})
	})
	return level
}

// TestWordsOfAServer causes what alert rules and runbooks look for in the log of any server, and looks for it.
func TestWordsOfAServer(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.TickTimeMs, cfg.MinSessionTimeoutMs, cfg.MaxClientCnxns, cfg.EnforceQuota = 50, 100, 3, true
	}))
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, regexp.QuoteMeta("binding to port /"+s.Addr().String())))
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, `Snapshotting: 0x0 to .*/version-2/snapshot\.0`))
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, "Purge task is not scheduled."))

	c, session := s.session()
	const port = `127\.0\.0\.1:\d+`
	require.Equal(t, zapcore.DebugLevel, loggedAs(t, s.logs, `Established session `+session.SessionID.String()+` with negotiated timeout 30000 for client /`+port))

	// A slow disk.
	s.disk.Inject(func(op vfs.Op) error {
		if (op.Kind == vfs.KindSync || op.Kind == vfs.KindSyncData) && strings.Contains(op.Name, "log.") {
			time.Sleep(2 * time.Millisecond) // above the threshold that is set now
		}
		return nil
	})
	s.reconfigure(func(cfg *conf.Config) { cfg.FsyncWarningThresholdMs = 1 })
	c.send(createFrame(1, "/q", nil))
	c.reply(1, wire.CodeOK)
	require.Equal(t, zapcore.WarnLevel, loggedAs(t, s.logs, `fsync-ing the write ahead log in SyncThread:0 took \d+ms which will adversely effect operation latency\.`+
		`File size is \d+ bytes\. See the ZooKeeper troubleshooting guide.*`))
	s.disk.Inject(nil)

	// A quota.
	for i, node := range [][2]string{{"/zookeeper/quota/q", ""}, {"/zookeeper/quota/q/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"},
		{"/zookeeper/quota/q/zookeeper_stats", "count=0,bytes=0"}} {
		c.send(createFrame(int32(2+i), node[0], []byte(node[1])))
		c.reply(int32(2+i), wire.CodeOK)
	}
	c.send(createFrame(5, "/q/a", nil))
	c.reply(5, wire.CodeQuotaExceeded)
	require.Equal(t, zapcore.WarnLevel, loggedAs(t, s.logs, `Quota exceeded: /q \[current count=2, hardCountLimit=1\].*`))

	wordsOfConnections(t, s, c)

	// A session that ends for want of a sign of life.
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	short := wire.ConnectRequest{TimeoutMs: 100, HasReadOnly: true}
	short.Encode(&e)
	wire.EndFrame(&e, start)
	silent := s.dial()
	silent.send(e.Bytes())
	id := silent.connected().SessionID.String()
	require.NoError(t, silent.Close())
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, "Expiring session "+id+", timeout of 100ms exceeded"))

	// Purges, which also remove something.
	for range 5 {
		before := s.SnapshotsWritten()
		c.send(requestFrame(7, wire.OpSetData, &wire.SetDataRequest{Path: []byte("/q"), Version: -1}))
		c.reply(7, wire.CodeOK)
		s.SnapshotNow()
		until(t, "a snapshot", func() bool { return s.SnapshotsWritten() > before })
	}
	s.reconfigure(func(cfg *conf.Config) { cfg.AutopurgePurgeIntervalHours = 1 })
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, "Purge task started."))
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, "Purge task completed."))
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, "Removing file: "+regexp.QuoteMeta(filepath.Join(s.cfg.DataDir, "version-2"))+`/snapshot\.0`))
}

// wordsOfConnections causes refusals of connections. c is the only one there is.
func wordsOfConnections(t *testing.T, s *shell, c *wireConn) {
	const port = `127\.0\.0\.1:\d+`
	until(t, "one connection", func() bool { return s.Held() == 1 })
	web := s.dial()
	web.send([]byte("GET / HTTP/1.1\r\n\r\n"))
	web.gone()
	require.Equal(t, zapcore.InfoLevel, loggedAs(t, s.logs, `Len error\. A message from /`+port+` with advertised length of \d+ is either a malformed message or too large.*`))

	var e jute.Encoder
	start := wire.BeginFrame(&e)
	ahead := wire.ConnectRequest{LastZxidSeen: 0x7777, TimeoutMs: 30000, HasReadOnly: true}
	ahead.Encode(&e)
	wire.EndFrame(&e, start)
	other := s.dial()
	other.send(e.Bytes())
	other.gone()
	require.Equal(t, zapcore.WarnLevel, loggedAs(t, s.logs, `Refusing session request for client /`+port+
		` as it has seen zxid 0x7777 our last zxid is 0x[0-9a-f]+ client must try another server.*`))

	until(t, "one connection", func() bool { return s.Held() == 1 })
	second, third := s.dial(), s.dial()
	until(t, "three connections", func() bool { return s.Held() == 3 })
	s.refused()
	require.Equal(t, zapcore.WarnLevel, loggedAs(t, s.logs, `Too many connections from 127\.0\.0\.1 - max is 3 .*`))
	require.NoError(t, second.Close())
	require.NoError(t, third.Close())
	c.send(getFrame(6, "/q"))
	c.reply(6, wire.CodeOK)
	until(t, "one connection", func() bool { return s.Held() == 1 })
}

// TestWordsOfAnEnsemble does the same for what only members of an ensemble say.
func TestWordsOfAnEnsemble(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	e := servertest.StartEnsemble(t, 4, servertest.WithObservers(1), servertest.WithLog(zap.New(core)))
	for _, words := range []string{
		"LOOKING",
		`LEADING - LEADER ELECTION TOOK - \d+ MS`, `FOLLOWING - LEADER ELECTION TOOK - \d+ MS`, `OBSERVING - LEADER ELECTION TOOK - \d+ MS`,
		"Peer state changed: leading - broadcast", "Peer state changed: following - broadcast", "Peer state changed: observing - broadcast",
		`My election bind port: .*`,
	} {
		require.Equal(t, zapcore.InfoLevel, loggedAs(t, logs, words))
	}
	gone := e.Follower()
	e.Kill(gone)
	host, port, err := net.SplitHostPort(e.ElectionAddr(gone))
	require.NoError(t, err)
	require.Equal(t, zapcore.WarnLevel, loggedAs(t, logs, fmt.Sprintf(`Cannot open channel to %d at election address .*%s.*:%s;.*`, gone, regexp.QuoteMeta(host), port)))
	c := e.Client(t, e.Leader(), client.Options{})
	_, err = c.Create(t.Context(), "/a", nil, wire.OpenACL, wire.FlagPersistent)
	require.NoError(t, err)
}
