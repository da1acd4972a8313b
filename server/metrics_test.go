package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

const prometheusClass = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"

// withPrometheus serves /metrics on a free port.
func withPrometheus(cfg *conf.Config) {
	cfg.Metrics.ClassName, cfg.Metrics.Host, cfg.Metrics.Port = prometheusClass, "127.0.0.1", 0
}

// scrape reads the page as Prometheus does.
func scrape(t testing.TB, addr, query string) map[string]*dto.MetricFamily {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics" + query)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/plain; version=0.0.4; charset=utf-8", resp.Header.Get("Content-Type"))
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	return families
}

// labelled returns the metric with that label, or with none.
func labelled(t testing.TB, f *dto.MetricFamily, label string) *dto.Metric {
	t.Helper()
	require.NotNil(t, f)
	for _, m := range f.GetMetric() {
		if len(m.GetLabel()) == 0 && label == "" || len(m.GetLabel()) == 1 && m.GetLabel()[0].GetName() == "key" && m.GetLabel()[0].GetValue() == label {
			return m
		}
	}
	require.Fail(t, "no such label", "%s: %q", f.GetName(), label)
	return nil
}

// mntrOf reads the answer to mntr as Telegraf does, which gives up at the first line that is not as it thinks, and as
// Datadog does, which wants two words in each line and numbers without an exponent.
func mntrOf(t testing.TB, text string) (keys []string, values map[string]string) {
	t.Helper()
	telegraf := regexp.MustCompile(`^zk_(\w+)\s+([\w\.\-]+)`)
	number := regexp.MustCompile(`^-?\d+(\.\d+)?$`)
	values = map[string]string{}
	for line := range strings.Lines(text) {
		m := telegraf.FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		key = strings.TrimPrefix(key, "zk_")
		require.Equal(t, m[1], key)
		require.NotContains(t, values, key)
		keys, values[key] = append(keys, key), value
		if !slices.Contains([]string{"version", "server_state", "peer_state"}, key) {
			require.Len(t, strings.Fields(line), 2, "%q", line)
			require.Regexp(t, number, value, "%q", line)
		}
	}
	return keys, values
}

// ourKeys are those that ZooKeeper does not have; followers is a name of old that only a leader has.
var ourKeys = append(strings.Fields("has_leader leader_changes live_heap_bytes missing_audit_records pings_received"), percentileKeys("fsync_us")...)

func basicKeys(name string) (keys []string) {
	for _, part := range []string{"avg_", "min_", "max_", "cnt_", "sum_"} {
		keys = append(keys, part+name)
	}
	return keys
}

func percentileKeys(name string) []string {
	return append(basicKeys(name), "p50_"+name, "p95_"+name, "p99_"+name, "p999_"+name)
}

// zkKeys are the keys without a label of ZooKeeper 3.9 for a role.
func zkKeys(role string) []string {
	keys := append([]string{"version", "server_state"}, zkGauges...)
	keys = append(keys, zkCounters...)
	for _, name := range zkBasic {
		keys = append(keys, basicKeys(name)...)
	}
	for _, name := range zkPercentile {
		keys = append(keys, percentileKeys(name)...)
	}
	if role != "standalone" {
		keys = append(keys, "peer_state", "quorum_size")
	}
	switch role {
	case "leader":
		keys = append(keys, zkLeaderGauges...)
	case "observer":
		keys = append(keys, "observer_master_id")
	}
	return keys
}

// requireKeys compares the keys of mntr with those of ZooKeeper. The labelled ones depend on what was done.
func requireKeys(t *testing.T, role, text string) {
	t.Helper()
	keys, values := mntrOf(t, text)
	require.Equal(t, role, values["server_state"])
	want := append(zkKeys(role), ourKeys...)
	if role == "leader" {
		want = append(want, "followers")
	}
	plain := slices.DeleteFunc(keys, func(key string) bool {
		return !slices.Contains(want, key) && slices.ContainsFunc(zkLabelled, func(name string) bool { return strings.HasSuffix(key, "_"+name) })
	})
	require.ElementsMatch(t, want, plain)
}

