package counter

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func newValue(t *testing.T, c *recipes.Client, path, seed string) *Value {
	t.Helper()
	v, err := NewValue(recipestest.Context(t), c, path, []byte(seed))
	require.NoError(t, err)
	t.Cleanup(v.Close)
	return v
}

// holds waits until the value is known here.
func holds(t *testing.T, v *Value, want string) {
	t.Helper()
	recipestest.Eventually(t, func() bool { return string(v.Get().Data) == want && v.Age() == 0 }, "the value is "+want)
}

func TestValue(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	a := newValue(t, w.Client(t), "/a/v", "first")
	b := newValue(t, w.Client(t), "/a/v", "the seed of a node that exists does not count")
	require.Equal(t, "first", string(b.Get().Data))
	require.Zero(t, b.Age())
	now, err := a.Set(ctx, []byte("second"))
	require.NoError(t, err)
	require.EqualValues(t, 1, now.Version)
	require.Equal(t, now, a.Get(), "who writes sees it at once")
	holds(t, b, "second")
	require.Equal(t, now, b.Get())
	now.Data[0] = 'S'
	a.Get().Data[1] = 'E'
	require.Equal(t, "second", string(a.Get().Data), "nobody shares the bytes")
}

func TestValueTrySet(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	v := newValue(t, w.Client(t), "/v", "0")
	old := v.Get()
	first, ok, err := v.TrySet(ctx, old, []byte("1"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "1", string(first.Data))
	now, ok, err := v.TrySet(ctx, old, []byte("2"))
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, first, now)
	stat, err := raw.Set(w.Abs("/v"), []byte("other"), -1)
	require.NoError(t, err)
	now, ok, err = v.TrySet(ctx, first, []byte("2"))
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, Versioned{Data: []byte("other"), Version: stat.Version, Zxid: stat.Mzxid}, now)
	require.Equal(t, now, v.Get())
	_, _, err = v.TrySet(ctx, Versioned{Version: -1}, nil)
	require.ErrorIs(t, err, ErrVersion)
}

