package znode

import (
	"cmp"
	"slices"

	"zabra/zab/zxid"
)

// session is an entry of the replicated session table. Its timeout is that of its creation, in milliseconds.
type session struct {
	id        zxid.SessionID
	timeoutMs int32
}

// sessionTable keeps the sessions dense, so that a snapshot can take a copy at once, whatever their number.
type sessionTable struct {
	list []session
	pos  map[zxid.SessionID]int32
}

func (s *sessionTable) init() { s.pos = make(map[zxid.SessionID]int32) }

func (s *sessionTable) set(id zxid.SessionID, timeoutMs int32) {
	if i, ok := s.pos[id]; ok {
		s.list[i].timeoutMs = timeoutMs
		return
	}
	s.pos[id] = int32(len(s.list))
	s.list = append(s.list, session{id, timeoutMs})
}

func (s *sessionTable) remove(id zxid.SessionID) {
	i, ok := s.pos[id]
	if !ok {
		return
	}
	last := len(s.list) - 1
	s.list[i] = s.list[last]
	s.pos[s.list[i].id] = i
	delete(s.pos, id)
	s.list = s.list[:last]
}

func sortSessions(list []session) {
	slices.SortFunc(list, func(a, b session) int { return cmp.Compare(a.id, b.id) })
}

// SessionTimeout returns the timeout that a session was created with, in milliseconds.
func (t *Tree) SessionTimeout(s zxid.SessionID) (ms int32, ok bool) {
	i, ok := t.sessions.pos[s]
	if !ok {
		return 0, false
	}
	return t.sessions.list[i].timeoutMs, true
}

// VisitSessions calls f for every session in the order of their ids until it returns false. It works on a copy.
func (t *Tree) VisitSessions(f func(s zxid.SessionID, ms int32) bool) {
	list := slices.Clone(t.sessions.list)
	sortSessions(list)
	for _, s := range list {
		if !f(s.id, s.timeoutMs) {
			return
		}
	}
}

// SessionCount returns the number of sessions.
func (t *Tree) SessionCount() int { return len(t.sessions.list) }

// DropSessions forgets all sessions and leaves what they own, which is orphaned then. The digest, which is that of the
// nodes, stays.
func (t *Tree) DropSessions() {
	t.sessions.list = nil
	t.sessions.init()
}
