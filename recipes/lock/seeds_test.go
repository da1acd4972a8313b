package lock

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// seedsVariable replaces the seeds of random schedules: "7-7" for one, "100-199" for many.
const seedsVariable = "ZABRA_LOCK_SEEDS"

// seeds returns the first n seeds, or those that are asked for.
func seeds(t *testing.T, n uint64) (list []uint64) {
	first, last := uint64(0), n-1
	if text := os.Getenv(seedsVariable); text != "" {
		_, err := fmt.Sscanf(text, "%d-%d", &first, &last)
		require.NoError(t, err, seedsVariable)
	}
	for seed := first; seed <= last; seed++ {
		list = append(list, seed)
	}
	return list
}

// forSeeds runs a random schedule for each seed, side by side, under a name that tells the seed.
func forSeeds(t *testing.T, n uint64, test func(t *testing.T, seed uint64)) {
	for _, seed := range seeds(t, n) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			test(t, seed)
		})
	}
}
