// Package session knows when sessions end, and makes their ids and passwords.
//
// The main path is Tracker.Add, Handle.Touch, Tracker.Advance and Tracker.Remove. A Tracker is pure: it has no goroutine
// and no clock. It is told the time, in milliseconds of a monotonic clock, and answers which sessions are over.
package session

import (
	"cmp"
	"slices"
	"sync/atomic"

	"zabra/zab/zxid"
)

const (
	// bucketsSpareMax and bucketSpareHandlesMax bound the memory that is kept for buckets to come.
	bucketsSpareMax       = 8
	bucketSpareHandlesMax = 1 << 16
)

// Tracker decides when sessions expire, by ZooKeeper's rule: a session that was last heard at L and has the timeout T is
// over at the first multiple of the tick that is later than L+T. So a silence of T is always tolerated, and one of
// T+tick never.
//
// Touching a session does not concern the tracker at all: the handle notes the time. The tracker looks at a session when
// the deadline comes that it knew last, and if the client was heard since, files it under the new one. So a session costs
// one look per timeout, however often it is touched, and nothing is done for all sessions at once.
//
// A Tracker belongs to one goroutine; only the methods of Handle that say so may be used from others.
type Tracker struct {
	tickMs   int64
	sessions map[zxid.SessionID]*Handle

	// Every due time in the heap has a bucket and the other way round.
	buckets map[int64]*bucket
	due     []int64
	spare   []*bucket

	advancedMs atomic.Int64 // time of the last Advance
	pauses     pauses
	expired    []*Handle
}

// NewTracker returns an empty tracker whose deadlines lie on multiples of tickMs milliseconds, which must be positive.
func NewTracker(tickMs int64) *Tracker {
	if tickMs <= 0 {
		panic("session: tick is not positive")
	}
	return &Tracker{
		tickMs:   tickMs,
		sessions: make(map[zxid.SessionID]*Handle),
		buckets:  make(map[int64]*bucket),
		pauses:   newPauses(tickMs),
	}
}

// Add begins to watch a session that was heard just now, at nowMs. A session that is known already gets the new timeout
// and counts as heard.
func (t *Tracker) Add(id zxid.SessionID, timeoutMs int32, nowMs int64) *Handle {
	if h := t.sessions[id]; h != nil {
		h.Touch(nowMs)
		h.SetTimeout(timeoutMs)
		return h
	}
	if len(t.sessions) == 0 {
		// Nobody needed to call Advance while there was nothing to expire: that was not a pause.
		t.advancedMs.Store(max(nowMs, t.advancedMs.Load()))
	}
	h := &Handle{id: id, tracker: t, clock: &t.advancedMs}
	h.timeoutMs.Store(timeoutMs)
	h.lastHeard.Store(nowMs)
	t.noteTimeout(timeoutMs)
	t.sessions[id] = h
	t.arm(h, t.deadline(h))
	return h
}

// Get returns the handle of a session, or nil. Closing sessions are found until they are removed.
func (t *Tracker) Get(id zxid.SessionID) *Handle { return t.sessions[id] }

// Remove forgets a session, as when its closeSession was applied. Its handle counts as closing from then on.
func (t *Tracker) Remove(id zxid.SessionID) {
	h := t.sessions[id]
	if h == nil {
		return
	}
	h.SetClosing()
	t.disarm(h)
	delete(t.sessions, id)
}

// Len returns the number of sessions, closing ones included.
func (t *Tracker) Len() int { return len(t.sessions) }

// Advance moves the time to nowMs and returns the sessions that are over, ordered by deadline and then by id. They are
// marked closing and are reported only once; the caller orders their closeSession and removes them when that is applied.
// The slice is valid until the next call.
//
// Advance must be called at the latest when NextDeadline says so. If it was not, this server was paused, and clients
// could not be heard for a while that must not be held against them: see pauses.
func (t *Tracker) Advance(nowMs int64) []*Handle {
	before := t.advancedMs.Load()
	clear(t.expired)
	t.expired = t.expired[:0]
	if nowMs <= before {
		nowMs = before
	}
	if len(t.sessions) > 0 {
		t.pauses.advance(before, nowMs)
	}
	t.advancedMs.Store(nowMs)
	for len(t.due) > 0 && t.due[0] <= nowMs {
		b := t.popBucket()
		for _, h := range b.handles {
			h.bucket = nil
			t.look(h, nowMs)
		}
		t.recycle(b)
	}
	t.sortExpired()
	return t.expired
}

// Awake tells that this server stood still at no time until nowMs, however long ago the last Advance was.
func (t *Tracker) Awake(nowMs int64) { t.advancedMs.Store(max(nowMs, t.advancedMs.Load())) }

// look decides about a session whose bucket has come due.
func (t *Tracker) look(h *Handle, nowMs int64) {
	if h.Closing() {
		return
	}
	if h.busy.Load() > 0 {
		h.Touch(nowMs)
	}
	due := t.deadline(h)
	if due > nowMs {
		t.arm(h, due)
		return
	}
	h.endedMs = due
	h.SetClosing()
	t.expired = append(t.expired, h)
}

// sortExpired makes the order independent of how the sessions lay in their buckets.
func (t *Tracker) sortExpired() {
	slices.SortFunc(t.expired, func(a, b *Handle) int {
		return cmp.Or(cmp.Compare(a.endedMs, b.endedMs), cmp.Compare(uint64(a.id), uint64(b.id)))
	})
}

// deadline returns the point of the tick grid at which h is over if it is not heard any more.
func (t *Tracker) deadline(h *Handle) int64 {
	end := t.pauses.heard(h.lastHeard.Load()) + int64(h.Timeout())
	return (end/t.tickMs + 1) * t.tickMs
}

func (t *Tracker) noteTimeout(ms int32) { t.pauses.noteTimeout(int64(ms)) }

// NextDeadline returns the time, in monotonic milliseconds, at which Advance must be called again at the latest, and
// false if that is never, because no session is being watched. There may turn out to be nothing to do: calls come at
// least once per tick, so that a pause can be told from idleness.
func (t *Tracker) NextDeadline() (ms int64, ok bool) {
	for len(t.due) > 0 && len(t.buckets[t.due[0]].handles) == 0 {
		t.recycle(t.popBucket())
	}
	if len(t.due) == 0 {
		return 0, false
	}
	return min(t.due[0], t.advancedMs.Load()+t.pauses.rhythmMs), true
}

// Bucket is a set of sessions that will be over at the same time.
type Bucket struct {
	DeadlineMs int64
	Sessions   []zxid.SessionID
}

// Buckets returns the sessions by their present deadlines, earliest first, each bucket ordered by id. Closing sessions
// are left out. It visits every session and is meant for operators.
func (t *Tracker) Buckets() []Bucket {
	byDeadline := make(map[int64][]zxid.SessionID)
	for id, h := range t.sessions { // order: sorted below
		if !h.Closing() {
			due := t.deadline(h)
			byDeadline[due] = append(byDeadline[due], id)
		}
	}
	buckets := make([]Bucket, 0, len(byDeadline))
	for due, ids := range byDeadline { // order: sorted below
		slices.SortFunc(ids, func(a, b zxid.SessionID) int { return cmp.Compare(uint64(a), uint64(b)) })
		buckets = append(buckets, Bucket{DeadlineMs: due, Sessions: ids})
	}
	slices.SortFunc(buckets, func(a, b Bucket) int { return cmp.Compare(a.DeadlineMs, b.DeadlineMs) })
	return buckets
}
