package storage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
)

// TestSnapshotLimitsChange: new limits count for what was logged before, too.
func TestSnapshotLimitsChange(t *testing.T) {
	cfg := testConfig()
	cfg.SnapCount, cfg.SnapSizeLimitBytes = 1000, 1<<30
	s := newStore(t, vfs.NewMem(), cfg)
	defer s.crash()
	require.Zero(t, s.LogFileBytes())
	appendSync(t, s, txns(1, 20)...)
	require.GreaterOrEqual(t, s.LogFileBytes(), cfg.PreAllocBytes)
	require.False(t, s.SnapshotDue())
	s.SetSnapshotLimits(10, 1<<30)
	require.True(t, s.SnapshotDue())
	s.SetSnapshotLimits(-5, 0)
	require.True(t, s.SnapshotDue(), "two at least, as at the start")
	s.SetSnapshotLimits(1000, 0)
	require.False(t, s.SnapshotDue())
	s.SetSnapshotLimits(1000, 100)
	require.True(t, s.SnapshotDue())
}

// TestPurgeTellsWhatItRemoves: each snapshot and each log, by its path.
func TestPurgeTellsWhatItRemoves(t *testing.T) {
	var removed []string
	cfg := testConfig()
	cfg.Removed = func(path string) { removed = append(removed, path) }
	s := longLog(t, vfs.NewMem(), cfg, 0)
	defer s.crash()
	require.Equal(t, []string{
		"/data/version-2/snapshot.0", "/data/version-2/snapshot.a", "/data/version-2/snapshot.14",
		"/data/version-2/log.1", "/data/version-2/log.b",
	}, removed)
	require.Equal(t, "/data/version-2/snapshot.ff", s.SnapshotPath(0xff))
}
