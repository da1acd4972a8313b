package recipes

import (
	"context"
	"sync"
	"time"
)

// Session is a session as far as it can be relied on. When its lease has run out it is over for good, even if the
// connection returns before the ensemble has ended it: then the client goes on with another Session of the same ID.
type Session struct {
	id      int64
	lease   *lease // nil when the connection was made by somebody else
	timeout time.Duration
	done    chan struct{}
	once    sync.Once
}

// ID is what the ensemble calls the session; the ephemeral owner of its nodes. 0 before there is one.
func (s *Session) ID() int64 { return s.id }

// Done is closed when the session is expired or closed, or when its lease has run out: whatever comes first.
func (s *Session) Done() <-chan struct{} { return s.done }

// Over tells whether the session is done, or has to be by now. It is sharper than Done, which a busy machine may close
// some moments late.
func (s *Session) Over() bool {
	select {
	case <-s.done:
		return true
	default:
		return s.lease != nil && !time.Now().Before(s.lease.until())
	}
}

// Timeout is the negotiated one. If that cannot be known, it is what was asked for.
func (s *Session) Timeout() time.Duration {
	if s.lease != nil {
		return s.lease.timeout()
	}
	return s.timeout
}

// Remaining is how long the ensemble must keep the session at least, 0 if that has passed. Without a known lease it is 0
// when the session is done, and otherwise the third of the timeout that package zk leaves after it gives up a connection.
func (s *Session) Remaining() time.Duration {
	switch {
	case s.Over():
		return 0
	case s.lease == nil:
		return s.timeout / 3
	}
	return max(time.Until(s.lease.until()), 0)
}

// during returns a context that ends with the session, too, for the reason ErrSessionLost.
func (s *Session) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.done:
			cancel(ErrSessionLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (s *Session) end() { s.once.Do(func() { close(s.done) }) }

// Session returns the present one. It may be done already.
func (c *Client) Session() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.session
}

// AwaitSession returns a session that is not done, as soon as the client is connected. It fails when ctx ends or the client
// is closed.
func (c *Client) AwaitSession(ctx context.Context) (*Session, error) {
	for {
		c.mu.Lock()
		state, session, changed := c.mu.state, c.mu.session, c.mu.changed
		c.mu.Unlock()
		if state.IsConnected() && !session.Over() {
			return session, nil
		}
		select {
		case <-changed:
		case <-session.soon():
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-c.closed:
			return nil, ErrClosed
		}
	}
}

// soon is done, but never for a session that is over already: there is nothing to wait for in it.
func (s *Session) soon() <-chan struct{} {
	if s.Over() {
		return nil
	}
	return s.done
}

// watchLease ends the session when its lease runs out. Replies extend the lease without telling, so the timer looks again.
func (c *Client) watchLease(s *Session) {
	timer := time.NewTimer(time.Until(s.lease.until()))
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-c.closed:
			return
		case <-timer.C:
		}
		left := time.Until(s.lease.until())
		if left <= 0 {
			c.outlive(s)
			return
		}
		timer.Reset(left)
	}
}

// outlive goes on without a session whose lease has run out. If its connection still stands, after this process was stopped
// for a while, a new one has to ask the ensemble what has become of the session.
func (c *Client) outlive(s *Session) {
	c.lose(s)
	c.mu.Lock()
	socket := c.mu.socket
	c.mu.Unlock()
	socket.Close()
}
