package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"zabra/server/replica"
	"zabra/wire"
)

// conn is one TCP connection of a client. Its reader goroutine runs from admission to the socket's end.
//
// An idle connection costs this struct, the runtime's record of the socket and the reader's stack: there are no buffers
// while there is nothing to read or write.
type conn struct {
	s      *Server
	id     uint64
	tcp    *net.TCPConn
	raw    syscall.RawConn
	remote netip.AddrPort
	openMs int64 // monotonic
	ending bool  // see connTable.end, whose lock guards it

	// rc is the connection as the replica sees it; nil until the first bytes have shown that it is no four-letter word.
	rc atomic.Pointer[replica.Conn]
	// word is set while the connection serves a four-letter word.
	word atomic.Bool
	// policy is that of the port. tls is nil for a plain connection; it is there before rc is.
	policy tlsPolicy
	tls    atomic.Pointer[secured]

	// The reader's.
	in         inbound
	greeted    bool // the first frame was accepted
	onReadable func(fd uintptr) bool
	readN      int
	received   bool // requests were handed over for which no step was seen to yet
	frames     uint32
	readErr    syscall.Errno
	large      int // bytes that the frame being read has of the budget of large requests

	out writer
}

func newConn(s *Server, tcp *net.TCPConn, remote netip.AddrPort) (*conn, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &conn{s: s, tcp: tcp, raw: raw, remote: remote, openMs: s.clock.now().MonoMs}
	c.onReadable = c.readable
	return c, nil
}

// run is the life of the connection: requests until something ends it, then the orderly end or the abrupt one.
func (c *conn) run() {
	defer c.release()
	orderly := c.secure() && c.serve()
	c.s.serving.Done()
	if orderly {
		c.linger()
	}
}

// serve reads and hands on requests. It reports whether the connection is to end in an orderly way: its last output is
// still to be written by somebody, and then the sending side is shut before the socket is.
func (c *conn) serve() (orderly bool) {
	if ms := c.s.live.Load().SessionlessTimeoutMs; ms > 0 {
		c.deadline(time.Now().Add(time.Duration(ms) * time.Millisecond))
	}
	for {
		if err := c.fill(); err != nil {
			return c.readEnded(err)
		}
		if c.rc.Load() == nil {
			word, ok, err := c.greet()
			switch {
			case err != nil:
				c.refuse(err)
				return false
			case word != "":
				c.answerWord(word)
				return true
			case !ok:
				continue
			}
		}
		switch err := c.receive(); {
		case errors.Is(err, errClosing):
			return true
		case err != nil:
			c.refuse(err)
			c.finish() // without the answers to what came in the same packet, as ZooKeeper does, though it is carried out
			c.seeToStep()
			return true
		}
	}
}

// errClosing ends the reading without being a fault.
var errClosing = errors.New("closing")

// readEnded decides what follows a failed read.
func (c *conn) readEnded(err error) (orderly bool) {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
			c.s.log.Debug("connection lost", zap.Stringer("remote", c.remote), zap.Error(err))
		}
		c.s.meter.dropped.Add(1)
		return false
	case c.out.isOver(), c.isDraining():
		return c.rc.Load() != nil
	}
	c.s.meter.sessionlessExpired.Add(1)
	c.s.log.Debug("closed a connection that opened no session", zap.Stringer("remote", c.remote))
	return false
}

// greet looks at the first bytes of a connection: a four-letter word, or else the length of a first frame, for which the
// replica is told of the connection. It is not ok while there are too few bytes to tell.
func (c *conn) greet() (word string, ok bool, err error) {
	head, ok := c.in.head()
	if !ok {
		return "", false, nil
	}
	if word, ok := wire.FourLetterWord(head); ok {
		return word, false, nil
	}
	if n, ok := wire.FrameLength(head, c.s.cfg.JuteMaxBufferBytes); !ok {
		return "", false, &lengthError{bytes: n, max: c.s.cfg.JuteMaxBufferBytes, suspect: wire.FrameSuspect(head)}
	}
	if !c.s.isServing() {
		c.s.meter.closedNotServing.Add(1)
		return "", false, errClosing
	}
	rc := c.s.replica.Open(c, c.remote, c.s.clock.now())
	if t := c.tls.Load(); t != nil {
		rc.Identify(t.ids)
	}
	c.rc.Store(rc)
	return "", true, nil
}

