//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zabra/integration/harness"
)

// document is what docs/benchmarks.md is made of.
type document struct {
	*results
	machine   machine
	reference harness.Kind
	notes     string // folder of the reasons that people have written
	plots     []plot
	folder    string // of the plots, beside the document
	found     []finding
}

func runRender(args []string) error {
	set := flag.NewFlagSet("render", flag.ContinueOnError)
	reference := set.String("reference", string(harness.Apache380), "the server that Zabra is compared with")
	dir := set.String("results", "", "folder of the results; default as for compare")
	quick := set.Bool("quick", false, "render the results of compare -quick")
	out := set.String("out", filepath.Join(harness.Root(), "docs", "benchmarks.md"), "the document; the plots go into a folder of that name beside it")
	notes := set.String("notes", filepath.Join(harness.Root(), "integration", "bench", "notes"), "folder of the reasons, a file ROW.md each")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		*dir = resultsFolder(harness.Kind(*reference), *quick)
	}
	d, err := newDocument(*dir, *notes, harness.Kind(*reference))
	if err != nil {
		return err
	}
	d.folder = strings.TrimSuffix(filepath.Base(*out), ".md")
	if err := d.write(*out); err != nil {
		return err
	}
	fmt.Print(d.compact())
	return nil
}

// newDocument reads results and judges them.
func newDocument(dir, notes string, reference harness.Kind) (*document, error) {
	m, err := readMachine(dir)
	if err != nil {
		return nil, err
	}
	store, err := openResults(dir)
	if err != nil {
		return nil, err
	}
	if len(store.all) == 0 {
		return nil, fmt.Errorf("there are no results in %s", dir)
	}
	return &document{results: store, machine: m, reference: reference, notes: notes, plots: store.plots(reference),
		found: store.findings(reference), folder: "benchmarks"}, nil
}

