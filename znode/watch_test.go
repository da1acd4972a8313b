package znode

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

// recorder is a Watcher that writes down what it is told: "type path" in the order of arrival, and into all, if set,
// who was told.
type recorder struct {
	name   string
	got    []string
	events []*Event
	all    *[]string
}

func (r *recorder) Notify(e *Event) {
	r.got = append(r.got, fmt.Sprintf("%d %s", e.Type, e.Path))
	r.events = append(r.events, e)
	if r.all != nil {
		*r.all = append(*r.all, r.name)
	}
}

func (r *recorder) take() []string {
	got := r.got
	r.got, r.events = nil, nil
	return got
}

// silent is a Watcher that only counts.
type silent struct{ n atomic.Int64 }

func (s *silent) Notify(*Event) { s.n.Add(1) }

var watchACL, watchParentACL = NewACLList(wire.OpenACL), NewACLList(wire.ReadACL)

func fireChange(w *Watches, change, path string) {
	switch p := []byte(path); change {
	case "create":
		w.NodeCreated(p, 7, watchACL, watchParentACL)
	case "delete":
		w.NodeDeleted(p, 7, watchACL, watchParentACL)
	case "set":
		w.NodeDataChanged(p, 7, watchACL)
	default:
		panic(change)
	}
}

// setWatch registers what a request of this kind registers.
func setWatch(w *Watches, id WatcherID, kind, path string) {
	switch p := []byte(path); kind {
	case "data", "exists":
		w.Add(id, TableData, p, WatchStandard)
	case "child":
		w.Add(id, TableChild, p, WatchStandard)
	case "persistent":
		w.AddWatch(id, p, false)
	case "recursive":
		w.AddWatch(id, p, true)
	default:
		panic(kind)
	}
}

// TestTriggerTable: for a watch of each kind at /x what each change tells, and whether the
// watch is gone afterwards.
func TestTriggerTable(t *testing.T) {
	type row struct {
		change, path string
		want         []string
		gone         bool
	}
	none := func(change, path string) row { return row{change: change, path: path} }
	tests := map[string][]row{
		"data": {
			{"delete", "/x", []string{"2 /x"}, true},
			{"set", "/x", []string{"3 /x"}, true},
			none("create", "/x/c"), none("delete", "/x/c"), none("set", "/x/c"), none("create", "/x/c/d"), none("set", "/"), none("create", "/y"),
		},
		"exists": {
			{"create", "/x", []string{"1 /x"}, true},
			{"delete", "/x", []string{"2 /x"}, true},
			{"set", "/x", []string{"3 /x"}, true},
			none("create", "/x/c"), none("delete", "/x/c"), none("create", "/xx"),
		},
		"child": {
			{"delete", "/x", []string{"2 /x"}, true},
			{"create", "/x/c", []string{"4 /x"}, true},
			{"delete", "/x/c", []string{"4 /x"}, true},
			none("set", "/x"), none("set", "/x/c"), none("create", "/x"), none("create", "/x/c/d"),
		},
		"persistent": {
			{"create", "/x", []string{"1 /x"}, false},
			{"delete", "/x", []string{"2 /x"}, false},
			{"set", "/x", []string{"3 /x"}, false},
			{"create", "/x/c", []string{"4 /x"}, false},
			{"delete", "/x/c", []string{"4 /x"}, false},
			none("set", "/x/c"), none("create", "/x/c/d"), none("delete", "/x/c/d"), none("set", "/"),
		},
		"recursive": {
			{"create", "/x", []string{"1 /x"}, false},
			{"delete", "/x", []string{"2 /x"}, false},
			{"set", "/x", []string{"3 /x"}, false},
			{"create", "/x/c", []string{"1 /x/c"}, false},
			{"delete", "/x/c", []string{"2 /x/c"}, false},
			{"set", "/x/c", []string{"3 /x/c"}, false},
			{"create", "/x/c/d", []string{"1 /x/c/d"}, false},
			{"delete", "/x/c/d", []string{"2 /x/c/d"}, false},
			{"set", "/x/c/d", []string{"3 /x/c/d"}, false},
			none("set", "/"), none("create", "/xx"), none("create", "/xx/c"), none("create", "/y"),
		},
	}
	for kind, rows := range tests {
		for _, r := range rows {
			w, rec := NewWatches(), &recorder{}
			id := w.Attach(rec)
			setWatch(w, id, kind, "/x")
			fireChange(w, r.change, r.path)
			what := fmt.Sprintf("%s watch at /x, %s %s", kind, r.change, r.path)
			require.Equal(t, r.want, rec.take(), what)
			require.Equal(t, r.gone, w.Total() == 0, what)
			require.NoError(t, w.Check(), what)
			fireChange(w, r.change, r.path)
			want := r.want
			if r.gone {
				want = nil
			}
			require.Equal(t, want, rec.take(), "%s, again", what)
		}
	}
}

