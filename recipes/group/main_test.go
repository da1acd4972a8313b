package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

const (
	// limit bounds the whole of a test. It is far above what is ever needed.
	limit = time.Minute
	// where is the path of the group.
	where = "/services/web"
)

// bounded returns a context that ends with the test.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// join makes a member, and waits until it is one.
func join(t *testing.T, c *recipes.Client, id, payload string) *Member {
	t.Helper()
	m, err := Join(c, where, id, []byte(payload))
	require.NoError(t, err)
	t.Cleanup(m.Leave)
	require.NoError(t, m.AwaitJoined(bounded(t)))
	return m
}

// watcher keeps what Watch yields.
type watcher struct {
	mu   sync.Mutex
	sets []string
	errs []error
	done chan struct{}
}

// watching follows the group until the test ends.
func watching(t *testing.T, ctx context.Context, c *recipes.Client) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for members, err := range Watch(ctx, c, where) {
			w.add(members, err)
		}
	}()
	t.Cleanup(func() { cancel(); <-w.done })
	return w
}

func (w *watcher) add(members map[string][]byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	w.sets = append(w.sets, text(members))
}

func (w *watcher) seen() ([]string, []error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sets), slices.Clone(w.errs)
}

// text writes a set as "a=1 b=2".
func text(members map[string][]byte) (s string) {
	for i, id := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%s=%s", id, members[id])
	}
	return s
}

// shows waits until the last set is that one.
func (w *watcher) shows(t *testing.T, want string) {
	t.Helper()
	recipestest.Eventually(t, func() bool {
		sets, _ := w.seen()
		return len(sets) > 0 && sets[len(sets)-1] == want
	}, fmt.Sprintf("the group is %q", want))
}
