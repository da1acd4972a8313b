package admin

import (
	"strconv"
	"strings"
)

// httpCommands are the commands of every server. Those that do something beside showing and counting come from elsewhere.
var httpCommands = []HTTPCommand{
	likeWord("conf", Refuse, httpConfiguration),
	likeWord("cons", Refuse, httpConnections),
	likeWord("crst", Refuse, func(src Source, _ *Request) *Response { src.ResetConnections(); return &Response{} }),
	likeWord("dirs", Refuse, httpDirs),
	likeWord("dump", Refuse, httpDump),
	likeWord("envi", Work, httpEnvironment),
	likeWord("gtmk", Work, func(src Source, _ *Request) *Response { return traceMask(src.TraceMask()) }),
	likeWord("hash", Refuse, httpHash),
	likeWord("isro", Refuse, func(src Source, _ *Request) *Response { return shown("read_only", src.ReadOnly()) }),
	likeWord("mntr", Refuse, httpMonitor),
	// Unlike the word, which asks about the process.
	likeWord("ruok", Refuse, func(Source, *Request) *Response { return &Response{} }),
	likeWord("srst", Refuse, func(src Source, _ *Request) *Response { src.ResetServer(); return &Response{} }),
	likeWord("srvr", Refuse, func(src Source, _ *Request) *Response { return &Response{Fields: serverFields(src)} }),
	likeWord("stat", Refuse, httpStats),
	likeWord("stmk", Work, httpSetTraceMask),
	likeWord("wchc", Refuse, httpWatches),
	likeWord("wchp", Refuse, httpWatchesByPath),
	likeWord("wchs", Refuse, httpWatchSummary),
	{Name: "initial_configuration", Aliases: []string{"icfg"}, Run: httpInitialConfiguration, Purpose: "the configuration that the server was started with"},
	{Name: "last_snapshot", Aliases: []string{"lsnp"}, Run: httpLastSnapshot, Purpose: "the newest snapshot on disk"},
	{Name: "leader", Aliases: []string{"lead"}, Run: httpLeader, Purpose: "who leads the ensemble"},
	{Name: "observers", Aliases: []string{"obsr"}, Run: httpObservers, Purpose: "the observers that this server feeds"},
	{Name: "observer_connection_stat_reset", Aliases: []string{"orst"}, Run: httpResetObservers, Purpose: "reset the counters of the observers' connections"},
	{Name: "system_properties", Aliases: []string{"sysp"}, Down: Work, Run: httpSystemProperties, Purpose: "properties that are set"},
	{Name: "voting_view", Run: httpVotingView, Purpose: "the members of the ensemble that have a vote"},
	{Name: "zabstate", Down: Work, Run: httpZabState, Purpose: "this server's part in the ensemble"},
}

// likeWord is the HTTP form of a four-letter word, under the names that the table of words gives.
func likeWord(word string, down WhileDown, run func(Source, *Request) *Response) HTTPCommand {
	c := ByWord(word)
	return HTTPCommand{Name: c.Name, Aliases: c.Aliases, Down: down, Run: run, Purpose: c.Purpose}
}

// shown is an answer of one field.
func shown(name string, value any) *Response { return &Response{Fields: Object{{name, value}}} }

func traceMask(mask int64) *Response { return shown("tracemask", mask) }

func httpConfiguration(src Source, _ *Request) *Response {
	c := src.Configuration()
	return &Response{Fields: Object{
		{"client_port", c.ClientPort},
		{"data_dir", c.DataDir},
		{"data_log_dir", c.DataLogDir},
		{"tick_time", c.TickTimeMs},
		{"max_client_cnxns", c.MaxClientCnxns},
		{"min_session_timeout", c.MinSessionMs},
		{"max_session_timeout", c.MaxSessionMs},
		{"server_id", c.ServerID},
		{"client_port_listen_backlog", c.ListenBacklog},
	}}
}

func httpConnections(src Source, _ *Request) *Response {
	return &Response{Fields: connectionLists(src.Connections(), connectionObject)}
}

func httpStats(src Source, _ *Request) *Response {
	return &Response{Fields: append(serverFields(src), connectionLists(src.Connections(), briefConnectionObject)...)}
}

func httpDirs(src Source, _ *Request) *Response {
	d := src.Dirs()
	return &Response{Fields: Object{{"datadir_size", d.DataBytes}, {"logdir_size", d.LogBytes}}}
}

func httpDump(src Source, _ *Request) *Response {
	d := src.Dump()
	expiry := Object{}
	for _, set := range d.Sessions {
		expiry = append(expiry, Field{strconv.FormatInt(set.AtMs, 10), sessionList(set.Sessions)})
	}
	return &Response{Fields: Object{{"expiry_time_to_session_ids", expiry}, {"session_id_to_ephemeral_paths", pathsBySession(d.Ephemerals)}}}
}

func httpEnvironment(src Source, _ *Request) *Response {
	return &Response{Fields: properties(src.Environment())}
}

