package lock

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestMultiTakesAllOrNone(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	rw := NewRWMutex(c, "/b", Options{})
	both := NewMulti(NewMutex(c, "/c", Options{}), rw.RLocker(), NewMutex(c, "/a", Options{}))
	guards, err := both.TryLock(ctx)
	require.NoError(t, err)
	require.Len(t, guards, 3)
	require.Regexp(t, "^/a/", guards[0].Path(), "in the order of the paths")
	require.Regexp(t, "^/b/.*__READ__", guards[1].Path())
	require.Regexp(t, "^/c/", guards[2].Path())
	_, err = both.TryLock(ctx)
	require.ErrorIs(t, err, ErrHeld)
	require.NoError(t, guards.Unlock(ctx))

	last, err := NewMutex(c, "/c", Options{}).Lock(ctx)
	require.NoError(t, err)
	_, err = both.TryLock(ctx)
	require.ErrorIs(t, err, ErrHeld)
	require.Empty(t, nodes(t, c, "/a"), "what it had got is given back")
	require.Empty(t, nodes(t, c, "/b"))
	waiting := inBackground(ctx, both.Lock)
	requireLine(t, c, "/c", 2)
	require.Len(t, nodes(t, c, "/a"), 1, "it holds the first while it waits for the last")
	require.NoError(t, last.Unlock(ctx))
	require.NoError(t, receive(t, waiting).Unlock(ctx))
}

func TestMultiRefusesWhatCannotBe(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	for _, m := range []*Multi{
		NewMulti(),
		NewMulti(NewMutex(c, "/a", Options{}), NewMutex(c, "/b", Options{}), NewMutex(c, "/a", Options{})),
		NewMulti(NewMutex(c, "/a", Options{}), NewMutex(w.Client(t), "/b", Options{})),
	} {
		_, err := m.Lock(ctx)
		require.ErrorIs(t, err, ErrLocks)
		_, err = m.TryLock(ctx)
		require.ErrorIs(t, err, ErrLocks)
	}
	var none Guards
	require.Nil(t, none.Lost())
	require.NoError(t, none.Unlock(ctx))
}

// TestMultisDoNotBlockEachOther lists the same locks in all orders.
func TestMultisDoNotBlockEachOther(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	var workers sync.WaitGroup
	for _, paths := range [][]string{{"/a", "/b", "/c"}, {"/c", "/b", "/a"}, {"/b", "/c", "/a"}} {
		c := w.Client(t)
		var locks []Locker
		for _, path := range paths {
			locks = append(locks, NewMutex(c, path, Options{}))
		}
		workers.Go(func() {
			for range 5 {
				guards, err := NewMulti(locks...).Lock(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if err := guards.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// TestMultiBeginsAgain: the session is lost while the second lock is waited for. Then the first one is not held any more.
func TestMultiBeginsAgain(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := eager(t, w, recipestest.SessionTimeout)
	other := w.Client(t)
	second, err := NewMutex(other, "/b", Options{}).Lock(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, NewMulti(NewMutex(c, "/a", Options{}), NewMutex(c, "/b", Options{})).Lock)
	requireLine(t, other, "/b", 2)
	session := c.Session()
	proxy.Expire()
	requireClosed(t, session.Done(), "the session is lost")
	requireWaiting(t, waiting)
	require.NoError(t, second.Unlock(ctx))
	guards := receive(t, waiting)
	for _, g := range guards {
		require.True(t, g.Held())
		require.NotEqual(t, session.ID(), g.hold.node.Session.ID())
	}
	proxy.Expire()
	requireClosed(t, guards.Lost(), "all are lost together")
	require.ErrorIs(t, guards.Unlock(ctx), recipes.ErrSessionLost)
	requireEmpty(t, other, "/a")
	requireEmpty(t, other, "/b")
}
