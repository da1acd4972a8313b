package sim

// event is something that happens at a moment, to one server or to the world.
type event struct {
	at  Micros
	seq uint64
	// srv is the server that it happens to, nil for the world. An event of a server that has died since (life differs)
	// does not happen; that of a server that is paused waits until it goes on.
	srv  *server
	life uint32
	run  func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// schedule is a heap of events, ordered by time and then by the order in which they were planned: equal runs give equal
// orders.
type schedule struct {
	now    Micros
	seq    uint64
	events []event
}

func (q *schedule) add(e event) {
	if e.seq == 0 {
		q.seq++
		e.seq = q.seq
	}
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.events[i].before(&q.events[parent]) {
			break
		}
		q.events[i], q.events[parent] = q.events[parent], q.events[i]
		i = parent
	}
}

// next removes and returns the earliest event.
func (q *schedule) next() event {
	first := q.events[0]
	n := len(q.events) - 1
	q.events[0] = q.events[n]
	q.events[n] = event{}
	q.events = q.events[:n]
	i := 0
	for {
		least, left := i, 2*i+1
		for _, child := range [2]int{left, left + 1} {
			if child < n && q.events[child].before(&q.events[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		q.events[i], q.events[least] = q.events[least], q.events[i]
		i = least
	}
}

// after plans something that happens to nobody in particular.
func (w *world) after(d Micros, f func()) { w.queue.add(event{at: w.queue.now + d, run: f}) }

// afterOn plans something that happens to a server, if it is still in the same life then.
func (w *world) afterOn(s *server, d Micros, f func()) {
	w.queue.add(event{at: w.queue.now + d, srv: s, life: s.life, run: f})
}

// runUntil lets events happen up to a moment, or until stop says so.
func (w *world) runUntil(end Micros, stop func() bool) {
	q := &w.queue
	for len(q.events) > 0 && q.events[0].at <= end {
		e := q.next()
		q.now = e.at
		if s := e.srv; s != nil {
			if e.life != s.life {
				continue
			}
			if s.pausedUntil > q.now {
				e.at = s.pausedUntil
				q.add(e) // it keeps its place among the others
				continue
			}
		}
		if w.steps++; w.steps > stepsMax {
			w.fail("E-38", "the world does not come to an end: %d steps", w.steps)
		}
		e.run()
		if stop != nil && stop() {
			return
		}
	}
	q.now = max(q.now, end)
}
