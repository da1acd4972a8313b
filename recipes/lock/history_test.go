package lock

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// ledger judges grants as they come: tokens grow, and nobody is granted the lock beside a holder that has neither unlocked
// nor lost it.
type ledger struct {
	mu      sync.Mutex
	last    int64
	holders map[*Guard]bool
	grants  int
	lost    int
	faults  []string
}

// enter notes a grant. One that is lost already when it is noted proves nothing, and is not counted.
func (l *ledger) enter(g *Guard) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.Held() {
		l.lost++
		return false
	}
	if g.Token() <= l.last {
		l.faults = append(l.faults, "a token that is not larger than one before it")
	}
	for other := range l.holders {
		if other.Held() {
			l.faults = append(l.faults, "two holders")
		}
	}
	l.last = g.Token()
	l.grants++
	l.holders[g] = true
	return true
}

// leave notes the end of a grant, before the lock is given back.
func (l *ledger) leave(g *Guard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.Held() {
		l.lost++
	}
	delete(l.holders, g)
}

// TestHistoryUnderFaults has clients take a lock in turn while their connections fail in many ways, some for so long that the
// sessions end by themselves.
func TestHistoryUnderFaults(t *testing.T) {
	forSeeds(t, 2, runHistory)
}

func runHistory(t *testing.T, seed uint64) {
	const clients, rounds = 4, 4
	w := recipestest.Start(t)
	ctx, stop := context.WithCancel(recipestest.Context(t))
	defer stop()
	l := &ledger{holders: map[*Guard]bool{}}
	var workers, trouble sync.WaitGroup
	for i := range uint64(clients) {
		c, proxy := eager(t, w, 300*time.Millisecond)
		workers.Go(func() { takeTurns(ctx, t, l, c, proxy, rounds, rand.New(rand.NewPCG(seed, i))) })
		trouble.Go(func() { makeTrouble(ctx, proxy, rand.New(rand.NewPCG(seed, 100+i))) })
	}
	workers.Wait()
	stop()
	trouble.Wait()
	require.Empty(t, l.faults)
	require.GreaterOrEqual(t, l.grants+l.lost, clients*rounds)
	t.Logf("%d grants, %d lost", l.grants, l.lost)
	requireEmpty(t, w.Client(t), "/history")
}

// takeTurns is one client: it holds the lock for a moment, again and again. It stops when ctx ends.
func takeTurns(ctx context.Context, t *testing.T, l *ledger, c *recipes.Client, p *servertest.Proxy, rounds int, random *rand.Rand) {
	m := NewMutex(c, "/history", Options{})
	for range rounds {
		guard, err := m.Lock(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		if l.enter(guard) {
			work(p, guard, random)
			l.leave(guard)
		}
		_ = guard.Unlock(ctx) // lost or not
	}
}

// work takes a moment, and now and then so long, cut off from the server, that the lock is lost to another one.
func work(p *servertest.Proxy, guard *Guard, random *rand.Rand) {
	if random.IntN(6) > 0 {
		time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond) // the work itself
		return
	}
	p.Freeze()
	select {
	case <-guard.Lost():
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond) // a holder that goes on as if it had not heard
	case <-time.After(time.Second): // somebody else has thawed it
	}
	p.Thaw()
}

// makeTrouble has a client's connection fail until ctx ends, and leaves it whole.
func makeTrouble(ctx context.Context, p *servertest.Proxy, random *rand.Rand) {
	pause := func(most time.Duration) {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(most)))):
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		pause(150 * time.Millisecond)
		switch random.IntN(6) {
		case 0:
			p.Cut()
		case 1:
			p.DropReply([]int32{servertest.OpCreate, servertest.OpDelete, servertest.OpGetChildren2, servertest.OpGetData}[random.IntN(4)])
		case 2:
			p.DropRequest([]int32{servertest.OpCreate, servertest.OpDelete}[random.IntN(2)])
		case 3:
			p.Delay(time.Duration(random.IntN(3)) * time.Millisecond)
		case 4:
			p.Freeze()
			pause(500 * time.Millisecond) // the session lives 300 ms
			p.Thaw()
		case 5:
			p.Refuse(true)
			p.Cut()
			pause(150 * time.Millisecond)
			p.Refuse(false)
		}
	}
}
