package admin

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

// fields is what an answer says before command and error.
func fields(t testing.TB, src Source, command string) string {
	t.Helper()
	name := command
	for i := range httpCommands {
		for _, alias := range httpCommands[i].Aliases {
			if alias == command {
				name = httpCommands[i].Name
			}
		}
	}
	text := get(t, src, command)
	rest, ok := strings.CutSuffix(text, "  \"command\" : \""+name+"\",\n  \"error\" : null\n}")
	require.True(t, ok, "%s", text)
	rest, ok = strings.CutPrefix(rest, "{\n")
	require.True(t, ok, "%s", text)
	return rest
}

func TestCommandsWithoutFields(t *testing.T) {
	src := &fake{}
	for _, name := range []string{"ruok", "crst", "srst", "orst"} {
		require.Empty(t, fields(t, src, name))
	}
	require.Equal(t, []int{1, 1, 1}, []int{src.crst, src.srst, src.http.orst})
}

func TestSmallCommands(t *testing.T) {
	src := &fake{
		mask: 306, digests: []Digest{{0x80, 18446744073709551615}, {0x100000000, 7}}, env: Environment{{"zookeeper.version", "3.9.5-zabra"}, {"host.name", "h"}},
		conf: Configuration{
			ClientPort: 31011, SecureClientPort: -1, DataDir: "/data/version-2", DataLogDir: "/log/version-2", TickTimeMs: 2000, MaxClientCnxns: 60,
			MinSessionMs: 4000, MaxSessionMs: 40000, ServerID: 3, ListenBacklog: -1, Ensemble: &EnsembleConfiguration{},
		},
		bySession: []SessionPaths{{0x100000ba4e30000, []string{"/a", "/b\""}}, {-1, []string{"/c"}}},
		byPath:    []PathSessions{{"/a", []zxid.SessionID{1, 0x10}}, {"/b", []zxid.SessionID{2}}},
		http: fakeHTTP{
			initial: "a=1\nb=2\n", snapshot: &SnapshotFile{0x1000000d2, 1796025644}, leader: &Leader{true, 3, "10.0.0.3"},
			properties: []Property{{"java.version", "go1"}, {"zookeeper.ssl.keyStore.password", "hunter2"}, {"zookeeper.Token", "x"}},
		},
	}
	tests := []struct{ command, want string }{
		{"conf", `  "client_port" : 31011,
  "data_dir" : "/data/version-2",
  "data_log_dir" : "/log/version-2",
  "tick_time" : 2000,
  "max_client_cnxns" : 60,
  "min_session_timeout" : 4000,
  "max_session_timeout" : 40000,
  "server_id" : 3,
  "client_port_listen_backlog" : -1,
`},
		{"dirs", "  \"datadir_size\" : 67109517,\n  \"logdir_size\" : 67108880,\n"},
		{"env", "  \"zookeeper.version\" : \"3.9.5-zabra\",\n  \"host.name\" : \"h\",\n"},
		{"gtmk", "  \"tracemask\" : 306,\n"},
		{"hash", `  "digests" : [ {
    "zxid" : 128,
    "digest" : 18446744073709551615,
    "digest_version" : 2
  }, {
    "zxid" : 4294967296,
    "digest" : 7,
    "digest_version" : 2
  } ],
`},
		{"icfg", "  \"initial_configuration\" : \"a=1\\nb=2\\n\",\n"},
		{"isro", "  \"read_only\" : false,\n"},
		{"lsnp", "  \"zxid\" : \"1000000d2\",\n  \"timestamp\" : 1796025644,\n"},
		{"lead", "  \"is_leader\" : true,\n  \"leader_id\" : 3,\n  \"leader_ip\" : \"10.0.0.3\",\n"},
		{"sysp", "  \"java.version\" : \"go1\",\n  \"zookeeper.ssl.keyStore.password\" : \"********\",\n  \"zookeeper.Token\" : \"********\",\n"},
		{"wchs", "  \"num_connections\" : 1,\n  \"num_paths\" : 2,\n  \"num_total_watches\" : 3,\n"},
		{"wchc", `  "session_id_to_watched_paths" : {
    "72057644048908288" : [ "/a", "/b\"" ],
    "-1" : [ "/c" ]
  },
`},
		{"wchp", `  "path_to_session_ids" : {
    "/a" : [ 1, 16 ],
    "/b" : [ 2 ]
  },
`},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, fields(t, src, tt.command), tt.command)
	}
	// A server that has nothing to show.
	none := &fake{}
	for command, want := range map[string]string{
		"hash": "  \"digests\" : [ ],\n", "wchc": "  \"session_id_to_watched_paths\" : { },\n", "wchp": "  \"path_to_session_ids\" : { },\n",
		"lsnp": "  \"zxid\" : \"ffffffffffffffff\",\n  \"timestamp\" : -1,\n", "obsr": "  \"synced_observers\" : 0,\n  \"observers\" : [ ],\n",
		"voting_view": "  \"current_config\" : { },\n", "zabstate": "  \"voting\" : false,\n  \"zabstate\" : \"\",\n", "sysp": "",
		"cons": "  \"connections\" : [ ],\n  \"secure_connections\" : [ ],\n",
		"dump": "  \"expiry_time_to_session_ids\" : { },\n  \"session_id_to_ephemeral_paths\" : { },\n",
	} {
		require.Equal(t, want, fields(t, none, command), command)
	}
	require.Equal(t, "{\n  \"error\" : \"server is not initialized\",\n  \"command\" : \"leader\"\n}", get(t, none, "leader"))
}

