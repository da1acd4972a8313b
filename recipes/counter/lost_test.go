package counter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestLongLostOnTheWay(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(*servertest.Proxy){
		"reply":   func(p *servertest.Proxy) { p.DropReply(servertest.OpMulti) },
		"request": func(p *servertest.Proxy) { p.DropRequest(servertest.OpMulti) },
		"reply, and then that of the look": func(p *servertest.Proxy) {
			p.DropReply(servertest.OpMulti)
			p.DropReply(servertest.OpSync)
		},
		"request, and then the reply to the fence": func(p *servertest.Proxy) {
			p.DropRequest(servertest.OpMulti)
			p.DropReply(servertest.OpSetData)
		},
		"request, and then the fence": func(p *servertest.Proxy) {
			p.DropRequest(servertest.OpMulti)
			p.DropRequest(servertest.OpSetData)
		},
		"reply to the mark's create": func(p *servertest.Proxy) { p.DropReply(servertest.OpCreate) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := recipestest.Start(t)
			ctx := recipestest.Context(t)
			c, p := w.Faulty(t)
			l := NewLong(c, "/n", LongOptions{})
			for want := int64(1); want <= 3; want++ { // the first one makes the node
				drop(p)
				r, err := l.Add(ctx, 1)
				require.NoError(t, err)
				require.Equal(t, Result{Before: want - 1, After: want, Optimistic: true, Tries: 1}, r)
			}
			_, stat, err := w.Raw(t).Get(w.Abs("/n"))
			require.NoError(t, err)
			require.EqualValues(t, 2, stat.Version)
		})
	}
}

