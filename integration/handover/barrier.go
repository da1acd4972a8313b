//go:build linux

package handover

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"zabra/integration/judge"
)

// readyNode is the child of a double barrier that opens it and is no member.
const readyNode = "ready"

// JudgeBarrier judges a double barrier below dir for a number of members that goes through rounds one after the other. Each
// member sets the journal to "<name> entered" when it has come in and to "<name> left" when it has left, both times with the plain
// write of a session whose node is the member's. Nobody comes in before all members are there and nobody has left while one is.
func JudgeBarrier(txns []judge.Txn, dir, journal string, names []string, rounds int) (broken []string) {
	members := map[string]int64{} // the member nodes that are there, with their sessions
	counts := map[string]int{}
	breach := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	for _, t := range txns {
		for _, change := range t.Changes {
			switch {
			case path.Dir(change.Path) == dir && path.Base(change.Path) != readyNode && change.Type == judge.TxnCreate:
				members[change.Path] = t.Session
			case change.Type == judge.TxnDelete:
				delete(members, change.Path)
			case change.Type == judge.TxnSet && change.Path == journal:
				counts[change.Value]++
				if strings.HasSuffix(change.Value, " entered") && len(members) != len(names) {
					breach("%#x: %s beside %d of %d members", t.Zxid, change.Value, len(members), len(names))
				}
				if strings.HasSuffix(change.Value, " left") && len(members) != 0 {
					breach("%#x: %s while %d members are there", t.Zxid, change.Value, len(members))
				}
			}
		}
		if t.EndsSession {
			for p, session := range members {
				if session == t.Session {
					delete(members, p)
				}
			}
		}
	}
	if len(members) > 0 {
		breach("%d members are left behind", len(members))
	}
	for _, name := range names {
		for _, what := range []string{" entered", " left"} {
			if n := counts[name+what]; n != rounds {
				breach("%s%s %d times in %d rounds", name, what, n, rounds)
			}
			delete(counts, name+what)
		}
	}
	for value := range counts {
		breach("a record that says %q", value)
	}
	slices.Sort(broken)
	return broken
}