func TestZooKeeperHasSoManyKeys(t *testing.T) {
	require.Len(t, zkKeys("standalone"), 494) // the lines of a real server of 3.9
	require.Len(t, zkKeys("follower"), 496)   // and these without those that have a label
	require.Len(t, zkKeys("leader"), 505)
	require.Len(t, zkKeys("observer"), 497)
}

func TestMntrOfAStandaloneServer(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c := clientOf(t, s.Addr().String())
	_, err := c.Create(t.Context(), "/my-app", []byte("12345"), wire.OpenACL, wire.FlagPersistent)
	require.NoError(t, err)
	_, _, err = c.GetData(t.Context(), "/my-app", true)
	require.NoError(t, err)
	_, err = c.SetData(t.Context(), "/my-app", []byte("123"), -1)
	require.NoError(t, err)
	_, _, err = c.GetData(t.Context(), "/", false)
	require.NoError(t, err)
	requireKeys(t, "standalone", s.word("mntr"))
	_, v := mntrOf(t, s.word("mntr"))
	for key, want := range map[string]string{
		"cnt_readlatency": "2", "cnt_updatelatency": "2", "cnt_my_app_read_per_namespace": "1", "sum_my_app_read_per_namespace": "80",
		"cnt_my_app_write_per_namespace": "2", "sum_my_app_write_per_namespace": "22", "min_my_app_write_per_namespace": "10",
		"max_my_app_write_per_namespace": "12", "has_leader": "1", "leader_changes": "0", "cnt_node_changed_watch_count": "1",
		"sum_node_changed_watch_count": "1", "cnt_node_created_watch_count": "0", "commit_count": "3", "request_commit_queued": "3",
		"sync_processor_request_queued": "3", "prep_processor_request_queued": "2", "cnt_propagation_latency": "3", "cnt_quorum_ack_latency": "0",
		"cnt_prep_processor_queue_time_ms": "2", "cnt_write_commitproc_time_ms": "2", "cnt_startup_snap_load_time": "1",
		"cnt_jvm_pause_time_ms": "0", "response_packet_cache_hits": "0", "cnt_proposal_latency": "0",
	} {
		require.Equal(t, want, v[key], key)
	}
	for _, key := range []string{"cnt_fsynctime", "cnt_fsync_us", "cnt_sync_processor_queue_time_ms", "cnt_sync_processor_queue_size", "response_bytes", "watch_bytes"} {
		require.NotEqual(t, "0", v[key], key)
	}
	for _, name := range append([]string{"fsync_us"}, zkPercentile...) {
		last := int64(-1)
		for _, part := range []string{"min_", "p50_", "p95_", "p99_", "p999_", "max_"} {
			n, err := strconv.ParseInt(v[part+name], 10, 64)
			require.NoError(t, err)
			require.GreaterOrEqual(t, n, last, part+name)
			last = n
		}
	}
}

func clientOf(t testing.TB, addr string) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), addr, client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	return c
}

// srst begins all counters and summaries of mntr anew. Prometheus, which computes rates, does not see it.
func TestResetOfMetrics(t *testing.T) {
	s := startShell(t, shellConfig(t, withPrometheus))
	c := clientOf(t, s.Addr().String())
	_, err := c.Create(t.Context(), "/app", nil, wire.OpenACL, wire.FlagPersistent)
	require.NoError(t, err)
	for range 2 {
		_, err := c.SetData(t.Context(), "/app", nil, -1)
		require.NoError(t, err)
	}
	addr := s.MetricsAddr().String()
	before := scrape(t, addr, "")
	require.InDelta(t, 4, labelled(t, before["commit_count"], "").GetCounter().GetValue(), 0)
	s.word("srst")
	_, v := mntrOf(t, s.word("mntr"))
	for _, name := range zkCounters {
		if name != "bytes_received_count" { // of the word itself
			require.Equal(t, "0", v[name], name)
		}
	}
	once := regexp.MustCompile(`^(dbinittime|startup_)`) // facts of the start
	for _, name := range append(append([]string{"fsync_us", "app_write_per_namespace"}, zkBasic...), zkPercentile...) {
		if !once.MatchString(name) {
			require.Equal(t, "0", v["cnt_"+name], name)
			require.Equal(t, "0", v["max_"+name], name)
		}
	}
	_, err = c.SetData(t.Context(), "/app", nil, -1)
	require.NoError(t, err)
	_, v = mntrOf(t, s.word("mntr"))
	require.Equal(t, "1", v["commit_count"])
	require.Equal(t, "1", v["cnt_updatelatency"])
	after := scrape(t, addr, "")
	require.InDelta(t, 5, labelled(t, after["commit_count"], "").GetCounter().GetValue(), 0)
	require.EqualValues(t, 4, labelled(t, after["updatelatency"], "").GetSummary().GetSampleCount())
	require.EqualValues(t, 4, labelled(t, after["write_per_namespace"], "app").GetSummary().GetSampleCount())
}

