package cache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// Numbers of the protocol's operations.
const (
	opExists       = 3
	opGetData      = 4
	opSync         = 9
	opGetChildren2 = 12
)

// Without a connection the last known contents stay, and tell how old they are.
func TestLastKnownContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("/top", "")
	w.create("/top/a", "old")
	w.create("/top/b", "old")
	client, proxy := w.Faulty(t, brief)
	tree, err := NewTree(client, "/top", Options{})
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, tree.Ready(recipestest.Context(t)))
	age, filled := tree.Age()
	require.True(t, filled)
	require.Zero(t, age)
	r := record(tree.Events(recipestest.Context(t)))

	proxy.Refuse(true)
	proxy.Cut()
	recipestest.Eventually(t, func() bool { return r.saw(Suspended) }, "the cut is seen")
	w.set("/top/a", "new")
	w.remake("/top/b", "new")
	w.create("/top/c", "new")
	e, there := tree.Get("/top/a")
	require.True(t, there)
	require.Equal(t, "old", e.Text())
	at, zxid := tree.AsOf()
	again, _ := tree.AsOf()
	require.Equal(t, at, again, "this time stands still")
	require.GreaterOrEqual(t, zxid, e.Stat.Mzxid)
	recipestest.Eventually(t, func() bool { older, _ := tree.Age(); return older > age }, "the contents grow older")
	recipestest.Eventually(t, func() bool { return r.saw(Lost) }, "the session is lost")

	proxy.Refuse(false)
	w.requireAgrees(tree, r, "/top", "after the cut")
	require.True(t, r.saw(Reconnected))
	recipestest.Eventually(t, func() bool { age, _ = tree.Age(); return age == 0 }, "the contents are in step")
	_, later := tree.AsOf()
	require.Greater(t, later, zxid)
	require.Equal(t, []string{"Added /top", "Added /top/a", "Added /top/b", "Initialized", "Suspended", "Lost", "Reconnected"}, r.kinds()[:7])
	require.Contains(t, r.kinds()[7:], "Removed /top/b", "another node is not a change")
}

// faults are what may happen to a cache while something changes.
var faults = []struct {
	name string
	do   func(w *world, c *recipes.Client, p *servertest.Proxy, change func())
}{
	{"cut", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.Cut()
		change()
	}},
	{"partition", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.Refuse(true)
		p.Cut()
		change()
		p.Refuse(false)
	}},
	{"frozen", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.Freeze()
		change()
		recipestest.Eventually(w.t, func() bool { return !c.State().IsConnected() }, "the silence is noticed")
		p.Thaw()
	}},
	{"lost data", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.DropReply(opGetData)
		change()
	}},
	{"lost list", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.DropReply(opGetChildren2)
		change()
	}},
	{"lost request", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.DropRequest(opGetData)
		p.DropRequest(opGetChildren2)
		change()
	}},
	{"lost twice", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.DropReply(opGetChildren2)
		p.DropReply(opGetData)
		change()
		p.Cut()
	}},
	{"expired", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.Expire()
		change()
	}},
	{"expired unseen", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.Refuse(true)
		p.Expire()
		p.Cut()
		change()
		p.Refuse(false)
	}},
	{"restart", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		change()
		w.Restart()
	}},
	{"slow", func(w *world, c *recipes.Client, p *servertest.Proxy, change func()) {
		p.Delay(slowness)
		change()
		p.Delay(0)
	}},
}

const slowness = 20e6 // ns

func TestFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create("/top", "")
			for i := range 5 {
				w.create(fmt.Sprint("/top/", i), "old")
				w.create(fmt.Sprint("/top/", i, "/x"), "old")
			}
			client, proxy := w.Faulty(t, brief)
			tree, err := NewTree(client, "/top", Options{})
			require.NoError(t, err)
			defer tree.Close()
			require.NoError(t, tree.Ready(recipestest.Context(t)))
			r := record(tree.Events(recipestest.Context(t)))
			f.do(w, client, proxy, func() {
				w.set("/top/0", "new")
				w.remove("/top/1/x")
				w.remove("/top/1")
				w.remake("/top/2/x", "new")
				w.create("/top/new", "new")
				w.create("/top/new/x", "new")
				w.remove("/top/3/x")
				w.remake("/top/3", "new")
				w.create("/top/3/x", "new")
			})
			w.requireAgrees(tree, r, "/top", f.name)
			w.set("/top/4", "after")
			w.requireAgrees(tree, r, "/top", f.name+", one change later")
		})
	}
}

// A fault may come while the cache is filled for the first time.
func TestFaultsDuringTheFirstFill(t *testing.T) {
	for _, op := range []int32{opGetData, opGetChildren2} {
		w := newWorld(t)
		w.create("/top", "")
		w.create("/top/a", "1")
		client, proxy := w.Faulty(t)
		proxy.DropReply(op)
		tree, err := NewTree(client, "/top", Options{})
		require.NoError(t, err)
		defer tree.Close()
		require.NoError(t, tree.Ready(recipestest.Context(t)))
		w.requireAgrees(tree, record(tree.Events(recipestest.Context(t))), "/top", "first fill")
	}
}

