package server

import (
	"time"

	"zabra/server/replica"
)

// clock tells the replica's two times. Both come from one reading of the system's clocks, which costs some tens of
// nanoseconds: readers take one per chunk of input and the stepping goroutine one per step.
type clock struct {
	start time.Time
}

// newClock starts the monotonic time at 1 ms: 0 means "never" in what is planned by it.
func newClock() clock { return clock{start: time.Now().Add(-time.Millisecond)} }

func (c clock) now() replica.Now {
	t := time.Now()
	return replica.Now{MonoMs: t.Sub(c.start).Milliseconds(), WallMs: t.UnixMilli()}
}

// until returns the time left until a monotonic instant, 0 if it has passed.
func (c clock) until(monoMs int64) time.Duration {
	return max(time.Until(c.start.Add(time.Duration(monoMs)*time.Millisecond)), 0)
}

// wallMs returns the wall clock at a monotonic instant, by the present offset between the two.
func (c clock) wallMs(monoMs int64) int64 {
	now := c.now()
	return now.WallMs + monoMs - now.MonoMs
}
