package discovery

import (
	"testing"

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
