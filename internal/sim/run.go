package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"zabra/zab"
)

// Batch is a run over many seeds.
type Batch struct {
	// First and Last are the seeds, both included.
	First, Last uint64
	// Until ends the run before the last seed; zero is never.
	Until time.Time
	// Plant is the name of a bug that is planted; empty for none. Then the run ends with the first failure, which is what
	// is wanted.
	Plant string
	// TraceLines is how much of the trace of a failure is shown; 0 shows all of it, a negative number neither it nor the
	// reduction to the fewest faults, which takes a while.
	TraceLines int
	// Out gets the report.
	Out io.Writer
}

// Outcome is what came of a Batch.
type Outcome struct {
	Worlds  int
	Last    uint64 // the last seed that was run
	Failure *Failure
	Seed    uint64 // of the failure
	Counts  Counts
	Steps   int
	// Simulated is the time that passed in the worlds.
	Simulated time.Duration
	Took      time.Duration
}

// repeatEvery says how often a seed is run twice, to see that both runs are the same.
const repeatEvery = 16

// Run runs the seeds one after the other, up to the first failure. That is shown reduced to the fewest faults, with its
// trace. An error says that the run itself is no good: a seed that does not repeat, or something that never happened.
func (b *Batch) Run(ctx context.Context) (Outcome, error) {
	core, host, err := parsePlants(b.Plant)
	if err != nil {
		return Outcome{}, err
	}
	began := time.Now()
	out := Outcome{}
	for seed := b.First; seed <= b.Last && ctx.Err() == nil; seed++ {
		if !b.Until.IsZero() && time.Now().After(b.Until) {
			break
		}
		opts := Options{Seed: seed, Core: core, Host: host}
		r := Run(opts)
		out.Worlds++
		out.Last = seed
		out.Counts.add(&r.Counts)
		out.Steps += r.Steps
		out.Simulated += time.Duration(r.Now) * time.Microsecond
		if seed%repeatEvery == 0 || r.Failure != nil {
			if again := Run(opts); again.Digest != r.Digest {
				return out, fmt.Errorf("seed %d does not repeat: the traces %x and %x, %v, %v", seed, r.Digest, again.Digest, r.Failure, again.Failure)
			}
		}
		if r.Failure != nil {
			out.Failure, out.Seed = r.Failure, seed
			break
		}
	}
	out.Took = time.Since(began)
	b.report(&out)
	if out.Failure != nil {
		b.showFailure(&out, core, host)
	}
	if b.Plant == "" && out.Failure == nil {
		if missing := out.Counts.missing(); len(missing) > 0 {
			return out, fmt.Errorf("in %d worlds these have never happened: %s", out.Worlds, strings.Join(missing, ", "))
		}
	}
	return out, nil
}

func (b *Batch) report(out *Outcome) {
	seconds := max(out.Took.Seconds(), 1e-9)
	fmt.Fprintf(b.Out, "seeds %d to %d: %d worlds in %v, %.1f worlds and %.0f steps per second, %.2f hours simulated\n", b.First, out.Last, out.Worlds,
		out.Took.Round(time.Millisecond), float64(out.Worlds)/seconds, float64(out.Steps)/seconds, out.Simulated.Hours())
	out.Counts.print(b.Out)
}

// showFailure reduces the failure and writes down how it comes about.
func (b *Batch) showFailure(out *Outcome, core zab.Plant, host HostPlant) {
	fmt.Fprintf(b.Out, "\nseed %d FAILS: %v\n", out.Seed, out.Failure)
	if b.TraceLines < 0 {
		return
	}
	opts := Options{Seed: out.Seed, Core: core, Host: host}
	opts.Leave = reduce(opts, out.Failure.Invariant)
	opts.Keep = true
	r := Run(opts)
	fmt.Fprintf(b.Out, "\nwith the fewest faults: %v\n", r.Failure)
	for i := range r.Faults {
		if !opts.Leave[i] {
			fmt.Fprintf(b.Out, "  fault %d: %v\n", i, &r.Faults[i])
		}
	}
	fmt.Fprintln(b.Out)
	r.trace.render(b.Out, b.TraceLines)
	fmt.Fprintf(b.Out, "\nseed %d: %v\n", out.Seed, r.Failure)
}

// reduce leaves out one fault after the other, as long as the same invariant breaks.
func reduce(opts Options, invariant string) map[int]bool {
	leave := map[int]bool{}
	faults := len(Run(opts).Faults)
	for again := true; again; {
		again = false
		for i := range faults {
			if leave[i] {
				continue
			}
			leave[i] = true
			opts.Leave = leave
			if f := Run(opts).Failure; f != nil && f.Invariant == invariant {
				again = true
				continue
			}
			delete(leave, i)
		}
	}
	return leave
}
