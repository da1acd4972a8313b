package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
)

// fake is a server in the small: a tree with zxids, one-shot watches, and reads whose replies are under way.
type fake struct {
	rng     *rand.Rand
	zxid    int64
	nodes   map[string]*fakeNode
	m       *mirror
	asked   []*slot // not yet executed
	replies []reply // executed, not yet taken in
	watches []*fakeWatch
	fired   []*fakeWatch // not yet taken in
	reads   int
}

type fakeNode struct {
	data string
	stat zk.Stat
}

type reply struct {
	slot  *slot
	r     result
	watch *fakeWatch
}

// fakeWatch is a watch at the server; armed is its other end, from when the reply has been taken in.
type fakeWatch struct {
	slot  *slot
	armed chan struct{}
}

func (f *fake) parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

func (f *fake) create(path string) {
	if f.nodes[path] != nil || path != "/r" && f.nodes[f.parent(path)] == nil {
		return
	}
	f.zxid++
	f.nodes[path] = &fakeNode{fmt.Sprint("made at ", f.zxid), zk.Stat{Czxid: f.zxid, Mzxid: f.zxid, Pzxid: f.zxid}}
	if p := f.nodes[f.parent(path)]; p != nil {
		p.stat.Pzxid = f.zxid
	}
	f.trigger(path, false)
	f.trigger(f.parent(path), true)
}

func (f *fake) set(path string) {
	n := f.nodes[path]
	if n == nil {
		return
	}
	f.zxid++
	n.data, n.stat.Mzxid = fmt.Sprint("set at ", f.zxid), f.zxid
	n.stat.Version++
	f.trigger(path, false)
}

// remove deletes a node and all below, one by one as a client has to.
func (f *fake) remove(path string) {
	var below []string
	for p := range f.nodes {
		if p == path || strings.HasPrefix(p, path+"/") {
			below = append(below, p)
		}
	}
	slices.Sort(below)
	slices.Reverse(below)
	for _, p := range below {
		f.zxid++
		delete(f.nodes, p)
		if parent := f.nodes[f.parent(p)]; parent != nil {
			parent.stat.Pzxid = f.zxid
		}
		f.trigger(p, false)
		f.trigger(p, true)
		f.trigger(f.parent(p), true)
	}
}

func (f *fake) trigger(path string, kids bool) {
	f.watches = slices.DeleteFunc(f.watches, func(w *fakeWatch) bool {
		hit := w.slot.node.path == path && w.slot.kids == kids
		if hit {
			f.fired = append(f.fired, w)
		}
		return hit
	})
}

// execute carries out a read that was asked for, with its watch.
func (f *fake) execute(s *slot) {
	f.reads++
	n := f.nodes[s.node.path]
	rep := reply{slot: s, watch: &fakeWatch{slot: s}}
	switch {
	case n == nil:
		rep.r.missing = true
		if s.node.parent != nil || s.kids {
			rep.watch = nil
		}
	case s.kids:
		rep.r.stat = n.stat
		for p := range f.nodes {
			if p != "/r" && f.parent(p) == s.node.path {
				rep.r.names = append(rep.r.names, p[len(s.node.path)+1:])
			}
		}
		slices.Sort(rep.r.names)
	default:
		rep.r.data, rep.r.stat = []byte(n.data), n.stat
	}
	if rep.watch != nil {
		rep.r.fired = make(chan zk.Event)
		f.watches = append(f.watches, rep.watch)
	}
	f.replies = append(f.replies, rep)
}

// deliver hands a reply to the mirror. From then on the watch can be heard, if the mirror cares for it.
func (f *fake) deliver(rep reply) {
	f.m.do(func() {
		f.m.finish(rep.slot, rep.r)
		if rep.watch != nil {
			rep.watch.armed = rep.slot.armed
		}
	})
}

func pick[T any](rng *rand.Rand, list *[]T) T {
	i := rng.IntN(len(*list))
	x := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return x
}

// step lets something happen, anything that could happen now. Watches and replies overtake each other freely, except that
// a slot has one read at a time, and a watch is not heard before the reply that has set it.
func (f *fake) step(mutate bool) bool {
	var heard []*fakeWatch
	for _, w := range f.fired {
		if w.armed != nil {
			heard = append(heard, w)
		}
	}
	switch choice := f.rng.IntN(8); {
	case mutate && f.rng.IntN(100) == 0:
		f.reconnect()
	case choice < 2 && len(f.asked) > 0:
		f.execute(pick(f.rng, &f.asked))
	case choice < 4 && len(f.replies) > 0:
		f.deliver(pick(f.rng, &f.replies))
	case choice < 6 && len(heard) > 0:
		w := pick(f.rng, &heard)
		f.fired = slices.DeleteFunc(f.fired, func(other *fakeWatch) bool { return other == w })
		f.m.do(func() { f.m.fire(w.slot, w.armed) })
	case mutate && choice >= 6:
		f.mutate()
	}
	return len(f.asked) > 0 || len(f.replies) > 0 || len(heard) > 0
}

// reconnect loses every watch, and every event that was not heard yet.
func (f *fake) reconnect() {
	f.watches, f.fired = nil, nil
	f.m.do(func() { f.m.connection(recipes.Reconnected) })
}

