package zab

import (
	"fmt"

	"zabra/zab/zxid"
)

// learner is the state of a follower or an observer.
type learner struct {
	leader zxid.ServerID
	conn   ConnID // 0 until the shell has connected
	epoch  zxid.Epoch
	// deadlineMs is when the leader counts as gone if nothing is heard.
	deadlineMs int64
	// synced is set by DIFF, TRUNC, or the snapshot that SNAP announced: proposals may follow.
	synced bool
	// snapshot is what SNAP announced, while it is on its way.
	snapshot *SnapshotFile
	// newLeader is set when NEWLEADER has come, acked when it is acknowledged, which is at newLeaderToken: from then on
	// durable transactions are.
	newLeader, acked bool
	newLeaderToken   Token
	upToDate         bool
	// serveFrom is the transaction that must be applied before clients are served.
	serveFrom zxid.Zxid
	// ackSent is the last transaction acknowledged.
	ackSent zxid.Zxid
}

// becomeLearner begins to follow the leader that was elected.
func (n *Node) becomeLearner(role Role) {
	n.generation++
	n.role, n.phase = role, PhaseDiscovery
	n.learner = learner{leader: n.election.vote.Leader, deadlineMs: n.nowMs + n.connectLimitMs()}
	n.step = n.stepLearner
}

func (n *Node) stepLearner(in *Input) {
	l := &n.learner
	switch in.Kind {
	case InputMessage:
		n.learnerMessage(in.Message)
	case InputConnected:
		n.learnerConnected(in.Peer, in.Conn)
	case InputDisconnected:
		if in.Conn == l.conn {
			l.conn = 0
			n.becomeLooking("the connection to the leader is gone")
		}
	case InputLinkDown:
		if in.Peer == l.leader && l.conn == 0 {
			n.becomeLooking("the leader that was elected cannot be reached")
		}
	case InputPersisted:
		n.learnerPersisted()
	case InputProgress:
		if in.Conn == l.conn {
			n.heardLeader()
		}
	case InputSnapshot:
		if in.Conn == l.conn && l.snapshot != nil {
			n.installSnapshot()
		}
	case InputSend:
		if m := *in.Message; n.serving && l.conn != 0 && (m.Conn == 0 || m.Conn == l.conn) {
			m.Conn, m.To = l.conn, l.leader
			n.send(m)
		}
	case InputResign:
		n.election.retired = true
		n.becomeLooking("this server is being shut down")
	}
	if (n.role == RoleFollowing || n.role == RoleObserving) && n.nowMs >= l.deadlineMs {
		n.giveUpLeader()
	}
}

// giveUpLeader looks for a leader again after a silence. One that could not even be connected to is passed over for a
// while, whatever others say of it.
func (n *Node) giveUpLeader() {
	if n.learner.conn == 0 {
		n.election.avoid, n.election.avoidUntilMs = n.learner.leader, n.nowMs+2*n.connectLimitMs()
		n.becomeLooking("the leader that was elected cannot be connected to")
		return
	}
	n.becomeLooking("the leader was not heard for too long")
}

// leaderChanged reports whether the server that was elected, and is not connected to yet, says itself that it will not
// lead.
func (n *Node) leaderChanged(m *Message) bool {
	l := &n.learner
	if n.role != RoleFollowing && n.role != RoleObserving || l.conn != 0 || m.From != l.leader || m.Role == RoleLeading {
		return false
	}
	switch {
	case m.Role != RoleLooking, m.Vote == noLeader, m.Round > n.election.round:
		return true
	}
	return m.Round == n.election.round && m.Vote.Leader != l.leader // an earlier round was on its way
}

func (n *Node) learnerConnected(peer zxid.ServerID, conn ConnID) {
	l := &n.learner
	if peer != l.leader || l.conn != 0 {
		n.hangup(conn, fmt.Sprintf("server %d is not to be followed", peer))
		return
	}
	l.conn = conn
	l.deadlineMs = n.nowMs + n.cfg.InitLimitMs
	kind := MessageFollowerInfo
	if n.role == RoleObserving {
		kind = MessageObserverInfo
	}
	n.sendLeader(Message{Kind: kind, Epoch: n.disk.accepted, ConfigVersion: n.cfg.Ensemble.Version()})
}

func (n *Node) sendLeader(m Message) {
	m.To, m.Conn = n.learner.leader, n.learner.conn
	n.send(m)
}

// holdForLeader sends m when everything that was handed to the disk so far is durable.
func (n *Node) holdForLeader(m Message) {
	m.To, m.Conn, m.From = n.learner.leader, n.learner.conn, n.cfg.ID
	if n.disk.idle() {
		n.send(m)
		return
	}
	n.disk.hold(m)
}

