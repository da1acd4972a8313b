package server_test

import (
	"fmt"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/server"
	"zabra/server/client"
	"zabra/wire"
)

// A snapshot that was begun before a learner needs one may be too old for it. Then the next one is waited for as well.
func TestLearnerGetsTheSnapshotAfterTheNext(t *testing.T) {
	cfg := memberConfig(t, "1", fmt.Sprintf("server.1=127.0.0.1:%d:%d\n", unusedPort(t), unusedPort(t)))
	s, err := server.New(cfg, server.Options{})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	until(t, "it leads itself", func() bool { return s.Stats().Mode == "leader" })
	c, err := client.Dial(t.Context(), s.Addr().String(), client.Options{})
	require.NoError(t, err)
	_, err = c.Create(t.Context(), "/a", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	found, err := s.SnapshotsPassed(c.LastZxid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, found, c.LastZxid())
	c.Abandon()
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, server.ErrServerClosed)
}

func unusedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestConfiguredCatchUp(t *testing.T) {
	tests := []struct {
		count   int
		factor  float64
		entries int
		share   float64
	}{
		{500, 0.33, 0, 0.33},
		{501, 1, 501, 1},
		{1_000_000, 0, 1_000_000, math.Inf(1)},
		{0, -1, 0, -1},
	}
	for _, tt := range tests {
		cfg := conf.Default()
		cfg.CommitLogCount, cfg.SnapshotSizeFactor = tt.count, tt.factor
		entries, share := server.CatchUp(cfg)
		require.Equal(t, tt.entries, entries)
		require.Equal(t, tt.share, share)
	}
}
