package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/conf"
	"zabra/server"
	"zabra/server/servertest"
	"zabra/wire"
)

// adminOnFreePort is a configuration with an admin server on a free port.
func adminOnFreePort(cfg *conf.Config) {
	cfg.Admin.Enabled, cfg.Admin.Address, cfg.Admin.Port = true, "127.0.0.1", 0
}

// plainClient leaves no connection open.
var plainClient = &http.Client{Timeout: shellWaitMax, Transport: &http.Transport{DisableKeepAlives: true}}

// request sends a request to an admin server and returns status and body.
func request(t testing.TB, method, base, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
	require.NoError(t, err)
	resp, err := plainClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

// command is the body of a command's answer.
func command(t testing.TB, base, name string) string {
	t.Helper()
	status, text := request(t, http.MethodGet, base, "/commands/"+name)
	require.Equal(t, http.StatusOK, status, "%s", text)
	return text
}

func (s *shell) adminURL() string { return "http://" + s.AdminAddr().String() }

func (s *shell) command(name string) string {
	s.t.Helper()
	return command(s.t, s.adminURL(), name)
}

// The life of the admin server: it says where it is, answers, and is gone with the server.
func TestAdminServerLives(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := startShell(t, shellConfig(t, adminOnFreePort))
	addr := s.AdminAddr().String()
	require.Equal(t, "{\n  \"command\" : \"ruok\",\n  \"error\" : null\n}", s.command("ruok"))
	require.Equal(t, 1, s.logs.FilterMessage(fmt.Sprintf("Started AdminServer on address 127.0.0.1, port %d and command URL /commands",
		s.AdminAddr().(*net.TCPAddr).Port)).Len())
	for _, path := range []string{"/livez", "/readyz"} {
		status, text := request(t, http.MethodGet, s.adminURL(), path)
		require.Equal(t, 200, status)
		require.Equal(t, "ok\n", text)
	}
	// Connections that do nothing keep nobody waiting at the end.
	idle, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer idle.Close()
	half, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer half.Close()
	_, err = io.WriteString(half, "GET /commands/ruok HTTP/1.1\r\nHost: x\r\n")
	require.NoError(t, err)
	s.shutdown()
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
	plainClient.CloseIdleConnections()
	goleak.VerifyNone(t, before)
}

// A port in use, or an address that is none, is told and costs nothing else.
func TestAdminPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	for name, change := range map[string]func(*conf.Config){
		"in use":     func(cfg *conf.Config) { cfg.Admin.Port = port },
		"no address": func(cfg *conf.Config) { cfg.Admin.Address = "256.0.0.1" },
	} {
		t.Run(name, func(t *testing.T) {
			s := startShell(t, shellConfig(t, adminOnFreePort, change))
			require.Nil(t, s.AdminAddr())
			require.Equal(t, 1, s.logs.FilterMessageSnippet("Problem starting AdminServer on address ").Len())
			require.Equal(t, "imok", s.word("ruok"))
		})
	}
	s := startShell(t, shellConfig(t))
	require.Nil(t, s.AdminAddr())
	require.Zero(t, s.logs.FilterMessageSnippet("AdminServer").Len())
}

// A server that was never started gives its port back.
func TestAdminPortIsGivenBack(t *testing.T) {
	cfg := shellConfig(t, adminOnFreePort)
	s, err := server.New(cfg, server.Options{})
	require.NoError(t, err)
	addr := s.AdminAddr().String()
	require.NoError(t, s.Close())
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// However many connections there are, those that do nothing make way.
func TestAdminConnectionsAreBounded(t *testing.T) {
	s := startShell(t, shellConfig(t, adminOnFreePort))
	for range server.AdminConnsMax + 20 {
		c, err := net.Dial("tcp", s.AdminAddr().String())
		require.NoError(t, err)
		defer c.Close()
	}
	require.Contains(t, s.command("ruok"), "null")
	require.LessOrEqual(t, s.AdminConns(), server.AdminConnsMax)
}

// A client that stays on its connection asks on it again and again.
func TestAdminKeepsConnections(t *testing.T) {
	s := startShell(t, shellConfig(t, adminOnFreePort))
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	for range 3 {
		resp, err := (&http.Client{Transport: transport}).Get("http://" + s.AdminAddr().String() + "/commands/ruok")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	require.Equal(t, 1, s.AdminConns())
}

// lines of an answer that are the same on every machine.
func requireInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		require.True(t, ok, "%q is missing in its place in %s", part, text)
		rest = after
	}
}

