package election

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// judge hears of each term from the participant that has it.
type judge struct {
	mu     sync.Mutex
	terms  []*Term
	faults []string
}

// granted compares a new term with all before. A look at Leads cannot be late, so whoever leads at a later look than this one
// has led all the time since its grant: two who lead are two leaders. Nothing in the schedule ends a session from outside,
// where the ensemble knows before the client does.
func (j *judge) granted(term *Term) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !term.Leads() {
		return
	}
	for _, other := range j.terms {
		switch {
		case other.Leads() || unlockedEarly(other):
			j.faults = append(j.faults, fmt.Sprintf("the terms %d and %d overlap", other.Token(), term.Token()))
		case other.Token() >= term.Token():
			j.faults = append(j.faults, fmt.Sprintf("the term %d follows %d", term.Token(), other.Token()))
		}
	}
	j.terms = append(j.terms, term)
}

// unlockedEarly tells whether a term's lock was given back while the term was not over for all to see. If the session is lost,
// a busy machine may close Lost some moments late.
func unlockedEarly(term *Term) bool {
	select {
	case <-term.Lost():
		return false
	default:
	}
	_, err := term.guard.Again()
	return !errors.Is(err, recipes.ErrSessionLost)
}

func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.terms)
}

const (
	scheduleParticipants = 4
	scheduleSteps        = 60
	// scheduleTermsMin is how many terms a schedule has at least; it goes on until then.
	scheduleTermsMin = 10
	stepMax          = 80 * time.Millisecond
	delayMax         = 30 * time.Millisecond
)

// TestRandomSchedule has participants compete while their connections fail at random. Tokens grow in the order of the grants,
// and nobody leads before all others know that they don't.
func TestRandomSchedule(t *testing.T) {
	for kind, start := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			runSchedule(t, rand.New(rand.NewPCG(recipestest.Seed(t), 0)), start)
		})
	}
}

func runSchedule(t *testing.T, random *rand.Rand, start startFunc) {
	w := recipestest.Start(t)
	look := w.Client(t)
	var all []participant
	var proxies []*servertest.Proxy
	for i := range scheduleParticipants {
		c, p := w.Faulty(t, short)
		all, proxies = append(all, start(t, c, fmt.Sprint(i))), append(proxies, p)
	}
	j := &judge{}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	for _, p := range all {
		watching.Go(func() { follow(p, j, stop) })
	}
	s := &storm{w: w, random: random, all: all, proxies: proxies}
	for step := 0; step < scheduleSteps || j.count() < scheduleTermsMin; step++ {
		s.step()
		time.Sleep(time.Duration(random.Int64N(int64(stepMax)))) // what happened takes its course
	}
	s.end()
	for _, p := range proxies {
		p.Delay(0)
	}
	recipestest.Eventually(t, func() bool { return leadsAfter(0, all...) }, "one participant leads in the end")
	close(stop)
	watching.Wait()
	for _, p := range all {
		p.leave()
	}
	lined(t, look)
	require.Empty(t, j.faults)
	t.Logf("%d terms", j.count())
}

// follow tells the judge of all terms of one participant.
func follow(p participant, j *judge, stop <-chan struct{}) {
	for token := int64(0); ; {
		select {
		case <-stop:
			return
		default:
		}
		if term := p.Term(); term != nil && term.Token() != token {
			token = term.Token()
			j.granted(term)
		}
		time.Sleep(time.Millisecond / 4) // between two looks: selectors have nothing to wait for
	}
}

// storm makes connections fail. At most one is out for long at a time, so that there is somebody to lead.
type storm struct {
	w       *recipestest.World
	random  *rand.Rand
	all     []participant
	proxies []*servertest.Proxy
	out     *servertest.Proxy // nil if none is
}

// step does one thing.
func (s *storm) step() {
	i := s.random.IntN(len(s.all))
	p := s.proxies[i]
	ops := []int32{servertest.OpCreate, servertest.OpDelete, servertest.OpGetChildren2, servertest.OpGetData, servertest.OpExists}
	op := ops[s.random.IntN(len(ops))]
	switch s.random.IntN(12) {
	case 0, 1:
		s.outage(p)
	case 2:
		s.end()
	case 3:
		p.Cut()
	case 4:
		p.DropReply(op)
	case 5:
		p.DropRequest(op)
	case 6:
		p.Delay(time.Duration(s.random.Int64N(int64(delayMax))))
	case 7:
		if s.random.IntN(10) == 0 {
			s.w.Restart()
		}
	default:
		for _, p := range s.all { // whoever leads
			p.give()
		}
	}
}

// outage begins one, in one of two ways.
func (s *storm) outage(p *servertest.Proxy) {
	s.end()
	s.out = p
	if s.random.IntN(2) == 0 {
		p.Freeze()
		return
	}
	p.Refuse(true)
	p.Cut()
}

func (s *storm) end() {
	if s.out != nil {
		s.out.Refuse(false)
		s.out.Thaw()
		s.out = nil
	}
}
