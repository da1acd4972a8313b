package server

import (
	"sync/atomic"
	"time"

	"zabra/server/replica"
)

// clock tells the replica's two times. Both come from one reading of the system's clocks, which costs some tens of
// nanoseconds: readers take one per chunk of input and the stepping goroutine one per step.
type clock struct {
	start time.Time
	// aheadMs is how much both times are ahead of the system's at a server whose time a test has moved; nil otherwise.
	aheadMs *atomic.Int64
}

// newClock starts the monotonic time at 1 ms: 0 means "never" in what is planned by it.
func newClock(control *Control) clock {
	c := clock{start: time.Now().Add(-time.Millisecond)}
	if control != nil {
		c.aheadMs = &control.aheadMs
	}
	return c
}

func (c clock) now() replica.Now {
	t := time.Now()
	now := replica.Now{MonoMs: t.Sub(c.start).Milliseconds(), WallMs: t.UnixMilli()}
	if c.aheadMs != nil {
		now.AheadMs = c.aheadMs.Load()
		now.MonoMs += now.AheadMs
		now.WallMs += now.AheadMs
	}
	return now
}

// until returns the time left until a monotonic instant, 0 if it has passed.
func (c clock) until(monoMs int64) time.Duration {
	if c.aheadMs != nil {
		monoMs -= c.aheadMs.Load()
	}
	return max(time.Until(c.start.Add(time.Duration(monoMs)*time.Millisecond)), 0)
}

// wallMs returns the wall clock at a monotonic instant, by the present offset between the two.
func (c clock) wallMs(monoMs int64) int64 {
	now := c.now()
	return now.WallMs + monoMs - now.MonoMs
}
