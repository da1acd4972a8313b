package server_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// goldenException is where the server means to differ from Apache ZooKeeper. The letters and numbers are those of the
// list of the reference's defects that are not copied.
type goldenException struct {
	file   string
	steps  []int
	reason string
}

const (
	reasonKick = "B5: ZooKeeper ends a session's live connection before it looks at the password of who wants to come back to it; " +
		"here a wrong password harms nobody, so the old connection is still there in the next step, too"
	reasonCreateSession = "B10: ZooKeeper serves the internal createSession request when a client sends it; " +
		"here it is refused as unimplemented and the connection ends, so the steps behind it have none"
)

var goldenExceptions = []goldenException{
	{"session-attach.jsonl", []int{12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, reasonKick},
	{"session-1.jsonl", []int{41, 42, 111, 112}, reasonKick},
	{"session-2.jsonl", []int{113, 114, 151, 152}, reasonKick},
	{"session-3.jsonl", []int{30, 31, 39, 40, 52, 53}, reasonKick},
	{"session-4.jsonl", []int{135, 136}, reasonKick},
	{"session-5.jsonl", []int{111, 112}, reasonKick},
	{"session-create-op.jsonl", []int{3, 4, 5, 6, 7, 8}, reasonCreateSession},
}

func exceptionsByStep(t *testing.T) map[string]string {
	byStep := map[string]string{}
	for _, e := range goldenExceptions {
		require.Regexp(t, `^[BD]\d+: `, e.reason)
		for _, i := range e.steps {
			key := stepKey(e.file, i)
			require.NotContains(t, byStep, key, "listed twice")
			byStep[key] = e.reason
		}
	}
	return byStep
}
