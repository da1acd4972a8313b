package zab

import (
	"cmp"
	"fmt"
	"slices"

	"zabra/zab/zxid"
)

// leader is the state of a server that leads, or that has been elected and is about to.
type leader struct {
	epoch zxid.Epoch
	// chosen is set when a quorum of voters has told its accepted epochs and the new one stands.
	chosen bool
	// promised is set when the epoch is durable here, so that others may be asked to promise it too.
	promised bool
	// established is set when a quorum has the whole initial history durably, this server included.
	established bool
	// current is the token that makes the epoch current here; 0 before.
	current Token
	// initialLast is the end of the history that the leadership begins with.
	initialLast zxid.Zxid
	// learners are ordered by connection.
	learners []*peer
	// acks is scratch of advanceCommit, which runs for every acknowledgement.
	acks []zxid.Zxid
	// deadlineMs bounds the present phase until the leadership is established.
	deadlineMs int64
	// lost are voters that say they follow another server, until they connect.
	lost  []zxid.ServerID
	pings pings
}

// stage is how far one learner has come.
type stage uint8

const (
	stageConnected stage = iota // nothing heard yet
	stageInfo                   // its accepted epoch is known
	stageAsked                  // LEADERINFO is sent
	stagePromised               // ACKEPOCH has come
	stageSyncing                // the history is being sent
	stageNewLeader              // NEWLEADER is sent
	stageLevel                  // NEWLEADER is acknowledged
	stageUpToDate               // UPTODATE is sent
)

// peer is what a leader knows of one learner.
type peer struct {
	conn   ConnID
	id     zxid.ServerID
	voter  bool
	stage  stage
	answer Message // ACKEPOCH
	// deadlineMs is when the learner counts as gone if nothing is heard.
	deadlineMs int64

	// sent is the last transaction sent, or the one that the learner is known to have; acked is the last one that is
	// durable there.
	sent, acked zxid.Zxid
	inflight    []flight
	bytes       int // of inflight
	// committed is the last commit that was told.
	committed zxid.Zxid
	// asking is set while a part of the log is being read for this learner.
	asking bool
	// header is set until DIFF, TRUNC or SNAP is sent.
	header bool
	// pong is the last ping answered.
	pong uint64
}

// flight is one message with proposals that is not acknowledged yet.
type flight struct {
	last   zxid.Zxid
	bytes  int
	sentMs int64
}

// becomeLeading begins the leadership that the election gave. Nothing is served before a quorum has followed.
func (n *Node) becomeLeading() {
	n.generation++
	n.role, n.phase = RoleLeading, PhaseDiscovery
	n.leader = leader{deadlineMs: n.nowMs + n.connectLimitMs(), initialLast: n.hist.last()}
	n.epochBegun = 0
	n.step = n.stepLeading
	n.chooseEpoch()
}

func (n *Node) stepLeading(in *Input) {
	switch in.Kind {
	case InputMessage:
		n.leaderMessage(in.Message)
	case InputConnected:
		n.learnerArrived(in.Peer, in.Conn)
	case InputDisconnected:
		n.dropLearner(in.Conn, "")
	case InputProgress:
		if p := n.leader.byConn(in.Conn); p != nil {
			n.heard(p)
		}
	case InputLinkDown:
		n.checkReachable()
	case InputPersisted:
		n.leaderPersisted()
	case InputHistory:
		n.handleHistory(in.History)
	case InputPropose:
		n.handlePropose(in.Entries)
	case InputBarrier:
		n.leader.pings.ask(in.ID, n.hist.last())
	case InputSend:
		if p := n.leader.byConn(in.Message.Conn); p != nil && p.stage == stageUpToDate {
			m := *in.Message
			m.To = p.id
			n.send(m)
		}
	case InputHandOver:
		n.handOver()
	case InputResign:
		n.election.retired = true
		n.becomeLooking("this server gives up the leadership")
	}
	if n.role == RoleLeading {
		n.leaderTimers()
	}
}

