package server_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/opsrecord"
	"zabra/server/servertest"
)

// wordExceptions are the words that Zabra answers otherwise on purpose.
var wordExceptions []opsException

// allWords are asked in this order.
var allWords = slices.Concat(opsrecord.Words, opsrecord.ResettingWords)

// TestOps compares what the four-letter words answer with what the reference server answers in the same state: standalone,
// leader, follower, observer and without a quorum.
func TestOps(t *testing.T) {
	_, standalone := playStandalone(t)
	_, members := playEnsemble(t)
	_, alone := playAlone(t)
	serving := append(members, standalone)
	t.Run("mntr", func(t *testing.T) { compareMntrs(t, serving) })
	t.Run("agents", func(t *testing.T) { compareAgents(t, serving) })
	t.Run("go-zookeeper", func(t *testing.T) { compareGoZookeeper(t, standalone) })
	t.Run("agents without a quorum", func(t *testing.T) { compareAgentsAlone(t, alone) })
	t.Run("words", func(t *testing.T) { compareAllWords(t, append(serving, alone)) }) // the last, since it resets counters
}

// compareAllWords is about every byte of every word, but for mntr.
func compareAllWords(t *testing.T, scenes []opsScene) {
	used := map[string]bool{}
	for _, scene := range scenes {
		answers, err := opsrecord.AskWords(scene.addr, allWords)
		require.NoError(t, err)
		compareWords(t, scene, answers, used)
	}
	requireAllUsed(t, wordExceptions, used)
}

func compareWords(t *testing.T, scene opsScene, answers []opsrecord.Answer, used map[string]bool) {
	t.Helper()
	for version, recording := range opsRecordings(t, scene.role) {
		for _, ours := range answers {
			theirs, ok := recording.Find(ours.Question)
			require.True(t, ok, "%q is not recorded of %s: run make capture-ops", ours.Question, recording.From)
			word, _, _ := strings.Cut(ours.Question, " ")
			if word == "mntr" && scene.role != "alone" {
				continue
			}
			want, got := normalWord(word, theirs.Text, recording.Sessions), normalWord(word, ours.Text, scene.sessions)
			if want != got && excepted(wordExceptions, used, version, scene.role, ours.Question) {
				continue
			}
			require.Equal(t, want, got, "%s, %s: %s", ours.Question, scene.role, recording.From)
		}
	}
}

// opsRule replaces what differs between two servers in the same state.
type opsRule struct {
	find *regexp.Regexp
	put  string
}

func rules(pairs ...string) (list []opsRule) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, opsRule{regexp.MustCompile(`(?m)` + pairs[i]), pairs[i+1]})
	}
	return list
}

// Times, sizes, latencies, ports, places and the version differ. Whatever a rule does not name has to be the same byte for
// byte. N is an integer and D a number with a decimal point.
var (
	connectionRules = rules(`/127\.0\.0\.1:\d+`, `/127.0.0.1:PORT`, `,est=\d{13},`, `,est=N,`, `,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)`,
		`,lresp=N,llat=N,minlat=N,avglat=N,maxlat=N)`)
	serverRules = append(rules(`^Zookeeper version: \d+\.\d+\.\d+\S*, built on \d{4}-\d\d-\d\d \d\d:\d\d UTC$`, `Zookeeper version: V`,
		`^Latency min/avg/max: \d+/\d+\.\d{1,4}/\d+$`, `Latency min/avg/max: N/D/N`, `^(Received|Sent): \d+$`, `$1: N`,
		`^Proposal sizes last/min/max: \d+/\d+/\d+$`, `Proposal sizes last/min/max: N/N/N`), connectionRules...)
	wordRules = map[string][]opsRule{
		"conf": rules(`^(clientPort|dataDirSize|dataLogSize|electionPort|quorumPort|serverId)=[1-9]\d*$`, `$1=N`, `^(dataDir|dataLogDir)=/\S+/version-2$`,
			`$1=/DIR/version-2`, `^(server\.\d+=127\.0\.0\.1):\d+:\d+:`, `$1:PORT:PORT:`),
		"envi": rules(`=(.+)$`, `=V`),
		"dirs": rules(`\d+$`, `N`),
		"srvr": serverRules,
		"stat": serverRules,
		"cons": connectionRules,
		"hash": rules(`: \d+$`, `: N`),
		"dump": append(rules(`^\d+ expire at [A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d \S+ \d{4}:\n`, ``, `^((?:Session|Connections) Sets) \(\d+\)/`,
			`$1 (N)/`), connectionRules...),
	}
)

