package sim

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// checkVote is E-19: a vote for oneself names what is durable, and the disk is idle; unless the vote was overtaken in the same
// step by a role that has given the disk something to do.
func (s *server) checkVote(m *zab.Message) {
	if m.Kind != zab.MessageNotification || m.Role != zab.RoleLooking || m.Vote.Leader != s.id {
		return
	}
	d := &s.durable
	busy := (len(d.written) > 0 || len(s.disk.queue) > 0) && s.status.Role == zab.RoleLooking
	if m.Vote.Zxid != d.last() || m.Vote.Epoch != d.epoch() || busy {
		s.w.fail("E-19", "s%d votes for itself with epoch %d up to %v; durable are epoch %d up to %v", s.id, m.Vote.Epoch, m.Vote.Zxid,
			d.epoch(), d.last())
	}
}

// checkSent looks at what a message promises at the moment at which it leaves.
func (e *connEnd) checkSent(m *zab.Message) {
	s, c, d := e.srv, e.c, &e.srv.durable
	w := s.w
	switch m.Kind {
	case zab.MessageAckEpoch:
		e.checkAckEpoch(m)
	case zab.MessageDiff, zab.MessageTrunc, zab.MessageSnap:
		e.checkHeader(m)
	case zab.MessageProposal, zab.MessageInform:
		e.checkStream(m)
	case zab.MessageCommit, zab.MessageUpToDate:
		w.checkTold(s, m.Zxid)
	case zab.MessageNewLeader:
		s.checkLeadership(m)
	case zab.MessageAck: // E-14
		if !d.has(m.Zxid) {
			w.fail("E-14", "s%d acknowledges %v; its disk ends at %v", s.id, m.Zxid, d.last())
		}
	case zab.MessageAckNewLeader: // E-18
		l := w.ghost.leaders[m.Epoch]
		if d.current != m.Epoch || !s.member.Observer && !d.has(l.initial) || !d.has(c.delivered) {
			w.fail("E-18", "s%d acknowledges NEWLEADER of epoch %d; durable are epoch %d up to %v, %v was sent before", s.id, m.Epoch, d.current,
				d.last(), c.delivered)
		}
	}
}

// checkAckEpoch is E-03 and E-19: the promise is durable, it is made once, and what it says of the disk is true.
func (e *connEnd) checkAckEpoch(m *zab.Message) {
	s, c, d := e.srv, e.c, &e.srv.durable
	if d.accepted < c.epoch {
		s.w.fail("E-03", "s%d promises epoch %d; accepted on its disk is %d", s.id, c.epoch, d.accepted)
	}
	if !m.NoVote {
		if s.ackEpochs[c.epoch] {
			s.w.fail("E-03", "s%d promises epoch %d a second time", s.id, c.epoch)
		}
		s.ackEpochs[c.epoch] = true
	}
	if m.Zxid != d.last() || m.Epoch != d.epoch() {
		s.w.fail("E-19", "s%d tells of epoch %d up to %v; durable are epoch %d up to %v", s.id, m.Epoch, m.Zxid, d.epoch(), d.last())
	}
	c.learnerAt = m.Zxid
}

// checkHeader is E-21: the stream begins where both histories agree.
func (e *connEnd) checkHeader(m *zab.Message) {
	s, c := e.srv, e.c
	learner := e.other().srv
	c.streaming, c.sentTo = true, m.Zxid
	switch m.Kind {
	case zab.MessageDiff:
		s.w.count.Diff++
		if m.Zxid != c.learnerAt {
			s.w.fail("E-21", "s%d sends DIFF from %v to s%d, which has %v", s.id, m.Zxid, learner.id, c.learnerAt)
		}
	case zab.MessageTrunc:
		if !learner.durable.has(m.Zxid) && e.other().alive() {
			s.w.fail("E-21", "s%d sends TRUNC to %v to s%d, which does not have it", s.id, m.Zxid, learner.id)
		}
	case zab.MessageSnap:
		c.sentTo = m.Snapshot.Zxid
	}
	if t := s.w.ghost.txns[c.sentTo]; c.sentTo != 0 && (t == nil || !s.inLog(c.sentTo)) {
		s.w.fail("E-21", "s%d sends %v from %v, which is not in its own log", s.id, m.Kind, c.sentTo)
	}
}

