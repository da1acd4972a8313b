package sim

import (
	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/zxid"
)

// input hands something to the replica with its next step.
func (s *server) input(in zab.Input) {
	if !s.running {
		return
	}
	s.inputs = append(s.inputs, in)
	s.poke()
}

// poke makes the server take a step soon. What comes in until then is handled in the same step.
func (s *server) poke() {
	if s.stepPlanned || !s.running {
		return
	}
	s.stepPlanned = true
	s.w.afterOn(s, s.w.rnd.longTail(5, 3*millisecond), func() {
		s.stepPlanned = false
		s.step()
	})
}

// step is one round of the stepping goroutine.
func (s *server) step() {
	if s.replica == nil {
		return
	}
	inputs := s.inputs
	s.inputs = nil
	// A server that is busy looks at its requests before it hears what else has happened.
	if s.steps++; s.steps%servedFirst == 0 {
		rd := s.replica.Serve(s.now())
		s.carryOut(&rd)
	}
	rd := s.replica.Step(s.now(), inputs)
	s.carryOut(&rd)
	s.resumeClients()
	s.planWake(rd.WakeAtMs)
	s.disk.kick()
	s.w.checkRecoverable()
}

// carryOut does what the replica asks for.
func (s *server) carryOut(rd *replica.Ready) {
	before := s.status
	s.status = rd.Status
	s.w.trace.mix(uint64(s.status.LastCommitted) ^ uint64(s.status.LastProposed)<<20 ^ uint64(s.status.Role)<<60)
	s.handleOps(rd.Persist)
	s.checkStatus(before)
	for i := range rd.Send {
		s.send(&rd.Send[i])
	}
	for _, h := range rd.Hangup {
		s.hangup(h)
	}
	for _, h := range rd.History {
		s.readHistory(h)
	}
	s.checkApplied()
	flushConns(rd.Flush)
	s.changeRole(before)
}

// applyBatchMax is small, so that steps hand on answers while they have more to apply.
const applyBatchMax = 3

func flushConns(conns []*replica.Conn) {
	for _, c := range conns {
		c.Owner().(*clientConn).flush()
	}
}

// planWake takes a step at the latest when the replica asks for it.
func (s *server) planWake(monoMs int64) {
	if monoMs == 0 {
		return
	}
	at := max(s.when(monoMs), s.w.queue.now+100)
	if s.wakeAt > s.w.queue.now && s.wakeAt <= at {
		return
	}
	s.wakeAt = at
	s.w.afterOn(s, at-s.w.queue.now, func() {
		if s.wakeAt != at {
			return // another one was planned for earlier
		}
		s.wakeAt = 0
		s.step()
	})
}

// handleOps queues operations for the disk, after a look at what they are.
func (s *server) handleOps(ops []zab.PersistOp) {
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case zab.PersistAppend:
			for j := range op.Entries {
				s.w.ghost.see(s, &op.Entries[j], s.logTail)
				s.logTail = op.Entries[j].Zxid
			}
		case zab.PersistTruncate, zab.PersistInstallSnapshot:
			s.logTail = op.Zxid
		}
		s.w.note(s.id, opNames[op.Kind], int64(op.Token), int64(opTarget(op)))
		s.w.trigger(s, pointOfOp(op.Kind))
	}
	s.disk.queue = append(s.disk.queue, ops...)
	if s.w.opts.Host&PlantConfirmEarly != 0 && len(ops) > 0 {
		last := ops[len(ops)-1]
		if last.Kind == zab.PersistAppend {
			s.input(zab.Input{Kind: zab.InputPersisted, Token: last.Token})
		}
	}
}

var opNames = map[zab.PersistKind]string{
	zab.PersistAppend: "is to append", zab.PersistTruncate: "is to truncate", zab.PersistSetAccepted: "is to accept epoch",
	zab.PersistSetCurrent: "is to make current epoch", zab.PersistInstallSnapshot: "is to install snapshot",
}

func opTarget(op *zab.PersistOp) uint64 {
	switch op.Kind {
	case zab.PersistAppend:
		return uint64(op.Entries[len(op.Entries)-1].Zxid)
	case zab.PersistTruncate, zab.PersistInstallSnapshot:
		return uint64(op.Zxid)
	}
	return uint64(op.Epoch)
}

// changeRole does what the shell does when the role or its end shows: dial the leader, cut the clients off.
func (s *server) changeRole(before zab.Status) {
	now := &s.status
	if now.Role != before.Role || now.Generation != before.Generation || now.Phase != before.Phase || now.Serving != before.Serving {
		s.w.noteText(s.id, "is", "%v %v of epoch %d, leader s%d, serving %t, generation %d, last %v (%s)", now.Role, now.Phase, now.Epoch,
			now.Leader, now.Serving, now.Generation, now.LastProposed, now.Why)
	}
	if now.Generation != before.Generation {
		s.promises = nil
		s.electedFor = s.durable.vote()
		s.dropReception()
		s.beginRole()
		if now.Role == zab.RoleLooking {
			s.w.count.Elections++
		}
	}
	if now.Serving && !before.Serving {
		s.checkServing()
		s.servedSince = s.w.queue.now
		s.w.trigger(s, pointServing)
	}
	s.dial()
}

// canDial returns the leader that the server is to be connected to.
func (s *server) canDial() (zxid.ServerID, bool) {
	if !s.running || !s.status.HasLeader || s.status.Role != zab.RoleFollowing && s.status.Role != zab.RoleObserving {
		return 0, false
	}
	for _, end := range s.conns { // order: any one that is open is enough
		if end.open && end.generation == s.status.Generation {
			return 0, false
		}
	}
	return s.status.Leader, true
}
