package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"zabra/internal/sim"
)

// simHeapBytes is how much garbage may gather: worlds are short-lived, and small.
const simHeapBytes = 192 << 20

func newSim() *cobra.Command {
	var (
		seeds, plant, profile string
		bound                 time.Duration
		lines                 int
	)
	cmd := &cobra.Command{
		Use:   "sim [--seeds A-B] [--time D] [--plant NAME]",
		Short: "Simulate ensembles with faults and look for broken promises",
		Long: `Runs whole ensembles, their clients, network, disks and clocks in simulation, one world per seed: servers crash and lose
what they have not synced, connections break, networks are cut, disks and processes stand still. After each step the
invariants of the protocol are checked, and after the faults that everything works again. A seed always gives the same
world. The first failure is shown with its trace, reduced to the fewest faults, and the exit code is 1.

With --plant a known bug is planted, and the run succeeds when it is found. "--plant list" names them.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if plant == "list" {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(sim.PlantNames(), "\n"))
				return nil
			}
			batch := sim.Batch{Plant: plant, TraceLines: lines, Out: cmd.OutOrStdout()}
			var err error
			if batch.First, batch.Last, err = parseSeeds(seeds); err != nil {
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			if bound > 0 {
				batch.Until = time.Now().Add(bound)
			}
			if plant != "" {
				if _, _, err := sim.ParsePlant(plant); err != nil {
					return &exit{code: exitConfig, stderr: err.Error()}
				}
			}
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(simHeapBytes))
			defer debug.SetGCPercent(debug.SetGCPercent(-1))
			stop, err := startProfile(profile)
			if err != nil {
				return &exit{code: exitFailure, stderr: err.Error()}
			}
			defer stop()
			return runSim(cmd.Context(), &batch)
		},
	}
	cmd.Flags().StringVar(&seeds, "seeds", "1-1000", "the seeds to run, both included, or a single one")
	cmd.Flags().DurationVar(&bound, "time", 0, "stop after this time")
	cmd.Flags().StringVar(&plant, "plant", "", "plant this bug")
	cmd.Flags().IntVar(&lines, "trace", 400, "show this many lines of a failure's trace, 0 for all")
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile to this file")
	return cmd
}

// runSim runs the batch and turns what comes of it into an exit code.
func runSim(ctx context.Context, batch *sim.Batch) error {
	if ctx == nil {
		ctx = context.Background()
	}
	out, err := batch.Run(ctx)
	switch {
	case err != nil:
		return &exit{code: exitFailure, stderr: err.Error()}
	case batch.Plant == "" && out.Failure != nil:
		return &exit{code: exitFailure, stderr: fmt.Sprintf("seed %d: %v", out.Seed, out.Failure)}
	case batch.Plant != "" && out.Failure == nil:
		return &exit{code: exitFailure, stderr: fmt.Sprintf("the bug %s is not found in %d worlds", batch.Plant, out.Worlds)}
	}
	return nil
}

// parseSeeds reads "7" or "1-1000".
func parseSeeds(text string) (first, last uint64, err error) {
	a, b, isRange := strings.Cut(text, "-")
	if !isRange {
		b = a
	}
	first, err = strconv.ParseUint(a, 10, 64)
	if err == nil {
		last, err = strconv.ParseUint(b, 10, 64)
	}
	if err != nil || first > last {
		return 0, 0, fmt.Errorf("--seeds %q: it must be a number or two with a hyphen between them, the lower one first", text)
	}
	return first, last, nil
}

// startProfile measures where the time goes, if a file is named for it.
func startProfile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
