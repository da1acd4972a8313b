package session

import (
	"cmp"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
	"zabra/zab/zxid"
)

func ids(handles []*Handle) []zxid.SessionID {
	out := []zxid.SessionID{}
	for _, h := range handles {
		out = append(out, h.ID())
	}
	return out
}

// run advances the tracker to until as a caller does who keeps the promised rhythm, and returns who expired and when.
func run(t require.TestingT, tr *Tracker, until int64) map[zxid.SessionID]int64 {
	gone := map[zxid.SessionID]int64{}
	for {
		next, ok := tr.NextDeadline()
		if !ok || next > until {
			break
		}
		before := tr.advancedMs.Load()
		for _, h := range tr.Advance(next) {
			require.True(t, h.Closing())
			gone[h.ID()] = next
		}
		again, ok := tr.NextDeadline()
		require.True(t, !ok || again > next, "NextDeadline does not move on after %d: %d", before, again)
	}
	return gone
}

func TestExpiryLiesOnTheGrid(t *testing.T) {
	tests := []struct {
		name                       string
		tick, start, timeout, gone int64
	}{
		{"just above the timeout", 2000, 100, 4000, 6000},
		{"exactly on the grid goes to the next point", 2000, 0, 4000, 6000},
		{"one before the grid", 2000, 1999, 4000, 6000},
		{"one after", 2000, 2000, 4000, 8000},
		{"as observed", 1000, 600, 2000, 3000},
		{"timeout below the tick", 2000, 1999, 100, 4000},
		{"no timeout", 2000, 10, 0, 2000},
		{"odd tick", 7, 3, 20, 28},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := NewTracker(tt.tick)
			h := tr.Add(1, int32(tt.timeout), tt.start)
			require.Equal(t, map[zxid.SessionID]int64{1: tt.gone}, run(t, tr, tt.gone+10*tt.tick))
			require.True(t, h.Closing())
			require.False(t, h.Touch(tt.gone))
			require.Same(t, h, tr.Get(1), "a closing session is known until it is removed")
			require.Empty(t, tr.Advance(tt.gone+tt.tick), "and not reported again")
			tr.Remove(1)
			require.Nil(t, tr.Get(1))
			require.Zero(t, tr.Len())
		})
	}
}

func TestTouchKeepsAlive(t *testing.T) {
	tr := NewTracker(1000)
	h := tr.Add(7, 3000, 0)
	for now := int64(500); now <= 20_000; now += 500 {
		require.Empty(t, tr.Advance(now))
		require.True(t, h.Touch(now))
	}
	h.Touch(3) // an old message does not set the time back
	require.Equal(t, map[zxid.SessionID]int64{7: 24_000}, run(t, tr, 60_000))
}

func TestExpiredOrder(t *testing.T) {
	tr := NewTracker(1000)
	for _, id := range []zxid.SessionID{5, -3, 9, 1} {
		tr.Add(id, 2000, 100)
	}
	late := tr.Add(2, 1000, 100)
	require.Equal(t, int32(1000), late.Timeout())
	for _, now := range []int64{500, 1000, 1500} {
		require.Empty(t, tr.Advance(now))
	}
	require.Equal(t, []zxid.SessionID{2}, ids(tr.Advance(2000)))
	require.Empty(t, tr.Advance(2500))
	require.Equal(t, []zxid.SessionID{1, 5, 9, -3}, ids(tr.Advance(3000)), "by id, unsigned")
	require.Empty(t, tr.Advance(10))
}

func TestSetTimeout(t *testing.T) {
	tests := []struct {
		name    string
		timeout int32
		want    int64
	}{
		{"shorter", 2000, 4000},
		{"same", 10_000, 12_000},
		{"longer", 30_000, 32_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := NewTracker(1000)
			h := tr.Add(1, 10_000, 500)
			require.Empty(t, run(t, tr, 1500))
			h.Touch(1600)
			h.SetTimeout(tt.timeout)
			require.Equal(t, tt.timeout, h.Timeout())
			require.Equal(t, map[zxid.SessionID]int64{1: tt.want}, run(t, tr, 100_000))
			h.SetTimeout(50) // too late, and harmless
			require.Empty(t, run(t, tr, 200_000))
		})
	}
}

