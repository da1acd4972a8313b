package zab

import "fmt"

func (n *Node) becomeFixedEpoch() {
	n.generation++
	n.role, n.phase, n.serving = RoleStandalone, PhaseBroadcast, true
	n.committed = n.applied
	n.step = n.stepFixedEpoch
}

// stepFixedEpoch is the standalone server: a quorum of one, so that what is durable here is committed.
func (n *Node) stepFixedEpoch(in *Input) {
	switch in.Kind {
	case InputPropose:
		if n.serving { // otherwise the state that they were made for is being replaced
			n.propose(in.Entries)
		}
	case InputPersisted:
		if n.disk.restoring == 0 {
			n.committed, n.serving = n.disk.durable, true
		}
	case InputBarrier:
		n.out.Barriers = append(n.out.Barriers, Barrier{ID: in.ID, Zxid: n.hist.last()})
	case InputRestore:
		n.restore(in)
	case InputTick, InputSend, InputResign, InputHandOver:
	default:
		panic(fmt.Sprintf("zab: a standalone server has no use for input kind %d", in.Kind))
	}
}

// restore replaces the state by that of a snapshot, whose zxid must be beyond all that was ever given out here: a client
// that has seen the old state must not find the new one older. Nobody is served until the snapshot is installed and loaded.
// What was proposed and is not committed yet has no outcome that anybody is told.
func (n *Node) restore(in *Input) {
	if !n.serving || in.Zxid <= n.hist.last() {
		return
	}
	n.generation++
	n.serving = false
	n.disk.install(in.Zxid)
	n.hist.reset(in.Zxid)
	n.committed, n.applied = in.Zxid, in.Zxid
}
