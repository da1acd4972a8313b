package cache

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestNodeFollowsANodeThatComesAndGoes(t *testing.T) {
	w := newWorld(t)
	n, err := NewNode(w.Client(t), "/n", Options{})
	require.NoError(t, err)
	defer n.Close()
	require.NoError(t, n.Ready(recipestest.Context(t)))
	_, there := n.Get()
	require.False(t, there)
	r := record(n.Events(recipestest.Context(t)))

	is := func(want string) func() bool {
		return func() bool {
			e, there := n.Get()
			return there && e.Text() == want && string(e.Data()) == want
		}
	}
	w.create("/n", "one")
	recipestest.Eventually(t, is("one"), "the node is there")
	w.set("/n", "two")
	recipestest.Eventually(t, is("two"), "the change is there")
	w.create("/n/child", "")
	w.remove("/n/child")
	w.remake("/n", "three")
	recipestest.Eventually(t, is("three"), "the other node is there")
	w.remove("/n")
	recipestest.Eventually(t, func() bool { _, there := n.Get(); return !there }, "the node is gone")
	w.create("/n", "four")
	recipestest.Eventually(t, is("four"), "the node is there again")

	want := []string{"Initialized", "Added /n", "Changed /n", "Removed /n", "Added /n", "Removed /n", "Added /n"}
	recipestest.Eventually(t, func() bool { return len(r.kinds()) >= len(want) }, "all events")
	require.Equal(t, want, r.kinds())
	require.NoError(t, r.fault())
}

// What a reader got is the reader's own: nothing that is done to it can reach the cache.
func TestSnapshotsDoNotChange(t *testing.T) {
	w := newWorld(t)
	w.create("/p", "")
	w.create("/p/a", "old")
	c, err := NewChildren(w.Client(t), "/p", Options{})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Ready(recipestest.Context(t)))
	before := c.List()
	require.Len(t, before, 1)
	copy(before[0].Data(), "xxx")
	require.Equal(t, "old", before[0].Text())
	w.set("/p/a", "new")
	recipestest.Eventually(t, func() bool { e, _ := c.Get("a"); return e.Text() == "new" }, "the change is there")
	require.Equal(t, "old", before[0].Text())
	before[0] = Entry{}
	e, there := c.Get("a")
	require.True(t, there)
	require.Equal(t, "/p/a", e.Path)
	require.EqualValues(t, 1, e.Stat.Version)
}

func TestChildrenHoldsChildrenOnly(t *testing.T) {
	w := newWorld(t)
	client := w.Client(t)
	c, err := NewChildren(client, "/p", Options{})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Ready(recipestest.Context(t)))
	require.Empty(t, c.List())
	r := record(c.Events(recipestest.Context(t)))
	w.create("/p", "own data")
	w.create("/p/b", "2")
	w.create("/p/a", "1")
	w.create("/p/a/deep", "")
	recipestest.Eventually(t, func() bool { return len(c.List()) == 2 }, "two children")
	list := c.List()
	require.Equal(t, "/p/a", list[0].Path)
	require.Equal(t, "/p/b", list[1].Path)
	_, there := c.get("/p")
	require.False(t, there)
	nodes, bytes := c.Size()
	require.Equal(t, 2, nodes)
	require.EqualValues(t, len("/p/a1/p/b2"), bytes)
	w.set("/p", "other data")
	w.remove("/p/a/deep")
	w.remove("/p/a")
	w.remove("/p/b")
	w.remove("/p")
	recipestest.Eventually(t, func() bool { return len(r.contents()) == 0 && r.saw(Removed) }, "nothing is left")
	for _, e := range r.kinds() {
		require.NotContains(t, []string{"Added /p", "Changed /p", "Removed /p"}, e)
	}
	require.NoError(t, r.fault())
}