func TestAddAgain(t *testing.T) {
	tr := NewTracker(1000)
	h := tr.Add(1, 4000, 0)
	h.SetOwner(Owner{Server: 3, Conn: 17})
	require.Empty(t, run(t, tr, 3000))
	require.Same(t, h, tr.Add(1, 6000, 3000))
	require.Equal(t, Owner{Server: 3, Conn: 17}, h.Owner())
	require.Equal(t, 1, tr.Len())
	require.Equal(t, map[zxid.SessionID]int64{1: 10_000}, run(t, tr, 20_000))
}

func TestClosingIsNotReported(t *testing.T) {
	tr := NewTracker(1000)
	h := tr.Add(1, 2000, 0)
	tr.Add(2, 2000, 0)
	h.SetClosing()
	require.Equal(t, map[zxid.SessionID]int64{2: 3000}, run(t, tr, 20_000))
	_, ok := tr.NextDeadline()
	require.False(t, ok, "closing sessions need no attention")
	require.Equal(t, 2, tr.Len())
}

func TestBusyIsNotSilent(t *testing.T) {
	tr := NewTracker(1000)
	h := tr.Add(1, 2000, 0)
	h.Busy(+1)
	h.Busy(+1)
	require.Empty(t, run(t, tr, 30_000))
	h.Busy(-1)
	require.Empty(t, run(t, tr, 60_500))
	h.Busy(-1) // last Advance was at 60,000
	require.Equal(t, map[zxid.SessionID]int64{1: 63_000}, run(t, tr, 90_000))
	require.Panics(t, func() { h.Busy(-1) })
}

func TestRemoveMakesNextDeadlineMoveOn(t *testing.T) {
	tr := NewTracker(1000)
	_, ok := tr.NextDeadline()
	require.False(t, ok)
	tr.Add(1, 500, 0)
	tr.Add(2, 5000, 0)
	require.Equal(t, []Bucket{{1000, []zxid.SessionID{1}}, {6000, []zxid.SessionID{2}}}, tr.Buckets())
	next, ok := tr.NextDeadline()
	require.True(t, ok)
	require.Equal(t, int64(250), next, "the shortest timeout sets the rhythm")
	tr.Remove(1)
	tr.Remove(1)
	require.Equal(t, map[zxid.SessionID]int64{2: 6000}, run(t, tr, 10_000))
	tr.Remove(2)
	require.Empty(t, tr.Buckets())
}

func TestPauseGivesTimeoutsAgain(t *testing.T) {
	const tick = 2000
	tests := []struct {
		name    string
		timeout int32
		pause   int64 // the server stands still from 12,000 on
		want    int64
	}{
		// Sessions were last heard at 11,000.
		{"unnoticed", 4000, 2600, 16_000},
		{"noticed", 4000, 2800, 20_000},  // 12,000+2,800+4,000 -> 20,000
		{"long", 4000, 600_000, 618_000}, // 612,000+4,000 -> 618,000
		{"longer timeout", 10_000, 50_000, 74_000},
		{"short timeouts are noticed earlier", 300, 250, 14_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := NewTracker(tick)
			h := tr.Add(1, tt.timeout, 0)
			for now := int64(0); now <= 11_000; now += 100 {
				h.Touch(now)
				require.Empty(t, tr.Advance(now))
			}
			for now := int64(11_100); now < 12_000; now += 100 {
				require.Empty(t, tr.Advance(now))
			}
			require.Empty(t, tr.Advance(12_000-1))
			awake := 12_000 + tt.pause
			gone := map[zxid.SessionID]int64{}
			for _, h := range tr.Advance(awake) {
				gone[h.ID()] = awake
			}
			for id, at := range run(t, tr, 1_000_000) {
				gone[id] = at
			}
			require.Equal(t, map[zxid.SessionID]int64{1: tt.want}, gone)
		})
	}
}

