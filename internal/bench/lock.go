package bench

import (
	"fmt"
	"sync/atomic"

	"zabra/jute"
	"zabra/wire"
)

// lockStep is what a session of the lock line waits for.
type lockStep uint8

const (
	lockCreate  lockStep = iota // its node is being created
	lockList                    // it looks who stands in front
	lockWatch                   // it is setting a watch on the one in front
	lockWait                    // the event of that watch
	lockRelease                 // its node is being removed; the new one's creation is on the way behind
)

// lockState is where a session stands in the line.
type lockState struct {
	step lockStep
	own  string // its node's name
}

// queue is the lock as all threads see it.
type queue struct {
	dir string
	// holder is the index of the session that has the lock, plus 1; 0 while nobody has it.
	holder atomic.Int64
	// released is when the last holder gave it up, 0 before the first.
	released atomic.Int64
}

const lockPrefix = "lock-"

// lockLine measures how a lock goes from hand to hand. Nodes and watches are those of the usual recipe: ephemeral nodes
// with sequence numbers, each watching the one in front.
func (r *run) lockLine() error {
	r.queue = &queue{dir: r.dir()}
	return r.measureFor(func(t *thread) work { return &locks{base: base{t}, queue: r.queue} })
}

type locks struct {
	base
	*queue
	started bool
}

func (w *locks) turn() (int64, error) {
	if !w.started {
		w.started = true
		for _, s := range w.sessions {
			if err := w.send(s, w.create(nil, s)); err != nil {
				return 0, err
			}
		}
	}
	return w.recorder.until, nil
}

func (w *locks) done() bool { return w.stopped() }

// create appends the request for a place at the end of the line.
func (w *locks) create(b []byte, s *session) []byte {
	s.lock.step = lockCreate
	path := []byte(w.dir + "/" + lockPrefix)
	return w.encode(b, s, wire.OpCreate, &wire.CreateRequest{Path: path, ACL: wire.OpenACL, Flags: wire.FlagEphemeralSequential})
}

// list asks who stands in the line.
func (w *locks) list(s *session) error {
	s.lock.step = lockList
	return w.request(s, wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte(w.dir)})
}

func (w *locks) replied(s *session, _ *stamp, code wire.Code, body []byte) error {
	step := s.lock.step
	if step == lockWatch && code == wire.CodeNoNode {
		return w.list(s) // it went between two requests
	}
	if code != wire.CodeOK {
		return fmt.Errorf("lock line, %s: %w", s.lock.own, code)
	}
	d := jute.NewDecoder(body, len(body))
	switch step {
	case lockCreate:
		var reply wire.PathReply
		if reply.Decode(&d); d.Err() != nil || len(reply.Path) <= len(w.dir) {
			return fmt.Errorf("lock line: created %q, %w", reply.Path, d.Err())
		}
		s.lock.own = string(reply.Path[len(w.dir)+1:])
		return w.list(s)
	case lockList:
		var reply wire.ChildrenReply
		if reply.Decode(&d); d.Err() != nil {
			return fmt.Errorf("lock line: %w", d.Err())
		}
		return w.look(s, reply.Children)
	case lockWatch:
		s.lock.step = lockWait
	case lockRelease:
		s.lock.step = lockCreate
	case lockWait:
		return fmt.Errorf("lock line, %s: an answer where an event was due", s.lock.own)
	}
	return nil
}

// look decides what the line means for a session: it holds the lock, or watches the one in front.
func (w *locks) look(s *session, line [][]byte) error {
	front, found := "", false
	for _, name := range line {
		switch {
		case string(name) == s.lock.own:
			found = true
		case string(name) < s.lock.own && string(name) > front:
			front = string(name)
		}
	}
	switch {
	case !found:
		return fmt.Errorf("lock line: %s is not in it any more", s.lock.own)
	case front == "":
		return w.hold(s)
	}
	s.lock.step = lockWatch
	return w.request(s, wire.OpGetData, &wire.PathWatchRequest{Path: []byte(w.dir + "/" + front), Watch: true})
}

func (w *locks) event(s *session, _ []byte) error {
	if s.lock.step != lockWait {
		return nil // of a watch on a node that was gone by then
	}
	return w.list(s)
}

// hold takes the lock, counts that it was handed over, and lets it go. At the end of the run it stays where it is.
func (w *locks) hold(s *session) error {
	if !w.holder.CompareAndSwap(0, int64(s.index)+1) {
		return fmt.Errorf("two sessions hold the lock: %s, and session %d", s.lock.own, w.holder.Load()-1)
	}
	if released := w.released.Load(); released > 0 {
		w.operation(w.now-released, wire.CodeOK)
	}
	if w.stopped() {
		return nil
	}
	b := w.encode(nil, s, wire.OpDelete, &wire.PathVersionRequest{Path: []byte(w.dir + "/" + s.lock.own), Version: -1})
	b = w.create(b, s)
	s.lock.step = lockRelease
	w.released.Store(w.clock())
	w.holder.Store(0)
	return w.send(s, b)
}
