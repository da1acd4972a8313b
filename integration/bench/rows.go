//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// row is one line of the comparison: a piece of work that both servers do.
type row struct {
	id      string // of the results and the notes
	title   string // in words
	station string // which servers have to stand for it
	load    load   // what zabra bench does; some stations do more, or something else
	bigHeap bool   // the reference server is measured with the larger heap as well
	figures []figure
}

// figure is what one row shows.
type figure struct {
	key    string // see record.value
	label  string
	higher bool    // more is better
	aim    float64 // so many times better than the reference server with its default heap; 0 = shown only
	limit  float64 // an aim of its own, in the figure's unit, at most; 0 = none
	exact  bool    // the limit is of something that does not vary
}

// load is a run of zabra bench.
type load struct {
	workload    string
	sessions    int
	outstanding int
	dataBytes   int
	reads       int // percent, of mixed
	rate        int // requests a second of an open loop; 0 = closed
	extra       []string
}

func (l load) name() string { return fmt.Sprintf("%s %dx%d", l.workload, l.sessions, l.outstanding) }

// Names of the stations.
const (
	atStandalone = "standalone"
	atThree      = "three"
	atSessions   = "sessions"
	atNodes      = "nodes"
	atKill       = "kill"
	atBinary     = "binary"
)

// Rows that stations treat each in its own way.
const (
	rowIdle         = "idle"
	rowWatch        = "watch"
	rowStartEmpty   = "start-empty"
	rowStartFull    = "start-full"
	rowMemory       = "memory"
	rowSnapshot     = "snapshot"
	rowKill         = "leader-kill"
	rowKillPicture  = "leader-kill-picture"
	rowBinary       = "binary"
	rowGet          = "get-64x16"
	rowSet          = "set-64x16"
	rowMixed50      = "mixed-50"
	watchersWanted  = 5000
	sessionsWanted  = 10000
	nodesWanted     = 1_000_000
	bytesOfNode     = 100
	memoryHalf      = "rss_50"
	memoryQuarter   = "rss_25"
	memoryFull      = "rss_100"
	memoryEmpty     = "rss_0"
	memoryLive      = "live_100"
	memoryLiveEmpty = "live_0"
)

// throughput returns the figures of a row of operations a second. Aims of 0 are none.
func throughput(aim, p99Aim float64) []figure {
	return []figure{
		{key: "ops", label: "operations/s", higher: true, aim: aim},
		{key: "p50", label: "p50"},
		{key: "p99", label: "p99", aim: p99Aim},
		{key: "cpu", label: "server CPU per operation"},
		{key: "rss", label: "memory (RSS)"},
	}
}

// work makes a row of operations a second.
func work(station, id, title string, l load, aim, p99Aim float64) row {
	return row{id: id, title: title, station: station, load: l, bigHeap: true, figures: throughput(aim, p99Aim)}
}

// onSmallHeap is for work that has few requests outstanding and does not gain from a larger heap.
func onSmallHeap(r row) row {
	r.bigHeap = false
	return r
}

// share is a point of the plot of throughput over the share of reads.
func share(reads int) row {
	r := work(atStandalone, fmt.Sprintf("mixed-%d", reads), fmt.Sprintf("mixed, %d %% reads, 64 × 16", reads),
		load{"mixed", 64, 16, bytesOfNode, reads, 0, nil}, 0, 0)
	return onSmallHeap(r)
}

// standaloneRows are those of one server that stands for all of them, reads first; what leaves much behind comes last.
func standaloneRows() []row {
	mixed := share(50)
	mixed.bigHeap, mixed.figures = true, throughput(5, 0)
	return []row{
		work(atStandalone, rowGet, "get, 64 sessions × 16 outstanding", load{"get", 64, 16, bytesOfNode, 0, 0, nil}, 6, 5),
		work(atStandalone, "get-16x1", "get, 16 × 1", load{"get", 16, 1, bytesOfNode, 0, 0, nil}, 1.7, 0),
		work(atStandalone, "get-1x1", "get, 1 × 1", load{"get", 1, 1, bytesOfNode, 0, 0, nil}, 3, 0),
		work(atStandalone, rowSet, "set 100 B, 64 × 16", load{"set", 64, 16, bytesOfNode, 0, 0, nil}, 5, 4),
		work(atStandalone, "set-16x1", "set 100 B, 16 × 1", load{"set", 16, 1, bytesOfNode, 0, 0, nil}, 1.5, 0),
		work(atStandalone, "set-1x1", "set 100 B, 1 × 1", load{"set", 1, 1, bytesOfNode, 0, 0, nil}, 2, 0),
		share(90), share(75), mixed, share(25),
		onSmallHeap(work(atStandalone, "connect", "connect + close", load{"connect", 16, 1, bytesOfNode, 0, 0, nil}, 3, 0)),
		onSmallHeap(work(atStandalone, "lock", "lock line, 100 waiters", load{"lock", 100, 1, bytesOfNode, 0, 0, nil}, 2, 0)),
		work(atStandalone, "set-1k-64x16", "set 1 KiB, 64 × 16", load{"set", 64, 16, 1024, 0, 0, nil}, 0, 0),
		work(atStandalone, "create-64x16", "create, 64 × 16", load{"create", 64, 16, bytesOfNode, 0, 0, nil}, 6, 6),
		work(atStandalone, "create-256x16", "create, 256 × 16", load{"create", 256, 16, bytesOfNode, 0, 0, nil}, 8, 6),
	}
}

