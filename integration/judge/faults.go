//go:build linux

package judge

import (
	"fmt"
	"math/rand/v2"
	"time"

	"zabra/integration/harness"
)

// fault is one kind of trouble for one server. begin does it and end undoes it; the server may be down in between.
type fault struct {
	name  string
	begin func(e *harness.Ensemble, i int) error
	end   func(e *harness.Ensemble, i int) error
}

func heal(e *harness.Ensemble, _ int) error { e.Heal(); return nil }

// allFaults are the kinds of trouble; each run goes through all of them again and again in another order.
func allFaults(rnd *rand.Rand) []fault {
	other := func(e *harness.Ensemble, i int) int { return (i + 1 + rnd.IntN(len(e.Members)-1)) % len(e.Members) }
	return []fault{
		{"kill -9",
			func(e *harness.Ensemble, i int) error { e.Members[i].Kill(); return nil },
			func(e *harness.Ensemble, i int) error { return e.Members[i].Launch() }},
		{"SIGTERM",
			func(e *harness.Ensemble, i int) error { return e.Members[i].Stop() },
			func(e *harness.Ensemble, i int) error { return e.Members[i].Launch() }},
		{"SIGSTOP",
			func(e *harness.Ensemble, i int) error { return e.Members[i].Suspend() },
			func(e *harness.Ensemble, i int) error { return e.Members[i].Continue() }},
		{"isolated", func(e *harness.Ensemble, i int) error { e.Isolate(i, true, true); return nil }, heal},
		{"sends nothing", func(e *harness.Ensemble, i int) error { e.Isolate(i, true, false); return nil }, heal},
		{"hears nothing", func(e *harness.Ensemble, i int) error { e.Isolate(i, false, true); return nil }, heal},
		{"one way of one link", func(e *harness.Ensemble, i int) error { e.Cut(i, other(e, i)); return nil }, heal},
		{"links broken", func(e *harness.Ensemble, i int) error {
			for j := range e.Members {
				e.Reset(i, j)
			}
			return nil
		}, heal},
		{"disk full",
			func(e *harness.Ensemble, i int) error { return e.Members[i].Disk.Fill() },
			func(e *harness.Ensemble, i int) error {
				if err := e.Members[i].Disk.Free(); err != nil {
					return err
				}
				if !endsSoon(e.Members[i]) {
					return nil
				}
				e.Members[i].Kill() // takes note of the end
				return e.Members[i].Launch()
			}},
	}
}

// endsSoon reports whether a server has ended, or does so within a moment: what failed before its disk had room again may
// not have had its consequence yet.
func endsSoon(m *harness.Member) bool {
	for began := time.Now(); time.Since(began) < faultEcho; {
		if m.Exited() {
			return true
		}
		time.Sleep(10 * time.Millisecond) // polls a process
	}
	return m.Exited()
}

// Times of the schedule.
const (
	faultEcho          = 500 * time.Millisecond
	faultMin, faultMax = time.Second, 3500 * time.Millisecond
	quietMin, quietMax = 400 * time.Millisecond, 1600 * time.Millisecond
)

// schedule does faults to a minority of servers, one round after the other, until the time is up. Every second time or so
// the leader is among them.
type schedule struct {
	ensemble *harness.Ensemble
	rnd      *rand.Rand
	logf     func(format string, args ...any)
	counts   map[string]int
	deck     []fault
}

func (s *schedule) run(duration time.Duration) error {
	s.counts = map[string]int{}
	for deadline := time.Now().Add(duration); time.Now().Before(deadline); {
		time.Sleep(between(s.rnd, quietMin, quietMax)) // what happens between faults is part of the test
		if err := s.ended(); err != nil {
			return err
		}
		victims := s.victims()
		faults := make([]fault, len(victims))
		for n, i := range victims {
			faults[n] = s.draw()
			s.logf("%s: server %d (%s)", faults[n].name, i+1, s.ensemble.Members[i].Mode())
			if err := faults[n].begin(s.ensemble, i); err != nil {
				return fmt.Errorf("%s: %w", faults[n].name, err)
			}
		}
		time.Sleep(between(s.rnd, faultMin, faultMax))
		for n, i := range victims {
			if err := faults[n].end(s.ensemble, i); err != nil {
				return fmt.Errorf("end of %s: %w", faults[n].name, err)
			}
		}
	}
	return s.ended()
}

// ended reports a server that has ended by itself; a full disk is the only thing that entitles it to.
func (s *schedule) ended() error {
	for _, m := range s.ensemble.Members {
		if m.Exited() {
			return fmt.Errorf("server %d has ended by itself, see %s", m.ID, m.LogFile())
		}
	}
	return nil
}

// draw takes the next kind of a shuffled deck.
func (s *schedule) draw() fault {
	if len(s.deck) == 0 {
		s.deck = allFaults(s.rnd)
		s.rnd.Shuffle(len(s.deck), func(i, j int) { s.deck[i], s.deck[j] = s.deck[j], s.deck[i] })
	}
	f := s.deck[0]
	s.deck = s.deck[1:]
	s.counts[f.name]++
	return f
}

// victims picks at most a minority.
func (s *schedule) victims() []int {
	order := s.rnd.Perm(len(s.ensemble.Members))
	if leader := s.ensemble.Leader(); leader >= 0 && s.rnd.IntN(2) == 0 {
		for n, i := range order {
			if i == leader {
				order[0], order[n] = order[n], order[0]
			}
		}
	}
	return order[:1+s.rnd.IntN((len(order)-1)/2)]
}

func between(rnd *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rnd.Int64N(int64(high-low)))
}
