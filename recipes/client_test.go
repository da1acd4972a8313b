package recipes_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// The operations that the proxies of these tests meddle with.
const (
	opCreate   = 1
	opDelete   = 2
	opExists   = 3
	opGetData  = 4
	opSetData  = 5
	opChildren = 12

	opCreateContainer = 19
)

func TestMain(m *testing.M) { recipestest.Main(m) }

func TestStatesFollowTheConnection(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	require.Equal(t, recipes.Connected, c.State())
	states := c.States(t.Context())
	session := c.Session()

	p.Cut()
	require.Equal(t, "Suspended Reconnected", names(<-states, <-states))
	require.Same(t, session, c.Session(), "the session has survived")
	require.False(t, session.Over())

	p.Expire()
	p.Cut()
	<-session.Done()
	var seen []recipes.State
	for len(seen) == 0 || seen[len(seen)-1] != recipes.Reconnected {
		seen = append(seen, <-states)
	}
	require.Contains(t, []string{"Suspended Lost Reconnected", "Suspended Lost Suspended Lost Reconnected"}, names(seen...))
	require.NotEqual(t, session.ID(), c.Session().ID())
	require.True(t, session.Over())

	c.Close()
	require.Equal(t, recipes.Lost, c.State())
	_, _, err := c.Get(t.Context(), "/")
	require.ErrorIs(t, err, recipes.ErrClosed)
	_, err = c.AwaitSession(t.Context())
	require.ErrorIs(t, err, recipes.ErrClosed)
	for range states { // it is closed
	}
	for range c.States(t.Context()) { // and so is a later one
	}
}

func TestLeaseRunsOutWhileTheNetworkIsSilent(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	session := c.Session()
	require.Equal(t, 2*time.Second, session.Timeout())
	require.LessOrEqual(t, session.Remaining(), session.Timeout())
	p.Freeze()
	<-session.Done()
	require.Zero(t, session.Remaining())
	recipestest.Eventually(t, func() bool { return c.State() == recipes.Lost }, "the state is lost")
	p.Thaw()
	next, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	require.NotSame(t, session, next)
}

func TestSessionThatIsGivenUpMayGoOnAsAnother(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t)
	session := c.Session()
	recipes.Outlive(c)
	<-session.Done()
	next, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.ID(), next.ID(), "the server has kept it")
	require.NotSame(t, session, next)
}

func TestReadsAreRepeatedAndWritesAreNot(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	ctx := t.Context()
	_, err := c.Create(ctx, "/a", []byte("1"), zk.FlagPersistent)
	require.NoError(t, err)

	p.DropReply(opGetData)
	data, _, err := c.Get(ctx, "/a")
	require.NoError(t, err)
	require.Equal(t, "1", string(data))

	p.DropReply(opSetData)
	_, err = c.Set(ctx, "/a", []byte("2"), 0)
	require.ErrorIs(t, err, recipes.ErrUnknown)
	data, stat, err := c.Get(ctx, "/a")
	require.NoError(t, err)
	require.Equal(t, "2", string(data), "it has happened, once")
	require.Equal(t, int32(1), stat.Version)

	p.DropRequest(opDelete)
	require.ErrorIs(t, c.Delete(ctx, "/a", -1), recipes.ErrUnknown)
	stat, err = c.Exists(ctx, "/a")
	require.NoError(t, err)
	require.NotNil(t, stat, "it has not happened")

	p.DropRequest(opDelete)
	c.DeleteSurely("/a")
	recipestest.Eventually(t, func() bool {
		stat, err := c.Exists(ctx, "/a")
		return err == nil && stat == nil
	}, "the node is gone")

	_, _, err = c.Get(ctx, "/a")
	require.ErrorIs(t, err, zk.ErrNoNode)
	require.NotErrorIs(t, err, recipes.ErrUnknown)
	_, _, err = c.Get(ctx, "a/")
	require.ErrorIs(t, err, recipes.ErrPath)
}

func TestCallsEndWithTheirContext(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	p.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, _, err := c.Get(ctx, "/")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = c.Create(ctx, "/late", nil, zk.FlagPersistent)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	p.Thaw()
}

