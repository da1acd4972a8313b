//go:build interop && linux

package integration

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// TestTelegraf has the code of Telegraf's zookeeper input read servers of each role.
func TestTelegraf(t *testing.T) {
	t.Run("standalone", func(t *testing.T) {
		server := startServer(t, serverUnderTest(t), nil)
		askTelegraf(t, server.Addr(), "standalone")
	})
	e, err := harness.NewEnsemble(t.TempDir(), harness.Plan{Kind: serverUnderTest(t), Servers: 3})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	require.NoError(t, e.Start())
	roles := map[string]int{}
	for _, m := range e.Members {
		mode := m.Mode()
		roles[mode]++
		t.Run(mode, func(t *testing.T) {
			more := []string{"quorum_size"}
			if mode == "leader" {
				more = append(more, "synced_followers", "pending_syncs", "learners")
			}
			askTelegraf(t, m.Addr(), mode, more...)
		})
	}
	require.Equal(t, map[string]int{"leader": 1, "follower": 2}, roles)
}

// askTelegraf wants the fields that Telegraf documents, and more, all of them numbers.
func askTelegraf(t *testing.T, addr, state string, more ...string) {
	out, err := exec.Command(filepath.Join(harness.Cache(), "bin", "telegraf"), addr).Output()
	require.NoError(t, err)
	var read struct {
		Tags   map[string]string
		Fields map[string]any
	}
	require.NoError(t, json.Unmarshal(out, &read))
	require.Equal(t, state, read.Tags["state"])
	require.Equal(t, "127.0.0.1", read.Tags["server"])
	for _, key := range append(more, "approximate_data_size", "avg_latency", "ephemerals_count", "max_file_descriptor_count", "max_latency",
		"min_latency", "num_alive_connections", "open_file_descriptor_count", "outstanding_requests", "packets_received", "packets_sent",
		"watch_count", "znode_count") {
		require.IsType(t, float64(0), read.Fields[key], key)
	}
	require.IsType(t, "", read.Fields["version"])
	require.Positive(t, read.Fields["znode_count"])
}
