//go:build linux

package handover

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/judge"
)

// log builds transactions with growing zxids.
type log struct{ txns []judge.Txn }

func (l *log) add(session int64, changes ...judge.Change) *log {
	l.txns = append(l.txns, judge.Txn{Session: session, Zxid: int64(len(l.txns) + 1), Changes: changes})
	return l
}

// queue creates a contender's node; its token is the number of transactions so far.
func (l *log) queue(session int64, name string) *log {
	return l.add(session, judge.Change{Type: judge.TxnCreate, Path: "/lock/" + name})
}

func (l *log) leave(name string) *log {
	return l.add(0, judge.Change{Type: judge.TxnDelete, Path: "/lock/" + name})
}

func (l *log) end(session int64) *log {
	l.add(session)
	l.txns[len(l.txns)-1].EndsSession = true
	return l
}

// record is a holder's record: node is checked in the same transaction, "" is a record without proof.
func (l *log) record(who string, token int64, node string) *log {
	set := judge.Change{Type: judge.TxnSet, Path: "/journal", Value: fmt.Sprintf("%s %d", who, token)}
	if node == "" {
		return l.add(0, set)
	}
	return l.add(0, judge.Change{Type: judge.TxnCheck, Path: "/lock/" + node}, set)
}

func reads(name string) bool { return strings.HasPrefix(name, "r") }

