package server_test

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/integration/opsrecord"
	"zabra/server/client"
)

// The agents read the words of Zabra and those that were recorded of the reference server, by the same rules, and have to
// make the same of them. The rules are those that each agent is published with.

// asker answers a four-letter word.
type asker func(word string) string

// agentReading is what an agent made of a server: numbers are kept as their kind.
type agentReading map[string]any

// agents are those whose rules fit into a few lines. Each gets the words as the agent sends them.
var agents = []struct {
	name string
	read func(t *testing.T, ask asker) agentReading
}{
	{"Telegraf's pattern for a line of mntr", readTelegraf},
	{"Datadog's stat", readDatadogStat},
	{"Datadog's mntr", readDatadogMntr},
	{"Solr's ruok, mntr and conf", readSolr},
	{"Zabbix's and Nagios's patterns for mntr", readPatterns},
	{"Prometheus exporters' fields of mntr", readExporter},
	{"Netdata's fields of mntr", readNetdata},
	{"kazoo's and Curator's version", readVersion},
	{"side-cars that label the leader", readMode},
}

func compareAgents(t *testing.T, scenes []opsScene) {
	for _, scene := range scenes {
		newest := opsRecordings(t, scene.role)["3.9.5"]
		for _, agent := range agents {
			t.Run(agent.name+"/"+scene.role, func(t *testing.T) {
				theirs := agent.read(t, recorded(t, newest))
				require.NotEmpty(t, theirs)
				require.Equal(t, theirs, agent.read(t, live(t, scene.addr)))
			})
		}
	}
}

// recorded answers as the reference server did, whatever stands behind the word.
func recorded(t *testing.T, r *opsrecord.Recording) asker {
	return func(word string) string {
		answer, ok := r.Find(strings.TrimSpace(word))
		require.True(t, ok, "%q is not recorded", word)
		return answer.Text
	}
}

func live(t *testing.T, addr string) asker {
	return func(word string) string {
		answer, err := client.Word(t.Context(), addr, word)
		require.NoError(t, err)
		return answer
	}
}

// consumed are the keys of mntr that the agents, templates and exporters show, beside those of their role.
var consumed = []string{
	"avg_latency", "min_latency", "max_latency", "packets_received", "packets_sent", "num_alive_connections", "outstanding_requests", "znode_count",
	"watch_count", "ephemerals_count", "approximate_data_size", "open_file_descriptor_count", "max_file_descriptor_count", "uptime", "global_sessions",
	"server_state", "version", "learners", "synced_followers", "synced_observers", "pending_syncs", "leader_uptime", "quorum_size", "last_proposal_size",
}

// only keeps what is consumed, of all that an agent read.
func only(values map[string]any) agentReading {
	out := agentReading{}
	for _, name := range consumed {
		if v, ok := values[name]; ok {
			out[name] = v
		}
	}
	return out
}

// readTelegraf gives up at the first line that does not fit, as plugins/inputs/zookeeper does; integers are integers and
// everything else is text there.
func readTelegraf(t *testing.T, ask asker) agentReading {
	line := regexp.MustCompile(`^zk_(\w[\w\.\-]*)\s+([\w\.\-]+)`)
	values := map[string]any{}
	scan := bufio.NewScanner(strings.NewReader(ask("mntr\n")))
	for scan.Scan() {
		m := line.FindStringSubmatch(scan.Text())
		require.NotNil(t, m, "unexpected line in mntr response: %q", scan.Text())
		values[m[1]] = agentKind(m[1], m[2])
	}
	return only(values)
}

// agentKind keeps the state of a server, and of a number whether it is one to an agent that takes digits only.
func agentKind(name, value string) any {
	switch name {
	case "server_state":
		return value
	case "version":
		return regexp.MustCompile(`^\d+\.\d+\.\d+`).FindString(value) != ""
	}
	return numberKind(value)
}

// readDatadogStat reads the lines of stat in their order, by what stands behind the colon.
func readDatadogStat(t *testing.T, ask asker) agentReading {
	in := bufio.NewScanner(strings.NewReader(ask("stat")))
	next := func() string { require.True(t, in.Scan()); return strings.TrimSpace(in.Text()) }
	value := func() string {
		_, v, ok := strings.Cut(next(), ":")
		require.True(t, ok, "%q", in.Text())
		return strings.TrimSpace(v)
	}
	number := func(text string, base int) int64 {
		n, err := strconv.ParseInt(text, base, 64)
		require.NoError(t, err)
		return n
	}
	out := agentReading{"version": regexp.MustCompile(`(\d+\.\d+\.\d+)`).FindString(next()) != ""}
	next() // "Clients:"
	clients := 0
	for next() != "" {
		clients++
	}
	out["clients"] = clients
	latencies := strings.Split(value(), "/")
	require.Len(t, latencies, 3)
	for _, text := range latencies {
		_, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
	}
	number(value(), 10) // received
	number(value(), 10) // sent
	out["connections"], out["outstanding"] = number(value(), 10), number(value(), 10)
	out["zxid is positive"] = number(strings.TrimPrefix(value(), "0x"), 16) > 0
	out["mode"], out["nodes"] = strings.ToLower(value()), number(value(), 10)
	return out
}

