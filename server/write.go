package server

import (
	"sync"
	"syscall"
	"time"

	"zabra/server/replica"
)

// flush writes the connection's output as far as the socket takes it at once. What it does not take is written by a
// goroutine of the connection's own, so that no caller ever waits for a client.
func (c *conn) flush() {
	if c.rc.Load() != nil && c.out.claim() {
		if rest, fin, blocked := c.writeAtOnce(); blocked {
			c.s.spawn(func() { c.writePatiently(rest, fin) })
		}
	}
}

// flushOnce is flush for goroutines with other duties: where there is more to write when it has written, which a client
// with a steady stream of requests can bring about for as long as it likes, a goroutine of the connection's own goes on.
func (c *conn) flushOnce() {
	if rc := c.rc.Load(); rc != nil && c.tls.Load() != nil {
		c.s.flush.add([]*replica.Conn{rc}) // encrypting is no work for who has others waiting
		return
	}
	if c.rc.Load() == nil || !c.out.claim() {
		return
	}
	if rest, fin, held := c.writeRound(); held {
		c.s.spawn(func() {
			if len(rest) == 0 {
				rest, fin = c.rc.Load().Output(nil)
			}
			c.writePatiently(rest, fin)
		})
	}
}

// flushAndWait writes all output and waits for the client to take it. It belongs to the reader, which reads no further
// request while the client does not take the answers to those it has sent.
func (c *conn) flushAndWait() error {
	if !c.out.awaitTurn() {
		return errClosing
	}
	if rest, fin, blocked := c.writeAtOnce(); blocked {
		c.writePatiently(rest, fin)
	}
	return nil
}

// finishWhenWritten ends the connection in an orderly way when nothing is left to write.
func (c *conn) finishWhenWritten() {
	c.out.mu.Lock()
	c.out.finishing = true
	c.out.mu.Unlock()
	c.flush()
	if c.rc.Load() == nil {
		c.finish()
	}
}

// writeAtOnce writes until the writer is given up, or blocked with what the socket did not take. The caller holds the writer.
func (c *conn) writeAtOnce() (rest []byte, fin, blocked bool) {
	for {
		rest, fin, blocked := c.writeRound()
		if !blocked || len(rest) > 0 {
			return rest, fin, blocked
		}
	}
}

// writeRound writes what is there. It ends with the writer given up, or still held: with what the socket did not take, or
// with nothing because more has come since. The caller holds the writer.
func (c *conn) writeRound() (rest []byte, fin, held bool) {
	out, fin := c.rc.Load().Output(nil)
	if len(out) > 0 {
		if t := c.tls.Load(); t != nil {
			return c.writeSealed(t, out, fin)
		}
		n, err := tryWrite(c.raw, out)
		if err != nil {
			c.abandon()
			return nil, false, false
		}
		if n < len(out) {
			return out[n:], fin, true
		}
	}
	replica.ReleaseOutput(out)
	return nil, fin, !c.roundEnded(fin)
}

// writePatiently writes rest, and then whatever has come since, at the pace at which the client takes it. A client that
// takes nothing for longer than any session lasts is cut off. Each piece that the socket takes counts as a sign of life of
// the session: where the reader waits for this, it cannot read the client's pings meanwhile, and a client that is taking a
// long answer is not to lose its session for that. The caller holds the writer.
func (c *conn) writePatiently(rest []byte, fin bool) {
	stall := max(time.Duration(c.s.cfg.MaxSessionTimeoutMs)*time.Millisecond, writeStallMin)
	for {
		for len(rest) > 0 {
			_ = c.tcp.SetWriteDeadline(time.Now().Add(stall))
			n, err := c.tcp.Write(rest[:min(len(rest), writeChunkBytes)])
			if err != nil {
				c.abandon()
				return
			}
			rest = rest[n:]
			c.rc.Load().Touch(c.s.clock.now())
		}
		_ = c.tcp.SetWriteDeadline(time.Time{})
		if t := c.tls.Load(); t != nil {
			t.sent()
		}
		if c.roundEnded(fin) {
			return
		}
		var err error
		if rest, fin, err = c.takeOutput(); err != nil {
			c.abandon()
			return
		}
	}
}

// roundEnded gives the writer up, or finishes the connection if it is to be. It is false when there is more to write.
func (c *conn) roundEnded(fin bool) bool {
	if !fin {
		var free bool
		if free, fin = c.out.yield(); free {
			return true
		}
	}
	if fin {
		c.finish()
		c.out.yield()
	}
	return fin
}

// abandon cuts the connection off after a failed write.
func (c *conn) abandon() {
	c.cut()
	c.out.yield()
}

// attempt is one write that does not wait for the socket. Attempts are kept for the next, since the runtime wants a
// function to call.
type attempt struct {
	b   []byte
	n   int
	err error
	try func(fd uintptr) bool
}

var attempts = sync.Pool{New: func() any {
	a := new(attempt)
	a.try = a.write
	return a
}}

// tryWrite writes what the socket takes without waiting. One goroutine may write at a time.
func tryWrite(raw syscall.RawConn, b []byte) (int, error) {
	a := attempts.Get().(*attempt)
	a.b = b
	err := raw.Write(a.try)
	n := a.n
	if err == nil {
		err = a.err
	}
	a.b, a.n, a.err = nil, 0, nil
	attempts.Put(a)
	return n, err
}

// write never asks the runtime to wait.
func (a *attempt) write(fd uintptr) bool {
	for {
		n, err := syscall.Write(int(fd), a.b)
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			err = nil
		}
		a.n, a.err = max(n, 0), err
		return true
	}
}