func TestQuotaMetrics(t *testing.T) {
	s := startShell(t, shellConfig(t, withPrometheus, func(cfg *conf.Config) { cfg.EnforceQuota = true }))
	c := clientOf(t, s.Addr().String())
	create := func(path, data string) error {
		_, err := c.Create(t.Context(), path, []byte(data), wire.OpenACL, wire.FlagPersistent)
		return err
	}
	for _, node := range [][2]string{
		{"/app", ""}, {"/app/a", "12"}, {"/zookeeper/quota/app", ""}, {"/zookeeper/quota/app/a", ""},
		{"/zookeeper/quota/app/zookeeper_limits", "count=9,bytes=-1=;byteHardLimit=-1;countHardLimit=3"}, {"/zookeeper/quota/app/zookeeper_stats", ""},
		{"/zookeeper/quota/app/a/zookeeper_limits", "count=5,bytes=-1"}, {"/zookeeper/quota/app/a/zookeeper_stats", ""},
		{"/app/b", "123"},
	} {
		require.NoError(t, create(node[0], node[1]), node[0])
	}
	require.ErrorIs(t, create("/app/c", "1"), wire.CodeQuotaExceeded)
	requireLines(t, s.word("mntr"),
		"zk_app_quota_count_limit_per_namespace\t8", // three, and the soft limit of five below
		"zk_app_quota_bytes_limit_per_namespace\t-1", "zk_app_quota_count_usage_per_namespace\t4",
		"zk_app_quota_bytes_usage_per_namespace\t7", "zk_app_quota_exceeded_error_per_namespace\t1")
	page := scrape(t, s.MetricsAddr().String(), "")
	for name, want := range map[string]float64{
		"quota_count_limit_per_namespace": 8, "quota_bytes_limit_per_namespace": -1, "quota_count_usage_per_namespace": 4, "quota_bytes_usage_per_namespace": 7,
	} {
		require.Equal(t, dto.MetricType_GAUGE, page[name].GetType(), name)
		require.InDelta(t, want, labelled(t, page[name], "app").GetGauge().GetValue(), 0, name)
	}
	require.Equal(t, dto.MetricType_COUNTER, page["quota_exceeded_error_per_namespace"].GetType())
	require.InDelta(t, 1, labelled(t, page["quota_exceeded_error_per_namespace"], "app").GetCounter().GetValue(), 0)
}

// With ZooKeeper's provider that measures nothing, mntr says who the server is.
func TestNullMetricsProvider(t *testing.T) {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) {
		cfg.Metrics.ClassName = "org.apache.zookeeper.metrics.impl.NullMetricsProvider"
	}))
	require.Regexp(t, `^zk_version\t.*\nzk_server_state\tstandalone\n$`, s.word("mntr"))
	require.Nil(t, s.MetricsAddr())
}

