package server

import (
	"os"
	runtimemetrics "runtime/metrics"
	"strings"
	"syscall"

	"zabra/internal/histogram"
	"zabra/server/admin"
	"zabra/server/replica"
	"zabra/zab"
	"zabra/znode"
)

// moment is everything that metrics are computed from, taken once per report.
type moment struct {
	s            *Server
	stats        replica.Stats
	status       zab.Status // of a member of an ensemble
	connections  int
	uptimeMs     int64 // of a member: since it began to serve in its present role
	openFiles    int64 // -1: unknown
	maxOpenFiles int64 // -1: unknown
}

// metric is a line of the tables of gauges and counters. The names are ZooKeeper's.
type metric struct {
	name, help string
	get        func(m *moment) admin.Number
}

// summaryMetric is a line of the tables of summaries. get may return nil: there are no samples.
type summaryMetric struct {
	name, help  string
	percentiles bool
	get         func(s *Server) series
}

// series are samples; see histogram.Histogram.
type series interface {
	Total() histogram.Snapshot
	SinceReset() histogram.Snapshot
}

// single is a series of one sample, which srst does not touch.
type single int64

func (v single) Total() histogram.Snapshot      { return histogram.Single(int64(v)) }
func (v single) SinceReset() histogram.Snapshot { return histogram.Single(int64(v)) }

func count(f func(m *moment) int64) func(*moment) admin.Number {
	return func(m *moment) admin.Number { return admin.Int(f(m)) }
}

func (s *Server) moment() *moment {
	m := &moment{s: s, stats: s.replica.Stats(), connections: s.conns.len(), uptimeMs: s.clock.now().MonoMs - s.startMs}
	if s.member != nil {
		m.status = *s.member.status.Load()
		m.uptimeMs = 0
		if since := s.member.meter.servingMs.Load(); since != 0 {
			m.uptimeMs = s.clock.now().MonoMs - since
		}
	}
	m.openFiles, m.maxOpenFiles = fileDescriptors()
	return m
}

// received and sent count four-letter words too, as ZooKeeper does.
func (m *moment) received() int64 { return m.stats.Received + m.s.meter.words.Load() }
func (m *moment) sent() int64     { return m.stats.Sent + m.s.meter.wordsAnswered.Load() }

// nodes counts as ZooKeeper does, which keeps the root under two names: an empty server has five nodes.
func (m *moment) nodes() int64 { return int64(m.stats.Nodes) + 1 }

// liveHeap is what the last collection found; 0 before the first.
func (m *moment) liveHeap() int64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(sample)
	return max(int64(sample[0].Value.Uint64())-m.s.untouchedBytes, 0)
}

// hasLeader is 1 while clients are served: then there is a leader with a quorum, or the server is on its own.
func (m *moment) hasLeader() int64 {
	if m.s.mode() == "" {
		return 0
	}
	return 1
}

func averageLatency(st *replica.Stats) float64 {
	if st.LatencyCount == 0 {
		return 0
	}
	return float64(st.LatencySumMs) / float64(st.LatencyCount)
}

// metrics computes everything that is measured, counters and summaries since the last srst. With the provider that
// measures nothing there is nothing but who the server is.
func (s *Server) metrics() admin.Metrics {
	m := s.moment()
	out := admin.Metrics{Version: s.version, Mode: s.mode()}
	if s.member != nil {
		out.PeerState = peerState(&m.status)
		if m.status.Role == zab.RoleObserving && m.status.Serving {
			out.ObserverMaster = int64(m.status.Leader)
		}
	}
	if s.cfg.Metrics.Null() {
		return out
	}
	out.Gauges, out.Counters = m.gauges(), m.counters()
	for i := range out.Counters {
		c := &out.Counters[i]
		c.Value.Int = s.meter.since.of(c.Name, c.Label, c.Value.Int)
	}
	for _, row := range s.summaries() {
		out.Summaries = append(out.Summaries, row.summary())
	}
	return out
}

// resetMetrics is srst.
func (s *Server) resetMetrics() {
	now := map[counterKey]int64{}
	for _, c := range s.moment().counters() {
		now[counterKey{c.Name, c.Label}] = c.Value.Int
	}
	s.meter.since.set(now)
	s.meter.reset()
	if s.member != nil {
		s.member.meter.reset()
	}
}

