package sim

import (
	"slices"

	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/zxid"
)

// checkSame is E-05 and E-06: nobody ever has another payload under the same zxid, or the same transaction behind
// another one. From the latter it follows by induction that two logs which share a transaction are equal up to it, and
// from both E-10 and E-11, since a leader proposes in order and begins behind the history it was elected with.
func (g *ghost) checkSame(s *server, t *txn, hash uint64, pred zxid.Zxid) {
	if t.hash != hash {
		g.w.fail("E-05", "s%d has another transaction %v than the one that was proposed first", s.id, t.z)
	}
	if t.pred != pred {
		g.w.fail("E-06", "s%d has %v behind %v, elsewhere it stands behind %v", s.id, t.z, pred, t.pred)
	}
}

// checkProposed is E-05, E-07 and E-24: a new transaction comes from the leader of its epoch, its counter continues, and
// the header inside agrees.
func (g *ghost) checkProposed(s *server, t *txn, inside zxid.Zxid) {
	switch c := t.z.Counter(); {
	case inside != t.z:
		g.w.fail("E-05", "transaction %v carries %v inside", t.z, inside)
	case c < zxid.CounterMin || c > zxid.CounterMax:
		g.w.fail("E-24", "s%d proposes %v", s.id, t.z)
	case t.z.Epoch() == t.pred.Epoch() && t.z != t.pred+1, t.z.Epoch() != t.pred.Epoch() && c != zxid.CounterMin, t.z <= t.pred:
		g.w.fail("E-05", "s%d has %v behind %v", s.id, t.z, t.pred)
	}
	l, ok := g.leaders[t.z.Epoch()]
	if !ok || l.server != s.id || l.life != s.life {
		g.w.fail("E-07", "s%d proposes %v without being the leader of epoch %d", s.id, t.z, t.z.Epoch())
	}
	if t.pred.Epoch() < t.z.Epoch() && t.pred != l.initial {
		g.w.fail("E-12", "s%d begins epoch %d behind %v, its history ended at %v", s.id, t.z.Epoch(), t.pred, l.initial)
	}
}

// checkLeadership is E-01: one leadership per epoch, of one server in one go. It begins with the first NEWLEADER.
func (s *server) checkLeadership(m *zab.Message) {
	g := &s.w.ghost
	now := leadership{server: s.id, life: s.life, generation: s.status.Generation, initial: s.logTail}
	l, ok := g.leaders[m.Epoch]
	if !ok {
		// The first NEWLEADER may go out after the history has grown, but nothing is proposed before a quorum has answered one.
		g.leaders[m.Epoch] = now
		s.checkBest()
		s.w.trigger(s, pointNewLeader)
		for _, o := range s.w.servers {
			o.checkEpochHistory()
		}
		return
	}
	if l.server != now.server || l.life != now.life || l.generation != now.generation {
		s.w.fail("E-01", "s%d leads epoch %d, which s%d has led", s.id, m.Epoch, l.server)
	}
}

// checkStatus looks at what a step has changed: what a leader counts as committed enters G (E-13, E-15); nobody else may
// be ahead of that (E-08).
func (s *server) checkStatus(before zab.Status) {
	g, now := &s.w.ghost, &s.status
	if now.Role == zab.RoleLeading && now.Phase == zab.PhaseBroadcast {
		if before.Role != zab.RoleLeading || before.Phase != zab.PhaseBroadcast || before.Generation != now.Generation {
			s.checkEstablished(now)
		}
		g.commitUpTo(s, now.LastCommitted, now.Epoch)
	} else if before.Role == zab.RoleLeading && now.LastCommitted > g.last() {
		// The last act of a leader, in the step in which it has given up. Perhaps it was established in that step, too.
		if before.Phase != zab.PhaseBroadcast {
			s.checkEstablished(&before)
		}
		g.commitUpTo(s, now.LastCommitted, before.Epoch)
	}
	if now.LastCommitted > g.last() {
		s.w.fail("E-08", "s%d takes %v for committed, the last one is %v", s.id, now.LastCommitted, g.last())
	}
}

// checkEstablished is E-01 and E-15: a new leader has everything that is committed, durably.
func (s *server) checkEstablished(as *zab.Status) {
	g := &s.w.ghost
	s.w.count.LeaderChanges++
	l, ok := g.leaders[as.Epoch]
	if !ok || l.server != s.id || l.generation != as.Generation || l.life != s.life {
		s.w.fail("E-01", "s%d is the leader of epoch %d without having said so", s.id, as.Epoch)
	}
	for _, t := range slices.Backward(g.committed) {
		// A leader that hears late of its quorum may come after one of a later epoch. It need not have what that one committed.
		if t.by >= as.Epoch {
			continue
		}
		if !s.durable.has(t.z) {
			s.w.fail("E-15", "s%d leads epoch %d without the committed transaction %v; its log ends at %v", s.id, as.Epoch, t.z, s.durable.last())
		}
		break
	}
	if n := s.countDurable(l.initial); !s.w.ensemble.Quorum(func(id zxid.ServerID) bool {
		return s.w.server(id).durable.has(l.initial) && s.w.server(id).durable.current >= as.Epoch
	}) {
		s.w.fail("E-18", "epoch %d is established, and its initial history up to %v and the epoch are on %d disks only", as.Epoch, l.initial, n)
	}
}