func TestTreeHoldsEverythingBelow(t *testing.T) {
	w := newWorld(t)
	w.create("/top", "")
	w.create("/top/a", "1")
	w.create("/top/a/b", "2")
	tree, err := NewTree(w.Client(t), "/top", Options{})
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, tree.Ready(recipestest.Context(t)))
	r := record(tree.Events(recipestest.Context(t)))
	w.requireAgrees(tree, r, "/top", "first fill")
	w.create("/top/a/b/c", "3")
	w.create("/top/z", "4")
	w.set("/top/a", "5")
	w.requireAgrees(tree, r, "/top", "more")
	kids, there := tree.Children("/top")
	require.True(t, there)
	require.Len(t, kids, 2)
	e, there := tree.Get("/top/a/b/c")
	require.True(t, there)
	require.Equal(t, "3", e.Text())
	_, there = tree.Children("/top/none")
	require.False(t, there)
	w.remove("/top/a/b/c")
	w.remake("/top/a/b", "again")
	w.requireAgrees(tree, r, "/top", "less")
	at, zxid := tree.AsOf()
	require.WithinDuration(t, time.Now(), at, patience)
	e, _ = tree.Get("/top/a/b")
	require.GreaterOrEqual(t, zxid, e.Stat.Czxid)
}

// A reader that comes late gets the contents first.
func TestEventsBeginWithTheContents(t *testing.T) {
	w := newWorld(t)
	w.create("/top", "")
	w.create("/top/a", "1")
	w.create("/top/a/b", "2")
	tree, err := NewTree(w.Client(t), "/top", Options{DepthMax: 1})
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, tree.Ready(recipestest.Context(t)))
	ctx, cancel := context.WithCancel(recipestest.Context(t))
	r := record(tree.Events(ctx))
	want := []string{"Added /top", "Added /top/a", "Initialized"}
	recipestest.Eventually(t, func() bool { return len(r.kinds()) == len(want) }, "the first events")
	require.Equal(t, want, r.kinds())
	cancel()
	await(t, r.done)
	tree.Close()
	require.ErrorIs(t, tree.Err(), ErrClosed)
	require.ErrorIs(t, tree.Ready(context.Background()), ErrClosed)
	_, open := <-tree.Events(context.Background())
	require.False(t, open)
	_, there := tree.Get("/top/a")
	require.True(t, there, "contents stay readable")
}

// The cache ends with its client, also if nobody closes it.
func TestClosedClient(t *testing.T) {
	w := newWorld(t)
	client := w.Client(t)
	tree, err := NewTree(client, "/", Options{})
	require.NoError(t, err)
	require.NoError(t, tree.Ready(recipestest.Context(t)))
	r := record(tree.Events(context.Background()))
	client.Close()
	await(t, tree.Done())
	await(t, r.done)
	require.ErrorIs(t, tree.Err(), ErrClosed)
	tree.Close()
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	w.create("/top", "")
	w.create("/top/a", "0123456789")
	client := w.Client(t)
	for name, o := range map[string]Options{"nodes": {NodesMax: 2}, "bytes": {BytesMax: 39}} {
		tree, err := NewTree(client, "/top", o)
		require.NoError(t, err)
		defer tree.Close()
		require.NoError(t, tree.Ready(recipestest.Context(t)), name)
		r := record(tree.Events(recipestest.Context(t)))
		w.create("/top/"+name, "0123456789")
		await(t, tree.Done())
		await(t, r.done)
		require.ErrorIs(t, tree.Err(), ErrTooLarge)
		require.ErrorContains(t, tree.Err(), name+" below /top, at /top/")
		kinds := r.kinds()
		require.Equal(t, "Stopped", kinds[len(kinds)-1])
		_, there := tree.Get("/top/a")
		require.True(t, there, "what was held stays")
		age, filled := tree.Age()
		require.True(t, filled)
		require.Positive(t, age)
		w.remove("/top/" + name)
	}
	tree, err := NewTree(client, "/top", Options{NodesMax: 1})
	require.NoError(t, err)
	defer tree.Close()
	require.ErrorIs(t, tree.Ready(recipestest.Context(t)), ErrTooLarge)
	_, filled := tree.Age()
	require.False(t, filled)
}

