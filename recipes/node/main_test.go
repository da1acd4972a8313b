package node

import (
	"context"
	"path"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// parallelTests is how many tests run at a time: they wait most of the time, each for a world of its own.
const parallelTests = 8

func TestMain(m *testing.M) { recipestest.MainParallel(m, parallelTests) }

const (
	// limit bounds the whole of a test. It is far above what is ever needed.
	limit = time.Minute
	// dir is where the nodes are, and where their path.
	dir   = "/services/web"
	where = dir + "/host"
)

// bounded returns a context that ends with the test.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// short has the session of a client end soon.
func short(o *recipes.Options) { o.SessionTimeout = 600 * time.Millisecond }

// world starts one server, or three.
func world(t *testing.T, three bool) *recipestest.World {
	if three {
		return recipestest.StartThree(t)
	}
	return recipestest.Start(t)
}

// start keeps a node at where.
func start(t *testing.T, c *recipes.Client, data string, o Options) *Node {
	t.Helper()
	n, err := Start(c, where, []byte(data), o)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

// created is AwaitCreated, which must not fail.
func created(t *testing.T, n *Node) string {
	t.Helper()
	at, err := n.AwaitCreated(bounded(t))
	require.NoError(t, err)
	return at
}

// children returns what is in dir, in the eyes of another client.
func children(t *testing.T, c *recipes.Client) []string {
	t.Helper()
	names, _, err := c.Children(bounded(t), dir)
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNoNode)
	}
	return names
}

// settled waits until the node, and nothing else, stands in dir as it should: with that data, and as a node of its client's
// session if it is ephemeral.
func settled(t *testing.T, look *recipes.Client, n *Node, data string) *zk.Stat {
	t.Helper()
	var stat *zk.Stat
	recipestest.Eventually(t, func() bool {
		names, at := children(t, look), n.Path()
		if len(names) != 1 || at == "" || names[0] != path.Base(at) {
			return false
		}
		got, s, err := look.Get(bounded(t), at)
		stat = s
		if err != nil || string(got) != data {
			return false
		}
		if !n.opts.Mode.ephemeral() {
			return s.EphemeralOwner == 0 && !n.Own()
		}
		return s.EphemeralOwner == n.c.Session().ID() && n.Own()
	}, "the node stands as it should")
	return stat
}

// empty waits until nothing is left in dir.
func empty(t *testing.T, look *recipes.Client) {
	t.Helper()
	recipestest.Eventually(t, func() bool { return len(children(t, look)) == 0 }, "no node is left")
}
