package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

type result[T any] struct {
	value T
	err   error
}

// once makes a call of package zk, which knows no contexts. When ctx ends first, the call goes on in the background and its
// result is dropped.
func once[T any](ctx context.Context, c *Client, do func(*zk.Conn) (T, error)) (T, error) {
	select {
	case r := <-begin(c, do):
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	case <-c.closed:
		var none T
		return none, ErrClosed
	}
}

// begin makes a call in the background. The result is always sent: a closed connection ends all calls.
func begin[T any](c *Client, do func(*zk.Conn) (T, error)) <-chan result[T] {
	done := make(chan result[T], 1)
	go func() {
		value, err := do(c.conn)
		done <- result[T]{value, err}
	}()
	return done
}

// repeated makes a call that may be made again after a lost connection, until it has an answer, the retry policy gives up,
// or ctx ends.
func repeated[T any](ctx context.Context, c *Client, do func(*zk.Conn) (T, error)) (T, error) {
	return retried(ctx, c, passing, do)
}

// sentOnce makes a call that changes something. It is repeated only if it has certainly not been sent.
func sentOnce[T any](ctx context.Context, c *Client, do func(*zk.Conn) (T, error)) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, context.Cause(ctx)
	}
	value, err := retried(ctx, c, neverSent, do)
	if noAnswer(err) || errors.Is(err, ErrClosed) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return value, err
}

func retried[T any](ctx context.Context, c *Client, repeat func(error) bool, do func(*zk.Conn) (T, error)) (T, error) {
	for attempt := 0; ; attempt++ {
		value, err := once(ctx, c, do)
		if err == nil || !repeat(err) {
			return value, err
		}
		if again, waitErr := c.pause(ctx, attempt); !again {
			if waitErr != nil {
				err = waitErr
			}
			return value, err
		}
	}
}

// pause waits as the retry policy says, but not longer than until the connection is back. It returns false if there is to be no
// other attempt, with the reason if that is not the policy's.
func (c *Client) pause(ctx context.Context, attempt int) (bool, error) {
	wait, again := c.opts.Retry(attempt)
	if !again {
		return false, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	_, changed := c.connected()
	for {
		select {
		case <-timer.C:
			return true, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-c.closed:
			return false, ErrClosed
		case <-changed:
			var back bool
			if back, changed = c.connected(); back {
				return true, nil
			}
		}
	}
}

// Sleep waits, for example before something is tried again. It fails at once with ctx's cause when ctx ends, and with
// ErrClosed when the client is closed.
func (c *Client) Sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return ErrClosed
	}
}

// connected tells whether there is a connection, and returns what is closed when that may have changed.
func (c *Client) connected() (bool, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.state.IsConnected(), c.mu.changed
}