func (s *server) countDurable(z zxid.Zxid) (n int) {
	for _, id := range s.w.ensemble.Voters() {
		if s.w.server(id).durable.has(z) {
			n++
		}
	}
	return n
}

// checkCommitQuorum is E-13: a transaction that is committed is on the disks of a quorum.
func (g *ghost) checkCommitQuorum(s *server, z zxid.Zxid) {
	if !g.w.ensemble.Quorum(func(id zxid.ServerID) bool { return g.w.server(id).durable.has(z) }) {
		g.w.fail("E-13", "s%d counts %v as committed, and it is on %d disks only", s.id, z, s.countDurable(z))
	}
}

// checkRecoverable is E-15 and E-16: whichever quorum of servers starts again after all have crashed now, the one that
// wins its election has everything that is committed.
func (w *world) checkRecoverable() {
	last := w.ghost.last()
	for _, id := range w.ensemble.Voters() {
		s := w.server(id)
		if s.durable.has(last) {
			continue
		}
		if w.ensemble.Quorum(func(v zxid.ServerID) bool { return !w.server(v).beats(s) }) {
			w.fail("E-16", "s%d could win an election without the committed transaction %v: its disk ends at %v, epoch %d", id, last,
				s.durable.last(), s.durable.epoch())
		}
	}
}

// epoch is the epoch that a server votes with after a restart: a log that has reached a later epoch than the file counts
// as having its history, which it has.
func (d *durable) epoch() zxid.Epoch { return max(d.current, d.last().Epoch()) }

// vote is what a server is worth.
func (d *durable) vote() zab.Vote { return zab.Vote{Epoch: d.epoch(), Zxid: d.last()} }

// beats reports whether s would be elected rather than o.
func (s *server) beats(o *server) bool {
	a, b := &s.durable, &o.durable
	switch {
	case a.epoch() != b.epoch():
		return a.epoch() > b.epoch()
	case a.last() != b.last():
		return a.last() > b.last()
	}
	return s.id > o.id
}

// checkEpoch is E-02: epochs on disk only grow, and the current one is accepted.
func (s *server) checkEpoch(name string, from, to zxid.Epoch) {
	if to < from {
		s.w.fail("E-02", "s%d sets its %s from %d to %d", s.id, name, from, to)
	}
	if name == "currentEpoch" && to > s.durable.accepted {
		s.w.fail("E-02", "s%d sets its currentEpoch to %d, accepted is %d", s.id, to, s.durable.accepted)
	}
}

// checkEpochHistory is E-04: a voter that has made an epoch current has its initial history. Observers get nothing that is
// not committed, so theirs may end before.
func (s *server) checkEpochHistory() {
	l, ok := s.w.ghost.leaders[s.durable.current]
	if ok && !s.member.Observer && !s.durable.has(l.initial) {
		s.w.fail("E-04", "s%d has made epoch %d current without its initial history up to %v: its disk ends at %v", s.id, s.durable.current,
			l.initial, s.durable.last())
	}
}

// checkTruncate is E-15 and E-21: what is cut was not committed, and the new end is in the log.
func (s *server) checkTruncate(z zxid.Zxid) {
	d := &s.durable
	if !d.has(z) {
		s.w.fail("E-21", "s%d truncates its log to %v, which it does not have", s.id, z)
	}
	if i := searchZxid(d.history, z+1); i < len(d.history) && s.w.ghost.isCommitted(d.history[i]) {
		s.w.fail("E-15", "s%d cuts off the committed transaction %v", s.id, d.history[i])
	}
	s.w.count.Trunc++
}

// installed is E-15 and E-23: a snapshot that replaces everything holds whatever of the committed history was here before.
func (s *server) installed(z zxid.Zxid, before zxid.Zxid) {
	g := &s.w.ghost
	history := g.historyOf(z)
	now := durable{history: history}
	for _, had := range slices.Backward(s.durable.history) {
		if g.isCommitted(had) {
			if !now.has(had) {
				s.w.fail("E-15", "s%d throws away the committed transaction %v for a snapshot of %v", s.id, had, z)
			}
			break
		}
	}
	s.w.note(s.id, "has installed snapshot", int64(z), int64(before))
	s.durable.history = history
}

