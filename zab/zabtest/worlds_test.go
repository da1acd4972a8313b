package zabtest_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
)

// tally counts what happened in random worlds, so that a test can tell that it was worth its time.
type tally struct{ diffs, truncs, snaps, reigns, writes, syncs int }

// runWorld lets chance act on an ensemble, ends all faults, and asks that everything comes to rest.
func runWorld(w *zabtest.World, rng *rand.Rand, sum *tally) error {
	for range 40 {
		for range rng.IntN(60) {
			if !w.Act() {
				w.Tick(10)
			}
			client(w, rng, sum)
		}
		w.Fault()
		if w.Err() != nil {
			return w.Err()
		}
	}
	w.Heal()
	w.Until("everybody serves after the faults", w.Level)
	if w.Err() != nil {
		return w.Err()
	}
	before := len(w.Committed)
	w.Write(w.Leader().ID, "the last write")
	w.Until("the last write is everywhere", func() bool { return len(w.Committed) > before && w.Level() })
	sum.diffs, sum.truncs, sum.snaps = sum.diffs+w.Sent(zab.MessageDiff), sum.truncs+w.Sent(zab.MessageTrunc), sum.snaps+w.Sent(zab.MessageSnap)
	sum.reigns += w.Reigns()
	return w.Err()
}

// client writes or asks for a sync now and then, anywhere.
func client(w *zabtest.World, rng *rand.Rand, sum *tally) {
	s := w.Servers[rng.IntN(len(w.Servers))]
	if !s.Up {
		return
	}
	switch rng.IntN(12) {
	case 0, 1:
		if w.Write(s.ID, fmt.Sprint(rng.Int())) > 0 {
			sum.writes++
		}
	case 2:
		if w.Sync(s.ID) > 0 {
			sum.syncs++
		}
	}
}

// randomWorld makes a world of three or five voters, with or without an observer, and with memory for many or a few
// transactions.
func randomWorld(seed uint64, plant zab.Plant) (*zabtest.World, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := zabtest.New(zabtest.Options{Voters: 3 + 2*int(seed%2), Observers: int(seed/2) % 2, Rand: rng, Plant: plant, WindowEntries: int(seed/4) % 3 * 6})
	w.ChunkEntries = 3
	for _, s := range w.Servers {
		w.Start(s.ID)
	}
	return w, rng
}

func TestRandomWorlds(t *testing.T) {
	var sum tally
	for seed := range uint64(300) {
		w, rng := randomWorld(seed, 0)
		require.NoError(t, runWorld(w, rng, &sum), "seed %d", seed)
	}
	t.Logf("%+v", sum)
	require.NotZero(t, sum.diffs)
	require.NotZero(t, sum.truncs)
	require.NotZero(t, sum.snaps)
	require.Greater(t, sum.reigns, 600)
	require.NotZero(t, sum.writes)
	require.NotZero(t, sum.syncs)
}

// Bugs that are planted on purpose are found by a few dozen worlds: the judge is awake.
func TestWorldsFindPlantedBugs(t *testing.T) {
	for _, name := range []string{
		"ack-early", "ack-newleader-early", "ack-epoch-early", "commit-minority", "commit-ahead", "apply-uncommitted", "apply-undurable", "serve-before-quorum",
		"epoch-before-history", "vote-while-writing", "reuse-epoch", "truncate-one", "no-truncate", "no-step-down",
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(80) {
				if err := plantedWorld(seed, zab.Plants()[name]); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Fatal("no world has found it")
		})
	}
}

// plantedWorld runs a world with a bug in it; that the core notices it itself, and panics with what is wrong, counts as
// found. Any other panic is a mistake of the test.
func plantedWorld(seed uint64, p zab.Plant) (err error) {
	defer func() {
		r := recover()
		if why, ok := r.(string); ok && strings.HasPrefix(why, "zab: ") {
			err = fmt.Errorf("panic: %s", why)
		} else if r != nil {
			panic(r)
		}
	}()
	w, rng := randomWorld(seed, p)
	return runWorld(w, rng, &tally{})
}
