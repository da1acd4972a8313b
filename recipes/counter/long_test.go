package counter

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestLong(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	l := NewLong(w.Client(t), "/a/b/hits", LongOptions{})
	n, err := l.Get(ctx)
	require.NoError(t, err)
	require.Zero(t, n, "a node that is missing is 0")
	r, err := l.Add(ctx, 258)
	require.NoError(t, err)
	require.Equal(t, Result{Before: 0, After: 258, Optimistic: true, Tries: 1}, r)
	r, err = l.Add(ctx, -300)
	require.NoError(t, err)
	require.Equal(t, Result{Before: 258, After: -42, Optimistic: true, Tries: 1}, r)
	n, err = l.Get(ctx)
	require.NoError(t, err)
	require.EqualValues(t, -42, n)
	data, stat, err := raw.Get(w.Abs("/a/b/hits"))
	require.NoError(t, err)
	require.Equal(t, []byte{255, 255, 255, 255, 255, 255, 255, 214}, data, "the layout of Curator")
	require.EqualValues(t, 1, stat.Version, "one write for each change")
	marks, _, err := raw.Children(w.Abs("/a/b/hits.marks"))
	require.NoError(t, err)
	require.Len(t, marks, 1)
	require.NoError(t, l.Close(ctx))
	recipestest.Eventually(t, func() bool {
		marks, _, err := raw.Children(w.Abs("/a/b/hits.marks"))
		return err == nil && len(marks) == 0
	}, "the mark is gone")
	_, err = l.Add(ctx, 1)
	require.NoError(t, err, "it may be used again")
}

func TestLongConditions(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	l := NewLong(w.Client(t), "/n", LongOptions{})
	_, ok, err := l.CompareAndSet(ctx, 0, 1)
	require.NoError(t, err)
	require.False(t, ok, "a node that is missing is not as expected")
	r, ok, err := l.Initialize(ctx, 7)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 7, r.After)
	r, ok, err = l.Initialize(ctx, 8)
	require.NoError(t, err)
	require.False(t, ok)
	require.EqualValues(t, 7, r.Before)
	require.EqualValues(t, 7, r.After)
	_, ok, err = l.CompareAndSet(ctx, 8, 9)
	require.NoError(t, err)
	require.False(t, ok)
	r, ok, err = l.CompareAndSet(ctx, 7, 9)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Result{Before: 7, After: 9, Optimistic: true, Tries: 1}, r)
}

func TestLongRefuses(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw, c := recipestest.Context(t), w.Raw(t), w.Client(t)
	l := NewLong(c, "/n", LongOptions{})
	_, err := l.Set(ctx, math.MaxInt64)
	require.NoError(t, err)
	_, err = l.Add(ctx, 1)
	require.ErrorIs(t, err, ErrOverflow)
	narrow := NewLong(c, "/narrow", LongOptions{Codec: Curator32})
	_, err = narrow.Set(ctx, math.MaxInt32)
	require.NoError(t, err)
	_, err = narrow.Add(ctx, 1)
	require.ErrorIs(t, err, ErrOverflow)
	n, err := narrow.Get(ctx)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxInt32, n, "nothing is changed")

	_, err = raw.Set(w.Abs("/n"), []byte("strange"), -1)
	require.NoError(t, err)
	_, err = l.Get(ctx)
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = l.Add(ctx, 1)
	require.ErrorIs(t, err, ErrCorrupt)
	_, _, err = l.CompareAndSet(ctx, 0, 1)
	require.ErrorIs(t, err, ErrCorrupt)
	_, ok, err := l.Initialize(ctx, 1)
	require.NoError(t, err)
	require.False(t, ok)
	r, err := l.Set(ctx, 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, r.After)

	_, err = NewLong(c, "n", LongOptions{}).Add(ctx, 1)
	require.ErrorIs(t, err, recipes.ErrPath)
	ended, end := context.WithCancelCause(ctx)
	end(zk.ErrNothing)
	_, err = l.Add(ended, 1)
	require.ErrorIs(t, err, zk.ErrNothing)
}

