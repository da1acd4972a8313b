package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

// throttled is a world with limits that tells what is refused.
func throttled(t *testing.T, throttle Throttle) (*world, *[]Refusal) {
	var refusals []Refusal
	w := newWorld(t, func(c *Config) {
		c.Throttle, c.Audit = throttle, true
		c.Refused = func(f Refusal) { refusals = append(refusals, f) }
	})
	return w, &refusals
}

// TestThrottledOps: what has waited too long before it was looked at is refused in its turn. What keeps a session alive, or ends
// it, is not.
func TestThrottledOps(t *testing.T) {
	w, refusals := throttled(t, Throttle{OpWaitMs: 100})
	cl := w.connect()
	z := cl.call(wire.OpCreate, create("/a")).Zxid
	w.audited()
	cl.send(wire.OpCreate, create("/b"))
	cl.send(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a")})
	cl.sendXid(99, wire.OpPing, nil)
	w.pass(100)
	cl.send(wire.OpCreate, create("/c"))
	w.pass(1)
	w.settle()
	got := cl.replies()
	require.Equal(t, []int32{2, 3, wire.XidPing, 4}, xids(got))
	require.Equal(t, wire.CodeThrottled, got[0].Err)
	require.Equal(t, wire.CodeThrottled, got[1].Err)
	require.Equal(t, z, got[0].Zxid, "no zxid was used")
	require.Equal(t, wire.CodeOK, got[2].Err)
	require.Equal(t, wire.CodeOK, got[3].Err)
	require.Equal(t, z+1, got[3].Zxid)
	require.EqualValues(t, 2, w.r.Stats().Throttled)
	require.Equal(t, []string{"create /b 2 flags=0" + local, "create /c 1 flags=0" + local}, w.audited())
	require.Len(t, *refusals, 2)
	require.Equal(t, "/b", (*refusals)[0].Path)
	require.Contains(t, (*refusals)[0].Why, "has waited 101 ms and is refused, as throttled_op_wait_time=100 says")

	w.r.SetLimits(Limits{})
	cl.send(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/c"), Version: -1})
	w.pass(900)
	w.settle()
	require.Equal(t, wire.CodeOK, cl.replies()[0].Err, "it was switched off")

	w.r.SetLimits(Limits{Throttle: Throttle{OpWaitMs: 1}})
	cl.send(wire.OpCloseSession, nil)
	w.pass(900)
	w.settle()
	require.Equal(t, wire.CodeOK, cl.replies()[0].Err)
}

// TestThrottledSync: a sync of a learner that is refused asks nobody anything.
func TestThrottledSync(t *testing.T) {
	f := newFlock(t, 0)
	h := f.learners()[0]
	h.w.r.SetLimits(Limits{Throttle: Throttle{OpWaitMs: 100}})
	cl := h.connect()
	cl.send(wire.OpSync, &wire.PathRequest{Path: []byte("/")})
	f.pass(101)
	f.settle()
	require.Equal(t, wire.CodeThrottled, cl.replies()[0].Err)
	require.Zero(t, h.w.r.Stats().PendingSyncs)
	require.Equal(t, wire.CodeOK, cl.call(wire.OpSync, &wire.PathRequest{Path: []byte("/")}).Err)
}

// TestStaleRequests: with request_throttle_max_requests a server does not do what nobody waits for, but for ending a session.
func TestStaleRequests(t *testing.T) {
	all := Throttle{RequestsMax: 100, DropStale: true, StaleByConnection: true, StaleByLatency: true}
	for _, tt := range []struct {
		name     string
		throttle Throttle
		dropped  uint64
	}{
		{"all", all, 2},
		{"off", Throttle{DropStale: true, StaleByConnection: true, StaleByLatency: true}, 0},
		{"none dropped", Throttle{RequestsMax: 100, StaleByConnection: true}, 0},
		{"not by connection", Throttle{RequestsMax: 100, DropStale: true}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := throttled(t, tt.throttle)
			cl, other := w.connect(), w.connect()
			cl.mustCreate("/e", wire.FlagEphemeral)
			cl.send(wire.OpCreate, create("/a"))
			cl.send(wire.OpCreate, create("/b"))
			cl.send(wire.OpCloseSession, nil)
			cl.c.Closed()
			w.settle()
			want := wire.CodeNoNode
			if tt.dropped == 0 {
				want = wire.CodeOK
			}
			require.Equal(t, want, other.exists("/a"))
			require.Equal(t, want, other.exists("/b"))
			require.Equal(t, wire.CodeNoNode, other.exists("/e"), "the session was not ended")
			require.Equal(t, tt.dropped, w.r.Stats().StaleDropped)
			require.Zero(t, w.r.outstanding.Load())
		})
	}
}

// TestStaleByLatency: who has waited for longer than a session lives is gone, or should be.
func TestStaleByLatency(t *testing.T) {
	w, refusals := throttled(t, Throttle{RequestsMax: 100, DropStale: true, StaleByLatency: true})
	cl, other := w.connectFor(2000), w.connectFor(10_000)
	cl.send(wire.OpCreate, create("/a"))
	cl.send(wire.OpCreate, create("/b"))
	w.pass(2001)
	w.settle()
	require.Empty(t, cl.replies())
	_, fin := cl.c.Output(nil)
	require.True(t, fin, "the connection goes on without an answer")
	require.Equal(t, wire.CodeNoNode, other.exists("/a"))
	require.EqualValues(t, 1, w.r.Stats().StaleDropped)
	require.Zero(t, w.r.outstanding.Load())
	require.Contains(t, (*refusals)[0].Why, "has waited 2001 ms, longer than its session's timeout; the connection is closed")
}

// TestLargeRequests: large ones count from when they come until they are answered; one too many costs its connection.
func TestLargeRequests(t *testing.T) {
	w, refusals := throttled(t, Throttle{LargeAboveBytes: 1000, LargeBytesMax: 5000})
	cl, other := w.connect(), w.connect()
	set := func(bytes int) *wire.CreateRequest {
		return &wire.CreateRequest{Path: []byte("/a"), Data: make([]byte, bytes), ACL: wire.OpenACL}
	}
	require.Equal(t, Continue, cl.sendXid(1, wire.OpCreate, set(2000)))
	require.Equal(t, Continue, cl.sendXid(2, wire.OpCreate, set(2000)))
	require.Equal(t, Continue, cl.sendXid(3, wire.OpCreate, set(500)), "it is not large")
	require.Equal(t, Closing, other.sendXid(1, wire.OpCreate, set(2000)))
	require.Len(t, *refusals, 1)
	require.Equal(t, 5000, (*refusals)[0].Limit)
	require.Greater(t, w.r.largeBytes.Load(), int64(4000))
	w.settle()
	require.Len(t, cl.replies(), 3)
	_, fin := other.c.Output(nil)
	require.True(t, fin)
	require.Zero(t, w.r.largeBytes.Load())
	require.EqualValues(t, 1, w.r.Stats().LargeRejected)

	reserved, ok := w.r.ReserveLarge(4000)
	require.True(t, ok)
	_, ok = w.r.ReserveLarge(1001)
	require.False(t, ok)
	none, ok := w.r.ReserveLarge(1000)
	require.True(t, ok)
	require.Zero(t, none)
	require.Equal(t, Closing, cl.sendXid(4, wire.OpSetData, set(2000)))
	w.r.SetLimits(Limits{})
	w.r.ReleaseLarge(reserved)
	require.Zero(t, w.r.largeBytes.Load())
	w.settle()
}

// TestRequestsMax: the throttle's limit is one more on what is in process.
func TestRequestsMax(t *testing.T) {
	w, _ := throttled(t, Throttle{RequestsMax: 2})
	cl := w.connect()
	require.Equal(t, Continue, cl.sendXid(1, wire.OpCreate, create("/a")))
	require.Equal(t, Wait, cl.sendXid(2, wire.OpCreate, create("/b")))
	w.settle()
	<-cl.c.Resumed()
	require.Len(t, cl.replies(), 2)
}

// TestQuotaIsTold: a write beyond a quota is refused with the words that alert rules look for; a soft limit is told only.
func TestQuotaIsTold(t *testing.T) {
	var refusals []Refusal
	w := newWorld(t, func(c *Config) {
		c.EnforceQuota = true
		c.Refused = func(f Refusal) { refusals = append(refusals, f) }
	})
	cl := w.connect()
	quota := func(path, limits string) {
		cl.mustCreate(path, 0)
		cl.mustCreate("/zookeeper/quota"+path, 0)
		for name, text := range map[string]string{"limits": limits, "stats": "count=0,bytes=0"} {
			req := &wire.CreateRequest{Path: []byte("/zookeeper/quota" + path + "/zookeeper_" + name), Data: []byte(text), ACL: wire.OpenACL}
			require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, req).Err)
		}
	}
	quota("/q", "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2")
	cl.mustCreate("/q/a", 0)
	require.Equal(t, wire.CodeQuotaExceeded, cl.call(wire.OpCreate, create("/q/b")).Err)
	quota("/s", "count=1,bytes=-1")
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, create("/s/a")).Err)
	quota("/h", "count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=-1")
	require.Equal(t, wire.CodeQuotaExceeded, cl.call(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/h"), Data: make([]byte, 11), Version: -1}).Err)
	var why []string
	for _, f := range refusals {
		why = append(why, f.Why)
	}
	const hint = "; delete what is not needed there, or raise the quota"
	require.Equal(t, []string{
		"Quota exceeded: /q [current count=3, hardCountLimit=2]" + hint,
		"Quota exceeded: /s [current count=2, softCountLimit=1]" + hint,
		"Quota exceeded: /h [current bytes=11, hardBytesLimit=10]" + hint,
	}, why)
	w.r.SetLimits(Limits{})
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, create("/q/b")).Err, "quotas are not enforced any more")
}
