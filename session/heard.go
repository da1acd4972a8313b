package session

import (
	"sync/atomic"

	"zabra/zab/zxid"
)

// Heard collects which sessions were heard since it was last asked, for a server that does not decide about their end
// but tells another one, which does. What it costs goes by the sessions that were heard, not by those that there are.
//
// Handles may be touched from any goroutine; the methods of Heard belong to one.
type Heard struct {
	first   atomic.Pointer[Handle] // of the list since the last Take, the newest first
	clockMs atomic.Int64
}

// Touched is a session that was heard AgeMs milliseconds ago.
type Touched struct {
	Session   zxid.SessionID
	TimeoutMs int32
	AgeMs     int64
}

// Open returns the handle of a session that was heard just now, at nowMs. A session may have several handles, one for
// each of its connections; nothing needs to be done for one that is not used any more.
func (l *Heard) Open(id zxid.SessionID, timeoutMs int32, nowMs int64) *Handle {
	h := &Handle{id: id, heard: l, clock: &l.clockMs}
	h.timeoutMs.Store(timeoutMs)
	h.Touch(nowMs)
	return h
}

// Advance tells the time, in monotonic milliseconds, as of which the requests are answered from now on.
func (l *Heard) Advance(nowMs int64) { l.clockMs.Store(nowMs) }

// Take returns the sessions that were heard since the last call, and forgets them. One with a request that is not
// answered counts as heard now, at nowMs, and stays in the list: we may have stopped reading from its client for that
// very reason. Closing sessions are left out.
func (l *Heard) Take(nowMs int64) []Touched {
	h := l.first.Swap(nil)
	if h == nil {
		return nil
	}
	var list []Touched
	for h != nil {
		next := h.next
		h.next = nil
		h.listed.Store(false) // before the time is read: a touch from now on enters it again
		if !h.Closing() {
			if h.busy.Load() > 0 {
				h.Touch(nowMs)
			}
			list = append(list, Touched{Session: h.id, TimeoutMs: h.Timeout(), AgeMs: max(nowMs-h.lastHeard.Load(), 0)})
		}
		h = next
	}
	return list
}

// enter puts a handle into the list unless it stands there already.
func (l *Heard) enter(h *Handle) {
	if !h.listed.CompareAndSwap(false, true) {
		return
	}
	for {
		first := l.first.Load()
		h.next = first
		if l.first.CompareAndSwap(first, h) {
			return
		}
	}
}
