//go:build interop && linux

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/handover"
	"zabra/integration/harness"
)

// contest is a recipe in which workers take turns.
type contest struct {
	name, kind string
	languages  []string
	leases     int    // of a semaphore
	nodes      string // where the nodes of those who hold or wait are, below the recipe's own
	shares     func(name string) bool
	// behindMax bounds the turns of others that one waits for, for each who takes part; 0 is without bound. Where one holds at a time,
	// only those before it in the line can have theirs. Readers that are let in together may have a few more while one of them is
	// slow to make its record. So may takers of leases, again and again.
	behindMax int
	// faults are done one after the other, with turns before and behind each.
	faults func(c *crowd, run string) []func()
}

const (
	contestTurns             = 60 // turns between two faults, at least
	behindOne, behindReaders = 2, 5
	contestShare             = 10 // nobody has less than a tenth of an equal share: a process that is started again misses many turns
)

// contests are the recipes, with the languages whose layouts agree:
//
//   - The read-write lock of Curator names its nodes <unique>__READ__<sequence> and <unique>__WRIT__<sequence>; kazoo says __rlock__ and
//     __lock__. As with the lock, kazoo's classes have two attributes changed. Go can also stand in a line with kazoo as it comes.
//   - Curator's LeaderSelector is its mutex with an id as data, and so is kazoo's Election; Curator's LeaderLatch is another line, with nodes
//     <unique>-latch-<sequence>, that kazoo has nothing for.
//   - Curator's InterProcessSemaphoreV2 keeps leases below "leases" and lets takers through one by one, by a mutex below "locks". kazoo's
//     Semaphore has its leases right below the path, would count "leases" and "locks" as two of them, writes their limit into the
//     path's data, and its mutex is at the path with "-__lock__" behind it. The two cannot share.
func contests() []contest {
	reads := func(parts ...string) func(string) bool {
		return func(name string) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
		}
	}
	return []contest{
		{name: "read-write-lock", kind: "rw", languages: []string{inGo, inJava, inPython}, shares: reads("__READ__"), behindMax: behindReaders,
			faults: func(c *crowd, run string) []func() {
				return []func(){func() { c.killHolder(inJava, run) }, c.cut, func() { c.killHolder(inPython, run) }}
			}},
		{name: "semaphore", kind: "semaphore", languages: []string{inGo, inJava}, leases: 2, nodes: "/leases",
			faults: func(c *crowd, run string) []func() {
				return []func(){func() { c.killHolder(inGo, run) }, c.cut, func() { c.killHolder(inJava, run) }}
			}},
		{name: "leader-latch", kind: "latch", languages: []string{inGo, inJava}, behindMax: behindOne,
			faults: func(c *crowd, run string) []func() {
				return []func(){func() { c.killHolder(inJava, run) }, c.cut, func() { c.pauseHolder(inGo) }}
			}},
		{name: "leader-selector", kind: "election", languages: []string{inGo, inJava, inPython}, behindMax: behindOne,
			faults: func(c *crowd, run string) []func() {
				return []func(){func() { c.killHolder(inPython, run) }, c.killLeader, func() { c.killHolder(inGo, run) }}
			}},
		{name: "lock-with-kazoo-as-it-comes", kind: "lock-stock", languages: []string{inGo, inPython}, behindMax: behindOne,
			faults: func(c *crowd, _ string) []func() { return []func(){c.cut} }},
		{name: "read-write-lock-with-kazoo-as-it-comes", kind: "rw-stock", languages: []string{inGo, inPython}, shares: reads("__rlock__"), behindMax: behindReaders,
			faults: func(c *crowd, _ string) []func() { return []func(){c.cut} }},
	}
}

// TestRecipesAcrossLanguages does for the other recipes what TestRecipesLockAcrossLanguages does for the lock, with two processes of each
// language whose layout agrees, in less time and with fewer faults.
func TestRecipesAcrossLanguages(t *testing.T) {
	c := newCrowd(t)
	client := c.client()
	c.hire(2, inGo, inJava, inPython)
	for _, one := range contests() {
		require.True(t, t.Run(one.name, func(t *testing.T) { one.hold(t, c, client) }))
	}
	require.True(t, t.Run("double-barrier", func(t *testing.T) { throughBarrier(t, c, client) }))
	require.True(t, t.Run("discovery", func(t *testing.T) { discoverOneAnother(t, c, client) }))
	c.t = t
	c.dismiss()
}

