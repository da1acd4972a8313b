package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// faults are what every step of a queue has to bear. The requests of a queue that matter are transactions.
func faults(w *recipestest.World) map[string]func(*servertest.Proxy) {
	return map[string]func(*servertest.Proxy){
		"lost reply":      func(p *servertest.Proxy) { p.DropReply(opMulti) },
		"lost request":    func(p *servertest.Proxy) { p.DropRequest(opMulti) },
		"cut":             func(p *servertest.Proxy) { p.Cut() },
		"server restarts": func(*servertest.Proxy) { w.Restart() },
		"slow network":    func(p *servertest.Proxy) { p.Delay(10 * time.Millisecond) },
	}
}

func TestPutUnderFaults(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	raw := w.Raw(t)
	for fault, do := range faults(w) {
		t.Run(fault, func(t *testing.T) {
			ctx, path := recipestest.Context(t), "/put-"+newGUID()
			c, proxy := w.Faulty(t)
			q := newQueue(t, c, path, Options{})
			require.NoError(t, q.ensure(ctx))
			do(proxy)
			require.NoError(t, q.Put(ctx, []byte("a")))
			require.NoError(t, q.Put(ctx, []byte("b")))
			n, err := q.Len(ctx)
			require.NoError(t, err)
			require.Equal(t, 2, n)
			for _, want := range []string{"a", "b"} {
				e, err := q.Pop(ctx)
				require.NoError(t, err)
				require.Equal(t, want, string(e.Data()))
			}
			requireEmpty(t, w, raw, path)
		})
	}
}

// If the session ends with the reply, a put does not claim to know.
func TestPutIsDoubtful(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	q := newQueue(t, c, at, Options{})
	require.NoError(t, q.ensure(ctx))
	proxy.Refuse(true)
	proxy.DropReply(opMulti)
	failed := make(chan error)
	go func() { failed <- q.Put(ctx, []byte("a")) }()
	look := newQueue(t, w.Client(t), at, Options{})
	recipestest.Eventually(t, func() bool { n, err := look.Len(ctx); return err == nil && n == 1 }, "the entry is there")
	proxy.Expire()
	proxy.Refuse(false)
	require.ErrorIs(t, <-failed, ErrUnknown)
	requireNothingBut(t, w, w.Raw(t), at, 1)
}

// requireNothingBut waits until that many entries and no locks or marks are left.
func requireNothingBut(t *testing.T, w *recipestest.World, raw *zk.Conn, path string, entries int) {
	t.Helper()
	for dir, want := range map[string]int{path: entries, path + "-taken": 0, path + "-puts": 0} {
		recipestest.Eventually(t, func() bool {
			children, _, err := raw.Children(w.Abs(dir))
			return err == nil && len(children) == want
		}, fmt.Sprintf("%s has %d children", dir, want))
	}
}

func TestTakeUnderFaults(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	other, raw := w.Client(t), w.Raw(t)
	for fault, do := range faults(w) {
		t.Run("take, "+fault, func(t *testing.T) {
			ctx, path := recipestest.Context(t), "/take-"+newGUID()
			require.NoError(t, newQueue(t, other, path, Options{}).Put(ctx, []byte("a")))
			c, proxy := w.Faulty(t)
			q := newQueue(t, c, path, Options{})
			do(proxy)
			e := take(t, ctx, q.Taker)
			require.Equal(t, "a", string(e.Data()))
			require.NoError(t, e.Done(ctx))
			requireEmpty(t, w, raw, path)
		})
		t.Run("done, "+fault, func(t *testing.T) {
			ctx, path := recipestest.Context(t), "/done-"+newGUID()
			require.NoError(t, newQueue(t, other, path, Options{}).Put(ctx, []byte("a")))
			c, proxy := w.Faulty(t)
			e := take(t, ctx, newQueue(t, c, path, Options{}).Taker)
			do(proxy)
			require.NoError(t, e.Done(ctx))
			requireEmpty(t, w, raw, path)
		})
		t.Run("release, "+fault, func(t *testing.T) {
			ctx, path := recipestest.Context(t), "/release-"+newGUID()
			require.NoError(t, newQueue(t, other, path, Options{}).Put(ctx, []byte("a")))
			c, proxy := w.Faulty(t)
			e := take(t, ctx, newQueue(t, c, path, Options{}).Taker)
			do(proxy)
			require.NoError(t, e.Release(ctx))
			requireNothingBut(t, w, raw, path, 1)
			again := take(t, ctx, newQueue(t, other, path, Options{}).Taker)
			require.Greater(t, again.Token(), e.Token())
			require.ErrorIs(t, e.Done(ctx), ErrLost)
		})
	}
}

