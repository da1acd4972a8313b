package server

import (
	"os"
	runtimemetrics "runtime/metrics"
	"syscall"

	"zabra/server/admin"
	"zabra/server/replica"
	"zabra/zab"
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

// metric is a line of the tables below. The names are ZooKeeper's.
type metric struct {
	name, help string
	get        func(m *moment) admin.Number
}

func count(f func(m *moment) int64) func(*moment) admin.Number {
	return func(m *moment) admin.Number { return admin.Int(f(m)) }
}

var gauges = []metric{
	{"approximate_data_size", "Sum of the lengths of paths and data, bytes", count(func(m *moment) int64 { return m.stats.DataBytes })},
	{"avg_latency", "Average request latency since the start or srst, ms", func(m *moment) admin.Number { return admin.Float(averageLatency(&m.stats)) }},
	{"connection_drop_probability", "Share of new connections that the connection throttle drops", func(m *moment) admin.Number { return admin.Float(m.s.sessions.dropProbability()) }},
	{"ephemerals_count", "Ephemeral nodes", count(func(m *moment) int64 { return int64(m.stats.Ephemerals) })},
	{"global_sessions", "Sessions known to the whole ensemble", count(func(m *moment) int64 { return int64(m.stats.Sessions) })},
	{"last_client_response_size", "Size of the last reply, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.LastResponseBytes) })},
	{"live_heap_bytes", "Memory that the last garbage collection found in use, bytes; ZooKeeper has no such line", count((*moment).liveHeap)},
	{"local_sessions", "Sessions known to this server only", count(func(*moment) int64 { return 0 })},
	{"max_client_response_size", "Size of the largest reply, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MaxResponseBytes) })},
	{"max_latency", "Highest request latency since the start or srst, ms", count(func(m *moment) int64 { return m.stats.LatencyMaxMs })},
	{"min_client_response_size", "Size of the smallest reply, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MinResponseBytes) })},
	{"min_latency", "Lowest request latency since the start or srst, ms", count(func(m *moment) int64 { return m.stats.LatencyMinMs })},
	{"num_alive_connections", "Client connections", count(func(m *moment) int64 { return int64(m.connections) })},
	{"outstanding_requests", "Requests in process", count(func(m *moment) int64 { return m.stats.Outstanding })},
	{"packets_received", "Packets from clients", count(func(m *moment) int64 { return m.received() })},
	{"packets_sent", "Packets to clients, events included", count(func(m *moment) int64 { return m.sent() })},
	{"uptime", "Time since the server began to serve, ms", count(func(m *moment) int64 { return m.uptimeMs })},
	{"watch_count", "Watches of all kinds", count(func(m *moment) int64 { return int64(m.s.replica.Tree().Watches().Total()) })},
	{"znode_count", "Nodes, the built-in ones included", count(func(m *moment) int64 { return m.nodes() })},
}

// fileGauges are listed only where the system tells.
var fileGauges = []metric{
	{"max_file_descriptor_count", "Limit of file descriptors of the process", count(func(m *moment) int64 { return m.maxOpenFiles })},
	{"open_file_descriptor_count", "File descriptors that the process has open", count(func(m *moment) int64 { return m.openFiles })},
}

var counters = []metric{
	{"bytes_received_count", "Bytes from clients", count(func(m *moment) int64 { return m.s.meter.bytesIn.Load() })},
	{"cnxn_closed_without_zk_server_running", "Connections closed because the server was not serving", count(func(m *moment) int64 { return m.s.meter.closedNotServing.Load() })},
	{"commit_count", "Transactions committed", count(func(m *moment) int64 { return int64(m.stats.Commits) })},
	{"connection_drop_count", "Requests for a session refused by the connection throttle", count(func(m *moment) int64 { return m.s.sessions.dropped.Load() })},
	{"connection_rejected", "Connections refused by a limit", count(func(m *moment) int64 { return m.s.meter.rejected.Load() })},
	{"connection_request_count", "Requests for a session, new or taken up again", count(func(m *moment) int64 { return int64(m.stats.SessionRequests) })},
	{"connection_revalidate_count", "Requests to take a session up again", count(func(m *moment) int64 { return int64(m.stats.Revalidations) })},
	{"digest_mismatches_count", "Transactions after which the tree was not as recorded", count(func(m *moment) int64 { return int64(m.stats.DigestMismatches) })},
	{"large_requests_rejected", "Requests beyond the budget of large ones", count(func(m *moment) int64 { return int64(m.stats.LargeRejected) })},
	{"missing_audit_records", "Records that the audit log lacks; ZooKeeper has no such line", count(func(m *moment) int64 { return m.s.audit.lost.Load() })},
	{"proposal_count", "Transactions proposed", count(func(m *moment) int64 { return int64(m.stats.Proposals) })},
	{"sessionless_connections_expired", "Connections closed because they opened no session", count(func(m *moment) int64 { return m.s.meter.sessionlessExpired.Load() })},
	{"snapshot_error_count", "Snapshots that could not be written", count(func(m *moment) int64 { return m.s.meter.snapshotErrors.Load() })},
	{"stale_sessions_expired", "Sessions that expired", count(func(m *moment) int64 { return int64(m.stats.ExpiredSessions) })},
	{"stale_requests_dropped", "Requests thrown away because nobody waited for them any more", count(func(m *moment) int64 { return int64(m.stats.StaleDropped) })},
	{"throttled_ops", "Requests refused because they had waited too long", count(func(m *moment) int64 { return int64(m.stats.Throttled) })},
	{"unrecoverable_error_count", "Errors that end the server", count(func(m *moment) int64 { return m.s.meter.unrecoverable.Load() })},
}

// summaryMetrics are the tables' series of samples.
var summaryMetrics = []struct {
	name, help string
	get        func(m *meter) summed
}{
	{"connection_token_deficit", "Tokens missing from the connection throttle's bucket", func(m *meter) summed { return m.deficit.get() }},
	{"dbinittime", "Time to load the database at the start, ms", func(m *meter) summed { return one(m.recoverMs) }},
	{"fsynctime", "Time to sync the log, ms", func(m *meter) summed { return m.fsync.get() }},
	{"snapshottime", "Time to write a snapshot, ms", func(m *meter) summed { return m.snapshot.get() }},
	{"startup_txns_loaded", "Transactions replayed at the start", func(m *meter) summed { return one(m.replayed) }},
	{"sync_processor_batch_size", "Transactions made durable by one sync", func(m *meter) summed { return m.batch.get() }},
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

func averageLatency(st *replica.Stats) float64 {
	if st.LatencyCount == 0 {
		return 0
	}
	return float64(st.LatencySumMs) / float64(st.LatencyCount)
}

// metrics computes everything that is measured.
func (s *Server) metrics() admin.Metrics {
	m := s.moment()
	out := admin.Metrics{Version: s.version, Mode: s.mode(), Gauges: samples(m, gauges), Counters: samples(m, counters)}
	if m.openFiles >= 0 && m.maxOpenFiles >= 0 {
		out.Gauges = append(out.Gauges, samples(m, fileGauges)...)
	}
	for _, row := range summaryMetrics {
		v := row.get(&s.meter)
		out.Summaries = append(out.Summaries, admin.Summary{Name: row.name, Help: row.help, Count: v.count, Sum: v.sum, Min: v.min, Max: v.max})
	}
	if s.member != nil {
		m.addMember(&out)
	}
	return out
}

func samples(m *moment, table []metric) []admin.Sample {
	list := make([]admin.Sample, len(table))
	for i, row := range table {
		list[i] = admin.Sample{Name: row.name, Help: row.help, Value: row.get(m)}
	}
	return list
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
