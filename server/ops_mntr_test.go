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

// mntrMissing are the keys of mntr, without zk_, that the reference server has and Zabra does not, as patterns, each with the
// reason. An entry that no recorded key needs fails the test, so that the list can only shrink.
var mntrMissing = []struct{ pattern, why string }{}

// mntrExtra are the keys that only Zabra has.
var mntrExtra = []struct{ pattern, why string }{
	{`followers`, "the name by which old dashboards and Solr know the learners"},
	{`live_heap_bytes`, "there is no Java machine that could be asked for its memory"},
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
	missing, extra := map[string]bool{}, map[string]bool{}
	for _, scene := range scenes {
		text, err := client.Word(t.Context(), scene.addr, "mntr")
		require.NoError(t, err)
		ours := parseMntr(t, text)
		newest := opsRecordings(t, scene.role)["3.9.5"]
		recorded, _ := newest.Find("mntr")
		theirs := parseMntr(t, recorded.Text)
		require.Greater(t, len(theirs), 450, "a recording that is whole")
		compareMntr(t, scene.role, theirs, ours, missing, extra)
	}
	for _, e := range mntrMissing {
		require.True(t, matchesAny(e.pattern, missing), "no key is missing any more by %q: take it out of mntrMissing", e.pattern)
	}
	for _, e := range mntrExtra {
		require.True(t, matchesAny(e.pattern, extra), "no key is there any more by %q: take it out of mntrExtra", e.pattern)
	}
}

func compareMntr(t *testing.T, role string, theirs, ours map[string]string, missing, extra map[string]bool) {
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
			extra[name] = true
			require.True(t, explained(name, mntrExtra), "mntr of a %s has %s, which the reference server has not", role, name)
		}
	}
}

func explained(name string, list []struct{ pattern, why string }) bool {
	return slices.ContainsFunc(list, func(e struct{ pattern, why string }) bool {
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
