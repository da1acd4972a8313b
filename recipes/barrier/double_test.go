package barrier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func newDouble(t *testing.T, c *recipes.Client, members int) *Double {
	t.Helper()
	d, err := NewDouble(c, "/a/d", members)
	require.NoError(t, err)
	return d
}

type entered struct {
	m   *Member
	err error
}

func enter(ctx context.Context, d *Double) <-chan entered {
	done := make(chan entered, 1)
	go func() {
		m, err := d.Enter(ctx)
		done <- entered{m, err}
	}()
	return done
}

func notYet(t *testing.T, done <-chan entered) {
	t.Helper()
	select {
	case e := <-done:
		t.Fatalf("it did not wait: %v", e.err)
	default:
	}
}

func got(t *testing.T, done <-chan entered) *Member {
	t.Helper()
	e := <-done
	require.NoError(t, e.err)
	return e.m
}

// nodes are the names below the barrier.
func nodes(t *testing.T, w *recipestest.World, raw *zk.Conn) []string {
	t.Helper()
	names, _, err := raw.Children(w.Abs("/a/d"))
	if err == zk.ErrNoNode {
		return nil
	}
	require.NoError(t, err)
	return names
}

// joined waits until so many members are there.
func joined(t *testing.T, w *recipestest.World, raw *zk.Conn, n int) {
	t.Helper()
	recipestest.Eventually(t, func() bool {
		names := nodes(t, w, raw)
		members := 0
		for _, name := range names {
			if name != readyName {
				members++
			}
		}
		return members == n
	}, fmt.Sprint(n, " members are there"))
}

func TestDouble(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	for round := range 3 { // one after the other, by the same three
		var all []*Double
		var in []<-chan entered
		for i := range 3 {
			all = append(all, newDouble(t, w.Client(t), 3))
			for _, done := range in {
				notYet(t, done)
			}
			in = append(in, enter(ctx, all[i]))
			if i < 2 {
				joined(t, w, raw, i+1)
			}
		}
		var members []*Member
		for _, done := range in {
			members = append(members, got(t, done))
		}
		require.Contains(t, nodes(t, w, raw), readyName)
		require.Len(t, nodes(t, w, raw), 4, "round %d", round)
		a := begin(func() error { return members[0].Leave(ctx) })
		b := begin(func() error { return members[1].Leave(ctx) })
		require.NoError(t, all[0].c.Sync(ctx, "/"))
		waiting(t, a)
		waiting(t, b)
		require.NoError(t, members[2].Leave(ctx))
		require.NoError(t, <-a)
		require.NoError(t, <-b)
		require.Empty(t, nodes(t, w, raw), "nothing is left behind")
	}
}

func TestDoubleRefuses(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	c := w.Client(t)
	_, err := NewDouble(c, "/a/d", 0)
	require.ErrorIs(t, err, ErrMembers)
	d, err := NewDouble(c, "d", 1)
	require.NoError(t, err)
	_, err = d.Enter(recipestest.Context(t))
	require.ErrorIs(t, err, recipes.ErrPath)
}

// Members count, wherever they come from; more than are needed may come.
func TestDoubleLatecomer(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	d := newDouble(t, w.Client(t), 2)
	first, second := enter(ctx, d), enter(ctx, d)
	a, b := got(t, first), got(t, second)
	late, err := d.Enter(ctx)
	require.NoError(t, err)
	leaving := []<-chan error{begin(func() error { return a.Leave(ctx) }), begin(func() error { return b.Leave(ctx) })}
	for _, done := range leaving {
		waiting(t, done)
	}
	require.NoError(t, late.Leave(ctx))
	for _, done := range leaving {
		require.NoError(t, <-done)
	}
	require.Empty(t, nodes(t, w, raw))
}