func TestWatchesOutliveConnections(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t)
	ctx := t.Context()
	stat, watch, err := c.ExistsW(ctx, "/later")
	require.NoError(t, err)
	require.Nil(t, stat)
	p.Cut()
	_, err = w.Raw(t).Create(w.Abs("/later"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	require.Equal(t, zk.EventNodeCreated, (<-watch).Type)

	_, _, watch, err = c.GetW(ctx, "/later")
	require.NoError(t, err)
	_, _, children, err := c.ChildrenW(ctx, "/later")
	require.NoError(t, err)
	p.Expire()
	p.Cut()
	require.Equal(t, zk.EventNotWatching, (<-watch).Type)
	require.Equal(t, zk.EventNotWatching, (<-children).Type)
}

func TestNamespaceAndMissingParents(t *testing.T) {
	w := recipestest.Start(t)
	c, p := w.Faulty(t, func(o *recipes.Options) { o.Namespace += "/app/blue" })
	ctx := t.Context()
	require.Zero(t, p.Requests(opCreateContainer), "the namespace itself is to stay")
	require.NoError(t, c.EnsurePath(ctx, "/x/y/z"))
	require.NoError(t, c.EnsurePath(ctx, "/x/y/z"))
	require.NoError(t, c.EnsurePath(ctx, "/"))
	made, err := c.Create(ctx, "/x/y/z/n-", nil, zk.FlagSequence)
	require.NoError(t, err)
	require.Equal(t, "/x/y/z/n-0000000000", made)
	found, _, err := w.Raw(t).Exists(w.Abs("/app/blue" + made))
	require.NoError(t, err)
	require.True(t, found)
	require.Positive(t, p.Requests(opCreateContainer))
	require.NoError(t, c.Sync(ctx, "/"))
	require.ErrorIs(t, c.EnsurePath(ctx, "x"), recipes.ErrPath)
}

func TestTransactions(t *testing.T) {
	w := recipestest.Start(t)
	c := w.Client(t, func(o *recipes.Options) { o.Namespace += "/space" })
	ctx := t.Context()
	results, err := c.Txn().Create("/a", []byte("1"), zk.FlagPersistent).Create("/a/s-", nil, zk.FlagSequence).
		Set("/a", []byte("2"), 0).Check("/a", 1).Commit(ctx)
	require.NoError(t, err)
	require.Equal(t, "/a/s-0000000000", results[1].String)
	require.Equal(t, int32(1), results[2].Stat.Version)

	_, err = c.Txn().Set("/a", []byte("3"), -1).Check("/a", 7).Delete("/a/s-0000000000", -1).Commit(ctx)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	var failed *recipes.TxnError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1, failed.Index)
	data, _, err := c.Get(ctx, "/a")
	require.NoError(t, err)
	require.Equal(t, "2", string(data), "nothing of it happened")

	_, err = c.Txn().Delete("/a/s-0000000000", -1).Delete("a", -1).Commit(ctx)
	require.ErrorIs(t, err, recipes.ErrPath)
}

func TestAuthAndACL(t *testing.T) {
	w := recipestest.Start(t)
	owner := w.Client(t, func(o *recipes.Options) {
		o.Auth = []recipes.Auth{{Scheme: "digest", Credentials: []byte("ann:secret")}}
		o.ACL = zk.AuthACL(zk.PermAll)
	})
	_, err := owner.Create(t.Context(), "/hers", []byte("x"), zk.FlagPersistent)
	require.NoError(t, err)
	_, _, err = w.Client(t).Get(t.Context(), "/hers")
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, _, err = owner.Get(t.Context(), "/hers")
	require.NoError(t, err)
	require.NoError(t, owner.Delete(t.Context(), "/hers", -1)) // nobody else could clear it away
}

func TestWrapTakesTheFirstDisconnectForTheEnd(t *testing.T) {
	w := recipestest.Start(t)
	_, p := w.Faulty(t)
	conn, events, err := zk.Connect([]string{p.Addr()}, 2*time.Second, zk.WithLogInfo(false), zk.WithLogger(logTo(nil)))
	require.NoError(t, err)
	c, err := recipes.Wrap(conn, events, recipes.Options{SessionTimeout: 2 * time.Second})
	require.NoError(t, err)
	defer c.Close()
	session, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	require.Equal(t, conn.SessionID(), session.ID())
	require.Equal(t, 2*time.Second, session.Timeout())
	require.NotZero(t, session.Remaining())
	p.Cut()
	<-session.Done()
	next, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.ID(), next.ID())
	require.NotSame(t, session, next)
}
