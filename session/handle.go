package session

import (
	"sync/atomic"

	"zabra/zab/zxid"
)

// Handle is what requests hold of a session. Touch, Busy, ID, Timeout, Closing and SetClosing work on atomics and may be
// called from any goroutine without a lock; the rest belongs to the tracker's goroutine.
type Handle struct {
	id        zxid.SessionID
	lastHeard atomic.Int64
	timeoutMs atomic.Int32
	busy      atomic.Int32
	closing   atomic.Bool
	// clock holds the time that the stepping goroutine has come to.
	clock *atomic.Int64

	// heard is the list that the session is entered into when it is touched; nil if it has a tracker. listed is set while
	// it stands there, next is the one behind it.
	heard  *Heard
	listed atomic.Bool
	next   *Handle

	// The rest belongs to the tracker's goroutine. bucket is nil while the session is not watched: it is closing or was
	// removed. pos is the session's place in the bucket, so that it can leave in O(1). endedMs is the deadline that an
	// expired session missed.
	owner   Owner
	tracker *Tracker
	bucket  *bucket
	pos     int
	endedMs int64
}

// Owner is the connection that a session is bound to: a server's, by the number that the server gave it. The zero value
// stands for none.
type Owner struct {
	Server zxid.ServerID
	Conn   uint64
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
	if h.heard != nil && !h.listed.Load() {
		h.heard.enter(h)
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
	if t == nil {
		return
	}
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

// Owner returns the connection that the session is bound to. It belongs to the tracker's goroutine.
func (h *Handle) Owner() Owner { return h.owner }

// SetOwner binds the session to a connection. It belongs to the tracker's goroutine.
func (h *Handle) SetOwner(o Owner) { h.owner = o }

// Busy adds delta to the count of the session's requests that the server holds and has not answered. As long as there
// are any, the silence is ours: we may have stopped reading from the client for that very reason. So the session does
// not expire, and its silence begins when the last request is done.
func (h *Handle) Busy(delta int) {
	if delta < 0 {
		// Before the count goes down, so that no Advance finds an idle session with an old time.
		h.Touch(h.clock.Load())
	}
	if h.busy.Add(int32(delta)) < 0 {
		panic("session: more requests done than were begun in session " + h.id.String())
	}
}
