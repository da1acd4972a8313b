//go:build linux

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"zabra/integration/harness"
)

// comparison measures Zabra and a reference server in turn.
type comparison struct {
	reference harness.Kind
	rounds    int
	again     bool
	quick     bool
	results   string // folder
	data      string // folder for the servers' directories
	rows      []row
	span      span
	jvmWarmup time.Duration // of the first run of each kind of work that a JVM sees
	scale     scale
	generator generator

	store  *results
	binary string
	failed []string
}

// scale is how large the rows are that count something.
type scale struct {
	nodes, sessions, watchers, kills int
	hold                             time.Duration // of idle sessions
	settle                           time.Duration // before memory is read: what an operator looks at is a server at rest
	snapshotRun, pictureRun          time.Duration
}

var (
	fullScale = scale{nodes: nodesWanted, sessions: sessionsWanted, watchers: watchersWanted, kills: 4,
		hold: 10 * time.Second, settle: 5 * time.Second, snapshotRun: 12 * time.Second, pictureRun: 8 * time.Second}
	quickScale = scale{nodes: 20_000, sessions: 500, watchers: 200, kills: 1,
		hold: time.Second, settle: 100 * time.Millisecond, snapshotRun: 3 * time.Second, pictureRun: 6 * time.Second}
)

const (
	fullFolder  = "compare"
	quickFolder = "compare-quick"
)

// resultsFolder is where results lie that nobody has named a folder for.
func resultsFolder(reference harness.Kind, quick bool) string {
	name := fullFolder
	if quick {
		name = quickFolder
	}
	if reference != harness.Apache380 {
		name += "-" + string(reference)
	}
	return filepath.Join(harness.Cache(), name)
}

func runCompare(args []string) error {
	c := comparison{scale: fullScale}
	set := flag.NewFlagSet("compare", flag.ContinueOnError)
	reference := set.String("reference", string(harness.Apache380), "the server that Zabra is compared with: apache-3.8.0 or apache-3.9.5")
	list := set.String("rows", "", "the rows to measure, with commas in between; all by default")
	show := set.Bool("list", false, "print the rows, and measure nothing")
	set.IntVar(&c.rounds, "rounds", 5, "rounds, in each of which every contestant has one turn")
	set.BoolVar(&c.again, "again", false, "measure what has a result already, too")
	set.BoolVar(&c.quick, "quick", false, "one round of a second each with small numbers, to see that everything works; into a folder of its own")
	set.StringVar(&c.results, "results", "", "folder of the results; default .interop/compare, with the reference's name unless it is the default")
	set.StringVar(&c.data, "data", "", "folder in which the servers' directories are made; default data in the folder of the results")
	set.StringVar(&c.generator.path, "generator", zabraBinary(), "the zabra binary that makes the load")
	set.DurationVar(&c.span.measure, "duration", 3*time.Second, "of each measurement")
	set.DurationVar(&c.span.warmup, "warmup", time.Second, "before each measurement")
	set.DurationVar(&c.jvmWarmup, "jvm-warmup", 3*time.Second, "before the first measurement of each kind of work in a JVM")
	if err := set.Parse(args); err != nil {
		return err
	}
	c.reference = harness.Kind(*reference)
	if c.reference != harness.Apache380 && c.reference != harness.Apache395 {
		return fmt.Errorf("-reference %s: %s or %s is wanted", *reference, harness.Apache380, harness.Apache395)
	}
	var err error
	if c.rows, err = chosenRows(*list); err != nil {
		return err
	}
	if c.quick {
		c.rounds, c.scale = 1, quickScale
		c.span, c.jvmWarmup = span{500 * time.Millisecond, time.Second}, time.Second
	}
	if c.results == "" {
		c.results = resultsFolder(c.reference, c.quick)
	}
	if c.store, err = openResults(c.results); err != nil {
		return err
	}
	if *show {
		c.show()
		return nil
	}
	return c.run()
}