func TestSetTraceMask(t *testing.T) {
	src := &fake{mask: 306}
	for query, want := range map[string]string{
		"":                               "setTraceMask requires long traceMask argument",
		"?tracemask=1":                   "setTraceMask requires long traceMask argument",
		"?traceMask=":                    "setTraceMask requires long traceMask argument, got ",
		"?traceMask=x":                   "setTraceMask requires long traceMask argument, got x",
		"?traceMask=9223372036854775808": "setTraceMask requires long traceMask argument, got 9223372036854775808",
	} {
		require.Equal(t, "{\n  \"error\" : \""+want+"\",\n  \"command\" : \"set_trace_mask\"\n}", get(t, src, "set_trace_mask"+query))
	}
	require.EqualValues(t, 306, src.mask)
	require.Equal(t, "{\n  \"tracemask\" : -5,\n  \"command\" : \"set_trace_mask\",\n  \"error\" : null\n}", get(t, src, "stmk?traceMask=-5&traceMask=6"))
	require.EqualValues(t, -5, src.mask)
	resp := ask(t, src, http.MethodPost, "/commands/stmk?traceMask=7")
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	require.EqualValues(t, -5, src.mask)
}

func TestConnectionObjects(t *testing.T) {
	conns := append([]Connection{}, testConns[:3]...)
	conns[2].Secure = true
	require.Equal(t, `  "connections" : [ {
    "remote_socket_address" : "127.0.0.1:39848",
    "interest_ops" : 1,
    "outstanding_requests" : 0,
    "packets_received" : 231,
    "packets_sent" : 232,
    "session_id" : 72057644048908288,
    "last_operation" : "PING",
    "established" : 1796025644198,
    "session_timeout" : 10000,
    "last_cxid" : 229,
    "last_zxid" : 4294967506,
    "last_response_time" : 771316,
    "last_latency" : 0,
    "min_latency" : 0,
    "avg_latency" : 4,
    "max_latency" : 32
  }, {
    "remote_socket_address" : "[0:0:0:0:0:0:0:1%0]:41234",
    "interest_ops" : 5,
    "outstanding_requests" : 2,
    "packets_received" : 3,
    "packets_sent" : 1,
    "session_id" : 1,
    "last_operation" : "NA",
    "established" : 5,
    "session_timeout" : 4000,
    "last_cxid" : -1,
    "last_zxid" : -1,
    "last_response_time" : 0,
    "last_latency" : 0,
    "min_latency" : 0,
    "avg_latency" : 0,
    "max_latency" : 0
  } ],
  "secure_connections" : [ {
    "remote_socket_address" : "10.0.0.7:40502",
    "interest_ops" : 0,
    "outstanding_requests" : 0,
    "packets_received" : 1,
    "packets_sent" : 0,
    "session_id" : 0,
    "last_operation" : null,
    "established" : 0,
    "session_timeout" : 0,
    "last_cxid" : 0,
    "last_zxid" : 0,
    "last_response_time" : 0,
    "last_latency" : 0,
    "min_latency" : 0,
    "avg_latency" : 0,
    "max_latency" : 0
  } ],
`, fields(t, &fake{conns: conns}, "cons"))
}