func (n *Node) heardLeader() {
	limit := n.cfg.InitLimitMs
	if n.learner.upToDate {
		limit = n.cfg.SyncLimitMs
	}
	n.learner.deadlineMs = n.nowMs + limit
}

// learnerMessage takes what comes in. Messages of a connection that is not the present one, or that have no place here at
// this time, are ignored: see expected.
func (n *Node) learnerMessage(m *Message) {
	if m.Kind == MessageNotification {
		n.handleNotification(m)
		return
	}
	if m.Conn != n.learner.conn || m.Conn == 0 || !expected(n.role, n.phase, m.Kind) {
		return
	}
	n.heardLeader()
	if err := n.learnerHandle(m); err != nil {
		n.becomeLooking(err.Error())
	}
}

func (n *Node) learnerHandle(m *Message) error {
	if l := &n.learner; (m.Kind == MessageDiff || m.Kind == MessageTrunc || m.Kind == MessageSnap) && (l.synced || l.snapshot != nil) {
		return fmt.Errorf("a second %v", m.Kind)
	}
	switch m.Kind {
	case MessageLeaderInfo:
		return n.handleLeaderInfo(m)
	case MessageDiff:
		return n.handleDiff(m)
	case MessageTrunc:
		return n.handleTrunc(m)
	case MessageSnap:
		if m.Snapshot.Zxid.Epoch() > n.learner.epoch {
			return fmt.Errorf("SNAP of %v, beyond the epoch %d", m.Snapshot.Zxid, n.learner.epoch)
		}
		if m.Snapshot.Zxid < n.committed && !n.planted(PlantSnapshotTooOld) {
			return fmt.Errorf("SNAP of %v, but %v is committed: the leader's data is not this ensemble's, or older", m.Snapshot.Zxid, n.committed)
		}
		file := m.Snapshot
		n.learner.snapshot = &file
	case MessageProposal, MessageInform:
		return n.handleProposal(m)
	case MessageCommit:
		return n.handleCommit(m.Zxid)
	case MessageNewLeader:
		return n.handleNewLeader(m)
	case MessageUpToDate:
		return n.handleUpToDate(m)
	case MessagePing:
		if !n.serving {
			n.sendLeader(Message{Kind: MessagePong, ID: m.ID})
			return nil
		}
		n.deliver(m)
	case MessageRefused, MessageSynced, MessageRevalidated:
		n.deliver(m)
	}
	return nil
}

// handleLeaderInfo promises the new epoch, once that is durable, and tells the leader what this server has.
func (n *Node) handleLeaderInfo(m *Message) error {
	l := &n.learner
	answer := Message{
		Kind: MessageAckEpoch, Epoch: n.disk.current, Zxid: n.disk.durable, Ends: append([]zxid.Zxid(nil), n.hist.ends...), Floor: n.hist.floor,
	}
	if n.planted(PlantVoteNotDurable) {
		answer.Zxid = n.hist.last()
	}
	// What an observer has promised binds nobody: it may go back behind an epoch that came to nothing.
	switch binding := n.role == RoleFollowing; {
	case m.Epoch < n.disk.accepted && binding || m.Epoch < n.disk.current:
		return fmt.Errorf("the leader proposes epoch %d, but epoch %d was accepted", m.Epoch, n.disk.accepted)
	case m.Epoch > epochMax:
		return fmt.Errorf("the leader proposes epoch %d, beyond what a zxid can hold", m.Epoch)
	case m.Epoch <= n.disk.accepted:
		answer.NoVote = true
	default:
		if n.planted(PlantAckEpochEarly) {
			n.sendLeader(answer)
		}
		n.disk.setAccepted(m.Epoch)
	}
	l.epoch = m.Epoch
	n.phase = PhaseSynchronization
	if !n.planted(PlantAckEpochEarly) || answer.NoVote {
		n.holdForLeader(answer)
	}
	return nil
}

func (n *Node) handleDiff(m *Message) error {
	if m.Zxid != n.hist.last() {
		return fmt.Errorf("DIFF from %v, but the log ends at %v", m.Zxid, n.hist.last())
	}
	n.learner.synced = true
	return nil
}

// handleTrunc makes the log end at m.Zxid. What the state has applied beyond that is undone by loading it anew.
func (n *Node) handleTrunc(m *Message) error {
	z := m.Zxid
	if z < n.hist.floor || !n.hist.holds(z) {
		return fmt.Errorf("TRUNC to %v, but the log reaches from %v to %v and has no such transaction", z, n.hist.floor, n.hist.last())
	}
	if z < n.committed {
		return fmt.Errorf("TRUNC to %v, but %v is committed: the leader's data is not this ensemble's, or older", z, n.committed)
	}
	n.learner.synced = true
	if n.planted(PlantNoTruncate) {
		return nil
	}
	if n.planted(PlantTruncateOne) && n.hist.has(z+1) {
		z++
	}
	if z < n.hist.last() {
		n.disk.truncate(z, z < n.applied)
		n.hist.truncate(z)
		n.applied = min(n.applied, z)
	}
	return nil
}