// Who gives up is not counted.
func TestDoubleEnterCancelled(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	d := newDouble(t, w.Client(t), 2)
	short, cancel := context.WithCancelCause(ctx)
	done := enter(short, d)
	joined(t, w, raw, 1)
	cancel(zk.ErrNothing)
	require.ErrorIs(t, (<-done).err, zk.ErrNothing)
	joined(t, w, raw, 0)
	done = enter(ctx, d)
	joined(t, w, raw, 1)
	notYet(t, done)
	other := got(t, enter(ctx, d))
	got(t, done)
	// Who does not wait for the others to leave is gone all the same.
	short, cancel = context.WithCancelCause(ctx)
	leaving := begin(func() error { return other.Leave(short) })
	cancel(zk.ErrNothing)
	require.ErrorIs(t, <-leaving, zk.ErrNothing)
	joined(t, w, raw, 1)
	m, err := d.Enter(ctx)
	require.NoError(t, err, "the round goes on")
	require.Equal(t, 2, len(nodes(t, w, raw))-1)
	again := begin(func() error { return other.Leave(ctx) })
	require.NoError(t, w.Raw(t).Delete(m.d.c.Path(m.Path()), -1))
	require.ErrorIs(t, m.Leave(ctx), ErrRemoved)
	waiting(t, again)
}

