package zab

import (
	"fmt"

	"zabra/zab/zxid"
)

// beginSync finds out where a learner's log and this one part, and begins to send what the learner lacks. From here on
// the learner is served from one position in the log, sent, that only moves forward: older transactions come from disk,
// newer ones from memory, and what is proposed meanwhile just lengthens the way. So nothing can fall between.
func (n *Node) beginSync(p *peer) {
	p.stage, p.header = stageSyncing, true
	if p.answer.Zxid == n.hist.last() {
		n.startFrom(p, p.answer.Zxid)
		return
	}
	s := n.hist.common(p.answer.Ends)
	switch {
	case s.exact && s.point >= p.answer.Floor:
		n.startFrom(p, s.point)
	case s.onDisk:
		n.askHistory(p, HistoryRequest{After: s.point})
	default:
		// The learner cannot go back to where they part. A snapshot must hold all that they share.
		n.askHistory(p, HistoryRequest{After: s.point, SnapshotOnly: true})
	}
}

// startFrom sends the header, if what follows z is in memory: the learner's log is to end at z, and goes on from there.
func (n *Node) startFrom(p *peer, z zxid.Zxid) {
	if !n.hist.has(z) && z != n.hist.prev {
		// It has to be read from disk. If the log does not reach back, a snapshot is sent instead of the header.
		p.sent = z
		n.askHistory(p, HistoryRequest{After: z})
		return
	}
	n.sendHeader(p, z)
}

// sendHeader sends DIFF if the learner's log ends at z, otherwise TRUNC.
func (n *Node) sendHeader(p *peer, z zxid.Zxid) {
	header := MessageTrunc
	if z == p.answer.Zxid {
		header = MessageDiff
	}
	p.header, p.sent, p.acked = false, z, z
	n.send(Message{Kind: header, To: p.id, Conn: p.conn, Zxid: z})
}

func (n *Node) askHistory(p *peer, r HistoryRequest) {
	p.asking = true
	r.Conn, r.Resume = p.conn, p.answer.Resume
	n.out.History = append(n.out.History, r)
}

// handleHistory goes on with a learner for which the disk was read.
func (n *Node) handleHistory(h *History) {
	p := n.leader.byConn(h.Conn)
	if p == nil || !p.asking {
		return
	}
	p.asking = false
	n.heard(p)
	switch {
	case h.Err != nil:
		n.dropLearner(p.conn, fmt.Sprintf("its history cannot be had: %v", h.Err))
	case h.Snapshot != nil:
		n.startSnapshot(p, h)
	case p.header:
		n.startOnDisk(p, h)
	case len(h.Entries) == 0 && beginning(h.Prev, n.hist.prev) && h.Prev == p.sent:
		p.sent = n.hist.prev // nothing lies between
	case len(h.Entries) == 0 || h.Prev != p.sent && !beginning(h.Prev, p.sent) || !follows(p.sent, h.Entries[0].Zxid):
		n.dropLearner(p.conn, fmt.Sprintf("the log on disk does not go on after %v", p.sent))
	default:
		n.sendFromDisk(p, h.Entries)
	}
}

// startSnapshot announces a snapshot; the shell sends its bytes right behind. It must hold all that the learner shares
// with this server: the learner throws away what it has.
func (n *Node) startSnapshot(p *peer, h *History) {
	if h.Snapshot.Zxid < h.After && !n.planted(PlantSnapshotTooOld) || !p.header {
		n.dropLearner(p.conn, fmt.Sprintf("the snapshot of %v is older than what the learner has, %v", h.Snapshot.Zxid, h.After))
		return
	}
	p.header, p.sent, p.acked = false, h.Snapshot.Zxid, h.Snapshot.Zxid
	n.send(Message{Kind: MessageSnap, To: p.id, Conn: p.conn, Zxid: p.sent, Snapshot: *h.Snapshot, SnapshotOffset: h.Offset})
}