// Metrics are read while requests are served, connections come and go, and the counters are reset.
func TestMetricsBesideRequests(t *testing.T) {
	s := startShell(t, shellConfig(t, withPrometheus))
	const clients, requests = 4, 50
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			c, err := client.Dial(t.Context(), s.Addr().String(), client.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Abandon()
			path := fmt.Sprint("/app", n)
			if _, err := c.Create(t.Context(), path, nil, wire.OpenACL, wire.FlagPersistent); err != nil {
				t.Error(err)
			}
			for range requests {
				if _, err := c.SetData(t.Context(), path, []byte("data"), -1); err != nil {
					t.Error(err)
				}
				if _, _, err := c.GetData(t.Context(), path, true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		mntrOf(t, s.word("mntr"))
		s.word("srst")
		scrape(t, s.MetricsAddr().String(), "")
	}
	page := scrape(t, s.MetricsAddr().String(), "")
	require.EqualValues(t, clients*(requests+1), labelled(t, page["updatelatency"], "").GetSummary().GetSampleCount())
	require.EqualValues(t, requests, labelled(t, page["read_per_namespace"], "app0").GetSummary().GetSampleCount())
	require.InDelta(t, requests*(5+4+68), labelled(t, page["read_per_namespace"], "app0").GetSummary().GetSampleSum(), 0)
	require.InDelta(t, requests*(5+4)+5, labelled(t, page["write_per_namespace"], "app0").GetSummary().GetSampleSum(), 0)
}

// ensembleWithPrometheus is an ensemble of three voters and an observer, the last, in which something has happened.
func ensembleWithPrometheus(t *testing.T) (e *servertest.Ensemble, leader, follower int) {
	e = servertest.StartEnsemble(t, 4, servertest.WithObservers(1), servertest.WithConfig("metricsProvider.className", prometheusClass),
		servertest.WithConfig("metricsProvider.httpHost", "127.0.0.1"), servertest.WithConfig("metricsProvider.httpPort", "0"))
	leader, follower = e.Leader(), e.Follower()
	c := e.Client(t, follower)
	_, err := c.Create(t.Context(), "/app", []byte("data"), wire.OpenACL, wire.FlagPersistent)
	require.NoError(t, err)
	for range 20 {
		_, err := c.SetData(t.Context(), "/app", []byte("data"), -1)
		require.NoError(t, err)
	}
	_, err = c.Sync(t.Context(), "/app")
	require.NoError(t, err)
	until(t, "all members have applied it", func() bool {
		for id := 1; id <= 4; id++ {
			if e.Stats(id).Zxid != e.Stats(leader).Zxid {
				return false
			}
		}
		return e.Stats(leader).SyncedLearners == 3
	})
	return e, leader, follower
}

func TestMetricsOfAnEnsemble(t *testing.T) {
	e, leader, follower := ensembleWithPrometheus(t)
	pages := map[int]map[string]*dto.MetricFamily{}
	for id := 1; id <= 4; id++ {
		pages[id] = scrape(t, e.Server(id).MetricsAddr(), "")
	}
	t.Run("keys", func(t *testing.T) {
		requireKeys(t, "leader", ensembleWord(t, e, leader, "mntr"))
		requireKeys(t, "follower", ensembleWord(t, e, follower, "mntr"))
		requireKeys(t, "observer", ensembleWord(t, e, 4, "mntr"))
	})
	t.Run("leader", func(t *testing.T) {
		_, v := mntrOf(t, ensembleWord(t, e, leader, "mntr"))
		for _, key := range []string{
			"commit_count", "cnt_quorum_ack_latency", "diff_count", "cnt_inflight_diff_count",
			fmt.Sprint("cnt_", follower, "_ack_latency"), fmt.Sprint("cnt_", leader, "_ack_latency"), fmt.Sprint("p99_", follower, "_ack_latency"),
			fmt.Sprint("cnt_", follower, "_learner_handler_qp_size"), fmt.Sprint("cnt_4_learner_handler_qp_time_ms"), "cnt_app_write_per_namespace",
		} {
			require.Contains(t, v, key)
			if strings.HasPrefix(key, "cnt_") {
				require.NotEqual(t, "0", v[key], key)
			}
		}
		require.Equal(t, "21", v["cnt_app_write_per_namespace"])
		require.Equal(t, "1", v["leader_changes"])
		require.Equal(t, "0", v["learner_proposal_received_count"])
		require.NotContains(t, v, fmt.Sprint("cnt_", leader, "_learner_handler_qp_size"))
	})
	t.Run("learners", func(t *testing.T) {
		for _, id := range []int{follower, 4} {
			_, v := mntrOf(t, ensembleWord(t, e, id, "mntr"))
			for _, key := range []string{"cnt_proposal_latency", "cnt_proposal_ack_creation_latency", "cnt_commit_propagation_latency", "cnt_propagation_latency", "request_commit_queued"} {
				require.NotEqual(t, "0", v[key], key)
			}
			for _, key := range []string{"commit_count", "cnt_quorum_ack_latency", "diff_count"} {
				require.Equal(t, "0", v[key], key)
			}
			require.Equal(t, "1", v["has_leader"])
			require.NotContains(t, v, fmt.Sprint("cnt_", follower, "_ack_latency"))
		}
		_, v := mntrOf(t, ensembleWord(t, e, 4, "mntr"))
		require.Equal(t, fmt.Sprint(leader), v["observer_master_id"])
		require.Equal(t, "1", v["cnt_observer_sync_time"])
		_, v = mntrOf(t, ensembleWord(t, e, follower, "mntr"))
		require.Equal(t, "1", v["cnt_follower_sync_time"])
		require.Equal(t, "21", v["cnt_updatelatency"])
	})
	t.Run("page", func(t *testing.T) { requirePage(t, pages[leader], pages[follower]) })
	t.Run("labels", func(t *testing.T) {
		require.NotZero(t, labelled(t, pages[leader]["ack_latency"], fmt.Sprint(follower)).GetSummary().GetSampleCount())
		require.NotZero(t, labelled(t, pages[leader]["learner_handler_qp_size"], "4").GetSummary().GetSampleCount())
		require.EqualValues(t, 21, labelled(t, pages[4]["write_per_namespace"], "app").GetSummary().GetSampleCount())
		require.NotContains(t, pages[follower], "ack_latency")
	})
	t.Run("consumers", func(t *testing.T) { requireConsumers(t, pages[leader]) })
	t.Run("deploy", func(t *testing.T) { requireDeployed(t, pages[leader], pages[follower]) })
	t.Run("down", func(t *testing.T) {
		for id := 1; id <= 3; id++ {
			if id != follower {
				e.Stop(id)
			}
		}
		addr := e.Server(follower).MetricsAddr()
		until(t, "the one that is left says that it has no leader", func() bool {
			page := scrape(t, addr, "?name[]=has_leader&name[]=quorum_size")
			require.Len(t, page, 2)
			return labelled(t, page["has_leader"], "").GetGauge().GetValue() == 0
		})
	})
}

// requirePage compares the types with ZooKeeper's.
func requirePage(t *testing.T, leader, follower map[string]*dto.MetricFamily) {
	t.Helper()
	for kind, names := range map[dto.MetricType][]string{
		dto.MetricType_GAUGE:   append(slices.Clone(zkGauges), "quorum_size", "has_leader", "live_heap_bytes"),
		dto.MetricType_COUNTER: append(slices.Clone(zkCounters), "leader_changes"),
		dto.MetricType_SUMMARY: append(append(slices.Clone(zkBasic), zkPercentile...), "fsync_us"),
	} {
		for _, name := range names {
			require.Contains(t, leader, name)
			require.Contains(t, follower, name)
			require.Equal(t, kind, leader[name].GetType(), name)
			require.NotEmpty(t, leader[name].GetHelp(), name)
		}
	}
	for _, name := range zkLeaderGauges {
		require.Equal(t, dto.MetricType_GAUGE, leader[name].GetType(), name)
		require.NotContains(t, follower, name)
	}
	for _, name := range zkBasic {
		require.Equal(t, []float64{0.5}, quantilesOf(leader[name]), name)
	}
	for _, name := range zkPercentile {
		require.Equal(t, []float64{0.5, 0.9, 0.99}, quantilesOf(leader[name]), name)
	}
	nan := labelled(t, leader["jvm_pause_time_ms"], "").GetSummary()
	require.Zero(t, nan.GetSampleCount())
	for _, q := range nan.GetQuantile() {
		require.NotEqual(t, q.GetValue(), q.GetValue(), "NaN, since there was no sample") //nolint:testifylint // NaN is not equal to itself
	}
	for _, q := range labelled(t, leader["quorum_ack_latency"], "").GetSummary().GetQuantile() {
		require.GreaterOrEqual(t, q.GetValue(), 0.0)
	}
	h := labelled(t, leader["fsync_seconds"], "").GetHistogram()
	require.Equal(t, labelled(t, leader["fsync_us"], "").GetSummary().GetSampleCount(), h.GetSampleCount())
	require.Len(t, h.GetBucket(), 41) // the last is +Inf
	require.Less(t, h.GetBucket()[0].GetUpperBound(), 50e-6)
	for i := 1; i < len(h.GetBucket()); i++ {
		require.GreaterOrEqual(t, h.GetBucket()[i].GetCumulativeCount(), h.GetBucket()[i-1].GetCumulativeCount())
	}
	for _, name := range strings.Fields(`process_cpu_seconds_total process_start_time_seconds process_open_fds process_max_fds
		process_virtual_memory_bytes process_resident_memory_bytes go_goroutines go_gc_duration_seconds jvm_info`) {
		require.Contains(t, leader, name)
	}
	for _, name := range []string{"jvm_memory_bytes_max", "jvm_memory_bytes_used", "jvm_memory_pool_bytes_used", "jvm_threads_current"} {
		for _, m := range leader[name].GetMetric() {
			require.Positive(t, m.GetGauge().GetValue(), name)
		}
	}
}

func quantilesOf(f *dto.MetricFamily) (list []float64) {
	for _, q := range f.GetMetric()[0].GetSummary().GetQuantile() {
		list = append(list, q.GetQuantile())
	}
	return list
}

// requireConsumers looks for all names that the public dashboards and alert rules ask for.
func requireConsumers(t *testing.T, page map[string]*dto.MetricFamily) {
	t.Helper()
	used := map[string]bool{}
	for _, names := range [][]string{grafana10465, grafanaObservLib, manualAlerts, otherBoards} {
		for _, name := range names {
			if why, absent := notExported[name]; absent {
				require.NotEmpty(t, why)
				used[name] = true
				require.NotContains(t, page, name)
				continue
			}
			f, part := familyOf(page, name)
			require.NotNil(t, f, "%s is not exported", name)
			if part != "" {
				require.Contains(t, []dto.MetricType{dto.MetricType_SUMMARY, dto.MetricType_HISTOGRAM}, f.GetType(), name)
			}
		}
	}
	require.Len(t, used, len(notExported), "each exception is needed")
}

// familyOf returns the family that a name belongs to, and which part of it the name is: "" for the metric itself.
func familyOf(page map[string]*dto.MetricFamily, name string) (f *dto.MetricFamily, part string) {
	if f := page[name]; f != nil {
		return f, ""
	}
	for _, part := range []string{"_sum", "_count", "_bucket"} {
		if base, ok := strings.CutSuffix(name, part); ok && page[base] != nil {
			return page[base], part
		}
	}
	return nil, ""
}

// Pings are packets like others, and counted once more on their own.
func TestPingsAreCounted(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c, err := client.Dial(t.Context(), s.Addr().String(), client.Options{NoPings: true})
	require.NoError(t, err)
	_, before := mntrOf(t, s.word("mntr"))
	require.Equal(t, "0", before["pings_received"])
	for range 3 {
		require.NoError(t, c.Ping(t.Context()))
	}
	_, _, err = c.GetData(t.Context(), "/", false)
	require.NoError(t, err)
	_, after := mntrOf(t, s.word("mntr"))
	require.Equal(t, "3", after["pings_received"])
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	const pings, reads, words = 3, 1, 1
	require.Equal(t, pings+reads+words, number(after["packets_received"])-number(before["packets_received"]))
	c.Abandon()
	require.Eventually(t, func() bool {
		_, v := mntrOf(t, s.word("mntr"))
		return v["num_alive_connections"] == "1" && v["pings_received"] == "3"
	}, 20*time.Second, time.Millisecond, "they are still counted when their connection has gone")
}