// show prints the rows, and what has no result yet.
func (c *comparison) show() {
	for _, r := range c.rows {
		fmt.Printf("%-20s %-11s %s\n", r.id, r.station, r.title)
	}
	fmt.Printf("\n%d measurements have no result yet; about %v\n", c.pending(), c.estimate().Round(time.Minute))
}

func (c *comparison) run() error {
	if err := c.prepare(); err != nil {
		return err
	}
	defer os.RemoveAll(c.data)
	began := time.Now()
	fmt.Fprintf(os.Stderr, "%d measurements, about %v; results in %s\n", c.pending(), c.estimate().Round(time.Minute), c.results)
	if old := c.otherBuilds(); old > 0 {
		fmt.Fprintf(os.Stderr, "NB: %d results are of another build of Zabra; -again measures everything anew\n", old)
	}
	for round := range c.rounds {
		for _, st := range stations {
			if err := c.turns(st, round); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(os.Stderr, "measured in %v\n", time.Since(began).Round(time.Second))
	if len(c.failed) > 0 {
		return fmt.Errorf("%d measurements failed, run it again for them alone: %s", len(c.failed), c.failed[0])
	}
	return nil
}

// otherBuilds is the number of results of Zabra that will not be measured again though the binary is another one now.
func (c *comparison) otherBuilds() (n int) {
	for at, rec := range c.store.all {
		if at.contestant == string(harness.Zabra) && rec.Failed == "" && rec.Binary != c.binary && !c.again {
			n++
		}
	}
	return n
}

func (c *comparison) prepare() (err error) {
	if c.data == "" {
		c.data = filepath.Join(c.results, "data")
	}
	if err := os.RemoveAll(filepath.Join(c.results, "data")); err != nil { // of a comparison that was killed
		return err
	}
	if err := os.MkdirAll(c.data, 0o755); err != nil {
		return err
	}
	if c.data, err = os.MkdirTemp(c.data, "run-"); err != nil {
		return err
	}
	binary, err := os.ReadFile(zabraBinary())
	if err != nil {
		return fmt.Errorf("the server under test is missing (make build): %w", err)
	}
	sum := sha256.Sum256(binary)
	c.binary = hex.EncodeToString(sum[:6])
	return c.writeMachine()
}

// bout is the turn of one contestant at one station in one round.
type bout struct {
	*comparison
	who   contestant
	round int
	rows  []row // that have no result yet
}

// turns lets each contestant in turn do the rows of a station.
func (c *comparison) turns(st station, round int) error {
	for _, b := range c.bouts(st, round) {
		if len(b.rows) == 0 {
			continue
		}
		fmt.Fprintf(os.Stderr, "round %d of %d, %s: %s\n", round+1, c.rounds, st.name, b.who.name)
		if err := st.run(b); err != nil {
			for _, r := range b.rows {
				if err := b.fail(r, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bouts says who has to do what at a station.
func (c *comparison) bouts(st station, round int) []*bout {
	zabra, plain, big := contestants(c.reference)
	var all []*bout
	for _, who := range []contestant{zabra, plain, big} {
		b := &bout{comparison: c, who: who, round: round}
		for _, r := range c.rows {
			wanted := r.station == st.name && (who.name != big.name || r.bigHeap) && r.wanted(who, round)
			if wanted && (c.again || !c.store.done(entry{r.id, who.name, round})) {
				b.rows = append(b.rows, r)
			}
		}
		all = append(all, b)
	}
	return all
}

// wanted says whether a row is done in every round and by everybody: pictures and the size of the binary are not.
func (r row) wanted(who contestant, round int) bool {
	switch r.id {
	case rowKillPicture:
		return round == 0
	case rowBinary:
		return round == 0 && who.kind == harness.Zabra
	}
	return true
}

// emit keeps a result.
func (b *bout) emit(r row, rec record) error {
	rec.Row, rec.Contestant, rec.Round, rec.At, rec.Binary = r.id, b.who.name, b.round, time.Now().UTC(), b.binary
	if err := b.store.add(&rec); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "  %-20s %s\n", r.id, rec.summary(r))
	return nil
}

// fail notes that a row has no result, unless it has one. The comparison goes on.
func (b *bout) fail(r row, why error) error {
	if b.store.done(entry{r.id, b.who.name, b.round}) && !b.again {
		return nil
	}
	first, _, _ := strings.Cut(why.Error(), "\n") // a server's log may be behind it, which is in the results
	b.failed = append(b.failed, fmt.Sprintf("%s, %s, round %d: %s", r.id, b.who.name, b.round+1, first))
	fmt.Fprintf(os.Stderr, "  %-20s FAILED: %s\n", r.id, first)
	return b.store.add(&record{Row: r.id, Contestant: b.who.name, Round: b.round, At: time.Now().UTC(), Binary: b.binary, Failed: why.Error()})
}

// summary shows the first figures of a record.
func (r *record) summary(of row) string {
	text := ""
	for _, f := range of.figures {
		if v, known := r.value(f.key); known {
			text += fmt.Sprintf("%s=%.4g  ", f.key, v)
		}
	}
	return text
}

// The estimate's parts beside warm-up and measurement, for Zabra and for the reference server.
var (
	estimateStart   = [2]time.Duration{500 * time.Millisecond, 4 * time.Second}
	estimatePrepare = [2]time.Duration{100 * time.Millisecond, 200 * time.Millisecond}
	estimateConnect = [2]time.Duration{time.Second, 4 * time.Second}
	estimateNodes   = [2]time.Duration{6 * time.Second, 40 * time.Second} // nodesWanted of them, and a restart
	estimateKill    = [2]time.Duration{2 * time.Second, 5 * time.Second}
)

func (c *comparison) pending() (n int) {
	for round := range c.rounds {
		for _, st := range stations {
			for _, b := range c.bouts(st, round) {
				n += len(b.rows)
			}
		}
	}
	return n
}

// estimate is how long the comparison will take on a machine that has nothing else to do, roughly.
func (c *comparison) estimate() (sum time.Duration) {
	for round := range c.rounds {
		for _, st := range stations {
			for _, b := range c.bouts(st, round) {
				seen := map[string]bool{}
				for _, r := range b.rows {
					sum += b.cost(r, !seen[r.load.workload])
					seen[r.load.workload] = true
				}
				if len(b.rows) > 0 && st.name != atBinary {
					sum += estimateStart[b.side()]
				}
			}
		}
	}
	return sum
}

// side is 0 for Zabra and 1 for the reference server.
func (b *bout) side() int {
	if b.who.kind == harness.Zabra {
		return 0
	}
	return 1
}

// cost is the estimate of one row; first says that the servers have not done that kind of work before.
func (b *bout) cost(r row, first bool) time.Duration {
	side := b.side()
	switch r.station {
	case atStandalone, atThree:
		t := b.warmup(first) + b.span.measure
		if r.load.workload == "create" {
			t *= 2 // what was created is deleted again
		}
		return t + estimatePrepare[side]
	case atSessions:
		return b.scale.hold + estimateConnect[side]
	case atKill:
		if r.id == rowKillPicture {
			return pictureWarmup + b.scale.pictureRun + estimateStart[side]
		}
		return time.Duration(b.scale.kills) * estimateKill[side]
	case atNodes:
		if r.id == rowSnapshot {
			return snapshotWarmup + b.scale.snapshotRun
		}
		if r.id == rowMemory {
			return 4*b.scale.settle + estimateNodes[side]*time.Duration(b.scale.nodes)/nodesWanted
		}
	}
	return 0
}

// warmup is the time before a measurement. A JVM needs more for what it has not done before.
func (b *bout) warmup(first bool) time.Duration {
	if first && b.who.kind != harness.Zabra {
		return max(b.span.warmup, b.jvmWarmup)
	}
	return b.span.warmup
}
