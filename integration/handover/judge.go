//go:build linux

package handover

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"zabra/integration/judge"
)

// Rules say what is judged and what must hold.
type Rules struct {
	// Dir is the node whose children are the contenders' nodes; each is ephemeral, and its token is the zxid that created it.
	Dir string
	// Journal is the node whose data the records set.
	Journal string
	// Holders is how many may hold at a time: 1 for a lock, the number of leases for a semaphore.
	Holders int
	// Shares says of the name of a contender's node whether it shares with others of its kind, as a reader does. Nil: none does.
	Shares func(name string) bool
	// Names are those who must have had turns, each no fewer than an equal share of all divided by SharePart.
	Names     []string
	SharePart int
	// TurnsMin is how many turns there must be in all.
	TurnsMin int
	// BehindMax is how many turns of others may begin while one waits, that is between the create of its node and its first record.
	BehindMax int
}

// Verdict is what Judge found.
type Verdict struct {
	Turns     int            // nodes that came to hold, told by their first records
	PerName   map[string]int // turns of each name
	BehindMax int            // the most turns of others that one waited for
	Broken    []string       // every breach of the rules, in the order of the log
}

// contender is a node below Dir that is there.
type contender struct {
	name           string
	token, session int64
	shares, holds  bool
	turnsBefore    int // turns that had begun when it was created
}

// court goes through the log.
type court struct {
	Rules
	Verdict
	line map[string]*contender // those that are there, by path
	// The highest tokens that have made a record, of all and of those that share with nobody.
	highest, highestAlone int64
}

// Judge goes through transactions in the order of their zxids, from the first one of Dir on.
func Judge(txns []judge.Txn, rules Rules) Verdict {
	c := &court{Rules: rules, Verdict: Verdict{PerName: map[string]int{}}, line: map[string]*contender{}}
	for _, t := range txns {
		c.step(t)
	}
	for _, p := range slices.Sorted(maps.Keys(c.line)) {
		c.breach("%s is left behind", p)
	}
	c.judgeShares()
	return c.Verdict
}

func (c *court) breach(format string, args ...any) {
	c.Broken = append(c.Broken, fmt.Sprintf(format, args...))
}

func (c *court) step(t judge.Txn) {
	checked := ""
	for _, change := range t.Changes {
		switch {
		case change.Type == judge.TxnCheck && path.Dir(change.Path) == c.Dir:
			checked = change.Path
		case change.Type == judge.TxnSet && change.Path == c.Journal:
			c.record(t.Zxid, checked, change.Value)
		case change.Type == judge.TxnCreate && path.Dir(change.Path) == c.Dir:
			name := path.Base(change.Path)
			c.line[change.Path] = &contender{name: name, token: t.Zxid, session: t.Session,
				shares: c.Shares != nil && c.Shares(name), turnsBefore: c.Turns}
		case change.Type == judge.TxnDelete:
			delete(c.line, change.Path)
		}
	}
	if t.EndsSession {
		maps.DeleteFunc(c.line, func(_ string, one *contender) bool { return one.session == t.Session })
	}
}

// record judges that somebody says it holds, by the node whose presence the same transaction has checked.
func (c *court) record(zxid int64, node, value string) {
	who, text, _ := strings.Cut(value, " ")
	token, err := strconv.ParseInt(text, 10, 64)
	one := c.line[node]
	switch {
	case err != nil:
		c.breach("%#x: a record that says %q", zxid, value)
		return
	case one == nil:
		c.breach("%#x: %s makes a record with token %#x and has no node", zxid, who, token)
		return
	case one.token != token:
		c.breach("%#x: %s says its token is %#x, its node %s is of %#x", zxid, who, token, node, one.token)
		return
	}
	c.judgeHolder(zxid, who, one)
	if one.holds {
		return
	}
	one.holds = true
	behind := c.Turns - one.turnsBefore
	if c.Rules.BehindMax > 0 && behind > c.Rules.BehindMax {
		c.breach("%#x: %s with token %#x waited for %d others", zxid, who, token, behind)
	}
	c.Verdict.BehindMax = max(c.Verdict.BehindMax, behind)
	c.Turns++
	c.PerName[who]++
}

// judgeHolder judges that one holds at zxid: those with lower tokens that are still there hold too, or are to have their turn first.
func (c *court) judgeHolder(zxid int64, who string, one *contender) {
	var ahead []string
	for _, other := range c.line {
		if other.token < one.token && !(other.shares && one.shares) {
			ahead = append(ahead, fmt.Sprintf("%s (token %#x)", other.name, other.token))
		}
	}
	if len(ahead) >= c.Holders {
		slices.Sort(ahead)
		c.breach("%#x: %s holds with token %#x beside %s", zxid, who, one.token, strings.Join(ahead, ", "))
	}
	limit := c.highest
	if one.shares {
		limit = c.highestAlone
	}
	if c.Holders == 1 && one.token < limit {
		c.breach("%#x: %s makes a record with token %#x behind one of %#x", zxid, who, one.token, limit)
	}
	c.highest = max(c.highest, one.token)
	if !one.shares {
		c.highestAlone = max(c.highestAlone, one.token)
	}
}

func (c *court) judgeShares() {
	if c.Turns < c.TurnsMin {
		c.breach("%d turns, at least %d were to be", c.Turns, c.TurnsMin)
	}
	for _, name := range c.Names {
		if n := c.PerName[name]; n*c.SharePart*len(c.Names) < c.Turns || n == 0 {
			c.breach("%s starves: %d of %d turns", name, n, c.Turns)
		}
	}
	for name := range c.PerName {
		if !slices.Contains(c.Names, name) {
			c.breach("%s has turns and is unknown", name)
		}
	}
}