func TestReaderThatFallsBehind(t *testing.T) {
	w := newWorld(t)
	w.create("/n", "")
	n, err := NewNode(w.Client(t), "/n", Options{EventsMax: 3})
	require.NoError(t, err)
	defer n.Close()
	require.NoError(t, n.Ready(recipestest.Context(t)))
	slow, fast := n.Events(recipestest.Context(t)), record(n.Events(recipestest.Context(t)))
	for i := range 10 {
		w.set("/n", string(rune('a'+i)))
		recipestest.Eventually(t, func() bool { return fast.contents()["/n"] == w.state("/n") }, "the other reader keeps up")
	}
	r := record(slow)
	await(t, r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.all[len(r.all)-1]
	require.Equal(t, Stopped, last.Kind)
	require.ErrorIs(t, last.Err, ErrEventsOverflow)
	require.NoError(t, r.err)
	require.NoError(t, n.Err(), "the cache itself goes on")
}

func (w *world) state(path string) string {
	data, stat, err := w.raw.Get(w.Abs(path))
	require.NoError(w.t, err)
	return describe(string(data), stat)
}

// What the filter refuses costs no request.
func TestFilter(t *testing.T) {
	w := newWorld(t)
	w.create("/top", "")
	for _, p := range []string{"/top/yes", "/top/yes/below", "/top/no", "/top/no/below"} {
		w.create(p, p)
	}
	client, proxy := w.Faulty(t)
	before := proxy.Requests(opGetData)
	tree, err := NewTree(client, "/top", Options{Filter: func(path string) bool { return path != "/top/no" }})
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, tree.Ready(recipestest.Context(t)))
	var paths []string
	for _, e := range tree.All() {
		paths = append(paths, e.Path)
	}
	require.Equal(t, []string{"/top", "/top/yes", "/top/yes/below"}, paths)
	if client.State() == recipes.Connected { // there was one connection only, so nothing was read twice
		require.Equal(t, 3, proxy.Requests(opGetData)-before)
	}
}

// A node that may not be read is told, and does not keep the rest from being there.
func TestUnreadableNode(t *testing.T) {
	w := newWorld(t)
	w.create("/top", "")
	w.create("/top/open", "1")
	_, err := w.raw.Create(w.Abs("/top/shut"), nil, 0, zk.WorldACL(zk.PermAll&^zk.PermRead))
	require.NoError(t, err)
	tree, err := NewTree(w.Client(t), "/top", Options{})
	require.NoError(t, err)
	defer tree.Close()
	r := record(tree.Events(recipestest.Context(t)))
	err = tree.Ready(recipestest.Context(t))
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorContains(t, err, "/top/shut")
	_, there := tree.Get("/top/open")
	require.True(t, there)
	recipestest.Eventually(t, func() bool { return r.saw(Initialized) }, "it goes on")
	require.Contains(t, r.kinds(), "Faulted /top/shut")
	w.remove("/top/shut")
	recipestest.Eventually(t, func() bool { return tree.Err() == nil }, "the fault is gone with the node")
}

func TestBadInput(t *testing.T) {
	w := newWorld(t)
	client := w.Client(t)
	for _, path := range []string{"", "a", "/a/", "//a", "/a/../b", "/a\x00"} {
		_, err := NewTree(client, path, Options{})
		require.ErrorIs(t, err, recipes.ErrPath, "%q", path)
	}
	_, err := NewNode(client, "/a", Options{NodesMax: -1})
	require.ErrorContains(t, err, "negative")
	_, err = NewChildren(client, "/a", Options{EventsMax: -1})
	require.ErrorContains(t, err, "negative")
	require.Equal(t, "Kind(99)", Kind(99).String())
}

// A wait that ends early ends with its reason.
func TestReadyEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	proxy.Freeze()
	defer proxy.Thaw()
	tree, err := NewTree(client, "/", Options{})
	require.NoError(t, err)
	defer tree.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(context.DeadlineExceeded)
	require.ErrorIs(t, tree.Ready(ctx), context.DeadlineExceeded)
	_, filled := tree.Age()
	require.False(t, filled)
}
