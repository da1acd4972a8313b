package barrier

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func exists(t *testing.T, raw *zk.Conn, path string) bool {
	t.Helper()
	found, _, err := raw.Exists(path)
	require.NoError(t, err)
	return found
}

// begin runs a call that waits.
func begin(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// waiting tells that a call has not returned.
func waiting(t *testing.T, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
}

func TestBarrier(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	here, there := New(w.Client(t), "/a/b"), New(w.Client(t), "/a/b")
	require.NoError(t, here.Wait(ctx), "what was never closed is open")
	removed, err := here.Remove(ctx)
	require.NoError(t, err)
	require.False(t, removed)
	require.NoError(t, here.Set(ctx))
	require.NoError(t, here.Set(ctx), "it may be closed already")
	_, stat, err := raw.Exists(w.Abs("/a/b"))
	require.NoError(t, err)
	require.Zero(t, stat.EphemeralOwner, "it outlives its maker")
	done := begin(func() error { return there.Wait(ctx) })
	_, err = raw.Set(w.Abs("/a/b"), []byte("x"), -1)
	require.NoError(t, err)
	require.NoError(t, there.c.Sync(ctx, "/"))
	waiting(t, done)
	removed, err = here.Remove(ctx)
	require.NoError(t, err)
	require.True(t, removed)
	require.NoError(t, <-done)
}

func TestBarrierRefuses(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	c := w.Client(t)
	b := New(c, "b")
	require.ErrorIs(t, b.Set(recipestest.Context(t)), recipes.ErrPath)
	require.ErrorIs(t, b.Wait(recipestest.Context(t)), recipes.ErrPath)
	_, err := b.Remove(recipestest.Context(t))
	require.ErrorIs(t, err, recipes.ErrPath)
	b = New(c, "/b")
	require.NoError(t, b.Set(recipestest.Context(t)))
	ctx, cancel := context.WithCancelCause(recipestest.Context(t))
	done := begin(func() error { return b.Wait(ctx) })
	cancel(zk.ErrNothing)
	require.ErrorIs(t, <-done, zk.ErrNothing)
	require.ErrorIs(t, b.Set(ctx), zk.ErrNothing)
	done = begin(func() error { return b.Wait(recipestest.Context(t)) })
	c.Close()
	require.ErrorIs(t, <-done, recipes.ErrClosed)
}

func TestBarrierLostReplies(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]func(p *servertest.Proxy, op int32){
		"reply":   func(p *servertest.Proxy, op int32) { p.DropReply(op) },
		"request": func(p *servertest.Proxy, op int32) { p.DropRequest(op) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := recipestest.Start(t)
			ctx, raw := recipestest.Context(t), w.Raw(t)
			c, p := w.Faulty(t)
			b := New(c, "/b")
			op(p, servertest.OpCreate)
			require.NoError(t, b.Set(ctx))
			require.True(t, exists(t, raw, w.Abs("/b")))
			op(p, servertest.OpDelete)
			removed, err := b.Remove(ctx)
			require.NoError(t, err)
			require.True(t, removed)
			require.False(t, exists(t, raw, w.Abs("/b")))
		})
	}
}

// A barrier that was removed by a call whose reply is lost, and set again by somebody else, stays.
func TestBarrierRemoveLeavesTheNextAlone(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	c, p, gate := w.Gated(t)
	b := New(c, "/b")
	require.NoError(t, b.Set(ctx))
	gate.Hold()
	states := c.States(ctx)
	p.DropReply(servertest.OpDelete)
	done := begin(func() error {
		removed, err := b.Remove(ctx)
		require.True(t, removed)
		return err
	})
	require.Equal(t, recipes.Suspended, <-states)
	_, err := raw.Create(w.Abs("/b"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	gate.Release()
	require.NoError(t, <-done)
	require.True(t, exists(t, raw, w.Abs("/b")))
}

// Who waits goes on waiting through everything, and does not miss the end.
func TestBarrierUnderFaults(t *testing.T) {
	t.Parallel()
	recipestest.Together(t, recipestest.Faults(), func(t *testing.T, f recipestest.Fault) {
		w, c, p := f.Start(t)
		ctx, other := recipestest.Context(t), New(w.Client(t), "/b")
		require.NoError(t, other.Set(ctx))
		b := New(c, "/b")
		before, after := begin(func() error { return b.Wait(ctx) }), begin(func() error { return b.Wait(ctx) })
		f.Hurt(w, p)
		_, err := c.AwaitSession(ctx)
		require.NoError(t, err)
		require.NoError(t, c.Sync(ctx, "/"))
		waiting(t, before)
		waiting(t, after)
		for {
			_, err := other.Remove(ctx)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, recipes.ErrUnknown)
		}
		require.NoError(t, <-before)
		require.NoError(t, <-after)
	})
}
