package lock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestFence(t *testing.T) {
	var f Fence
	require.Zero(t, f.Token())
	require.ErrorIs(t, f.Check(0), ErrFenced, "what is no token")
	require.ErrorIs(t, f.Check(-1), ErrFenced)
	require.NoError(t, f.Check(5))
	require.NoError(t, f.Check(5), "the same holder again")
	require.ErrorIs(t, f.Check(4), ErrFenced)
	require.NoError(t, f.Check(6))
	require.ErrorIs(t, f.Check(5), ErrFenced)
	require.EqualValues(t, 6, f.Token())

	failed := errors.New("failed")
	require.ErrorIs(t, f.Do(7, func() error { return failed }), failed)
	require.EqualValues(t, 7, f.Token(), "a token counts even if the access fails")
	require.ErrorIs(t, f.Do(6, func() error { panic("must not run") }), ErrFenced)
}

func TestFenceForReaders(t *testing.T) {
	var f Fence
	require.NoError(t, f.CheckShared(7))
	require.NoError(t, f.CheckShared(5), "readers come in any order")
	require.ErrorIs(t, f.Check(6), ErrFenced, "a writer from before a reader")
	require.NoError(t, f.Check(8))
	require.ErrorIs(t, f.CheckShared(7), ErrFenced, "a reader from before a writer")
	require.NoError(t, f.CheckShared(8), "a writer's own reader")
	require.ErrorIs(t, f.CheckShared(0), ErrFenced)
}

// TestFenceLetsNobodyInBetween has many holders come at once: the accesses that run see tokens that never go back, one at a time.
func TestFenceLetsNobodyInBetween(t *testing.T) {
	const holders = 50
	var f Fence
	var last int64
	var inside atomic.Int32
	var all sync.WaitGroup
	for token := range int64(holders) {
		all.Go(func() {
			err := f.Do(token+1, func() error {
				if inside.Add(1) != 1 || token+1 < last {
					t.Errorf("token %d after %d", token+1, last)
				}
				last = token + 1
				inside.Add(-1)
				return nil
			})
			if err != nil && !errors.Is(err, ErrFenced) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, holders, last, "the youngest is never refused")
}

// row is a Store as a database would be one.
type row struct {
	mu    sync.Mutex
	token int64
	// meanwhile is called before each comparison.
	meanwhile func(*row)
	err       error
}

func (r *row) Load(context.Context) (int64, error) { return r.token, r.err }

func (r *row) CompareAndSet(_ context.Context, old, new int64) (bool, error) {
	if r.meanwhile != nil {
		r.meanwhile(r)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.token != old {
		return false, r.err
	}
	r.token = new
	return true, r.err
}

func TestCheckStored(t *testing.T) {
	ctx := recipestest.Context(t)
	var r row
	require.NoError(t, CheckStored(ctx, &r, 5))
	require.NoError(t, CheckStored(ctx, &r, 5))
	require.ErrorIs(t, CheckStored(ctx, &r, 4), ErrFenced)
	r.meanwhile = func(r *row) { r.token = 9 }
	require.ErrorIs(t, CheckStored(ctx, &r, 8), ErrFenced, "overtaken")
	require.NoError(t, CheckStored(ctx, &r, 10-1))
	r.meanwhile = func(r *row) { r.token++ } // somebody is always faster
	short, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, CheckStored(short, &r, 1000), context.Canceled)
	r.err = errors.New("no database")
	require.ErrorIs(t, CheckStored(ctx, &r, 2000), r.err)
}

func TestNodeFence(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	f := NewNodeFence(c, "/app/resource/fence")
	require.ErrorIs(t, f.Check(ctx, 0), ErrFenced)
	require.NoError(t, f.Check(ctx, 5))
	require.NoError(t, f.Check(ctx, 5))
	require.ErrorIs(t, f.Check(ctx, 4), ErrFenced)
	require.NoError(t, NewNodeFence(w.Client(t), "/app/resource/fence").Check(ctx, 6))
	require.ErrorIs(t, f.Check(ctx, 5), ErrFenced, "another process has been here")
	data, _, err := c.Get(ctx, "/app/resource/fence")
	require.NoError(t, err)
	require.Equal(t, "6", string(data))

	_, err = c.Set(ctx, "/app/resource/fence", []byte("six"), -1)
	require.NoError(t, err)
	require.ErrorContains(t, f.Check(ctx, 7), "holds no token")
}

func TestNodeFenceCommits(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c := w.Client(t)
	f := NewNodeFence(c, "/fence")
	_, err := c.Create(ctx, "/resource", []byte("new"), zk.FlagPersistent)
	require.NoError(t, err)
	write := func(text string) func(*recipes.Txn) {
		return func(txn *recipes.Txn) { txn.Set("/resource", []byte(text), -1) }
	}
	responses, err := f.Commit(ctx, 5, write("five"))
	require.NoError(t, err)
	require.Len(t, responses, 2)

	// A younger holder comes in between the look at the fence and the transaction.
	calls := 0
	_, err = f.Commit(ctx, 5, func(txn *recipes.Txn) {
		calls++
		require.NoError(t, NewNodeFence(c, "/fence").Check(ctx, 6))
		write("late")(txn)
	})
	require.ErrorIs(t, err, ErrFenced)
	require.Equal(t, 1, calls)
	// One that is older than this holder does no harm.
	require.NoError(t, c.Delete(ctx, "/fence", -1))
	_, err = f.Commit(ctx, 8, func(txn *recipes.Txn) {
		if calls++; calls == 2 {
			require.NoError(t, c.Delete(ctx, "/fence", -1))
		}
		write("eight")(txn)
	})
	require.NoError(t, err)
	require.Equal(t, 3, calls, "tried again with the fence of now")

	_, err = f.Commit(ctx, 8, func(txn *recipes.Txn) { txn.Set("/resource", nil, 77) })
	require.ErrorIs(t, err, zk.ErrBadVersion, "the caller's own operation")
	_, err = f.Commit(ctx, 8, func(txn *recipes.Txn) { txn.Delete("/nothing", -1) })
	require.ErrorIs(t, err, zk.ErrNoNode)
	data, _, err := c.Get(ctx, "/resource")
	require.NoError(t, err)
	require.Equal(t, "eight", string(data))
}

// TestNodeFenceAfterLostReplies: a check whose reply is lost is looked up.
func TestNodeFenceAfterLostReplies(t *testing.T) {
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	f := NewNodeFence(c, "/fence")
	for token, op := range []int32{0, servertest.OpCreate, servertest.OpSetData} {
		if token > 0 {
			proxy.DropReply(op)
			require.NoError(t, f.Check(ctx, int64(token)))
		}
	}
	require.ErrorIs(t, f.Check(ctx, 1), ErrFenced)
	proxy.DropReply(servertest.OpMulti)
	_, err := f.Commit(ctx, 3, func(txn *recipes.Txn) { txn.Create("/made", nil, zk.FlagPersistent) })
	require.ErrorIs(t, err, recipes.ErrUnknown)
	stat, err := c.Exists(ctx, "/made")
	require.NoError(t, err)
	require.NotNil(t, stat)
}
