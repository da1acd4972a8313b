package replica

import (
	"slices"

	"zabra/zab/zxid"
)

// Connected returns the sessions that are bound to a connection of this server, in order. As the other methods of this
// file, which are there for tests, it belongs to the stepping goroutine.
func (r *Replica) Connected() []zxid.SessionID {
	ids := make([]zxid.SessionID, 0, len(r.bySession))
	for id := range r.bySession { // order: sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Jump takes note that the time was moved to now. The sessions in alive count as heard now, and the others as silent: a gap
// in time would otherwise count as one in which this server stood still, see session.Tracker.
func (r *Replica) Jump(now Now, alive []zxid.SessionID) {
	if r.tracker == nil {
		return // the leader decides
	}
	r.tracker.Awake(now.MonoMs)
	for _, id := range alive {
		if h := r.tracker.Get(id); h != nil {
			h.Touch(now.MonoMs)
		}
	}
}

// ExpireSession proposes the end of a session, as when its timeout is exceeded. The next Step sees to the rest. It reports
// false if this server does not lead, or there is no such session.
func (r *Replica) ExpireSession(id zxid.SessionID) bool {
	if r.tracker == nil || !r.term.leading {
		return false
	}
	h := r.tracker.Get(id)
	if h != nil && !h.Closing() {
		r.expire(h)
	}
	return h != nil
}

// LastProposed returns the last transaction of the log, committed or not.
func (r *Replica) LastProposed() zxid.Zxid { return r.core.Status().LastProposed }