func (n *Node) handlePropose(entries []Entry) {
	if n.serving { // otherwise the term in which they were made has ended
		n.propose(entries)
	}
}

func (ld *leader) byConn(conn ConnID) *peer {
	i, ok := slices.BinarySearchFunc(ld.learners, conn, func(p *peer, c ConnID) int { return cmp.Compare(p.conn, c) })
	if !ok {
		return nil
	}
	return ld.learners[i]
}

// voters reports whether the voters for which is holds, this server included if self, are a quorum.
func (n *Node) voters(self bool, is func(*peer) bool) bool {
	return n.cfg.Ensemble.Quorum(func(id zxid.ServerID) bool {
		if id == n.cfg.ID {
			return self
		}
		for _, p := range n.leader.learners {
			if p.id == id && p.voter && is(p) {
				return true
			}
		}
		return false
	})
}

// learnerArrived takes a new connection. A server has one at most: an older one is dead, even if that was not noticed.
func (n *Node) learnerArrived(id zxid.ServerID, conn ConnID) {
	for _, p := range n.leader.learners {
		if p.id == id {
			n.dropLearner(p.conn, "the server has connected anew")
			break
		}
	}
	if n.role != RoleLeading {
		n.hangup(conn, "not leading")
		return
	}
	n.leader.lost = slices.DeleteFunc(n.leader.lost, func(v zxid.ServerID) bool { return v == id })
	p := &peer{conn: conn, id: id, voter: n.cfg.Ensemble.Voter(id), deadlineMs: n.nowMs + n.cfg.InitLimitMs}
	n.leader.learners = append(n.leader.learners, p)
	slices.SortFunc(n.leader.learners, func(a, b *peer) int { return cmp.Compare(a.conn, b.conn) })
}

// dropLearner forgets a learner. why is empty if its connection is gone already.
func (n *Node) dropLearner(conn ConnID, why string) {
	i := slices.IndexFunc(n.leader.learners, func(p *peer) bool { return p.conn == conn })
	if i < 0 {
		return
	}
	if why != "" {
		n.hangup(conn, why)
	}
	n.leader.learners = slices.Delete(n.leader.learners, i, i+1)
	n.checkQuorum()
	n.checkReachable()
}

// checkQuorum ends a leadership that a quorum does not follow any more.
func (n *Node) checkQuorum() {
	if !n.leader.established || n.planted(PlantNoStepDown) {
		return
	}
	if !n.voters(true, func(p *peer) bool { return p.stage >= stageLevel }) {
		n.becomeLooking("the leader is not followed by a quorum any more")
	}
}

// checkReachable ends a leadership that cannot come about, because too few voters can be reached.
func (n *Node) checkReachable() {
	if n.role != RoleLeading || n.leader.established {
		return
	}
	if !n.cfg.Ensemble.Quorum(func(id zxid.ServerID) bool {
		connected := slices.ContainsFunc(n.leader.learners, func(p *peer) bool { return p.id == id })
		return id == n.cfg.ID || connected || n.links[id] && !slices.Contains(n.leader.lost, id)
	}) {
		n.becomeLooking("too few voters can be reached")
	}
}

// noteLost remembers that a voter has found another leader, or has begun to look anew. It is found again when it connects.
func (n *Node) noteLost(m *Message) {
	other := m.Vote.Leader != n.cfg.ID && (m.Role == RoleFollowing || m.Role == RoleLeading)
	anew := m.Role == RoleLooking && m.Round > n.election.round
	if n.role != RoleLeading || n.leader.established || !other && !anew {
		return
	}
	if !slices.Contains(n.leader.lost, m.From) {
		n.leader.lost = append(n.leader.lost, m.From)
		n.checkReachable()
	}
}

func (n *Node) heard(p *peer) {
	limit := n.cfg.InitLimitMs
	if p.stage >= stageLevel {
		limit = n.cfg.SyncLimitMs
	}
	p.deadlineMs = n.nowMs + limit
}

