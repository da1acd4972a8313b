package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/opsrecord"
	"zabra/server/servertest"
)

// adminExceptions are the requests that Zabra answers otherwise on purpose.
var adminExceptions = []opsException{
	{roles: serving, question: "POST /commands/ruok", why: "405; the reference server fails with 500"},
	{roles: serving, question: "POST /commands/snapshot", why: "405, before anybody is asked for a password"},
	{roles: serving, question: "GET /commands/restore", why: "405, before anybody is asked for a password"},
	{roles: serving, question: "GET /commands/snap", why: "the primary name, as in every other answer; the reference server has the alias here"},
	{roles: serving, question: "POST /commands/rest", why: "the primary name, as in every other answer; the reference server has the alias here"},
	{roles: serving[1:], question: "GET /commands/initial_configuration", why: "the text of the file; the reference server has null"},
	{roles: []string{"alone"}, question: "GET /commands/monitor", why: "the error in JSON; the reference server fails with 500"},
	{roles: []string{"alone"}, question: "GET /commands/zabstate", why: "all fields, with the state election; the reference server has an empty state and nothing else"},
}

// serving are the roles of servers that serve.
var serving = []string{"standalone", "leader", "follower", "observer"}

// withAdmin gives a server an admin server on a port that is free.
var withAdmin = []servertest.Option{
	servertest.WithConfig("admin.enableServer", "true"),
	servertest.WithConfig("admin.serverAddress", "127.0.0.1"),
	servertest.WithConfig("admin.serverPort", "0"),
}

// TestOpsAdmin compares every command of the admin server, by all its names, with what the reference server answers in the
// same state: standalone, leader, follower, observer, and without a quorum.
func TestOpsAdmin(t *testing.T) {
	s, standalone := playStandalone(t, withAdmin...)
	e, members := playEnsemble(t, withAdmin...)
	only, alone := playAlone(t, withAdmin...)
	bases := map[string]string{"standalone": s.AdminURL(), "alone": only.AdminURL()}
	for _, scene := range members {
		bases[scene.role] = e.Server(scene.member).AdminURL()
	}
	t.Run("monitor", func(t *testing.T) {
		for _, scene := range append(members, standalone) {
			compareMonitor(t, scene, bases[scene.role])
		}
	})
	t.Run("commands", func(t *testing.T) { // the last, since it resets counters
		used := map[string]bool{}
		for _, scene := range append(members, standalone, alone) {
			brief := scene.member != 0 && scene.role != "alone"
			answers, err := opsrecord.AskHTTP(bases[scene.role], slices.Concat(opsrecord.Requests(brief), opsrecord.ResettingRequests))
			require.NoError(t, err)
			compareAdmin(t, scene, answers, used)
		}
		requireAllUsed(t, adminExceptions, used)
	})
}

func compareAdmin(t *testing.T, scene opsScene, answers []opsrecord.Answer, used map[string]bool) {
	t.Helper()
	recording := opsRecordings(t, scene.role)["3.9.5"]
	for _, ours := range answers {
		theirs, ok := recording.Find(ours.Question)
		require.True(t, ok, "%q is not recorded of %s: run make capture-ops", ours.Question, recording.From)
		ours.Text = withoutOwnLinks(ours.Text, theirs.Text)
		want, got := normalAdmin(t, theirs, recording.Sessions), normalAdmin(t, ours, scene.sessions)
		if want != got && excepted(adminExceptions, used, "3.9.5", scene.role, ours.Question) {
			continue
		}
		require.Equal(t, want, got, "%s of a server that is %s", ours.Question, scene.role)
	}
}

// withoutOwnLinks takes the commands that only Zabra has out of the list of all commands.
func withoutOwnLinks(ours, theirs string) string {
	const end = "<br/>\n"
	if !strings.HasSuffix(ours, end) {
		return ours
	}
	var kept strings.Builder
	for link := range strings.SplitAfterSeq(ours, end) {
		if strings.Contains(theirs, link) {
			kept.WriteString(link)
		}
	}
	return kept.String()
}

// normalAdmin makes the responses of two servers comparable. For JSON the layout is checked first, byte for byte.
func normalAdmin(t *testing.T, a opsrecord.Answer, sessions []int64) string {
	t.Helper()
	if a.Status != http.StatusOK && !strings.HasPrefix(a.Type, "application/json") {
		return fmt.Sprint(a.Status) // a page, if anything
	}
	head := fmt.Sprintf("%d %s\n%s\n", a.Status, a.Type, a.Allow)
	if !strings.HasPrefix(a.Type, "application/json") || a.Text == "" {
		return head + a.Text
	}
	value, err := parseJSON(a.Text)
	require.NoError(t, err, a.Question)
	require.Equal(t, a.Text, printJSON(value, ""), "the layout of %s", a.Question)
	text := portRule.ReplaceAllString(nameSessions(quoteNumbers(a.Text, sessions), sessions), "${1}:PORT")
	named, err := parseJSON(text)
	require.NoError(t, err, a.Question)
	return head + printJSON(normalJSON(named), "")
}

