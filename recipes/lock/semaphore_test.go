package lock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
)

func TestSemaphoreHasSoManyHolders(t *testing.T) {
	const permits, workers, rounds = 3, 8, 4
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range workers {
		s := NewSemaphore(w.Client(t), "/s", permits, Options{})
		all.Go(func() {
			for range rounds {
				permit, err := s.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				n := inside.Add(1)
				for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
				}
				inside.Add(-1)
				if err := permit.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, most.Load(), int32(permits))
	c := w.Client(t)
	requireEmpty(t, c, "/s/leases")
	requireEmpty(t, c, "/s/locks")
}

func TestPermitsAreHeldTogether(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a, b := NewSemaphore(w.Client(t), "/s", 2, Options{Identity: []byte("a")}), NewSemaphore(w.Client(t), "/s", 2, Options{})
	p1, err := a.Acquire(ctx)
	require.NoError(t, err)
	p2, err := b.TryAcquire(ctx)
	require.NoError(t, err)
	require.Greater(t, p2.Token(), p1.Token())
	_, err = a.TryAcquire(ctx)
	require.ErrorIs(t, err, ErrHeld)
	list, err := b.Participants(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "a", string(list[0].Identity))
	require.Equal(t, p1.Token(), list[0].Token)

	third := inBackground(ctx, a.Acquire)
	requireLine(t, w.Client(t), "/s/leases", 3)
	_, err = b.TryAcquire(ctx)
	require.ErrorIs(t, err, ErrHeld, "somebody waits")
	requireWaiting(t, third)
	require.NoError(t, p1.Unlock(ctx))
	p3 := receive(t, third)
	require.NoError(t, p2.Unlock(ctx))
	require.NoError(t, p3.Unlock(ctx))
}

func TestManyPermitsAtOnce(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a, b := NewSemaphore(w.Client(t), "/s", 3, Options{}), NewSemaphore(w.Client(t), "/s", 3, Options{})
	for _, n := range []int{-1, 0, 4} {
		_, err := a.AcquireN(ctx, n)
		require.ErrorIs(t, err, ErrPermits)
	}
	_, err := NewSemaphore(a.leases.c, "/s", 0, Options{}).Acquire(ctx)
	require.ErrorIs(t, err, ErrPermits)
	two, err := a.AcquireN(ctx, 2)
	require.NoError(t, err)
	require.Len(t, two, 2)
	requireOpen(t, two.Lost(), "held")
	all := inBackground(ctx, func(ctx context.Context) (Guards, error) { return b.AcquireN(ctx, 3) })
	requireLine(t, a.leases.c, "/s/leases", 5)
	one := inBackground(ctx, a.Acquire)
	requireLine(t, a.leases.c, "/s/locks", 2)
	requireWaiting(t, one)
	require.NoError(t, two.Unlock(ctx))
	three := receive(t, all)
	requireWaiting(t, one)
	require.NoError(t, three.Unlock(ctx))
	require.NoError(t, receive(t, one).Unlock(ctx))
	requireEmpty(t, a.leases.c, "/s/leases")
}

// TestNumberOfPermitsChanges: more permits are given to those who wait, fewer take none away.
func TestNumberOfPermitsChanges(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	s := NewSemaphore(w.Client(t), "/s", 1, Options{})
	first, err := s.Acquire(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, s.Acquire)
	requireLine(t, s.leases.c, "/s/leases", 2)
	requireWaiting(t, waiting)
	s.SetPermits(2)
	second := receive(t, waiting)
	s.SetPermits(1)
	require.True(t, first.Held() && second.Held())
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, ErrHeld)
	require.NoError(t, first.Unlock(ctx))
	_, err = s.TryAcquire(ctx)
	require.ErrorIs(t, err, ErrHeld, "one is the limit now")
	require.NoError(t, second.Unlock(ctx))
	third, err := s.TryAcquire(ctx)
	require.NoError(t, err)
	require.NoError(t, third.Unlock(ctx))
}

// TestForeignLeases: whatever lies among the leases counts, as with Curator.
func TestForeignLeases(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	s := NewSemaphore(c, "/s", 1, Options{})
	require.NoError(t, c.EnsurePath(ctx, "/s/leases"))
	foreign, err := c.Create(ctx, "/s/leases/_c_1234-lease-", nil, zk.FlagEphemeralSequential)
	require.NoError(t, err)
	waiting := inBackground(ctx, s.Acquire)
	requireLine(t, c, "/s/leases", 2)
	requireWaiting(t, waiting)
	require.NoError(t, c.Delete(ctx, foreign, -1))
	require.NoError(t, receive(t, waiting).Unlock(ctx))
}

// TestPermitLostWhileWaiting: the lease of one who waits goes with the session, and another is made.
func TestPermitLostWhileWaiting(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := eager(t, w, recipestest.SessionTimeout)
	other := NewSemaphore(w.Client(t), "/s", 1, Options{})
	first, err := other.Acquire(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, NewSemaphore(c, "/s", 1, Options{}).Acquire)
	requireLine(t, other.leases.c, "/s/leases", 2)
	session := c.Session()
	proxy.Expire()
	requireClosed(t, session.Done(), "the session is lost")
	requireWaiting(t, waiting)
	require.NoError(t, first.Unlock(ctx))
	second := receive(t, waiting)
	require.NotEqual(t, session.ID(), second.hold.node.Session.ID())
	require.NoError(t, second.Unlock(ctx))
	requireEmpty(t, other.leases.c, "/s/leases")
	requireEmpty(t, other.leases.c, "/s/locks")
}