// startOnDisk sends DIFF or TRUNC when the log on disk has told where the two logs part.
func (n *Node) startOnDisk(p *peer, h *History) {
	z := h.Prev
	if z != h.After && z.Epoch() != h.After.Epoch() || z < p.answer.Floor {
		// They part in an epoch that this log does not show, or before what the learner can go back to.
		n.askHistory(p, HistoryRequest{After: h.After, SnapshotOnly: true})
		return
	}
	n.sendHeader(p, z)
	if len(h.Entries) > 0 {
		n.sendFromDisk(p, h.Entries)
	}
}

// sendFromDisk passes on what was read. Observers get nothing that is not committed.
func (n *Node) sendFromDisk(p *peer, entries []Entry) {
	limit := n.sendLimit(p)
	for i := range entries {
		if entries[i].Zxid > limit {
			entries = entries[:i]
			break
		}
	}
	if len(entries) > 0 {
		n.sendEntries(p, entries)
	}
}

// sendLimit is the last transaction that a learner may be sent now.
func (n *Node) sendLimit(p *peer) zxid.Zxid {
	if p.voter {
		return n.hist.last()
	}
	return min(n.committed, n.hist.last())
}

// pumpAll sends to every learner what it lacks, as far as it keeps up, and tells what is committed.
func (n *Node) pumpAll() {
	for _, p := range n.leader.learners {
		if p.stage >= stageSyncing && !p.header {
			n.pump(p)
		}
	}
	n.startPings()
	// A learner that has fallen out of the window while it was serving clients cannot be told any more whose requests
	// the transactions are: it starts anew.
	for i := 0; i < len(n.leader.learners); i++ {
		if p := n.leader.learners[i]; p.stage == stageUpToDate && p.sent < n.hist.prev {
			n.dropLearner(p.conn, "it has fallen too far behind")
			if n.role != RoleLeading {
				return
			}
			i--
		}
	}
}

func (n *Node) pump(p *peer) {
	for p.bytes < inflightBytesMax && p.sent < n.sendLimit(p) && !p.asking {
		entries, ok := n.hist.after(p.sent, n.sendLimit(p))
		if !ok && p.stage < stageUpToDate {
			n.askHistory(p, HistoryRequest{After: p.sent, LogOnly: true})
		}
		if len(entries) == 0 {
			break
		}
		n.sendEntries(p, firstBatch(entries))
	}
	if p.stage == stageSyncing && !p.asking && p.sent == n.sendLimit(p) && (p.voter || n.leader.established) {
		p.stage = stageNewLeader
		n.send(Message{Kind: MessageNewLeader, To: p.id, Conn: p.conn, Epoch: n.leader.epoch, ConfigVersion: n.cfg.Ensemble.Version()})
	}
	n.tellCommit(p)
}

// firstBatch takes as many entries as fit into one message.
func firstBatch(entries []Entry) []Entry {
	bytes := 0
	for i := range entries {
		bytes += entryBytes(&entries[i])
		if bytes > proposalBytesMax && i > 0 {
			return entries[:i:i]
		}
	}
	return entries
}

// sendEntries sends one message with proposals; entries follow what was sent before.
func (n *Node) sendEntries(p *peer, entries []Entry) {
	last := entries[len(entries)-1].Zxid
	committed := min(n.committed, last)
	if n.planted(PlantCommitAhead) {
		committed = last
	}
	kind := MessageProposal
	if !p.voter && p.stage == stageUpToDate {
		kind = MessageInform
	}
	n.send(Message{Kind: kind, To: p.id, Conn: p.conn, Zxid: p.sent, Entries: entries, Committed: committed})
	f := flight{last: last, sentMs: n.nowMs}
	for i := range entries {
		f.bytes += entryBytes(&entries[i])
	}
	p.sent, p.committed = last, max(p.committed, committed)
	p.inflight, p.bytes = append(p.inflight, f), p.bytes+f.bytes
}

// tellCommit sends COMMIT, unless a proposal has told it already.
func (n *Node) tellCommit(p *peer) {
	z := min(n.committed, p.sent)
	if z <= p.committed || p.stage < stageSyncing || p.header {
		return
	}
	p.committed = z
	n.send(Message{Kind: MessageCommit, To: p.id, Conn: p.conn, Zxid: z})
}