func TestAdminCommandsStandalone(t *testing.T) {
	cfg := shellConfig(t, adminOnFreePort)
	s := startShell(t, cfg)
	c, session := s.session()
	c.send(createFrame(1, "/a", []byte("x")))
	c.reply(1, wire.CodeOK)
	c.send(requestFrame(2, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a"), Watch: true}))
	c.reply(2, wire.CodeOK)
	sid := int64(session.SessionID)
	const end = "  \"command\" : \"%s\",\n  \"error\" : null\n}"
	whole := map[string]string{
		"conf": fmt.Sprintf(`  "client_port" : %d,
  "data_dir" : "%s/version-2",
  "data_log_dir" : "%s/version-2",
  "tick_time" : 500,
  "max_client_cnxns" : 0,
  "min_session_timeout" : 1000,
  "max_session_timeout" : 60000,
  "server_id" : 0,
  "client_port_listen_backlog" : -1,
`, s.Addr().(*net.TCPAddr).Port, cfg.DataDir, cfg.DataDir) + fmt.Sprintf(end, "configuration"),
		"isro":        "  \"read_only\" : false,\n" + fmt.Sprintf(end, "is_read_only"),
		"gtmk":        "  \"tracemask\" : 306,\n" + fmt.Sprintf(end, "get_trace_mask"),
		"hash":        "  \"digests\" : [ ],\n" + fmt.Sprintf(end, "hash"),
		"wchs":        "  \"num_connections\" : 1,\n  \"num_paths\" : 1,\n  \"num_total_watches\" : 1,\n" + fmt.Sprintf(end, "watch_summary"),
		"wchc":        fmt.Sprintf("  \"session_id_to_watched_paths\" : {\n    \"%d\" : [ \"/a\" ]\n  },\n", sid) + fmt.Sprintf(end, "watches"),
		"wchp":        fmt.Sprintf("  \"path_to_session_ids\" : {\n    \"/a\" : [ %d ]\n  },\n", sid) + fmt.Sprintf(end, "watches_by_path"),
		"obsr":        "  \"synced_observers\" : 0,\n  \"observers\" : [ ],\n" + fmt.Sprintf(end, "observers"),
		"orst":        fmt.Sprintf(end, "observer_connection_stat_reset"),
		"voting_view": "  \"current_config\" : { },\n" + fmt.Sprintf(end, "voting_view"),
		"zabstate":    "  \"voting\" : false,\n  \"zabstate\" : \"\",\n" + fmt.Sprintf(end, "zabstate"),
	}
	for name, want := range whole {
		require.Equal(t, "{\n"+want, s.command(name), name)
	}
	require.Equal(t, "{\n  \"error\" : \"server is not initialized\",\n  \"command\" : \"leader\"\n}", s.command("lead"))
	requireInOrder(t, s.command("cons"), `  "connections" : [ {
    "remote_socket_address" : "127.0.0.1:`, `",
    "interest_ops" : 1,
    "outstanding_requests" : 0,
    "packets_received" : 3,
    "packets_sent" : 3,
    "session_id" : `+fmt.Sprint(sid)+`,
    "last_operation" : "EXIS",
    "established" : `, `,
    "session_timeout" : 30000,
    "last_cxid" : 2,
    "last_zxid" : `, "  } ],\n  \"secure_connections\" : [ ],\n  \"command\" : \"connections\"")
	requireInOrder(t, s.command("stat"), "  \"version\" : \"3.9.5-zabra-test", `"read_only" : false,`, `"server_state" : "standalone",`,
		`"client_response" : {`, "\"node_count\" : 6,\n  \"connections\" : [ {\n    \"remote_socket_address\" : \"127.0.0.1:", "\"secure_connections\" : [ ],")
	require.NotContains(t, s.command("srvr"), "proposal_stats")
	requireInOrder(t, s.command("dump"), "{\n  \"expiry_time_to_session_ids\" : {\n    \"1", fmt.Sprintf("\" : [ %d ]\n  },\n  \"session_id_to_ephemeral_paths\" : { },\n", sid))
	requireInOrder(t, s.command("env"), "{\n  \"zookeeper.version\" : \"3.9.5-zabra-test", `"host.name" : `, `"java.version" : "go`, `"os.memory.total" : "`)
	require.Regexp(t, `^\{\n  "zxid" : "0",\n  "timestamp" : 1[0-9]{9},\n  "command" : "last_snapshot"`, s.command("lsnp"))
	requireInOrder(t, s.command("sysp"), "{\n  \"java.", `"os.arch" : `, `"user.dir" : `)
	require.Contains(t, s.command("icfg"), `"initial_configuration" : "# The configuration of`)

	// The numbers go back to nothing by the same commands as by the words.
	require.Equal(t, "{\n"+fmt.Sprintf(end, "stat_reset"), s.command("srst"))
	require.Contains(t, s.command("srvr"), `"packets_received" : 0,`)
	require.Equal(t, "{\n"+fmt.Sprintf(end, "connection_stat_reset"), s.command("crst"))
	require.Contains(t, s.command("cons"), "\"packets_received\" : 0,\n    \"packets_sent\" : 0,")
	require.Contains(t, s.command("stmk?traceMask=7"), "\"tracemask\" : 7,")
	require.Equal(t, "7", s.word("gtmk"))
}

// monitor has the names of mntr in the order of mntr.
func TestAdminMonitor(t *testing.T) {
	s := startShell(t, shellConfig(t, adminOnFreePort))
	var want, got []string
	for line := range strings.Lines(s.word("mntr")) {
		name, _, _ := strings.Cut(line, "\t")
		want = append(want, strings.TrimPrefix(name, "zk_"))
	}
	for _, m := range regexp.MustCompile(`(?m)^  "([^"]+)" : `).FindAllStringSubmatch(s.command("monitor"), -1) {
		got = append(got, m[1])
	}
	require.Equal(t, append(want, "command", "error"), got)
	require.Regexp(t, `(?m)^  "znode_count" : 5,$`, s.command("monitor"))
	require.Regexp(t, `(?m)^  "connection_drop_probability" : 0\.0,$`, s.command("monitor"))
}

// What the admin servers of an ensemble's members say, and what is left of it without a quorum.
func TestAdminCommandsOfAnEnsemble(t *testing.T) {
	e := servertest.StartEnsemble(t, 4, servertest.WithObservers(1), servertest.WithAdmin())
	leader, follower := e.Leader(), e.Follower()
	at := func(id int, name string) string { t.Helper(); return command(t, e.Server(id).AdminURL(), name) }
	c := e.Client(t, follower)
	_, err := c.Create(t.Context(), "/e", []byte("data"), wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	oc := e.Client(t, 4)
	_, err = oc.Create(t.Context(), "/o", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	until(t, "the observer is level", func() bool { return e.Stats(leader).SyncedLearners == 3 })

	require.Equal(t, fmt.Sprintf("{\n  \"is_leader\" : true,\n  \"leader_id\" : %d,\n  \"leader_ip\" : \"127.0.0.1\",\n  \"command\" : \"leader\",\n  \"error\" : null\n}", leader), at(leader, "leader"))
	require.Contains(t, at(4, "lead"), fmt.Sprintf("\"is_leader\" : false,\n  \"leader_id\" : %d,", leader))
	require.Contains(t, at(leader, "srvr"), "  \"proposal_stats\" : {\n    \"last_buffer_size\" : ")
	require.NotContains(t, at(follower, "srvr"), "proposal_stats")
	require.Contains(t, at(follower, "srvr"), `"server_state" : "follower"`)
	require.Contains(t, at(follower, "dump"), "{\n  \"expiry_time_to_session_ids\" : { },\n  \"session_id_to_ephemeral_paths\" : {\n    \""+fmt.Sprint(int64(c.Session()))+"\" : [ \"/e\" ]")
	require.Contains(t, at(leader, "dump"), "{\n  \"expiry_time_to_session_ids\" : {\n    \"1")
	require.Contains(t, at(follower, "monitor"), "\"server_state\" : \"follower\",\n  \"peer_state\" : \"following - broadcast\",")
	require.Contains(t, at(follower, "conf"), fmt.Sprintf("\"server_id\" : %d,", follower))
	require.Contains(t, at(follower, "icfg"), `\nserver.1=127.0.0.1:`)

	view := at(follower, "voting_view")
	for id := 1; id <= 3; id++ {
		client := "" // that of others is known from their server lines only
		if id == follower {
			client = e.Server(id).Addr()
		}
		require.Contains(t, view, fmt.Sprintf("    \"%d\" : {\n      \"server_addresses\" : [ \"%s\" ],\n      \"election_addresses\" : [ \"%s\" ],\n      \"client_address\" : \"%s\",\n      \"learner_type\" : \"participant\"\n    }",
			id, e.QuorumAddr(id), e.ElectionAddr(id), client))
	}
	require.NotContains(t, view, "\"4\"")
	_, quorumPort, _ := strings.Cut(e.QuorumAddr(follower), ":")
	requireInOrder(t, at(follower, "zabstate"), fmt.Sprintf("{\n  \"myid\" : %d,\n  \"is_leader\" : false,\n  \"quorum_address\" : {\n    \"empty\" : false,\n    \"all_addresses\" : [ \"%s\" ],",
		follower, e.QuorumAddr(follower)), "\"all_ports\" : [ "+quorumPort+" ]", `"election_address" : {`, "  \"client_address\" : \""+e.Server(follower).Addr()+"\",\n  \"voting\" : true,\n  \"last_zxid\" : \"0x1",
		"\"zab_epoch\" : 1,", `"zab_counter" : `, `"zabstate" : "broadcast"`)
	require.Contains(t, at(4, "zabstate"), `"voting" : false`)

	requireInOrder(t, at(leader, "observers"), "{\n  \"synced_observers\" : 1,\n  \"observers\" : [ {\n    \"remote_socket_address\" : \"/127.0.0.1:", "\"sid\" : 4,\n    \"established\" : 1",
		`"queued_packets" : 0,`, `"packets_received" : `, `"packets_sent" : `, `"requests" : `, "\"last_zxid\" : 42949")
	require.Regexp(t, `"requests" : [1-9]`, at(leader, "obsr"))
	at(leader, "orst")
	require.Contains(t, at(leader, "obsr"), `"requests" : 0,`)
	require.Contains(t, at(follower, "obsr"), "\"synced_observers\" : 0,\n  \"observers\" : [ ],")

	// Members that have applied the same have the same digest.
	until(t, "all members have the same digest", func() bool {
		one := at(1, "digest")
		return one == at(2, "digest") && one == at(3, "digest") && one == at(4, "digest")
	})
	require.Regexp(t, `^\{\n  "zxid" : "0x[0-9a-f]+",\n  "digest" : "[0-9]+",\n  "digest_version" : 2,\n  "recent" : \[ \],\n  "command" : "digest"`, at(1, "digest"))

	// Without a quorum.
	rest := 1 + follower%3
	if rest == leader {
		rest = 1 + rest%3
	}
	e.Kill(leader)
	e.Kill(rest)
	base := e.Server(follower).AdminURL()
	until(t, "the member is alone", func() bool { return e.Stats(follower).Mode == "" })
	const down = "{\n  \"command\" : \"srvr\",\n  \"error\" : \"This ZooKeeper instance is not currently serving requests\"\n}"
	require.Equal(t, down, at(follower, "srvr"))
	require.Contains(t, at(follower, "zabstate"), `"zabstate" : "`)
	require.Contains(t, at(follower, "refusals"), `"error" : null`)
	status, text := request(t, http.MethodGet, base, "/livez")
	require.Equal(t, 200, status, text)
	status, text = request(t, http.MethodGet, base, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Regexp(t, `^(election|discovery|synchronization)\n$`, text)
}

// The last refusals can be asked for, the newest first.
func TestAdminRefusals(t *testing.T) {
	s := startShell(t, shellConfig(t, adminOnFreePort))
	require.Equal(t, "{\n  \"total\" : 0,\n  \"refusals\" : [ ],\n  \"command\" : \"refusals\",\n  \"error\" : null\n}", s.command("refusals"))
	for range 3 {
		scan := s.dial()
		scan.send([]byte("GET / HTTP/1.0\r\n\r\n"))
		scan.gone()
	}
	c, session := s.session()
	c.send(requestFrame(-4, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("nonsense")}))
	c.reply(-4, wire.CodeAuthFailed)
	until(t, "the second is noted", func() bool { return strings.Contains(s.command("refusals"), `"total" : 4,`) })
	requireInOrder(t, s.command("refusals"), "\"refusals\" : [ {\n    \"time\" : 1", "\"count\" : 1,\n    \"kind\" : \"request ", "\"session_id\" : \""+session.SessionID.String()+"\",",
		`"operation" : `, "\"reason\" : \"authentication refused\",\n    \"detail\" : \"", "}, {\n    \"time\" : 1",
		"\"count\" : 3,\n    \"kind\" : \"first length\",\n    \"remote_socket_address\" : \"127.0.0.1:", "\"reason\" : \"Len error. A message from /127.0.0.1:")
}

// A digest can be asked for as long as it is remembered.
func TestAdminDigest(t *testing.T) {
	s := startShell(t, shellConfig(t, adminOnFreePort))
	c, _ := s.session()
	for i := range int32(130) { // the session was the first transaction, so that this goes past the 128th
		c.send(createFrame(i+1, fmt.Sprint("/n", i), nil))
		c.reply(i+1, wire.CodeOK)
	}
	digest := fmt.Sprint(s.Digest())
	require.Equal(t, fmt.Sprintf("{\n  \"zxid\" : \"0x83\",\n  \"digest\" : \"%s\",\n  \"digest_version\" : 2,\n  \"command\" : \"digest\",\n  \"error\" : null\n}", digest), s.command("digest?zxid=0x83"))
	requireInOrder(t, s.command("digest"), "\"zxid\" : \"0x83\",\n  \"digest\" : \""+digest+"\"", "\"recent\" : [ {\n    \"zxid\" : \"0x80\",\n    \"digest\" : \"")
	hash := strings.TrimPrefix(strings.TrimSpace(s.word("hash")), "80: ")
	require.Contains(t, s.command("digest?zxid=128"), "\"zxid\" : \"0x80\",\n  \"digest\" : \""+hash+"\"")
	require.Contains(t, s.command("hash"), "\"zxid\" : 128,\n    \"digest\" : "+hash+",\n    \"digest_version\" : 2")
	require.Contains(t, s.command("digest?zxid=0x81"), `"error" : "no digest of 0x81 is remembered`)
	for _, bad := range []string{"", "x", "0x", "-", "1e3", "0x10000000000000000"} {
		require.Contains(t, s.command("digest?zxid="+bad), "is no zxid", bad)
	}
	none := startShell(t, shellConfig(t, adminOnFreePort, func(cfg *conf.Config) { cfg.DigestEnabled = false }))
	require.Contains(t, none.command("digest"), `"error" : "digest.enabled is false`)
}

func (s *shell) post(path string) (int, string) {
	s.t.Helper()
	return request(s.t, http.MethodPost, s.adminURL(), "/commands/"+path)
}

// purge leaves what was asked for, and nothing else is touched.
func TestAdminPurge(t *testing.T) {
	cfg := shellConfig(t, adminOnFreePort, func(cfg *conf.Config) { cfg.SnapCount = 4 })
	s := startShell(t, cfg)
	snapshots := func() int {
		names, err := filepath.Glob(filepath.Join(cfg.DataDir, "version-2", "snapshot.*"))
		require.NoError(t, err)
		return len(names)
	}
	c, _ := s.session()
	xid := int32(0)
	until(t, "there are many snapshots", func() bool {
		xid++
		c.send(createFrame(xid, fmt.Sprint("/n", xid), nil))
		c.reply(xid, wire.CodeOK)
		return snapshots() >= 7
	})
	status, text := s.post("purge?count=2")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, `"error" : "count is the number of snapshots that stay, 3 at least"`)
	status, text = s.post("purge?count=5")
	require.Equal(t, 200, status, text)
	require.Contains(t, text, "{\n  \"count\" : 5,\n  \"snapshots_removed\" : ")
	require.GreaterOrEqual(t, snapshots(), 5)
	require.Eventually(t, func() bool { // a snapshot may have been under way
		status, _ := s.post("purge")
		return status == 200 && snapshots() == 3
	}, shellWaitMax, time.Millisecond)
	c.send(getFrame(xid+1, "/n1"))
	c.reply(xid+1, wire.CodeOK)
	status, text = request(t, http.MethodGet, s.adminURL(), "/commands/purge")
	require.Equal(t, http.StatusMethodNotAllowed, status, text)
}

// reload does what the server was given for it.
func TestAdminReload(t *testing.T) {
	cfg := shellConfig(t, adminOnFreePort)
	without := startShell(t, cfg)
	status, text := without.post("reload")
	require.Equal(t, http.StatusNotImplemented, status, text)
	require.NoError(t, without.Close())

	var s *server.Server
	var faulty atomic.Bool
	s, err := server.New(cfg, server.Options{Reload: func() (server.Reloaded, error) {
		changed := *cfg
		changed.MaxClientCnxns, changed.TickTimeMs = 7, 700
		taken, later := s.Reconfigure(&changed)
		if faulty.Load() {
			return server.Reloaded{}, os.ErrNotExist
		}
		return server.Reloaded{Taken: taken, NeedRestart: later}, nil
	}})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, server.ErrServerClosed)
	})
	base := "http://" + s.AdminAddr().String()
	status, text = request(t, http.MethodPost, base, "/commands/reload")
	require.Equal(t, 200, status)
	require.Equal(t, "{\n  \"taken\" : [ \"maxClientCnxns: 0 -> 7\" ],\n  \"needs_restart\" : [ \"tickTime: 500 -> 700\" ],\n  \"command\" : \"reload\",\n  \"error\" : null\n}", text)
	require.Contains(t, command(t, base, "conf"), "\"tick_time\" : 500,\n  \"max_client_cnxns\" : 7,")
	faulty.Store(true)
	status, text = request(t, http.MethodPost, base, "/commands/reload")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, text, `"error" : "nothing has changed: file does not exist"`)
}
