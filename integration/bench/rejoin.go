//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"zabra/integration/harness"
)

const (
	rejoinNodes    = 1000
	rejoinSessions = 20
	rejoinLimit    = 10 * time.Minute // the longest wait for a server to be level with the leader again
	rejoinAfter    = 2 * time.Second  // the load goes on for that long once the server is back
)

// rejoin measures what the return of a follower costs those who write meanwhile.
type rejoin struct {
	away     int // transactions that are made while the follower is away
	rate     int // writes a second
	baseline time.Duration
	ratioMax float64
}

func runRejoin(args []string) error {
	var r rejoin
	fs := flag.NewFlagSet("rejoin", flag.ContinueOnError)
	kinds := fs.String("kinds", string(harness.Zabra), "servers to measure, one after the other")
	fs.IntVar(&r.away, "away", 1_000_000, "transactions that the follower misses")
	fs.IntVar(&r.rate, "rate", 500, "writes a second while it comes back")
	fs.DurationVar(&r.baseline, "baseline", 20*time.Second, "length of the run without a rejoin")
	fs.Float64Var(&r.ratioMax, "ratio-max", 0, "fail when the longest stall is more than so many times that without a rejoin; 0 = no limit")
	if err := fs.Parse(args); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d writes/s, %d missed\tfollower\tback after s\twrites\tp50 ms\tp99 ms\tlongest ms\tratio\t\n", r.rate, r.away)
	var failed []string
	for _, kind := range strings.Split(*kinds, ",") {
		rows, err := r.measure(harness.Kind(kind))
		if err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		for _, row := range rows {
			ratio := row.Longest.Seconds() / rows[0].Longest.Seconds()
			fmt.Fprintf(w, "%s\t%s\t%.1f\t%d\t%.2f\t%.2f\t%.1f\t%.2f\t\n", kind, row.what, row.back.Seconds(), row.Writes, ms(row.P50), ms(row.P99), ms(row.Longest), ratio)
			if r.ratioMax > 0 && ratio > r.ratioMax {
				failed = append(failed, fmt.Sprintf("%s, %s: the longest stall is %.2f times that without a rejoin", kind, row.what, ratio))
			}
		}
	}
	w.Flush()
	if len(failed) > 0 {
		return fmt.Errorf("%s", strings.Join(failed, "; "))
	}
	return nil
}

type rejoinRow struct {
	harness.OpenStats
	what string
	back time.Duration
}

func (r *rejoin) measure(kind harness.Kind) (rows []rejoinRow, err error) {
	dir, err := os.MkdirTemp("", "rejoin-"+string(kind)+"-")
	if err != nil {
		return nil, err
	}
	e, err := harness.NewEnsemble(dir, harness.Plan{Kind: kind, Servers: 3, JVM: compareJVM, Settings: compareSettings})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	if err := e.Start(); err != nil {
		return nil, fmt.Errorf("%w (logs in %s)", err, dir)
	}
	for _, what := range []string{"stays", "away", "empty disk"} {
		fmt.Fprintf(os.Stderr, "%s: follower %s\n", kind, what)
		row, err := r.phase(e, what)
		if err != nil {
			return nil, fmt.Errorf("%s: %w (logs in %s)", what, err, dir)
		}
		rows = append(rows, row)
	}
	return rows, os.RemoveAll(dir)
}

// phase runs the load once. The connections are on the servers that stay.
func (r *rejoin) phase(e *harness.Ensemble, what string) (rejoinRow, error) {
	row := rejoinRow{what: what}
	leader, err := e.WaitLeader()
	if err != nil {
		return row, err
	}
	follower, other := e.Members[(leader+1)%3], e.Members[(leader+2)%3]
	if what != "stays" {
		if err := follower.Stop(); err != nil {
			return row, err
		}
	}
	if what == "empty disk" {
		if err := follower.Wipe(); err != nil {
			return row, err
		}
	}
	// The same is written before each run, so that snapshots and the page cache play the same part.
	if err := harness.Fill(e.Members[leader].Addr(), rejoinNodes, r.away); err != nil {
		return row, err
	}
	load, err := harness.StartOpenLoop([]string{e.Members[leader].Addr(), other.Addr()}, rejoinSessions, r.rate)
	if err != nil {
		return row, err
	}
	start := time.Now()
	if what == "stays" {
		time.Sleep(r.baseline) // the length of the run
	} else {
		if err := comeBack(follower, e.Members[leader]); err != nil {
			return row, err
		}
		row.back = time.Since(start)
		time.Sleep(max(rejoinAfter, r.baseline-row.back)) // runs are to be of one length where they can
	}
	row.OpenStats, err = load.Stop()
	return row, err
}

// comeBack starts a follower and waits until it has applied what the leader had when it was first seen to serve.
func comeBack(follower, leader *harness.Member) error {
	if err := follower.Launch(); err != nil {
		return err
	}
	var target int64
	return harness.Wait(rejoinLimit, "the follower is back", func() bool {
		at, err := follower.Zxid()
		if err != nil {
			return false
		}
		if target == 0 {
			if target, err = leader.Zxid(); err != nil {
				target = 0
			}
			return false
		}
		return at >= target
	})
}
