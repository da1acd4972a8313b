package replica

import (
	"zabra/internal/histogram"
	"zabra/wire"
	"zabra/znode"
)

// Meter sums up what a replica does. Its series are read from any goroutine; a request adds to two or three of them.
type Meter struct {
	// Read and Update are how long requests took, receipt to reply, in milliseconds: those that change something, and all
	// others.
	Read, Update histogram.Striped
	// Propagation is the time from the making of a transaction, by the clock of the server that made it, until it was applied
	// here; QuorumAck is the same on the leader of an ensemble, which applies what a quorum has. Milliseconds.
	Propagation, QuorumAck histogram.Histogram
	// Prepare is how long writes waited from their receipt until a transaction was made of them, InLine how long reads and
	// syncs did that were behind something of their connection, Commit how long writes did until they were committed. Milliseconds.
	Prepare, InLine, Commit histogram.Histogram
	// Arrivals are the requests that a step found.
	Arrivals histogram.Histogram
	// Namespaces are the parts of the tree.
	Namespaces Namespaces
}

// Meter returns the meter, which is the same for the life of the replica.
func (r *Replica) Meter() *Meter { return &r.meter }

// reset begins a new period (srst).
func (m *Meter) reset() {
	m.Read.Reset()
	m.Update.Reset()
	for _, h := range []*histogram.Histogram{&m.Propagation, &m.QuorumAck, &m.Prepare, &m.InLine, &m.Commit, &m.Arrivals} {
		h.Reset()
	}
	for _, n := range m.Namespaces.List() {
		n.Read.Reset()
		n.Write.Reset()
	}
}

// replied notes how long a request took.
func (m *Meter) replied(op wire.Op, stripe uint32, ms int64) {
	if op.Info().Class == wire.ClassWrite {
		m.Update.Add(stripe, ms)
		return
	}
	m.Read.Add(stripe, ms)
}

// noteApplied measures how old a transaction is that is applied while clients are served. The clocks of two servers may
// differ: what seems to come from the future is left out.
func (r *Replica) noteApplied(h *znode.TxnHeader) {
	r.counters.applied.Add(1)
	if r.term.leading {
		r.counters.commits.Add(1)
	}
	ms := r.now.WallMs - h.Time
	if ms < 0 || !r.term.serving {
		return
	}
	r.meter.Propagation.Add(ms)
	if r.term.leading && r.cfg.Ensemble != nil {
		r.meter.QuorumAck.Add(ms)
	}
}

// noteArrivals measures how many requests the step has found.
func (r *Replica) noteArrivals() {
	if r.arrived > 0 {
		r.meter.Arrivals.Add(int64(r.arrived))
		r.arrived = 0
	}
}

// noteWrites counts what an applied transaction has written.
func (r *Replica) noteWrites(t *znode.Txn) {
	switch t.Type {
	case wire.OpMulti:
		for i := range t.Multi {
			r.noteWrites(&t.Multi[i])
		}
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpSetData, wire.OpDelete, wire.OpDeleteContainer:
		if n := r.meter.Namespaces.of(t.Path, &r.lastWritten); n != nil {
			n.Write.Add(int64(len(t.Path) + len(t.Data)))
		}
	}
}

// noteRead counts what a read has found at a path. The outbox is locked.
func (rd *reader) noteRead(path []byte, bytes int) {
	rd.r.meter.noteRead(path, bytes, &rd.c.out.lastRead)
}

func (m *Meter) noteRead(path []byte, bytes int, last **Namespace) {
	if n := m.Namespaces.of(path, last); n != nil {
		n.Read.Add(int64(len(path) + bytes + readStatBytes))
	}
}

// countOverQuota counts a write that a quota refuses.
func (r *Replica) countOverQuota(path []byte) {
	if n := r.meter.Namespaces.of(path, &r.lastWritten); n != nil {
		n.QuotaExceeded.Add(1)
	}
}
