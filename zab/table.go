package zab

// expected is the table of what may come in when. Everything else on a live connection is ignored: it has no place in
// the protocol as this server plays it at that time. Notifications, which travel on the election links, are for all.
func expected(r Role, p Phase, k MessageKind) bool {
	switch r {
	case RoleFollowing, RoleObserving:
		return learnerExpects(p, k)
	case RoleLeading:
		return leaderExpects(k)
	}
	return false
}

func learnerExpects(p Phase, k MessageKind) bool {
	switch k {
	case MessageLeaderInfo:
		return p == PhaseDiscovery
	case MessageDiff, MessageTrunc, MessageSnap, MessageNewLeader, MessageUpToDate:
		return p == PhaseSynchronization
	case MessageProposal, MessageInform, MessageCommit, MessagePing:
		return p == PhaseSynchronization || p == PhaseBroadcast
	case MessageRefused, MessageSynced, MessageRevalidated:
		return p == PhaseBroadcast
	}
	return false
}

// leaderExpects is for messages of learners. How far the learner has come is looked at where the message is handled.
func leaderExpects(k MessageKind) bool {
	switch k {
	case MessageFollowerInfo, MessageObserverInfo, MessageAckEpoch, MessageAckNewLeader, MessageAck, MessagePong,
		MessageRequest, MessageSync, MessageRevalidate:
		return true
	}
	return false
}