func TestServerObjects(t *testing.T) {
	src := &fake{
		server: Server{
			Version: "3.9.5-zabra", Latency: Latency{0, 11, 1.19234}, Received: 28, Sent: 27, Connections: 2, Outstanding: 1,
			Zxid: 0x1000000d2, Mode: ModeStandalone, Nodes: 5,
		},
		http: fakeHTTP{detail: Detail{SlowSyncs: 1, ResponseLastBytes: 16, ResponseMinBytes: 16, ResponseMaxBytes: 90, AuthFailed: 2, PlainRemote: 3, PlainLocal: 4, UptimeMs: 5000}},
	}
	head := `  "version" : "3.9.5-zabra",
  "read_only" : false,
  "server_stats" : {
    "packets_sent" : 27,
    "packets_received" : 28,
    "fsync_threshold_exceed_count" : 1,
    "client_response_stats" : {
      "last_buffer_size" : 16,
      "min_buffer_size" : 16,
      "max_buffer_size" : 90
    },
    "data_dir_size" : 67109517,
    "log_dir_size" : 67108880,
    "provider_null" : false,
    "last_processed_zxid" : 4294967506,
    "server_state" : "standalone",
    "outstanding_requests" : 1,
    "avg_latency" : 1.1923,
    "max_latency" : 11,
    "min_latency" : 0,
    "num_alive_client_connections" : 2,
    "auth_failed_count" : 2,
    "non_mtlsremote_conn_count" : 3,
    "non_mtlslocal_conn_count" : 4,
    "uptime" : 5000
  },
  "client_response" : {
    "last_buffer_size" : 16,
    "min_buffer_size" : 16,
    "max_buffer_size" : 90
  },
`
	const nodes = "  \"node_count\" : 5,\n"
	require.Equal(t, head+nodes, fields(t, src, "srvr"))
	src.conns = testConns[2:3]
	clients := `  "connections" : [ {
    "remote_socket_address" : "10.0.0.7:40502",
    "interest_ops" : 0,
    "outstanding_requests" : 0,
    "packets_received" : 1,
    "packets_sent" : 0
  } ],
  "secure_connections" : [ ],
`
	require.Equal(t, head+nodes+clients, fields(t, src, "stat"))
	src.server.Proposals = &ProposalSizes{102, 48, 102}
	proposals := `  "proposal_stats" : {
    "last_buffer_size" : 102,
    "min_buffer_size" : 48,
    "max_buffer_size" : 102
  },
`
	require.Equal(t, head+proposals+nodes+clients, fields(t, src, "stats"))
}

func TestDumpObject(t *testing.T) {
	src := &fake{dump: Dump{
		Sessions:   []SessionExpiry{{AtMs: 1796025655000}, {1796025659000, []zxid.SessionID{0x100000ba4e30000, -2}}},
		Ephemerals: []SessionPaths{{-2, []string{"/app/e-1", "/app/e-2"}}},
	}}
	require.Equal(t, `  "expiry_time_to_session_ids" : {
    "1796025655000" : [ ],
    "1796025659000" : [ 72057644048908288, -2 ]
  },
  "session_id_to_ephemeral_paths" : {
    "-2" : [ "/app/e-1", "/app/e-2" ]
  },
`, fields(t, src, "dump"))
}

// monitor has the lines of mntr, and numbers where those have numbers.
func TestMonitorObject(t *testing.T) {
	src := &fake{metrics: Metrics{
		Version: "3.9.5-zabra", Mode: ModeLeader, PeerState: "leading - broadcast",
		Gauges:    []Sample{{Name: "znode_count", Value: Int(5)}, {Name: "avg_latency", Value: Float(4.31172)}, {Name: "min_proposal_size", Value: Int(-1)}},
		Counters:  []Sample{{Name: "commit_count", Value: Int(0)}},
		Summaries: []Summary{{Name: "fsynctime", Count: 2, Sum: 3, Min: 1, Max: 2}},
	}}
	require.Equal(t, `  "version" : "3.9.5-zabra",
  "server_state" : "leader",
  "peer_state" : "leading - broadcast",
  "avg_latency" : 4.3117,
  "min_proposal_size" : -1,
  "znode_count" : 5,
  "commit_count" : 0,
  "avg_fsynctime" : 1.5,
  "min_fsynctime" : 1,
  "max_fsynctime" : 2,
  "cnt_fsynctime" : 2,
  "sum_fsynctime" : 3,
`, fields(t, src, "monitor"))
	for text, want := range map[string]any{"1": int64(1), "-1": int64(-1), "0.0": 0.0, "12.5": 12.5, "1.2.3": "1.2.3", "": "", "-": "-", "1e5": "1e5", "NaN": "NaN", "0x1": "0x1"} {
		require.Equal(t, want, numberOrText(text), "%q", text)
	}
}