// A "ready" that a crash has left behind opens nothing, also for members that come at the same time.
func TestDoubleStaleReady(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	c := w.Client(t)
	d := newDouble(t, c, 3)
	require.NoError(t, c.EnsurePath(ctx, "/a/d"))
	_, err := raw.Create(w.Abs("/a/d/ready"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	in := []<-chan entered{enter(ctx, d), enter(ctx, d)}
	joined(t, w, raw, 2)
	recipestest.Eventually(t, func() bool { return !exists(t, raw, w.Abs("/a/d/ready")) }, "ready is swept")
	for _, done := range in {
		notYet(t, done)
	}
	in = append(in, enter(ctx, d))
	var all []<-chan error
	for _, done := range in {
		m := got(t, done)
		all = append(all, begin(func() error { return m.Leave(ctx) }))
	}
	for _, done := range all {
		require.NoError(t, <-done)
	}
	require.Empty(t, nodes(t, w, raw))
}

// A member that dies inside does not hold up the others, whether it would have been the first or the last to leave.
func TestDoubleMemberDies(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	for range 4 { // the names, and so the parts, are random
		mortal := w.Client(t)
		d := newDouble(t, w.Client(t), 3)
		in := []<-chan entered{enter(ctx, newDouble(t, mortal, 3)), enter(ctx, d), enter(ctx, d)}
		dead, a, b := got(t, in[0]), got(t, in[1]), got(t, in[2])
		first, second := begin(func() error { return a.Leave(ctx) }), begin(func() error { return b.Leave(ctx) })
		waiting(t, first)
		waiting(t, second)
		mortal.Close()
		<-dead.Lost()
		require.NoError(t, <-first)
		require.NoError(t, <-second)
		require.Empty(t, nodes(t, w, raw))
	}
	// One that dies before is not counted.
	mortal := w.Client(t)
	in := enter(ctx, newDouble(t, mortal, 2))
	joined(t, w, raw, 1)
	mortal.Close()
	require.Error(t, (<-in).err)
	d := newDouble(t, w.Client(t), 2)
	done := enter(ctx, d)
	joined(t, w, raw, 1)
	notYet(t, done)
	got(t, enter(ctx, d))
	got(t, done)
}

// counted waits until the client's member has counted the others, and so waits for them.
func counted(t *testing.T, c *recipes.Client, p *servertest.Proxy) {
	t.Helper()
	recipestest.Eventually(t, func() bool { return p.Requests(servertest.OpGetChildren2) > 0 }, "the member counts")
	require.NoError(t, c.Sync(recipestest.Context(t), "/"), "which is answered after that")
}

// "ready" need not exist any more when a member hears of it.
func TestDoubleReadyComesAndGoes(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	c, p := w.Faulty(t)
	in := enter(ctx, newDouble(t, c, 2))
	counted(t, c, p)
	ready := w.Abs("/a/d/ready")
	_, err := raw.Multi(&zk.CreateRequest{Path: ready, Acl: zk.WorldACL(zk.PermAll)}, &zk.DeleteRequest{Path: ready, Version: -1})
	require.NoError(t, err)
	got(t, in)
}

// Who cannot be sure of his session any more stops waiting, also without a connection.
func TestDoubleLeaseRunsOut(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	c, p, gate := w.Gated(t)
	d := newDouble(t, c, 2)
	in := enter(ctx, d)
	counted(t, c, p)
	gate.Hold()
	p.Cut()
	require.ErrorIs(t, (<-in).err, recipes.ErrSessionLost)
	gate.Release()
	joined(t, w, raw, 0)

	one, two := enter(ctx, d), enter(ctx, d)
	first, last := got(t, one), got(t, two)
	if first.own > last.own {
		first, last = last, first
	}
	watched := p.Requests(servertest.OpGetData)
	leaving := begin(func() error { return first.Leave(ctx) })
	recipestest.Eventually(t, func() bool { return p.Requests(servertest.OpGetData) > watched }, "the first watches the last")
	require.NoError(t, c.Sync(ctx, "/"))
	gate.Hold()
	p.Cut()
	require.ErrorIs(t, <-leaving, recipes.ErrSessionLost)
	<-last.Lost()
	gate.Release()
	if err := last.Leave(ctx); err != nil { // the ensemble may have kept the session, and the node with it
		require.ErrorIs(t, err, recipes.ErrSessionLost)
	}
	joined(t, w, raw, 0)
}

// Who leaves waits for those that were there, and not for a member that came later. The member with the smallest name
// stays until the others have left.
func TestDoubleNextRound(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	c, p := w.Faulty(t)
	d := newDouble(t, c, 2)
	for range 4 { // the names, and so the parts, are random
		mortal := w.Client(t)
		first, second := enter(ctx, d), enter(ctx, newDouble(t, mortal, 2))
		a, b := got(t, first), got(t, second)
		watched := p.Requests(servertest.OpGetData)
		leaving := begin(func() error { return a.Leave(ctx) })
		recipestest.Eventually(t, func() bool { return p.Requests(servertest.OpGetData) > watched }, "the member watches the other")
		if a.own > b.own {
			recipestest.Eventually(t, func() bool {
				stat, err := c.Exists(ctx, a.Path())
				return err == nil && stat == nil
			}, "the member has gone")
			require.NoError(t, c.Delete(ctx, d.ready, -1)) // and the next round has begun
			_, err := c.Create(ctx, d.ready, nil, 0)
			require.NoError(t, err)
		}
		waiting(t, leaving)
		next, err := d.Enter(ctx)
		require.NoError(t, err)
		if a.own < b.own {
			stat, err := c.Exists(ctx, a.Path())
			require.NoError(t, err)
			require.NotNil(t, stat)
		}
		mortal.Close()
		require.NoError(t, <-leaving)
		if a.own > b.own {
			stat, err := c.Exists(ctx, d.ready)
			require.NoError(t, err)
			require.NotNil(t, stat, "it is not the one of the round that has ended")
		}
		require.NoError(t, next.Leave(ctx))
	}
}

func TestDoubleLostReplies(t *testing.T) {
	t.Parallel()
	type drop func(p *servertest.Proxy, op int32)
	reply, request := drop((*servertest.Proxy).DropReply), drop((*servertest.Proxy).DropRequest)
	for name, d := range map[string]drop{"reply": reply, "request": request} {
		for _, op := range []struct {
			name string
			code int32
		}{{"create", servertest.OpCreate}, {"delete", servertest.OpDelete}, {"transaction", servertest.OpMulti}, {"children", servertest.OpGetChildren2}} {
			t.Run(op.name+"'s "+name, func(t *testing.T) {
				t.Parallel()
				w := recipestest.Start(t)
				ctx, raw := recipestest.Context(t), w.Raw(t)
				c, p := w.Faulty(t)
				here, there := newDouble(t, c, 2), newDouble(t, w.Client(t), 2)
				for range 3 {
					in := enter(ctx, there)
					joined(t, w, raw, 1)
					d(p, op.code) // the own node's create
					d(p, op.code) // and that of "ready"
					a, b := got(t, enter(ctx, here)), got(t, in)
					require.Len(t, nodes(t, w, raw), 3)
					left := begin(func() error { return b.Leave(ctx) })
					require.NoError(t, a.Leave(ctx))
					require.NoError(t, <-left)
					require.Empty(t, nodes(t, w, raw))
				}
			})
		}
	}
}

// Faults while somebody waits to enter, and while somebody waits to leave.
func TestDoubleUnderFaults(t *testing.T) {
	t.Parallel()
	recipestest.Together(t, recipestest.Faults(), func(t *testing.T, f recipestest.Fault) {
		w, c, p := f.Start(t)
		ctx, raw := recipestest.Context(t), w.Raw(t)
		here, there := newDouble(t, c, 2), newDouble(t, w.Client(t), 2)
		var lost atomic.Int32
		in := make(chan entered, 1)
		go func() {
			for {
				m, err := here.Enter(ctx)
				if !errors.Is(err, recipes.ErrSessionLost) {
					in <- entered{m, err}
					return
				}
				lost.Add(1) // on a slow machine a session may end by itself
			}
		}()
		joined(t, w, raw, 1)
		f.Hurt(w, p)
		if f.Expires {
			recipestest.Eventually(t, func() bool { return lost.Load() == 1 }, "the session is known to be lost")
			joined(t, w, raw, 1)
		}
		b := got(t, enter(ctx, there))
		a := got(t, in)
		leaving := begin(func() error { return a.Leave(ctx) })
		f.Hurt(w, p)
		if !f.Expires && c.Session() == a.node.Session {
			waiting(t, leaving)
		}
		require.NoError(t, b.Leave(ctx))
		if err := <-leaving; err != nil { // its node was gone before it began to leave
			require.ErrorIs(t, err, recipes.ErrSessionLost)
			<-a.Lost()
		}
		recipestest.Eventually(t, func() bool { return len(nodes(t, w, raw)) == 0 }, "nothing is left behind")
	})
}

// In each round nobody begins before all are there, and nobody ends before all are done, whatever the network does.
func TestDoubleRandomly(t *testing.T) {
	t.Parallel()
	seed := recipestest.Seed(t)
	for i := range uint64(5) {
		if doubleRandomly(t, seed+i) {
			return
		}
	}
	t.Error("in none of five runs all sessions lived to the end, and these faults end none")
}

// doubleRandomly runs one schedule. It is false if a session has ended, which happens by itself on a machine that is too slow.
func doubleRandomly(t *testing.T, seed uint64) bool {
	w := recipestest.Start(t)
	ctx, cancel := context.WithCancelCause(recipestest.Context(t))
	const members, rounds, hits = 3, 8, 60
	var arrived, finished [rounds]atomic.Int32
	var proxies []*servertest.Proxy
	var all sync.WaitGroup
	fail := func(r int, err error) {
		switch {
		case errors.Is(err, recipes.ErrSessionLost): // none ends by these faults
			cancel(errSlow)
		case !errors.Is(err, errSlow):
			t.Errorf("round %d: %v", r, err)
		}
	}
	for range members {
		c, p := w.Faulty(t)
		proxies = append(proxies, p)
		d := newDouble(t, c, members)
		all.Go(func() {
			for r := range rounds {
				arrived[r].Add(1)
				m, err := d.Enter(ctx)
				if err != nil {
					fail(r, err)
					return
				}
				if n := arrived[r].Load(); n != members {
					t.Errorf("round %d began with %d", r, n)
				}
				finished[r].Add(1)
				if err := m.Leave(ctx); err != nil {
					fail(r, err)
					return
				}
				if n := finished[r].Load(); n != members {
					t.Errorf("round %d ended with %d", r, n)
				}
			}
		})
	}
	over := make(chan struct{})
	go func() {
		all.Wait()
		close(over)
	}()
	rng := rand.New(rand.NewPCG(seed, 0))
	ops := []int32{servertest.OpCreate, servertest.OpDelete, servertest.OpMulti, servertest.OpExists, servertest.OpGetData}
	for range hits { // no more than that: on a slow machine they would come faster than anything can be done
		p := proxies[rng.IntN(members)]
		switch op := ops[rng.IntN(len(ops))]; rng.IntN(3) {
		case 0:
			p.Cut()
		case 1:
			p.DropReply(op)
		case 2:
			p.DropRequest(op)
		}
		select {
		case <-over:
			return context.Cause(ctx) != errSlow
		case <-time.After(time.Duration(rng.IntN(50)) * time.Millisecond): // between two faults
		}
	}
	<-over
	return context.Cause(ctx) != errSlow
}

var errSlow = errors.New("a session has ended")

func TestNotKazoo(t *testing.T) {
	t.Parallel()
	require.False(t, notKazoo(strings.Repeat("0f", 16)))
	require.True(t, notKazoo("_c_5c2a4ae0-0000-4000-8000-000000000000-member"))
	require.True(t, notKazoo("5c2a4ae0-0000-4000-8000-000000000000"))
	require.True(t, notKazoo(strings.Repeat("0F", 16)))
}