func (n *Node) leaderMessage(m *Message) {
	if m.Kind == MessageNotification {
		n.handleNotification(m)
		n.noteLost(m)
		return
	}
	p := n.leader.byConn(m.Conn)
	if p == nil || !expected(n.role, n.phase, m.Kind) {
		return
	}
	n.heard(p)
	switch m.Kind {
	case MessageFollowerInfo, MessageObserverInfo:
		n.handleInfo(p, m)
	case MessageAckEpoch:
		n.handleAckEpoch(p, m)
	case MessageAckNewLeader:
		n.handleAckNewLeader(p, m)
	case MessageAck:
		n.handleAck(p, m)
	case MessagePong:
		n.handlePong(p, m)
	case MessageRequest, MessageSync, MessageRevalidate:
		if p.stage == stageUpToDate {
			n.deliver(m)
		}
	}
}

// handleInfo takes the accepted epoch of a learner. One that has promised a later epoch than this leader's cannot follow
// it: only a new epoch can unite them.
func (n *Node) handleInfo(p *peer, m *Message) {
	if p.stage != stageConnected {
		return
	}
	if m.Epoch > epochMax || p.voter && m.Epoch > max(n.epochSeen, n.disk.accepted)+epochLeapMax {
		n.dropLearner(p.conn, fmt.Sprintf("it claims to have accepted epoch %d", m.Epoch))
		return
	}
	p.stage = stageInfo
	if p.voter {
		n.epochSeen = max(n.epochSeen, m.Epoch)
		if n.leader.chosen && m.Epoch > n.leader.epoch {
			n.becomeLooking(fmt.Sprintf("server %d has accepted epoch %d, this leader's is %d", p.id, m.Epoch, n.leader.epoch))
			return
		}
	}
	n.chooseEpoch()
	n.askEpoch(p)
}

// chooseEpoch takes the next epoch after all that a quorum of voters has accepted, and promises it on disk.
func (n *Node) chooseEpoch() {
	ld := &n.leader
	if ld.chosen || !n.voters(true, func(p *peer) bool { return p.stage >= stageInfo }) {
		return
	}
	n.epochSeen = max(n.epochSeen, n.disk.accepted)
	ld.chosen, ld.epoch = true, n.epochSeen+1
	if n.planted(PlantReuseEpoch) && n.epochSeen > 0 {
		ld.epoch = n.epochSeen
	}
	if ld.epoch > epochMax {
		n.election.retired = true
		n.becomeLooking("no epoch is left: the ensemble needs fresh data directories")
		return
	}
	ld.deadlineMs = n.nowMs + n.cfg.InitLimitMs
	n.disk.setAccepted(ld.epoch)
}

// askEpoch sends LEADERINFO to a learner that waits for it.
func (n *Node) askEpoch(p *peer) {
	if n.role != RoleLeading || !n.leader.promised || p.stage != stageInfo {
		return
	}
	p.stage = stageAsked
	n.send(Message{Kind: MessageLeaderInfo, To: p.id, Conn: p.conn, Epoch: n.leader.epoch})
}

// handleAckEpoch takes what a learner has. While the quorum is not complete, a voter with more than this server means
// that the wrong one was elected.
func (n *Node) handleAckEpoch(p *peer, m *Message) {
	if p.stage != stageAsked {
		return
	}
	if len(m.Ends) == 0 || m.Ends[len(m.Ends)-1] != m.Zxid || !slices.IsSorted(m.Ends) || m.Floor > m.Zxid {
		n.dropLearner(p.conn, "its ACKEPOCH contradicts itself")
		return
	}
	p.stage, p.answer = stagePromised, *m
	if p.voter && m.NoVote && n.leader.current == 0 {
		// It has promised this epoch before, to this server on another connection or to another one: that must not
		// count. A later epoch settles it.
		n.becomeLooking(fmt.Sprintf("server %d has promised epoch %d before", p.id, n.leader.epoch))
		return
	}
	own := n.initialVote()
	theirs := Vote{Leader: own.Leader, Zxid: m.Zxid, Epoch: m.Epoch}
	if p.voter && n.leader.current == 0 && theirs != own && n.better(theirs, own) && !n.planted(PlantWorseLeader) {
		n.becomeLooking(fmt.Sprintf("server %d has more: epoch %d up to %v", p.id, m.Epoch, m.Zxid))
		return
	}
	if n.leader.current == 0 {
		n.beginSynchronization()
		return
	}
	n.beginSync(p)
}

