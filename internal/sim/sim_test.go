package sim

import (
	"bytes"
	"context"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/zab"
)

// TestSeeds runs a few worlds. The long runs are those of "zabra sim".
func TestSeeds(t *testing.T) {
	var out bytes.Buffer
	b := Batch{First: 1, Last: testSeeds, TraceLines: 200, Out: &out}
	result, err := b.Run(context.Background())
	require.NoError(t, err, out.String())
	require.Nil(t, result.Failure, out.String())
	require.Equal(t, testSeeds, result.Worlds)
	require.Empty(t, atLeast(&result), out.String())
}

// atLeast names what a world is to have at least and these had not, taken together.
func atLeast(o *Outcome) (missing []string) {
	if o.Counts.Ops < opsMin*o.Worlds {
		missing = append(missing, "operations")
	}
	if o.Counts.Faults < faultsMin*o.Worlds {
		missing = append(missing, "faults")
	}
	if o.Simulated < time.Duration(o.Worlds)*30*time.Second {
		missing = append(missing, "time")
	}
	return missing
}

// TestSameSeedSameWorld compares two runs of a seed, one of them with its trace kept.
func TestSameSeedSameWorld(t *testing.T) {
	for seed := uint64(100); seed < 104; seed++ {
		first, second := Run(Options{Seed: seed}), Run(Options{Seed: seed, Keep: true})
		require.Equal(t, first.Digest, second.Digest, "seed %d", seed)
		require.Equal(t, first.Steps, second.Steps, "seed %d", seed)
		require.NotEmpty(t, second.trace.records)
	}
	require.NotEqual(t, Run(Options{Seed: 1}).Digest, Run(Options{Seed: 2}).Digest)
}

// TestPlantedBugs checks that the simulator sees what it is there for: bugs of every kind, each with the invariant that it
// breaks. These are the ones that show in the first worlds.
func TestPlantedBugs(t *testing.T) {
	for _, tc := range []struct{ plant, invariant string }{
		{"ack-early", "E-14"}, {"ack-newleader-early", "E-18"}, {"ack-epoch-early", "E-03"}, {"commit-minority", "E-13"},
		{"commit-ahead", "E-13"}, {"apply-uncommitted", "E-08"}, {"apply-undurable", "LOCAL"}, {"serve-before-quorum", "E-01"},
		{"serve-early", "E-20"}, {"confirm-early", "E-14"}, {"lost-sync", "E-26"}, {"skip-predecessor", "E-06"},
	} {
		t.Run(tc.plant, func(t *testing.T) {
			core, host, err := ParsePlant(tc.plant)
			require.NoError(t, err)
			require.Equal(t, tc.invariant, firstFailure(core, host).Invariant)
		})
	}
}

// TestPlantsOnBugsPage compares the bugs that docs/bugs.md calls planted with those that there are.
func TestPlantsOnBugsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/bugs.md")
	require.NoError(t, err)
	const claim = "planted: "
	lists := regexp.MustCompile(claim+"((?:`[^`]+`(?: \\([^)]*\\))?(?:, )?)+)").FindAllStringSubmatch(string(page), -1)
	require.Len(t, lists, strings.Count(string(page), claim), "a bug is planted, and has no name")
	named := map[string]bool{}
	for _, list := range lists {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list[1], -1) {
			named[m[1]] = true
		}
	}
	require.Equal(t, PlantNames(), slices.Sorted(maps.Keys(named)))
}

// firstFailure runs worlds with planted bugs until one fails.
func firstFailure(core zab.Plant, host HostPlant) Failure {
	for seed := uint64(1); seed <= 20; seed++ {
		if f := Run(Options{Seed: seed, Core: core, Host: host}).Failure; f != nil {
			return *f
		}
	}
	return Failure{Invariant: "none"}
}

// TestFailureIsShown checks what a run says of a failure.
func TestFailureIsShown(t *testing.T) {
	var out bytes.Buffer
	b := Batch{First: 1, Last: 20, Plant: "lost-sync", TraceLines: 20, Out: &out}
	result, err := b.Run(context.Background())
	require.NoError(t, err)
	require.NotNil(t, result.Failure)
	require.Contains(t, out.String(), "FAILS")
	require.Contains(t, out.String(), "with the fewest faults")
	require.Contains(t, out.String(), "fault ", "without a crash nothing is lost")
	require.Less(t, strings.Count(out.String(), "\n"), 80, "the trace is as long as was asked for")

	out.Reset()
	b.TraceLines = -1
	result, err = b.Run(context.Background())
	require.NoError(t, err)
	require.NotNil(t, result.Failure)
	require.Contains(t, out.String(), "FAILS")
	require.NotContains(t, out.String(), "with the fewest faults")
}

func TestParsePlant(t *testing.T) {
	core, host, err := ParsePlant("ack-early")
	require.NoError(t, err)
	require.NotZero(t, core)
	require.Zero(t, host)
	core, host, err = ParsePlant("lost-sync")
	require.NoError(t, err)
	require.Zero(t, core)
	require.NotZero(t, host)
	_, _, err = ParsePlant("nonsense")
	require.ErrorContains(t, err, "ack-early")
}

// TestScheduleOrder checks that equal times keep the order in which they were planned.
func TestScheduleOrder(t *testing.T) {
	var q schedule
	var got []int
	for i, at := range []Micros{5, 1, 5, 3, 1, 5} {
		q.add(event{at: at, run: func() { got = append(got, i) }})
	}
	for len(q.events) > 0 {
		q.next().run()
	}
	require.Equal(t, []int{1, 4, 3, 0, 2, 5}, got)
}

// TestDurable checks the ghost of a disk.
func TestDurable(t *testing.T) {
	var d durable
	require.True(t, d.has(0))
	require.Zero(t, d.last())
	d.history = append(d.history, 0x100000001, 0x100000002, 0x200000001)
	for _, z := range d.history {
		require.True(t, d.has(z))
	}
	require.False(t, d.has(0x100000003))
	require.EqualValues(t, 2, d.epoch())
	d.cut(0x100000002)
	require.EqualValues(t, 0x100000002, d.last())
	d.cut(0)
	require.Empty(t, d.history)
}