// A client that pings every third of its timeout must survive a pause of the server of any length that begins at any
// time, if it is heard within the rest of its timeout after the server is awake.
func TestLivingClientsSurviveAnyPause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := rapid.Int64Range(60, 3000).Draw(t, "tick")
		timeout := rapid.Int64Range(150, 20*tick).Draw(t, "timeout")
		tr := NewTracker(tick)
		start := rapid.Int64Range(0, 100_000).Draw(t, "start")
		h := tr.Add(1, int32(timeout), start)
		now, heard := start, start
		for range rapid.IntRange(1, 30).Draw(t, "pauses") {
			// Awake for at least a third of the timeout, so that a ping gets through.
			awake := now + timeout/3 + rapid.Int64Range(1, 2*timeout).Draw(t, "awake")
			for now < awake {
				next, ok := tr.NextDeadline()
				require.True(t, ok)
				now = min(next, heard+timeout/3, awake)
				if now == heard+timeout/3 {
					heard = now
					require.True(t, h.Touch(now))
				}
				require.Empty(t, tr.Advance(now), "expired at %d, heard at %d", now, heard)
			}
			now += rapid.Int64Range(0, 4*timeout).Draw(t, "pause")
			require.Empty(t, tr.Advance(now), "expired at the end of a pause at %d, heard at %d", now, heard)
			heard = now // the pings that waited in the socket come in
			h.Touch(now)
		}
	})
}

// A dead client's session must end even if the server stumbles over and over again.
func TestDeadClientsGoInSpiteOfPauses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := rapid.Int64Range(100, 3000).Draw(t, "tick")
		timeout := rapid.Int64Range(2*tick, 20*tick).Draw(t, "timeout")
		tr := NewTracker(tick)
		tr.Add(1, int32(timeout), 0)
		var now, awake int64
		for len(tr.Advance(now)) == 0 {
			require.LessOrEqual(t, awake, 2*timeout+4*tick)
			// Each gap is a pause: only the rhythm in it counts as being awake.
			now += tick + tick/2 + rapid.Int64Range(0, 5*tick).Draw(t, "gap")
			awake += tick
		}
	})
}

// model is the rule again, without buckets, laziness or forgetting.
type model struct {
	tick, last, rhythm, pause int64
	paused                    int64
	ends, totals              []int64
	sessions                  map[zxid.SessionID]*modelSession
}

type modelSession struct {
	heard, timeout int64
	busy           int
	closing        bool
}

func (m *model) deadline(s *modelSession) int64 {
	heard := s.heard
	for i, end := range m.ends {
		if end > s.heard {
			heard = end + m.paused - m.totals[i]
			break
		}
	}
	end := heard + s.timeout
	return end - end%m.tick + m.tick
}

func (m *model) advance(now int64) []zxid.SessionID {
	now = max(now, m.last)
	if len(m.sessions) > 0 && now-m.last > m.pause {
		m.paused += now - m.last - m.rhythm
		m.ends, m.totals = append(m.ends, now), append(m.totals, m.paused)
	}
	m.last = now
	gone := []zxid.SessionID{}
	for id, s := range m.sessions {
		if s.busy > 0 {
			s.heard = now
		}
		if !s.closing && m.deadline(s) <= now {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, func(a, b zxid.SessionID) int {
		return cmp.Or(cmp.Compare(m.deadline(m.sessions[a]), m.deadline(m.sessions[b])), cmp.Compare(uint64(a), uint64(b)))
	})
	for _, id := range gone {
		m.sessions[id].closing = true
	}
	return gone
}

// world is a tracker and the model of it, which rapid drives by calling the methods at random.
type world struct {
	tick, now int64
	tr        *Tracker
	m         *model
}

func anyID(t *rapid.T) zxid.SessionID {
	return zxid.SessionID(rapid.Int64Range(-4, 8).Draw(t, "id"))
}

func (w *world) anyTimeout(t *rapid.T) int64 {
	return rapid.Int64Range(2*w.tick, 12*w.tick).Draw(t, "timeout")
}

func (w *world) known(t *rapid.T) (*Handle, *modelSession) {
	id := anyID(t)
	h, s := w.tr.Get(id), w.m.sessions[id]
	require.Equal(t, s == nil, h == nil)
	if s == nil {
		t.Skip("no such session")
	}
	return h, s
}

func (w *world) Add(t *rapid.T) {
	id, timeout := anyID(t), w.anyTimeout(t)
	if len(w.m.sessions) == 0 {
		w.m.last = max(w.m.last, w.now)
	}
	if s := w.m.sessions[id]; s != nil {
		s.heard, s.timeout = max(s.heard, w.now), timeout
	} else {
		w.m.sessions[id] = &modelSession{heard: w.now, timeout: timeout}
	}
	require.Equal(t, id, w.tr.Add(id, int32(timeout), w.now).ID())
}

func (w *world) Remove(t *rapid.T) {
	id := anyID(t)
	w.tr.Remove(id)
	delete(w.m.sessions, id)
}

func (w *world) Touch(t *rapid.T) {
	h, s := w.known(t)
	at := w.now - rapid.Int64Range(0, 3*w.tick).Draw(t, "age")
	s.heard = max(s.heard, at)
	require.Equal(t, !s.closing, h.Touch(at))
}

func (w *world) SetTimeout(t *rapid.T) {
	h, s := w.known(t)
	s.timeout = w.anyTimeout(t)
	h.SetTimeout(int32(s.timeout))
}

func (w *world) SetClosing(t *rapid.T) {
	h, s := w.known(t)
	s.closing = true
	h.SetClosing()
}

func (w *world) Begin(t *rapid.T) {
	h, s := w.known(t)
	s.busy++
	h.Busy(+1)
}

func (w *world) End(t *rapid.T) {
	h, s := w.known(t)
	if s.busy == 0 {
		t.Skip("not busy")
	}
	s.busy--
	s.heard = max(s.heard, w.m.last)
	h.Busy(-1)
}

func (w *world) Advance(t *rapid.T) {
	w.now += rapid.Int64Range(0, w.tick).Draw(t, "step")
	require.Equal(t, w.m.advance(w.now), ids(w.tr.Advance(w.now)))
}

func (w *world) Pause(t *rapid.T) {
	w.now += rapid.Int64Range(w.tick, 20*w.tick).Draw(t, "pause")
	require.Equal(t, w.m.advance(w.now), ids(w.tr.Advance(w.now)))
}

func (w *world) Check(t *rapid.T) {
	require.Equal(t, len(w.m.sessions), w.tr.Len())
	checkBuckets(t, w.tr)
}

func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tick := rapid.Int64Range(60, 2000).Draw(t, "tick")
		m := &model{tick: tick, rhythm: tick, pause: tick * 4 / 3, sessions: map[zxid.SessionID]*modelSession{}}
		w := &world{tick: tick, now: rapid.Int64Range(0, 1<<40).Draw(t, "start"), tr: NewTracker(tick), m: m}
		t.Repeat(rapid.StateMachineActions(w))
	})
}

