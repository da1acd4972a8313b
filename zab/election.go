package zab

import (
	"math"

	"zabra/zab/zxid"
)

// election is the state of a server that looks for a leader: ZooKeeper's fast leader election. Everyone proposes the
// best server it has heard of, best by epoch, then last transaction, then id, until a quorum proposes the same.
type election struct {
	// round grows with each election. Votes of different rounds are not counted together.
	round uint64
	// running is false while the disk is still busy with the role that ended: until then this server does not know
	// what it can promise.
	running bool
	vote    Vote
	// ballots are the votes of this round by sender, settled those of servers that have a leader.
	ballots, settled map[zxid.ServerID]Message
	beganMs, tookMs  int64
	resendAtMs       int64
	resendMs         int64
	// agreedAtMs is when a quorum agreed while others could still speak up; 0 if it has not.
	agreedAtMs int64
	// out are servers that have said they take no part at present: nobody waits for them. They may have said so while
	// this server still followed.
	out map[zxid.ServerID]bool
	// avoid could not be connected to; until then it is neither voted for nor joined on the word of others.
	avoid        zxid.ServerID
	avoidUntilMs int64
	// retired servers take no part any more.
	retired bool
	// yieldUntilMs is until when this server leaves the lead to others; 0 if it does not.
	yieldUntilMs int64
}

// noLeader is the vote of a server that takes no part in the election: its disk is busy, or it is being shut down.
var noLeader = Vote{Leader: math.MinInt64}

// becomeLooking ends the present role. The connections of that role are closed and its unfinished business is dropped;
// what the disk was given is waited for before the first vote, so that there is one writer to the log and the vote is true.
func (n *Node) becomeLooking(why string) {
	n.generation++
	n.why = why
	if n.role != RoleLooking && !n.served {
		n.failures++
	}
	switch n.role {
	case RoleFollowing, RoleObserving:
		if n.learner.conn != 0 {
			n.hangup(n.learner.conn, why)
		}
	case RoleLeading:
		for _, l := range n.leader.learners {
			n.hangup(l.conn, why)
		}
	}
	n.role, n.phase, n.serving, n.served = RoleLooking, PhaseElection, false, false
	n.learner, n.leader = learner{}, leader{}
	n.disk.held = n.disk.held[:0]
	n.step = n.stepLooking
	// What was proposed and not handed to the disk was not sent to anyone either.
	if n.hist.last() > n.disk.handed {
		n.hist.truncate(n.disk.handed)
		n.committed = min(n.committed, n.hist.last())
	}
	n.election.running, n.election.beganMs = false, n.nowMs
	n.election.ballots, n.election.settled = make(map[zxid.ServerID]Message), make(map[zxid.ServerID]Message)
	n.tryElection()
	if !n.election.running && n.role == RoleLooking {
		n.notifyMembers()
	}
}

// connectLimitMs is the present limit of that name.
func (n *Node) connectLimitMs() int64 {
	return min(n.cfg.InitLimitMs, connectLimitMs<<min(n.failures, connectDoublingsMax))
}

// tryElection begins the election as soon as the disk is idle.
func (n *Node) tryElection() {
	if n.election.running || n.election.retired {
		return
	}
	if !n.disk.idle() && !n.planted(PlantVoteWhileWriting|PlantVoteNotDurable) {
		return
	}
	// A synchronisation that broke off leaves transactions of epochs that were never made current here. The log is a
	// prefix of a leader's, so it holds the whole beginning of the epoch that it ends in.
	if e := n.disk.durable.Epoch(); e > n.disk.current {
		n.disk.setCurrent(e)
		return
	}
	n.election.running = true
	if !n.yields() {
		n.election.yieldUntilMs = 0
	}
	round := n.election.round + 1
	if !n.cfg.Ensemble.Voter(n.cfg.ID) || n.yields() {
		round = 0 // without a vote it goes by the rounds of the others
	}
	for _, id := range n.cfg.Ensemble.Voters() {
		round = max(round, n.election.ballots[id].Round)
	}
	n.startRound(round)
	n.checkElection()
}

// ownVote is this server's vote for itself; without a vote it is the zero Vote.
func (n *Node) ownVote() (Vote, bool) {
	z := n.disk.durable
	if n.planted(PlantVoteNotDurable) {
		z = n.hist.last()
	}
	return Vote{Leader: n.cfg.ID, Zxid: z, Epoch: n.disk.current}, n.cfg.Ensemble.Voter(n.cfg.ID)
}

// startRound begins a round with the best vote known for it.
func (n *Node) startRound(round uint64) {
	e := &n.election
	e.round = round
	own, voter := n.ownVote()
	e.vote = own
	if !voter || n.yields() {
		e.vote = noLeader
	}
	for _, id := range n.cfg.Ensemble.Voters() {
		b, ok := e.ballots[id]
		switch {
		case ok && b.Round == round && n.adoptable(b.Vote):
			e.vote = b.Vote
		case ok && b.Round < round:
			delete(e.ballots, id)
		}
	}
	e.agreedAtMs, e.resendMs = 0, resendMinMs
	n.notifyAll()
}