func TestEnsembleObjects(t *testing.T) {
	self := Member{
		ID: 1, Quorum: []HostPort{{"127.0.0.1", 2888}, {"::1", 2889}}, Election: []HostPort{{"127.0.0.1", 3888}, {"::1", 3889}}, Client: "0.0.0.0:2181",
	}
	src := &fake{http: fakeHTTP{
		members: []Member{self, {ID: 2, Quorum: []HostPort{{"b", 2888}}, Election: []HostPort{{"b", 3888}}}},
		zab:     &ZabState{Member: self, IsLeader: true, Zxid: zxid.Make(1, 0xd2), Phase: "broadcast"},
		synced:  1,
		observers: []Observer{{
			Remote: netip.MustParseAddrPort("10.0.0.4:5000"), ID: 4, EstablishedMs: 1796025644198, Queued: 1, QueuedBytes: 200, Received: 3, Sent: 4, Requests: 5, LastZxid: 6,
		}},
	}}
	require.Equal(t, `  "current_config" : {
    "1" : {
      "server_addresses" : [ "127.0.0.1:2888", "[::1]:2889" ],
      "election_addresses" : [ "127.0.0.1:3888", "[::1]:3889" ],
      "client_address" : "0.0.0.0:2181",
      "learner_type" : "participant"
    },
    "2" : {
      "server_addresses" : [ "b:2888" ],
      "election_addresses" : [ "b:3888" ],
      "client_address" : "",
      "learner_type" : "participant"
    }
  },
`, fields(t, src, "voting_view"))
	require.Equal(t, `  "synced_observers" : 1,
  "observers" : [ {
    "remote_socket_address" : "/10.0.0.4:5000",
    "sid" : 4,
    "established" : 1796025644198,
    "queued_packets" : 1,
    "queued_packets_size" : 200,
    "packets_received" : 3,
    "packets_sent" : 4,
    "requests" : 5,
    "last_zxid" : 6
  } ],
`, fields(t, src, "observers"))
	text := fields(t, src, "zabstate")
	require.True(t, strings.HasPrefix(text, `  "myid" : 1,
  "is_leader" : true,
  "quorum_address" : {
    "empty" : false,
    "all_addresses" : [ "127.0.0.1:2888", "[::1]:2889" ],
    "wildcard_addresses" : [ "0.0.0.0:2888", "0.0.0.0:2889" ],
    "all_ports" : [ 2888, 2889 ],
    "all_host_strings" : [ "127.0.0.1", "::1" ],
    "reachable_address" : "127.0.0.1:2888",
    "all_reachable_addresses" : [ "127.0.0.1:2888", "[::1]:2889" ],
    "all_reachable_addresses_or_all" : [ "127.0.0.1:2888", "[::1]:2889" ],
    "reachable_or_one" : "127.0.0.1:2888",
    "one" : "127.0.0.1:2888"
  },
  "election_address" : {
    "empty" : false,
`), "%s", text)
	require.True(t, strings.HasSuffix(text, `  "client_address" : "0.0.0.0:2181",
  "voting" : true,
  "last_zxid" : "0x1000000d2",
  "zab_epoch" : 1,
  "zab_counter" : 210,
  "zabstate" : "broadcast",
`), "%s", text)
	src.http.zab.Member = Member{ID: 3, Observer: true}
	text = fields(t, src, "zabstate")
	require.Contains(t, text, "    \"empty\" : true,\n    \"all_addresses\" : [ ],\n")
	require.Contains(t, text, "  \"client_address\" : null,\n  \"voting\" : false,\n")
}