// initialVote is what this server was elected for.
func (n *Node) initialVote() Vote {
	return Vote{Leader: n.cfg.ID, Zxid: n.leader.initialLast, Epoch: n.disk.current}
}

// beginSynchronization starts handing on the history once a quorum has promised the epoch.
func (n *Node) beginSynchronization() {
	ld := &n.leader
	if !ld.promised || !n.voters(true, func(p *peer) bool { return p.stage >= stagePromised && !p.answer.NoVote }) {
		return
	}
	n.phase = PhaseSynchronization
	ld.deadlineMs = n.nowMs + n.cfg.InitLimitMs
	ld.current = n.disk.setCurrent(ld.epoch)
	for _, p := range ld.learners {
		if p.stage == stagePromised {
			n.beginSync(p)
		}
	}
	if n.planted(PlantServeBeforeQuorum) {
		n.establish()
	}
}

// leaderPersisted goes on with what had to be durable first.
func (n *Node) leaderPersisted() {
	ld := &n.leader
	if ld.chosen && !ld.promised && n.disk.accepted == ld.epoch {
		ld.promised = true
		for _, p := range ld.learners {
			n.askEpoch(p)
		}
		n.beginSynchronization() // a quorum of one
	}
	n.maybeEstablish()
	n.advanceCommit()
}

func (n *Node) handleAckNewLeader(p *peer, m *Message) {
	if p.stage != stageNewLeader || m.Epoch != n.leader.epoch {
		return
	}
	p.stage = stageLevel
	n.heard(p)
	n.acknowledged(p, m.Zxid)
	n.maybeEstablish()
	if n.leader.established && p.stage == stageLevel {
		n.advanceCommit()
		n.sayUpToDate(p)
	}
}

// maybeEstablish begins the reign when a quorum has the initial history and the epoch on disk, this server among it.
func (n *Node) maybeEstablish() {
	ld := &n.leader
	if ld.established || ld.current == 0 || n.disk.confirmed < ld.current {
		return
	}
	if n.voters(true, func(p *peer) bool { return p.stage >= stageLevel }) {
		n.establish()
	}
}

func (n *Node) establish() {
	ld := &n.leader
	ld.established = true
	n.phase, n.serving = PhaseBroadcast, true
	n.epochBegun = ld.epoch
	n.committed = max(n.committed, ld.initialLast)
	n.election.vote.Epoch = ld.epoch
	ld.pings.nextAtMs = n.nowMs
	for _, p := range ld.learners {
		if p.stage == stageLevel {
			n.sayUpToDate(p)
		}
	}
}

func (n *Node) sayUpToDate(p *peer) {
	p.stage, p.committed = stageUpToDate, max(p.committed, min(n.committed, p.sent))
	for i := range p.inflight {
		p.inflight[i].sentMs = n.nowMs // until now it stood behind the history in the queue
	}
	n.send(Message{Kind: MessageUpToDate, To: p.id, Conn: p.conn, Epoch: n.leader.epoch, Zxid: p.committed})
}

func (ld *leader) count(s *Status) {
	for _, p := range ld.learners {
		s.Learners++
		switch {
		case p.stage < stageUpToDate:
		case p.voter:
			s.SyncedFollowers++
		default:
			s.SyncedObservers++
		}
	}
}
