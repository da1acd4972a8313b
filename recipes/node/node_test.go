package node

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func contextOf(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

const guid = `_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}-`

// TestNames pins what others see, and what a node is called when it is made again.
func TestNames(t *testing.T) {
	for _, o := range kinds {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			w := recipestest.Start(t)
			c := w.Client(t)
			var made atomic.Int32
			o.OnMade = func(string) { made.Add(1) }
			n := start(t, c, "data", o)
			want := "host"
			if o.Protect {
				want = guid + want
			}
			if o.Mode.sequential() {
				want += `\d{10}`
			}
			first := created(t, n)
			require.Equal(t, first, n.Path())
			require.Equal(t, dir, path.Dir(first))
			require.Regexp(t, "^"+want+"$", path.Base(first))
			stat := settled(t, c, n, "data")

			require.NoError(t, c.Delete(t.Context(), first, -1))
			recipestest.Eventually(t, func() bool { return settled(t, c, n, "data").Czxid > stat.Czxid }, "the node is made again")
			again := n.Path()
			require.Regexp(t, "^"+want+"$", path.Base(again))
			require.Equal(t, o.Protect, first != again, "a protected node has another GUID")
			require.Equal(t, first[strings.Index(first, "host"):], again[strings.Index(again, "host"):], "the number stays")
			recipestest.Eventually(t, func() bool { return made.Load() == 2 }, "both were told")
		})
	}
}

func TestSet(t *testing.T) {
	w := recipestest.Start(t)
	c, proxy := w.Faulty(t)
	look := w.Client(t)
	mine := []byte("one")
	n, err := Start(c, where, mine, Options{})
	require.NoError(t, err)
	defer n.Close()
	mine[0] = 'x'
	require.Equal(t, "one", string(n.Data()))
	require.NoError(t, n.Set(bounded(t), []byte("two"))) // does not need AwaitCreated before
	settled(t, look, n, "two")
	require.NoError(t, n.Set(bounded(t), nil))
	settled(t, look, n, "")
	require.ErrorIs(t, n.Set(bounded(t), make([]byte, dataBytesMax+1)), ErrData)
	require.NoError(t, n.Set(bounded(t), make([]byte, dataBytesMax)))

	proxy.Refuse(true)
	proxy.Cut()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	require.ErrorIs(t, n.Set(ctx, []byte("three")), why)
	require.Equal(t, "three", string(n.Data()))
	proxy.Refuse(false)
	settled(t, look, n, "three")

	// What others write stays until the next Set.
	_, err = look.Set(t.Context(), where, []byte("foreign"), -1)
	require.NoError(t, err)
	require.NoError(t, n.Set(bounded(t), []byte("four")))
	settled(t, look, n, "four")
}

// TestTakenOver has a node of another session in the way: it gets the data, and ours is made when it goes.
func TestTakenOver(t *testing.T) {
	w := recipestest.Start(t)
	before, c, look := w.Client(t), w.Client(t), w.Client(t)
	require.NoError(t, look.EnsurePath(t.Context(), dir))
	_, err := before.Create(t.Context(), where, []byte("old"), zk.FlagEphemeral)
	require.NoError(t, err)
	n := start(t, c, "new", Options{})
	require.Equal(t, where, created(t, n))
	require.False(t, n.Own())
	data, stat, err := look.Get(t.Context(), where)
	require.NoError(t, err)
	require.Equal(t, "new", string(data))
	require.Equal(t, before.Session().ID(), stat.EphemeralOwner)
	before.Close()
	settled(t, look, n, "new")
}

// TestForeignStays closes a node that stands for another session.
func TestForeignStays(t *testing.T) {
	w := recipestest.Start(t)
	c, look := w.Client(t), w.Client(t)
	require.NoError(t, look.EnsurePath(t.Context(), dir))
	_, err := look.Create(t.Context(), where, nil, zk.FlagEphemeral)
	require.NoError(t, err)
	n := start(t, c, "new", Options{})
	created(t, n)
	n.Close()
	n.Close()
	require.NoError(t, c.Sync(t.Context(), where))
	require.Equal(t, []string{"host"}, children(t, look))
}