// threeRows are those of an ensemble of three on one machine.
func threeRows() []row {
	return []row{
		work(atThree, "three-set-64x16", "set 100 B, 64 × 16, three servers", load{"set", 64, 16, bytesOfNode, 0, 0, nil}, 6, 5),
		work(atThree, "three-set-1x1", "set 100 B, 1 × 1, three servers", load{"set", 1, 1, bytesOfNode, 0, 0, nil}, 2, 0),
		work(atThree, "three-mixed-90", "mixed, 90 % reads, 64 × 16, three servers", load{"mixed", 64, 16, bytesOfNode, 90, 0, nil}, 8, 0),
		onSmallHeap(work(atThree, "three-connect", "connect + close, three servers", load{"connect", 16, 1, bytesOfNode, 0, 0, nil}, 5, 0)),
		onSmallHeap(work(atThree, "three-lock", "lock line, 100 waiters, three servers", load{"lock", 100, 1, bytesOfNode, 0, 0, nil}, 4, 0)),
		work(atThree, "three-create-64x16", "create, 64 × 16, three servers", load{"create", 64, 16, bytesOfNode, 0, 0, nil}, 6, 0),
	}
}

// otherRows are those whose stations measure something of their own.
func otherRows() []row {
	return []row{
		{id: rowIdle, title: "10,000 idle sessions", station: atSessions, load: load{workload: "idle", outstanding: 1, dataBytes: bytesOfNode},
			figures: []figure{{key: "rss", label: "memory (RSS)", aim: 5}}},
		{id: rowWatch, title: "watch fan-out to 5,000", station: atSessions, load: load{workload: "watch", outstanding: 1, dataBytes: bytesOfNode},
			figures: []figure{
				{key: "last_event", label: "write to the last event", aim: 2.5},
				{key: "answer", label: "write to the writer's answer", aim: 20}}},
		{id: rowStartEmpty, title: "start to the first answer, empty", station: atNodes,
			figures: []figure{{key: "start_ms", label: "time", aim: 20}}},
		{id: rowMemory, title: "1,000,000 znodes of 100 B", station: atNodes, load: load{"fill", 8, 64, bytesOfNode, 0, 0, nil},
			figures: []figure{
				{key: memoryEmpty, label: "memory (RSS) of an empty server", limit: 15},
				{key: memoryFull, label: "memory (RSS)", aim: 3},
				{key: memoryLive, label: "live heap", aim: 2}}},
		{id: rowStartFull, title: "start to the first answer, 1,000,000 znodes", station: atNodes,
			figures: []figure{{key: "start_ms", label: "time", aim: 8}}},
		{id: rowSnapshot, title: "snapshot of 1,000,000 znodes under 5,000 writes/s", station: atNodes,
			load: load{"set", 64, 16, bytesOfNode, 0, snapshotRate, []string{"--timeline", "100ms"}},
			figures: []figure{
				{key: "stall_ms", label: "longest write stall", aim: 10, limit: 20},
				{key: "quiet_ms", label: "longest stall without a snapshot"},
				{key: "p99", label: "p99"},
				{key: "cpu", label: "server CPU per operation"}}},
		{id: rowKill, title: "leader killed, three servers", station: atKill,
			figures: []figure{
				{key: "gap_median_ms", label: "gap until the next write, median", aim: 5},
				{key: "gap_worst_ms", label: "gap until the next write, worst"}}},
		{id: rowKillPicture, title: "leader killed, second by second", station: atKill,
			load: load{"set", 16, 4, bytesOfNode, 0, pictureRate, []string{"--timeline", "100ms", "--nodes", "16"}}},
		{id: rowBinary, title: "static binary", station: atBinary,
			figures: []figure{{key: "megabytes", label: "size", limit: 25, exact: true}}},
	}
}

// allRows returns every row in the order of the table.
func allRows() []row { return slices.Concat(standaloneRows(), threeRows(), otherRows()) }

// chosenRows returns the rows with the given ids, all for "".
func chosenRows(list string) ([]row, error) {
	all := allRows()
	if list == "" {
		return all, nil
	}
	var chosen []row
	for _, id := range strings.Split(list, ",") {
		at := slices.IndexFunc(all, func(r row) bool { return r.id == id })
		if at < 0 {
			return nil, fmt.Errorf("no row %q; bench compare --list shows them", id)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}
