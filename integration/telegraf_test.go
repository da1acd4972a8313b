//go:build interop && linux

package integration

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// TestTelegraf lets the zookeeper input of Telegraf, built from its own module, gather from a standalone server, the members
// of an ensemble, and one that has lost its quorum.
func TestTelegraf(t *testing.T) {
	standalone := startServer(t, serverUnderTest(t), nil)
	e, err := harness.NewEnsemble(t.TempDir(), harness.Plan{Kind: serverUnderTest(t), Servers: 3})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	require.NoError(t, e.Start())
	leaders := 0
	for _, g := range telegraf(t, append(e.Addrs(), standalone.Addr())...) {
		require.Empty(t, g.Error)
		require.Equal(t, "zookeeper", g.Measurement)
		for _, field := range []string{"avg_latency", "max_latency", "min_latency", "packets_received", "packets_sent", "num_alive_connections",
			"outstanding_requests", "znode_count", "watch_count", "ephemerals_count", "approximate_data_size", "open_file_descriptor_count",
			"max_file_descriptor_count"} {
			require.IsType(t, float64(0), g.Fields[field], field)
		}
		require.Regexp(t, `^3\.\d+\.\d+`, g.Fields["version"])
		require.Contains(t, []string{"standalone", "leader", "follower"}, g.Tags["state"])
		if g.Tags["state"] == "leader" {
			leaders++
			require.EqualValues(t, 2, g.Fields["synced_followers"])
			require.EqualValues(t, 0, g.Fields["pending_syncs"])
		}
	}
	require.Equal(t, 1, leaders)
	for _, m := range e.Members[1:] {
		require.NoError(t, m.Stop())
	}
	require.NoError(t, harness.Wait(waitTimeout, "the member left over stops serving", func() bool { return e.Members[0].Mode() == "" }))
	require.Contains(t, telegraf(t, e.Members[0].Addr())[0].Error, "This ZooKeeper instance is not currently serving requests")
}

// telegrafGathered is a line that the program prints.
type telegrafGathered struct {
	Measurement, Error string
	Tags               map[string]string
	Fields             map[string]any
}

func telegraf(t *testing.T, addrs ...string) (list []telegrafGathered) {
	t.Helper()
	out, err := exec.Command(filepath.Join(harness.Cache(), "bin", "telegraf"), addrs...).Output()
	require.NoError(t, err)
	for line := range bytes.Lines(out) {
		var g telegrafGathered
		require.NoError(t, json.Unmarshal(line, &g))
		list = append(list, g)
	}
	require.Len(t, list, len(addrs))
	return list
}
