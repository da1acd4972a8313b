package server

import "zabra/server/admin"

// The tables of gauges and counters: names of ZooKeeper, and what they are here. Names that ZooKeeper does not have say so.

var gauges = []metric{
	{"approximate_data_size", "Sum of the lengths of paths and data, bytes", count(func(m *moment) int64 { return m.stats.DataBytes })},
	{"auth_failed_count", "Certificates, auth requests and logins that were refused", count(func(m *moment) int64 { return m.s.meter.authFailed.Load() })},
	{"avg_latency", "Average request latency since the start or srst, ms", func(m *moment) admin.Number { return admin.Float(averageLatency(&m.stats)) }},
	{"connection_drop_probability", "Share of new connections that the connection throttle drops", func(m *moment) admin.Number { return admin.Float(m.s.sessions.dropProbability()) }},
	{"ephemerals_count", "Ephemeral nodes", count(func(m *moment) int64 { return int64(m.stats.Ephemerals) })},
	{"global_sessions", "Sessions known to the whole ensemble", count(func(m *moment) int64 { return int64(m.stats.Sessions) })},
	{"has_leader", "1 while clients are served: there is a leader with a quorum, or the server is on its own; otherwise 0; ZooKeeper has no such line", count((*moment).hasLeader)},
	{"last_client_response_size", "Size of the last reply, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.LastResponseBytes) })},
	{"live_heap_bytes", "Memory that the last garbage collection found in use, bytes; ZooKeeper has no such line", count((*moment).liveHeap)},
	{"local_sessions", "Sessions known to this server only", count(func(*moment) int64 { return 0 })},
	{"max_client_response_size", "Size of the largest reply, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MaxResponseBytes) })},
	{"max_latency", "Highest request latency since the start or srst, ms", count(func(m *moment) int64 { return m.stats.LatencyMaxMs })},
	{"min_client_response_size", "Size of the smallest reply, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MinResponseBytes) })},
	{"min_latency", "Lowest request latency since the start or srst, ms", count(func(m *moment) int64 { return m.stats.LatencyMinMs })},
	{"non_mtls_local_conn_count", "Plain connections of clients of this machine since the start", count(func(m *moment) int64 { return m.s.meter.nonMTLSLocal.Load() })},
	{"non_mtls_remote_conn_count", "Plain connections of clients of other machines since the start", count(func(m *moment) int64 { return m.s.meter.nonMTLSRemote.Load() })},
	{"num_alive_connections", "Client connections", count(func(m *moment) int64 { return int64(m.connections) })},
	{"outstanding_requests", "Requests in process", count(func(m *moment) int64 { return m.stats.Outstanding })},
	{"outstanding_tls_handshake", "TLS handshakes that are going on", count(func(m *moment) int64 { return m.s.meter.outstandingTLSHandshakes.Load() })},
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

// memberGauges are those of every member of an ensemble, leaderGauges those of a leader only.
var memberGauges = []metric{
	{"quorum_size", "Members of the ensemble that have a vote", count(func(m *moment) int64 { return int64(len(m.s.member.config.Voters())) })},
}

var leaderGauges = []metric{
	{"followers", "Learners connected to this leader; the name that old dashboards know", count(func(m *moment) int64 { return int64(m.status.Learners) })},
	{"last_proposal_size", "Size of the last proposal, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.LastProposalBytes) })},
	{"leader_uptime", "Time since this server began to serve as the leader, ms", count(func(m *moment) int64 { return m.uptimeMs })},
	{"learners", "Learners connected to this leader", count(func(m *moment) int64 { return int64(m.status.Learners) })},
	{"max_proposal_size", "Size of the largest proposal, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MaxProposalBytes) })},
	{"min_proposal_size", "Size of the smallest proposal, bytes; -1 before any", count(func(m *moment) int64 { return int64(m.stats.MinProposalBytes) })},
	{"pending_syncs", "Requests of clients that wait for the proof of leadership", count(func(m *moment) int64 { return int64(m.stats.PendingSyncs) })},
	{"synced_followers", "Followers that are level with this leader", count(func(m *moment) int64 { return int64(m.status.SyncedFollowers) })},
	{"synced_non_voting_followers", "Followers without a vote that are level with this leader", count(func(*moment) int64 { return 0 })},
	{"synced_observers", "Observers that are level with this leader", count(func(m *moment) int64 { return int64(m.status.SyncedObservers) })},
}

// quotaGauges have the namespace as label. Their order is that of the numbers in moment.quotaGauges.
var quotaGauges = [...]struct{ name, help string }{
	{"quota_count_limit_per_namespace", "Nodes that the quotas of a namespace allow, the soft limit where there is no hard one; -1 for no limit"},
	{"quota_bytes_limit_per_namespace", "Bytes that the quotas of a namespace allow, the soft limit where there is no hard one; -1 for no limit"},
	{"quota_count_usage_per_namespace", "Nodes where quotas of a namespace hold"},
	{"quota_bytes_usage_per_namespace", "Bytes of data where quotas of a namespace hold"},
}

var counters = []metric{
	{"bytes_received_count", "Bytes from clients", count(func(m *moment) int64 { return m.s.meter.bytesIn.Load() })},
	{"cnxn_closed_without_zk_server_running", "Connections closed because the server was not serving", count(func(m *moment) int64 { return m.s.meter.closedNotServing.Load() })},
	{"commit_count", "Transactions committed by this server as the leader, or standalone", count(func(m *moment) int64 { return int64(m.stats.Commits) })},
	{"connection_drop_count", "Connections that the client, the network or the throttle of sessions has ended", count(func(m *moment) int64 { return m.s.meter.dropped.Load() + m.s.sessions.dropped.Load() })},
	{"connection_rejected", "Connections refused by a limit", count(func(m *moment) int64 { return m.s.meter.rejected.Load() })},
	{"connection_request_count", "Requests for a session, new or taken up again", count(func(m *moment) int64 { return int64(m.stats.SessionRequests) })},
	{"connection_revalidate_count", "Requests to take a session up again", count(func(m *moment) int64 { return int64(m.stats.Revalidations) })},
	{"digest_mismatches_count", "Transactions after which the tree was not as recorded", count(func(m *moment) int64 { return int64(m.stats.DigestMismatches) })},
	{"insecure_admin_count", "Plain requests to the admin server", count(func(m *moment) int64 { return m.s.meter.insecureAdmin.Load() })},
	{"large_requests_rejected", "Requests beyond the budget of large ones", count(func(m *moment) int64 { return int64(m.stats.LargeRejected) })},
	{"missing_audit_records", "Records that the audit log lacks; ZooKeeper has no such line", count(func(m *moment) int64 { return m.s.audit.lost.Load() })},
	{"outstanding_changes_queued", "Transactions whose effects were foreseen, so that later requests could be checked against them", count(func(m *moment) int64 { return int64(m.stats.Proposals) })},
	{"outstanding_changes_removed", "Transactions that were applied by the server that had foreseen them", count(func(m *moment) int64 { return int64(m.stats.Commits) })},
	{"pings_received", "Pings from clients, which packets_received counts too; ZooKeeper has no such line", count(func(m *moment) int64 { return m.stats.Pings })},
	{"prep_processor_request_queued", "Writes of which a transaction was to be made here", count(func(m *moment) int64 { return int64(m.stats.Prepared) })},
	{"proposal_count", "Transactions proposed", count(func(m *moment) int64 { return int64(m.stats.Proposals) })},
	{"request_commit_queued", "Transactions applied", count(func(m *moment) int64 { return int64(m.stats.Applied) })},
	{"request_throttle_wait_count", "Times that a connection was not read because too many requests were in process", count(func(m *moment) int64 { return int64(m.stats.ReadPauses) })},
	{"response_bytes", "Bytes of replies to clients", count(func(m *moment) int64 { return m.stats.ReplyBytes })},
	{"restore_error_count", "Restores by the admin server that failed", count(func(m *moment) int64 { return m.s.meter.restoreErrors.Load() })},
	{"restore_rate_limited_count", "Restores that were asked for too soon after another", count(func(m *moment) int64 { return m.s.meter.restoreRateLimited.Load() })},
	{"revalidate_count", "Sessions that learners asked this leader about", count(func(m *moment) int64 { return int64(m.stats.LearnerRevalidations) })},
	{"sessionless_connections_expired", "Connections closed because they opened no session", count(func(m *moment) int64 { return m.s.meter.sessionlessExpired.Load() })},
	{"snapshot_error_count", "Snapshots that could not be written", count(func(m *moment) int64 { return m.s.meter.snapshotErrors.Load() })},
	{"snapshot_rate_limited_count", "Snapshots that were asked for too soon after another", count(func(m *moment) int64 { return m.s.meter.snapshotRateLimited.Load() })},
	{"stale_replies", "Transactions whose client had gone when they were applied", count(func(m *moment) int64 { return int64(m.stats.StaleReplies) })},
	{"stale_requests", "Requests whose connection was closed when their turn came", count(func(m *moment) int64 { return int64(m.stats.StaleRequests) })},
	{"stale_requests_dropped", "Requests that were thrown away because nobody waited for them any more", count(func(m *moment) int64 { return int64(m.stats.DroppedRequests + m.stats.StaleDropped) })},
	{"stale_sessions_expired", "Sessions that expired", count(func(m *moment) int64 { return int64(m.stats.ExpiredSessions) })},
	{"sync_processor_request_queued", "Transactions made durable in the log", count(func(m *moment) int64 { return m.s.meter.logged.Load() })},
	{"throttled_ops", "Requests refused because they had waited too long", count(func(m *moment) int64 { return int64(m.stats.Throttled) })},
	{"tls_handshake_exceeded", "TLS handshakes refused because too many were going on", count(func(m *moment) int64 { return m.s.meter.tlsHandshakeExceeded.Load() })},
	{"unrecoverable_error_count", "Errors that end the server", count(func(m *moment) int64 { return m.s.meter.unrecoverable.Load() })},
	{"unsuccessful_handshake", "TLS handshakes that failed", count(func(m *moment) int64 { return m.s.meter.unsuccessfulHandshake.Load() })},
	{"watch_bytes", "Bytes of events to clients", count(func(m *moment) int64 { return m.stats.EventBytes })},
}

// memberCounters concern the ensemble. A standalone server lists them with 0, as ZooKeeper does.
var memberCounters = []metric{
	{"diff_count", "Learners brought up to date by a part of the log", ofMember(func(m *memberMeter) int64 { return m.diffs.Load() })},
	{"leader_changes", "Times that clients came to be served under another leader or in a later epoch; ZooKeeper has no such line", ofMember(func(m *memberMeter) int64 { return m.leaders.Load() })},
	{"learner_commit_received_count", "Commits that this learner has received", ofMember(func(m *memberMeter) int64 { return m.commitsReceived.Load() })},
	{"learner_proposal_received_count", "Proposals that this learner has received", ofMember(func(m *memberMeter) int64 { return m.proposalsReceived.Load() })},
	{"looking_count", "Times that this server looked for a leader", ofMember(func(m *memberMeter) int64 { return m.looking.Load() })},
	{"snap_count", "Learners brought up to date by a snapshot", ofMember(func(m *memberMeter) int64 { return m.snaps.Load() })},
}

// ofMember is 0 for a standalone server.
func ofMember(f func(m *memberMeter) int64) func(*moment) admin.Number {
	return count(func(m *moment) int64 {
		if m.s.member == nil {
			return 0
		}
		return f(&m.s.member.meter)
	})
}