// better is the order of votes.
func (n *Node) better(a, b Vote) bool {
	if !n.cfg.Ensemble.Electable(a.Leader) {
		return false
	}
	switch {
	case a.Epoch != b.Epoch && !n.planted(PlantVoteByZxid):
		return a.Epoch > b.Epoch
	case a.Zxid != b.Zxid:
		return a.Zxid > b.Zxid
	}
	return a.Leader > b.Leader
}

// avoids reports whether a server could not be connected to of late.
func (n *Node) avoids(id zxid.ServerID) bool {
	return id == n.election.avoid && n.nowMs < n.election.avoidUntilMs
}

// adoptable reports whether a vote is better than this server's, and for a server that it could follow.
func (n *Node) adoptable(v Vote) bool {
	if n.yields() && !n.yieldsTo(v) {
		return false
	}
	return n.better(v, n.election.vote) && (v.Leader == n.cfg.ID || n.links[v.Leader] && !n.avoids(v.Leader))
}

// adoptHeard looks at the votes of this round again when a link has come up.
func (n *Node) adoptHeard() {
	e := &n.election
	for _, id := range n.cfg.Ensemble.Voters() {
		if b, ok := e.ballots[id]; ok && e.running && b.Round == e.round && n.adoptable(b.Vote) {
			e.vote = b.Vote
			e.agreedAtMs, e.resendMs = 0, resendMinMs
			n.notifyAll()
		}
	}
}

// notifyAll tells all voters this server's vote.
func (n *Node) notifyAll() {
	for _, id := range n.cfg.Ensemble.Voters() {
		if id != n.cfg.ID {
			n.notify(id)
		}
	}
	n.election.resendAtMs = n.nowMs + n.election.resendMs
}

// notify tells one server the present vote, or that which made the present leader.
func (n *Node) notify(to zxid.ServerID) {
	m := Message{
		Kind: MessageNotification, To: to, Vote: n.election.vote, Round: n.election.round, Role: n.role,
		ConfigVersion: n.cfg.Ensemble.Version(),
	}
	if n.role == RoleLooking && !n.election.running {
		m.Vote = noLeader
	}
	n.send(m)
}

// notifyMembers tells everyone, those without a vote as well.
func (n *Node) notifyMembers() {
	for _, m := range n.cfg.Ensemble.Members() {
		if m.ID != n.cfg.ID {
			n.notify(m.ID)
		}
	}
}

// handleNotification is for every role. Who looks for a leader is told what is known here.
func (n *Node) handleNotification(m *Message) {
	if m.From == n.cfg.ID {
		return
	}
	n.election.out[m.From] = m.Role == RoleLooking && m.Vote == noLeader
	if n.leaderChanged(m) {
		n.becomeLooking("the server that was elected does not lead")
	}
	if n.role != RoleLooking {
		if m.Role == RoleLooking && (m.Vote != noLeader || !n.cfg.Ensemble.Voter(m.From)) {
			n.notify(m.From)
		}
		return
	}
	voter := n.cfg.Ensemble.Voter(m.From)
	if !voter && m.Role == RoleLooking {
		if n.cfg.Ensemble.Voter(n.cfg.ID) {
			n.notify(m.From)
		}
		return
	}
	if voter && m.Role == RoleLooking && m.Vote == noLeader {
		n.lookPast(m.From)
		return
	}
	if !voter || !n.cfg.Ensemble.Voter(m.Vote.Leader) {
		return
	}
	switch m.Role {
	case RoleLooking:
		n.handleBallot(m)
	case RoleFollowing, RoleLeading:
		n.handleSettled(m)
	default:
		return
	}
	n.checkElection()
}

// handleBallot takes the vote of a server that looks as well.
func (n *Node) handleBallot(m *Message) {
	e := &n.election
	delete(e.settled, m.From)
	old, ok := e.ballots[m.From]
	if ok && old.Round > m.Round {
		return // overtaken on the way
	}
	first := !ok || old.Round != m.Round
	e.ballots[m.From] = *m
	switch {
	case !e.running:
	case m.Round > e.round:
		n.startRound(m.Round)
	case m.Round < e.round && !n.cfg.Ensemble.Voter(n.cfg.ID):
	case m.Round < e.round:
		n.notify(m.From)
	case n.adoptable(m.Vote):
		e.vote = m.Vote
		e.agreedAtMs, e.resendMs = 0, resendMinMs
		n.notifyAll()
	case first:
		n.notify(m.From) // it may have begun to look after this server's vote went out
	}
}

