package lock

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestReadersShareAndWritersDoNot(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a, b := NewRWMutex(w.Client(t), "/rw", Options{}), NewRWMutex(w.Client(t), "/rw", Options{})
	r1, err := a.RLock(ctx)
	require.NoError(t, err)
	r2, err := b.TryRLock(ctx)
	require.NoError(t, err)
	_, err = b.TryLock(ctx)
	require.ErrorIs(t, err, ErrHeld)

	writer := inBackground(ctx, a.Lock)
	requireLine(t, a.line.c, "/rw", 3)
	_, err = b.TryRLock(ctx)
	require.ErrorIs(t, err, ErrHeld, "readers do not overtake a writer that waits")
	reader := inBackground(ctx, b.RLock)
	requireLine(t, a.line.c, "/rw", 4)
	list, err := a.Participants(ctx)
	require.NoError(t, err)
	var holders, readers []bool
	for _, p := range list {
		holders, readers = append(holders, p.Holder), append(readers, p.Reader)
	}
	require.Equal(t, []bool{true, true, false, false}, holders)
	require.Equal(t, []bool{true, true, false, true}, readers)

	require.NoError(t, r1.Unlock(ctx))
	requireWaiting(t, writer)
	require.NoError(t, r2.Unlock(ctx))
	writing := receive(t, writer)
	require.Greater(t, writing.Token(), r2.Token())
	requireWaiting(t, reader)
	require.NoError(t, writing.Unlock(ctx))
	reading := receive(t, reader)
	require.Greater(t, reading.Token(), writing.Token())
	require.NoError(t, reading.Unlock(ctx))
	requireEmpty(t, a.line.c, "/rw")
}

func TestDowngrade(t *testing.T) {
	for _, names := range []Names{Curator, Kazoo} {
		w := recipestest.Start(t)
		ctx := recipestest.Context(t)
		a, b := NewRWMutex(w.Client(t), "/rw", Options{Names: names}), NewRWMutex(w.Client(t), "/rw", Options{Names: names})
		writing, err := a.Lock(ctx)
		require.NoError(t, err)
		reader := inBackground(ctx, b.RLock)
		requireLine(t, a.line.c, "/rw", 2)
		nextWriter := inBackground(ctx, b.Lock)
		requireLine(t, a.line.c, "/rw", 3)

		own, err := a.Downgrade(ctx, writing)
		require.NoError(t, err)
		require.False(t, writing.Held())
		require.Equal(t, writing.Token(), own.Token(), "a token of its own would come after the next writer's")
		require.Equal(t, recipes.Sequence(writing.Path()), recipes.Sequence(own.Path()), "it has the writer's place")
		other := receive(t, reader)
		requireWaiting(t, nextWriter)
		require.NoError(t, other.Unlock(ctx))
		requireWaiting(t, nextWriter)
		require.NoError(t, own.Unlock(ctx))
		next := receive(t, nextWriter)
		require.Greater(t, next.Token(), own.Token())
		require.NoError(t, next.Unlock(ctx))
		requireEmpty(t, a.line.c, "/rw")
	}
}

func TestShare(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	m := NewRWMutex(w.Client(t), "/rw", Options{})
	writing, err := m.Lock(ctx)
	require.NoError(t, err)
	reading, err := m.Share(ctx, writing)
	require.NoError(t, err)
	list, err := m.Participants(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.True(t, list[0].Holder && list[1].Holder)
	require.NoError(t, reading.Unlock(ctx))
	require.True(t, writing.Held(), "in any order")
	_, err = m.Share(ctx, reading)
	require.ErrorIs(t, err, ErrNotWriter)
	require.NoError(t, writing.Unlock(ctx))
	_, err = m.Share(ctx, writing)
	require.ErrorIs(t, err, ErrUnlocked)
	_, err = m.Downgrade(ctx, writing)
	require.ErrorIs(t, err, ErrUnlocked)

	for _, foreign := range []Locker{
		NewRWMutex(m.line.c, "/other", Options{}), NewRWMutex(w.Client(t), "/rw", Options{}), NewMutex(m.line.c, "/rw", Options{}), m.RLocker(),
	} {
		guard, err := foreign.Lock(ctx)
		require.NoError(t, err)
		_, err = m.Share(ctx, guard)
		require.ErrorIs(t, err, ErrNotWriter)
		require.NoError(t, guard.Unlock(ctx))
	}
	requireEmpty(t, m.line.c, "/rw")
}

// TestShareFailsWithTheSession: a write lock that is lost gives no read lock.
func TestShareFailsWithTheSession(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	m := NewRWMutex(c, "/rw", Options{})
	writing, err := m.Lock(ctx)
	require.NoError(t, err)
	proxy.Expire()
	requireClosed(t, writing.Lost(), "lost")
	_, err = m.Downgrade(ctx, writing)
	require.ErrorIs(t, err, recipes.ErrSessionLost)
	require.ErrorIs(t, writing.Unlock(ctx), recipes.ErrSessionLost)
	requireEmpty(t, w.Client(t), "/rw")
}

// TestForeignReadersAndWriters puts nodes of Curator and kazoo before ours, also a reader at its writer's place.
func TestForeignReadersAndWriters(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	m := NewRWMutex(c, "/rw", Options{})
	require.NoError(t, c.EnsurePath(ctx, "/rw"))
	writer, err := c.Create(ctx, "/rw/_c_77-__WRIT__", nil, zk.FlagEphemeralSequential)
	require.NoError(t, err)
	number := writer[len(writer)-10:]
	reader := inBackground(ctx, m.RLock)
	requireLine(t, c, "/rw", 2)
	shared, err := c.Create(ctx, "/rw/_c_99-__READ__"+number, nil, zk.FlagEphemeral)
	require.NoError(t, err)
	ours := inBackground(ctx, m.Lock)
	requireLine(t, c, "/rw", 4)
	kazoos, err := c.Create(ctx, "/rw/0a1b__rlock__", nil, zk.FlagEphemeralSequential)
	require.NoError(t, err)
	requireWaiting(t, reader)
	require.NoError(t, c.Delete(ctx, writer, -1))
	reading := receive(t, reader)
	requireWaiting(t, ours)
	require.NoError(t, reading.Unlock(ctx))
	requireWaiting(t, ours)
	require.NoError(t, c.Delete(ctx, shared, -1))
	require.NoError(t, receive(t, ours).Unlock(ctx), "kazoo's reader came later")
	require.NoError(t, c.Delete(ctx, kazoos, -1))
}
