package zab

import (
	"fmt"
	"slices"

	"zabra/zab/zxid"
)

// handleAck takes word of what is durable at a learner.
func (n *Node) handleAck(p *peer, m *Message) {
	if m.Zxid > p.sent {
		n.dropLearner(p.conn, fmt.Sprintf("it acknowledges %v, and %v was the last one sent", m.Zxid, p.sent))
		return
	}
	n.acknowledged(p, m.Zxid)
	if p.stage >= stageLevel {
		n.advanceCommit()
	}
}

func (n *Node) acknowledged(p *peer, z zxid.Zxid) {
	p.acked = max(p.acked, min(z, p.sent))
	i := 0
	for ; i < len(p.inflight) && p.inflight[i].last <= z; i++ {
		p.bytes -= p.inflight[i].bytes
	}
	p.inflight = append(p.inflight[:0], p.inflight[i:]...)
}

// advanceCommit commits what a quorum has on disk, as far as it is of this epoch: with it, all before is committed too.
func (n *Node) advanceCommit() {
	ld := &n.leader
	if !ld.established {
		return
	}
	acks := append(ld.acks[:0], n.disk.durable)
	for _, p := range ld.learners {
		if p.stage >= stageLevel {
			acks = append(acks, p.acked)
		}
	}
	ld.acks = acks
	slices.Sort(acks)
	for i := len(acks) - 1; i >= 0 && acks[i] > n.committed; i-- {
		z := acks[i]
		if z.Epoch() != ld.epoch {
			return
		}
		if n.planted(PlantCommitMinority) || n.ackedByQuorum(z) {
			n.committed = z
			return
		}
	}
}

func (n *Node) ackedByQuorum(z zxid.Zxid) bool {
	return n.voters(n.disk.durable >= z, func(p *peer) bool { return p.stage >= stageLevel && p.acked >= z })
}

// pings keeps learners alive and proves that this server leads. Rounds are answered in order on each connection, so that
// an answer to one proves that the learner still followed after it was sent.
type pings struct {
	round    uint64 // last one sent
	proven   uint64 // last one that a quorum has answered
	nextAtMs int64
	waiting  []waitingBarrier
}

// waitingBarrier is a sync that waits for the proof of a round, and for the commit of what was proposed before it.
type waitingBarrier struct {
	Barrier
	round uint64 // 0 until one is begun for it
}

func (g *pings) ask(id uint64, z zxid.Zxid) {
	g.waiting = append(g.waiting, waitingBarrier{Barrier: Barrier{ID: id, Zxid: z}})
}

// startPings begins a round when it is time, or when a sync waits and no round is under way: all syncs that came in
// meanwhile share one.
func (n *Node) startPings() {
	g := &n.leader.pings
	if n.leader.current == 0 {
		return
	}
	asked := len(g.waiting) > 0 && g.waiting[len(g.waiting)-1].round == 0
	if n.nowMs >= g.nextAtMs || asked && g.proven == g.round {
		g.round++
		if n.nowMs >= g.nextAtMs {
			g.nextAtMs = n.nowMs + max(n.cfg.TickMs/2, 1)
		}
		for i := range g.waiting {
			if g.waiting[i].round == 0 {
				g.waiting[i].round = g.round
			}
		}
		for _, p := range n.leader.learners {
			if p.stage >= stageSyncing {
				n.send(Message{Kind: MessagePing, To: p.id, Conn: p.conn, ID: g.round})
			}
		}
		n.checkProof()
	}
	n.passBarriers()
}

func (n *Node) handlePong(p *peer, m *Message) {
	g := &n.leader.pings
	if m.ID > g.round || m.ID <= p.pong {
		n.dropLearner(p.conn, fmt.Sprintf("it answers ping %d out of turn", m.ID))
		return
	}
	p.pong = m.ID
	if len(m.Touches) > 0 && p.stage == stageUpToDate {
		n.deliver(m)
	}
	n.checkProof()
	n.passBarriers()
}

// checkProof finds the last round that a quorum has answered.
func (n *Node) checkProof() {
	g := &n.leader.pings
	for r := g.round; r > g.proven; r-- {
		if n.planted(PlantSyncWithoutQuorum) || n.voters(true, func(p *peer) bool { return p.stage == stageUpToDate && p.pong >= r }) {
			g.proven = r
			return
		}
	}
}

// passBarriers tells of the syncs that are proven and whose transactions are committed.
func (n *Node) passBarriers() {
	g := &n.leader.pings
	if !n.leader.established {
		return
	}
	i := 0
	for ; i < len(g.waiting); i++ {
		w := &g.waiting[i]
		if w.round == 0 || w.round > g.proven || w.Zxid > n.committed {
			break
		}
		n.out.Barriers = append(n.out.Barriers, w.Barrier)
	}
	g.waiting = append(g.waiting[:0], g.waiting[i:]...)
}

// leaderTimers lets go of learners that are silent or do not keep up, and of a leadership that does not get anywhere.
func (n *Node) leaderTimers() {
	ld := &n.leader
	for i := 0; i < len(ld.learners); i++ {
		p := ld.learners[i]
		why := ""
		switch {
		case n.nowMs >= p.deadlineMs:
			why = "it was not heard for too long"
		case p.stage == stageUpToDate && len(p.inflight) > 0 && n.nowMs >= p.inflight[0].sentMs+n.cfg.SyncLimitMs:
			why = "it does not acknowledge proposals in time"
		default:
			continue
		}
		n.dropLearner(p.conn, why)
		if n.role != RoleLeading {
			return
		}
		i--
	}
	since, waits := n.disk.waitsSinceMs()
	switch {
	case !ld.established && n.nowMs >= ld.deadlineMs:
		n.becomeLooking("no quorum has followed in time")
	case ld.established && waits && n.nowMs >= since+n.cfg.SyncLimitMs:
		n.becomeLooking("this server's own disk does not keep up")
	case ld.established && n.hist.last().Epoch() == ld.epoch && n.hist.last().Counter() > zxid.CounterMax-counterMargin:
		n.becomeLooking("the zxids of the epoch are used up")
	}
}

func (ld *leader) wakeAtMs(n *Node) int64 {
	at := ld.deadlineMs
	if ld.established {
		at = ld.pings.nextAtMs
	} else if ld.current > 0 {
		at = min(at, ld.pings.nextAtMs)
	}
	for _, p := range ld.learners {
		at = min(at, p.deadlineMs)
	}
	return max(at, n.nowMs+1)
}