// handleSettled takes the word of a server that has a leader. If that is the leader proposed in this very round, the
// server has only been faster, and its vote still counts.
func (n *Node) handleSettled(m *Message) {
	e := &n.election
	e.settled[m.From] = *m
	if m.Round == e.round && m.Vote.Leader == e.vote.Leader {
		e.ballots[m.From] = Message{Vote: e.vote, Round: e.round}
		return
	}
	delete(e.ballots, m.From)
}

func (n *Node) stepLooking(in *Input) {
	switch in.Kind {
	case InputMessage:
		if in.Message.Kind == MessageNotification {
			n.handleNotification(in.Message)
		}
	case InputPersisted:
		n.tryElection()
	case InputLinkUp:
		n.notify(in.Peer)
		n.adoptHeard()
		n.checkElection()
	case InputLinkDown:
		n.lookPast(in.Peer)
	case InputConnected:
		n.hangup(in.Conn, "no leader is known here yet")
	case InputResign:
		n.election.retired, n.election.running, n.election.agreedAtMs = true, false, 0
		n.notifyMembers()
	}
	n.endYield()
	e := &n.election
	if e.running && n.role == RoleLooking && n.nowMs >= e.resendAtMs {
		e.resendMs = min(2*e.resendMs, resendMaxMs)
		n.notifyAll()
	}
	if e.agreedAtMs > 0 {
		n.checkElection()
	}
}

// lookPast forgets what a server that cannot be reached any more has said. If it was the one proposed, the round is void.
func (n *Node) lookPast(peer zxid.ServerID) {
	e := &n.election
	delete(e.ballots, peer)
	delete(e.settled, peer)
	if !e.running {
		return
	}
	if e.vote.Leader == peer {
		n.startRound(e.round + 1)
	}
	n.checkElection()
}

// checkElection ends the election when its result is certain.
func (n *Node) checkElection() {
	e := &n.election
	if !e.running || n.role != RoleLooking {
		return
	}
	if leader, ok := n.establishedLeader(); ok {
		e.vote, e.round = leader.Vote, max(e.round, leader.Round)
		n.decide()
		return
	}
	if !n.agreed() {
		e.agreedAtMs = 0
		return
	}
	if e.agreedAtMs == 0 {
		e.agreedAtMs = max(n.nowMs, 1)
	}
	if n.allHeard() || n.nowMs >= e.agreedAtMs+finalizeWaitMs {
		n.decide()
	}
}

// establishedLeader finds a server that says it leads and that a quorum, itself included, says it follows. How they came
// to it does not matter.
func (n *Node) establishedLeader() (Message, bool) {
	for _, id := range n.cfg.Ensemble.Voters() {
		m, ok := n.election.settled[id]
		if !ok || m.Role != RoleLeading || id == n.cfg.ID || n.avoids(id) {
			continue
		}
		// This server itself counts: joining is always safe, for only promises and acknowledgements decide.
		if n.cfg.Ensemble.Quorum(func(v zxid.ServerID) bool {
			b, ok := n.election.settled[v]
			return v == n.cfg.ID || ok && b.Vote.Leader == id
		}) {
			return m, true
		}
	}
	return Message{}, false
}

// agreed reports whether a quorum proposes the same as this server.
func (n *Node) agreed() bool {
	e := &n.election
	return e.vote != noLeader && n.cfg.Ensemble.Quorum(func(v zxid.ServerID) bool {
		if v == n.cfg.ID {
			return true
		}
		b, ok := e.ballots[v]
		return ok && b.Round == e.round && b.Vote == e.vote
	})
}

// allHeard reports whether nobody who can be reached could still change the result: all of them agree.
func (n *Node) allHeard() bool {
	for _, v := range n.cfg.Ensemble.Voters() {
		if v == n.cfg.ID || !n.links[v] || n.election.out[v] {
			continue
		}
		if b, ok := n.election.ballots[v]; !ok || b.Round != n.election.round || b.Vote != n.election.vote {
			return false
		}
	}
	return true
}

// decide takes the role that the vote gives.
func (n *Node) decide() {
	e := &n.election
	e.running, e.agreedAtMs = false, 0
	e.tookMs = n.nowMs - e.beganMs
	e.ballots, e.settled = nil, nil
	switch {
	case e.vote.Leader == n.cfg.ID:
		n.becomeLeading()
	case n.cfg.Ensemble.Voter(n.cfg.ID):
		n.becomeLearner(RoleFollowing)
	default:
		n.becomeLearner(RoleObserving)
	}
	n.notifyMembers() // who has not agreed yet, or has no vote, learns the result from this
}

func (e *election) wakeAtMs() int64 {
	if !e.running {
		return 0
	}
	at := e.resendAtMs
	if e.agreedAtMs > 0 {
		at = min(at, e.agreedAtMs+finalizeWaitMs)
	}
	if e.yieldUntilMs > 0 {
		at = min(at, e.yieldUntilMs)
	}
	return at
}
