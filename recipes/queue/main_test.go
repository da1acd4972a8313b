package queue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

// opCreate and opMulti are the numbers of requests on the wire.
const (
	opCreate     = 1
	opMulti      = 14
	opSetWatches = 101
)

const at = "/q"

func newQueue(t *testing.T, c *recipes.Client, path string, o Options) *Queue {
	t.Helper()
	q, err := New(c, path, o)
	require.NoError(t, err)
	return q
}

// take takes the next entry, which is there or is going to be.
func take(t *testing.T, ctx context.Context, q *Taker) *Entry {
	t.Helper()
	e, err := q.Take(ctx)
	require.NoError(t, err)
	return e
}