// portRule is where a port stands behind an address.
var portRule = regexp.MustCompile(`\b((?:\d+\.){3}\d+):\d+\b`)

// quoteNumbers makes text of the numbers that are ids of sessions, so that they can be replaced by names.
func quoteNumbers(text string, sessions []int64) string {
	for _, id := range sessions {
		text = regexp.MustCompile(fmt.Sprintf(`([:\[,] )(%d)\b`, id)).ReplaceAllString(text, `$1"$2"`)
	}
	return text
}

// volatile are the fields whose values differ between two servers in the same state; their kind has to be the same.
var volatile = strings.Fields(`client_port data_dir data_log_dir datadir_size logdir_size server_id data_dir_size log_dir_size packets_sent packets_received
	last_buffer_size min_buffer_size max_buffer_size avg_latency max_latency min_latency uptime fsync_threshold_exceed_count version established last_response_time
	last_latency timestamp zxid digest leader_id myid initial_configuration client_address queued_packets queued_packets_size requests last_zxid
	last_processed_zxid remote_socket_address num_alive_client_connections non_mtlsremote_conn_count non_mtlslocal_conn_count all_ports`)

// anyOrder are the objects whose fields stand in the order of a hash table.
var anyOrder = []string{"server_stats", "session_id_to_ephemeral_paths", "session_id_to_watched_paths", "path_to_session_ids"}

// normalJSON replaces what differs and sorts what has no order.
func normalJSON(value any) any {
	object, ok := value.(jsonObject)
	if !ok {
		return value
	}
	switch command := object.get("command"); {
	case command == "monitor" && object.get("error") == nil:
		return "compared by compareMonitor"
	case command == "system_properties" && object.get("error") == nil:
		return fmt.Sprint("properties in order: ", slices.IsSortedFunc(object[:len(object)-2], func(a, b jsonField) int { return cmp.Compare(a.name, b.name) }))
	case command == "environment" && object.get("error") == nil:
		for i := range object[:len(object)-2] {
			object[i].value = jsonKind(object[i].value)
		}
	}
	return normalField("", object)
}

func normalField(name string, value any) any {
	switch v := value.(type) {
	case jsonObject:
		out := make(jsonObject, 0, len(v))
		for _, f := range v {
			if name == "expiry_time_to_session_ids" {
				f.name = "TIME"
			}
			out = append(out, jsonField{f.name, normalField(f.name, f.value)})
		}
		if slices.Contains(anyOrder, name) {
			slices.SortFunc(out, func(a, b jsonField) int { return cmp.Compare(a.name, b.name) })
		}
		if name == "expiry_time_to_session_ids" {
			return oneList(out)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = normalField(name, v[i])
		}
		slices.SortFunc(out, func(a, b any) int { return cmp.Compare(printJSON(a, ""), printJSON(b, "")) })
		return out
	}
	if slices.Contains(volatile, name) {
		return jsonKind(value)
	}
	return value
}

// oneList joins the lists of sessions that expire together: how many there are depends on the moment.
func oneList(sets jsonObject) any {
	var all []any
	for _, set := range sets {
		all = append(all, set.value.([]any)...)
	}
	return normalField("", all)
}

// jsonKind is what kind of value it is.
func jsonKind(value any) any {
	switch v := value.(type) {
	case json.Number:
		return numberKind(v.String())
	case string:
		return "text"
	case nil:
		return nil
	}
	return fmt.Sprintf("%T", value)
}

// compareMonitor sees that the admin server's form of mntr has the same keys as the word, with JSON numbers of the same kind.
// The word is compared with the reference server's.
func compareMonitor(t *testing.T, scene opsScene, base string) {
	t.Helper()
	kinds := monitorKinds(t, base)
	require.Equal(t, []any{"monitor", nil}, []any{kinds["command"], kinds["error"]})
	delete(kinds, "command")
	delete(kinds, "error")
	word := parseMntr(t, live(t, scene.addr)("mntr"))
	require.Equal(t, slices.Sorted(maps.Keys(word)), slices.Sorted(maps.Keys(kinds)), scene.role)
	for name, kind := range word {
		if strings.HasPrefix(kind, "text") {
			kind = "text"
		}
		require.Equal(t, kind, kinds[name], "%s of a %s", name, scene.role)
	}
}

func monitorKinds(t *testing.T, base string) map[string]any {
	t.Helper()
	answer, err := opsrecord.Get(base + "/commands/monitor")
	require.NoError(t, err)
	value, err := parseJSON(answer.Text)
	require.NoError(t, err)
	kinds := map[string]any{}
	for _, f := range value.(jsonObject) {
		name := mntrServerID.ReplaceAllString(f.name, "_ID_${1}")
		kinds[name] = jsonKind(f.value)
		if f.name == "command" || f.name == "error" {
			kinds[name] = f.value
		}
	}
	return kinds
}
