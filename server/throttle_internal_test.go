package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/conf"
)

// throttleRules are those of a bucket of five that gets one token in 10 ms.
func throttleRules(change func(*conf.SessionThrottle)) conf.SessionThrottle {
	rules := conf.SessionThrottle{Tokens: 5, FillMs: 10, FillCount: 1, FreezeMs: -1, DropIncrease: 0.5, DropDecrease: 0.25,
		GlobalWeight: 3, LocalWeight: 1, RenewalWeight: 2}
	if change != nil {
		change(&rules)
	}
	return rules
}

func taken(s *sessionThrottle, nowMs int64, n int, renewal bool) (ok int) {
	for range n {
		if _, took := s.take(nowMs, renewal, 0.5); took {
			ok++
		}
	}
	return ok
}

// TestSessionTokens: a bucket is full at first, runs empty, and fills at its rate to its brim.
func TestSessionTokens(t *testing.T) {
	var s sessionThrottle
	require.Equal(t, 100, taken(&s, 1, 100, false), "it is off")
	s.configure(1000, throttleRules(nil))
	require.Equal(t, 5, taken(&s, 1000, 9, false))
	require.EqualValues(t, 4, s.dropped.Load())
	require.Zero(t, taken(&s, 1009, 1, false))
	require.Equal(t, 1, taken(&s, 1010, 2, false))
	missing, ok := s.take(1039, true, 0.5)
	require.True(t, ok)
	require.Equal(t, 3, missing)
	require.Equal(t, 5, taken(&s, 1_000_000, 9, false))
	s.configure(1_000_000, throttleRules(func(r *conf.SessionThrottle) { r.Tokens, r.FillCount = 7, 3 }))
	require.Equal(t, 7, taken(&s, 1_000_000, 9, false), "a larger bucket comes full")
	require.Equal(t, 3, taken(&s, 1_000_010, 9, false))
	s.configure(1_000_010, conf.SessionThrottle{})
	require.Equal(t, 9, taken(&s, 1_000_010, 9, false))
}

func TestSessionWeights(t *testing.T) {
	var s sessionThrottle
	s.configure(0, throttleRules(func(r *conf.SessionThrottle) { r.Weighted = true }))
	require.Equal(t, 1, taken(&s, 0, 1, false))
	require.Equal(t, 1, taken(&s, 0, 9, true))
	require.Zero(t, taken(&s, 0, 9, true))
}

// TestSessionsDroppedAtRandom: an empty bucket makes refusals likelier, a full one less likely, no more often than told.
func TestSessionsDroppedAtRandom(t *testing.T) {
	var s sessionThrottle
	s.configure(0, throttleRules(func(r *conf.SessionThrottle) { r.FreezeMs, r.DecreaseRatio = 100, 0.2 }))
	require.Equal(t, 5, taken(&s, 0, 9, false))
	require.Zero(t, s.dropProbability())
	s.take(100, false, 1) // the bucket is full again by then
	require.Zero(t, s.dropProbability())
	require.Equal(t, 4, taken(&s, 100, 9, false))
	s.mu.filledMs = 300 // as if nothing had been filled in
	_, ok := s.take(300, false, 0.9)
	require.False(t, ok)
	require.InDelta(t, 0.5, s.dropProbability(), 1e-9)
	s.take(301, false, 1)
	require.InDelta(t, 0.5, s.dropProbability(), 1e-9, "it moved a moment ago")
	_, ok = s.take(350, false, 0.4)
	require.False(t, ok, "there are tokens, but chance is against it")
	_, ok = s.take(360, false, 0.6)
	require.True(t, ok)
	s.take(460, false, 1)
	require.InDelta(t, 0.25, s.dropProbability(), 1e-9, "it is full enough")
	s.configure(461, throttleRules(nil))
	require.Zero(t, s.dropProbability())
}