func (one contest) hold(t *testing.T, c *crowd, client *goClient) {
	dir, journal := "/cross-"+one.name, "/cross-journal-"+one.name
	client.make(t, dir)
	client.make(t, journal)
	c.play(t, one.languages...)
	run := fmt.Sprintf("run %s %s %s", one.kind, dir, journal)
	if one.leases > 0 {
		run += fmt.Sprintf(" %d", one.leases)
	}
	begun := c.turns.Load()
	c.tellAll("%s", run)
	for _, fault := range one.faults(c, run) {
		c.awaitTurns(c.turns.Load() + contestTurns)
		fault()
	}
	c.awaitTurns(c.turns.Load() + contestTurns)
	c.stop()
	turns := c.turns.Load() - begun
	c.awaitEmpty(client, dir+one.nodes)
	if one.leases > 0 {
		c.awaitEmpty(client, dir+"/locks")
	}
	verdict := handover.Judge(c.log(), handover.Rules{Dir: dir + one.nodes, Journal: journal, Holders: max(one.leases, 1), Shares: one.shares,
		Names: c.names(), SharePart: contestShare, TurnsMin: int(turns), BehindMax: one.behindMax * len(c.playing)})
	t.Logf("%d turns: %v; nobody waited for more than %d; other ends of a turn: %v", verdict.Turns, verdict.PerName, verdict.BehindMax, c.notes)
	require.Empty(t, verdict.Broken)
}

// throughBarrier sends processes of all languages through a double barrier, together, several times. Curator and kazoo agree on the member
// nodes and on "ready", but kazoo deletes "ready" before it leaves: a member that has not come in by then might wait for good. So nobody
// is told to leave before all are in.
func throughBarrier(t *testing.T, c *crowd, client *goClient) {
	const dir, journal, rounds = "/cross-barrier", "/cross-journal-barrier", 4
	client.make(t, dir)
	client.make(t, journal)
	c.play(t, inGo, inJava, inPython)
	all := len(c.playing)
	members := func() (n int) {
		names, _, err := client.Children(dir)
		require.NoError(t, err)
		for _, name := range names {
			if name != "ready" {
				n++
			}
		}
		return n
	}
	for range rounds {
		c.rnd.Shuffle(all, func(i, j int) { c.playing[i], c.playing[j] = c.playing[j], c.playing[i] })
		last := c.playing[all-1]
		for _, w := range c.playing[:all-1] {
			c.tell(w, "enter %s %s %d", dir, journal, all)
		}
		require.NoError(t, harness.Wait(waitTimeout, "all but one wait", func() bool { return members() == all-1 }))
		c.tell(last, "enter %s %s %d", dir, journal, all)
		for _, w := range c.playing {
			c.expect(w, "ENTERED")
		}
		for _, w := range c.playing[:all-1] {
			c.tell(w, "leave %s", journal)
		}
		// The one that has not left is there, and one of the others may have to be the last to delete its node.
		require.NoError(t, harness.Wait(waitTimeout, "all but one leave", func() bool { return members() <= 2 }))
		c.tell(last, "leave %s", journal)
		for _, w := range c.playing {
			c.expect(w, "LEFT")
		}
	}
	c.awaitEmpty(client, dir)
	require.Empty(t, handover.JudgeBarrier(c.log(), dir, journal, c.names(), rounds))
}

// discoverOneAnother registers services in Go and in Java and lets both look, also when they go, in order and by the death of a process.
// kazoo has no service discovery.
func discoverOneAnother(t *testing.T, c *crowd, client *goClient) {
	const dir, service = "/cross-services", "shop"
	c.play(t, inGo, inJava)
	byName := map[string]*worker{}
	for _, w := range c.playing {
		byName[w.name] = w
	}
	inGoSeen, inJavaSeen := byName["go-1"], byName["java-1"]
	goServer, javaServer := byName["go-2"], byName["java-2"]
	watchers := []*worker{inGoSeen, inJavaSeen}
	see := func(instances ...string) {
		for _, w := range watchers {
			c.sees(w, instances...)
		}
	}
	const ofGo, ofJava = "g=go.example:8001/blue", "j=java.example:8002/green"
	register := func(w *worker, what string) {
		if w == goServer {
			c.tell(w, "%s %s %s g go.example 8001 blue", what, dir, service)
		} else {
			c.tell(w, "%s %s %s j java.example 8002 green", what, dir, service)
		}
		c.expect(w, strings.ToUpper(what)+"ED")
	}
	for _, w := range watchers {
		c.tell(w, "watch %s %s", dir, service)
	}
	see()
	register(goServer, "register")
	see(ofGo)
	register(javaServer, "register")
	see(ofGo, ofJava)
	register(goServer, "unregister")
	see(ofJava)
	register(goServer, "register")
	see(ofGo, ofJava)
	register(javaServer, "unregister")
	see(ofGo)
	register(javaServer, "register")
	see(ofGo, ofJava)
	for _, w := range []*worker{javaServer, goServer} {
		require.NoError(t, w.cmd.Process.Kill())
		_ = w.cmd.Wait() // it was killed
		c.workers = slices.DeleteFunc(c.workers, func(other *worker) bool { return other == w })
	}
	see()
	c.awaitEmpty(client, dir+"/"+service)
}
