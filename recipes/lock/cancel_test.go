package lock

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// TestCancelAtAnyPoint cancels waiters at random moments, from before their first request to long after their last one, on a
// slow network that also loses replies. None may leave a node behind.
func TestCancelAtAnyPoint(t *testing.T) {
	const attempts = 12
	for _, one := range exclusive {
		t.Run(one.name, func(t *testing.T) {
			forSeeds(t, 2, func(t *testing.T, seed uint64) {
				w := recipestest.Start(t)
				s := newScene(t, w, fault{}, one)
				s.cancelAtRandom(t, rand.New(rand.NewPCG(seed, 6)), attempts)
			})
		})
	}
}

func (s *scene) cancelAtRandom(t *testing.T, random *rand.Rand, attempts int) {
	ctx := recipestest.Context(t)
	holder, err := s.rival(ctx)
	require.NoError(t, err)
	s.proxy.Delay(time.Millisecond)
	var waiters sync.WaitGroup
	for range attempts {
		if random.IntN(4) == 0 {
			s.proxy.DropReply([]int32{servertest.OpCreate, servertest.OpDelete, servertest.OpGetChildren2}[random.IntN(3)])
		}
		short, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(20_000))*time.Microsecond)
		waiters.Go(func() {
			defer cancel()
			if guard, err := s.struck(short); err == nil {
				t.Error("granted beside a holder: ", guard.Unlock(ctx))
			}
		})
		if random.IntN(3) == 0 {
			waiters.Wait()
		}
	}
	waiters.Wait()
	require.True(t, isHeld(holder))
	require.NoError(t, holder.Unlock(ctx))
	s.requireEmpty(t)
	// Nothing is left that anybody could have to wait for.
	next, err := s.struck(ctx)
	require.NoError(t, err)
	require.NoError(t, next.Unlock(ctx))
}
