package zabtest

import (
	"cmp"
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// judge knows what must hold in every World, and what has happened as far as that needs it.
type judge struct {
	// proposed are all transactions ever proposed: one zxid has one payload.
	proposed map[zxid.Zxid]string
	// reigns are the servers that were established, by epoch.
	reigns map[zxid.Epoch]zxid.ServerID
	// initial are the ends of the histories that the leaders of the epochs begin with.
	initial map[zxid.Epoch]zxid.Zxid
	// claims are the servers that have sent NEWLEADER, by epoch.
	claims map[zxid.Epoch]zxid.ServerID
	// committed is World.Committed.
	committed []zab.Entry
	checked   map[*Server]int // how much of its state was compared with committed
}

func newJudge() judge {
	return judge{proposed: map[zxid.Zxid]string{}, reigns: map[zxid.Epoch]zxid.ServerID{}, initial: map[zxid.Epoch]zxid.Zxid{}, claims: map[zxid.Epoch]zxid.ServerID{}, checked: map[*Server]int{}}
}

// last is the newest transaction that some server has applied as committed.
func (j *judge) last() zxid.Zxid {
	if n := len(j.committed); n > 0 {
		return j.committed[n-1].Zxid
	}
	return 0
}

func (j *judge) has(z zxid.Zxid) bool {
	_, ok := slices.BinarySearchFunc(j.committed, z, func(e zab.Entry, z zxid.Zxid) int { return cmp.Compare(e.Zxid, z) })
	return ok
}

func (j *judge) started(s *Server) { j.checked[s] = 0 }

// proposes: no zxid is used for two transactions.
func (j *judge) proposes(w *World, s *Server, e zab.Entry) {
	if old, ok := j.proposed[e.Zxid]; ok {
		w.failf("server %d proposes %v = %q, which was %q before", s.ID, e.Zxid, e.Payload, old)
	}
	if c := e.Zxid.Counter(); c < zxid.CounterMin || c > zxid.CounterMax {
		w.failf("server %d proposes %v", s.ID, e.Zxid)
	}
	j.proposed[e.Zxid] = string(e.Payload)
}

// sends: a server promises and claims only what its disk holds.
func (j *judge) sends(w *World, s *Server, m *zab.Message) {
	d := &s.Disk
	switch m.Kind {
	case zab.MessageNotification:
		if m.Role == zab.RoleLooking && m.Vote.Leader == s.ID && (m.Vote.Zxid != d.Last() || m.Vote.Epoch != d.Current) {
			w.failf("server %d votes with %+v, but its disk ends at %v in epoch %d", s.ID, m.Vote, d.Last(), d.Current)
		}
	case zab.MessageNewLeader:
		if other, ok := j.claims[m.Epoch]; ok && other != s.ID {
			w.failf("servers %d and %d both hand on the history of epoch %d", other, s.ID, m.Epoch)
		} else if !ok {
			j.claims[m.Epoch], j.initial[m.Epoch] = s.ID, d.Last()
		}
	case zab.MessageLeaderInfo:
		if c := s.Conns[m.Conn]; c != nil {
			c.asked = m.Epoch
		}
	case zab.MessageAckEpoch:
		if m.Zxid != d.Last() || m.Epoch != d.Current {
			w.failf("server %d tells epoch %d and %v, but its disk ends at %v in epoch %d", s.ID, m.Epoch, m.Zxid, d.Last(), d.Current)
		}
		if c := s.Conns[m.Conn]; c != nil && c.asked > d.Accepted {
			w.failf("server %d answers before epoch %d is accepted on its disk: %d", s.ID, c.asked, d.Accepted)
		}
	case zab.MessageAck:
		if m.Zxid > d.Last() || !d.Has(m.Zxid) {
			w.failf("server %d acknowledges %v, but its disk ends at %v", s.ID, m.Zxid, d.Last())
		}
	case zab.MessageAckNewLeader:
		if m.Epoch != d.Current || m.Zxid > d.Last() {
			w.failf("server %d acknowledges epoch %d up to %v, but its disk ends at %v in epoch %d", s.ID, m.Epoch, m.Zxid, d.Last(), d.Current)
		}
	}
}

// performs does an operation on disk: nothing that is committed may get lost by it, and an epoch becomes current only
// where the history that it began with is.
func (j *judge) performs(w *World, s *Server, op *zab.PersistOp) {
	before := s.Disk.Log
	if err := s.Disk.perform(op, s.received); err != nil {
		w.failf("server %d: %v", s.ID, err)
		return
	}
	last := s.Disk.Last()
	if want, ok := j.initial[op.Epoch]; ok && op.Kind == zab.PersistSetCurrent && (last < want || !s.Disk.Has(want)) {
		w.failf("server %d makes epoch %d current without its history up to %v: its disk ends at %v", s.ID, op.Epoch, want, last)
	}
	if op.Kind == zab.PersistTruncate || op.Kind == zab.PersistInstallSnapshot {
		for i := len(before) - 1; i >= 0 && before[i].Zxid > last; i-- {
			if j.has(before[i].Zxid) {
				w.failf("server %d throws %v away, which is committed", s.ID, before[i].Zxid)
			}
		}
	}
}

// applies: all servers apply the same transactions in the same order, and each was on the disks of a quorum.
func (j *judge) applies(w *World, s *Server) {
	for i := j.checked[s]; i < len(s.State); i++ {
		e := s.State[i]
		switch {
		case i < len(j.committed) && (j.committed[i].Zxid != e.Zxid || string(j.committed[i].Payload) != string(e.Payload)):
			w.failf("server %d applies %v as number %d, another one has applied %v", s.ID, e.Zxid, i, j.committed[i].Zxid)
			return
		case i >= len(j.committed):
			j.commits(w, s, e)
		}
	}
	j.checked[s] = len(s.State)
	w.Committed = j.committed
}

func (j *judge) commits(w *World, s *Server, e zab.Entry) {
	if j.proposed[e.Zxid] != string(e.Payload) {
		w.failf("server %d applies %v = %q, and %q was proposed", s.ID, e.Zxid, e.Payload, j.proposed[e.Zxid])
	}
	if !s.Disk.Has(e.Zxid) || e.Zxid > s.Disk.Last() {
		w.failf("server %d applies %v, which is not on its disk", s.ID, e.Zxid)
	}
	if !w.Ensemble.Quorum(func(id zxid.ServerID) bool { d := &w.Server(id).Disk; return e.Zxid <= d.Last() && d.Has(e.Zxid) }) {
		w.failf("server %d applies %v, which is not on the disks of a quorum", s.ID, e.Zxid)
	}
	j.committed = append(j.committed, e)
}

// status: what a Node says of itself fits together.
func (j *judge) status(w *World, s *Server, st zab.Status) {
	switch {
	case st.LastCommitted > st.LastProposed:
		w.failf("server %d knows that %v is committed, but its log ends at %v", s.ID, st.LastCommitted, st.LastProposed)
	case st.LastDurable > st.LastProposed:
		w.failf("server %d has %v durable, but its log ends at %v", s.ID, st.LastDurable, st.LastProposed)
	case st.Epoch > st.Accepted:
		w.failf("server %d is in epoch %d and has accepted %d", s.ID, st.Epoch, st.Accepted)
	}
}

// serves: a server that begins to serve has committed transactions only, all of them if it leads, and nobody else has
// ever led in its epoch. From now on its state is judged.
func (j *judge) serves(w *World, s *Server, st zab.Status) {
	known := len(j.committed)
	j.checked[s] = 0
	j.applies(w, s)
	if st.Role != zab.RoleLeading {
		return
	}
	if len(s.State) < known {
		w.failf("server %d leads epoch %d and lacks %v, which is committed", s.ID, st.Epoch, j.committed[len(s.State)].Zxid)
	}
	if other, ok := j.reigns[st.Epoch]; ok && other != s.ID {
		w.failf("servers %d and %d both lead epoch %d", other, s.ID, st.Epoch)
	}
	j.reigns[st.Epoch] = s.ID
}

// Reigns is in how many epochs a server has led.
func (w *World) Reigns() int { return len(w.judge.reigns) }
