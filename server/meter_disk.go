package server

import (
	"time"

	"zabra/internal/histogram"
	"zabra/wire"
	"zabra/zab"
	"zabra/znode"
)

// logMeter measures how transactions get into the log. All times are in milliseconds.
type logMeter struct {
	// waiting is how many transactions the disk goroutine found when it was free again, waited how long the oldest of them
	// had waited.
	waiting, waited histogram.Histogram
	// append is the time to append what was found, flushed to make it durable, whole is waited and both.
	append, flushed, whole histogram.Histogram

	// The disk goroutine's: when what it is about began to wait, and when it was taken. Zero once that is measured.
	since, taken time.Time
}

func (m *logMeter) reset() {
	for _, h := range []*histogram.Histogram{&m.waiting, &m.waited, &m.append, &m.flushed, &m.whole} {
		h.Reset()
	}
}

// took notes what the disk goroutine has taken from its queue.
func (m *logMeter) took(ops []zab.PersistOp, since time.Time) {
	entries := 0
	for i := range ops {
		entries += len(ops[i].Entries)
	}
	m.since, m.taken = time.Time{}, time.Time{}
	if entries > 0 {
		m.waiting.Add(int64(entries))
		m.since, m.taken = since, time.Now()
	}
}

// synced notes a sync that began at a time and took so long. Of what was taken together only the first has waited just for
// the disk.
func (m *logMeter) synced(began time.Time, took time.Duration) {
	m.flushed.Add(took.Milliseconds())
	if m.taken.IsZero() {
		return
	}
	m.waited.Add(m.taken.Sub(m.since).Milliseconds())
	m.append.Add(began.Sub(m.taken).Milliseconds())
	m.whole.Add(began.Add(took).Sub(m.since).Milliseconds())
	m.taken = time.Time{}
}

// durable measures how old the transactions of operations are that have just become durable on a member of an ensemble: on
// the leader that is its own acknowledgement, on others the one that they are about to send.
func (m *member) durable(ops []zab.PersistOp) {
	st := m.status.Load()
	if !st.Serving {
		return
	}
	series := &m.meter.ackCreation
	if st.Role == zab.RoleLeading {
		series = &m.meter.learner(m.id).ackMs
	}
	nowMs := time.Now().UnixMilli()
	for i := range ops {
		for _, e := range ops[i].Entries {
			addAge(series, nowMs, e.Payload)
		}
	}
}

// addAge adds the age of a transaction. One from the future is left out: the clocks of two servers differ.
func addAge(h *histogram.Histogram, wallMs int64, payload []byte) {
	if ms := wallMs - znode.TxnTime(payload); ms >= 0 {
		h.Add(ms)
	}
}

// firedMeter measures how many watchers events go to.
type firedMeter struct{ created, deleted, changed, children histogram.Histogram }

func (m *firedMeter) reset() {
	for _, h := range []*histogram.Histogram{&m.created, &m.deleted, &m.changed, &m.children} {
		h.Reset()
	}
}

// note is znode's Config.Fired.
func (m *firedMeter) note(typ wire.EventType, watchers int) {
	n := int64(watchers)
	switch typ {
	case wire.EventNodeCreated:
		m.created.Add(n)
	case wire.EventNodeDeleted:
		m.deleted.Add(n)
	case wire.EventNodeDataChanged:
		m.changed.Add(n)
	case wire.EventNodeChildrenChanged:
		m.children.Add(n)
	}
}
