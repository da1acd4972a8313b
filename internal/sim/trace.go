package sim

import (
	"fmt"
	"io"
	"strings"

	"zabra/zab"
	"zabra/zab/zxid"
)

// traceRecord is one thing that happened. It is kept as it is and rendered only when somebody wants to read it.
type traceRecord struct {
	at     Micros
	who    zxid.ServerID // 0: the world or a client
	what   string
	a, b   int64
	msg    *zab.Message
	detail string
}

// trace is what happened in a world: always as a digest, and as records if it is to be read.
type trace struct {
	digest  uint64
	keep    bool
	records []traceRecord
}

const fnvPrime = 1099511628211

func (t *trace) mix(v uint64) {
	t.digest = (t.digest ^ v) * fnvPrime
	t.digest ^= t.digest >> 29
}

func (t *trace) mixText(s string) {
	for i := 0; i < len(s); i++ {
		t.digest = (t.digest ^ uint64(s[i])) * fnvPrime
	}
}

// note records something with two numbers.
func (w *world) note(who zxid.ServerID, what string, a, b int64) {
	t := &w.trace
	t.mix(uint64(w.queue.now)<<8 ^ uint64(who))
	t.mixText(what)
	t.mix(uint64(a))
	t.mix(uint64(b))
	if t.keep {
		t.records = append(t.records, traceRecord{at: w.queue.now, who: who, what: what, a: a, b: b})
	}
}

// noteText records something that only text can tell. It is for rare events.
func (w *world) noteText(who zxid.ServerID, what, format string, args ...any) {
	w.note(who, what, 0, 0)
	detail := fmt.Sprintf(format, args...)
	w.trace.mixText(detail)
	if w.trace.keep {
		w.trace.records[len(w.trace.records)-1].detail = detail
	}
}

// comment explains the record before, for readers only.
func (w *world) comment(what, format string, args ...any) {
	if w.trace.keep {
		w.trace.records = append(w.trace.records, traceRecord{at: w.queue.now, what: what, detail: fmt.Sprintf(format, args...)})
	}
}

// noteMessage records a message between servers, as it is sent or as it comes in.
func (w *world) noteMessage(who zxid.ServerID, what string, peer zxid.ServerID, m *zab.Message) {
	t := &w.trace
	w.note(who, what, int64(peer), int64(m.Kind))
	t.mix(uint64(m.Zxid)<<16 ^ uint64(m.Epoch))
	t.mix(m.ID<<20 ^ uint64(len(m.Entries)))
	t.mix(uint64(m.Vote.Zxid)<<8 ^ uint64(m.Vote.Leader))
	if t.keep {
		t.records[len(t.records)-1].msg = m
	}
}

// render writes the trace, or its end if it is longer than last records.
func (t *trace) render(out io.Writer, last int) {
	records := t.records
	if skip := len(records) - last; last > 0 && skip > 0 {
		fmt.Fprintf(out, "... %d records before\n", skip)
		records = records[skip:]
	}
	for i := range records {
		fmt.Fprintln(out, records[i].String())
	}
}

// String renders one line of a trace.
func (r *traceRecord) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%10.6f ", float64(r.at)/float64(second))
	if r.who == 0 {
		b.WriteString("-- ")
	} else {
		fmt.Fprintf(&b, "s%d ", r.who)
	}
	b.WriteString(r.what)
	switch {
	case r.msg != nil:
		fmt.Fprintf(&b, " s%d %s", r.a, describe(r.msg))
	case r.detail != "":
		b.WriteString(" " + r.detail)
	case r.a != 0 || r.b != 0:
		fmt.Fprintf(&b, " %#x %#x", uint64(r.a), uint64(r.b))
	}
	return b.String()
}

// describe renders the fields of a message that count for its kind.
func describe(m *zab.Message) string {
	var b strings.Builder
	b.WriteString(m.Kind.String())
	if m.Conn != 0 {
		fmt.Fprintf(&b, " conn %d", m.Conn)
	}
	switch m.Kind {
	case zab.MessageNotification:
		fmt.Fprintf(&b, " round %d %v for s%d (epoch %d, %v)", m.Round, m.Role, m.Vote.Leader, m.Vote.Epoch, m.Vote.Zxid)
	case zab.MessageProposal, zab.MessageInform:
		fmt.Fprintf(&b, " after %v: %d", m.Zxid, len(m.Entries))
		if n := len(m.Entries); n > 0 {
			fmt.Fprintf(&b, " (%v to %v)", m.Entries[0].Zxid, m.Entries[n-1].Zxid)
		}
		fmt.Fprintf(&b, " committed %v", m.Committed)
	case zab.MessageSnap:
		fmt.Fprintf(&b, " %s from %d", m.Snapshot.Name, m.SnapshotOffset)
	case zab.MessagePing, zab.MessagePong, zab.MessageSync:
		fmt.Fprintf(&b, " %d", m.ID)
	case zab.MessageRequest:
		for _, q := range m.Requests {
			fmt.Fprintf(&b, " session %v cxid %d op %d", q.Session, q.Cxid, q.Op)
		}
	case zab.MessageRevalidate, zab.MessageRevalidated, zab.MessageSynced, zab.MessageRefused:
		fmt.Fprintf(&b, " id %d session %v valid %t code %d %v", m.ID, m.Session, m.Valid, m.Code, m.Zxid)
	default:
		fmt.Fprintf(&b, " epoch %d %v", m.Epoch, m.Zxid)
		if m.NoVote {
			b.WriteString(" no vote")
		}
	}
	return b.String()
}
