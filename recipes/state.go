package recipes

import (
	"context"
	"fmt"
	"sync"
)

// State is how a client stands with the ensemble. The states and their order are those of Curator.
type State int

const (
	// Connecting is before the first session.
	Connecting State = iota
	// Connected is the first session.
	Connected
	// Suspended is a connection that broke. The session may live on; nothing that depends on it should be started.
	Suspended
	// Reconnected follows Suspended with the same session, or Lost with a new one.
	Reconnected
	// Lost is a session that is over, or of which nobody here can say any more that it is not.
	Lost
)

// String returns the name of the state.
func (s State) String() string {
	names := [...]string{"Connecting", "Connected", "Suspended", "Reconnected", "Lost"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return names[s]
}

// IsConnected tells whether requests are answered in this state.
func (s State) IsConnected() bool { return s == Connected || s == Reconnected }

// State returns the present state.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.state
}

// States returns every change of the state from now on, in order. None is dropped, however slowly they are taken. The
// channel is closed when ctx ends or the client is closed.
func (c *Client) States(ctx context.Context) <-chan State {
	l := &listener{wake: make(chan struct{}, 1)}
	out := make(chan State)
	c.mu.Lock()
	c.mu.listeners[l] = struct{}{}
	c.mu.Unlock()
	begun := c.goBackground(func() {
		defer close(out)
		defer c.forget(l)
		l.forward(ctx, c.closed, out)
	})
	if !begun {
		c.forget(l)
		close(out)
	}
	return out
}

func (c *Client) forget(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.listeners, l)
}

// setStateLocked makes a change known.
func (c *Client) setStateLocked(s State) {
	if c.mu.state == s {
		return
	}
	c.mu.state = s
	for l := range c.mu.listeners {
		l.add(s)
	}
	close(c.mu.changed)
	c.mu.changed = make(chan struct{})
}

// listener is a queue of states for one receiver.
type listener struct {
	wake chan struct{} // holds a token while there is something new
	mu   struct {
		sync.Mutex
		queue []State
	}
}

func (l *listener) add(s State) {
	l.mu.Lock()
	l.mu.queue = append(l.mu.queue, s)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *listener) take() []State {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.mu.queue
	l.mu.queue = nil
	return queue
}

func (l *listener) forward(ctx context.Context, closed <-chan struct{}, out chan<- State) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-closed:
			return
		case <-l.wake:
		}
		for _, s := range l.take() {
			select {
			case <-ctx.Done():
				return
			case <-closed:
				return
			case out <- s:
			}
		}
	}
}