// Many add at the same time, each on a client of its own or not. Every number is reached exactly once.
func TestLongCountsEachOnce(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]Codec{"Curator64": Curator64, "KazooText": KazooText} {
		t.Run(name, func(t *testing.T) {
			w := recipestest.Start(t)
			ctx := recipestest.Context(t)
			const clients, each = 3, 15
			var got sync.Map
			var all sync.WaitGroup
			for range clients {
				l := NewLong(w.Client(t), "/n", LongOptions{Codec: codec})
				for range 2 {
					all.Go(func() {
						for range each {
							r, err := l.Add(ctx, 1)
							if err != nil {
								t.Error(err)
								return
							}
							if _, twice := got.LoadOrStore(r.After, true); twice || r.Before != r.After-1 {
								t.Errorf("%+v, seen before: %v", r, twice)
							}
						}
					})
				}
			}
			all.Wait()
			n, err := NewLong(w.Client(t), "/n", LongOptions{Codec: codec}).Get(ctx)
			require.NoError(t, err)
			require.EqualValues(t, clients*2*each, n)
		})
	}
}

// meddler is a codec behind which somebody else is always faster.
type meddler struct {
	Codec
	meddle func()
}

func (m meddler) Encode(n int64) ([]byte, error) {
	m.meddle()
	return m.Codec.Encode(n)
}

func TestLongContended(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw, c := recipestest.Context(t), w.Raw(t), w.Client(t)
	held := false
	meddle := func() {
		if held {
			return
		}
		data, _, err := raw.Get(w.Abs("/n"))
		if err == zk.ErrNoNode {
			_, err = raw.Create(w.Abs("/n"), []byte("1"), 0, zk.WorldACL(zk.PermAll))
		} else if err == nil {
			n, _ := KazooText.Decode(data)
			data, _ = KazooText.Encode(n + 1)
			_, err = raw.Set(w.Abs("/n"), data, -1)
		}
		require.NoError(t, err)
	}
	o := LongOptions{Codec: meddler{KazooText, meddle}, Retry: recipes.Times(2, 0)}
	r, err := NewLong(c, "/n", o).Add(ctx, 100)
	require.ErrorIs(t, err, ErrContended)
	require.Equal(t, 3, r.Tries)

	o.Lock = LockFunc(func(context.Context) (func(context.Context) error, error) { return nil, zk.ErrNoAuth })
	_, err = NewLong(c, "/n", o).Add(ctx, 100)
	require.ErrorIs(t, err, zk.ErrNoAuth)

	released := 0
	o.Lock = LockFunc(func(context.Context) (func(context.Context) error, error) {
		held = true // those who share the lock wait
		return func(context.Context) error { released++; return nil }, nil
	})
	r, err = NewLong(c, "/n", o).Add(ctx, 100)
	require.NoError(t, err)
	require.Equal(t, Result{Before: 9, After: 109, Tries: 4}, r)
	require.Equal(t, 1, released)

	held = false
	o.Lock = LockFunc(func(context.Context) (func(context.Context) error, error) {
		return func(context.Context) error { released++; return nil }, nil
	})
	o.LockRetry = recipes.Never()
	_, err = NewLong(c, "/n", o).Add(ctx, 100)
	require.ErrorIs(t, err, ErrContended, "others need not ask for the lock")
	require.Equal(t, 2, released)
}

// A node that somebody deletes begins again at 0, also in the middle of a change.
func TestLongDeletedInBetween(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	once := true
	o := LongOptions{Codec: meddler{Curator64, func() {
		if _, stat, err := raw.Exists(w.Abs("/n")); err == nil && stat.DataLength > 0 && once {
			once = false
			require.NoError(t, raw.Delete(w.Abs("/n"), -1))
		}
	}}}
	l := NewLong(w.Client(t), "/n", o)
	_, err := l.Add(ctx, 5)
	require.NoError(t, err)
	r, err := l.Add(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, Result{Before: 0, After: 1, Optimistic: true, Tries: 2}, r)
}

// A mark that somebody else removes or writes is replaced, and costs a try.
func TestLongWithoutItsMark(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	l := NewLong(w.Client(t), "/n", LongOptions{})
	_, err := l.Add(ctx, 1)
	require.NoError(t, err)
	mark := func() string {
		names, _, err := raw.Children(w.Abs("/n.marks"))
		require.NoError(t, err)
		require.Len(t, names, 1)
		return w.Abs("/n.marks/" + names[0])
	}
	require.NoError(t, raw.Delete(mark(), -1))
	r, err := l.Add(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, Result{Before: 1, After: 2, Optimistic: true, Tries: 2}, r)
	_, err = raw.Set(mark(), nil, -1)
	require.NoError(t, err)
	r, err = l.Add(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, Result{Before: 2, After: 3, Optimistic: true, Tries: 2}, r)
}