// receive hands every complete frame of the input to the replica and writes what that has answered, once for all of them.
func (c *conn) receive() error {
	rc := c.rc.Load()
	now := c.s.clock.now()
	for {
		frame, ok, err := c.in.next(c.s.cfg.JuteMaxBufferBytes)
		if err != nil {
			return err
		}
		if !ok {
			if err := c.reserveLarge(); err != nil {
				return err
			}
			break
		}
		c.releaseLarge()
		if !c.greeted {
			if err := c.admitSession(frame); err != nil {
				return err
			}
		}
		if c.frames++; (c.frames+uint32(c.id))%topSampleEvery == 0 && c.greeted {
			c.s.actions.top.note(c.remote.Addr(), frame)
		}
		verdict, err := rc.Receive(frame, now)
		if err != nil {
			return err
		}
		first := !c.greeted
		if first {
			c.greeted = true
			c.deadline(time.Time{})
		}
		switch verdict {
		case replica.Flush:
			c.seeToStep()
			err = c.flushAndWait()
			now = c.s.clock.now()
		case replica.Wait:
			if first {
				// Most of many connections are idle after their handshake. A step taken here would leave them with a stack
				// that is as deep as a step.
				c.received = false
				c.s.steps.wakeUp()
			}
			c.seeToStep()
			c.flush()
			err = c.waitResumed(rc)
			now = c.s.clock.now()
			if first && err == nil {
				c.logSession(rc)
			}
		case replica.Closing:
			c.seeToStep()
			c.flush()
			return errClosing
		}
		if err != nil {
			return err
		}
	}
	c.seeToStep()
	c.flush()
	return nil
}

// received notes that the reader has handed over a request which waits for a step.
func received(rc *replica.Conn) { rc.Owner().(*conn).received = true }

// seeToStep has a step taken for what was handed over since the last time.
func (c *conn) seeToStep() {
	if c.received {
		c.received = false
		if c.s.replica.HasRequests() { // or somebody has taken them already
			c.s.advance(readerRoundsMax)
		}
	}
}

// logSession tells of a handshake that is done.
func (c *conn) logSession(rc *replica.Conn) {
	if log := c.s.log.Check(zap.DebugLevel, "Established session"); log != nil {
		if info := rc.Info(); info.Session != 0 {
			log.Message = fmt.Sprintf("Established session %v with negotiated timeout %d for client /%v", info.Session, info.TimeoutMs, c.remote)
			log.Write()
		}
	}
}

// waitResumed waits until the replica takes requests of this connection again. The bytes read so far are kept in memory
// of their own, so that many connections in this state do not hold as many buffers.
func (c *conn) waitResumed(rc *replica.Conn) error {
	c.in.park()
	select {
	case <-rc.Resumed(): // also when the connection is cut
		return nil
	case <-c.s.draining:
		return errClosing
	}
}

// deadline bounds the time until the next byte; the zero time is no bound. A connection that is finished keeps the
// deadline of its end.
func (c *conn) deadline(t time.Time) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if !c.out.over && !c.isDraining() {
		_ = c.tcp.SetReadDeadline(t)
	}
}

// stopReading wakes the reader and lets it take no further requests.
func (c *conn) stopReading() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	if !c.out.over {
		_ = c.tcp.SetReadDeadline(time.Now())
	}
}

// linger waits until the last output is written, then reads and drops what the client still sends until it ends the
// connection too. Closing a socket with unread input would reset the connection, and a reset destroys answers that the
// client has not read yet.
func (c *conn) linger() {
	if c.out.awaitOver(context.Background()) != nil {
		return
	}
	c.in.drop()
	for total := 0; total < lingerBytesMax; {
		if err := c.fill(); err != nil {
			return
		}
		total += c.in.drop()
	}
}

// settle ends the connection in an orderly way once all its output is written.
func (c *conn) settle(ctx context.Context) error {
	c.flush()
	c.finishWhenWritten()
	return c.out.awaitOver(ctx)
}

// finish ends the sending side, and drops what is not written yet. The reader sees to the rest.
func (c *conn) finish() {
	c.s.conns.end(c)
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.overLocked()
	if t := c.tls.Load(); t != nil {
		t.sayGoodbye(c.raw)
	}
	_ = c.tcp.CloseWrite()
	_ = c.tcp.SetReadDeadline(time.Now().Add(lingerTime))
}

// abort cuts the connection. Any goroutine may call it.
func (c *conn) abort() {
	c.out.mu.Lock()
	c.out.overLocked()
	c.out.mu.Unlock()
	c.tcp.Close()
	if rc := c.rc.Load(); rc != nil {
		rc.Closed()
	}
}

// cut aborts the connection and drops what the system still holds for a client that does not read.
func (c *conn) cut() {
	_ = c.tcp.SetLinger(0)
	c.abort()
}

// release closes the socket and forgets the connection.
func (c *conn) release() {
	c.s.conns.end(c) // before the client can see that it is closed
	c.abort()
	c.releaseLarge()
	c.in.free()
	c.s.conns.remove(c)
}

func (c *conn) isDraining() bool { return c.s.isDraining() }
