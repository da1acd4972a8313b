package group

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

func TestMembersComeAndGo(t *testing.T) {
	w := recipestest.Start(t)
	c, raw := w.Client(t), w.Raw(t)
	look := watching(t, t.Context(), w.Client(t))
	look.shows(t, "") // a group that does not exist yet
	a := join(t, c, "a", "1")
	look.shows(t, "a=1")
	b := join(t, c, "b", "2")
	look.shows(t, "a=1 b=2")
	members, err := Members(t.Context(), c, where)
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"a": []byte("1"), "b": []byte("2")}, members)

	// What other libraries see and make.
	data, stat, err := raw.Get(w.Abs(where) + "/a")
	require.NoError(t, err)
	require.Equal(t, "1", string(data))
	require.Equal(t, c.Session().ID(), stat.EphemeralOwner)
	_, err = raw.Create(w.Abs(where)+"/java", []byte("x"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	look.shows(t, "a=1 b=2 java=x")

	require.Equal(t, "a", a.ID())
	require.NoError(t, a.SetPayload(bounded(t), []byte("3")))
	require.Equal(t, "3", string(a.Payload()))
	look.shows(t, "a=3 b=2 java=x")
	require.NoError(t, raw.Delete(w.Abs(where)+"/java", -1))
	look.shows(t, "a=3 b=2")
	b.Leave()
	look.shows(t, "a=3")
	a.Leave()
	look.shows(t, "")
	sets, errs := look.seen()
	require.Empty(t, errs)
	for i := range sets[1:] {
		require.NotEqual(t, sets[i], sets[i+1], "only changes are yielded")
	}
}

func TestNoSuchGroup(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	members, err := Members(t.Context(), c, where)
	require.NoError(t, err)
	require.Empty(t, members)
}

// TestWatchEnds in each way that it can.
func TestWatchEnds(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t)
	a := join(t, c, "a", "1")
	for members, err := range Watch(t.Context(), c, where) {
		require.NoError(t, err)
		require.Equal(t, "a=1", text(members))
		break // and no goroutine is left
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	look := watching(t, ctx, c)
	look.shows(t, "a=1")
	cancel(why)
	<-look.done
	_, errs := look.seen()
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], why)

	look = watching(t, t.Context(), c)
	look.shows(t, "a=1")
	a.Leave()
	c.Close()
	<-look.done
	_, errs = look.seen()
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], recipes.ErrClosed)
	_, err := Members(t.Context(), c, where)
	require.ErrorIs(t, err, recipes.ErrClosed)
}

func TestBadInput(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	for _, id := range []string{"", ".", "..", "a/b", "a\x00"} {
		_, err := Join(c, where, id, nil)
		require.ErrorIs(t, err, ErrID, "%q", id)
	}
	for _, err := range Watch(t.Context(), c, "services") {
		require.ErrorIs(t, err, recipes.ErrPath)
	}
	_, err := Members(t.Context(), c, "services")
	require.ErrorIs(t, err, recipes.ErrPath)
}

// TestHiddenMember has a node in the group that the server does not show: the others are there all the same.
func TestHiddenMember(t *testing.T) {
	w := recipestest.Start(t)
	c, raw := w.Client(t), w.Raw(t)
	join(t, c, "a", "1")
	_, err := raw.Create(w.Abs(where)+"/hidden", nil, 0, zk.WorldACL(zk.PermAdmin))
	require.NoError(t, err)
	look := watching(t, t.Context(), c)
	look.shows(t, "a=1")
	recipestest.Eventually(t, func() bool {
		_, errs := look.seen()
		return len(errs) == 1 && errors.Is(errs[0], zk.ErrNoAuth)
	}, "the watcher hears of it")
	_, err = Members(t.Context(), c, where)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	join(t, c, "b", "2")
	look.shows(t, "a=1 b=2")
	require.NoError(t, raw.Delete(w.Abs(where)+"/hidden", -1))
}

// TestFaults has a member meet each fault, and one who watches the group through the same connection. In the end both others
// and the watcher see the group as it is.
func TestFaults(t *testing.T) {
	for _, f := range []struct {
		name   string
		before func(p *servertest.Proxy)
		during func(w *recipestest.World, c *recipes.Client, p *servertest.Proxy)
		three  bool
	}{
		{name: "reply of create lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpCreate) }},
		{name: "create lost", before: func(p *servertest.Proxy) { p.DropRequest(servertest.OpCreate) }},
		{name: "reply of the list lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpGetChildren2) }},
		{name: "reply of the payload lost", before: func(p *servertest.Proxy) { p.DropReply(servertest.OpGetData) }},
		{name: "slow network", before: func(p *servertest.Proxy) { p.Delay(20 * time.Millisecond) }},
		{name: "connection cut", during: func(_ *recipestest.World, _ *recipes.Client, p *servertest.Proxy) { p.Cut() }},
		{name: "session expired", during: func(_ *recipestest.World, _ *recipes.Client, p *servertest.Proxy) { p.Expire() }},
		{name: "lease run out", during: func(_ *recipestest.World, c *recipes.Client, p *servertest.Proxy) {
			s := c.Session()
			p.Freeze()
			<-s.Done()
			p.Thaw()
		}},
		{name: "server restarted", during: func(w *recipestest.World, _ *recipes.Client, _ *servertest.Proxy) { w.Restart() }},
		{name: "leader changed", three: true, during: func(w *recipestest.World, _ *recipes.Client, _ *servertest.Proxy) { w.ChangeLeader() }},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := start(t, f.three)
			c, proxy := w.Faulty(t, func(o *recipes.Options) { o.SessionTimeout = 600 * time.Millisecond })
			other := w.Client(t)
			require.NoError(t, other.EnsurePath(t.Context(), where)) // the first create is to be the one that makes the node
			if f.before != nil {
				f.before(proxy)
			}
			own, foreign := watching(t, t.Context(), c), watching(t, t.Context(), other)
			a := join(t, c, "a", "1")
			b := join(t, other, "b", "2")
			own.shows(t, "a=1 b=2")
			foreign.shows(t, "a=1 b=2")
			if f.during != nil {
				f.during(w, c, proxy)
			}
			require.NoError(t, b.SetPayload(bounded(t), []byte("3")))
			require.NoError(t, a.SetPayload(bounded(t), []byte("4")))
			own.shows(t, "a=4 b=3")
			foreign.shows(t, "a=4 b=3")
			a.Leave()
			own.shows(t, "b=3")
			foreign.shows(t, "b=3")
		})
	}
}

func start(t *testing.T, three bool) *recipestest.World {
	if three {
		return recipestest.StartThree(t)
	}
	return recipestest.Start(t)
}
