//go:build linux

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"zabra/integration/harness"
)

const (
	failoverLimit     = time.Minute            // the longest wait for a new leader
	failoverCallLimit = 10 * time.Second       // the longest wait for one answer; a broken connection is noticed at once
	failoverSettle    = 500 * time.Millisecond // at least between a round and the next; up to twice that
	failoverSession   = 40000                  // ms: no session of a probe may expire
)

// failover measures how long clients cannot write when the leader of three servers goes.
type failover struct {
	rounds  int
	servers int
	tickMs  int
	load    int      // sessions on each server that write beside the probes
	ways    []string // in which the leader ends
	parent  string   // folder for the servers' directories; "" = the system's

	killMedianMax, killWorstMax, termMedianMax time.Duration
}

func runFailover(args []string) error {
	f := failover{ways: []string{byKill, byTerm}}
	fs := flag.NewFlagSet("failover", flag.ContinueOnError)
	kinds := fs.String("kinds", string(harness.Zabra)+","+string(harness.Apache395), "servers to measure, one after the other")
	fs.IntVar(&f.rounds, "rounds", 30, "how often the leader is killed, and how often it is stopped with SIGTERM")
	fs.IntVar(&f.servers, "servers", 3, "servers of the ensemble")
	fs.IntVar(&f.tickMs, "tick", 2000, "tickTime in ms")
	fs.IntVar(&f.load, "load", 3, "sessions on each server that write beside the probes")
	fs.DurationVar(&f.killMedianMax, "kill-median", 0, "Zabra fails when the median after kill -9 is above that; 0 = no limit")
	fs.DurationVar(&f.killWorstMax, "kill-worst", 0, "the same for the worst")
	fs.DurationVar(&f.termMedianMax, "term-median", 0, "the same for the median after SIGTERM")
	if err := fs.Parse(args); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ms to the next write\tleader ends by\tclient of\tn\tmedian\tp90\tworst\tno write for: median\tworst\t")
	var failed []string
	for _, kind := range strings.Split(*kinds, ",") {
		outcomes, err := f.measure(harness.Kind(kind))
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		for _, o := range outcomes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", kind, o.how, o.who, o.row())
			if kind == string(harness.Zabra) {
				failed = append(failed, f.judge(o)...)
			}
		}
	}
	w.Flush()
	if len(failed) > 0 {
		return fmt.Errorf("over the limit: %s", strings.Join(failed, "; "))
	}
	return nil
}

// outcome holds the times of one way to end and one class of clients, in ms.
type outcome struct {
	how, who    string
	next, quiet []float64
}

func (o *outcome) row() string {
	return fmt.Sprintf("%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f", len(o.next), median(o.next), quantile(o.next, 0.9), slices.Max(o.next),
		median(o.quiet), slices.Max(o.quiet))
}

const (
	byKill = "kill -9"
	byTerm = "SIGTERM"
)

// judge compares with the limits of the command line.
func (f *failover) judge(o *outcome) (failed []string) {
	check := func(what string, got float64, limit time.Duration) {
		if ms := float64(limit.Milliseconds()); limit > 0 && got > ms {
			failed = append(failed, fmt.Sprintf("%s, client of the %s: %s %.0f ms > %.0f ms", o.how, o.who, what, got, ms))
		}
	}
	if o.how == byTerm {
		check("median", median(o.next), f.termMedianMax)
		return failed
	}
	check("median", median(o.next), f.killMedianMax)
	check("worst", slices.Max(o.next), f.killWorstMax)
	return failed
}

// measure runs all rounds of one kind of server.
func (f *failover) measure(kind harness.Kind) ([]*outcome, error) {
	dir, err := os.MkdirTemp(f.parent, "failover-"+string(kind)+"-")
	if err != nil {
		return nil, err
	}
	e, err := harness.NewEnsemble(dir, harness.Plan{Kind: kind, Servers: f.servers, JVM: compareJVM,
		Settings: map[string]string{"tickTime": strconv.Itoa(f.tickMs), "syncLimit": "5", "initLimit": "10", "preAllocSize": "65536"}})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if err := e.Start(); err != nil {
		return nil, fmt.Errorf("%w (logs in %s)", err, dir)
	}
	p, err := startProbes(e, f.load)
	if err != nil {
		return nil, err
	}
	defer p.stopAll()
	var outcomes []*outcome
	for _, how := range f.ways {
		survivor, dead := &outcome{how: how, who: "survivors"}, &outcome{how: how, who: "one that went"}
		for round := range f.rounds {
			if err := f.round(e, p, how, survivor, dead); err != nil {
				return nil, fmt.Errorf("%s, round %d: %w (logs in %s)", how, round, err, dir)
			}
		}
		outcomes = append(outcomes, survivor, dead)
	}
	if n := p.expired(); n > 0 {
		return nil, fmt.Errorf("%d sessions expired", n)
	}
	return outcomes, os.RemoveAll(dir)
}

// round ends the leader once and waits for every probe's next write.
func (f *failover) round(e *harness.Ensemble, p *probes, how string, survivor, dead *outcome) error {
	if err := p.goHome(); err != nil {
		return err
	}
	// The rounds are not to fall into step with the servers' ticks.
	time.Sleep(failoverSettle + rand.N(failoverSettle))
	leader, err := e.WaitLeader()
	if err != nil {
		return err
	}
	start := p.beginRound()
	if how == byKill {
		e.Members[leader].Kill()
	} else if err := e.Members[leader].Terminate(); err != nil {
		return err
	}
	if err := p.awaitNewEpoch(); err != nil {
		return err
	}
	for home, probe := range p.probes {
		o := survivor
		if home == leader {
			o = dead
		}
		next, quiet := probe.result(start)
		o.next, o.quiet = append(o.next, next), append(o.quiet, quiet)
	}
	fmt.Fprintf(os.Stderr, "%s %s: survivors %.0f ms, the others %.0f ms\n", e.Members[leader].Kind, how,
		survivor.next[len(survivor.next)-1], dead.next[len(dead.next)-1])
	if err := e.Members[leader].Stop(); err != nil {
		return err
	}
	if err := e.Members[leader].Launch(); err != nil {
		return err
	}
	return e.WaitServing()
}

