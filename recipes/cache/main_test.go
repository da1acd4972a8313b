package cache

import (
	"errors"
	"maps"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

// patience is how long a test waits for what has to come.
const patience = 60 * time.Second

// world is a server with a connection of the test's own to look and to change.
type world struct {
	*recipestest.World
	t   testing.TB
	raw *zk.Conn
}

// brief makes a client lose its session soon.
func brief(o *recipes.Options) { o.SessionTimeout = 600 * time.Millisecond }

func newWorld(t testing.TB) *world {
	w := recipestest.Start(t)
	return &world{w, t, w.Raw(t)}
}

var open = zk.WorldACL(zk.PermAll)

func (w *world) create(path, data string) {
	w.t.Helper()
	_, err := w.raw.Create(w.Abs(path), []byte(data), 0, open)
	require.NoError(w.t, err)
}

func (w *world) set(path, data string) {
	w.t.Helper()
	_, err := w.raw.Set(w.Abs(path), []byte(data), -1)
	require.NoError(w.t, err)
}

func (w *world) remove(path string) {
	w.t.Helper()
	require.NoError(w.t, w.raw.Delete(w.Abs(path), -1))
}

// remake deletes a node and makes it again in one transaction: nobody can look in between.
func (w *world) remake(path, data string) {
	w.t.Helper()
	_, err := w.raw.Multi(&zk.DeleteRequest{Path: w.Abs(path), Version: -1},
		&zk.CreateRequest{Path: w.Abs(path), Data: []byte(data), Acl: open})
	require.NoError(w.t, err)
}

// listing reads the nodes below a path, with it, one by one. It returns false if they changed or could not be read.
func (w *world) listing(at string) (map[string]string, bool) {
	data, stat, err := w.raw.Get(w.Abs(at))
	if errors.Is(err, zk.ErrNoNode) {
		return map[string]string{}, true
	}
	if err != nil {
		return nil, false
	}
	all := map[string]string{at: describe(string(data), stat)}
	names, _, err := w.raw.Children(w.Abs(at))
	if err != nil {
		return nil, false
	}
	for _, name := range names {
		below, ok := w.listing(path.Join(at, name))
		if !ok {
			return nil, false
		}
		maps.Copy(all, below)
	}
	return all, true
}

// recorder follows a stream of events and judges it.
type recorder struct {
	mu     sync.Mutex
	replay *replay
	all    []Event
	err    error
	done   chan struct{}
}

func record(events <-chan Event) *recorder {
	r := &recorder{replay: newReplay(), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for e := range events {
			r.mu.Lock()
			r.all = append(r.all, e)
			if err := r.replay.take(e); r.err == nil {
				r.err = err
			}
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *recorder) contents() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replay.contents()
}

func (r *recorder) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// kinds are the events so far, as "Added /a".
func (r *recorder) kinds() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.all {
		text := e.Kind.String()
		if e.Entry.Path != "" {
			text += " " + e.Entry.Path
		}
		list = append(list, text)
	}
	return list
}

func (r *recorder) saw(kind Kind) bool { return r.count(kind) > 0 }

func (r *recorder) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

func (r *recorder) count(kind Kind) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.replay.seen[kind]
}

// requireAgrees waits until a tree, its events and the server agree.
func (w *world) requireAgrees(tree *Tree, r *recorder, root, what string) {
	w.t.Helper()
	var real, held, replayed map[string]string
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%s:\nserver %v\ncache  %v\nevents %v\n%v", what, real, held, replayed, r.kinds())
		}
	}()
	recipestest.Eventually(w.t, func() bool {
		var ok bool
		if real, ok = w.listing(root); !ok {
			return false
		}
		held, replayed = contentsOf(tree.All()), r.contents()
		return maps.Equal(real, held) && maps.Equal(real, replayed)
	}, what+": the cache agrees with the server")
	require.NoError(w.t, r.fault(), what)
}

// await waits until a channel is closed.
func await(t testing.TB, closed <-chan struct{}) {
	t.Helper()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("it never ended")
	}
}
