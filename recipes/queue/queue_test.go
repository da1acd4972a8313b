package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestNewRefuses(t *testing.T) {
	for path, o := range map[string]Options{
		"": {}, "q": {}, "/": {}, "/q/": {}, "/a": {LockPath: "/a"}, "/b": {LockPath: "/b/locks"}, "/c": {LockPath: "locks"},
		"/d": {LengthMax: -1}, "/e": {LengthMax: lengthMax + 1},
	} {
		_, err := New(nil, path, o)
		require.Error(t, err, path)
		_, err = NewPriority(nil, path, o)
		require.Error(t, err, path)
		_, err = NewDelay(nil, path, o)
		require.Error(t, err, path)
	}
	_, err := NewKazoo(nil, "q", Options{})
	require.Error(t, err)
}

func TestQueue(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	q := newQueue(t, w.Client(t), at, Options{})
	n, err := q.Len(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
	for _, text := range []string{"a", "b", "c"} {
		require.NoError(t, q.Put(ctx, []byte(text)))
	}
	children, _, err := raw.Children(w.Abs(at))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"qn-0000000000", "qn-0000000001", "qn-0000000002"}, children)
	data, _, err := raw.Get(w.Abs(at + "/qn-0000000001"))
	require.NoError(t, err)
	require.Equal(t, "b", string(data))

	a := take(t, ctx, q.Taker)
	require.Equal(t, "a", string(a.Data()))
	require.Equal(t, 1, a.Deliveries)
	b := take(t, ctx, q.Taker)
	require.Equal(t, "b", string(b.Data()))
	require.Greater(t, b.Token(), a.Token())
	n, err = q.Len(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, n, "what is taken still is in the queue")
	require.NoError(t, a.Done(ctx))
	require.NoError(t, a.Done(ctx))
	require.NoError(t, a.Release(ctx))
	require.NoError(t, b.Release(ctx))
	c := take(t, ctx, q.Taker)
	require.Equal(t, "c", string(c.Data()), "the list goes on where it was")
	b = take(t, ctx, q.Taker)
	require.Equal(t, "b", string(b.Data()))
	require.Equal(t, 2, b.Deliveries)
	require.NoError(t, b.Done(ctx))
	require.NoError(t, c.Done(ctx))
	requireEmpty(t, w, w.Raw(t), at)
}

// requireEmpty waits until neither entries, nor locks, nor marks of puts are left.
func requireEmpty(t *testing.T, w *recipestest.World, raw *zk.Conn, path string) {
	t.Helper()
	for _, dir := range []string{path, path + "-taken", path + "-puts"} {
		recipestest.Eventually(t, func() bool {
			children, _, err := raw.Children(w.Abs(dir))
			return err == zk.ErrNoNode || err == nil && len(children) == 0
		}, dir+" is empty")
	}
}

// Takers wait for entries and for locks that go.
func TestTakeWaits(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	q, other := newQueue(t, w.Client(t), at, Options{}), newQueue(t, w.Client(t), at, Options{})
	got := make(chan *Entry)
	takeOne := func() {
		e, err := other.Take(ctx)
		if err != nil {
			t.Error(err)
		}
		got <- e
	}
	go takeOne()
	require.NoError(t, q.Put(ctx, []byte("a")))
	a := <-got
	require.Equal(t, "a", string(a.Data()))
	go takeOne()
	require.NoError(t, a.Release(ctx))
	a = <-got
	require.Equal(t, "a", string(a.Data()))
	require.NoError(t, a.Done(ctx))
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := q.Take(over)
	require.ErrorIs(t, err, context.Canceled)
	_, err = q.Pop(over)
	require.ErrorIs(t, err, context.Canceled)
}