// gauges are those that the server has in its present role.
func (m *moment) gauges() []admin.Sample {
	list := m.samples(gauges)
	if m.openFiles >= 0 && m.maxOpenFiles >= 0 {
		list = append(list, m.samples(fileGauges)...)
	}
	if m.s.member != nil {
		list = append(list, m.samples(memberGauges)...)
		if m.status.Role == zab.RoleLeading {
			list = append(list, m.samples(leaderGauges)...)
		}
	}
	return append(list, m.quotaGauges()...)
}

// counters have counted since the start.
func (m *moment) counters() []admin.Sample {
	list := append(m.samples(counters), m.samples(memberCounters)...)
	list = append(list, m.samples(absentCounters)...)
	for _, n := range m.s.replica.Meter().Namespaces.List() {
		if exceeded := n.QuotaExceeded.Load(); exceeded > 0 {
			list = append(list, admin.Sample{Name: "quota_exceeded_error_per_namespace", Label: n.Name(),
				Help: "Writes that a quota has refused, by namespace", Value: admin.Int(exceeded)})
		}
	}
	return list
}

func (m *moment) samples(table []metric) []admin.Sample {
	list := make([]admin.Sample, len(table))
	for i, row := range table {
		list[i] = admin.Sample{Name: row.name, Help: row.help, Value: row.get(m)}
	}
	return list
}

// quotaGauges sum up the quotas by namespace: the first element of the path. As many namespaces are listed as are counted
// one by one elsewhere.
func (m *moment) quotaGauges() []admin.Sample {
	var names []string
	sums := map[string]*[4]int64{}
	tree := m.s.replica.Tree()
	tree.RLock(0)
	defer tree.RUnlock(0)
	tree.VisitQuotas(func(q znode.Quota) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(q.Path, "/"), "/")
		sum := sums[name]
		if sum == nil {
			if len(names) == replica.NamespacesMax {
				return false
			}
			sum = &[4]int64{-1, -1, -1, -1}
			names, sums[name] = append(names, name), sum
		}
		for i, v := range []int64{q.CountLimit, q.BytesLimit, q.Count, q.Bytes} {
			if v >= 0 {
				sum[i] = max(sum[i], 0) + v
			}
		}
		return true
	})
	var list []admin.Sample
	for _, name := range names {
		for i, row := range quotaGauges {
			list = append(list, admin.Sample{Name: row.name, Label: name, Help: row.help, Value: admin.Int(sums[name][i])})
		}
	}
	return list
}

// labelled is a summary with its samples.
type labelled struct {
	*summaryMetric
	label  string
	series series
}

// summaries are all that the server has in its present role.
func (s *Server) summaries() []labelled {
	var list []labelled
	for _, table := range [][]summaryMetric{basicSummaries, percentileSummaries, absentSummaries} {
		for i := range table {
			row := labelled{summaryMetric: &table[i]}
			if row.get != nil {
				row.series = row.get(s)
			}
			list = append(list, row)
		}
	}
	for _, n := range s.replica.Meter().Namespaces.List() {
		list = append(list, labelled{&namespaceRead, n.Name(), &n.Read}, labelled{&namespaceWrite, n.Name(), &n.Write})
	}
	if s.member != nil && s.member.status.Load().Role == zab.RoleLeading {
		list = append(list, s.member.learnerSummaries()...)
	}
	return list
}

// summary is what mntr shows.
func (l *labelled) summary() admin.Summary {
	out := admin.Summary{Name: l.name, Label: l.label, Help: l.help, WithPercentiles: l.percentiles}
	if l.series == nil {
		return out
	}
	s := l.series.SinceReset()
	out.Count, out.Sum, out.Min, out.Max = int64(s.Count), s.Sum, s.Min, s.Max
	if l.percentiles {
		out.Percentiles = admin.Percentiles{P50: s.Quantile(0.5), P95: s.Quantile(0.95), P99: s.Quantile(0.99), P999: s.Quantile(0.999)}
	}
	return out
}

// fileDescriptors returns how many descriptors are open and allowed, -1 where the system does not tell.
func fileDescriptors() (open, limit int64) {
	open, limit = -1, -1
	if dir, err := os.Open("/proc/self/fd"); err == nil {
		if names, err := dir.Readdirnames(-1); err == nil {
			open = int64(len(names)) - 1 // without that of the directory itself
		}
		dir.Close()
	}
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err == nil {
		limit = int64(r.Cur)
	}
	return open, limit
}
