package barrier

import (
	"testing"

	"zabra/recipes/recipestest"
)

func TestMain(m *testing.M) { recipestest.Main(m) }