// Watchers with several watches around one change: at most one event per trigger, and which triggers.
func TestTriggerCombinations(t *testing.T) {
	type watch struct{ kind, path string }
	tests := []struct {
		name         string
		watches      []watch
		change, path string
		want         []string
		left         int
	}{
		{"data and child, delete", []watch{{"data", "/x"}, {"child", "/x"}}, "delete", "/x", []string{"2 /x"}, 0},
		{"data and child, set", []watch{{"data", "/x"}, {"child", "/x"}}, "set", "/x", []string{"3 /x"}, 1},
		{"data and child, new child", []watch{{"data", "/x"}, {"child", "/x"}}, "create", "/x/c", []string{"4 /x"}, 1},
		{"persistent and one-shot, set", []watch{{"persistent", "/x"}, {"data", "/x"}}, "set", "/x", []string{"3 /x"}, 2},
		{"persistent and child, delete", []watch{{"persistent", "/x"}, {"child", "/x"}}, "delete", "/x", []string{"2 /x"}, 2},
		{"persistent and recursive, set", []watch{{"persistent", "/x"}, {"recursive", "/x"}}, "set", "/x", []string{"3 /x"}, 2},
		{"persistent and recursive, child", []watch{{"persistent", "/x"}, {"recursive", "/x"}}, "create", "/x/c", []string{"1 /x/c", "4 /x"}, 2},
		{"child and recursive, child", []watch{{"recursive", "/x"}, {"child", "/x"}}, "delete", "/x/c", []string{"2 /x/c", "4 /x"}, 1},
		{"several recursive ancestors", []watch{{"recursive", "/"}, {"recursive", "/x"}, {"recursive", "/x/c"}}, "set", "/x/c/d", []string{"3 /x/c/d"}, 3},
		{"recursive above, one-shot at the path", []watch{{"recursive", "/"}, {"data", "/x"}}, "set", "/x", []string{"3 /x"}, 1},
		{"recursive above and child, delete", []watch{{"recursive", "/"}, {"child", "/x"}}, "delete", "/x", []string{"2 /x"}, 1},
		{"recursive at the root, the root itself", []watch{{"recursive", "/"}}, "set", "/", []string{"3 /"}, 1},
		{"recursive at the root, top level", []watch{{"recursive", "/"}}, "create", "/x", []string{"1 /x"}, 1},
		{"one-shot at an ancestor stays", []watch{{"data", "/"}, {"data", "/x"}}, "set", "/x/c", nil, 2},
		{"child of the root", []watch{{"child", "/"}}, "create", "/x", []string{"4 /"}, 0},
		{"the empty path is another one", []watch{{"child", ""}, {"recursive", ""}}, "create", "/x", nil, 2},
		{"node and parent", []watch{{"exists", "/x/c"}, {"child", "/x"}}, "create", "/x/c", []string{"1 /x/c", "4 /x"}, 0},
	}
	for _, tt := range tests {
		w, rec := NewWatches(), &recorder{}
		id := w.Attach(rec)
		for _, x := range tt.watches {
			setWatch(w, id, x.kind, x.path)
		}
		fireChange(w, tt.change, tt.path)
		require.Equal(t, tt.want, rec.take(), tt.name)
		require.Equal(t, tt.left, w.Total(), tt.name)
		require.NoError(t, w.Check(), tt.name)
	}
}

