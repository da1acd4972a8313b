package ahead

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestRun gives and takes numbers through slots that -race watches.
func TestRun(t *testing.T) {
	defer goleak.VerifyNone(t)
	const slots, numbers = 3, 1000
	var memory [slots]int
	made := 0
	take, stop := Run(slots, func(slot int) bool {
		if made == numbers {
			return false
		}
		memory[slot] = made
		made++
		return true
	})
	defer stop()
	want := 0
	for slot, ok := take(); ok; slot, ok = take() {
		require.Equal(t, want, memory[slot])
		memory[slot] = -1
		want++
	}
	require.Equal(t, numbers, want)
	_, ok := take()
	require.False(t, ok)
}

// TestStop ends the work early: before anything was taken, and between.
func TestStop(t *testing.T) {
	for taken := range 6 {
		before := goleak.IgnoreCurrent()
		running := make(chan struct{}, 1)
		fills := 0
		take, stop := Run(2, func(int) bool {
			running <- struct{}{}
			fills++
			<-running
			return true
		})
		for range taken {
			_, ok := take()
			require.True(t, ok)
		}
		stop()
		require.Empty(t, running, "fill has returned")
		require.LessOrEqual(t, fills, taken+2, "no more than the slots ahead")
		stop()
		goleak.VerifyNone(t, before)
	}
}

// TestFillsNoMoreThanSlots lets the producer run as far as it can while nothing is taken.
func TestFillsNoMoreThanSlots(t *testing.T) {
	defer goleak.VerifyNone(t)
	filled := make(chan int, 10)
	take, stop := Run(4, func(slot int) bool { filled <- slot; return true })
	defer stop()
	for want := range 4 {
		require.Equal(t, want, <-filled)
	}
	first, ok := take()
	require.True(t, ok)
	require.Empty(t, filled, "the consumer holds a slot")
	_, ok = take()
	require.True(t, ok)
	require.Equal(t, first, <-filled)
}