// lostWithSession begins a change whose connection breaks, and ends the session before anybody can look at the mark.
func lostWithSession(t *testing.T, initial string, drop func(*servertest.Proxy), meanwhile func(w *recipestest.World, raw *zk.Conn)) (Result, error, string) {
	w := recipestest.Start(t)
	ctx, raw := recipestest.Context(t), w.Raw(t)
	c, p, gate := w.Gated(t)
	l := NewLong(c, "/n", LongOptions{Codec: KazooText})
	require.NoError(t, l.prepare(ctx)) // the mark
	if initial != "" {
		_, err := raw.Create(w.Abs("/n"), []byte(initial), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	gate.Hold() // only the connection that is there serves
	states := c.States(ctx)
	drop(p)
	type outcome struct {
		r   Result
		err error
	}
	out := make(chan outcome, 1)
	go func() {
		r, err := l.Add(ctx, 1)
		out <- outcome{r, err}
	}()
	require.Equal(t, recipes.Suspended, <-states)
	p.Expire()
	meanwhile(w, raw)
	gate.Release()
	o := <-out
	data, _, err := raw.Get(w.Abs("/n"))
	if err != zk.ErrNoNode {
		require.NoError(t, err)
	}
	return o.r, o.err, string(data)
}

func TestLongLostWithTheSession(t *testing.T) {
	t.Parallel()
	reply := func(p *servertest.Proxy) { p.DropReply(servertest.OpMulti) }
	request := func(p *servertest.Proxy) { p.DropRequest(servertest.OpMulti) }
	nothing := func(*recipestest.World, *zk.Conn) {}
	set := func(text string) func(w *recipestest.World, raw *zk.Conn) {
		return func(w *recipestest.World, raw *zk.Conn) {
			_, err := raw.Set(w.Abs("/n"), []byte(text), -1)
			require.NoError(t, err)
		}
	}
	type lost struct {
		initial   string
		drop      func(*servertest.Proxy)
		meanwhile func(*recipestest.World, *zk.Conn)
		unknown   bool
		value     string
	}
	cases := map[string]lost{
		"carried out":                        {"5", reply, nothing, true, "6"},
		"carried out, changed again":         {"5", reply, set("50"), true, "50"},
		"not sent":                           {"5", request, nothing, false, "6"},
		"not sent, changed by somebody else": {"5", request, set("50"), false, "51"},
		"not sent, changed to the same by somebody else": {"5", request, set("6"), true, "6"},
		"not sent, no node": {"", request, nothing, true, ""},
	}
	recipestest.Together(t, cases, func(t *testing.T, c lost) {
		r, err, value := lostWithSession(t, c.initial, c.drop, c.meanwhile)
		require.Equal(t, c.value, value)
		if !c.unknown {
			require.NoError(t, err)
			require.Equal(t, value, fmt.Sprint(r.After))
			return
		}
		var u *UnknownError
		require.ErrorAs(t, err, &u)
		require.ErrorIs(t, err, recipes.ErrUnknown)
		require.EqualValues(t, u.Before+1, u.After)
		_, again := u.Resolve(recipestest.Context(t))
		require.ErrorIs(t, again, recipes.ErrUnknown, "nobody can tell, now or later")
	})
}

// A context that ends before the answer leaves a change that can be resolved later.
func TestLongResolve(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		drop func(*servertest.Proxy)
		done bool
	}{
		"reply":   {func(p *servertest.Proxy) { p.DropReply(servertest.OpMulti) }, true},
		"request": {func(p *servertest.Proxy) { p.DropRequest(servertest.OpMulti) }, false},
	} {
		for _, first := range []string{"resolve", "next change"} {
			t.Run(name+", "+first, func(t *testing.T) {
				t.Parallel()
				w := recipestest.Start(t)
				client, p, gate := w.Gated(t)
				l := NewLong(client, "/n", LongOptions{})
				_, err := l.Add(recipestest.Context(t), 1)
				require.NoError(t, err)
				gate.Hold()
				states := client.States(recipestest.Context(t))
				c.drop(p)
				ctx, cancel := context.WithCancelCause(recipestest.Context(t))
				go func() {
					<-states
					cancel(zk.ErrNothing)
				}()
				_, err = l.Add(ctx, 1)
				var u *UnknownError
				require.ErrorAs(t, err, &u)
				require.ErrorIs(t, err, recipes.ErrUnknown)
				require.Contains(t, err.Error(), "from 1 to 2")
				_, err = u.Resolve(ctx)
				require.ErrorIs(t, err, zk.ErrNothing)
				gate.Release()
				want := int64(1)
				if c.done {
					want++
				}
				if first == "next change" {
					r, err := l.Add(recipestest.Context(t), 1)
					require.NoError(t, err)
					require.Equal(t, want, r.Before)
					want++
				}
				done, err := u.Resolve(recipestest.Context(t))
				require.NoError(t, err)
				require.Equal(t, c.done, done)
				n, err := l.Get(recipestest.Context(t))
				require.NoError(t, err)
				require.Equal(t, want, n)
			})
		}
	}
}

// A request that is held up on the way, and given up, may not be carried out after it was declared dead.
func TestLongHeldUp(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	l := NewLong(c, "/n", LongOptions{})
	_, err := l.Add(recipestest.Context(t), 1)
	require.NoError(t, err)
	reached := make(chan struct{})
	l.o.Codec = meddler{Curator64, func() { // the number is read, the change is not sent yet
		p.Freeze()
		close(reached)
	}}
	ctx, cancel := context.WithCancelCause(recipestest.Context(t))
	out := make(chan error, 1)
	go func() {
		_, err := l.Add(ctx, 1)
		out <- err
	}()
	<-reached
	l2 := NewLong(c, "/other", LongOptions{}) // it waits behind the change in the same connection
	short, end := context.WithTimeout(recipestest.Context(t), 20*time.Millisecond)
	_, err = l2.Get(short)
	end()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	cancel(zk.ErrNothing)
	var u *UnknownError
	if err := <-out; !errors.As(err, &u) { // it may have been stopped before it was sent
		require.ErrorIs(t, err, zk.ErrNothing)
	}
	p.Thaw()
	want := int64(1)
	if u != nil {
		done, err := u.Resolve(recipestest.Context(t))
		require.NoError(t, err)
		if done {
			want++
		}
	}
	l.o.Codec = Curator64
	r, err := l.Add(recipestest.Context(t), 1)
	require.NoError(t, err)
	require.Equal(t, want, r.Before)
}

// A request that arrives after it was declared dead changes nothing.
func TestLongLateRequest(t *testing.T) {
	t.Parallel()
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	l := NewLong(w.Client(t), "/n", LongOptions{})
	_, err := l.Set(ctx, 5)
	require.NoError(t, err)
	at, err := l.read(ctx)
	require.NoError(t, err)
	u, err := l.plan(at, func(at reading) (int64, error) { return at.number + 1, nil })
	require.NoError(t, err)
	require.ErrorIs(t, l.settle(ctx, u), errNotDone)
	require.ErrorIs(t, l.commit(ctx, u), errAgain)
	n, err := l.Get(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 5, n)
}

// Whatever happens, what was counted is what was reported.
func TestLongUnderFaults(t *testing.T) {
	t.Parallel()
	recipestest.Together(t, recipestest.Faults(), func(t *testing.T, f recipestest.Fault) {
		w, c, p := f.Start(t)
		ctx := recipestest.Context(t)
		l := NewLong(c, "/n", LongOptions{})
		_, err := l.Add(ctx, 1)
		require.NoError(t, err)
		counted, unknown, id := int64(1), int64(0), c.Session().ID()
		finished := make(chan struct{})
		halfway := make(chan struct{})
		go func() {
			defer close(finished)
			for i := range 40 {
				if i == 10 {
					close(halfway)
				}
				var u *UnknownError
				_, err := l.Add(ctx, 1)
				switch {
				case err == nil:
					counted++
				case errors.As(err, &u) && c.Session().ID() != id: // on a slow machine it may end by itself
					unknown++
				default:
					t.Errorf("change %d: %v", i, err)
					return
				}
			}
		}()
		<-halfway
		f.Hurt(w, p)
		<-finished
		require.NoError(t, c.Sync(ctx, "/n"))
		n, err := l.Get(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, counted)
		require.LessOrEqual(t, n, counted+unknown)
	})
}

// Random faults against several who count.
func TestLongRandomly(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(recipestest.Seed(t), 0))
	w := recipestest.Start(t)
	ctx := recipestest.Context(t)
	const members, each, hits = 3, 20, 60
	counted := make(chan int64, members)
	var proxies []*servertest.Proxy
	for range members {
		c, p := w.Faulty(t)
		proxies = append(proxies, p)
		l := NewLong(c, "/n", LongOptions{})
		go func() {
			sum := int64(0)
			defer func() { counted <- sum }()
			for range each {
				r, err := l.Add(ctx, 1)
				if err != nil || r.After != r.Before+1 {
					t.Errorf("%+v, %v", r, err)
					return
				}
				sum++
			}
		}()
	}
	ended, total := 0, int64(0)
	for hit := 0; ended < members; hit++ {
		if hit >= hits { // no more than that: on a slow machine they would come faster than anything can be done
			total += <-counted
			ended++
			continue
		}
		p := proxies[rng.IntN(members)]
		switch rng.IntN(5) {
		case 0:
			p.Cut()
		case 1:
			p.DropReply(servertest.OpMulti)
		case 2:
			p.DropRequest(servertest.OpMulti)
		case 3:
			p.DropReply(servertest.OpSetData)
		case 4:
			p.DropReply(servertest.OpGetData)
		}
		select {
		case sum := <-counted:
			ended++
			total += sum
		case <-time.After(time.Duration(rng.IntN(100)) * time.Millisecond): // between two faults
		}
	}
	n, err := NewLong(w.Client(t), "/n", LongOptions{}).Get(ctx)
	require.NoError(t, err)
	require.Equal(t, total, n)
	require.EqualValues(t, members*each, n)
}