// A recursive watcher hears the name of each changed node, never that its children changed.
func TestRecursiveNamesTheChangedNode(t *testing.T) {
	w, rec := NewWatches(), &recorder{}
	w.AddWatch(w.Attach(rec), []byte("/a"), true)
	for _, c := range [][2]string{{"create", "/a/b"}, {"create", "/a/b/c"}, {"set", "/a/b/c"}, {"delete", "/a/b/c"}, {"delete", "/a/b"}} {
		fireChange(w, c[0], c[1])
	}
	require.Equal(t, []string{"1 /a/b", "1 /a/b/c", "3 /a/b/c", "2 /a/b/c", "2 /a/b"}, rec.take())
}

func TestEventContents(t *testing.T) {
	w, a, b := NewWatches(), &recorder{}, &recorder{}
	for _, rec := range []*recorder{a, b} {
		id := w.Attach(rec)
		w.AddWatch(id, []byte("/p"), false)
		w.AddWatch(id, []byte("/p/c"), false)
	}
	w.NodeDeleted([]byte("/p/c"), 0x500000003, watchACL, watchParentACL)
	require.Equal(t, []string{"2 /p/c", "4 /p"}, a.got)
	require.Equal(t, a.got, b.got)
	for i, e := range a.events {
		require.Same(t, e, b.events[i], "one event for all watchers")
		require.Equal(t, zxid.Zxid(0x500000003), e.Zxid)
	}
	require.Same(t, watchACL, a.events[0].ACL)
	require.Same(t, watchParentACL, a.events[1].ACL, "the parent's event is judged by the parent's list")
}

func TestEventOrderIsTheOrderOfAttachment(t *testing.T) {
	var all []string
	w := NewWatches()
	var ids []WatcherID
	for i := range 50 {
		ids = append(ids, w.Attach(&recorder{name: fmt.Sprintf("%02d", i), all: &all}))
	}
	for i := range ids {
		id := ids[(i*37+11)%len(ids)]
		setWatch(w, id, "data", "/x/y")
		if i%3 == 0 {
			setWatch(w, id, "recursive", "/x")
		}
	}
	fireChange(w, "set", "/x/y")
	require.Len(t, all, len(ids))
	require.IsIncreasing(t, all)
	require.NoError(t, w.Check())
}

// TestRemove: which types of request find and take away which watches.
func TestRemove(t *testing.T) {
	has := func(w *Watches, id WatcherID, path string) (found []int32) {
		for typ := int32(0); typ <= 6; typ++ {
			if w.Has(id, []byte(path), typ) {
				found = append(found, typ)
			}
		}
		return found
	}
	tests := []struct {
		kinds       []string
		before      []int32
		remove      int32
		ok          bool
		after       []int32
		watchesLeft int
	}{
		{nil, nil, WatchTypeAny, false, nil, 0},
		{[]string{"child"}, []int32{1, 3}, WatchTypeChildren, true, nil, 0},
		{[]string{"child"}, []int32{1, 3}, WatchTypeData, false, []int32{1, 3}, 1},
		{[]string{"data"}, []int32{2, 3}, WatchTypeData, true, nil, 0},
		{[]string{"exists"}, []int32{2, 3}, WatchTypeData, true, nil, 0},
		{[]string{"data"}, []int32{2, 3}, WatchTypeChildren, false, []int32{2, 3}, 1},
		{[]string{"data", "child"}, []int32{1, 2, 3}, WatchTypeData, true, []int32{1, 3}, 1},
		{[]string{"data", "child"}, []int32{1, 2, 3}, WatchTypeAny, true, nil, 0},
		{[]string{"persistent"}, []int32{3, 4}, WatchTypePersistent, true, nil, 0},
		{[]string{"persistent"}, []int32{3, 4}, WatchTypeData, false, []int32{3, 4}, 2},
		{[]string{"persistent"}, []int32{3, 4}, WatchTypeRecursive, false, []int32{3, 4}, 2},
		{[]string{"recursive"}, []int32{3, 5}, WatchTypeRecursive, true, nil, 0},
		{[]string{"recursive"}, []int32{3, 5}, WatchTypePersistent, false, []int32{3, 5}, 1},
		{[]string{"persistent", "data", "child"}, []int32{1, 2, 3, 4}, WatchTypePersistent, true, []int32{1, 2, 3}, 2},
		{[]string{"persistent", "data"}, []int32{2, 3, 4}, WatchTypeData, true, []int32{3, 4}, 2},
		{[]string{"persistent", "child"}, []int32{1, 3, 4}, WatchTypeChildren, true, []int32{3, 4}, 2},
		{[]string{"persistent", "recursive"}, []int32{3, 4, 5}, WatchTypePersistent, true, []int32{3, 5}, 1},
		{[]string{"persistent", "recursive", "data", "child"}, []int32{1, 2, 3, 4, 5}, WatchTypeAny, true, nil, 0},
		{[]string{"data"}, []int32{2, 3}, 0, false, []int32{2, 3}, 1},
		{[]string{"data"}, []int32{2, 3}, 6, false, []int32{2, 3}, 1},
	}
	for _, tt := range tests {
		w, rec, other := NewWatches(), &recorder{}, &recorder{}
		id, otherID := w.Attach(rec), w.Attach(other)
		for _, kind := range tt.kinds {
			setWatch(w, id, kind, "/x")
		}
		setWatch(w, otherID, "persistent", "/x")
		setWatch(w, otherID, "recursive", "/x")
		what := fmt.Sprintf("%v, remove %d", tt.kinds, tt.remove)
		require.Equal(t, tt.before, has(w, id, "/x"), what)
		require.False(t, w.Remove(id, []byte("/x/"), tt.remove), "only the exact path counts")
		require.Equal(t, tt.ok, w.Remove(id, []byte("/x"), tt.remove), what)
		require.Equal(t, tt.after, has(w, id, "/x"), what)
		require.Equal(t, tt.watchesLeft+2, w.Total(), what)
		require.Equal(t, []int32{3, 4, 5}, has(w, otherID, "/x"), "other watchers keep theirs")
		require.NoError(t, w.Check(), what)
		require.Empty(t, rec.take(), "nobody is told")
	}
}

