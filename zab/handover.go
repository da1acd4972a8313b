package zab

// Handing over. A leader that is asked to (InputHandOver) gives its role up while it goes on as a voter. Nothing new is
// needed for safety: it is an election like any other, and whoever wins it proves in discovery that it has everything.
// What keeps the old leader, whose vote is as good as the best, from winning it again is that for yieldLimitMs it says it
// takes no part, and then votes only for others that have all that it has. After that time it is a candidate like
// everyone, so that an ensemble whose other voters are gone in that very moment is not without a leader for longer.

// handOver ends this leadership, if there is somebody who could lead at once.
func (n *Node) handOver() {
	if !n.serving || n.levelVoters() == 0 {
		return
	}
	n.election.yieldUntilMs = n.nowMs + yieldLimitMs
	n.becomeLooking("this server hands over the leadership")
}

// levelVoters is how many others could lead in this server's place: they have been sent all that its own disk was given.
// What was sent arrives before the connection is closed, and is on disk before the vote.
func (n *Node) levelVoters() (count int) {
	for _, p := range n.leader.learners {
		if p.voter && p.stage == stageUpToDate && p.sent >= n.disk.handed && n.cfg.Ensemble.Electable(p.id) {
			count++
		}
	}
	return count
}

// yields reports whether this server leaves the lead to others at present.
func (n *Node) yields() bool { return n.nowMs < n.election.yieldUntilMs }

// yieldsTo reports whether a server that yields may vote so: for another one that has all that it has itself.
func (n *Node) yieldsTo(v Vote) bool {
	if v.Leader == n.cfg.ID || v.Epoch < n.disk.current {
		return false
	}
	return v.Epoch > n.disk.current || v.Zxid >= n.disk.durable
}

// endYield makes the server a candidate again when its time is up and nobody leads.
func (n *Node) endYield() {
	e := &n.election
	if e.yieldUntilMs == 0 || n.yields() {
		return
	}
	e.yieldUntilMs = 0
	if e.running {
		n.startRound(e.round + 1)
		n.checkElection()
	}
}
