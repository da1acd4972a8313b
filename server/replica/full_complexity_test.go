//go:build complexity

package replica

// How large the crowds of a busy server are.
const (
	sessionsMany = 10_000
	watchesMany  = 1_000_000
	childrenMany = 1_000_000
	znodesMany   = 5_000_000
)
