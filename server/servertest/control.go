package servertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"zabra/server"
	"zabra/zab/zxid"
)

// Sessions returns the ids of all sessions that the server knows of, in order. In an ensemble every member knows of all.
func (s *Server) Sessions() (ids []int64) {
	for _, id := range s.control.Sessions() {
		ids = append(ids, int64(id))
	}
	return ids
}

// Connections is how many connections the running server has.
func (s *Server) Connections() int { return s.running.Stats().Connections }

// ExpireSession ends a session as its timeout would, whether its client is alive or not. When it returns, the session's
// ephemeral nodes are gone on this server, or on all members of its ensemble that serve. The client hears of it when it
// connects again. It fails the test if there is no such session.
func (s *Server) ExpireSession(id int64) {
	s.t.Helper()
	expire(s.t, s.group(), id)
}

// Advance lets time pass, in whole milliseconds, without waiting for it: the server's time of day, timeouts of sessions, the
// lives of containers and TTL nodes. When it returns, what has fallen due meanwhile is done; what follows from that may need
// another Advance. A session whose connection is open counts as heard all the time, even if it is frozen in a Proxy:
// ExpireSession ends such a one. The time stays ahead for the rest of the test, also when the server is started again.
//
// In an ensemble it holds for all members. How long they wait for each other does not change.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	advance(s.t, s.group(), d)
}

// Sessions returns the ids of all sessions of the ensemble, in order, as its leader knows them.
func (e *Ensemble) Sessions() []int64 {
	e.t.Helper()
	return e.Server(e.Leader()).Sessions()
}

// ExpireSession ends a session as its timeout would, see Server.ExpireSession.
func (e *Ensemble) ExpireSession(id int64) {
	e.t.Helper()
	e.servers[0].ExpireSession(id)
}

// Advance lets time pass for all members, those included that are down, see Server.Advance.
func (e *Ensemble) Advance(d time.Duration) {
	e.t.Helper()
	e.servers[0].Advance(d)
}

// group are the servers that share their sessions with this one.
func (s *Server) group() []*Server {
	if s.ensemble == nil {
		return []*Server{s}
	}
	return s.ensemble.servers
}

// expire ends a session at whichever of the servers leads. Leaders may change meanwhile.
func expire(t testing.TB, group []*Server, id int64) {
	t.Helper()
	asked := false
	await(t, group, fmt.Sprintf("session %#x has expired", id), func() bool {
		for _, leader := range leaders(group) {
			if !settled(group, leader) { // its members may know of sessions that it does not show yet
				return false
			}
			if slices.Contains(leader.Sessions(), id) {
				asked = leader.control.ExpireSession(zxid.SessionID(id)) == nil || asked
			} else if !asked {
				t.Fatalf("servertest: there is no session %#x that could expire", id)
			}
			return settled(group, leader) && !slices.Contains(leader.Sessions(), id)
		}
		return false
	})
}

func advance(t testing.TB, group []*Server, d time.Duration) {
	t.Helper()
	var alive []zxid.SessionID
	for _, s := range group {
		alive = append(alive, s.control.Connected()...)
	}
	for _, s := range group {
		s.control.Advance(d, alive)
	}
	await(t, group, "what has fallen due is done", func() bool {
		if !slices.ContainsFunc(group, func(s *Server) bool { return s.running != nil }) {
			return true
		}
		list := leaders(group)
		return len(list) > 0 && settled(group, list[0])
	})
}

// leaders are the servers that run and make transactions. There may be two for a moment, when one does not know yet that
// it is none any more.
func leaders(group []*Server) (list []*Server) {
	for _, s := range group {
		if s.running != nil && (s.mode() == "standalone" || s.mode() == "leader") {
			list = append(list, s)
		}
	}
	return list
}

func (s *Server) mode() string { return string(s.running.Stats().Mode) }

// settled waits until everything that the leader has proposed by now is applied by all servers that serve. It reports
// false if that does not come to pass, because the leader has changed.
func settled(group []*Server, leader *Server) bool {
	last := leader.control.Proposed()
	for deadline := time.Now().Add(waitMax); time.Now().Before(deadline); {
		if len(leaders([]*Server{leader})) == 0 {
			return false
		}
		if !slices.ContainsFunc(group, func(s *Server) bool { return s.running != nil && behind(s.running.Stats(), last) }) {
			return true
		}
		time.Sleep(time.Millisecond) // between two looks at a condition that nothing else tells
	}
	return false
}

func behind(st server.Stats, last zxid.Zxid) bool { return st.Mode != "" && st.Zxid < last }
