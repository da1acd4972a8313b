//go:build !complexity

package replica

// How large the crowds are whenever the tests run: large enough that growth shows, small enough to be made in a moment.
var (
	sessionsMany = 2_000
	watchesMany  = 50_000
	childrenMany = reduced(100_000)
	znodesMany   = reduced(200_000)
)

// reduced is for nodes, which take long to make under the race detector.
func reduced(n int) int {
	if raceEnabled {
		return n / 8
	}
	return n
}
