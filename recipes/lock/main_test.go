package lock

import (
	"context"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// sideBySide is how many tests run at a time. They wait for sessions to end far more than they work, so it is not the number of
// processors.
const sideBySide = 16

func TestMain(m *testing.M) { recipestest.MainParallel(m, sideBySide) }

// patience is how long a test waits for what has to come. It is far above what is ever needed.
const patience = time.Minute

// timeout changes the session timeout of a client.
func timeout(d time.Duration) func(*recipes.Options) {
	return func(o *recipes.Options) { o.SessionTimeout = d }
}

// dial makes a connection of package zk.
func dial(t testing.TB, addr string) (*zk.Conn, <-chan zk.Event) {
	conn, events, err := zk.Connect([]string{addr}, 2*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	require.NoError(t, err)
	return conn, events
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// eager connects a client through a proxy of its own that does not wait for a second, as package zk does between two rounds
// through its servers, before it connects again: it has a longer list.
func eager(t testing.TB, w *recipestest.World, timeout time.Duration, namespace ...string) (*recipes.Client, *servertest.Proxy) {
	proxy := servertest.NewProxy(t, w.Raw(t).Server())
	c, err := recipes.Connect(recipestest.Context(t), slices.Repeat([]string{proxy.Addr()}, 20),
		recipes.Options{SessionTimeout: timeout, Namespace: w.Abs("/" + path.Join(namespace...))})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c, proxy
}

// nodes returns the names of the children of a node, none if it does not exist.
func nodes(t testing.TB, c *recipes.Client, path string) []string {
	t.Helper()
	stat, err := c.Exists(recipestest.Context(t), path)
	require.NoError(t, err)
	if stat == nil {
		return nil
	}
	names, _, err := c.Children(recipestest.Context(t), path)
	require.NoError(t, err)
	return names
}

// requireEmpty waits until nothing is left below the node.
func requireEmpty(t testing.TB, c *recipes.Client, path string) {
	t.Helper()
	recipestest.Eventually(t, func() bool { return len(nodes(t, c, path)) == 0 }, "no node is left below "+path)
}

// requireLine waits until that many stand in the line.
func requireLine(t testing.TB, c *recipes.Client, path string, n int) {
	t.Helper()
	recipestest.Eventually(t, func() bool { return len(nodes(t, c, path)) == n }, "contenders below "+path)
}

// granted is what an attempt in the background came to.
type granted[T any] struct {
	guard T
	err   error
}

// inBackground calls a function that waits for a lock.
func inBackground[T any](ctx context.Context, lock func(context.Context) (T, error)) chan granted[T] {
	done := make(chan granted[T], 1)
	go func() {
		guard, err := lock(ctx)
		done <- granted[T]{guard, err}
	}()
	return done
}

// receive waits for the outcome, which must be a grant.
func receive[T any](t testing.TB, from chan granted[T]) T {
	t.Helper()
	select {
	case g := <-from:
		require.NoError(t, g.err)
		return g.guard
	case <-time.After(patience):
		require.FailNow(t, "the lock was not granted")
	}
	panic("unreachable")
}

// requireWaiting requires that nothing has been granted yet.
func requireWaiting[T any](t testing.TB, from chan granted[T]) {
	t.Helper()
	select {
	case g := <-from:
		require.Failf(t, "no waiting", "got %+v", g)
	default:
	}
}

func requireClosed(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		require.FailNow(t, what)
	}
}

func requireOpen(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		require.FailNow(t, what)
	default:
	}
}
