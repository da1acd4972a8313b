package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/wire"
)

// reconfigure hands a running server its configuration with a change, and returns what of that was taken and what was not.
func (s *shell) reconfigure(change func(*conf.Config)) (taken, needRestart []string) {
	s.t.Helper()
	cfg := *s.cfg
	change(&cfg)
	now, later := s.Reconfigure(&cfg)
	for _, c := range now {
		taken = append(taken, c.Key)
	}
	for _, c := range later {
		needRestart = append(needRestart, c.Key)
	}
	return taken, needRestart
}

// TestReconfigureLimits: connections that came while there was no limit count when there is one, and none of them is closed.
func TestReconfigureLimits(t *testing.T) {
	// A connection that is let in stays longer than the test waits for its end.
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.SessionlessTimeoutMs = 10 * int(shellWaitMax.Milliseconds()) }))
	first, _ := s.session()
	second, _ := s.session()
	taken, needRestart := s.reconfigure(func(cfg *conf.Config) { cfg.MaxClientCnxns = 1 })
	require.Equal(t, []string{"maxClientCnxns"}, taken)
	require.Empty(t, needRestart)
	s.refused()
	for _, c := range []*wireConn{first, second} {
		c.send(getFrame(1, "/zookeeper"))
		c.reply(1, wire.CodeOK)
	}
	require.NoError(t, second.Close())
	until(t, "a connection less", func() bool { return s.Held() == 1 })
	s.refused()

	taken, _ = s.reconfigure(func(cfg *conf.Config) { cfg.MaxClientCnxns = 2 })
	require.Equal(t, []string{"maxClientCnxns"}, taken)
	require.Contains(t, s.word("conf"), "maxClientCnxns=2\n")
	until(t, "the word's connection is gone", func() bool { return s.Held() == 1 })

	taken, _ = s.reconfigure(func(cfg *conf.Config) { cfg.MaxCnxns = 1 })
	require.Equal(t, []string{"maxClientCnxns", "maxCnxns"}, taken)
	s.refused()
}

// TestReconfigureTimeoutAndWords: what is looked at anew for each connection.
func TestReconfigureTimeoutAndWords(t *testing.T) {
	s := startShell(t, shellConfig(t))
	taken, needRestart := s.reconfigure(func(cfg *conf.Config) { cfg.SessionlessTimeoutMs = 50 })
	require.Equal(t, []string{"nio.sessionlessCnxnTimeout"}, taken)
	require.Empty(t, needRestart)
	s.dial().gone()
	taken, needRestart = s.reconfigure(func(cfg *conf.Config) {
		cfg.FourLetterWords, cfg.TickTimeMs, cfg.EnforceQuota = []string{"conf"}, 700, true
	})
	require.Equal(t, []string{"nio.sessionlessCnxnTimeout", "enforceQuota", "4lw.commands.whitelist"}, taken, "the timeout is back to what it was")
	require.Equal(t, []string{"tickTime"}, needRestart)
	require.Contains(t, s.word("ruok"), "is not executed because it is not in the whitelist")
	require.Contains(t, s.word("conf"), "tickTime=500\n", "a server ticks as it did at its start")
	taken, needRestart = s.reconfigure(func(*conf.Config) {})
	require.Equal(t, []string{"enforceQuota", "4lw.commands.whitelist"}, taken)
	require.Empty(t, needRestart)
	require.Equal(t, "imok", s.word("ruok"))
}

// TestReconfigureSlowSyncs: the warning comes from the new threshold on.
func TestReconfigureSlowSyncs(t *testing.T) {
	s := startShell(t, shellConfig(t))
	s.disk.Inject(func(op vfs.Op) error {
		if (op.Kind == vfs.KindSync || op.Kind == vfs.KindSyncData) && strings.Contains(op.Name, "log.") {
			time.Sleep(2 * time.Millisecond) // a slow disk, above the threshold below
		}
		return nil
	})
	c, _ := s.session()
	const line = "fsync-ing the write ahead log in SyncThread:0 took "
	require.Zero(t, s.logs.FilterMessageSnippet(line).Len())
	taken, _ := s.reconfigure(func(cfg *conf.Config) { cfg.FsyncWarningThresholdMs = 1 })
	require.Equal(t, []string{"fsync.warningthresholdms"}, taken)
	c.send(createFrame(1, "/slow", nil))
	c.reply(1, wire.CodeOK)
	require.NotZero(t, s.logs.FilterMessageSnippet(line).Len())
}

// TestReconfigureLimitsOfTheReplica: what requests are measured by.
func TestReconfigureLimitsOfTheReplica(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.EnforceQuota = true }))
	c, _ := s.session()
	for i, node := range [][2]string{{"/q", ""}, {"/zookeeper/quota/q", ""},
		{"/zookeeper/quota/q/zookeeper_limits", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"}, {"/zookeeper/quota/q/zookeeper_stats", "count=0,bytes=0"}} {
		c.send(createFrame(int32(i), node[0], []byte(node[1])))
		c.reply(int32(i), wire.CodeOK)
	}
	c.send(createFrame(10, "/q/a", nil))
	c.reply(10, wire.CodeQuotaExceeded)
	taken, needRestart := s.reconfigure(func(cfg *conf.Config) { cfg.EnforceQuota, cfg.GlobalOutstandingLimit, cfg.SnapCount = false, 1, 2 })
	require.Equal(t, []string{"globalOutstandingLimit", "snapCount", "enforceQuota"}, taken)
	require.Empty(t, needRestart)
	before := s.SnapshotsWritten()
	for i := range int32(5) {
		c.send(createFrame(20+i, fmt.Sprint("/q/", i), nil))
		c.reply(20+i, wire.CodeOK)
	}
	until(t, "a snapshot", func() bool { return s.SnapshotsWritten() > before })
}

// TestReconfigurePurges: an interval that is set while the server runs begins with a purge, one that is taken away ends them.
func TestReconfigurePurges(t *testing.T) {
	s := startShell(t, shellConfig(t))
	const notScheduled, done = "Purge task is not scheduled.", "Purge task completed."
	until(t, notScheduled, func() bool { return s.logs.FilterMessage(notScheduled).Len() == 1 })
	taken, _ := s.reconfigure(func(cfg *conf.Config) { cfg.AutopurgePurgeIntervalHours = 1 })
	require.Equal(t, []string{"autopurge.purgeInterval"}, taken)
	until(t, done, func() bool { return s.logs.FilterMessage(done).Len() == 1 })
	s.reconfigure(func(cfg *conf.Config) { cfg.AutopurgePurgeIntervalHours, cfg.MaxCnxns = 1, 1000 })
	s.reconfigure(func(cfg *conf.Config) { cfg.AutopurgePurgeIntervalHours = 2 })
	until(t, done, func() bool { return s.logs.FilterMessage(done).Len() == 2 })
	s.reconfigure(func(*conf.Config) {})
	until(t, notScheduled, func() bool { return s.logs.FilterMessage(notScheduled).Len() == 2 })
	require.Equal(t, 2, s.logs.FilterMessage(done).Len())
}