// normalWord makes the answers of two servers comparable: rules of the word are applied, the sessions get names, and what the
// reference server lists in the order of a hash table is sorted.
func normalWord(word, text string, sessions []int64) string {
	text = nameSessions(text, sessions)
	for _, r := range wordRules[word] {
		text = r.find.ReplaceAllString(text, r.put)
	}
	switch word {
	case "stat", "cons":
		return sortRuns(text, func(line string) bool { return strings.HasPrefix(line, " ") })
	case "wchc", "wchp", "dump":
		return sortBlocks(text)
	}
	return text
}

// nameSessions replaces the ids of the conversation's sessions, in hexadecimal and in decimal.
func nameSessions(text string, sessions []int64) string {
	var pairs []string
	for i, id := range sessions {
		name := fmt.Sprint("SESSION", i+1)
		pairs = append(pairs, fmt.Sprintf("0x%x", uint64(id)), name, fmt.Sprint(id), name)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// sortRuns sorts neighbouring lines that belong to the same list.
func sortRuns(text string, listed func(line string) bool) string {
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		from := i
		for i < len(lines) && listed(lines[i]) {
			i++
		}
		slices.Sort(lines[from:i])
	}
	return strings.Join(lines, "")
}

// sortBlocks sorts indented lines below their heading, and then neighbouring headings with what is below them.
func sortBlocks(text string) string {
	text = sortRuns(text, func(line string) bool { return strings.HasPrefix(line, "\t") })
	var blocks []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\t") && len(blocks) > 0 {
			blocks[len(blocks)-1] += line
		} else {
			blocks = append(blocks, line)
		}
	}
	for i := 0; i < len(blocks); i++ {
		from := i
		for i < len(blocks) && strings.Contains(blocks[i], "\n\t") && !strings.Contains(blocks[i], "Sets (") {
			i++
		}
		slices.Sort(blocks[from:i])
	}
	return strings.Join(blocks, "")
}

// The comparison itself notices a blank, a line break, a label, an order and a digit too many.
func TestOpsNormalWord(t *testing.T) {
	const srvr = "Zookeeper version: 3.9.5-x, built on 2026-01-01 00:00 UTC\nLatency min/avg/max: 0/0.5/7\nReceived: 9\nSent: 8\nConnections: 2\n" +
		"Outstanding: 0\nZxid: 0x5\nMode: leader\nNode count: 7\nProposal sizes last/min/max: 1/2/3\n"
	same := normalWord("srvr", srvr, nil)
	require.Equal(t, same, normalWord("srvr", strings.NewReplacer("3.9.5-x", "3.8.0-1", "0/0.5/7", "1/12.0001/30", "Sent: 8", "Sent: 80", "1/2/3", "9/9/9").Replace(srvr), nil))
	for _, change := range [][2]string{
		{"Received: 9", "Received:  9"}, {"Received: 9\nSent: 8\n", "Sent: 8\nReceived: 9\n"}, {"0/0.5/7", "0/0/7"}, {"0.5", "0.50000"}, {"Mode: leader", "Mode: Leader"},
		{"1/2/3\n", "1/2/3"}, {"Zxid: 0x5", "Zxid: 5"}, {"\nSent", "\r\nSent"}, {"Connections: 2", "Connections: 3"}, {"Sent: 8", "Sent: 8.0"}, {" UTC", ""},
	} {
		changed := strings.Replace(srvr, change[0], change[1], 1)
		require.NotEqual(t, srvr, changed)
		require.NotEqual(t, same, normalWord("srvr", changed, nil), "%q", change)
	}
	require.Equal(t, "SESSION1\n\t/a\n\t/b\nSESSION2\n\t/a\n\n", normalWord("wchc", "0x20\n\t/a\n0x10\n\t/b\n\t/a\n\n", []int64{16, 32}))
	require.NotEqual(t, normalWord("wchc", "0x1\n\t/a\n\n", nil), normalWord("wchc", "0x1\n\t/a\n", nil))
}

// Where the configuration says nothing of words, srvr is answered and every other is refused by name.
func TestOpsWordsUnlisted(t *testing.T) {
	s := servertest.Start(t, servertest.WithConfig("4lw.commands.whitelist", "srvr"))
	answers, err := opsrecord.AskWords(s.Addr(), allWords)
	require.NoError(t, err)
	compareWords(t, opsScene{role: "unlisted", addr: s.Addr()}, answers, map[string]bool{})
}