func TestCounts(t *testing.T) {
	w := NewWatches()
	counts := func() [4]int {
		c, p, n := w.Counts()
		return [4]int{c, p, n, w.Total()}
	}
	a, b := w.Attach(&recorder{}), w.Attach(&recorder{})
	require.Equal(t, [4]int{}, counts())
	setWatch(w, a, "data", "/x")
	setWatch(w, a, "data", "/x")
	require.Equal(t, [4]int{1, 1, 1, 1}, counts(), "repeating is idempotent")
	setWatch(w, b, "data", "/x")
	setWatch(w, b, "data", "/y")
	require.Equal(t, [4]int{2, 2, 3, 3}, counts())
	setWatch(w, a, "child", "/x")
	require.Equal(t, [4]int{2, 2, 3, 4}, counts(), "child watches count only for the total")
	setWatch(w, a, "persistent", "/x")
	require.Equal(t, [4]int{2, 2, 3, 4}, counts(), "a watcher is once in a table at a path, whatever its modes")
	setWatch(w, a, "persistent", "/z")
	require.Equal(t, [4]int{2, 3, 4, 6}, counts())
	w.Detach(a)
	require.Equal(t, [4]int{1, 2, 2, 2}, counts())
	w.Detach(b)
	require.Equal(t, [4]int{}, counts())
	require.NoError(t, w.Check())
}

func TestVisit(t *testing.T) {
	w := NewWatches()
	a, b := &recorder{name: "a"}, &recorder{name: "b"}
	ida, idb := w.Attach(a), w.Attach(b)
	w.Attach(&recorder{name: "idle"})
	setWatch(w, idb, "data", "/y")
	setWatch(w, idb, "recursive", "/x")
	setWatch(w, ida, "exists", "/x")
	setWatch(w, ida, "child", "/c")
	var byPath, byWatcher []string
	w.VisitByPath(func(path string, watchers []Watcher) bool {
		for _, x := range watchers {
			path += " " + x.(*recorder).name
		}
		byPath = append(byPath, path)
		return true
	})
	require.Equal(t, []string{"/x a b", "/y b"}, byPath)
	w.VisitByWatcher(func(x Watcher, paths []string) bool {
		byWatcher = append(byWatcher, fmt.Sprint(x.(*recorder).name, paths))
		return true
	})
	require.Equal(t, []string{"a[/x]", "b[/x /y]"}, byWatcher)

	calls := 0
	w.VisitByPath(func(string, []Watcher) bool { calls++; return false })
	w.VisitByWatcher(func(Watcher, []string) bool { calls++; return false })
	require.Equal(t, 2, calls)
}