// write replaces the document and its plots.
func (d *document) write(out string) error {
	text, err := d.markdown()
	if err != nil {
		return err
	}
	folder := filepath.Join(filepath.Dir(out), d.folder)
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if len(d.plots) > 0 {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for _, p := range d.plots {
		if err := os.WriteFile(filepath.Join(folder, p.file), p.chart.svg(), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(out, []byte(text), 0o644)
}

func (d *document) markdown() (string, error) {
	var b strings.Builder
	d.head(&b)
	if err := d.missed(&b); err != nil {
		return "", err
	}
	d.table(&b)
	d.costs(&b)
	for _, p := range d.plots {
		fmt.Fprintf(&b, "![%s](%s/%s)\n\n", p.caption, d.folder, p.file)
	}
	d.method(&b)
	d.about(&b)
	return b.String(), nil
}

func (d *document) head(b *strings.Builder) {
	fmt.Fprintf(b, "# Benchmarks\n\nZabra and %s on the same machine, in turn. Written by `make compare`; do not edit it, but [how](../integration/README.md) "+
		"it is measured.\n\n", referenceName(d.reference))
	if d.machine.Quick {
		b.WriteString("**This is a quick run with small numbers, to see that the machinery works. It says nothing about either server.**\n\n")
	}
	b.WriteString("Every number says **how many times better Zabra is**: for operations a second Zabra's divided by the other's, for time, memory and " +
		"CPU the other's divided by Zabra's; above 1 Zabra is ahead. It is the median of the pairs of all rounds, with the lowest and the highest in " +
		"parentheses. Absolute figures depend on the machine and are left out.\n\n")
}

// missed names first what did not reach its aim, with the reasons that people have written.
func (d *document) missed(b *strings.Builder) error {
	b.WriteString("## Missed\n\n")
	byRow := map[string][]finding{}
	var order []string
	var unknown []string
	for _, f := range d.found {
		switch {
		case f.isMissed():
			if byRow[f.row.id] == nil {
				order = append(order, f.row.id)
			}
			byRow[f.row.id] = append(byRow[f.row.id], f)
		case f.verdict == unmeasured:
			unknown = append(unknown, f.row.title+", "+f.figure.label)
		}
	}
	if len(order) == 0 {
		b.WriteString("Nothing that was measured.\n\n")
	}
	for _, id := range order {
		fmt.Fprintf(b, "### %s\n\n", byRow[id][0].row.title)
		for _, f := range byRow[id] {
			fmt.Fprintf(b, "- %s: %s\n", f.figure.label, f.sentence())
		}
		note, err := d.note(id)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n%s\n\n", note)
	}
	if len(unknown) > 0 {
		fmt.Fprintf(b, "**Not measured:** %s.\n\n", strings.Join(unknown, "; "))
	}
	return nil
}

// note returns what people have written about a row.
func (d *document) note(id string) (string, error) {
	text, err := os.ReadFile(filepath.Join(d.notes, id+".md"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("Nobody has written why yet (`integration/bench/notes/%s.md`).", id), nil
	}
	return strings.TrimSpace(string(text)), err
}

// sentence says how far a figure is from its aims.
func (f *finding) sentence() string {
	var parts []string
	if f.figure.aim > 0 {
		parts = append(parts, fmt.Sprintf("%s, aim %s", f.plain, aimText(f.figure.aim)))
		if f.row.bigHeap {
			parts = append(parts, fmt.Sprintf("with the larger heap %s, aim %s", f.big, aimText(f.figure.aim*bigHeapShare)))
		}
	}
	if f.figure.limit > 0 {
		parts = append(parts, fmt.Sprintf("%s of the limit of %g %s", f.limit, f.figure.limit, f.figure.unit()))
	}
	if f.verdict == near {
		parts = append(parts, "too near to tell")
	}
	return strings.Join(parts, "; ")
}

// unit is that of a limit.
func (f figure) unit() string {
	if strings.HasSuffix(f.key, "_ms") {
		return "ms"
	}
	return "MB"
}

// String shows median and range.
func (s spread) String() string {
	switch s.pairs {
	case 0:
		return "–"
	case 1:
		return times(s.median) + " (once)"
	}
	return fmt.Sprintf("%s (%s–%s)", times(s.median), digits(s.low), digits(s.high))
}

func times(v float64) string { return digits(v) + "×" }

// digits shows two or three digits that matter.
func digits(v float64) string {
	switch {
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 1.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func aimText(aim float64) string {
	if aim == 0 {
		return ""
	}
	return fmt.Sprintf("≥ %.3g×", aim)
}

// table shows every figure that has an aim, and all throughputs.
func (d *document) table(b *strings.Builder) {
	fmt.Fprintf(b, "## All rows\n\n| work | figure | times better | aim | with %s | aim | |\n|---|---|---|---|---|---|---|\n", bigHeap)
	last := ""
	for _, f := range d.found {
		if f.figure.aim == 0 && f.figure.limit == 0 && f.figure.key != "ops" {
			continue
		}
		title := f.row.title
		if title == last {
			title = ""
		} else {
			last = title
		}
		plain, aim := f.plain.String(), aimText(f.figure.aim)
		if f.figure.limit > 0 {
			limit := fmt.Sprintf("≤ %g %s", f.figure.limit, f.figure.unit())
			aim = strings.TrimPrefix(aim+", "+limit, ", ")
			share := f.limit.String() + " of the limit"
			if f.figure.aim > 0 {
				plain += "; " + share
			} else {
				plain = share
			}
		}
		larger, largerAim := "", ""
		if f.row.bigHeap {
			larger, largerAim = f.big.String(), aimText(f.figure.aim*bigHeapShare)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", title, f.figure.label, plain, aim, larger, largerAim, f.verdict)
	}
	b.WriteString("\n")
}

// costs shows what has no aim.
func (d *document) costs(b *strings.Builder) {
	keys := []string{"p50", "p99", "cpu", "rss"}
	b.WriteString("## Latency, CPU and memory of the same runs\n\nTimes better than the reference server with its default heap.\n\n" +
		"| work | p50 | p99 | server CPU per operation | memory (RSS) |\n|---|---|---|---|---|\n")
	for _, r := range allRows() {
		if r.station != atStandalone && r.station != atThree {
			continue
		}
		cells := make([]string, len(keys))
		for _, f := range d.found {
			if at := slices.Index(keys, f.figure.key); f.row.id == r.id && at >= 0 {
				cells[at] = f.plain.String()
			}
		}
		fmt.Fprintf(b, "| %s | %s |\n", r.title, strings.Join(cells, " | "))
	}
	b.WriteString("\n")
}

func (d *document) method(b *strings.Builder) {
	m := d.machine
	fmt.Fprintf(b, `## Method

- Rounds: up to %d. In each, every contestant has one turn, one after the other: Zabra, the reference server, the reference server with %s. A ratio
  is made of two results of the same round. The range is that of all rounds, not an interval of confidence.
- Aims hold against the default heap (%s, what zkServer.sh gives), and three quarters of each against the larger heap. A median that is within
  10 %% of its aim counts as missed.
- In each turn servers start on fresh directories, all on the same disk, with fsync on and the settings that ZooKeeper has by default (tick 2 s). One
  server, or three on the one machine, stays for all rows of its kind.
- The load comes from `+"`zabra bench`"+`, a process of its own that shares the machine with the servers. "64 × 16" are 64 sessions with 16 requests outstanding
  each, in a closed loop; with three servers the sessions are dealt out to them. Data has 100 bytes unless it is said otherwise.
- %g s of warm-up and %g s of measurement for each row; %g s of warm-up before the first row of each kind of work in a JVM.
- CPU and memory are those of the server processes, from /proc; memory is read when the load has been over for %g s, that of idle sessions
  when they have been idle for %g s. Live heap: of the JVM after jcmd GC.run, of Zabra what its last collection found in use.
- A session on each server sends a ping every %d ms: Apache 3.8.0 at times lets requests lie until another one comes.
- Start: from the start of the process to a client's first answered read. The directory of 1,000,000 znodes is the one that was just filled.
- Snapshot: writes at a fixed rate, latency counted from when each was due, snapCount set so that a snapshot falls into the run; the files were watched. The
  longest stall is that of the time around a snapshot.
- Leader killed: kill -9, %d times a round; clients of the other two servers, from the signal to the first write under a new leader.

`, d.rounds(), bigHeap, compareJVM[0], m.WarmupSec, m.MeasureSec, m.JVMWarmup, fullScale.settle.Seconds(), fullScale.hold.Seconds(), pingPeriod.Milliseconds(), m.KillsPerRun)
}

// about names machine and versions.
func (d *document) about(b *strings.Builder) {
	m := d.machine
	virtual := ""
	if m.Virtual {
		virtual = ", a virtual machine"
	}
	fmt.Fprintf(b, "## Machine and versions\n\n| | |\n|---|---|\n| CPU | %s, %d cores%s |\n| memory | %.0f GiB |\n| kernel | %s |\n| file system | %s |\n"+
		"| disk | %s; writing 4 KiB with fdatasync takes %.0f µs |\n| Zabra | %s |\n| reference | %s |\n| Java | %s |\n| date | %s |\n",
		m.CPU, m.Cores, virtual, m.MemoryGiB, m.Kernel, m.FileSystem, m.Disk, m.SyncUs, m.Zabra, referenceName(d.reference), m.Java, m.At.Format("2006-01-02"))
	if builds := d.builds(); builds > 1 {
		fmt.Fprintf(b, "\nThe results are of %d builds of Zabra.\n", builds)
	}
}

// builds is the number of binaries that took part.
func (d *document) builds() int {
	seen := map[string]bool{}
	for at, r := range d.all {
		if at.contestant == string(harness.Zabra) && r.Failed == "" {
			seen[r.Binary] = true
		}
	}
	return len(seen)
}

// compactRows are the lines of the short table, by row and figure.
var compactRows = []struct{ row, key, title string }{
	{rowGet, "ops", "reads a second, one server"},
	{rowSet, "ops", "writes a second, one server"},
	{"three-set-64x16", "ops", "writes a second, three servers"},
	{rowMemory, memoryFull, "memory for 1,000,000 znodes"},
	{rowStartFull, "start_ms", "start on 1,000,000 znodes"},
	{rowKill, "gap_median_ms", "outage when the leader is killed"},
}

// compact is the table for the README, of at most eight lines.
func (d *document) compact() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| | times better than %s |\n|---|---|\n", referenceName(d.reference))
	for _, c := range compactRows {
		for _, f := range d.found {
			if f.row.id == c.row && f.figure.key == c.key && f.plain.pairs > 0 {
				fmt.Fprintf(&b, "| %s | %s |\n", c.title, f.plain)
			}
		}
	}
	return b.String()
}
