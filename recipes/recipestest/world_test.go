package recipestest

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/recipes"
	"zabra/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func make1(t *testing.T, c *recipes.Client, path string) {
	t.Helper()
	_, err := c.Create(Context(t), path, []byte("x"), 0)
	require.NoError(t, err)
}

// Worlds see nothing of each other, also on one server.
func TestWorldsAreApart(t *testing.T) {
	a, b := Start(t), Start(t)
	make1(t, a.Client(t), "/a")
	stat, err := b.Client(t).Exists(Context(t), "/a")
	require.NoError(t, err)
	require.Nil(t, stat)
	data, _, err := a.Raw(t).Get(a.Abs("/a"))
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	require.NotEqual(t, a.Abs("/"), b.Abs("/"))
}

func TestOptionsCanBeChanged(t *testing.T) {
	w := Start(t)
	c := w.Client(t, func(o *recipes.Options) { o.Namespace += "/below" })
	make1(t, c, "/a")
	_, _, err := w.Raw(t).Get(w.Abs("/below/a"))
	require.NoError(t, err)
}

func TestFaulty(t *testing.T) {
	w := Start(t)
	c, p := w.Faulty(t)
	make1(t, c, "/a")
	p.DropReply(servertest.OpCreate)
	_, err := c.Create(Context(t), "/lost", nil, 0)
	require.ErrorIs(t, err, recipes.ErrUnknown)
	_, _, err = w.Raw(t).Get(w.Abs("/lost"))
	require.NoError(t, err)
	old := c.Session()
	p.Expire()
	<-old.Done()
	s, err := c.AwaitSession(Context(t))
	require.NoError(t, err)
	require.NotEqual(t, old.ID(), s.ID())
}

func TestRestart(t *testing.T) {
	w := Start(t)
	plain := w.Client(t)
	faulty, _ := w.Faulty(t)
	raw := w.Raw(t)
	make1(t, plain, "/a")
	cut := []<-chan recipes.State{plain.States(Context(t)), faulty.States(Context(t))}
	w.Restart()
	for _, states := range cut {
		require.Equal(t, recipes.Suspended, <-states)
	}
	for _, c := range []*recipes.Client{plain, faulty} {
		stat, err := c.Exists(Context(t), "/a")
		require.NoError(t, err)
		require.NotNil(t, stat)
	}
	_, _, err := raw.Get(w.Abs("/a"))
	require.NoError(t, err)
}

func TestThree(t *testing.T) {
	w := StartThree(t)
	c := w.Client(t)
	faulty, p := w.Faulty(t)
	raw := w.Raw(t)
	make1(t, c, "/a")
	before := w.ensemble.Leader()
	w.ChangeLeader()
	require.NotEqual(t, before, w.ensemble.Leader())
	for _, c := range []*recipes.Client{c, faulty} {
		_, _, err := c.Get(Context(t), "/a")
		require.NoError(t, err)
	}
	w.Restart()
	_, _, err := faulty.Get(Context(t), "/a")
	require.NoError(t, err)
	require.NotZero(t, p.Requests(servertest.OpGetData))
	_, err = raw.Create(w.Abs("/b"), nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}