func TestLeaderChange(t *testing.T) {
	t.Parallel()
	three := recipestest.StartThree(t)
	w := &world{three, t, three.Raw(t)}
	w.create("/top", "")
	w.create("/top/a", "old")
	tree, err := NewTree(w.Client(t), "/top", Options{})
	require.NoError(t, err)
	defer tree.Close()
	require.NoError(t, tree.Ready(recipestest.Context(t)))
	r := record(tree.Events(recipestest.Context(t)))
	w.ChangeLeader()
	recipestest.Eventually(t, func() bool {
		_, err := w.raw.Set(w.Abs("/top/a"), []byte("new"), -1)
		return err == nil
	}, "the ensemble takes writes")
	w.requireAgrees(tree, r, "/top", "another leader")
}

// seedsDefault is how many random schedules a run tries. ZABRA_CACHE_SEEDS asks for more, ZABRA_CACHE_SEED for one of them.
const seedsDefault = 6

func TestRandomSchedules(t *testing.T) {
	first, count := 0, seedsDefault
	if text := os.Getenv("ZABRA_CACHE_SEEDS"); text != "" {
		count, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("ZABRA_CACHE_SEED"); text != "" {
		first, _ = strconv.Atoi(text)
		count = 1
	}
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			randomSchedule(t, rand.New(rand.NewPCG(uint64(seed), 2)), seed)
		})
	}
}

func randomSchedule(t *testing.T, rng *rand.Rand, seed int) {
	w := newWorld(t)
	client, proxy := w.Faulty(t, brief)
	tree, err := NewTree(client, "/top", Options{})
	require.NoError(t, err)
	defer tree.Close()
	r := record(tree.Events(recipestest.Context(t)))
	frozen := false
	for range 300 {
		if rng.IntN(12) > 0 {
			w.mutate(rng)
			continue
		}
		switch rng.IntN(8) {
		case 0:
			proxy.Cut()
		case 1:
			frozen = true
			proxy.Freeze()
		case 2, 3:
			proxy.DropReply([]int32{opGetData, opGetChildren2, opExists, opSync}[rng.IntN(4)])
		case 4:
			if !frozen {
				proxy.Expire()
			}
		case 5:
			if rng.IntN(4) == 0 && !frozen {
				w.Restart()
			}
		default:
			frozen = false
			proxy.Thaw()
		}
	}
	proxy.Thaw()
	w.requireAgrees(tree, r, "/top", fmt.Sprintf("seed %d", seed))
	recipestest.Eventually(t, func() bool { age, ok := tree.Age(); return ok && age == 0 }, "in step")
}

// mutate changes something somewhere. What cannot be done is not done, and after a restart nobody knows.
func (w *world) mutate(rng *rand.Rand) {
	path := "/top"
	for range rng.IntN(4) {
		path += fmt.Sprint("/", rng.IntN(3))
	}
	data := []byte(fmt.Sprint(rng.IntN(1000)))
	switch rng.IntN(6) {
	case 0, 1:
		_, _ = w.raw.Set(w.Abs(path), data, -1)
	case 2:
		_ = w.raw.Delete(w.Abs(path), -1)
	case 3:
		_, _ = w.raw.Multi(&zk.DeleteRequest{Path: w.Abs(path), Version: -1}, &zk.CreateRequest{Path: w.Abs(path), Data: data, Acl: open})
	default:
		_, _ = w.raw.Create(w.Abs(path), data, 0, open)
	}
}

// One change among ten thousand children costs a handful of requests, whatever it is.
func TestCostOfOneChange(t *testing.T) {
	const children, batch = 10_000, 500
	w := newWorld(t)
	w.create("/many", "")
	for i := 0; i < children; i += batch {
		var ops []any
		for j := range batch {
			ops = append(ops, &zk.CreateRequest{Path: w.Abs(fmt.Sprintf("/many/n%05d", i+j)), Data: []byte("old"), Acl: open})
		}
		_, err := w.raw.Multi(ops...)
		require.NoError(t, err)
	}
	client, proxy := w.Faulty(t)
	c, err := NewChildren(client, "/many", Options{})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Ready(recipestest.Context(t)))
	nodes, _ := c.Size()
	require.Equal(t, children, nodes)
	cost := func() [2]int { return [2]int{proxy.Requests(opGetData), proxy.Requests(opGetChildren2)} }
	if client.State() == recipes.Connected { // there was one connection only, so nothing was read twice
		require.Equal(t, [2]int{children, 1}, cost(), "reads and lists of the first fill")
	}
	r := record(c.Events(recipestest.Context(t)))
	recipestest.Eventually(t, func() bool { return r.saw(Initialized) }, "the reader has the contents")
	for i, change := range []struct {
		name         string
		do           func(node string)
		reads, lists int
	}{
		{"set", func(node string) { w.set(node, "new") }, 1, 0},
		{"create", func(node string) { w.create(node+"x", "new") }, 1, 1},
		// The new node may be read before the list that has it, and again beside a list that is read once more.
		{"remake", func(node string) { w.remake(node, "new") }, 3, 3},
		{"delete", func(node string) { w.remove(node) }, 1, 1},
	} {
		for attempt := 0; ; attempt++ {
			inStep := func() bool { age, known := c.Age(); return known && age == 0 }
			recipestest.Eventually(t, inStep, "it is in step")
			before, cuts, events := cost(), r.count(Suspended), r.total()
			change.do(fmt.Sprintf("/many/n%05d", 100*i+attempt))
			recipestest.Eventually(t, func() bool { return r.total() > events && inStep() }, change.name)
			after := cost()
			if r.count(Suspended) > cuts {
				continue // a busy machine has cost the connection, and then everything is read again
			}
			require.LessOrEqual(t, after[0]-before[0], change.reads, change.name)
			require.LessOrEqual(t, after[1]-before[1], change.lists, change.name)
			break
		}
	}
}
