package discovery

import (
	"context"
	"testing"
	"time"

	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

// opCreate, opMulti and the others are the numbers of requests on the wire.
const (
	opCreate     = 1
	opSetData    = 5
	opMulti      = 14
	opSetWatches = 101
)

// within is a context that ends far later than any of these tests needs.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
