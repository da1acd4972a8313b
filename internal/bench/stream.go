package bench

import (
	"errors"
	"sync/atomic"

	"zabra/wire"
)

// budget is how many requests a run may still make, shared by its threads.
type budget struct {
	next  atomic.Int64
	total int64
}

// take returns how many of n requests may be made, and the ordinal of the first.
func (b *budget) take(n int) (first int64, got int) {
	if b.spent() {
		return 0, 0
	}
	end := b.next.Add(int64(n))
	first = end - int64(n)
	return first, int(max(0, min(int64(n), b.total-first)))
}

func (b *budget) spent() bool { return b.next.Load() >= b.total }

// stream is the work that consists of requests and replies only. Each session keeps its requests outstanding.
type stream struct {
	*thread
	make    maker
	budget  *budget
	stopAt  int64 // when no more requests are made
	started bool
}

func (w *stream) turn() (next int64, err error) {
	if !w.started {
		w.started = true
		for _, s := range w.sessions {
			if err := w.refill(s); err != nil {
				return 0, err
			}
		}
	}
	return w.stopAt, nil
}

// stopped tells whether no more requests are to be made.
func (w *stream) stopped() bool {
	return w.now >= w.stopAt || w.run.stopping() || w.budget.spent()
}

func (w *stream) done() bool { return w.started && w.flying == 0 && w.stopped() }

func (w *stream) settled(s *session) error { return w.refill(s) }

// refill makes as many requests as may be outstanding. A session whose socket is full waits until it is not.
func (w *stream) refill(s *session) error {
	for s.flying < w.run.Outstanding && len(s.pending) == 0 && w.now < w.stopAt && !w.run.stopping() {
		ordinal, n := w.budget.take(min(w.run.Outstanding-s.flying, w.run.perWrite))
		if n == 0 {
			return nil
		}
		b := w.out[:0]
		for range n {
			b = w.make(b, s, w.now, ordinal)
			ordinal++
		}
		w.out = b
		if err := w.send(s, b); err != nil {
			return err
		}
	}
	return nil
}

func (w *stream) replied(_ *session, sent *stamp, code wire.Code, _ []byte) error {
	if w.recorder.counts(w.now) {
		w.recorder.reply(w.now, sent, code)
	}
	return nil
}

// reply counts the answer to a request.
func (r *recorder) reply(now int64, sent *stamp, code wire.Code) {
	if code == wire.CodeOK {
		r.success(now, now-sent.at, sent.write)
	} else {
		r.failure(now, code, 1)
	}
}

func (w *stream) ready(*session) error                  { return nil }
func (w *stream) ponged(*session, int64) error          { return nil }
func (w *stream) event(*session, []byte) error          { return nil }
func (w *stream) lost(_ *session, _ int, e error) error { return e }

// paced is a stream whose requests are due at fixed times, whatever the servers do: an open loop. A request that finds no
// session with room for it waits. A session that loses its connection goes on with the next server.
type paced struct {
	stream
	start    int64   // when the first request is due
	interval float64 // from one to the next
	total    int64   // how many there are
	made     int64
	cursor   int // the session whose turn it is
	closed   int // sessions that are without a connection
}

// due is the time of the request with that number.
func (w *paced) due(i int64) int64 { return w.start + int64(float64(i)*w.interval) }

func (w *paced) done() bool {
	return w.flying == 0 && (w.made >= w.total || w.run.stopping())
}

func (w *paced) settled(*session) error { return nil } // the next turn is at once

func (w *paced) turn() (next int64, err error) {
	next = never
	if w.closed > 0 {
		next = w.now + int64(retryPause)
		if err := w.reconnect(); err != nil {
			return 0, err
		}
	}
	w.now = w.clock()
	for tried := 0; tried < len(w.sessions); tried++ {
		due := w.backlog()
		if due == 0 || w.run.stopping() {
			break
		}
		s := w.sessions[w.cursor]
		w.cursor = (w.cursor + 1) % len(w.sessions)
		room := w.run.Outstanding - s.flying
		if s.state != stateReady || room <= 0 || len(s.pending) > 0 {
			continue
		}
		tried = -1
		// What has piled up is dealt out, so that each session writes once.
		if err := w.give(s, min(room, w.run.perWrite, max(1, due/len(w.sessions)))); err != nil {
			return 0, err
		}
	}
	if w.made < w.total && w.backlog() == 0 {
		next = min(next, w.due(w.made))
	}
	return next, nil
}

// backlog is how many requests are due.
func (w *paced) backlog() int {
	if w.now < w.start {
		return 0
	}
	n := min(w.total, int64(float64(w.now-w.start)/w.interval)+1) - w.made
	return int(max(0, n))
}

// give makes requests on a session.
func (w *paced) give(s *session, n int) error {
	b := w.out[:0]
	for range n {
		b = w.make(b, s, w.due(w.made), w.made)
		w.made++
	}
	w.out = b
	return w.send(s, b)
}

func (w *paced) replied(_ *session, sent *stamp, code wire.Code, _ []byte) error {
	if w.recorder.counts(sent.at) {
		w.recorder.reply(w.now, sent, code)
	}
	return nil
}

// lost counts what nobody will answer any more, and lets the session try the next server.
func (w *paced) lost(s *session, outstanding int, cause error) error {
	if errors.Is(cause, wire.CodeSessionExpired) && w.recorder.counts(w.now) {
		w.recorder.failure(w.now, wire.CodeSessionExpired, 1)
	}
	for xid := s.want; outstanding > 0; outstanding-- {
		if w.recorder.counts(s.sent[int(xid)&(len(s.sent)-1)].at) {
			w.recorder.failure(w.now, wire.CodeConnectionLoss, 1)
		}
		xid = nextXid(xid)
	}
	s.server = (s.server + 1) % len(w.run.Servers)
	s.retry = w.now + int64(retryPause)
	w.closed++
	return nil
}

// reconnect begins to connect the sessions whose pause is over.
func (w *paced) reconnect() error {
	for _, s := range w.sessions {
		if s.state != stateClosed || s.retry > w.now {
			continue
		}
		w.closed--
		if err := w.connect(s); err != nil {
			return err
		}
	}
	return nil
}