func (f *fake) mutate() {
	path := "/r"
	for range f.rng.IntN(4) {
		path += fmt.Sprint("/", f.rng.IntN(3))
	}
	switch f.rng.IntN(5) {
	case 0:
		f.set(path)
	case 1:
		f.remove(path)
	case 2:
		f.remove(path)
		f.create(path)
	default:
		f.create(path)
	}
}

// Replies and watches come in every order that a server and a scheduler can bring about. The events never go back, always
// form a tree, and the contents end up right.
func TestEveryOrderOfReplies(t *testing.T) {
	for seed := range uint64(3000) {
		f, s := newFake(t, seed)
		for range f.rng.IntN(300) {
			f.step(true)
		}
		f.settle()
		require.Truef(t, f.m.inStep && f.m.filled, "seed %d: not in step", seed)
		replayed := newReplay()
		for _, e := range s.queue {
			require.NoErrorf(t, replayed.take(e), "seed %d", seed)
		}
		require.Equalf(t, f.contents(), replayed.contents(), "seed %d: events", seed)
		require.Equalf(t, f.contents(), contentsOf((&Tree{f.m}).All()), "seed %d: contents", seed)
		nodes, bytes := f.m.Size()
		require.Equalf(t, len(f.nodes), nodes, "seed %d", seed)
		require.Equalf(t, f.bytes(), bytes, "seed %d", seed)
		require.LessOrEqualf(t, f.m.zxid, f.zxid, "seed %d", seed)
		f.m.Close()
	}
}

// settle lets everything happen that is under way.
func (f *fake) settle() {
	for quiet := 0; quiet < 50; quiet++ {
		if f.step(false) {
			quiet = 0
		}
	}
}

func newFake(t *testing.T, seed uint64) (*fake, *subscription) {
	f := &fake{rng: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]*fakeNode{}, zxid: 100}
	options := Options{}
	require.NoError(t, options.normalize())
	f.m = newMirror("/r", -1, false, options)
	f.m.connected = true
	f.m.launch = func(s *slot) { f.asked = append(f.asked, s) }
	s := &subscription{max: 1 << 30, wake: make(chan struct{}, 1)}
	f.m.subscriptions[s] = true
	f.m.do(func() { f.m.schedule(&f.m.root.data) })
	return f, s
}

// A list may name a child again before an older read says that it is missing: then it has to be read once more.
func TestListOvertakesMissing(t *testing.T) {
	f, _ := newFake(t, 1)
	defer f.m.Close()
	f.create("/r")
	f.create("/r/a")
	f.settle()
	f.remove("/r/a")
	for _, w := range f.fired {
		f.m.do(func() { f.m.fire(w.slot, w.armed) })
	}
	f.fired = nil
	a, r := &f.m.byPath["/r/a"].data, &f.m.root.list
	require.Subset(t, f.asked, []*slot{a, r})
	f.asked = slices.DeleteFunc(f.asked, func(s *slot) bool { return s == a || s == r })
	f.execute(a)
	f.create("/r/a")
	f.execute(r)
	missing, list := f.replies[0], f.replies[1]
	f.replies = nil
	f.deliver(list)
	f.deliver(missing)
	f.settle()
	require.Equal(t, f.contents(), contentsOf((&Tree{f.m}).All()))
}

// A server whose pzxid is wrong, as after some repairs of old versions, costs a few more lists and no node.
func TestWrongPzxid(t *testing.T) {
	f, _ := newFake(t, 1)
	defer f.m.Close()
	f.create("/r")
	f.create("/r/a")
	f.nodes["/r"].stat.Pzxid = f.nodes["/r"].stat.Czxid
	f.settle()
	require.True(t, f.m.inStep)
	require.Equal(t, f.contents(), contentsOf((&Tree{f.m}).All()))
	require.Less(t, f.reads, 12)
}

// An ensemble that was restored from a backup has lost what the cache has seen. The old nodes are Removed, then: nothing else
// would ever end.
func TestEnsembleThatWentBack(t *testing.T) {
	f, s := newFake(t, 1)
	defer f.m.Close()
	f.create("/r")
	f.create("/r/a")
	backup, zxid := f.contents(), f.zxid
	for range 5 {
		f.set("/r/a")
		f.set("/r")
	}
	f.create("/r/b")
	f.settle()
	require.Len(t, (&Tree{f.m}).All(), 3)

	f.zxid, f.nodes = 100, map[string]*fakeNode{}
	f.create("/r")
	f.create("/r/a")
	require.Equal(t, backup, f.contents())
	require.Equal(t, zxid, f.zxid)
	f.reconnect()
	f.settle()
	require.True(t, f.m.inStep)
	require.Equal(t, backup, contentsOf((&Tree{f.m}).All()))
	var removed []string
	for _, e := range s.queue {
		if e.Kind == Removed {
			removed = append(removed, e.Entry.Path)
		}
	}
	require.ElementsMatch(t, []string{"/r", "/r/a", "/r/b"}, removed)
	require.EqualValues(t, -1, f.m.floor.session.Load(), "the next read begins with a sync")
}

func (f *fake) contents() map[string]string {
	all := map[string]string{}
	for path, n := range f.nodes {
		all[path] = describe(n.data, &n.stat)
	}
	return all
}

func (f *fake) bytes() (sum int64) {
	for path, n := range f.nodes {
		sum += int64(len(path) + len(n.data))
	}
	return sum
}
