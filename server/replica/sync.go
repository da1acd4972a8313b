package replica

import (
	"zabra/zab"
	"zabra/zab/zxid"
)

// A sync is answered when it is proven that the leader led after the sync came in, and everything that was committed by
// then is applied here. All syncs of one step share one question.

// syncs are the syncs of a term on their way.
type syncs struct {
	// round gathers those of this step; nil if there are none.
	round *syncRound
	// asked are the rounds whose proof is awaited, by the number of the question.
	asked map[uint64]*syncRound
	// proven are the rounds that wait for transactions to be applied, in the order of their proofs.
	proven []provenRound
	// waiting counts the syncs in all rounds.
	waiting int
}

// syncRound is a set of syncs that share one question: of connections here, and of learners.
type syncRound struct {
	here     []syncWaiter
	learners []zab.Message // SYNC
}

// syncWaiter is the request seq of a connection.
type syncWaiter struct {
	c   *Conn
	seq uint64
}

type provenRound struct {
	zxid zxid.Zxid
	here []syncWaiter
}

// gather returns the round of this step for one more sync.
func (r *Replica) gather() *syncRound {
	r.syncs.waiting++
	if r.syncs.round == nil {
		r.syncs.round = &syncRound{}
	}
	return r.syncs.round
}

// askBarrier asks the question of this step's syncs, if there are any.
func (r *Replica) askBarrier() {
	round := r.syncs.round
	if round == nil {
		return
	}
	r.syncs.round = nil
	if r.syncs.asked == nil {
		r.syncs.asked = make(map[uint64]*syncRound)
	}
	id := r.nextID()
	r.syncs.asked[id] = round
	if r.term.leading {
		r.feed(zab.Input{Kind: zab.InputBarrier, ID: id})
		return
	}
	r.send(zab.Message{Kind: zab.MessageSync, To: r.term.leader, ID: id})
}

// proven takes the core's proofs that this server leads.
func (r *Replica) proven(barriers []zab.Barrier) {
	for _, b := range barriers {
		round := r.syncs.asked[b.ID]
		if round == nil {
			continue // of an ended term
		}
		r.syncs.waiting -= len(round.learners)
		for _, m := range round.learners {
			r.send(zab.Message{Kind: zab.MessageSynced, To: m.From, Conn: m.Conn, ID: m.ID, Zxid: b.Zxid})
		}
		r.syncProven(b.ID, b.Zxid)
	}
}

// syncProven notes that a round is proven, and what must be applied before it is answered.
func (r *Replica) syncProven(id uint64, z zxid.Zxid) {
	round := r.syncs.asked[id]
	if round == nil {
		return
	}
	delete(r.syncs.asked, id)
	if len(round.here) > 0 {
		r.syncs.proven = append(r.syncs.proven, provenRound{z, round.here})
	}
}

// releaseSyncs answers the syncs that have waited long enough. Those behind writes in flight wait for their turn.
func (r *Replica) releaseSyncs() {
	applied := r.Tree().LastZxid()
	for len(r.syncs.proven) > 0 && r.syncs.proven[0].zxid <= applied {
		round := r.syncs.proven[0]
		r.syncs.proven = r.syncs.proven[1:]
		r.syncs.waiting -= len(round.here)
		for _, w := range round.here {
			if w.c.closed.Load() {
				continue
			}
			w.c.proven = w.seq
			r.drain(w.c)
		}
	}
	if len(r.syncs.proven) == 0 {
		r.syncs.proven = nil
	}
}
