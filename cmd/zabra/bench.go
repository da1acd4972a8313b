package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"zabra/internal/bench"
)

const benchLong = `Loads any server that speaks the ZooKeeper protocol, measures how it answers, and removes what it has created. The result
goes to stdout, a line of progress to stderr if that is a terminal. Ctrl-C ends the measurement early.

Everything happens below --root, and nothing is changed there that is not from zabra bench: a run is refused if the node
exists before it, unless it is empty or holds only what earlier runs have left. Those are fill, runs with --keep, and runs
that were killed or lost their servers; zabra cli deleteall removes it.

Workloads:
  get, exists  read one of --nodes nodes
  children     list a folder of --children names
  set          write --data-bytes to one of --nodes nodes
  mixed        get and set, --reads percent of them get
  multi        transactions of --ops sets
  create       create nodes, each session below a parent of its own
  lock         --sessions clients queue for one lock: an operation is one hand-over
  watch        --sessions clients watch --watches nodes, one more writes: an operation is a write with all its events
  connect      --sessions clients connect, open a session and close it, again and again
  idle         --sessions sessions are held open for --hold; an operation is an answered ping
  fill         create --nodes nodes, a thousand to a folder, and leave them there

Each of --sessions connections keeps --outstanding requests on their way: a closed loop, whose clients wait for a slow
server. With --rate it is an open loop: requests are due at fixed times and latency counts from then, so that a stall shows
in every request it delays; a lost connection counts as errors, and its session goes on with the next server.

A server admits a limited number of connections from one address, 60 unless maxClientCnxns says otherwise: raise it for more
sessions. The exit code is 1 if the run fails, also when a server does not answer for 30 seconds, and if nodes could not be
removed again; the result then tells what was measured until then.`

const benchExample = `  zabra bench get --sessions 32
  zabra bench set --servers 10.0.0.1:2181,10.0.0.2:2181,10.0.0.3:2181 --sessions 256 --data-bytes 1024
  zabra bench mixed --reads 90 --duration 30s --format markdown
  zabra bench set --rate 5000 --duration 60s --timeline 1s --format json
  zabra bench create --count 100000 --warmup 0s --pid $(pgrep -d, -x zabra)`

func newBench() *cobra.Command {
	c := bench.Default("")
	var format string
	var quiet bool
	cmd := &cobra.Command{
		Use:       "bench WORKLOAD",
		Short:     "Load a server and measure how it answers",
		Long:      benchLong,
		Example:   benchExample,
		ValidArgs: bench.Workloads,
		Args:      cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.Workload = args[0]
			if c.Count > 0 && !cmd.Flags().Changed("duration") {
				c.Duration = 0
			}
			err := c.Check()
			if !slices.Contains(bench.Formats, format) {
				err = errors.Join(err, fmt.Errorf("--format %q: choose one of %s", format, strings.Join(bench.Formats, ", ")))
			}
			if err != nil {
				return &exit{code: exitConfig, stderr: err.Error()}
			}
			if progress, ok := cmd.ErrOrStderr().(*os.File); ok && !quiet && isTerminal(progress) {
				c.Progress = progressOn(progress)
				defer fmt.Fprint(progress, clearLine)
			}
			return runBench(cmd.Context(), c, cmd.OutOrStdout(), format)
		},
	}
	benchFlags(cmd, &c)
	cmd.Flags().StringVar(&format, "format", bench.Text, "form of the result: text, json (one line) or markdown (a table)")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "show no progress")
	return cmd
}

func benchFlags(cmd *cobra.Command, c *bench.Config) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringSliceVar(&c.Servers, "servers", c.Servers, "servers `HOST:PORT,...`; sessions are dealt out to them in turn")
	f.IntVar(&c.Sessions, "sessions", c.Sessions, "sessions, each on a connection of its own")
	f.IntVar(&c.Outstanding, "outstanding", c.Outstanding, "requests that each session has on their way")
	f.DurationVar(&c.Duration, "duration", c.Duration, "length of the measurement; without bound if there is a --count")
	f.DurationVar(&c.Warmup, "warmup", c.Warmup, "load before the measurement")
	f.Int64Var(&c.Count, "count", c.Count, "end after so many operations; 0 is no bound")
	f.Float64Var(&c.Rate, "rate", c.Rate, "requests per second of an open loop; 0 is a closed loop")
	f.IntVar(&c.DataBytes, "data-bytes", c.DataBytes, "size of a node's data")
	f.IntVar(&c.Nodes, "nodes", c.Nodes, "nodes that the load is spread over")
	f.IntVar(&c.ReadPercent, "reads", c.ReadPercent, "mixed: percentage of gets")
	f.IntVar(&c.Ops, "ops", c.Ops, "multi: sets in a transaction")
	f.IntVar(&c.ChildrenPerNode, "children", c.ChildrenPerNode, "children: names in an answer")
	f.IntVar(&c.Watches, "watches", c.Watches, "watch: nodes that each session watches")
	f.DurationVar(&c.Hold, "hold", c.Hold, "idle: how long the sessions are held")
	f.StringVar(&c.Root, "root", c.Root, "node below which everything happens; it must not exist, or be empty, or be from earlier runs")
	f.BoolVar(&c.Keep, "keep", c.Keep, "leave the nodes that were created")
	f.DurationVar(&c.Timeline, "timeline", c.Timeline, "interval of the timeline in the JSON result; 0 is none")
	f.IntSliceVar(&c.PIDs, "pid", nil, "process ids `PID,...` of servers on this machine, to tell what they use")
	f.Uint64Var(&c.Seed, "seed", c.Seed, "seed of the choice of nodes")
	f.DurationVar(&c.SessionTimeout, "session-timeout", c.SessionTimeout, "session timeout to ask for")
	f.IntVar(&c.Threads, "threads", c.Threads, "threads that drive the sessions")
}

// runBench runs the load and prints what came of it, also if it failed on the way.
func runBench(ctx context.Context, c bench.Config, out io.Writer, format string) error {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, release := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer release()
	stop := context.AfterFunc(ctx, release) // the second signal ends the process
	defer stop()
	res, err := bench.Run(ctx, c)
	if res != nil && (err == nil || res.BeganUnixMs != 0) {
		if err := res.Write(out, format); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, bench.ErrInterrupted):
		return nil
	case err != nil:
		return &exit{code: exitFailure, stderr: "zabra bench: " + err.Error()}
	}
	return nil
}

// clearLine goes back to the start of the line and empties it.
const clearLine = "\r\x1b[K"

// progressOn returns what shows the progress in one line of a terminal.
func progressOn(w io.Writer) func(bench.Progress) {
	return func(p bench.Progress) {
		what := fmt.Sprintf("%d operations, %.0f per second, %d errors", p.Operations, p.PerSecond, p.Errors)
		if p.Seconds < 0 {
			what = "warming up"
		}
		fmt.Fprintf(w, "%s%8s  %s", clearLine, (time.Duration(p.Seconds * float64(time.Second))).Round(time.Second), what)
	}
}