// readDatadogMntr takes the lines with two words. A key whose value is no number is passed over, but for the state.
func readDatadogMntr(t *testing.T, ask asker) agentReading {
	first, rest, _ := strings.Cut(ask("mntr"), "\n")
	require.Regexp(t, `^zk_version\s`, first)
	values := map[string]any{}
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		name := strings.TrimPrefix(fields[0], "zk_")
		if _, err := strconv.ParseFloat(fields[1], 64); err == nil || name == "server_state" {
			values[name] = agentKind(name, fields[1])
		}
	}
	return only(values)
}

// readSolr is the page "ZK Status": a line of mntr has a tab, and one of conf an equals sign unless it begins the membership.
func readSolr(t *testing.T, ask asker) agentReading {
	values := map[string]any{"ok": strings.SplitN(ask("ruok\n"), "\n", 2)[0] == "imok"}
	for line := range strings.Lines(ask("mntr\n")) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.GreaterOrEqual(t, len(parts), 2, "unexpected line in mntr response: %q", line)
		values[strings.TrimPrefix(parts[0], "zk_")] = agentKind(strings.TrimPrefix(parts[0], "zk_"), parts[1])
	}
	out := only(values)
	out["ok"] = values["ok"]
	for line := range strings.Lines(ask("conf\n")) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		require.True(t, ok && value != "" || strings.HasPrefix(line, "membership:"), "unexpected line in conf response: %q", line)
		if ok {
			out["conf "+key] = numberKind(value) == "integer"
		}
	}
	return out
}

// readPatterns looks for each key with a pattern of its own, anywhere in the answer.
func readPatterns(_ *testing.T, ask asker) agentReading {
	text := ask("mntr\n")
	out := agentReading{}
	for _, name := range consumed {
		if m := regexp.MustCompile(`zk_` + name + `\s([0-9]+)`).FindStringSubmatch(text); m != nil {
			out[name] = len(m[1]) > 0
		}
	}
	m := regexp.MustCompile(`zk_server_state\s(\w+)`).FindStringSubmatch(text)
	if m != nil {
		out["server_state"] = m[1]
	}
	return out
}

// readExporter splits at blanks of any kind; the state is one of those that the exporter knows.
func readExporter(t *testing.T, ask asker) agentReading {
	values := map[string]any{}
	for line := range strings.Lines(ask("mntr")) {
		fields := regexp.MustCompile(`\s+`).Split(strings.TrimSpace(line), 2)
		require.Len(t, fields, 2)
		values[strings.TrimPrefix(fields[0], "zk_")] = agentKind(strings.TrimPrefix(fields[0], "zk_"), fields[1])
	}
	require.Contains(t, []any{"standalone", "leader", "follower", "observer"}, values["server_state"])
	return only(values)
}

// readNetdata takes lines of exactly two fields.
func readNetdata(_ *testing.T, ask asker) agentReading {
	values := map[string]any{}
	for line := range strings.Lines(ask("mntr")) {
		if fields := strings.Fields(line); len(fields) == 2 {
			values[strings.TrimPrefix(fields[0], "zk_")] = agentKind(strings.TrimPrefix(fields[0], "zk_"), fields[1])
		}
	}
	return only(values)
}

// readVersion is how clients learn what the server can do.
func readVersion(t *testing.T, ask asker) agentReading {
	m := regexp.MustCompile(`(?m)^zookeeper\.version=(\d+)\.(\d+)\.(\d+)`).FindStringSubmatch(ask("envi"))
	require.NotNil(t, m)
	return agentReading{"major": m[1], "minor": m[2], "patch": m[3]}
}

// readMode is `echo srvr | nc HOST PORT | grep Mode` and its like.
func readMode(t *testing.T, ask asker) agentReading {
	m := regexp.MustCompile(`(?m)^Mode: (\w+)$`).FindStringSubmatch(ask("srvr\n"))
	require.NotNil(t, m)
	state := regexp.MustCompile(`(?m)^zk_server_state\t(\w+)$`).FindStringSubmatch(ask("mntr\n"))
	require.NotNil(t, state)
	return agentReading{"srvr": m[1], "mntr": state[1]}
}

