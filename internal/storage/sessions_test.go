package storage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// TestSessionMark reserves ids, and finds the mark after a crash, whatever else was noted after it.
func TestSessionMark(t *testing.T) {
	mem := vfs.NewMem()
	cfg := Config{SnapDir: "/data"}
	s, err := Open(mem, cfg)
	require.NoError(t, err)
	require.Zero(t, s.SessionMark())
	require.ErrorIs(t, s.ReserveSessions(7), ErrNotBegun)
	require.NoError(t, writeSnapshot(s, 0, 100))
	require.NoError(t, s.Begin(0))
	require.NoError(t, s.ReserveSessions(1<<56|7))
	require.NoError(t, s.SetAcceptedEpoch(3))
	disk := mem.Clone()
	require.NoError(t, s.Close())
	again, _, err := reopen(t, disk, cfg)
	require.NoError(t, err)
	require.Equal(t, zxid.SessionID(1<<56|7), again.SessionMark())
	require.NoError(t, again.Close())
}
