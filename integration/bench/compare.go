//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"text/tabwriter"
	"time"

	"zabra/integration/harness"
)

// figures are the medians and rounds of one server.
type figures struct {
	getPerSec, setPerSec []float64
	getP99, setP99       []float64 // ms
	getCPU, setCPU       []float64 // microseconds of the server's CPU per operation
	rss                  []float64 // MiB after the loads
	idleKiB              []float64 // per connection
	startMs              []float64
}

// comparison runs the same measurements on two servers in turn.
type comparison struct {
	load
	idleSessions int
	rounds       int
	servers      int     // 1: a standalone server
	setRatioMin  float64 // the least ratio of sets per second
}

func runCompare(args []string) error {
	var c comparison
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	a := fs.String("a", string(harness.Zabra), "the server that is measured")
	b := fs.String("b", string(harness.Apache380), "the server it is compared with")
	fs.IntVar(&c.rounds, "rounds", 3, "rounds; the medians are shown")
	fs.IntVar(&c.idleSessions, "idle", 5000, "idle sessions of a standalone server")
	fs.IntVar(&c.servers, "servers", 1, "servers; more than one are an ensemble, over which the sessions are spread")
	fs.Float64Var(&c.setRatioMin, "set-ratio", 0, "fail when the first server does fewer sets per second than so many times the second's")
	c.flags(fs)
	if err := fs.Parse(args); err != nil {
		return err
	}
	kinds := []harness.Kind{harness.Kind(*a), harness.Kind(*b)}
	all := map[harness.Kind]*figures{kinds[0]: {}, kinds[1]: {}}
	for round := range c.rounds {
		for _, kind := range kinds {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, c.rounds, kind)
			if err := c.measure(kind, all[kind]); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	fa, fb := all[kinds[0]], all[kinds[1]]
	c.print(kinds[0], kinds[1], fa, fb)
	if ratio := median(fa.setPerSec) / median(fb.setPerSec); ratio < c.setRatioMin {
		return fmt.Errorf("%.2f times the sets per second, at least %.2f are wanted", ratio, c.setRatioMin)
	}
	return nil
}

var (
	compareSettings = map[string]string{"tickTime": "2000", "maxSessionTimeout": "120000", "preAllocSize": "65536"}
	compareJVM      = []string{"-Xmx1000m"} // what zkServer.sh gives it
)

// loads measures gets, then sets.
func (c *comparison) loads(addrs []string, pids []int, f *figures) error {
	for _, op := range []string{"get", "set"} {
		l := c.load
		l.addrs, l.op, l.pids = addrs, op, pids
		res, err := l.run()
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "  "+res.String())
		f.take(op, res)
	}
	return nil
}

// measureEnsemble is measure for several servers; start-up and idle connections are left out.
func (c *comparison) measureEnsemble(kind harness.Kind, dir string, f *figures) error {
	e, err := harness.NewEnsemble(dir, harness.Plan{Kind: kind, Servers: c.servers, Settings: compareSettings, JVM: compareJVM})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Start(); err != nil {
		return err
	}
	var pids []int
	for _, m := range e.Members {
		pids = append(pids, m.PID())
	}
	if err := c.loads(e.Addrs(), pids, f); err != nil {
		return err
	}
	return e.Stop()
}

// measure starts one server in a fresh folder and takes all figures of a round.
func (c *comparison) measure(kind harness.Kind, f *figures) error {
	dir, err := os.MkdirTemp("", "bench-"+string(kind)+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if c.servers > 1 {
		return c.measureEnsemble(kind, dir, f)
	}
	server, err := harness.New(kind, dir, compareSettings)
	if err != nil {
		return err
	}
	server.JVM = compareJVM
	defer server.Kill()
	if err := server.Start(); err != nil {
		return err
	}
	if err := c.loads([]string{server.Addr()}, []int{server.PID()}, f); err != nil {
		return err
	}
	// What a restart costs on the data that the load has left.
	if err := server.Stop(); err != nil {
		return err
	}
	start := time.Now()
	if err := server.Start(); err != nil {
		return err
	}
	f.startMs = append(f.startMs, float64(time.Since(start).Microseconds())/1000)
	perConn, err := idle(server.Addr(), server.PID(), c.idleSessions)
	if err != nil {
		return err
	}
	f.idleKiB = append(f.idleKiB, float64(perConn)/1024)
	if logs, err := filepath.Glob(filepath.Join(server.DataDir(), "version-2", "log.*")); err != nil || len(logs) == 0 {
		return fmt.Errorf("no log in %s: nothing was written (%w)", server.DataDir(), err)
	}
	return server.Stop()
}

func (f *figures) take(op string, r result) {
	perOp := float64(r.usage.CPU.Microseconds()) / float64(r.ops)
	p99 := float64(r.p99.Microseconds()) / 1000
	if op == "get" {
		f.getPerSec, f.getP99, f.getCPU = append(f.getPerSec, r.opsPerSec), append(f.getP99, p99), append(f.getCPU, perOp)
		return
	}
	f.setPerSec, f.setP99, f.setCPU = append(f.setPerSec, r.opsPerSec), append(f.setP99, p99), append(f.setCPU, perOp)
	f.rss = append(f.rss, float64(r.usage.RSSBytes)/(1<<20))
}

func (c *comparison) print(a, b harness.Kind, fa, fb *figures) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "median of %d\t%s\t%s\tratio\t\n", c.rounds, a, b)
	row := func(name, format string, va, vb []float64) {
		ma, mb := median(va), median(vb)
		fmt.Fprintf(w, "%s\t"+format+"\t"+format+"\t%.2f\t\n", name, ma, mb, ma/mb)
	}
	shape := fmt.Sprintf(" %dx%d", c.sessions, c.outstanding)
	row("get/s"+shape, "%.0f", fa.getPerSec, fb.getPerSec)
	row("get p99 ms", "%.2f", fa.getP99, fb.getP99)
	row("server CPU us/get", "%.2f", fa.getCPU, fb.getCPU)
	row("set/s"+shape, "%.0f", fa.setPerSec, fb.setPerSec)
	row("set p99 ms", "%.2f", fa.setP99, fb.setP99)
	row("server CPU us/set", "%.2f", fa.setCPU, fb.setCPU)
	row("RSS MiB after load", "%.1f", fa.rss, fb.rss)
	if c.servers == 1 {
		row(fmt.Sprintf("KiB/idle connection of %d", c.idleSessions), "%.2f", fa.idleKiB, fb.idleKiB)
		row("start-up ms", "%.0f", fa.startMs, fb.startMs)
	}
	w.Flush()
}

func median(v []float64) float64 {
	s := append([]float64(nil), v...)
	sort.Float64s(s)
	return s[len(s)/2]
}
