package barrier

import (
	"context"
	"testing"
	"time"

	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }

// waitMax bounds everything that is waited for. It is far above what is ever needed.
const waitMax = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	t.Cleanup(cancel)
	return ctx
}
