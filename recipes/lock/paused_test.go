package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// The resource is a register that holders of the lock count up: they read it, are busy for a while, and write one more. That is
// right if no two of them have read the same. Each such change is one operation to the judge, from before the read until
// after the write; a refused one must have changed nothing.

// increment is what the judge sees of one change.
type increment struct {
	read    int
	refused bool
}

var counting = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, _, output any) (bool, any) {
		value, seen := state.(int), output.(increment)
		if seen.refused {
			return true, value
		}
		return seen.read == value, value + 1
	},
}

// pausing is one holder between its read and its write.
type pausing struct {
	client int
	guard  *Guard
	called int64
	read   int
	// overtaken tells that a younger holder has been at the register since.
	overtaken bool
}

// play is a random schedule of holders, some of which are stopped while they hold the lock. The ensemble gives the lock to
// others, and then they go on as if nothing had happened: they do not look at Lost, as a process that was stopped cannot.
type play struct {
	t       *testing.T
	random  *rand.Rand
	locks   []*Mutex
	proxies []*servertest.Proxy
	access  func(token int64, access func()) error // of the register

	register int
	clock    int64
	paused   []*pausing
	history  []porcupine.Operation
	late     int // writes by holders that were overtaken
	refused  int
}

const playClients = 4

func newPlay(t *testing.T, seed uint64, access func(int64, func()) error) *play {
	w := recipestest.Start(t)
	p := &play{t: t, random: rand.New(rand.NewPCG(seed, 6)), access: access}
	for range playClients {
		c, proxy := eager(t, w, recipestest.SessionTimeout)
		p.locks, p.proxies = append(p.locks, NewMutex(c, "/register", Options{})), append(p.proxies, proxy)
	}
	return p
}

func (p *play) now() int64 {
	p.clock++
	return p.clock
}

// run makes steps: a free client makes a change, or begins one and is stopped, or a stopped one goes on.
func (p *play) run(steps int) {
	for range steps {
		if len(p.paused) > 0 && (len(p.paused) == playClients-1 || p.random.IntN(3) == 0) {
			p.wake(p.random.IntN(len(p.paused)))
			continue
		}
		one := p.begin(p.free())
		if p.random.IntN(2) == 0 {
			p.finish(one)
			continue
		}
		p.paused = append(p.paused, one)
		p.proxies[one.client].Expire()
	}
	for len(p.paused) > 0 {
		p.wake(0)
	}
}

// free returns a client that is not stopped.
func (p *play) free() int {
	for {
		client := p.random.IntN(playClients)
		stopped := false
		for _, one := range p.paused {
			stopped = stopped || one.client == client
		}
		if !stopped {
			return client
		}
	}
}

// begin takes the lock and reads.
func (p *play) begin(client int) *pausing {
	guard, err := p.locks[client].Lock(recipestest.Context(p.t))
	require.NoError(p.t, err)
	one := &pausing{client: client, guard: guard, called: p.now()}
	require.NoError(p.t, p.access(guard.Token(), func() { one.read = p.register }), "the youngest holder is never refused")
	for _, older := range p.paused {
		require.Less(p.t, older.guard.Token(), guard.Token())
		older.overtaken = true
	}
	return one
}

// finish writes, gives the lock back and notes the change.
func (p *play) finish(one *pausing) {
	err := p.access(one.guard.Token(), func() { p.register = one.read + 1 })
	if err != nil {
		require.ErrorIs(p.t, err, ErrFenced)
		p.refused++
	}
	if one.overtaken {
		p.late++
	}
	p.history = append(p.history, porcupine.Operation{ClientId: one.client, Call: one.called, Return: p.now(),
		Output: increment{one.read, err != nil}})
	_ = one.guard.Unlock(recipestest.Context(p.t)) // lost, if it was stopped
}

func (p *play) wake(i int) {
	one := p.paused[i]
	p.paused = append(p.paused[:i], p.paused[i+1:]...)
	p.finish(one)
}

func (p *play) judge() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(counting, p.history, patience)
}

// TestFenceRefusesEveryLateWrite: behind a fence, holders that were stopped do no harm.
func TestFenceRefusesEveryLateWrite(t *testing.T) {
	forSeeds(t, 4, func(t *testing.T, seed uint64) {
		var fence Fence
		p := newPlay(t, seed, func(token int64, access func()) error {
			return fence.Do(token, func() error { access(); return nil })
		})
		p.run(25)
		require.NotZero(t, p.late, "a schedule without a late write shows nothing")
		require.Equal(t, p.late, p.refused, "every late write is refused, and no other")
		require.Equal(t, porcupine.Ok, p.judge(), "history: %+v", p.history)
	})
}

// TestWithoutAFenceTheJudgeObjects proves that the judge can find the fault: with the same schedules, and no fence.
func TestWithoutAFenceTheJudgeObjects(t *testing.T) {
	forSeeds(t, 4, func(t *testing.T, seed uint64) {
		p := newPlay(t, seed, func(_ int64, access func()) error { access(); return nil })
		p.run(25)
		require.NotZero(t, p.late)
		require.Equal(t, porcupine.Illegal, p.judge(), "late writes have gone unnoticed: %+v", p.history)
	})
}

// TestFrozenHolder is the same with nothing but time: the holder's network is frozen, its session ends by itself, and then it
// writes.
func TestFrozenHolder(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t, timeout(500*time.Millisecond))
	frozen, err := NewMutex(c, "/frozen", Options{}).Lock(ctx)
	require.NoError(t, err)
	var fence Fence
	var register string
	write := func(g *Guard, text string) error {
		return fence.Do(g.Token(), func() error { register = text; return nil })
	}
	require.NoError(t, write(frozen, "first"))
	proxy.Freeze()
	next, err := NewMutex(w.Client(t), "/frozen", Options{}).Lock(ctx)
	require.NoError(t, err)
	require.NoError(t, write(next, "second"))
	require.ErrorIs(t, write(frozen, "late"), ErrFenced)
	require.Equal(t, "second", register)
	require.False(t, frozen.Held())
	proxy.Thaw()
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = frozen.Unlock(short)
	require.True(t, errors.Is(err, recipes.ErrSessionLost), "%v", err)
	require.NoError(t, next.Unlock(ctx))
}
