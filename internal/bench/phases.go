package bench

import "zabra/wire"

// opener establishes all sessions of a thread, some at a time.
type opener struct {
	base
	begun, there int
}

func (w *opener) turn() (int64, error) {
	for w.begun < len(w.sessions) && w.begun-w.there < openingMax {
		w.begun++
		if err := w.connect(w.sessions[w.begun-1]); err != nil {
			return 0, err
		}
	}
	return never, nil
}

func (w *opener) ready(*session) error {
	w.there++
	return nil
}

func (w *opener) done() bool { return w.there == len(w.sessions) || w.run.stopping() }

// closer ends all sessions, and takes what comes.
type closer struct {
	base
	started bool
}

func (w *closer) turn() (int64, error) {
	if w.started {
		return never, nil
	}
	w.started = true
	for _, s := range w.sessions {
		if s.state != stateReady {
			w.drop(s)
			continue
		}
		if err := w.request(s, wire.OpCloseSession, nil); err != nil {
			return 0, err
		}
	}
	return never, nil
}

func (w *closer) replied(s *session, _ *stamp, _ wire.Code, _ []byte) error {
	if s.flying == 0 {
		w.drop(s)
	}
	return nil
}

func (w *closer) lost(*session, int, error) error { return nil }

func (w *closer) done() bool { return w.started && w.open == 0 }
