package server_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
)

// keyReason explains keys of mntr, without zk_, by a pattern.
type keyReason struct{ pattern, why string }

// mntrMissing are the keys that the reference server has and Zabra does not. An entry that no recorded key needs fails the
// test, so that the list can only shrink.
var mntrMissing []keyReason

// mntrExtra are the keys that only Zabra has.
var mntrExtra = []keyReason{
	{`followers`, "the name by which old dashboards and Solr know the learners"},
	{`live_heap_bytes`, "there is no Java machine that could be asked for its memory"},
	{`missing_audit_records`, "whether the audit log is whole"},
	{`pings_received`, "packets_received with and without them are two questions"},
	{`has_leader|leader_changes|(avg|min|max|cnt|sum|p50|p95|p99|p999)_fsync_us`, "the three numbers that stand on top"},
	{`\w+_ID_ack_latency`, "the reference server takes one sample in a thousand: the recorded one had none yet"},
	{`(avg|min|max|cnt|sum)_\w+_read_per_namespace`, "of a namespace that was only written; the reference server shows it with the first read"},
}

// mntrLine is what Telegraf, Datadog and Solr take as a line.
var mntrLine = regexp.MustCompile(`^zk_(\w+)\t([^\t\n]+)\n$`)

// parseMntr returns the kind of each key's value. The numbers of servers in names are left out, and so is nothing else.
func parseMntr(t *testing.T, text string) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for line := range strings.Lines(text) {
		m := mntrLine.FindStringSubmatch(line)
		require.NotNil(t, m, "%q", line)
		name := mntrServerID.ReplaceAllString(m[1], "_ID_${1}")
		kinds[name] = numberKind(m[2])
	}
	return kinds
}

// mntrServerID is the number of a server within a key.
var mntrServerID = regexp.MustCompile(`_\d+_(learner_handler_qp_size|learner_handler_qp_time_ms|ack_latency)$`)

var (
	wholeNumber   = regexp.MustCompile(`^-?\d+$`)
	decimalNumber = regexp.MustCompile(`^-?\d+\.\d+(E-?\d+)?$`)
)

// numberKind tells integers from numbers with a decimal point, which agents tell apart, too, and from text.
func numberKind(value string) string {
	switch {
	case wholeNumber.MatchString(value):
		return "integer"
	case decimalNumber.MatchString(value):
		return "decimal"
	}
	return "text " + value
}

// compareMntrs sees that mntr has every key of the reference server of the same role, with the same kind of number.
func compareMntrs(t *testing.T, scenes []opsScene) {
	missing := map[string]bool{}
	for _, scene := range scenes {
		text, err := client.Word(t.Context(), scene.addr, "mntr")
		require.NoError(t, err)
		ours := parseMntr(t, text)
		newest := opsRecordings(t, scene.role)["3.9.5"]
		recorded, _ := newest.Find("mntr")
		theirs := parseMntr(t, recorded.Text)
		require.Greater(t, len(theirs), 450, "a recording that is whole")
		compareMntr(t, scene.role, theirs, ours, missing)
	}
	for _, e := range mntrMissing {
		require.True(t, matchesAny(e.pattern, missing), "no key is missing any more by %q: take it out of mntrMissing", e.pattern)
	}
}

func compareMntr(t *testing.T, role string, theirs, ours map[string]string, missing map[string]bool) {
	t.Helper()
	var unexplained []string
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		kind, ok := ours[name]
		switch {
		case !ok:
			missing[name] = true
			if !explained(name, mntrMissing) {
				unexplained = append(unexplained, name)
			}
		case name != "version":
			require.Equal(t, theirs[name], kind, "%s of a %s", name, role)
		}
	}
	require.Empty(t, unexplained, "mntr of a %s lacks %d keys of the reference server", role, len(unexplained))
	for name := range ours {
		if _, ok := theirs[name]; !ok {
			require.True(t, explained(name, mntrExtra), "mntr of a %s has %s, which the reference server has not", role, name)
		}
	}
}

func explained(name string, list []keyReason) bool {
	return slices.ContainsFunc(list, func(e keyReason) bool {
		return regexp.MustCompile(`^(?:` + e.pattern + `)$`).MatchString(name)
	})
}

func matchesAny(pattern string, names map[string]bool) bool {
	for name := range names {
		if regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(name) {
			return true
		}
	}
	return false
}
