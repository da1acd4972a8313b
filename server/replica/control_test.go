package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
)

// A session that is ended from outside ends as one whose timeout is exceeded.
func TestExpireSession(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect(), w.connect()
	a.mustCreate("/e", wire.FlagEphemeral)
	require.Equal(t, []zxid.SessionID{a.id, b.id}, w.r.Connected())
	last := w.r.LastProposed()
	require.False(t, w.r.ExpireSession(a.id+b.id))
	require.Equal(t, last, w.r.LastProposed())
	require.True(t, w.r.ExpireSession(a.id))
	require.True(t, w.r.ExpireSession(a.id), "it is on its way")
	require.Equal(t, last+1, w.r.LastProposed())
	w.settle()
	require.Equal(t, wire.CodeNoNode, b.exists("/e"))
	require.Equal(t, uint64(1), w.r.Stats().ExpiredSessions)
	_, fin := a.c.Output(nil)
	require.True(t, fin)
	require.Equal(t, []zxid.SessionID{b.id}, w.r.Connected())
	require.False(t, w.r.ExpireSession(a.id))
}

// Sessions that count as heard do not end, the others do.
func TestHear(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect(), w.connect()
	for range 12 { // 6 s in steps shorter than the pause guard's
		w.pass(500)
		w.r.Hear([]zxid.SessionID{b.id, a.id + b.id}, w.now)
		w.settle()
	}
	require.Equal(t, []zxid.SessionID{b.id}, w.r.Connected())
	require.Nil(t, w.r.tracker.Get(a.id))
}

// What the core waits for comes no sooner when the time is moved.
func TestMovedTimeIsNotTheCores(t *testing.T) {
	core := &timedCore{wakeAtMs: 5000}
	r := &Replica{core: core, now: Now{MonoMs: 1_001_000, AheadMs: 1_000_000}}
	r.feed(zab.Input{Kind: zab.InputTick})
	require.Equal(t, int64(1000), core.nowMs)
	require.Equal(t, int64(1_005_000), r.wakeAtMs())
	core.wakeAtMs = 0
	require.Zero(t, r.wakeAtMs())
}

// timedCore is a core that only looks at the time.
type timedCore struct {
	broadcast
	nowMs, wakeAtMs int64
}

func (c *timedCore) Step(in zab.Input) { c.nowMs = in.NowMs }
func (c *timedCore) WakeAtMs() int64   { return c.wakeAtMs }
