package bench

import "zabra/wire"

// connects is the work of clients that come and go: each session is closed as soon as it is there.
type connects struct {
	base
	started bool
}

func (w *connects) turn() (int64, error) {
	if !w.started {
		w.started = true
		for _, s := range w.sessions {
			if err := w.begin(s); err != nil {
				return 0, err
			}
		}
	}
	return w.recorder.until, nil
}

// begin asks for a new session on a new connection.
func (w *connects) begin(s *session) error {
	s.id, s.password, s.zxid = 0, nil, 0
	s.opened = w.clock()
	return w.connect(s)
}

func (w *connects) ready(s *session) error { return w.request(s, wire.OpCloseSession, nil) }

func (w *connects) replied(s *session, _ *stamp, code wire.Code, _ []byte) error {
	w.drop(s)
	w.operation(w.now-s.opened, code)
	if w.stopped() {
		return nil
	}
	return w.begin(s)
}

func (w *connects) done() bool { return w.started && w.open == 0 && w.stopped() }

// idle is the work of sessions that do nothing but show that they are alive. What is measured is the answers to that.
type idle struct{ base }

func (w *idle) turn() (int64, error) { return w.recorder.until, nil }

func (w *idle) ponged(_ *session, at int64) error {
	w.operation(w.now-at, wire.CodeOK)
	return nil
}

func (w *idle) done() bool { return w.stopped() }