func TestPop(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	q := newQueue(t, w.Client(t), at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	e, err := q.Pop(ctx)
	require.NoError(t, err)
	require.Equal(t, "a", string(e.Data()))
	requireEmpty(t, w, w.Raw(t), at)
}

func TestPriorities(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	q, err := NewPriority(w.Client(t), at, Options{})
	require.NoError(t, err)
	kazoo, err := NewKazoo(w.Client(t), "/kazoo", Options{LockPath: "/ignored"})
	require.NoError(t, err)
	for i, priority := range []int32{5, -1, 5, 0} {
		require.NoError(t, q.Put(ctx, fmt.Append(nil, i), priority))
		require.NoError(t, kazoo.Put(ctx, fmt.Append(nil, i), int(priority)+1))
	}
	require.Error(t, kazoo.Put(ctx, nil, -1))
	require.Error(t, kazoo.Put(ctx, nil, 1000))
	for i, want := range []string{"1", "3", "0", "2"} {
		e := take(t, ctx, q.Taker)
		require.Equal(t, want, string(e.Data()))
		require.Equal(t, []int32{-1, 0, 5, 5}[i], e.Priority)
		k := take(t, ctx, kazoo.Taker)
		require.Equal(t, want, string(k.Data()))
		require.NoError(t, k.Done(ctx))
		if i == 0 { // whoever comes later may come first
			require.NoError(t, q.Put(ctx, []byte("late"), -7))
			late := take(t, ctx, q.Taker)
			require.Equal(t, "late", string(late.Data()))
			require.NoError(t, late.Done(ctx))
		}
		require.NoError(t, e.Done(ctx))
	}
	requireEmpty(t, w, w.Raw(t), at)
}

// kazoo's LockingQueue looks for the locks where they are, and its own are respected.
func TestKazooLayout(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	q, err := NewKazoo(w.Client(t), at, Options{})
	require.NoError(t, err)
	require.NoError(t, q.Put(ctx, []byte("a"), 100))
	require.NoError(t, q.Put(ctx, []byte("b"), 100))
	_, err = raw.Create(w.Abs(at+"/taken/entry-100-0000000000"), []byte("python"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	b := take(t, ctx, q.Taker)
	require.Equal(t, "b", string(b.Data()))
	exists, _, err := raw.Exists(w.Abs(at + "/taken/entry-100-0000000001"))
	require.NoError(t, err)
	require.True(t, exists)
	require.NoError(t, raw.Delete(w.Abs(at+"/taken/entry-100-0000000000"), -1))
	require.Equal(t, "a", string(take(t, ctx, q.Taker).Data()))
}

func TestDelays(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	q, err := NewDelay(w.Client(t), at, Options{})
	require.NoError(t, err)
	require.Error(t, q.Put(ctx, nil, time.Time{}))
	require.Error(t, q.Put(ctx, nil, time.UnixMilli(dueMaxMs+1)))
	now := time.Now()
	require.NoError(t, q.Put(ctx, []byte("never"), now.Add(time.Hour)))
	require.NoError(t, q.Put(ctx, []byte("later"), now.Add(300*time.Millisecond)))
	require.NoError(t, q.Put(ctx, []byte("past"), now.Add(-time.Hour)))
	for _, want := range []string{"past", "later"} {
		e := take(t, ctx, q.Taker)
		require.Equal(t, want, string(e.Data()))
		require.False(t, time.Now().Before(e.Due))
		require.NoError(t, e.Done(ctx))
	}
	waiting, cancel := context.WithCancel(ctx)
	failed := make(chan error)
	go func() {
		_, err := q.Take(waiting)
		failed <- err
	}()
	require.NoError(t, q.Put(ctx, []byte("ahead"), now)) // comes before what is waited for, or is there first
	require.NoError(t, <-failed)
	go func() {
		_, err := q.Take(waiting)
		failed <- err
	}()
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
}

func TestFull(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	q := newQueue(t, w.Client(t), at, Options{LengthMax: 2})
	require.NoError(t, q.Put(ctx, nil))
	require.NoError(t, q.Put(ctx, make([]byte, entryBytesMax)))
	require.ErrorIs(t, q.Put(ctx, nil), ErrFull)
	require.ErrorContains(t, q.Put(ctx, make([]byte, entryBytesMax+1)), "at most")
	_, err := q.Pop(ctx)
	require.NoError(t, err)
	require.NoError(t, q.Put(ctx, nil))
	e, err := q.Pop(ctx)
	require.NoError(t, err)
	require.Len(t, e.Data(), entryBytesMax)
}

// What others put badly stays where it is and does not hold up the rest. Several items of Java are one entry.
func TestForeignEntries(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	var mu sync.Mutex
	skipped := map[string]error{}
	q, err := NewPriority(w.Client(t), at, Options{Skipped: func(path string, err error) {
		mu.Lock()
		defer mu.Unlock()
		skipped[path] = err
	}})
	require.NoError(t, err)
	require.NoError(t, q.ensure(ctx))
	for _, node := range []struct{ name, data string }{
		{"note", "foreign"},
		{"queue-100000000", "not framed"},
		{"queue-100000001", "\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02"},
		{"queue-100000002", "\x00\x01\x00\x01\x02"},
	} {
		_, err := raw.Create(w.Abs(at+"/"+node.name), []byte(node.data), zk.FlagSequence, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	two := take(t, ctx, q.Taker)
	require.Equal(t, [][]byte{[]byte("a"), []byte("b")}, two.Items)
	none := take(t, ctx, q.Taker)
	require.Nil(t, none.Data())
	require.NoError(t, two.Done(ctx))
	require.NoError(t, none.Done(ctx))
	n, err := q.Len(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, skipped, 2)
	require.ErrorIs(t, skipped[at+"/note0000000000"], errForeign)
	for path, err := range skipped {
		require.True(t, strings.HasSuffix(path, "note0000000000") || err.Error() != "", path)
	}
}

// A taker of Curator or kazoo that locks does not raise the version; one that does not lock deletes the entry under our hands.
func TestDoneWithOthers(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	q := newQueue(t, w.Client(t), at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	a := take(t, ctx, q.Taker)
	require.NoError(t, raw.Delete(w.Abs(at+"/"+a.Name), -1))
	require.ErrorIs(t, a.Done(ctx), ErrLost)
	require.ErrorIs(t, a.Done(ctx), ErrLost)
	requireEmpty(t, w, w.Raw(t), at)

	require.NoError(t, q.Put(ctx, []byte("b")))
	b := take(t, ctx, q.Taker)
	require.NoError(t, raw.Delete(w.Abs(at+"-taken/"+b.Name), -1))
	require.NoError(t, b.Done(ctx), "the lock is gone, but nobody has taken the entry since")
	requireEmpty(t, w, w.Raw(t), at)
}

func TestClientClosed(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, c := recipestest.Context(t), w.Client(t)
	q := newQueue(t, c, at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	e := take(t, ctx, q.Taker)
	waiting := make(chan error)
	go func() {
		_, err := q.Take(ctx)
		waiting <- err
	}()
	c.Close()
	require.ErrorIs(t, <-waiting, recipes.ErrClosed)
	require.ErrorIs(t, e.Done(ctx), recipes.ErrClosed)
	require.ErrorIs(t, e.Release(ctx), recipes.ErrClosed)
	require.ErrorIs(t, q.Put(ctx, nil), recipes.ErrClosed)
	<-e.Lost()
	other := newQueue(t, w.Client(t), at, Options{})
	again := take(t, ctx, other.Taker)
	require.Equal(t, "a", string(again.Data()))
	require.Greater(t, again.Token(), e.Token())
}
