//go:build interop && linux

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/handover"
)

// TestRecipesLockAcrossLanguages lets nine processes contend for one lock, three each of package recipes, Curator's InterProcessMutex
// and kazoo's Lock, while holders are killed or stopped, connections cut, and leaders killed. The servers' logs are the judge: nobody
// holds while a node before its own is there, nobody's record is accepted behind one with a higher token, nobody gets less than a
// quarter of an equal share or waits for more than two rounds of the others, and nothing is left behind.
//
// kazoo names its nodes <unique>__lock__<sequence>, which Curator would sort wrongly: it orders names by what stands behind "lock-",
// and whole names where that is missing. So kazoo's Lock has the two class attributes that say so changed, and nothing else.
func TestRecipesLockAcrossLanguages(t *testing.T) {
	const each, turns, dir, journal = 3, 2000, "/cross-lock", "/cross-lock-journal"
	c := newCrowd(t)
	client := c.client()
	client.make(t, dir)
	client.make(t, journal)
	c.hire(each, inGo, inJava, inPython)

	const run = "run lock " + dir + " " + journal
	faults := []func(){
		func() { c.killHolder(inGo, run) },
		c.cut,
		func() { c.pauseHolder(inJava) },
		c.killLeader,
		func() { c.killHolder(inPython, run) },
		func() { c.pauseHolder(inGo) },
		c.cut,
		func() { c.killHolder(inJava, run) },
		c.killLeader,
		func() { c.pauseHolder(inPython) },
		c.cut,
	}
	c.tellAll(run)
	for i, fault := range faults {
		c.awaitTurns(int64((i + 1) * turns / (len(faults) + 1)))
		fault()
	}
	c.awaitTurns(turns)
	names := c.names()
	c.stop()
	c.dismiss()
	c.awaitEmpty(client, dir)

	verdict := handover.Judge(c.log(), handover.Rules{Dir: dir, Journal: journal, Holders: 1, Names: names, SharePart: 4,
		TurnsMin: turns, BehindMax: behindOne * len(names)})
	t.Logf("%d turns: %v; nobody waited for more than %d; other ends of a turn: %v", verdict.Turns, verdict.PerName, verdict.BehindMax, c.notes)
	require.Empty(t, verdict.Broken)
}