// historyOf returns the history that ends with z.
func (g *ghost) historyOf(z zxid.Zxid) (list []zxid.Zxid) {
	for at := z; at != 0; {
		list = append(list, at)
		t := g.txns[at]
		if t == nil {
			g.w.fail("E-20", "there is a snapshot of %v, which nobody has proposed", at)
		}
		at = t.pred
	}
	slices.Reverse(list)
	return list
}

// checkRecovered is E-02, E-25 and E-26: what a server finds on its disk is what was durable there, perhaps with some of
// what was not yet, and nothing else; and the tree is the state that belongs to it.
func (s *server) checkRecovered(rec *replica.Recovered) {
	d := &s.durable
	limbo := d.limbo
	last := rec.LastZxid
	switch {
	case last >= d.last() && s.isWritten(last):
		for _, z := range d.written {
			if z > d.last() && z <= last {
				d.history = append(d.history, z)
			}
		}
	case limbo != nil && limbo.Kind == zab.PersistTruncate && last >= limbo.Zxid && d.has(last):
		d.cut(last)
	case limbo != nil && limbo.Kind == zab.PersistInstallSnapshot && last == limbo.Zxid:
		s.installed(last, d.last())
	default:
		s.w.fail("E-26", "s%d finds %v at the end of its disk; %v was durable, %d behind it were written", s.id, last, d.last(), len(d.written))
	}
	d.written = d.written[:0]
	s.checkReloaded(rec)
}

// isWritten reports whether z is the end of what is durable or one of those written behind it.
func (s *server) isWritten(z zxid.Zxid) bool {
	return z == s.durable.last() || slices.Contains(s.durable.written, z)
}

// checkRecoveredEpochs is E-02 and E-04 at a start.
func (s *server) checkRecoveredEpochs(accepted, current zxid.Epoch) {
	d := &s.durable
	limbo := d.limbo
	d.limbo = nil
	wantAccepted, wantCurrent := d.accepted, max(d.current, d.last().Epoch())
	if limbo != nil && limbo.Kind == zab.PersistSetAccepted && accepted == limbo.Epoch {
		wantAccepted = limbo.Epoch
	}
	if limbo != nil && limbo.Kind == zab.PersistSetCurrent && current == limbo.Epoch {
		wantCurrent = max(wantCurrent, limbo.Epoch)
	}
	if accepted < wantAccepted || accepted > max(wantAccepted, wantCurrent) || current > wantCurrent || current < d.current {
		s.w.fail("E-02", "s%d starts with the epochs %d accepted, %d current; durable were %d and %d", s.id, accepted, current, d.accepted, d.current)
	}
	d.accepted, d.current = accepted, current
	s.checkEpochHistory()
}

// checkReloaded is E-25 and E-27: a state that was loaded is the one that its last transaction leads to.
func (s *server) checkReloaded(rec *replica.Recovered) {
	if rec.LastZxid != s.durable.last() {
		s.w.fail("E-25", "s%d has loaded the state of %v, its disk ends at %v", s.id, rec.LastZxid, s.durable.last())
	}
	if rec.DigestMismatches > 0 {
		s.w.fail("E-25", "s%d met %d digests in its log that its state did not have", s.id, rec.DigestMismatches)
	}
	if t := s.w.ghost.txns[rec.LastZxid]; t != nil && t.hasDigest && rec.Tree.Digest() != t.digest {
		s.w.fail("E-25", "s%d has loaded a state of %v with another digest", s.id, rec.LastZxid)
	}
	if len(rec.Unreadable) > 0 {
		s.w.fail("E-25", "s%d cannot read a snapshot: %v", s.id, rec.Unreadable[0])
	}
}

// checkSynced is E-14: when the storage says that a batch is durable, nothing of the log waits for a sync.
func (s *server) checkSynced() {
	if len(s.disk.unsynced) > 0 || s.disk.dirsDirty {
		s.w.fail("E-14", "s%d says that its log is durable without having synced it", s.id)
	}
}

// checkHistory is E-21 and E-23: what is read for a learner is a part of the history that this server has now.
func (s *server) checkHistory(req *zab.HistoryRequest, h *zab.History) {
	g := &s.w.ghost
	if h.Err != nil {
		return
	}
	if h.Snapshot != nil {
		if !s.durable.has(h.Snapshot.Zxid) {
			s.w.fail("E-23", "s%d offers a snapshot of %v, which is not in its history", s.id, h.Snapshot.Zxid)
		}
		return
	}
	prev := h.Prev
	if !s.durable.has(prev) || prev > req.After {
		s.w.fail("E-21", "s%d reads %v as the predecessor of what comes after %v", s.id, prev, req.After)
	}
	for i := range h.Entries {
		e := &h.Entries[i]
		t := g.txns[e.Zxid]
		if t == nil || t.pred != prev || t.hash != hashBytes(e.Payload) || !s.durable.has(e.Zxid) {
			s.w.fail("E-23", "s%d reads %v behind %v from its log, which is not its history", s.id, e.Zxid, prev)
		}
		prev = e.Zxid
	}
}
