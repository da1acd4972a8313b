package sim

import (
	"fmt"

	"zabra/wire"
	"zabra/zab/zxid"
)

// heal ends all faults: ways are open, disks run, everybody is up. Only a pause goes on to its end.
func (w *world) heal() {
	w.healed, w.calmSince = true, w.queue.now
	w.note(0, "the faults are over", 0, 0)
	for a := range w.net.blocked {
		for b := range w.net.blocked[a] {
			if w.net.blocked[a][b] > 0 {
				w.net.blocked[a][b] = 1
				w.net.block(zxid.ServerID(a), zxid.ServerID(b), false)
			}
		}
	}
	w.net.healed = true
	w.net.slowUntil = 0
	for _, s := range w.servers {
		s.disk.slowUntil, s.disk.hangUntil, s.disk.crashIn, s.disk.failSync = 0, 0, 0, false
		s.disk.crashAtSync = false
		s.orders = orders{}
		if !s.running {
			w.after(w.rnd.between(0, 500*millisecond), s.start)
		}
	}
	for _, c := range w.clients {
		c.silent, c.connectedAt = false, w.queue.now
		w.after(0, c.next)
	}
}

// outage takes the power from everybody at once, when all is well: what was acknowledged is still there afterwards (E-16).
func (w *world) outage() {
	w.count.Outages++
	for _, s := range w.servers {
		s.crash(false, "an outage in the end")
	}
	for _, s := range w.servers {
		s.restartIn(w.rnd.between(0, 800*millisecond))
	}
	for _, c := range w.clients {
		c.proved = false
	}
	w.outageAt = w.queue.now
}

// prove is E-38 and E-39: within a bound, one leader serves, all servers are level with it, and every client can write.
func (w *world) prove() {
	end := w.queue.now
	for _, s := range w.servers {
		end = max(end, s.pausedUntil) // what was put off until then cannot come earlier
	}
	end += livenessBound
	level := false
	w.runUntil(end, func() bool {
		level = w.settled()
		return level
	})
	if !level {
		w.fail("E-38", "%v after the faults the ensemble is not whole: %s", livenessBound, w.describe())
	}
	proved := func() bool {
		for _, c := range w.clients {
			if !c.proved {
				return false
			}
		}
		return true
	}
	w.runUntil(end, proved)
	if !proved() {
		for _, c := range w.clients {
			if !c.proved {
				w.fail("E-39", "%v after the faults client %d has not been able to write: session %v, connected %t, %d requests open", livenessBound,
					c.index, c.session, c.connected, len(c.sent))
			}
		}
	}
}

// settled reports whether one leader serves and all others follow it and serve.
func (w *world) settled() bool {
	l := w.leader()
	if l == nil {
		return false
	}
	for _, s := range w.servers {
		if !s.running || !s.status.Serving || s.status.Leader != l.id || s.status.Epoch != l.status.Epoch {
			return false
		}
	}
	return true
}

// close lets everything come to rest, and compares.
func (w *world) close() {
	for _, c := range w.clients {
		c.stopped = true
	}
	rest := func() bool {
		for _, c := range w.clients {
			if len(c.sent) > 0 && c.conn != nil {
				return false
			}
		}
		for _, s := range w.servers {
			if !s.running || s.applied != w.ghost.last() || s.status.LastProposed != w.ghost.last() {
				return false
			}
		}
		return true
	}
	w.runUntil(w.queue.now+quietBound, rest)
	if !rest() {
		w.fail("E-39", "%v after the last request not everybody has everything: the last transaction is %v; %s", quietBound, w.ghost.last(), w.describe())
	}
	w.audit()
	for _, s := range w.servers {
		if err := s.replica.Tree().Check(); err != nil {
			w.fail("E-29", "the tree of s%d contradicts itself: %v", s.id, err)
		}
		if got, want := s.replica.Tree().Digest(), w.ghost.tree.Digest(); got != want {
			w.fail("E-27", "s%d ends with the digest %#x, %#x is right", s.id, got, want)
		}
	}
	w.count.Worlds = 1
}