// probe writes one node again and again, from the server that is its home whenever it can.
type probe struct {
	client *harness.Client
	path   string
	home   int

	mu       sync.Mutex
	goHome   bool
	epoch    int64               // of the last answer
	lastAck  time.Time           // of the last answer
	firstAck map[int64]time.Time // of each epoch
	quiet    time.Duration       // the longest time between answers since quietAt
	quietAt  time.Time           // the begin of the round
	err      error               // what ended the probe
}

// probes are all writers: one probe on each server, and the load.
type probes struct {
	probes, all []*probe
	stop        atomic.Bool
	wg          sync.WaitGroup
	epoch       int64 // when the round began
}

func startProbes(e *harness.Ensemble, load int) (*probes, error) {
	p := &probes{}
	for i := range e.Members {
		for n := range load + 1 {
			one := &probe{home: i, path: fmt.Sprintf("/probe-%d-%d", i, n), firstAck: map[int64]time.Time{}, goHome: true,
				client: &harness.Client{Addrs: e.Addrs(), TimeoutMs: failoverSession, At: i}}
			p.all = append(p.all, one)
			if n == 0 {
				p.probes = append(p.probes, one)
			}
		}
	}
	for _, one := range p.all {
		if err := one.prepare(); err != nil {
			return nil, err
		}
		p.wg.Go(func() { one.run(&p.stop) })
	}
	return p, nil
}

func (p *probe) prepare() error {
	if err := p.client.Connect(failoverLimit); err != nil {
		return err
	}
	xid := p.client.NextXid()
	reply, err := p.client.Do(xid, harness.AppendCreate(nil, xid, p.path, nil, 0), failoverCallLimit)
	if err == nil && reply.Code != harness.CodeOK {
		err = fmt.Errorf("create %s: code %d", p.path, reply.Code)
	}
	return err
}

func (p *probe) run(stop *atomic.Bool) {
	defer p.client.Drop()
	data := []byte(strings.Repeat("x", 100))
	for !stop.Load() {
		p.moveHome()
		if err := p.client.Connect(failoverLimit); err != nil {
			p.fail(err)
			return
		}
		xid := p.client.NextXid()
		reply, err := p.client.Do(xid, harness.AppendSet(nil, xid, p.path, data), failoverCallLimit)
		if err != nil {
			continue
		}
		if reply.Code != harness.CodeOK {
			p.fail(fmt.Errorf("set %s: code %d", p.path, reply.Code))
			return
		}
		p.acked(time.Now(), reply.Zxid>>32)
	}
}

func (p *probe) fail(err error) {
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
}

func (p *probe) moveHome() {
	p.mu.Lock()
	wanted := p.goHome
	p.mu.Unlock()
	if wanted && p.client.At != p.home {
		_ = p.client.MoveTo(p.home, failoverCallLimit) // goHome looks whether it came about
	}
	if wanted && p.client.Connected() && p.client.At == p.home {
		p.mu.Lock()
		p.goHome = false
		p.mu.Unlock()
	}
}

func (p *probe) acked(now time.Time, epoch int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := p.lastAck
	if since.Before(p.quietAt) {
		since = p.quietAt
	}
	if !p.quietAt.IsZero() {
		p.quiet = max(p.quiet, now.Sub(since))
	}
	p.lastAck, p.epoch = now, epoch
	if _, known := p.firstAck[epoch]; !known {
		p.firstAck[epoch] = now
	}
}

// result returns the ms from start to the first write of the newest epoch, and the longest time without an answer.
func (p *probe) result(start time.Time) (next, quiet float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ms(p.firstAck[p.epoch].Sub(start)), ms(p.quiet)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// goHome sends every probe to its own server and waits until all have written there.
func (p *probes) goHome() error {
	for _, one := range p.all {
		one.mu.Lock()
		one.goHome = true
		one.mu.Unlock()
	}
	return p.await("the clients are on their own servers", func(one *probe) bool { return !one.goHome })
}

// beginRound notes the epoch of before and returns the time.
func (p *probes) beginRound() time.Time {
	now := time.Now()
	for _, one := range p.all {
		one.mu.Lock()
		p.epoch = max(p.epoch, one.epoch)
		one.quietAt, one.quiet = now, 0
		one.mu.Unlock()
	}
	return now
}

func (p *probes) awaitNewEpoch() error {
	return p.await("every client has written under a new leader", func(one *probe) bool { return one.epoch > p.epoch })
}

// await waits until the condition holds for all probes; it is asked under their locks.
func (p *probes) await(what string, condition func(*probe) bool) error {
	var failed error
	err := harness.Wait(failoverLimit, what, func() bool {
		for _, one := range p.all {
			one.mu.Lock()
			holds := condition(one)
			failed = one.err
			one.mu.Unlock()
			if failed != nil {
				return true
			}
			if !holds {
				return false
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}

func (p *probes) expired() (n int) {
	p.stopAll()
	for _, one := range p.all {
		n += one.client.Expired
	}
	return n
}

func (p *probes) stopAll() {
	p.stop.Store(true)
	p.wg.Wait()
}
