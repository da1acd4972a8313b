package zabtest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
	"zabra/zab/zabtest"
	"zabra/zab/zxid"
)

// The leader leaves the lead to another one and follows it, although its own vote would win.
func TestHandOver(t *testing.T) {
	s := running(t, 3, 0, 1)
	require.Equal(t, 2, s.Server(3).Node.Status().LevelVoters)
	s.Say("server 3 hands over")
	s.HandOver(3)
	s.Settle()
	s.leads(2, 2)
	s.follow(2, 1, 3)
	s.write(3, "through the old leader")
	s.has(3, at(1, 1)[0], zxid.Make(2, 1))
}

// Who has handed over is as good as any other the next time.
func TestHandOverThereAndBack(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Off = true
	s.HandOver(3)
	s.untilLevel()
	s.leads(2, 2)
	s.HandOver(2)
	s.untilLevel()
	s.leads(3, 3)
}

// With one follower left, the old leader's vote is needed: it goes to that follower.
func TestHandOverToTheOnlyOther(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Off = true
	s.kill(2)
	s.leads(3, 1)
	s.Off = false
	s.Say("server 3 hands over")
	s.HandOver(3)
	s.Settle()
	s.leads(1, 2)
	s.follow(1, 3)
}

// Nobody is there to take over, or who is asked does not lead: all stays as it is.
func TestHandOverNeedsAnother(t *testing.T) {
	s := running(t, 1, 1, 1)
	s.Off = true
	require.Zero(t, s.Server(1).Node.Status().LevelVoters)
	s.HandOver(1)
	s.HandOver(2)
	s.Settle()
	s.leads(1, 1)
	s = running(t, 3, 1, 1)
	s.Off = true
	for _, id := range []zxid.ServerID{1, 2, 4} {
		s.HandOver(id)
	}
	s.Settle()
	s.leads(3, 1)
	s.follow(3, 1, 2, 4)
}

// The others are gone in the moment of the handing over. When one of them is back, and has less, the old leader leads
// again, a bounded time later.
func TestHandOverEndsInTheOldLeader(t *testing.T) {
	s := running(t, 3, 0, 1)
	s.Off = true
	s.kill(1)
	s.write(3, "server 1 lacks this")
	s.HandOver(3)
	s.Kill(2)
	s.Settle()
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	s.Start(1)
	s.Pass(2900)
	s.is(3, zab.RoleLooking, zab.PhaseElection, false)
	s.Pass(400)
	s.leads(3, 2)
	s.follow(3, 1)
	s.has(1, at(1, 1, 2)...)
}

// What the old leader has proposed and nobody was sent is not missed, and nothing that anybody was told of is lost.
func TestHandOverUnderWrites(t *testing.T) {
	for seed := range uint64(30) {
		voters := 3 + 2*int(seed%2)
		rng := rand.New(rand.NewPCG(seed, 3))
		w := zabtest.New(zabtest.Options{Voters: voters, Observers: int(seed/2) % 2, Rand: rng})
		for _, s := range w.Servers {
			w.Start(s.ID)
		}
		w.Until("everybody serves", w.Level)
		for range 3 {
			old := w.Leader().ID
			for n := range 12 {
				w.Write(w.Servers[rng.IntN(voters)].ID, "w")
				for range rng.IntN(8) {
					w.Act()
				}
				if n == 6 {
					require.NotZero(t, w.Server(old).Node.Status().LevelVoters, "seed %d", seed)
					w.HandOver(old)
				}
			}
			w.Until("everybody serves again", w.Level)
			require.NoError(t, w.Err(), "seed %d", seed)
			require.NotEqual(t, old, w.Leader().ID, "seed %d", seed)
		}
	}
}

// With faults all around it, handing over breaks no promise, and in the end everybody serves.
func TestRandomWorldsWithHandOvers(t *testing.T) {
	var sum tally
	handOvers := 0
	for seed := range uint64(80) {
		w, rng := randomWorld(seed+1000, 0)
		for range 30 {
			for range rng.IntN(60) {
				if !w.Act() {
					w.Tick(10)
				}
				client(w, rng, &sum)
			}
			if l := w.Leader(); l != nil && rng.IntN(2) == 0 {
				w.HandOver(l.ID)
				if l.Node.Status().Role == zab.RoleLooking {
					handOvers++
				}
			} else {
				w.Fault()
			}
			require.NoError(t, w.Err(), "seed %d", seed)
		}
		w.Heal()
		w.Until("everybody serves after the faults", w.Level)
		require.NoError(t, w.Err(), "seed %d", seed)
	}
	require.Greater(t, handOvers, 100)
	require.NotZero(t, sum.writes)
}
