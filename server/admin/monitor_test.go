package admin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What has a label comes behind its block, with a word in front of the name that every agent takes for one.
func TestMonitorLabels(t *testing.T) {
	m := Metrics{
		Version: "v", Mode: ModeObserver, PeerState: "observing - broadcast", ObserverMaster: 2,
		Gauges:   []Sample{{Name: "quota", Label: "my-app", Value: Int(7)}, {Name: "znode_count", Value: Int(5)}, {Name: "quota", Label: "app", Value: Int(8)}},
		Counters: []Sample{{Name: "exceeded", Label: "my-app", Value: Int(1)}, {Name: "commit_count"}},
		Summaries: []Summary{
			{Name: "ack_latency", Label: "2", WithPercentiles: true, Count: 1},
			{Name: "read", Label: "my_app"},
			{Name: "read", Label: "my-app"},
			{Name: "read", Label: "my.app"},
			{Name: "read", Label: "zoë"},
			{Name: "fsynctime"},
			{Name: "readlatency", WithPercentiles: true},
		},
	}
	var names []string
	for line := range strings.Lines(string(m.AppendText(nil))) {
		key, _, _ := strings.Cut(line, "\t")
		if !strings.HasPrefix(key, "zk_m") && !strings.HasPrefix(key, "zk_cnt_") && !strings.HasPrefix(key, "zk_sum_") && !strings.HasPrefix(key, "zk_p") {
			names = append(names, key)
		}
	}
	require.Equal(t, strings.Fields(`zk_version zk_server_state zk_observer_master_id zk_znode_count zk_app_quota zk_commit_count
		zk_avg_fsynctime zk_avg_readlatency zk_avg_my_app_2_read zk_avg_my_app_3_read zk_avg_my_app_read zk_avg_zo__read zk_avg_2_ack_latency`), names)
	requireLine := func(line string) {
		t.Helper()
		require.Contains(t, "\n"+string(m.AppendText(nil)), "\n"+line+"\n")
	}
	requireLine("zk_observer_master_id\t2")
	requireLine("zk_peer_state\tobserving - broadcast")
	requireLine("zk_my_app_2_quota\t7")
	requireLine("zk_my_app_2_exceeded\t1")
	requireLine("zk_p999_2_ack_latency\t0")
	require.Equal(t, m.AppendText(nil), m.AppendText(nil))
}

func TestEach(t *testing.T) {
	m := Metrics{Gauges: []Sample{{Name: "b", Value: Float(0.5)}, {Name: "a", Value: Int(1)}}, Summaries: []Summary{{Name: "s", Count: 2, Sum: 3, Max: 2}}}
	var keys []string
	values := map[string]Number{}
	m.Each(func(key string, v Number) {
		keys = append(keys, key)
		values[key] = v
	})
	require.Equal(t, []string{"a", "b", "avg_s", "min_s", "max_s", "cnt_s", "sum_s"}, keys)
	require.Equal(t, Float(1.5), values["avg_s"])
	require.Equal(t, Int(2), values["max_s"])
	require.Equal(t, Float(0.5), values["b"])
}
