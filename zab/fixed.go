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
		n.propose(in.Entries)
	case InputPersisted:
		n.committed = n.disk.durable
	case InputBarrier:
		n.out.Barriers = append(n.out.Barriers, Barrier{ID: in.ID, Zxid: n.hist.last()})
	case InputTick, InputSend, InputResign:
	default:
		panic(fmt.Sprintf("zab: a standalone server has no use for input kind %d", in.Kind))
	}
}