// compareAgentsAlone is about what an agent makes of a member without a quorum.
func compareAgentsAlone(t *testing.T, scene opsScene) {
	for _, ask := range []asker{recorded(t, opsRecordings(t, "alone")["3.9.5"]), live(t, scene.addr)} {
		require.Equal(t, "imok", ask("ruok\n"))                                                                                // the liveness probes
		require.Empty(t, regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(ask("stat")))                                          // Datadog: inactive
		require.NotContains(t, ask("srvr"), "Mode: ")                                                                          // zkServer.sh status, side-cars
		require.Nil(t, regexp.MustCompile(`^zk_(\w+)\s+([\w\.\-]+)`).FindStringSubmatch(ask("mntr\n")))                        // Telegraf reports an error
		require.Equal(t, "This ZooKeeper instance is not currently serving requests", strings.SplitN(ask("mntr"), "\n", 2)[0]) // Datadog
	}
}

// wordPlayer answers the words ruok, srvr and cons on a port, for agents that open their own connections. The date of the
// version is written as it was before release 3.5 if oldDate is set: go-zookeeper knows no other.
func wordPlayer(t *testing.T, ask asker, oldDate bool) string {
	answers := map[string]string{}
	for _, word := range []string{"ruok", "srvr", "cons"} {
		answers[word] = ask(word)
		if oldDate {
			answers[word] = newDate.ReplaceAllString(answers[word], "built on $2/$3/$1 ")
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			if n, err := c.Read(word); err == nil && n == len(word) {
				_, _ = c.Write([]byte(answers[string(word)])) // a client that has gone notices nothing
			}
			c.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-served
	})
	return l.Addr().String()
}

var newDate = regexp.MustCompile(`built on (\d{4})-(\d\d)-(\d\d) `)

const agentTimeout = 10 * time.Second

// compareGoZookeeper is about FLWRuok, FLWSrvr and FLWCons of go-zookeeper/zk.
func compareGoZookeeper(t *testing.T, scene opsScene) {
	reference := recorded(t, opsRecordings(t, "standalone")["3.9.5"])
	require.Equal(t, []bool{true, true}, zk.FLWRuok([]string{wordPlayer(t, reference, false), scene.addr}, agentTimeout))

	// The library reads the version's date in a form that no release since 3.5 has: it refuses both.
	for _, addr := range []string{wordPlayer(t, reference, false), scene.addr} {
		stats, ok := zk.FLWSrvr([]string{addr}, agentTimeout)
		require.False(t, ok)
		require.EqualError(t, stats[0].Error, "unable to parse fields from zookeeper response (no regex matches)")
	}
	var read [2]*zk.ServerStats
	for i, ask := range []asker{reference, live(t, scene.addr)} {
		stats, ok := zk.FLWSrvr([]string{wordPlayer(t, ask, true)}, agentTimeout)
		require.True(t, ok, "%v", stats[0].Error)
		read[i] = stats[0]
		require.NotZero(t, read[i].Received)
		require.NotZero(t, read[i].Sent)
		require.Regexp(t, `^\d+\.\d+\.\d+`, read[i].Version)
		require.False(t, read[i].BuildTime.IsZero())
	}
	type constant struct {
		nodes, connections, outstanding int64
		epoch, counter                  int32
		mode                            zk.Mode
	}
	of := func(s *zk.ServerStats) constant {
		return constant{s.NodeCount, s.Connections, s.Outstanding, s.Epoch, s.Counter, s.Mode}
	}
	require.Equal(t, of(read[0]), of(read[1]))
	require.Equal(t, zk.ModeStandalone, read[1].Mode)
	require.Equal(t, goClients(t, wordPlayer(t, reference, false)), goClients(t, scene.addr))
}

// goClients is what FLWCons makes of the connections with a session; that of the word itself it cannot read, of neither server.
func goClients(t *testing.T, addr string) (list []string) {
	t.Helper()
	clients, ok := zk.FLWCons([]string{addr}, agentTimeout)
	require.False(t, ok)
	for _, c := range clients[0].Clients {
		require.NoError(t, c.Error)
		require.False(t, c.Established.IsZero() || c.LastResponse.IsZero() || c.SessionID == 0)
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, c.Addr)
		list = append(list, fmt.Sprint(c.Queued, c.Received, c.Sent, c.Timeout, c.LastOperation, c.Lcxid, c.Lzxid))
	}
	require.Len(t, list, 3)
	slices.Sort(list)
	return list
}
