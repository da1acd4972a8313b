package sim

import (
	"fmt"
	"io"
	"strings"
)

// Counts tells what happened in worlds. A run over many seeds in which one of the named ones is 0 has not tested what it
// was to test.
type Counts struct {
	Worlds, Ops, Txns, Faults               int
	LeaderChanges, Elections                int
	Diff, Trunc, Snap, Resumed, Reloads     int
	Crashes, TornTails, FailedSyncs, Wiped  int
	Pauses, Partitions, Breaks, HalfOpen    int
	Expiries, Moves, Unknown, WatchesFired  int
	Syncs, Snapshots, Purges, FromLog       int
	ErrorTxns, Multis, Ephemerals, Observed int
	SnapOnly, Shutdowns, Outages            int
}

// counter is a count with its name. It must not be 0 over a run of the given number of worlds.
type counter struct {
	name string
	n    *int
	from int
}

// How many worlds it takes until something has to have happened.
const (
	common = 50
	rare   = 1000
)

// list gives the counts their names.
func (c *Counts) list() []counter {
	return []counter{
		{"worlds", &c.Worlds, common}, {"client operations", &c.Ops, common}, {"transactions", &c.Txns, common},
		{"faults", &c.Faults, common}, {"leader changes", &c.LeaderChanges, common}, {"elections", &c.Elections, common},
		{"DIFF", &c.Diff, common}, {"TRUNC", &c.Trunc, common}, {"SNAP", &c.Snap, common}, {"resumed transfers", &c.Resumed, rare},
		{"states loaded anew", &c.Reloads, common}, {"crashes", &c.Crashes, common},
		{"shutdowns", &c.Shutdowns, common}, {"outages at the end", &c.Outages, common}, {"torn tails", &c.TornTails, common},
		{"failed syncs", &c.FailedSyncs, common}, {"emptied disks", &c.Wiped, rare}, {"pauses", &c.Pauses, common},
		{"partitions", &c.Partitions, common}, {"broken connections", &c.Breaks, common}, {"half-open connections", &c.HalfOpen, common},
		{"expiries", &c.Expiries, common}, {"session moves", &c.Moves, common}, {"unknown outcomes", &c.Unknown, common},
		{"watches fired", &c.WatchesFired, common}, {"syncs", &c.Syncs, common}, {"snapshots", &c.Snapshots, common},
		{"purges", &c.Purges, common}, {"answers from the log on disk", &c.FromLog, common},
		{"snapshots because logs part too early", &c.SnapOnly, rare}, {"error transactions", &c.ErrorTxns, common},
		{"multis", &c.Multis, common}, {"ephemerals ended", &c.Ephemerals, common}, {"transactions at observers", &c.Observed, common},
	}
}

func (c *Counts) add(o *Counts) {
	theirs := o.list()
	for i, mine := range c.list() {
		*mine.n += *theirs[i].n
	}
}

// missing names the counts that are 0 and should not be.
func (c *Counts) missing() (names []string) {
	for _, e := range c.list() {
		if *e.n == 0 && c.Worlds >= e.from {
			names = append(names, e.name)
		}
	}
	return names
}

// print writes the counts, a few per line.
func (c *Counts) print(out io.Writer) {
	var line strings.Builder
	for _, e := range c.list() {
		text := fmt.Sprintf("%s %d", e.name, *e.n)
		if line.Len()+len(text) > 110 {
			fmt.Fprintln(out, line.String())
			line.Reset()
		}
		if line.Len() > 0 {
			line.WriteString(", ")
		}
		line.WriteString(text)
	}
	fmt.Fprintln(out, line.String())
}
