package server

import (
	"cmp"
	"slices"
	"strconv"

	"zabra/zab/zxid"
)

// The tables of summaries. Agents of old read each of them, and dashboards add them up, hence the names are ZooKeeper's,
// though the stages that they are called after may be cut differently here.

var basicSummaries = []summaryMetric{
	{"connection_token_deficit", "Tokens missing from the connection throttle's bucket", false, func(s *Server) series { return &s.meter.deficit }},
	{"dbinittime", "Time to load the database at the start, ms", false, func(s *Server) series { return single(s.meter.recoverMs) }},
	{"election_time", "Time of an election, ms", false, fromMember(func(m *memberMeter) series { return &m.election })},
	{"follower_sync_time", "Time to be brought up to date as a follower, ms", false, fromMember(func(m *memberMeter) series { return &m.followerSync })},
	{"fsynctime", "Time to sync the log, ms", false, func(s *Server) series { return &s.meter.fsync }},
	{"inflight_diff_count", "Learners being brought up to date by a part of the log when another one begins to be", false, fromMember(func(m *memberMeter) series { return &m.diffing })},
	{"inflight_snap_count", "Learners being brought up to date by a snapshot when another one begins to be", false, fromMember(func(m *memberMeter) series { return &m.snapping })},
	{"leader_unavailable_time", "Time without service until this server served as the leader, ms", false, fromMember(func(m *memberMeter) series { return &m.leaderUnavailable })},
	{"node_changed_watch_count", "Watchers told of new data of a node", false, func(s *Server) series { return &s.meter.fired.changed }},
	{"node_children_watch_count", "Watchers told of a change of a node's children", false, func(s *Server) series { return &s.meter.fired.children }},
	{"node_created_watch_count", "Watchers told of a new node", false, func(s *Server) series { return &s.meter.fired.created }},
	{"node_deleted_watch_count", "Watchers told of the end of a node", false, func(s *Server) series { return &s.meter.fired.deleted }},
	{"observer_sync_time", "Time to be brought up to date as an observer, ms", false, fromMember(func(m *memberMeter) series { return &m.observerSync })},
	{"prep_processor_queue_size", "Requests that waited when the server began to look", false, func(s *Server) series { return &s.replica.Meter().Arrivals }},
	{"restore_time", "Time of a restore by the admin server, ms", false, func(s *Server) series { return &s.meter.restore }},
	{"snapshottime", "Time to write a snapshot, ms", false, func(s *Server) series { return &s.meter.snapshot }},
	{"startup_snap_load_time", "Time to load the snapshot at the start, ms", false, func(s *Server) series { return single(s.meter.snapshotLoadMs) }},
	{"startup_txns_load_time", "Time to replay the log at the start, ms", false, func(s *Server) series { return single(s.meter.replayMs) }},
	{"startup_txns_loaded", "Transactions replayed at the start", false, func(s *Server) series { return single(s.meter.replayed) }},
	{"sync_process_time", "Time to append to the log what waited for that, ms", false, func(s *Server) series { return &s.meter.log.append }},
	{"sync_processor_batch_size", "Transactions made durable by one sync", false, func(s *Server) series { return &s.meter.batch }},
	{"sync_processor_queue_size", "Transactions that waited when the disk was free again", false, func(s *Server) series { return &s.meter.log.waiting }},
	{"unavailable_time", "Time without service, ms", false, fromMember(func(m *memberMeter) series { return &m.unavailable })},
}