// checkBuckets requires that every watched session is filed where it will be found in time.
func checkBuckets(t require.TestingT, tr *Tracker) {
	require.Len(t, tr.due, len(tr.buckets))
	filed := 0
	for due, b := range tr.buckets {
		require.Equal(t, due, b.dueMs)
		require.Contains(t, tr.due, due)
		for i, h := range b.handles {
			require.Same(t, b, h.bucket)
			require.Equal(t, i, h.pos)
			require.Same(t, h, tr.sessions[h.id])
			require.LessOrEqual(t, due, tr.deadline(h))
			filed++
		}
	}
	for _, h := range tr.sessions {
		if h.bucket == nil {
			require.True(t, h.Closing())
		} else {
			filed--
		}
	}
	require.Zero(t, filed)
}

func TestPausesAreForgotten(t *testing.T) {
	tr := NewTracker(1000)
	h := tr.Add(1, 20_000, 0)
	for now := int64(0); now < 10_000_000; now += 1500 {
		h.Touch(now)
		require.Empty(t, tr.Advance(now))
		require.LessOrEqual(t, len(tr.pauses.list), 2*21+1)
	}
}

func TestTouchFromManyGoroutines(t *testing.T) {
	tr := NewTracker(10)
	h := tr.Add(1, 1000, 0)
	var wg sync.WaitGroup
	for g := range int64(4) {
		wg.Go(func() {
			for i := range int64(2000) {
				h.Busy(+1)
				h.Touch(i*4 + g)
				h.Busy(-1)
			}
		})
	}
	for now := range int64(1000) {
		require.Empty(t, tr.Advance(now))
	}
	wg.Wait()
	require.Equal(t, int64(1999*4+3), h.lastHeard.Load())
	require.Zero(t, h.busy.Load())
}

func TestTickMustBePositive(t *testing.T) {
	require.Panics(t, func() { NewTracker(0) })
}

// Time that is known to have passed awake is no pause, however long it was.
func TestAwake(t *testing.T) {
	tr := NewTracker(500)
	tr.Add(1, 5000, 1000)
	tr.Awake(3_600_000)
	require.Len(t, tr.Advance(3_600_000), 1)
	tr.Awake(1000) // time does not go back
	require.Equal(t, int64(3_600_000), tr.advancedMs.Load())
}