func httpHash(src Source, _ *Request) *Response {
	list := []Object{}
	for _, d := range src.Digests() {
		list = append(list, Object{{"zxid", int64(d.Zxid)}, {"digest", d.Value}, {"digest_version", DigestVersion}})
	}
	return shown("digests", list)
}

// DigestVersion is that of the digests of the tree that ZooKeeper 3.9 and this server compute.
const DigestVersion = 2

// httpMonitor is mntr: the same names in the same order, so that the two cannot come apart.
func httpMonitor(src Source, _ *Request) *Response {
	var fields Object
	for line := range strings.Lines(string(src.Metrics().AppendText(nil))) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		fields = append(fields, Field{strings.TrimPrefix(name, "zk_"), numberOrText(value)})
	}
	return &Response{Fields: fields}
}

// numberOrText reads a value of mntr.
func numberOrText(value string) any {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return n
	}
	if strings.Trim(value, "-.0123456789") == "" {
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			return f
		}
	}
	return value
}

func httpSetTraceMask(src Source, r *Request) *Response {
	const needs = "setTraceMask requires long traceMask argument"
	if !r.Query.Has("traceMask") {
		return &Response{Error: needs}
	}
	text := r.Query.Get("traceMask")
	mask, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return &Response{Error: needs + ", got " + text}
	}
	src.SetTraceMask(mask)
	return traceMask(mask)
}

func httpWatches(src Source, _ *Request) *Response {
	return shown("session_id_to_watched_paths", pathsBySession(src.WatchesBySession()))
}

func httpWatchesByPath(src Source, _ *Request) *Response {
	paths := Object{}
	for _, p := range src.WatchesByPath() {
		paths = append(paths, Field{p.Path, sessionList(p.Sessions)})
	}
	return shown("path_to_session_ids", paths)
}

func httpWatchSummary(src Source, _ *Request) *Response {
	w := src.WatchSummary()
	return &Response{Fields: Object{{"num_connections", w.Connections}, {"num_paths", w.Paths}, {"num_total_watches", w.Watches}}}
}

func httpInitialConfiguration(src Source, _ *Request) *Response {
	return shown("initial_configuration", src.InitialConfiguration())
}

// httpLastSnapshot shows a zxid of -1 and a time of -1 where there is none.
func httpLastSnapshot(src Source, _ *Request) *Response {
	snap, ok := src.LastSnapshot()
	if !ok {
		snap = SnapshotFile{Zxid: -1, WrittenSec: -1}
	}
	return &Response{Fields: Object{{"zxid", snap.Zxid.Hex()}, {"timestamp", snap.WrittenSec}}}
}

func httpLeader(src Source, _ *Request) *Response {
	l, ok := src.Leader()
	if !ok {
		return &Response{Error: "server is not initialized"}
	}
	return &Response{Fields: Object{{"is_leader", l.IsThis}, {"leader_id", int64(l.ID)}, {"leader_ip", l.IP}}}
}

func httpObservers(src Source, _ *Request) *Response {
	synced, list := src.Observers()
	observers := []Object{}
	for i := range list {
		observers = append(observers, observerObject(&list[i]))
	}
	return &Response{Fields: Object{{"synced_observers", synced}, {"observers", observers}}}
}

func httpResetObservers(src Source, _ *Request) *Response {
	src.ResetObservers()
	return &Response{}
}

func httpSystemProperties(src Source, _ *Request) *Response {
	list := src.SystemProperties()
	for i := range list {
		if Secret(list[i].Key) {
			list[i].Value = secretShown
		}
	}
	return &Response{Fields: properties(list)}
}

// secretShown stands for a value that is not shown.
const secretShown = "********"

// Secret reports whether the value of a property of that name is to be kept to oneself, as far as the name tells.
func Secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"password", "passwd", "secret", "token", "superdigest"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func httpVotingView(src Source, _ *Request) *Response {
	members := Object{}
	for _, m := range src.VotingView() {
		learner := "participant"
		if m.Observer {
			learner = "observer"
		}
		members = append(members, Field{strconv.FormatInt(int64(m.ID), 10), Object{
			{"server_addresses", hostPorts(m.Quorum)},
			{"election_addresses", hostPorts(m.Election)},
			{"client_address", m.Client},
			{"learner_type", learner},
		}})
	}
	return shown("current_config", members)
}

func httpZabState(src Source, _ *Request) *Response {
	z, ok := src.ZabState()
	if !ok {
		return &Response{Fields: Object{{"voting", false}, {"zabstate", ""}}}
	}
	var client any
	if z.Client != "" {
		client = z.Client
	}
	return &Response{Fields: Object{
		{"myid", int64(z.ID)},
		{"is_leader", z.IsLeader},
		{"quorum_address", addressesObject(z.Quorum)},
		{"election_address", addressesObject(z.Election)},
		{"client_address", client},
		{"voting", !z.Observer},
		{"last_zxid", z.Zxid.String()},
		{"zab_epoch", int64(z.Zxid.Epoch())},
		{"zab_counter", int64(z.Zxid.Counter())},
		{"zabstate", z.Phase},
	}}
}