// inLog reports whether a transaction is in the log of a server, durable or on its way to the disk.
func (s *server) inLog(z zxid.Zxid) bool {
	if z == 0 || s.durable.has(z) {
		return true
	}
	for at := s.logTail; at >= z && at != 0; {
		if at == z {
			return true
		}
		t := s.w.ghost.txns[at]
		if t == nil {
			return false
		}
		at = t.pred
	}
	return false
}

// checkStream is E-21, E-22 and E-36: what a learner is sent goes on where the last message ended, without a gap.
func (e *connEnd) checkStream(m *zab.Message) {
	s, c := e.srv, e.c
	if !c.streaming || m.Zxid != c.sentTo {
		s.w.fail("E-21", "s%d sends transactions behind %v; the last one it sent on this connection was %v", s.id, m.Zxid, c.sentTo)
	}
	for i := range m.Entries {
		s.w.ghost.see(s, &m.Entries[i], c.sentTo)
		c.sentTo = m.Entries[i].Zxid
	}
	committed := m.Committed
	if m.Kind == zab.MessageInform {
		committed = c.sentTo
	}
	s.w.checkTold(s, committed)
}

// checkTold is E-13: nobody is told of a commit that no quorum has made.
func (w *world) checkTold(s *server, z zxid.Zxid) {
	if z > w.ghost.last() {
		w.fail("E-13", "s%d tells that %v is committed, the last one is %v", s.id, z, w.ghost.last())
	}
}

// received keeps account of what has come in on a connection.
func (e *connEnd) received(m *zab.Message) {
	switch m.Kind {
	case zab.MessageLeaderInfo:
		e.c.epoch = m.Epoch
	case zab.MessageProposal, zab.MessageInform:
		// What comes before NEWLEADER must be durable before that is acknowledged.
		if n := len(m.Entries); n > 0 && e.srv.status.Phase != zab.PhaseBroadcast && !e.c.newLeader {
			e.c.delivered = m.Entries[n-1].Zxid
		}
	case zab.MessageNewLeader:
		e.c.newLeader = true
	case zab.MessageUpToDate:
		e.c.upToDate = true
		e.srv.w.trigger(e.srv, pointUpToDate)
	case zab.MessageAckEpoch:
		if !e.other().srv.member.Observer {
			e.srv.promises = append(e.srv.promises, zab.Vote{Leader: m.From, Epoch: m.Epoch, Zxid: m.Zxid})
		}
	}
}

// checkServing is E-20: a learner serves when its leader has said so, and a leader when it is established.
func (s *server) checkServing() {
	if s.status.Role == zab.RoleLeading {
		return // see checkEstablished
	}
	for _, e := range s.conns { // order: any one will do
		if e.c.upToDate && e.side == 0 && !e.closed {
			return
		}
	}
	s.w.fail("E-20", "s%d serves as %v without UPTODATE from its leader", s.id, s.status.Role)
}

// checkBest is D-50: a leader that begins to hand on its history has at least as much as each voter of the quorum that has
// promised its epoch. What those have that come after the quorum is complete cannot be committed.
func (s *server) checkBest() {
	own := s.electedFor
	promised := map[zxid.ServerID]bool{s.id: true}
	for _, p := range s.promises {
		if s.w.ensemble.Quorum(func(id zxid.ServerID) bool { return promised[id] }) {
			return
		}
		promised[p.Leader] = true
		if p.Epoch > own.Epoch || p.Epoch == own.Epoch && p.Zxid > own.Zxid {
			s.w.fail("D-50", "s%d leads with epoch %d up to %v, s%d, which has promised to follow, has epoch %d up to %v", s.id, own.Epoch, own.Zxid,
				p.Leader, p.Epoch, p.Zxid)
		}
	}
}
