package server_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// crashSeedVariable names the environment variable that makes the crash test run one world only.
const crashSeedVariable = "ZABRA_CRASH_SEED"

// TestCrash ends servers by crashes in the middle of everything, and requires of what reopens that every acknowledged
// write is there, with the result that was acknowledged, in order, and nothing by halves.
func TestCrash(t *testing.T) {
	worlds := uint64(crashWorlds)
	if testing.Short() {
		worlds = min(worlds, 50)
	}
	if text := os.Getenv(crashSeedVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		t.Logf("%+v", crashRun(t, seed))
		return
	}
	var sum crashReport
	for seed := range worlds {
		sum.add(crashRun(t, seed+1))
	}
	t.Logf("%d worlds: %+v", worlds, sum)
	// All that the test is about has happened, and often.
	for _, n := range []int{sum.Logs, sum.Snapshots, sum.Removed, sum.Lost, sum.Multis, sum.Ended, sum.Reaped} {
		require.Greater(t, n, int(worlds)/4)
	}
	require.Greater(t, sum.Answered, 100*int(worlds))
}

func (r *crashReport) add(o crashReport) {
	r.Lives, r.Looked, r.Changes = r.Lives+o.Lives, r.Looked+o.Looked, r.Changes+o.Changes
	r.Logs, r.Snapshots, r.Removed = r.Logs+o.Logs, r.Snapshots+o.Snapshots, r.Removed+o.Removed
	r.Logged, r.Lost = r.Logged+o.Logged, r.Lost+o.Lost
	r.Answered, r.Refused = r.Answered+o.Answered, r.Refused+o.Refused
	r.Multis, r.Ended, r.Reaped = r.Multis+o.Multis, r.Ended+o.Ended, r.Reaped+o.Reaped
}

// crashRun runs a world, on one processor: then the order in which goroutines run does not depend on luck either. Where
// the log is preallocated, the zeros ahead of it race with the next batch.
func crashRun(t *testing.T, seed uint64) (r crashReport) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		w := newCrashWorld(t, seed)
		w.run()
		r = w.report
	})
	return r
}

// A seed is a world: it can be run again. These have no preallocated log. On a busy machine the runtime takes the processor from
// a goroutine that holds it for long by the clock on the wall; a run in which that has happened has another order than the next.
func TestCrashRepeats(t *testing.T) {
	const runsMax = 8
	for _, seed := range []uint64{3, 6, 9, 12} {
		require.Zero(t, crashConfig(seed).PreAllocKB)
		last := crashRun(t, seed)
		for runs := 2; ; runs++ {
			again := crashRun(t, seed)
			if again == last {
				break
			}
			require.Less(t, runs, runsMax, "no two runs of seed %d in a row are the same: %+v, %+v", seed, last, again)
			last = again
		}
	}
}