// A taker whose session expires loses the entry, and cannot remove it under the hands of the next one.
func TestExpiryWhileTaken(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	q, other := newQueue(t, c, at, Options{}), newQueue(t, w.Client(t), at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	first := take(t, ctx, q.Taker)
	proxy.Expire()
	<-first.Lost()
	second := take(t, ctx, other.Taker)
	require.Equal(t, "a", string(second.Data()))
	require.Equal(t, 2, second.Deliveries)
	require.Greater(t, second.Token(), first.Token())
	require.ErrorIs(t, first.Done(ctx), ErrLost)
	require.NoError(t, first.Release(ctx))
	require.NoError(t, second.Done(ctx))
	requireEmpty(t, w, w.Raw(t), at)

	require.NoError(t, q.Put(ctx, []byte("b")))
	third := take(t, ctx, q.Taker)
	proxy.Expire()
	<-third.Lost()
	require.NoError(t, third.Done(ctx), "nobody has taken it since")
	requireEmpty(t, w, w.Raw(t), at)
}

// When the session ends together with the reply of the removal, Pop says that it does not know, and gives what it has.
func TestPopIsDoubtful(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	q := newQueue(t, c, at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	e := take(t, ctx, q.Taker)
	proxy.Refuse(true)
	proxy.DropReply(opMulti)
	failed := make(chan error)
	go func() { failed <- e.Done(ctx) }()
	look := newQueue(t, w.Client(t), at, Options{})
	recipestest.Eventually(t, func() bool { n, err := look.Len(ctx); return err == nil && n == 0 }, "the entry is removed")
	proxy.Expire()
	proxy.Refuse(false)
	require.ErrorIs(t, <-failed, ErrLost)
	require.True(t, e.doubtful)
	requireEmpty(t, w, w.Raw(t), at)
}

// A take that is given up locks nothing, even if the server carries out its request.
func TestTakeGivenUp(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	other := newQueue(t, w.Client(t), at, Options{})
	require.NoError(t, other.Put(ctx, []byte("a")))
	c, proxy := w.Faulty(t)
	q := newQueue(t, c, at, Options{})
	require.NoError(t, q.ensure(ctx))
	proxy.Refuse(true)
	proxy.DropReply(opMulti)
	over, cancel := context.WithCancel(ctx)
	failed := make(chan error)
	go func() {
		_, err := q.Take(over)
		failed <- err
	}()
	recipestest.Eventually(t, func() bool {
		locks, _, err := raw.Children(w.Abs(at + "-taken"))
		return err == nil && len(locks) == 1
	}, "the lock is there, but the reply is lost")
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	proxy.Refuse(false)
	requireNothingBut(t, w, w.Raw(t), at, 1)
	e := take(t, ctx, q.Taker)
	require.Equal(t, "a", string(e.Data()), "the same queue finds it again")
	require.NoError(t, e.Done(ctx))
}

func TestReleaseGivenUp(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, proxy := w.Faulty(t)
	q := newQueue(t, c, at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	e := take(t, ctx, q.Taker)
	proxy.Freeze()
	over, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, e.Release(over), context.Canceled)
	proxy.Thaw()
	requireNothingBut(t, w, w.Raw(t), at, 1)
}

func TestQueueOverLeaderChange(t *testing.T) {
	t.Parallel()
	w := recipestest.StartThree(t)
	ctx := recipestest.Context(t)
	q, other := newQueue(t, w.Client(t), at, Options{}), newQueue(t, w.Client(t), at, Options{})
	require.NoError(t, q.Put(ctx, []byte("a")))
	waiting := make(chan *Entry)
	e := take(t, ctx, q.Taker)
	go func() {
		e, err := other.Take(ctx)
		if err != nil {
			t.Error(err)
		}
		waiting <- e
	}()
	w.ChangeLeader()
	require.NoError(t, q.Put(ctx, []byte("b")))
	b := <-waiting
	if string(b.Data()) == "b" { // else the session of q did not live through the change, and this is a again
		require.NoError(t, e.Done(ctx))
	}
	require.NoError(t, b.Done(ctx))
}

// Random faults on putters and takers: every entry that was put is finished, and none by two takers.
func TestQueueRandomly(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	seed := recipestest.Seed(t)
	ctx := recipestest.Context(t)
	const entries, takers = 24, 3
	var mu sync.Mutex
	done, doubtful := map[string]int{}, map[string]bool{}
	finished := func() bool {
		mu.Lock()
		defer mu.Unlock()
		for i := range entries {
			if key := fmt.Sprint(i); done[key] == 0 && !doubtful[key] {
				return false
			}
		}
		return true
	}
	stop, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	for n := range takers {
		c, proxy := w.Faulty(t)
		q, random := newQueue(t, c, at, Options{}), rand.New(rand.NewPCG(seed, uint64(n)))
		work.Go(func() {
			for stop.Err() == nil {
				shake(random, proxy)
				e, err := q.Take(stop)
				if err != nil {
					continue
				}
				shake(random, proxy)
				if random.IntN(4) == 0 {
					e.Release(stop)
					continue
				}
				err = e.Done(ctx)
				mu.Lock()
				key := string(e.Data())
				if err == nil {
					done[key]++
				} else if e.doubtful {
					doubtful[key] = true
				}
				mu.Unlock()
			}
		})
	}
	c, proxy := w.Faulty(t)
	q, random := newQueue(t, c, at, Options{}), rand.New(rand.NewPCG(seed, takers))
	for i := range entries {
		shake(random, proxy)
		if err := q.Put(ctx, fmt.Append(nil, i)); err != nil {
			require.ErrorIs(t, err, ErrUnknown)
			mu.Lock()
			doubtful[fmt.Sprint(i)] = true
			mu.Unlock()
		}
	}
	recipestest.Eventually(t, finished, "every entry is finished")
	cancel()
	work.Wait()
	for key, times := range done {
		require.Equal(t, 1, times, key)
	}
	require.Less(t, len(doubtful), entries/2)
	raw := w.Raw(t)
	recipestest.Eventually(t, func() bool {
		locks, _, err := raw.Children(w.Abs(at + "-taken"))
		return err == nil && len(locks) == 0 || err == zk.ErrNoNode
	}, "no lock is left")
}

// shake makes trouble, sometimes.
func shake(random *rand.Rand, proxy *servertest.Proxy) {
	switch random.IntN(12) {
	case 0:
		proxy.Cut()
	case 1:
		proxy.DropReply(opMulti)
	case 2:
		proxy.DropRequest(opMulti)
	case 3:
		proxy.Expire()
	case 4:
		proxy.DropReply(opCreate)
	}
}

// When connections break one after the other, package zk forgets that it has not been told of a change: the second time it
// asks as of the last reply it has had.
func TestTakeOnFlappingConnection(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	other := newQueue(t, w.Client(t), at, Options{})
	c, proxy := w.Faulty(t)
	q := newQueue(t, c, at, Options{})
	for _, text := range []string{"a", "b"} {
		require.NoError(t, other.Put(ctx, []byte(text)))
		e := take(t, ctx, q.Taker) // now the list is read, and watched
		require.NoError(t, e.Done(ctx))
		got := make(chan error)
		go func() {
			e, err := q.Take(ctx)
			if err == nil {
				err = e.Done(ctx)
			}
			got <- err
		}()
		recipestest.Eventually(t, func() bool { return waits(q.Taker) }, "the taker waits")
		proxy.Refuse(true)
		proxy.Cut()
		recipestest.Eventually(t, func() bool { return !c.State().IsConnected() }, "the connection is lost")
		require.NoError(t, other.Put(ctx, []byte(text)))
		read := make(chan error)
		go func() {
			_, _, err := c.Get(ctx, "/") // waits in front of the watches
			read <- err
		}()
		proxy.DropRequest(opSetWatches)
		proxy.Refuse(false)
		require.NoError(t, <-read)
		require.NoError(t, <-got)
	}
}

// waits tells whether the list is read and used up, and nothing has changed since.
func waits(t *Taker) bool {
	t.gate <- struct{}{}
	defer func() { <-t.gate }()
	v := &t.view
	return len(v.candidates) == 0 && !fired(v.watch) && !fired(v.lockWatch) && !fired(v.redo)
}