func TestJudge(t *testing.T) {
	begin := func() *log { return (&log{}).add(0, judge.Change{Type: judge.TxnCreate, Path: "/lock"}) } // zxid 1
	for name, c := range map[string]struct {
		log    *log
		change func(*Rules)
		broken string // part of the breach, "" when all is well
	}{
		"one after the other": {begin().queue(1, "a").queue(2, "b").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b"), nil, ""},
		"the session ends":    {begin().queue(1, "a").queue(2, "b").record("A", 2, "a").end(1).record("B", 3, "b").leave("b"), nil, ""},
		"two records of one turn": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b"), nil, ""},
		"two holders": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").record("B", 3, "b").leave("a").leave("b"), nil, "holds with token 0x3 beside a"},
		"the killed holder's session still lives": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").record("B", 3, "b").end(1).leave("b"), nil, "beside a"},
		"another session has ended": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").end(9).record("B", 3, "b").end(1).leave("b"), nil, "beside a"},
		"out of turn": {
			begin().queue(1, "a").queue(2, "b").record("B", 3, "b").leave("b").record("A", 2, "a").leave("a"), nil, "behind one of 0x3"},
		"a late record": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").leave("a").record("A", 2, "a").record("B", 3, "b").leave("b"), nil, "has no node"},
		"a record without proof": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b"), nil, "has no node"},
		"the token of another": {
			begin().queue(1, "a").queue(2, "b").record("A", 3, "a").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b"), nil, "its node /lock/a is of 0x2"},
		"a record that nobody made": {
			begin().queue(1, "a").record("A", 2, "a").add(0, judge.Change{Type: judge.TxnSet, Path: "/journal", Value: "hello"}).leave("a"),
			func(r *Rules) { r.Names = []string{"A"} }, "says \"hello\""},
		"a node is left": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").leave("a").record("B", 3, "b"), nil, "/lock/b is left behind"},
		"a waiting node is left": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b").queue(2, "c"), nil, "/lock/c is left"},
		"one starves": {begin().queue(1, "a").queue(2, "b").record("A", 2, "a").leave("a").leave("b"), nil, "B starves: 0 of 1"},
		"one has less than its share": {
			begin().queue(1, "a").record("A", 2, "a").leave("a").queue(1, "a").record("A", 5, "a").leave("a").queue(2, "b").record("B", 8, "b").leave("b"),
			func(r *Rules) { r.SharePart = 1 }, "B starves: 1 of 3"},
		"a stranger": {begin().queue(1, "a").record("A", 2, "a").leave("a"), func(r *Rules) { r.Names = nil }, "A has turns and is unknown"},
		"too few turns": {
			begin().queue(1, "a").queue(2, "b").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b"),
			func(r *Rules) { r.TurnsMin = 3 }, "2 turns"},
		"one waits for too many": {
			begin().queue(2, "b").queue(1, "a1").record("A", 3, "a1").leave("a1").queue(1, "a2").record("A", 6, "a2").leave("a2").record("B", 2, "b").leave("b"),
			func(r *Rules) { r.BehindMax, r.Holders = 1, 2 }, "waited for 2 others"},
		"two leases": {
			begin().queue(1, "a").queue(2, "b").record("B", 3, "b").record("A", 2, "a").leave("a").leave("b"),
			func(r *Rules) { r.Holders = 2 }, ""},
		"three leases of two": {
			begin().queue(1, "a").queue(2, "b").queue(1, "c").record("B", 3, "b").record("A", 2, "a").record("A", 4, "c").leave("a").leave("b").leave("c"),
			func(r *Rules) { r.Holders = 2 }, "0x4 beside a (token 0x2), b"},
		"readers share": {
			begin().queue(1, "ra").queue(2, "rb").record("B", 3, "rb").record("A", 2, "ra").leave("ra").leave("rb"), nil, ""},
		"a writer beside a reader": {
			begin().queue(1, "ra").queue(2, "wb").record("A", 2, "ra").record("B", 3, "wb").leave("ra").leave("wb"), nil, "beside ra"},
		"a reader beside a writer": {
			begin().queue(1, "wa").queue(2, "rb").record("A", 2, "wa").record("B", 3, "rb").leave("wa").leave("rb"), nil, "beside wa"},
		"a reader passes a waiting writer": {
			begin().queue(1, "ra").queue(1, "wa").queue(2, "rb").record("A", 2, "ra").record("B", 4, "rb").leave("rb").leave("ra").record("A", 3, "wa").leave("wa"),
			nil, "beside wa"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := Rules{Dir: "/lock", Journal: "/journal", Holders: 1, Shares: reads, Names: []string{"A", "B"}, SharePart: 2, TurnsMin: 1}
			if c.change != nil {
				c.change(&rules)
			}
			verdict := Judge(c.log.txns, rules)
			if c.broken == "" {
				require.Empty(t, verdict.Broken)
				require.Equal(t, map[string]int{"A": 1, "B": 1}, verdict.PerName)
				require.Equal(t, 2, verdict.Turns)
				return
			}
			require.Contains(t, strings.Join(verdict.Broken, "\n"), c.broken)
		})
	}
}

func TestJudgeCountsThoseWaitedFor(t *testing.T) {
	l := (&log{}).add(0).queue(1, "a").queue(2, "b").queue(3, "c").record("A", 2, "a").leave("a").record("B", 3, "b").leave("b").record("C", 4, "c").leave("c")
	verdict := Judge(l.txns, Rules{Dir: "/lock", Journal: "/journal", Holders: 1, Names: []string{"A", "B", "C"}, SharePart: 1})
	require.Empty(t, verdict.Broken)
	require.Equal(t, 2, verdict.BehindMax)
}

func TestJudgeBarrier(t *testing.T) {
	says := func(l *log, what string) { l.add(0, judge.Change{Type: judge.TxnSet, Path: "/journal", Value: what}) }
	// One round, written as a line of steps: +x a member's node comes, -x it goes, x> the member says it is in, x< that it has left.
	round := func(steps string) *log {
		l := &log{}
		for _, step := range strings.Fields(steps) {
			switch {
			case step[0] == '+':
				l.queue(int64(step[1]), step[1:])
			case step[0] == '-':
				l.leave(step[1:])
			case step[0] == '!':
				l.end(int64(step[1]))
			case step[1] == '>':
				says(l, step[:1]+" entered")
			default:
				says(l, step[:1]+" left")
			}
		}
		return l
	}
	for name, c := range map[string]struct{ steps, broken string }{
		"all is well":                  {"+a +b +ready a> b> -a -b -ready a< b<", ""},
		"ready goes before the end":    {"+a +b +ready b> a> -ready -b -a b< a<", ""},
		"a session ends":               {"+a +b +ready b> a> !a -b b< a<", ""},
		"in before all are there":      {"+a a> +b +ready b> -a -b a< b<", "a entered beside 1 of 2"},
		"ready is no member":           {"+a +ready a> +b b> -a -b a< b<", "a entered beside 1 of 2"},
		"in when one has gone":         {"+a +b +ready a> -a b> -b a< b<", "b entered beside 1 of 2"},
		"left before all have":         {"+a +b +ready a> b> -a a< -b b<", "a left while 1 members are there"},
		"one never comes in":           {"+a +b +ready a> -a -b a<", "b entered 0 times in 1 rounds"},
		"one never leaves":             {"+a +b +ready a> b> -a a<", "1 members are left behind"},
		"somebody else":                {"+a +b +ready a> b> c> -a -b a< b<", "a record that says \"c entered\""},
		"a member enters a round more": {"+a +b a> b> -a -b a< b< +a +b a>", "a entered 2 times in 1 rounds"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := JudgeBarrier(round(c.steps).txns, "/lock", "/journal", []string{"a", "b"}, 1)
			if c.broken == "" {
				require.Empty(t, broken)
				return
			}
			require.Contains(t, strings.Join(broken, "\n"), c.broken)
		})
	}
}
