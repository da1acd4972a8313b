package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that works gives nothing back, one that has become quiet does once, and again when there is something new to give.
func TestQuietGivesBackOnce(t *testing.T) {
	var q quiet
	const idle, busy = 20 * time.Millisecond, 400 * time.Millisecond
	var cpu time.Duration
	allocated, live := uint64(0), uint64(0)
	tick := func(used time.Duration, bytes uint64) bool {
		cpu, allocated = cpu+used, allocated+bytes
		return q.due(cpu, allocated, live)
	}
	require.False(t, tick(busy, 64<<20), "at work")
	require.False(t, tick(idle, 0), "quiet for one tick only")
	require.False(t, tick(busy, 0), "at work again")
	require.False(t, tick(idle, 0))
	require.True(t, tick(idle, 0))
	q.done(allocated)
	q.cpu = cpu // the test's process is not the server
	for range 10 {
		require.False(t, tick(idle, 1000), "nothing new")
	}
	require.True(t, tick(idle, giveBackBytesMin))
	q.done(allocated)
	q.cpu = cpu
	live = 1 << 30
	require.False(t, tick(idle, giveBackBytesMin))
	require.False(t, tick(idle, 0), "little beside what is in use")
	require.True(t, tick(idle, live/giveBackLiveShare))
}

// The numbers that the decision hangs on are really there.
func TestProcessTellsItsUse(t *testing.T) {
	before := heapBytes(allocatedMetric)
	block := make([]byte, 1<<20)
	require.GreaterOrEqual(t, heapBytes(allocatedMetric)-before, uint64(len(block)))
	require.Positive(t, processCPU())
}
