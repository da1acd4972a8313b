package zabtest

import (
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// Event is something that is about to happen.
type Event struct {
	From, To zxid.ServerID
	// Message arrives, Op reaches the disk of To, or neither: then What says what it is.
	Message *zab.Message
	Op      *zab.PersistOp
	What    string

	seq   uint64
	ready func() bool // nil: at once
	do    func()
}

type laneKind uint8

const (
	laneNotes   laneKind = iota // notifications from one server to another
	laneDisk                    // operations of a disk
	laneConfirm                 // confirmations of a disk
	laneReady                   // a Ready that was not taken yet
	laneHistory                 // answers to requests for history
	laneDial                    // attempts to connect
	laneStream                  // one direction of a connection
)

// lane holds events that happen in order. Lanes know no order among each other.
type lane struct {
	kind     laneKind
	from, to *Server
	conn     *Conn // of streams
	events   []Event
}

// enqueue puts an event into its lane.
func (w *World) enqueue(kind laneKind, from, to *Server, c *Conn, e Event) {
	w.seq++
	e.seq, e.From, e.To = w.seq, from.ID, to.ID
	for _, l := range w.lanes {
		if l.kind == kind && l.from == from && l.to == to && l.conn == c {
			l.events = append(l.events, e)
			return
		}
	}
	w.lanes = append(w.lanes, &lane{kind: kind, from: from, to: to, conn: c, events: []Event{e}})
}

func (w *World) dropLanes(which func(*lane) bool) {
	for _, l := range w.lanes {
		if which(l) {
			for _, e := range l.events {
				if e.Message != nil {
					w.write("%s  (lost)", renderMessage(e.Message))
				}
			}
			l.events = nil
		}
	}
	w.lanes = slices.DeleteFunc(w.lanes, func(l *lane) bool { return len(l.events) == 0 })
}

// heads are the lanes whose first event can happen now.
func (w *World) heads() (heads []*lane) {
	for _, l := range w.lanes {
		e := &l.events[0]
		if l.kind == laneDisk && l.to.Disk.Hung || w.mute(l) || e.ready != nil && !e.ready() || w.Hold != nil && w.Hold(*e) {
			continue
		}
		heads = append(heads, l)
	}
	return heads
}

// next is the lane whose event is the next one: the oldest, or any if the World draws.
func (w *World) next() *lane {
	heads := w.heads()
	if len(heads) == 0 {
		return nil
	}
	if w.rng != nil {
		return heads[w.rng.IntN(len(heads))]
	}
	return slices.MinFunc(heads, func(a, b *lane) int { return int(int64(a.events[0].seq) - int64(b.events[0].seq)) })
}

// take lets the first event of a lane happen.
func (w *World) take(l *lane) {
	e := l.events[0]
	if l.events = l.events[1:]; len(l.events) == 0 {
		w.lanes = slices.DeleteFunc(w.lanes, func(o *lane) bool { return o == l })
	}
	if e.Message != nil {
		w.write("%s", renderMessage(e.Message))
	}
	e.do()
}

// Act lets one thing happen; false if nothing can without the clock going on.
func (w *World) Act() bool {
	l := w.next()
	if l == nil || w.err != nil {
		return false
	}
	w.take(l)
	return true
}

// Settle lets everything happen that can without the clock going on.
func (w *World) Settle() { w.settle(func(Event) bool { return false }) }

// settle stops before the first event for which stop is true, and reports whether there was one.
func (w *World) settle(stop func(Event) bool) bool {
	for range eventsMax {
		l := w.next()
		if l == nil || w.err != nil {
			return false
		}
		if stop(l.events[0]) {
			return true
		}
		w.take(l)
	}
	w.failf("no end of events: the next one is %+v", w.next().events[0])
	return false
}

// Pass lets time pass, and everything happen in it.
func (w *World) Pass(ms int64) {
	w.Settle()
	for end := w.NowMs + ms; w.NowMs < end && w.err == nil; w.Settle() {
		w.wake(end)
	}
}

// wake moves the clock to the time at which the first server wants to be woken, at most to end.
func (w *World) wake(end int64) {
	at := end
	for _, s := range w.Servers {
		if !s.Up {
			continue
		}
		if t := s.Node.WakeAtMs(); t > 0 {
			at = min(at, max(t, w.NowMs+1))
		}
	}
	w.Tick(at - w.NowMs)
}

// Until lets things happen and time pass until cond holds. It fails if that is never.
func (w *World) Until(what string, cond func() bool) {
	w.until(what, func(Event) bool { return cond() }, cond)
}

// Before lets things happen and time pass until an event is the next one for which match is true.
func (w *World) Before(what string, match func(Event) bool) {
	w.until(what, match, func() bool { l := w.next(); return l != nil && match(l.events[0]) })
}

func (w *World) until(what string, stop func(Event) bool, cond func() bool) {
	for end := w.NowMs + waitMsMax; !cond() && w.err == nil; {
		if w.settle(stop) || cond() {
			return
		}
		if w.NowMs >= end {
			w.failf("it never comes to this: %s", what)
			return
		}
		w.wake(end)
	}
}