var percentileSummaries = []summaryMetric{
	{"commit_propagation_latency", "Age of transactions when this learner hears that they are committed, ms, by the clocks of two servers", true, fromMember(func(m *memberMeter) series { return &m.committed })},
	{"fsync_us", "Time to sync the log, microseconds; ZooKeeper has no such line", true, func(s *Server) series { return &s.meter.fsyncUs }},
	{"prep_processor_queue_time_ms", "Time from the receipt of a write until a transaction is made of it here, ms", true, func(s *Server) series { return &s.replica.Meter().Prepare }},
	{"propagation_latency", "Age of transactions when they are applied here, ms, by the clocks of two servers", true, func(s *Server) series { return &s.replica.Meter().Propagation }},
	{"proposal_ack_creation_latency", "Age of transactions when they are durable on this learner, ms, by the clocks of two servers", true, fromMember(func(m *memberMeter) series { return &m.ackCreation })},
	{"proposal_latency", "Age of transactions when they arrive at this learner, ms, by the clocks of two servers", true, fromMember(func(m *memberMeter) series { return &m.proposed })},
	{"quorum_ack_latency", "Age of transactions when a quorum has them, this leader included, ms", true, func(s *Server) series { return &s.replica.Meter().QuorumAck }},
	{"read_commitproc_time_ms", "Time that reads and syncs wait for earlier requests of their connection, ms; those that do not wait are left out", true, func(s *Server) series { return &s.replica.Meter().InLine }},
	{"readlatency", "Time from the receipt of a request that changes nothing to its reply, ms", true, func(s *Server) series { return &s.replica.Meter().Read }},
	{"sync_processor_queue_and_flush_time_ms", "Time from a transaction's way to the disk until it is durable, ms", true, func(s *Server) series { return &s.meter.log.whole }},
	{"sync_processor_queue_flush_time_ms", "Time to make durable what was appended to the log, ms", true, func(s *Server) series { return &s.meter.log.flushed }},
	{"sync_processor_queue_time_ms", "Time that transactions wait for the disk, ms", true, func(s *Server) series { return &s.meter.log.waited }},
	{"updatelatency", "Time from the receipt of a write to its reply, ms", true, func(s *Server) series { return &s.replica.Meter().Update }},
	{"write_commitproc_time_ms", "Time from the receipt of a write until it is committed, ms", true, func(s *Server) series { return &s.replica.Meter().Commit }},
}

// namespaceRead and namespaceWrite have the first element of the path as label.
var (
	namespaceRead  = summaryMetric{"read_per_namespace", "Bytes of reads by namespace: path, data or names of children, and 68 for the stat", false, nil}
	namespaceWrite = summaryMetric{"write_per_namespace", "Bytes of writes by namespace: path and data", false, nil}
)

// learnerQueue, learnerQueueTime and learnerAck have the id of a member as label. A leader has them.
var (
	learnerQueue     = summaryMetric{"learner_handler_qp_size", "Messages that wait for a learner when one more comes, by its id", false, nil}
	learnerQueueTime = summaryMetric{"learner_handler_qp_time_ms", "Time that messages for a learner wait to be sent, ms, by its id", true, nil}
	learnerAck       = summaryMetric{"ack_latency", "Time from a proposal to its acknowledgement by a member, ms, by its id", true, nil}
)

// fromMember has no samples on a standalone server.
func fromMember(f func(m *memberMeter) series) func(*Server) series {
	return func(s *Server) series {
		if s.member == nil {
			return nil
		}
		return f(&s.member.meter)
	}
}

// learnerSummaries are what a leader measures of the members. Of itself it has the acknowledgements only.
func (m *member) learnerSummaries() (list []labelled) {
	m.meter.learnersMu.Lock()
	defer m.meter.learnersMu.Unlock()
	ids := make([]zxid.ServerID, 0, len(m.meter.learners))
	for id := range m.meter.learners {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b zxid.ServerID) int { return cmp.Compare(a, b) })
	for _, id := range ids {
		l, label := m.meter.learners[id], strconv.FormatInt(int64(id), 10)
		list = append(list, labelled{&learnerAck, label, &l.ackMs})
		if id != m.id {
			list = append(list, labelled{&learnerQueue, label, &l.queued}, labelled{&learnerQueueTime, label, &l.queuedMs})
		}
	}
	return list
}
