package session

import (
	"sync/atomic"

	"zabra/zab/zxid"
)

// Handle is what requests hold of a session. Touch, Busy and the plain getters and setters work on atomics and may be
// called from any goroutine without a lock; SetTimeout belongs to the tracker's goroutine.
type Handle struct {
	id        zxid.SessionID
	lastHeard atomic.Int64
	owner     atomic.Uint64
	timeoutMs atomic.Int32
	busy      atomic.Int32
	closing   atomic.Bool

	// The rest belongs to the tracker's goroutine. bucket is nil while the session is not watched: it is closing or was
	// removed. pos is the session's place in the bucket, so that it can leave in O(1). endedMs is the deadline that an
	// expired session missed.
	tracker *Tracker
	bucket  *bucket
	pos     int
	endedMs int64
}

// ID returns the session's id.
func (h *Handle) ID() zxid.SessionID { return h.id }

// Touch notes that the client was heard at nowMs, in monotonic milliseconds. It reports false if the session is closing:
// then its requests must be refused. Times may come out of order, the latest counts.
//
// A touch that runs into the expiry of the same session may report true although the session is lost: the caller's
// request then finds a closed session further down, as one that came a moment later would.
func (h *Handle) Touch(nowMs int64) bool {
	for old := h.lastHeard.Load(); nowMs > old; old = h.lastHeard.Load() {
		if h.lastHeard.CompareAndSwap(old, nowMs) {
			break
		}
	}
	return !h.closing.Load()
}

// Timeout returns the timeout in milliseconds that was negotiated on the session's latest connection.
func (h *Handle) Timeout() int32 { return h.timeoutMs.Load() }

// SetTimeout changes the timeout, in milliseconds, as a re-attach does. It takes the place of the old one at once, also
// if it is shorter. The caller touches the session as well, since the client was heard.
func (h *Handle) SetTimeout(ms int32) {
	h.timeoutMs.Store(ms)
	t := h.tracker
	t.noteTimeout(ms)
	if h.bucket == nil {
		return
	}
	// A later deadline is found when the bucket comes due; an earlier one would be found too late.
	if due := t.deadline(h); due < h.bucket.dueMs {
		t.disarm(h)
		t.arm(h, due)
	}
}

// Closing reports whether the session's end has been decided: it expired, or its closeSession is on its way. Nothing of
// it may be ordered after that.
func (h *Handle) Closing() bool { return h.closing.Load() }

// SetClosing marks the session as closing, for good. It will not be reported as expired any more.
func (h *Handle) SetClosing() { h.closing.Store(true) }

// Owner returns the connection that the session is bound to, 0 if there is none.
func (h *Handle) Owner() uint64 { return h.owner.Load() }

// SetOwner binds the session to a connection. What the numbers mean is up to the caller; 0 stands for none.
func (h *Handle) SetOwner(conn uint64) { h.owner.Store(conn) }

// Busy adds delta to the count of the session's requests that the server holds and has not answered. As long as there
// are any, the silence is ours: we may have stopped reading from the client for that very reason. So the session does
// not expire, and its silence begins when the last request is done.
func (h *Handle) Busy(delta int) {
	if delta < 0 {
		// Before the count goes down, so that no Advance finds an idle session with an old time.
		h.Touch(h.tracker.advancedMs.Load())
	}
	if h.busy.Add(int32(delta)) < 0 {
		panic("session: more requests done than were begun in session " + h.id.String())
	}
}
