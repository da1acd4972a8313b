//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"zabra/integration/harness"
)

const (
	memorySamplePeriod = 2 * time.Second
	memoryParts        = 5  // the run is told in fifths; the first is for warming up
	memorySlackMiB     = 16 // growth below that is none
)

// memory measures whether servers keep their size while one of them is away.
type memory struct {
	kind      string
	duration  time.Duration
	rate      int
	suspended bool
	growthMax float64
}

func runMemory(args []string) error {
	var m memory
	fs := flag.NewFlagSet("memory", flag.ContinueOnError)
	fs.StringVar(&m.kind, "kind", string(harness.Zabra), "the server")
	fs.DurationVar(&m.duration, "duration", 10*time.Minute, "length of the run")
	fs.IntVar(&m.rate, "rate", 2000, "writes a second")
	fs.BoolVar(&m.suspended, "suspended", false, "the follower is suspended with SIGSTOP instead of stopped: its connections stay open")
	fs.Float64Var(&m.growthMax, "growth-max", 1.25, "fail when the last fifth of the run has more than so many times the memory of the second; 0 = no limit")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "memory-"+m.kind+"-")
	if err != nil {
		return err
	}
	e, err := harness.NewEnsemble(dir, harness.Plan{Kind: harness.Kind(m.kind), Servers: 3, JVM: compareJVM, Settings: map[string]string{
		"tickTime": "2000", "maxSessionTimeout": "120000", "preAllocSize": "65536", "autopurge.snapRetainCount": "3", "autopurge.purgeInterval": "1"}})
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Start(); err != nil {
		return fmt.Errorf("%w (logs in %s)", err, dir)
	}
	if err := m.run(e); err != nil {
		return fmt.Errorf("%w (logs in %s)", err, dir)
	}
	return os.RemoveAll(dir)
}

func (m *memory) run(e *harness.Ensemble) error {
	leader, err := e.WaitLeader()
	if err != nil {
		return err
	}
	absent, other := e.Members[(leader+1)%3], e.Members[(leader+2)%3]
	if err := harness.Fill(e.Members[leader].Addr(), rejoinNodes, 0); err != nil {
		return err
	}
	if m.suspended {
		err = absent.Suspend()
	} else {
		err = absent.Stop()
	}
	if err != nil {
		return err
	}
	load, err := harness.StartOpenLoop([]string{e.Members[leader].Addr(), other.Addr()}, rejoinSessions, m.rate)
	if err != nil {
		return err
	}
	samples := [2][]float64{}
	start := time.Now()
	for time.Since(start) < m.duration {
		time.Sleep(memorySamplePeriod) // the period of the samples
		for i, s := range []*harness.Member{e.Members[leader], other} {
			usage, err := harness.ProcessUsage(s.PID())
			if err != nil {
				return err
			}
			samples[i] = append(samples[i], float64(usage.RSSBytes)/(1<<20))
		}
	}
	stats, err := load.Stop()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d writes in %v, p99 %v, longest %v; RSS in MiB, the highest of each fifth:\n", m.kind, stats.Writes, m.duration, stats.P99, stats.Longest)
	return m.judge(samples)
}

func (m *memory) judge(samples [2][]float64) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	var failed error
	for i, name := range []string{"leader", "follower"} {
		parts := fifths(samples[i])
		fmt.Fprintf(w, "%s\t", name)
		for _, p := range parts {
			fmt.Fprintf(w, "%.1f\t", p)
		}
		growth := parts[memoryParts-1] / parts[1]
		fmt.Fprintf(w, "last/second %.2f\t\n", growth)
		if m.growthMax > 0 && growth > m.growthMax && parts[memoryParts-1]-parts[1] > memorySlackMiB {
			failed = fmt.Errorf("the %s has grown %.2f times, at most %.2f is wanted", name, growth, m.growthMax)
		}
	}
	return failed
}

// fifths returns the highest sample of each part of a run.
func fifths(samples []float64) []float64 {
	parts := make([]float64, memoryParts)
	for i := range parts {
		from, to := i*len(samples)/memoryParts, (i+1)*len(samples)/memoryParts
		parts[i] = slices.Max(samples[from:max(to, from+1)])
	}
	return parts
}
