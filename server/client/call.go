package client

import (
	"context"
	"fmt"
	"math"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// Call is a request that is on its way or answered.
type Call struct {
	Op  wire.Op
	Xid int32
	// The rest is set when the call is done. Zxid is that of the reply's header. Body is what followed the header, in
	// memory of its own. Err is nil, the server's refusal as a wire.Code, or an error that is wire.CodeConnectionLoss and
	// tells the reason: then it is unknown whether the request was served.
	Zxid zxid.Zxid
	Body []byte
	Err  error

	then func(*Call)
	done chan struct{}
}

// Go sends a request and does not wait for the answer. A nil record is an empty body. Calls are sent, and answered by
// the server, in the order in which Go was called; only pings, auth and sasl may be answered out of turn. Go has to wait
// while too much waits to be written.
func (c *Client) Go(op wire.Op, record wire.Record) *Call {
	call := &Call{Op: op, done: make(chan struct{})}
	c.begin(context.Background(), call, record)
	return call
}

// Send is Go for many calls: then, unless it is nil, is called when the call is done, by the connection's only reader
// (it must not block), or by Send itself if the connection is lost already.
func (c *Client) Send(op wire.Op, record wire.Record, then func(*Call)) {
	c.begin(context.Background(), &Call{Op: op, then: then}, record)
}

// Done returns a channel that is closed when the call is done. Only calls made by Go have one.
func (call *Call) Done() <-chan struct{} { return call.done }

// Wait waits for the end of a call made by Go, or of the context, and returns the call's or the context's error.
func (call *Call) Wait(ctx context.Context) error {
	select {
	case <-call.done:
		return call.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Decode reads the body of a call that is done. Bytes that are left over are an error.
func (call *Call) Decode(r wire.Record) error {
	d := jute.NewDecoder(call.Body, len(call.Body))
	r.Decode(&d)
	if d.Err() == nil && d.Remaining() > 0 {
		d.Fail(fmt.Errorf("%d bytes left over", d.Remaining()))
	}
	if d.Err() != nil {
		return fmt.Errorf("%w: reply to %v: %w", ErrProtocol, call.Op, d.Err())
	}
	return nil
}

func (call *Call) finish(err error) {
	call.Err = err
	if call.then != nil {
		call.then(call)
	}
	if call.done != nil {
		close(call.done)
	}
}

// call makes a call, waits for it and decodes the reply, unless that is nil: then the reply must have no body.
func (c *Client) call(ctx context.Context, op wire.Op, record, reply wire.Record) error {
	call := &Call{Op: op, done: make(chan struct{})}
	c.begin(ctx, call, record)
	if err := call.Wait(ctx); err != nil {
		return err
	}
	if reply == nil {
		reply = nothing{}
	}
	return call.Decode(reply)
}

// nothing is the record without fields.
type nothing struct{}

func (nothing) Encode(*jute.Encoder) {}
func (nothing) Decode(*jute.Decoder) {}

// begin puts one call on its way. It is done at once if the connection is over or the context ends first.
func (c *Client) begin(ctx context.Context, call *Call, record wire.Record) {
	for {
		c.mu.Lock()
		if err := c.mu.err; err != nil {
			c.mu.Unlock()
			call.finish(lost(err))
			return
		}
		if c.mu.out.Len() < writeBytesMax {
			break
		}
		room := c.mu.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.done:
		case <-ctx.Done():
			call.finish(ctx.Err())
			return
		}
	}
	c.enqueueLocked(call, record)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // the writer knows already
	}
}

// enqueueLocked appends the request to what will be written, and the call to those that wait for a reply: both under
// one lock, so that the two orders are the same.
func (c *Client) enqueueLocked(call *Call, record wire.Record) {
	switch call.Op {
	case wire.OpPing:
		call.Xid = wire.XidPing
		c.mu.aside = append(c.mu.aside, call)
	case wire.OpAuth:
		call.Xid = wire.XidAuth
		c.mu.aside = append(c.mu.aside, call)
	case wire.OpSASL:
		call.Xid = c.nextXidLocked()
		c.mu.aside = append(c.mu.aside, call)
	default:
		call.Xid = c.nextXidLocked()
		c.mu.fifo.push(call)
	}
	wire.AppendRequest(&c.mu.out, wire.RequestHeader{Xid: call.Xid, Op: call.Op}, record)
}

// nextXidLocked counts from 1 and never gives 0 or a negative number: some of those have a meaning.
func (c *Client) nextXidLocked() int32 {
	if c.mu.xid == math.MaxInt32 {
		c.mu.xid = 0
	}
	c.mu.xid++
	return c.mu.xid
}

// write sends what has been enqueued, everything that is there with one call.
func (c *Client) write() {
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-c.done:
			return
		}
		c.mu.Lock()
		out := c.mu.out.Bytes()
		c.mu.out.Reset(spare[:0])
		close(c.mu.room)
		c.mu.room = make(chan struct{})
		c.mu.Unlock()
		c.sentMs.Store(c.nowMs())
		if _, err := c.conn.Write(out); err != nil {
			c.fail(err)
			return
		}
		if spare = out; cap(spare) > writeBufferKeptBytes {
			spare = nil
		}
	}
}

