package bench

import (
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The workloads.
const (
	Get      = "get"
	Set      = "set"
	Create   = "create"
	Exists   = "exists"
	Children = "children"
	Mixed    = "mixed"
	Multi    = "multi"
	Lock     = "lock"
	Watch    = "watch"
	Connect  = "connect"
	Idle     = "idle"
	Fill     = "fill"
)

// Workloads are the names of all workloads.
var Workloads = []string{Get, Set, Create, Exists, Children, Mixed, Multi, Lock, Watch, Connect, Idle, Fill}

// Config says what to run.
type Config struct {
	Workload string
	// Servers are addresses host:port. Sessions are dealt out to them in turn.
	Servers []string
	// Sessions is the number of sessions, each on a connection of its own, Outstanding how many requests each may have
	// sent without an answer.
	Sessions, Outstanding int
	// Duration is the length of the measurement, 0 for none. It begins behind the Warmup.
	Duration, Warmup time.Duration
	// Count ends the measurement after so many operations; 0 is without bound.
	Count int64
	// Rate is the number of requests per second of an open loop; 0 is a closed loop.
	Rate float64
	// DataBytes is the size of a node's data, Nodes the number of nodes.
	DataBytes, Nodes int
	// ReadPercent is the share of gets in Mixed.
	ReadPercent int
	// Ops is the number of operations in a transaction of Multi.
	Ops int
	// Watches is the number of nodes that each session of Watch watches.
	Watches int
	// ChildrenPerNode is how many names an answer of Children has.
	ChildrenPerNode int
	// Root is the node below which everything happens. Before the run it must not exist, or be empty, or hold nothing but
	// what earlier runs have left: otherwise the run is refused and changes nothing.
	Root string
	// Timeline is the length of an interval of Result.Timeline; 0 is no timeline.
	Timeline time.Duration
	// PIDs are the processes whose usage is measured.
	PIDs []int
	// Seed is that of the generator that chooses nodes.
	Seed uint64
	// SessionTimeout is what the sessions ask for.
	SessionTimeout time.Duration
	// Hold is how long Idle holds its sessions.
	Hold time.Duration
	// Threads drive the sessions.
	Threads int
	// Keep leaves the nodes that were created.
	Keep bool
	// SilenceMax ends the run when nothing is answered for so long; 0 stands for 30 seconds.
	SilenceMax time.Duration
	// Progress, if there is one, is called every second of the measurement.
	Progress func(Progress)

	// portable chooses the poller of other systems, progressPeriod another one than a second. They are for tests.
	portable       bool
	progressPeriod time.Duration
}

// Progress is what is known of a run that goes on.
type Progress struct {
	Seconds            float64 // since the measurement began; below 0 during the warm-up
	Operations, Errors int64   // of the measurement so far
	PerSecond          float64 // operations, since the last call
}

// Default returns the configuration of a workload that nothing was asked of.
func Default(workload string) Config {
	return Config{
		Workload: workload, Servers: []string{"127.0.0.1:2181"}, Sessions: 64, Outstanding: 16, Duration: 5 * time.Second,
		Warmup: 2 * time.Second, DataBytes: 100, Nodes: 1024, ReadPercent: 50, Ops: 10, Watches: 1, ChildrenPerNode: 16,
		Root: "/zabra-bench", Timeline: time.Second, Seed: 1, SessionTimeout: 30 * time.Second, Hold: 10 * time.Second,
		Threads: threadsDefault(),
	}
}

// threadsDefault leaves half of the processors to a server on the same machine, and two are enough for any. Where there are
// only two, a second thread would cost more per request than it gains: fewer replies would be found per turn.
func threadsDefault() int { return max(1, min(2, runtime.GOMAXPROCS(0)/2)) }

// paced tells whether a workload can be an open loop: those that are nothing but requests and replies.
func (c *Config) paced() bool {
	return slices.Contains([]string{Get, Set, Create, Exists, Children, Mixed, Multi}, c.Workload)
}

// Check returns everything that is wrong with c, as an error in the words of the command line.
func (c *Config) Check() error {
	var faults []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	between := func(flag string, v, low, high int) {
		wrong(v < low || v > high, "--%s %d: it must be between %d and %d", flag, v, low, high)
	}
	known := strings.Join(Workloads, ", ")
	wrong(!slices.Contains(Workloads, c.Workload), "there is no workload %q: choose one of %s", c.Workload, known)
	wrong(len(c.Servers) == 0, "--servers: name at least one HOST:PORT")
	for _, s := range c.Servers {
		_, _, err := net.SplitHostPort(s)
		wrong(err != nil, "--servers %q: it must be HOST:PORT", s)
	}
	between("sessions", c.Sessions, 1, sessionsMax)
	between("outstanding", c.Outstanding, 1, outstandingMax)
	between("data-bytes", c.DataBytes, 0, dataBytesMax)
	between("nodes", c.Nodes, 1, c.nodesMax())
	between("reads", c.ReadPercent, 0, 100)
	between("ops", c.Ops, 1, opsMax)
	between("watches", c.Watches, 1, watchesMax)
	between("children", c.ChildrenPerNode, 1, childrenMax)
	between("threads", c.Threads, 1, threadsMax)
	wrong(c.Count < 0, "--count %d: it must not be negative", c.Count)
	wrong(!(c.Rate >= 0 && c.Rate <= rateMax), "--rate %g: it must be between 0 and %g a second", c.Rate, rateMax)
	wrong(c.Rate > 0 && !c.paced(), "--rate: workload %s has no open loop", c.Workload)
	wrong(c.Duration <= 0 && c.Count == 0 && c.Workload != Fill && c.Workload != Idle, "--duration: a run without --count needs one")
	wrong(c.Duration < 0 || c.Warmup < 0 || c.Hold < 0, "--duration, --warmup, --hold: they must not be negative")
	wrong(c.Timeline < 0 || c.Timeline > 0 && c.Duration/max(c.Timeline, 1) > intervalsMax,
		"--timeline %v: it must not be negative, and give at most %d intervals", c.Timeline, intervalsMax)
	wrong(c.SessionTimeout < time.Millisecond || c.SessionTimeout > math.MaxInt32*time.Millisecond,
		"--session-timeout %v: it must be between 1ms and 596h", c.SessionTimeout)
	wrong(!validRoot(c.Root), "--root %q: it must be a path such as /zabra-bench, below / and not in /zookeeper", c.Root)
	return errors.Join(faults...)
}

func (c *Config) nodesMax() int {
	if c.Workload == Fill {
		return fillNodesMax
	}
	return nodesMax
}

// validRoot tells paths that can be a node: absolute, not the root itself, without empty names and control characters. What
// servers keep for themselves is out of bounds.
func validRoot(path string) bool {
	if path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/") {
		return false
	}
	name, ok := strings.CutPrefix(path, "/")
	if !ok || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(name, "/"), func(n string) bool { return n == "" || n == "." || n == ".." })
}
