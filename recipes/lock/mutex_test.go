package lock

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// TestMutexExcludes has several clients, and several goroutines of each, count without any other protection.
func TestMutexExcludes(t *testing.T) {
	const clients, goroutines, rounds = 3, 3, 4
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	var inside, count int // the race detector looks, too
	var last int64
	var workers sync.WaitGroup
	for range clients {
		m := NewMutex(w.Client(t), "/count", Options{})
		for range goroutines {
			workers.Go(func() {
				for range rounds {
					guard, err := m.Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					inside++
					if inside != 1 || guard.Token() <= last {
						t.Errorf("%d inside, token %d after %d", inside, guard.Token(), last)
					}
					count, last = count+1, guard.Token()
					inside--
					if err := guard.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	workers.Wait()
	require.Equal(t, clients*goroutines*rounds, count)
	require.Empty(t, nodes(t, w.Client(t), "/count"))
}

func TestTryLock(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a, b := NewMutex(w.Client(t), "/try", Options{}), NewMutex(w.Client(t), "/try", Options{})
	guard, err := a.TryLock(ctx)
	require.NoError(t, err)
	_, err = b.TryLock(ctx)
	require.ErrorIs(t, err, ErrHeld)
	require.Len(t, nodes(t, w.Client(t), "/try"), 1, "the one who tries leaves no node")
	waiting := inBackground(ctx, b.Lock)
	requireLine(t, b.line.c, "/try", 2)
	require.NoError(t, guard.Unlock(ctx))
	_, err = a.TryLock(ctx)
	require.ErrorIs(t, err, ErrHeld, "somebody waits or holds")
	require.NoError(t, receive(t, waiting).Unlock(ctx))
	guard, err = a.TryLock(ctx)
	require.NoError(t, err)
	require.NoError(t, guard.Unlock(ctx))
}

// TestTryLockGivesWay is for the moment in which another one has come in between the look and the own node.
func TestTryLockGivesWay(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	m := NewMutex(w.Client(t), "/try", Options{})
	guard, err := m.Lock(ctx)
	require.NoError(t, err)
	_, err = m.line.lock(ctx, m.name, m.line.refuse) // TryLock after its first look
	require.ErrorIs(t, err, ErrHeld)
	require.Len(t, nodes(t, m.line.c, "/try"), 1, "its node is gone when it returns")
	require.NoError(t, guard.Unlock(ctx))
}

func TestAgain(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	m := NewMutex(c, "/again", Options{})
	outer, err := m.Lock(ctx)
	require.NoError(t, err)
	inner, err := outer.Again()
	require.NoError(t, err)
	require.Equal(t, outer.Token(), inner.Token())
	require.Equal(t, outer.Path(), inner.Path())
	require.Len(t, nodes(t, c, "/again"), 1)

	require.NoError(t, outer.Unlock(ctx))
	require.NoError(t, outer.Unlock(ctx), "a second one does nothing")
	require.False(t, outer.Held())
	require.True(t, inner.Held())
	require.Len(t, nodes(t, c, "/again"), 1, "the inner one holds on")
	_, err = outer.Again()
	require.ErrorIs(t, err, ErrUnlocked)

	require.NoError(t, inner.Unlock(ctx))
	require.Empty(t, nodes(t, c, "/again"))
	requireOpen(t, inner.Lost(), "unlocking is no loss")
}

func TestParticipants(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a := NewMutex(w.Client(t), "/who", Options{Identity: []byte("first")})
	b := NewMutex(w.Client(t), "/who", Options{Identity: []byte("second")})
	none, err := a.Participants(ctx)
	require.NoError(t, err)
	require.Empty(t, none)

	guard, err := a.Lock(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, b.Lock)
	requireLine(t, a.line.c, "/who", 2)
	_, err = a.line.c.Create(ctx, "/who/"+stranger, nil, zk.FlagPersistent)
	require.NoError(t, err)

	list, err := b.Participants(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, Participant{Path: guard.Path(), Identity: []byte("first"), Session: a.line.c.Session().ID(),
		Token: guard.Token(), Holder: true}, list[0])
	require.Equal(t, "second", string(list[1].Identity))
	require.False(t, list[1].Holder)
	require.Greater(t, list[1].Token, guard.Token())

	require.NoError(t, guard.Unlock(ctx))
	second := receive(t, waiting)
	require.Equal(t, list[1].Token, second.Token(), "the token is known before the grant")
	require.NoError(t, second.Unlock(ctx))
}

// TestNodesAreNamedAsOthersNameThem pins what Curator and kazoo look for.
func TestNodesAreNamedAsOthersNameThem(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	const guid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-`
	java, python := Options{Identity: []byte("me")}, Options{Identity: []byte("me"), Names: Kazoo}
	for dir, one := range map[string]struct {
		lock func(context.Context) (*Guard, error)
		name string
	}{
		"/java-mutex":     {NewMutex(c, "/java-mutex", java).Lock, `lock-\d{10}`},
		"/java-reader":    {NewRWMutex(c, "/java-reader", java).RLock, `__READ__\d{10}`},
		"/java-writer":    {NewRWMutex(c, "/java-writer", java).Lock, `__WRIT__\d{10}`},
		"/python-mutex":   {NewMutex(c, "/python-mutex", python).Lock, `__lock__\d{10}`},
		"/python-reader":  {NewRWMutex(c, "/python-reader", python).RLock, `__rlock__\d{10}`},
		"/python-writer":  {NewRWMutex(c, "/python-writer", python).Lock, `__lock__\d{10}`},
		"/permits/leases": {NewSemaphore(c, "/permits", 1, java).Acquire, `lease-\d{10}`},
	} {
		guard, err := one.lock(ctx)
		require.NoError(t, err)
		names := nodes(t, c, dir)
		require.Len(t, names, 1)
		require.Regexp(t, regexp.MustCompile("^"+guid+one.name+"$"), names[0])
		require.Equal(t, dir+"/"+names[0], guard.Path())
		data, stat, err := c.Get(ctx, guard.Path())
		require.NoError(t, err)
		require.Equal(t, "me", string(data))
		require.Equal(t, c.Session().ID(), stat.EphemeralOwner)
		require.Equal(t, stat.Czxid, guard.Token())
		require.NoError(t, guard.Unlock(ctx))
	}
	require.Empty(t, nodes(t, c, "/permits/locks"))
}

// TestForeignersInTheLine puts nodes of others before ours, one by one, by hand.
func TestForeignersInTheLine(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	m := NewMutex(c, "/mixed", Options{})
	require.NoError(t, c.EnsurePath(ctx, "/mixed"))
	var foreign []string
	for _, name := range []string{"_c_0b-lock-", "9f__lock__", "00__rlock__", "_c_aa-__READ__", "zz-lock-"} {
		path, err := c.Create(ctx, "/mixed/"+name, nil, zk.FlagEphemeralSequential)
		require.NoError(t, err)
		foreign = append(foreign, path)
	}
	waiting := inBackground(ctx, m.Lock)
	for i, path := range foreign {
		requireLine(t, c, "/mixed", len(foreign)-i+1)
		requireWaiting(t, waiting)
		require.NoError(t, c.Delete(ctx, path, -1))
	}
	require.NoError(t, receive(t, waiting).Unlock(ctx))
}

// TestWaitersKnowWhenTheNodeIsGone has somebody delete the nodes of those who wait.
func TestWaitersKnowWhenTheNodeIsGone(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	m := NewMutex(c, "/hand", Options{})
	first, err := m.Lock(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, m.Lock)
	requireLine(t, c, "/hand", 2)
	list, err := m.Participants(ctx)
	require.NoError(t, err)
	require.NoError(t, c.Delete(ctx, list[1].Path, -1))
	require.NoError(t, first.Unlock(ctx))
	second := receive(t, waiting)
	require.NotEqual(t, list[1].Path, second.Path(), "it has lined up again")
	require.NoError(t, second.Unlock(ctx))
	requireEmpty(t, c, "/hand")
}

func TestContextOfTheGuard(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	guard, err := NewMutex(c, "/work", Options{}).Lock(ctx)
	require.NoError(t, err)
	work, cancel := guard.Context(ctx)
	require.NoError(t, work.Err())
	cancel()
	require.ErrorIs(t, context.Cause(work), context.Canceled)

	work, cancel = guard.Context(ctx)
	defer cancel()
	proxy.Expire()
	requireClosed(t, work.Done(), "work ends with the session")
	require.ErrorIs(t, context.Cause(work), recipes.ErrSessionLost)
	_, err = guard.Again()
	require.ErrorIs(t, err, recipes.ErrSessionLost)
	require.ErrorIs(t, guard.Unlock(ctx), recipes.ErrSessionLost)
}

func TestBadPathsAndClosedClients(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	for _, path := range []string{"", "/", "relative", "/a/", "/a//b", "/a/../b"} {
		_, err := NewMutex(c, path, Options{}).Lock(ctx)
		require.ErrorIs(t, err, recipes.ErrPath, path)
		_, err = NewMutex(c, path, Options{}).TryLock(ctx)
		require.Error(t, err, path)
		_, err = NewRWMutex(c, path, Options{}).RLock(ctx)
		require.ErrorIs(t, err, recipes.ErrPath, path)
	}
	other := w.Client(t)
	first, err := NewMutex(c, "/closing", Options{}).Lock(ctx)
	require.NoError(t, err)
	waiting := inBackground(ctx, NewMutex(other, "/closing", Options{}).Lock)
	requireLine(t, c, "/closing", 2)
	other.Close()
	require.ErrorIs(t, (<-waiting).err, recipes.ErrClosed)
	_, err = NewMutex(other, "/closing", Options{}).Lock(ctx)
	require.ErrorIs(t, err, recipes.ErrClosed)
	require.NoError(t, first.Unlock(ctx))
}

func TestLockEndsWithItsContext(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t)
	m := NewMutex(c, "/ends", Options{})
	first, err := m.Lock(recipestest.Context(t))
	require.NoError(t, err)
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(recipestest.Context(t))
	waiting := inBackground(ctx, m.Lock)
	requireLine(t, c, "/ends", 2)
	cancel(why)
	require.ErrorIs(t, (<-waiting).err, why)
	requireLine(t, c, "/ends", 1)
	_, err = m.Lock(ctx)
	require.ErrorIs(t, err, why)
	require.ErrorIs(t, first.Unlock(ctx), why, "the release goes on in the background")
	requireEmpty(t, c, "/ends")
}
