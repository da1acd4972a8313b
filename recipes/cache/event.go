package cache

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Entry is one node as it was at one time. It never changes: a newer version is another Entry.
type Entry struct {
	// Path lies below the client's namespace.
	Path string
	// Stat belongs to the data: its czxid, mzxid and version are exact. What tells about children and the ACL may be older.
	Stat zk.Stat
	data string
}

// Data returns a copy of the node's data, the caller's own.
func (e Entry) Data() []byte { return []byte(e.data) }

// Text returns the node's data as a string, without a copy.
func (e Entry) Text() string { return e.data }

// Kind is what happened.
type Kind int

const (
	// Added: a node is there that was not, or was another one (with another czxid).
	Added Kind = iota + 1
	// Changed: a node has new data. A write of the same data counts.
	Changed
	// Removed: a node is gone. The event has what was known of it last.
	Removed
	// Initialized: the first fill is complete. It comes once.
	Initialized
	// Suspended: the connection is gone. The contents stay and grow older.
	Suspended
	// Reconnected: the connection is back. Everything is being read again; what has changed in between will follow.
	Reconnected
	// Lost: the session is gone. The contents stay and grow older, and Reconnected comes when there is a new session.
	Lost
	// Faulted: the server refuses to show a node, and Err says why; Entry has its path and what was known of it last. It is
	// tried again from time to time.
	Faulted
	// Stopped is the last event of a stream that ended for a reason, which is Err: ErrTooLarge or ErrEventsOverflow.
	Stopped
)

var kindNames = [...]string{"", "Added", "Changed", "Removed", "Initialized", "Suspended", "Reconnected", "Lost", "Faulted", "Stopped"}

func (k Kind) String() string {
	if k < Added || k > Stopped {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Event is one thing that happened to the contents or the connection.
type Event struct {
	Kind Kind
	// Entry is the node that was Added, the new version of what has Changed, or the last known one of what was Removed.
	Entry Entry
	// Old is the version before, if Changed.
	Old Entry
	// Err is why, if Faulted or Stopped.
	Err error
}

// subscription is what one reader of events has yet to get. The mirror's mutex guards it.
type subscription struct {
	queue   []Event
	waiting int           // events of these and of those being handed over, without the first contents
	max     int           // of them
	over    bool          // nothing will be added
	wake    chan struct{} // has something when queue or over has changed
}

// push adds an event, or ends the stream when the reader is too far behind.
func (s *subscription) push(e Event) {
	if s.over {
		return
	}
	if s.waiting++; s.waiting > s.max {
		e, s.over = Event{Kind: Stopped, Err: ErrEventsOverflow}, true
	}
	s.queue = append(s.queue, e)
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Events returns what happens from now on, in order. It begins with the present contents as Added events, and Initialized
// if the first fill is complete, so that the stream alone gives the contents at each moment. The channel is closed when
// ctx ends, when the cache or its client is closed, and after Stopped. Each call makes a stream of its own.
func (m *mirror) Events(ctx context.Context) <-chan Event {
	out := make(chan Event)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
		close(out)
		return out
	}
	s := &subscription{max: m.options.EventsMax, wake: make(chan struct{}, 1)}
	m.replay(m.root, s)
	if m.filled {
		s.queue = append(s.queue, Event{Kind: Initialized})
	}
	m.subscriptions[s] = true
	if m.err != nil {
		m.end(s)
	}
	s.signal()
	m.running.Go(func() { m.deliver(ctx, s, out) })
	return out
}

// replay queues the present contents, parents first. They do not count against the reader's bound: it had no chance yet.
func (m *mirror) replay(n *node, s *subscription) {
	if n.present && !n.silent {
		s.queue = append(s.queue, Event{Kind: Added, Entry: n.entry})
	}
	for _, kid := range n.sortedKids() {
		m.replay(kid, s)
	}
}

// end queues the last event of a stream.
func (m *mirror) end(s *subscription) {
	if !s.over {
		s.queue, s.over = append(s.queue, Event{Kind: Stopped, Err: m.err}), true
		s.signal()
	}
}

func (m *mirror) deliver(ctx context.Context, s *subscription, out chan<- Event) {
	defer close(out)
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.subscriptions, s)
	}()
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		case <-m.life.Done():
			return
		}
		for batch, over := m.take(s); len(batch) > 0 || over; batch, over = m.take(s) {
			if !m.send(ctx, batch, out) || over {
				return
			}
			m.mu.Lock()
			s.waiting = len(s.queue)
			m.mu.Unlock()
		}
	}
}

// take returns what waits, and whether that was the last.
func (m *mirror) take(s *subscription) ([]Event, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	batch := s.queue
	s.queue = nil
	return batch, s.over
}

func (m *mirror) send(ctx context.Context, batch []Event, out chan<- Event) bool {
	for _, e := range batch {
		select {
		case out <- e:
		case <-ctx.Done():
			return false
		case <-m.life.Done():
			return false
		}
	}
	return true
}

// emit tells every reader. The mutex is held.
func (m *mirror) emit(e Event) {
	for s := range m.subscriptions {
		s.push(e)
	}
}
