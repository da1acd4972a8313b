package server

import "zabra/server/admin"

// What ZooKeeper's server measures and this one cannot, because it works in another way. All of it is listed, with 0 or
// without samples: dashboards show these names, and some agents give up where one is missing. The help text tells why.

var absentCounters = []metric{
	{"add_dead_watcher_stall_time", "Always 0: watches of closed connections are removed at once", absent},
	{"dead_watchers_cleared", "Always 0: watches of closed connections are removed at once", absent},
	{"dead_watchers_queued", "Always 0: watches of closed connections are removed at once", absent},
	{"ensemble_auth_fail", "Always 0: logins of the auth scheme ensemble are not counted apart; see auth_failed_count", absent},
	{"ensemble_auth_skip", "Always 0: logins of the auth scheme ensemble are not counted apart; see auth_failed_count", absent},
	{"ensemble_auth_success", "Always 0: logins of the auth scheme ensemble are not counted apart; see auth_failed_count", absent},
	{"quit_leading_due_to_disloyal_voter", "Always 0: no leader here gives up on account of how one voter behaves", absent},
	{"requests_not_forwarded_to_commit_processor", "Always 0: there is no commit processor that a request could bypass", absent},
	{"response_packet_cache_hits", "Always 0: replies are made from the tree, none is kept", absent},
	{"response_packet_cache_misses", "Always 0: replies are made from the tree, none is kept", absent},
	{"response_packet_get_children_cache_hits", "Always 0: replies are made from the tree, none is kept", absent},
	{"response_packet_get_children_cache_misses", "Always 0: replies are made from the tree, none is kept", absent},
	{"skip_learner_request_to_next_processor_count", "Always 0: there is no commit processor that a request could bypass", absent},
}

func absent(*moment) admin.Number { return admin.Int(0) }

var absentSummaries = []summaryMetric{
	{"close_session_prep_time", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", true, nil},
	{"commit_commit_proc_req_queued", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"commit_process_time", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", false, nil},
	{"concurrent_request_processing_in_commit_processor", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"dead_watchers_cleaner_latency", "Never a sample: watches of closed connections are removed at once", true, nil},
	{"jvm_pause_time_ms", "Never a sample: pauses of the process are not looked for; see go_gc_duration_seconds", true, nil},
	{"learner_request_processor_queue_size", "Never a sample: a leader takes requests of learners in the same steps as all others", false, nil},
	{"local_write_committed_time_ms", "Never a sample: what is committed is applied in the same step", true, nil},
	{"netty_queued_buffer_capacity", "Never a sample: there are no buffers of Netty", false, nil},
	{"om_commit_process_time_ms", "Never a sample: no server here serves observers in the place of the leader", true, nil},
	{"om_proposal_process_time_ms", "Never a sample: no server here serves observers in the place of the leader", true, nil},
	{"pending_session_queue_size", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"prep_process_time", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", false, nil},
	{"proposal_process_time", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", false, nil},
	{"read_commit_proc_issued", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"read_commit_proc_req_queued", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"read_final_proc_time_ms", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", true, nil},
	{"reads_after_write_in_session_queue", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"reads_issued_from_session_queue", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"request_throttle_queue_time_ms", "Never a sample: requests go into process at once, or their connection is not read", true, nil},
	{"requests_in_session_queue", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"server_write_committed_time_ms", "Never a sample: what is committed is applied in the same step", true, nil},
	{"session_queues_drained", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"socket_closing_time", "Never a sample: closing a socket does not wait for anything", false, nil},
	{"time_waiting_empty_pool_in_commit_processor_read_ms", "Never a sample: no write waits for a pool of readers", false, nil},
	{"write_batch_time_in_commit_processor", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", false, nil},
	{"write_commit_proc_issued", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"write_commit_proc_req_queued", "Never a sample: each connection has a line of its own; there is no commit processor with queues", false, nil},
	{"write_final_proc_time_ms", "Never a sample: prepare, propose, commit and apply are parts of one step, and not timed one by one", true, nil},
}