// A node that is made anew has the same versions again, and is another one.
func TestValueDeletedAndMade(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	v := newValue(t, w.Client(t), "/v", "old")
	old := v.Get()
	changes := v.Changes(ctx)
	require.NoError(t, raw.Delete(w.Abs("/v"), -1))
	gone := <-changes
	require.True(t, gone.Gone)
	require.Equal(t, "old", string(gone.Data), "it is what it was last")
	_, err := v.Set(ctx, []byte("x"))
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, _, err = v.TrySet(ctx, old, []byte("x"))
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, err = raw.Create(w.Abs("/v"), []byte("old"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	again := <-changes
	require.False(t, again.Gone)
	require.Equal(t, old.Version, again.Version)
	_, ok, err := v.TrySet(ctx, old, []byte("x"))
	require.NoError(t, err)
	require.False(t, ok)
	_, ok, err = v.TrySet(ctx, again, []byte("x"))
	require.NoError(t, err)
	require.True(t, ok)
}

func TestValueRefuses(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	c := w.Client(t)
	_, err := NewValue(recipestest.Context(t), c, "v", nil)
	require.ErrorIs(t, err, recipes.ErrPath)
	ended, end := context.WithCancelCause(recipestest.Context(t))
	end(zk.ErrNothing)
	_, err = NewValue(ended, c, "/v", nil)
	require.ErrorIs(t, err, zk.ErrNothing)
	closed := w.Client(t)
	v := newValue(t, closed, "/v", "x")
	changes := v.Changes(recipestest.Context(t))
	closed.Close()
	_, open := <-changes
	require.False(t, open, "changes end with the client")
	_, err = v.Set(recipestest.Context(t), nil)
	require.ErrorIs(t, err, recipes.ErrClosed)
	_, err = NewValue(recipestest.Context(t), closed, "/v", nil)
	require.ErrorIs(t, err, recipes.ErrClosed)
	require.Equal(t, "x", string(v.Get().Data))
}

// Changes come in order, the last one always, and end with Close.
func TestValueChanges(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	v := newValue(t, w.Client(t), "/v", "")
	lazy, eager := v.Changes(ctx), v.Changes(ctx)
	ended, end := context.WithCancel(ctx)
	dropped := v.Changes(ended)
	end()
	_, open := <-dropped
	require.False(t, open)
	const last = 50
	go func() {
		for i := 1; i <= last; i++ {
			if _, err := raw.Set(w.Abs("/v"), []byte(strconv.Itoa(i)), -1); err != nil {
				t.Error(err)
			}
		}
	}()
	before := int64(0)
	for at := range eager {
		require.Greater(t, at.Zxid, before)
		before = at.Zxid
		if string(at.Data) == fmt.Sprint(last) {
			break
		}
	}
	require.Equal(t, fmt.Sprint(last), string((<-lazy).Data), "it has overtaken what nobody took")
	v.Close()
	_, open = <-lazy
	require.False(t, open)
	_, open = <-v.Changes(ctx)
	require.False(t, open)
}

// Without a connection the last value is there, and grows old.
func TestValueDisconnected(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	raw := w.Raw(t)
	c, p, gate := w.Gated(t)
	_, err := raw.Create(w.Abs("/v"), []byte("known"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	v := newValue(t, c, "/v", "")
	gate.Hold()
	p.Cut()
	recipestest.Eventually(t, func() bool { return v.Age() > 0 }, "the value is doubted")
	age := v.Age()
	recipestest.Eventually(t, func() bool { return v.Age() > age+time.Millisecond }, "the value grows old")
	require.Equal(t, "known", string(v.Get().Data))
	_, err = raw.Set(w.Abs("/v"), []byte("new"), -1)
	require.NoError(t, err)
	gate.Release()
	holds(t, v, "new")
}

func TestValueLostReplies(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, p := w.Faulty(t)
	p.DropReply(servertest.OpCreate)
	v := newValue(t, c, "/v", "made")
	require.Equal(t, "made", string(v.Get().Data))
	p.DropRequest(servertest.OpCreate)
	require.Equal(t, "made too", string(newValue(t, c, "/v2", "made too").Get().Data))
	p.DropReply(servertest.OpSetData)
	_, err := v.Set(ctx, []byte("set"))
	require.ErrorIs(t, err, recipes.ErrUnknown)
	holds(t, v, "set")
	p.DropRequest(servertest.OpSetData)
	_, ok, err := v.TrySet(ctx, v.Get(), []byte("not set"))
	require.ErrorIs(t, err, recipes.ErrUnknown)
	require.False(t, ok)
	holds(t, v, "set")
}

// A new session may begin at a server that is behind, so it begins with a sync.
func TestValueSyncsInEachSession(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	v := newValue(t, c, "/v", "x")
	before := p.Requests(servertest.OpSync)
	require.Positive(t, before)
	p.Expire()
	recipestest.Eventually(t, func() bool { return p.Requests(servertest.OpSync) > before }, "the new session syncs")
	holds(t, v, "x")
}

// The value is followed through everything, and never goes back.
func TestValueUnderFaults(t *testing.T) {
	t.Parallel()
	recipestest.Together(t, recipestest.Faults(), func(t *testing.T, f recipestest.Fault) {
		w, c, p := f.Start(t)
		ctx, raw := recipestest.Context(t), w.Raw(t)
		v := newValue(t, c, "/v", "0")
		changes := v.Changes(ctx)
		set := func(i int) {
			recipestest.Eventually(t, func() bool {
				_, err := raw.Set(w.Abs("/v"), []byte(strconv.Itoa(i)), -1)
				return err == nil
			}, "the value is set")
		}
		set(1)
		f.Hurt(w, p)
		set(2)
		holds(t, v, "2")
		set(3)
		for last := int64(0); ; {
			at := <-changes
			require.Greater(t, at.Zxid, last)
			require.False(t, at.Gone)
			last = at.Zxid
			if string(at.Data) == "3" {
				break
			}
		}
	})
}

func TestCount(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw, c := recipestest.Context(t), w.Raw(t), w.Client(t)
	n, err := NewCount(ctx, c, "/n", -2)
	require.NoError(t, err)
	defer n.Close()
	data, _, err := raw.Get(w.Abs("/n"))
	require.NoError(t, err)
	require.Equal(t, []byte{255, 255, 255, 254}, data, "the layout of Curator")
	changes := n.Changes(ctx)
	old := n.Get()
	require.EqualValues(t, -2, old.Count)
	at, ok, err := n.TrySet(ctx, old, 5)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 5, at.Count)
	require.EqualValues(t, 5, (<-changes).Count)
	at, ok, err = n.TrySet(ctx, old, 6)
	require.NoError(t, err)
	require.False(t, ok)
	require.EqualValues(t, 5, at.Count)
	r, err := NewLong(c, "/n", LongOptions{Codec: Curator32}).Add(ctx, 10)
	require.NoError(t, err)
	require.EqualValues(t, 15, r.After)
	require.EqualValues(t, 15, (<-changes).Count)
	_, err = n.Set(ctx, 7)
	require.NoError(t, err)
	require.EqualValues(t, 7, (<-changes).Count)
	_, err = raw.Set(w.Abs("/n"), []byte("strange"), -1)
	require.NoError(t, err)
	require.ErrorIs(t, (<-changes).Err, ErrCorrupt)
	require.ErrorIs(t, n.Get().Err, ErrCorrupt)
	require.Zero(t, n.Value().Age())
	_, err = NewCount(ctx, c, "n", 0)
	require.ErrorIs(t, err, recipes.ErrPath)
}
