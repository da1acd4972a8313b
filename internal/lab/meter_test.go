package lab

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseMntr(t *testing.T) {
	values, err := parseMntr("zk_version\t3.9.5-abc, built on 2026\nzk_server_state\tstandalone\nzk_packets_received\t12\n" +
		"zk_avg_latency\t0.5\nzk_sum_node_deleted_watch_count\t7.0\nother\t1\n")
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"packets_received": 12, "sum_node_deleted_watch_count": 7}, values)

	_, err = parseMntr("mntr is not executed because it is not in the whitelist.\n")
	require.ErrorIs(t, err, errNoWord)
	_, err = parseMntr("This ZooKeeper instance is not currently serving requests\n")
	require.EqualError(t, err, `unexpected answer to mntr: "This ZooKeeper instance is not currently serving requests"`)
	_, err = Mntr("127.0.0.1:1").read(context.Background())
	require.ErrorContains(t, err, "mntr of 127.0.0.1:1: ")
}

func TestParseMetrics(t *testing.T) {
	values := parseLines("# HELP a b\n# TYPE a counter\npackets_received 1.2e+01\nlearner{key=\"1\"} 3\nnode_deleted_watch_count_sum 7.0\nx NaN\ny +Inf", " ", "")
	require.Equal(t, map[string]int64{"packets_received": 12, "node_deleted_watch_count_sum": 7}, values)
	_, err := Prometheus("http://127.0.0.1:1/metrics").read(context.Background())
	require.ErrorContains(t, err, "metrics: ")
}

// Of what a server does not count there is no number, but a word.
func TestWhatAServerDoesNotCount(t *testing.T) {
	m := Mntr("server")
	all := map[string]int64{"packets_received": 10, "pings_received": 2, "sum_node_created_watch_count": 1, "sum_node_deleted_watch_count": 1,
		"sum_node_changed_watch_count": 1, "sum_node_children_watch_count": 1}
	without := func(names ...string) reading {
		r := reading{values: map[string]int64{}}
		for k, v := range all {
			r.values[k] = v
		}
		for _, name := range names {
			delete(r.values, name)
		}
		return r
	}
	require.Empty(t, m.missing(without()))
	require.Contains(t, m.missing(without("pings_received")), "pings among the requests")
	require.Contains(t, m.missing(without("packets_received")), "does not count requests")
	require.Contains(t, m.missing(without("sum_node_created_watch_count")), "does not count notifications")
	require.Contains(t, m.missing(without("sum_node_created_watch_count", "packets_received")), "neither")

	later := without()
	later.values["packets_received"], later.values["pings_received"], later.values["sum_node_deleted_watch_count"] = 20, 5, 51
	n, known := m.requests(without(), later, 4)
	require.Equal(t, [...]any{int64(20 - 10 - (5 - 2) - 1), true}, [...]any{n, known}, "without the pings, and the second look itself")
	delete(later.values, "pings_received")
	n, known = m.requests(without(), later, 4)
	require.Equal(t, [...]any{int64(20 - 10 - 4 - 1), true}, [...]any{n, known}, "without the pings that were seen")
	n, known = m.notified(without(), later)
	require.Equal(t, [...]any{int64(50), true}, [...]any{n, known})
}
