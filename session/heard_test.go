package session

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

func TestHeardTellsEachSessionOnceWithItsAge(t *testing.T) {
	var l Heard
	require.Empty(t, l.Take(100))
	a := l.Open(1, 4000, 100)
	l.Open(2, 6000, 120)
	require.ElementsMatch(t, []Touched{{1, 4000, 50}, {2, 6000, 30}}, l.Take(150))
	require.Empty(t, l.Take(160), "nobody was heard since")
	require.True(t, a.Touch(170))
	a.Touch(165) // late word of an earlier time
	require.Equal(t, []Touched{{1, 4000, 30}}, l.Take(200))
	a.Touch(300)
	require.Equal(t, []Touched{{1, 4000, 0}}, l.Take(250), "an age is never negative")
}

func TestHeardLeavesClosingSessionsOut(t *testing.T) {
	var l Heard
	a := l.Open(1, 4000, 100)
	a.SetClosing()
	require.Empty(t, l.Take(110))
	require.False(t, a.Touch(120))
	require.Empty(t, l.Take(130))
}

func TestHeardCountsWaitingSessionsAsHeard(t *testing.T) {
	var l Heard
	a := l.Open(1, 4000, 100)
	a.Busy(1)
	for _, now := range []int64{200, 5000, 90_000} {
		require.Equal(t, []Touched{{1, 4000, 0}}, l.Take(now))
	}
	l.Advance(95_000)
	a.Busy(-1)
	require.Equal(t, []Touched{{1, 4000, 1000}}, l.Take(96_000), "its silence begins when the last request is done")
	require.Empty(t, l.Take(97_000))
}

func TestHeardTimeoutMayChange(t *testing.T) {
	var l Heard
	a := l.Open(1, 4000, 100)
	a.SetTimeout(9000)
	require.Equal(t, []Touched{{1, 9000, 0}}, l.Take(100))
}

// TestHeardLosesNothing touches from many goroutines while the list is taken: after the last touch of a session there is
// a Take that tells of a time no older than it.
func TestHeardLosesNothing(t *testing.T) {
	const sessions, touches = 8, 2000
	var l Heard
	handles := make([]*Handle, sessions)
	for i := range handles {
		handles[i] = l.Open(zxid.SessionID(i+1), 4000, 0)
	}
	var running sync.WaitGroup
	for _, h := range handles {
		running.Go(func() {
			for now := range int64(touches) {
				h.Touch(now + 1)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	newest := map[zxid.SessionID]int64{}
	take := func() {
		seen := map[zxid.SessionID]bool{}
		for _, h := range l.Take(touches) {
			require.False(t, seen[h.Session], "told twice")
			seen[h.Session] = true
			newest[h.Session] = max(newest[h.Session], touches-h.AgeMs)
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		take()
	}
	take()
	for _, h := range handles {
		require.Equal(t, int64(touches), newest[h.ID()])
	}
}
