package zabtest

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// Conn is a connection between a learner and a leader. Each end has its own number for it.
type Conn struct {
	learner, leader       *Server
	learnerEnd, leaderEnd zab.ConnID
	asked                 zxid.Epoch // that the leader has asked to promise
}

func (c *Conn) other(s *Server) *Server {
	if s == c.learner {
		return c.leader
	}
	return c.learner
}

func (c *Conn) end(s *Server) zab.ConnID {
	if s == c.learner {
		return c.learnerEnd
	}
	return c.leaderEnd
}

// dial tries to connect a learner that has no connection, as soon as its leader takes connections.
func (w *World) dial(s *Server) {
	st := s.Node.Status()
	if s.dialling || s.learnerEnd != 0 || st.Role != zab.RoleFollowing && st.Role != zab.RoleObserving {
		return
	}
	leader, generation := w.Server(st.Leader), st.Generation
	s.dialling = true
	wanted := func() bool { return s.learnerEnd == 0 && s.Node.Status().Generation == generation }
	w.enqueue(laneDial, s, leader, nil, Event{
		What: "dial",
		ready: func() bool {
			return !wanted() || leader.Up && leader.Node.Status().Role == zab.RoleLeading && !w.Cut(s.ID, leader.ID)
		},
		do: func() {
			s.dialling = false
			if wanted() {
				w.connect(s, leader)
				return
			}
			w.dial(s)
		},
	})
}

func (w *World) connect(s, leader *Server) {
	s.nextConn++
	leader.nextConn++
	c := &Conn{learner: s, leader: leader, learnerEnd: s.nextConn, leaderEnd: leader.nextConn}
	s.Conns[c.learnerEnd], leader.Conns[c.leaderEnd], s.learnerEnd = c, c, c.learnerEnd
	w.write("%d > %d  connects", s.ID, leader.ID)
	w.step(leader, zab.Input{Kind: zab.InputConnected, Peer: s.ID, Conn: c.leaderEnd})
	if s.Conns[c.learnerEnd] == c {
		w.step(s, zab.Input{Kind: zab.InputConnected, Peer: leader.ID, Conn: c.learnerEnd})
	}
}

// transmit puts a message of s on the way to the other end.
func (w *World) transmit(s *Server, m zab.Message) {
	c := s.Conns[m.Conn]
	if c == nil {
		return
	}
	to := c.other(s)
	m.Conn = c.end(to)
	w.enqueue(laneStream, s, to, c, Event{Message: &m, do: func() { w.step(to, zab.Input{Kind: zab.InputMessage, Message: &m}) }})
	if m.Kind == zab.MessageSnap {
		w.stream(c, m.Snapshot)
	}
}

// stream sends the bytes of a snapshot behind SNAP.
func (w *World) stream(c *Conn, file zab.SnapshotFile) {
	snap := c.leader.Disk.snapshot(file.Zxid)
	if snap == nil {
		w.failf("server %d sends a snapshot of %v that it does not have", c.leader.ID, file.Zxid)
		return
	}
	for range transferChunks {
		w.enqueue(laneStream, c.leader, c.learner, c, Event{What: "chunk", do: func() {
			w.step(c.leader, zab.Input{Kind: zab.InputProgress, Conn: c.leaderEnd})
			w.step(c.learner, zab.Input{Kind: zab.InputProgress, Conn: c.learnerEnd})
		}})
	}
	w.enqueue(laneStream, c.leader, c.learner, c, Event{What: "snapshot", do: func() {
		w.write("%d > %d  the last bytes of the snapshot of %s", c.leader.ID, c.learner.ID, z(file.Zxid))
		c.learner.received = snap
		w.step(c.learner, zab.Input{Kind: zab.InputSnapshot, Conn: c.learnerEnd})
	}})
}

// hangup closes a connection from the end of s: what s has sent still arrives, what is under way to it is lost.
func (w *World) hangup(s *Server, h zab.Hangup) {
	c := s.Conns[h.Conn]
	if c == nil {
		return
	}
	to := c.other(s)
	w.write("%d > %d  hangs up: %s", s.ID, to.ID, h.Why)
	w.lostEnd(c, s)
	w.dropLanes(func(l *lane) bool { return l.conn == c && l.to == s })
	w.enqueue(laneStream, s, to, c, Event{What: "end", do: func() { w.lostEnd(c, to) }})
}

// lostEnd tells a server that a connection is gone, once.
func (w *World) lostEnd(c *Conn, s *Server) {
	n := c.end(s)
	if s.Conns[n] != c {
		return
	}
	delete(s.Conns, n)
	if s.learnerEnd == n && s == c.learner {
		s.learnerEnd = 0
	}
	w.step(s, zab.Input{Kind: zab.InputDisconnected, Conn: n})
}

// breakConn takes a connection away from under both ends. dead is the end that learns nothing any more, or nil.
func (w *World) breakConn(c *Conn, dead *Server) {
	w.dropLanes(func(l *lane) bool { return l.conn == c })
	for _, s := range []*Server{c.learner, c.leader} {
		if s == dead {
			delete(s.Conns, c.end(s))
			continue
		}
		w.lostEnd(c, s)
	}
}

// BreakConn takes the connections between two servers away.
func (w *World) BreakConn(a, b zxid.ServerID) {
	s := w.Server(a)
	for n := zab.ConnID(1); n <= s.nextConn; n++ {
		if c := s.Conns[n]; c != nil && c.other(s).ID == b {
			w.breakConn(c, nil)
		}
	}
}

// BreakQuietly takes the connections between two servers away without the leader's end noticing.
func (w *World) BreakQuietly(learner, leader zxid.ServerID) {
	s := w.Server(learner)
	for n := zab.ConnID(1); n <= s.nextConn; n++ {
		if c := s.Conns[n]; c != nil && c.other(s).ID == leader {
			w.dropLanes(func(l *lane) bool { return l.conn == c })
			w.lostEnd(c, s)
		}
	}
}