// TestClose closes many nodes while they stand: none is left.
func TestClose(t *testing.T) {
	const nodes = 200
	w := recipestest.Start(t)
	c, look := w.Client(t), w.Client(t)
	var all []*Node
	for i := range nodes {
		n, err := Start(c, fmt.Sprintf("%s-%d", where, i), nil, Options{})
		require.NoError(t, err)
		all = append(all, n)
	}
	for _, n := range all {
		created(t, n)
	}
	require.Len(t, children(t, look), nodes)
	var closing sync.WaitGroup
	for _, n := range all {
		closing.Go(n.Close)
	}
	closing.Wait()
	empty(t, look)
}

// TestEndIsNotTakenForAClosedClient pins what a node does when it sees the end of its states before that of its context: both
// come with Close, and only a closed client leaves the node to the end of its session.
func TestEndIsNotTakenForAClosedClient(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrClosed)
	states := make(chan recipes.State)
	close(states)
	for range 100 { // select takes either
		require.ErrorIs(t, (&Node{}).hold(ctx, states, nil), ErrClosed)
	}
}

func TestOtherKind(t *testing.T) {
	for _, o := range []Options{{Mode: Ephemeral}, {Mode: Persistent}} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			w := recipestest.Start(t)
			c, look := w.Client(t), w.Client(t)
			require.NoError(t, look.EnsurePath(t.Context(), dir))
			_, err := look.Create(t.Context(), where, []byte("other"), map[Mode]int32{Persistent: zk.FlagEphemeral}[o.Mode])
			require.NoError(t, err)
			n := start(t, c, "own", o)
			_, err = n.AwaitCreated(bounded(t))
			require.ErrorIs(t, err, ErrKind)
			require.ErrorIs(t, n.Set(bounded(t), []byte("later")), ErrKind)
			require.Empty(t, n.Path())
			data, _, err := look.Get(t.Context(), where)
			require.NoError(t, err)
			require.Equal(t, "other", string(data))
			require.NoError(t, look.Delete(t.Context(), where, -1))
			settled(t, look, n, "later")
		})
	}
}

func TestRefused(t *testing.T) {
	w := recipestest.Start(t)
	c, raw := w.Client(t), w.Raw(t)
	require.NoError(t, c.EnsurePath(t.Context(), dir))
	_, err := raw.SetACL(w.Abs(dir), zk.WorldACL(zk.PermRead|zk.PermAdmin), -1)
	require.NoError(t, err)
	n := start(t, c, "data", Options{})
	_, err = n.AwaitCreated(bounded(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	_, err = raw.SetACL(w.Abs(dir), zk.WorldACL(zk.PermAll), -1)
	require.NoError(t, err)
	settled(t, w.Client(t), n, "data")
}

func TestClosedClient(t *testing.T) {
	w := recipestest.Start(t)
	c, look := w.Client(t), w.Client(t)
	n := start(t, c, "data", Options{})
	created(t, n)
	c.Close()
	require.ErrorIs(t, n.Set(bounded(t), []byte("late")), recipes.ErrClosed)
	empty(t, look)
}

func TestBadInput(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	_, err := Start(c, "/", nil, Options{})
	require.ErrorIs(t, err, recipes.ErrPath)
	_, err = Start(c, where, make([]byte, dataBytesMax+1), Options{})
	require.ErrorIs(t, err, ErrData)
	for _, o := range []Options{{Mode: -1}, {Mode: PersistentSequential + 1}, {Mode: EphemeralSequential}, {Mode: PersistentSequential}} {
		_, err = Start(c, where, nil, o)
		require.ErrorIs(t, err, ErrOptions)
	}
	n, err := Start(c, "no/root", nil, Options{})
	require.NoError(t, err)
	defer n.Close()
	_, err = n.AwaitCreated(bounded(t))
	require.ErrorIs(t, err, recipes.ErrPath)
}