// installSnapshot makes the snapshot that was received all there is.
func (n *Node) installSnapshot() {
	l := &n.learner
	z := l.snapshot.Zxid
	l.snapshot, l.synced = nil, true
	n.disk.install(z)
	n.hist.reset(z)
	n.applied = z
	n.heardLeader()
}

// handleProposal appends what the leader sends. It must follow what is there without a gap.
func (n *Node) handleProposal(m *Message) error {
	if !n.learner.synced {
		return fmt.Errorf("%v before DIFF, TRUNC or a snapshot", m.Kind)
	}
	prev := n.hist.last()
	if m.Zxid != prev && !beginning(prev, m.Zxid) && !n.planted(PlantSkipPredecessor) {
		return fmt.Errorf("%v follows %v, but the log ends at %v", m.Kind, m.Zxid, prev)
	}
	for i := range m.Entries {
		if z := m.Entries[i].Zxid; !follows(prev, z) && !n.planted(PlantSkipPredecessor) || z.Epoch() > n.learner.epoch {
			return fmt.Errorf("%v holds %v after %v", m.Kind, z, prev)
		}
		prev = m.Entries[i].Zxid
	}
	if len(m.Entries) > 0 {
		n.hist.append(m.Entries)
	}
	committed := m.Committed
	if m.Kind == MessageInform {
		committed = prev
	}
	if n.planted(PlantAckEarly) && n.learner.acked {
		n.sendLeader(Message{Kind: MessageAck, Zxid: prev})
	}
	return n.handleCommit(committed)
}

func (n *Node) handleCommit(z zxid.Zxid) error {
	if !n.learner.synced {
		return fmt.Errorf("COMMIT of %v before DIFF, TRUNC or a snapshot", z)
	}
	if beginning(n.hist.last(), z) {
		z = n.hist.last()
	}
	if z > n.hist.last() {
		return fmt.Errorf("COMMIT of %v, but the log ends at %v", z, n.hist.last())
	}
	n.committed = max(n.committed, z)
	n.maybeServe()
	return nil
}

// handleNewLeader makes the leader's epoch current here, after the history that came before, and then says so.
func (n *Node) handleNewLeader(m *Message) error {
	l := &n.learner
	if m.Epoch != l.epoch || !l.synced || l.newLeader {
		return fmt.Errorf("NEWLEADER of epoch %d, where epoch %d was accepted", m.Epoch, l.epoch)
	}
	l.newLeader = true
	answer := Message{Kind: MessageAckNewLeader, Epoch: m.Epoch, Zxid: n.hist.last()}
	if n.planted(PlantEpochBeforeHistory) {
		n.disk.setCurrent(m.Epoch)
		n.appendFresh()
	} else {
		n.appendFresh()
		n.disk.setCurrent(m.Epoch)
	}
	if n.planted(PlantAckNewLeaderEarly) {
		n.sendLeader(answer)
		l.acked, l.ackSent = true, answer.Zxid
		return nil
	}
	n.holdForLeader(answer)
	l.newLeaderToken = n.disk.lastToken
	return nil
}

func (n *Node) handleUpToDate(m *Message) error {
	l := &n.learner
	if m.Epoch != l.epoch || !l.newLeader {
		return fmt.Errorf("UPTODATE of epoch %d before its history", m.Epoch)
	}
	l.upToDate = true
	l.serveFrom = min(m.Zxid, n.hist.last())
	n.phase = PhaseBroadcast
	n.election.vote.Epoch = m.Epoch
	n.heardLeader()
	return n.handleCommit(m.Zxid)
}

// maybeServe lets clients in when everything is applied that was committed when the leader said UPTODATE, and all that is
// applied is committed: a state that was loaded at the start has the whole log, and may be ahead.
func (n *Node) maybeServe() {
	l := &n.learner
	if n.planted(PlantServeEarly) && l.synced && n.disk.restoring == 0 {
		n.serving = true
	}
	level := min(n.committed, n.disk.durable) >= l.serveFrom
	if l.upToDate && level && n.committed >= n.applied && n.disk.restoring == 0 {
		n.serving = true
	}
}

// learnerPersisted acknowledges what has become durable. Before NEWLEADER is acknowledged that only tells the leader how
// far the learner keeps up.
func (n *Node) learnerPersisted() {
	l := &n.learner
	if l.newLeader && n.disk.confirmed >= l.newLeaderToken {
		l.acked = true
	}
	if l.synced && n.disk.durable > l.ackSent {
		l.ackSent = n.disk.durable
		n.sendLeader(Message{Kind: MessageAck, Zxid: l.ackSent})
	}
	n.maybeServe()
}