// describe tells how the servers are.
func (w *world) describe() string {
	text := ""
	for _, s := range w.servers {
		st := &s.status
		if !s.running {
			text += "s" + string(rune('0'+s.id)) + " down; "
			continue
		}
		text += fmt.Sprintf("s%d %v %v leader s%d epoch %d serving %t applied %v last %v (%s); ", s.id, st.Role, st.Phase, st.Leader, st.Epoch, st.Serving,
			s.applied, st.LastProposed, st.Why)
	}
	return text
}

// audit compares the sessions of all servers with what follows from their history, now and then.
func (w *world) audit() {
	for _, s := range w.servers {
		if s.running && s.status.Serving {
			s.checkSessions()
		}
	}
	for _, l := range w.net.links {
		l.watch()
	}
	if w.count.Worlds == 0 {
		w.after(150*millisecond, w.audit)
	}
}

// checkApplied is E-08, E-09, E-27 and E-29, and LOCAL, which is stricter than ZooKeeper: what a server has applied is a
// beginning of what is committed and lies on its own disk, its state has the digest that belongs to it, and an ended
// session owns nothing.
func (s *server) checkApplied() {
	tree := s.replica.Tree()
	z := tree.LastZxid()
	if z == s.applied {
		return
	}
	g := &s.w.ghost
	if z < s.applied {
		s.w.fail("E-07", "s%d has applied %v after %v", s.id, z, s.applied)
	}
	if !g.isCommitted(z) {
		s.w.fail("E-08", "s%d has applied %v, which is not committed", s.id, z)
	}
	if !s.durable.has(z) {
		s.w.fail("LOCAL", "s%d has applied %v, which is not on its disk", s.id, z)
	}
	if digest, ok := g.committedAt(z); ok && tree.Digest() != digest {
		s.w.fail("E-27", "s%d has the digest %#x at %v, %#x is right", s.id, tree.Digest(), z, digest)
	}
	for _, t := range g.between(s.applied, z) {
		if t.op == wire.OpCloseSession {
			tree.VisitEphemerals(t.session, func(path []byte) bool {
				s.w.fail("E-29", "s%d has applied the end %v of session %v, which still owns %s", s.id, t.z, t.session, path)
				return false
			})
		}
		if s.member.Observer {
			s.w.count.Observed++
		}
	}
	s.applied = z
}

// between returns what was committed after one transaction up to another.
func (g *ghost) between(after, upTo zxid.Zxid) []*txn {
	from := 0
	if t := g.txns[after]; t != nil {
		from = t.place
	}
	return g.committed[from:g.txns[upTo].place]
}

// checkSessions is E-28 and E-29: the sessions in the state are those whose creation was applied and whose end was not,
// and every ephemeral node has one.
func (s *server) checkSessions() {
	tree := s.replica.Tree()
	z := tree.LastZxid()
	n := 0
	tree.VisitSessions(func(id zxid.SessionID, ms int32) bool {
		h := s.w.ghost.sessions[id]
		if h == nil || h.born > z || h.died != 0 && h.died <= z || h.timeoutMs != ms {
			s.w.fail("E-28", "s%d has the session %v at %v: %+v", s.id, id, z, h)
		}
		n++
		return true
	})
	want := 0
	for _, h := range s.w.ghost.sessions { // order: a count is the same in any
		if h.born <= z && (h.died == 0 || h.died > z) {
			want++
		}
	}
	if n != want {
		s.w.fail("E-28", "s%d has %d sessions at %v, %d is right", s.id, n, z, want)
	}
	if orphans := tree.Orphans(); len(orphans) > 0 {
		s.w.fail("E-29", "s%d has ephemeral nodes of session %v at %v, which is not in its state", s.id, orphans[0], z)
	}
}
