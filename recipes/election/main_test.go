package election

import (
	"context"
	"fmt"
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

// limit bounds the whole of a test. It is far above what is ever needed.
const limit = time.Minute

// where is the path of the elections.
const where = "/services/election"

// bounded returns a context that ends with the test.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// short has the session of a client end soon.
func short(o *recipes.Options) { o.SessionTimeout = shortTimeout }

const shortTimeout = 600 * time.Millisecond

// participant is a latch, or a selector that runs again and again.
type participant interface {
	Term() *Term
	// give ends the present term.
	give()
	leave()
}

type latch struct{ *Latch }

func (l latch) give() {
	if term := l.Term(); term != nil {
		term.Relinquish()
	}
}
func (l latch) leave() { l.Close() }

type selector struct {
	*Selector
	cancel context.CancelFunc
	ended  chan error
}

func (s *selector) give()  { s.Interrupt() }
func (s *selector) leave() { s.cancel(); <-s.ended }

type startFunc func(t *testing.T, c *recipes.Client, id string) participant

// world starts one server, or three.
func world(t *testing.T, three bool) *recipestest.World {
	if three {
		return recipestest.StartThree(t)
	}
	return recipestest.Start(t)
}

// kinds are the two kinds of participants, by name.
var kinds = map[string]startFunc{
	"latch": func(t *testing.T, c *recipes.Client, id string) participant {
		l, err := StartLatch(c, where, id)
		require.NoError(t, err)
		t.Cleanup(l.Close)
		return latch{l}
	},
	"selector": func(t *testing.T, c *recipes.Client, id string) participant {
		ctx, cancel := context.WithCancel(t.Context())
		s := &selector{Selector: NewSelector(c, where, id, SelectorOptions{}), cancel: cancel, ended: make(chan error, 1)}
		go func() {
			s.ended <- s.RunAgain(ctx, func(ctx context.Context, _ *Term) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		return s
	},
}

// leading waits until exactly one of the participants leads.
func leading(t *testing.T, all ...participant) participant {
	t.Helper()
	var leader participant
	recipestest.Eventually(t, func() bool {
		n := 0
		for _, p := range all {
			if p.Term() != nil {
				leader = p
				n++
			}
		}
		return n == 1
	}, "one participant leads")
	return leader
}

// lined waits until exactly these ids are in the line, in any order.
func lined(t *testing.T, c *recipes.Client, ids ...string) {
	t.Helper()
	recipestest.Eventually(t, func() bool {
		list, err := Participants(t.Context(), c, where)
		if err != nil || len(list) != len(ids) {
			return false
		}
		seen := map[string]bool{}
		for _, p := range list {
			seen[p.ID] = true
		}
		for _, id := range ids {
			if !seen[id] {
				return false
			}
		}
		return true
	}, fmt.Sprintf("the participants are %v", ids))
}

// stranger makes a node as another library would, and returns its path.
func stranger(t *testing.T, w *recipestest.World, raw *zk.Conn, name, id string) string {
	t.Helper()
	made, err := raw.Create(w.Abs(where)+"/"+name, []byte(id), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return made
}