// receive takes the server's frames apart until the connection is over.
func (c *Client) receive() {
	for {
		h, body, err := c.conn.ReadReply()
		if err == nil {
			c.heardMs.Store(c.nowMs())
			err = c.dispatch(h, body)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *Client) dispatch(h wire.ReplyHeader, body []byte) error {
	if h.Xid == wire.XidNotification {
		return c.event(h, body)
	}
	call := c.match(h.Xid)
	if call == nil {
		return fmt.Errorf("%w: reply with the unexpected xid %d", ErrProtocol, h.Xid)
	}
	for seen := c.lastZxid.Load(); int64(h.Zxid) > seen; seen = c.lastZxid.Load() {
		if c.lastZxid.CompareAndSwap(seen, int64(h.Zxid)) {
			break
		}
	}
	call.Zxid, call.Body = h.Zxid, body
	call.finish(h.Err.Err())
	return nil
}

// match finds the call that a reply belongs to: the first that stands aside with that xid, or else the head of the queue,
// if it has it.
func (c *Client) match(xid int32) *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, call := range c.mu.aside {
		if call.Xid == xid {
			c.mu.aside = append(c.mu.aside[:i], c.mu.aside[i+1:]...)
			return call
		}
	}
	if head := c.mu.fifo.head(); head != nil && head.Xid == xid {
		return c.mu.fifo.pop()
	}
	return nil
}

func (c *Client) event(h wire.ReplyHeader, body []byte) error {
	var w wire.WatcherEvent
	d := jute.NewDecoder(body, len(body))
	w.Decode(&d)
	if d.Err() != nil || d.Remaining() > 0 {
		return fmt.Errorf("%w: watch event: %w, %d bytes left over", ErrProtocol, d.Err(), d.Remaining())
	}
	e := Event{Type: w.Type, State: w.State, Path: string(w.Path), Zxid: h.Zxid}
	if c.opt.OnEvent != nil {
		c.opt.OnEvent(e)
		return nil
	}
	select {
	case c.events <- e:
		return nil
	default:
		return ErrEventsOverflow
	}
}

// callQueue is a queue whose memory is used again.
type callQueue struct {
	calls []*Call
	first int
}

func (q *callQueue) push(c *Call) {
	if q.first > 0 && len(q.calls) == cap(q.calls) {
		n := copy(q.calls, q.calls[q.first:])
		clear(q.calls[n:])
		q.calls, q.first = q.calls[:n], 0
	}
	q.calls = append(q.calls, c)
}

func (q *callQueue) head() *Call {
	if q.first == len(q.calls) {
		return nil
	}
	return q.calls[q.first]
}

func (q *callQueue) pop() *Call {
	c := q.calls[q.first]
	q.calls[q.first] = nil
	if q.first++; q.first == len(q.calls) {
		q.calls, q.first = q.calls[:0], 0
	}
	return c
}

func (q *callQueue) takeAll() []*Call {
	calls := q.calls[q.first:]
	*q = callQueue{}
	return calls
}