func TestDetach(t *testing.T) {
	w, rec := NewWatches(), &recorder{}
	id := w.Attach(rec)
	for _, kind := range []string{"data", "child", "persistent", "recursive"} {
		setWatch(w, id, kind, "/x")
		setWatch(w, id, kind, "/x/y")
	}
	w.Detach(id)
	w.Detach(id)
	require.Zero(t, w.Total())
	setWatch(w, id, "data", "/x")
	require.Zero(t, w.Total(), "a watcher that is gone gets no watches")
	require.False(t, w.Remove(id, []byte("/x"), WatchTypeAny))
	fireChange(w, "set", "/x")
	fireChange(w, "delete", "/x/y")
	require.Empty(t, rec.take())
	require.NotEqual(t, id, w.Attach(rec), "ids are not used twice")
	require.NoError(t, w.Check())
}

func TestIDsPassThoseInUseByWhenTheyStartOver(t *testing.T) {
	w := NewWatches()
	first := w.Attach(&recorder{})
	w.registry.last = ^WatcherID(0) - 1
	require.Equal(t, ^WatcherID(0), w.Attach(&recorder{}))
	require.Equal(t, first+1, w.Attach(&recorder{}), "0 and the first are passed by")
}

// Thousands of connections watch one path and go in any order.
func TestDetachOfManyFromOnePath(t *testing.T) {
	const n = 4000
	w := NewWatches()
	var ids []WatcherID
	for range n {
		ids = append(ids, w.Attach(&silent{}))
		w.AddWatch(ids[len(ids)-1], []byte("/x"), false)
	}
	for i := range ids {
		w.Detach(ids[(i*1337+7)%n])
		if i%500 == 0 {
			require.NoError(t, w.Check())
		}
	}
	require.Zero(t, w.Total())
	require.NoError(t, w.Check())
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Watches that come and go leave nothing behind.
func TestChurnLeavesNothingBehind(t *testing.T) {
	w, s := NewWatches(), &silent{}
	id := w.Attach(s)
	churn := func(n int) {
		for i := range n {
			path := fmt.Sprintf("/x%d", i%1957)
			setWatch(w, id, "exists", path)
			fireChange(w, "create", path)
			setWatch(w, id, "child", path)
			fireChange(w, "delete", path)
		}
	}
	churn(2000)
	before := heapInUse()
	churn(100_000)
	require.Zero(t, w.Total())
	require.Less(t, heapInUse()-before, int64(64<<10))
	require.EqualValues(t, 2*102_000, s.n.Load())
	require.NoError(t, w.Check())

	// Connections that leave with their watches take everything along.
	for range 200 {
		id := w.Attach(s)
		for j := range 500 {
			setWatch(w, id, "persistent", fmt.Sprintf("/p%d", j))
		}
		setWatch(w, id, "recursive", "/")
		w.Detach(id)
	}
	require.Zero(t, w.Total())
	require.Less(t, heapInUse()-before, int64(64<<10))
	require.NoError(t, w.Check())
	runtime.KeepAlive(w)
}

// Connections set, remove and lose watches while one goroutine applies changes.
func TestWatchesConcurrently(t *testing.T) {
	w := NewWatches()
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/d"}
	kinds := []string{"data", "child", "persistent", "recursive"}
	stop := make(chan struct{})
	var applier, users sync.WaitGroup
	applier.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				fireChange(w, []string{"create", "set", "delete"}[i%3], paths[1+i%4])
			}
		}
	})
	for u := range 8 {
		users.Go(func() {
			s := &silent{}
			for round := range 60 {
				id := w.Attach(s)
				for i := range 40 {
					path := paths[(u+i*round)%len(paths)]
					setWatch(w, id, kinds[(i+u)%len(kinds)], path)
					if i%5 == 0 {
						w.Remove(id, []byte(path), int32(1+i%5))
					}
					w.Has(id, []byte(path), WatchTypeAny)
				}
				w.Counts()
				w.VisitByPath(func(string, []Watcher) bool { return true })
				w.Detach(id)
			}
		})
	}
	users.Wait()
	close(stop)
	applier.Wait()
	require.Zero(t, w.Total())
	require.NoError(t, w.Check())
}
