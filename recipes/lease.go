package recipes

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// A lease is how long the ensemble must keep a session at least, as far as its client can prove: the negotiated timeout,
// counted from the moment at which the youngest request was sent that the server has certainly had. Replies prove that.
// They come in the order of the requests, so the nth reply on a connection proves the nth request and all before it;
// notifications prove nothing, since the server sends them by itself.
type lease struct {
	id int64
	mu struct {
		sync.Mutex
		timeout time.Duration
		until   time.Time
		resumed bool // there was a handshake of this session before
	}
}

// prove extends the lease for a request that was sent then.
func (l *lease) prove(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := sent.Add(l.mu.timeout); until.After(l.mu.until) {
		l.mu.until = until
	}
}

// negotiate takes over the timeout of a handshake whose request was sent then. It counts anew from there: the server may
// have shortened it.
func (l *lease) negotiate(timeout time.Duration, sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.resumed = !l.mu.until.IsZero()
	l.mu.timeout, l.mu.until = timeout, sent.Add(timeout)
}

func (l *lease) resumed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.resumed
}

func (l *lease) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.until
}

func (l *lease) timeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.timeout
}

const (
	xidNotification = -1
	opSetWatches    = 101
	// watchesWaitMax is how long replies wait on a new connection for package zk to set its watches again. If it has some,
	// it does so within moments; if it has none, this is what the first reply is late.
	watchesWaitMax = 50 * time.Millisecond
	// frameBytesMax is the largest length that is believed. Longer ones are for package zk to refuse.
	frameBytesMax = 1 << 30
	// Of a frame, the part that tells what it is: xid of a reply, or protocol version, timeout and session of a handshake.
	headBytes = 16
)

// watchedConn is a connection that looks at the frames which pass through it.
type watchedConn struct {
	net.Conn
	// handshake is told of the session that the server has granted, and returns its lease; nil for a refusal.
	handshake func(id int64, timeout time.Duration, sent time.Time) *lease
	// watching tells whether there may be watches to be set again; nil for never.
	watching func() bool

	// Package zk reads on one goroutine and writes on another.
	mu struct {
		sync.Mutex
		out, in frames
		sent    []time.Time   // of requests that have no reply yet, oldest first
		lease   *lease        // nil before the handshake
		begun   bool          // the handshake's answer has been seen
		hold    chan struct{} // closed when replies may pass; nil if they may anyway
	}
}

// Write notes when it began: the server cannot have had the request earlier.
func (c *watchedConn) Write(p []byte) (int, error) {
	now := time.Now()
	c.mu.Lock()
	c.mu.out.feed(p, func(head []byte) {
		c.mu.sent = append(c.mu.sent, now)
		if c.mu.hold != nil && len(head) >= 8 && binary.BigEndian.Uint32(head[4:]) == opSetWatches {
			close(c.mu.hold)
			c.mu.hold = nil
		}
	})
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Read holds replies back on a connection that goes on with a session, until package zk has begun to set its watches again.
// It asks the server for changes since the last zxid in any reply. That must not be one of the new connection: such a
// reply may already show a change whose event was lost with the old one. (And package zk does not lock that number.)
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		hold := c.mu.hold
		c.mu.in.feed(p[:n], c.receivedLocked)
		c.mu.Unlock()
		if hold != nil {
			c.await(hold)
		}
	}
	return n, err
}

func (c *watchedConn) await(hold chan struct{}) {
	timer := time.NewTimer(watchesWaitMax)
	defer timer.Stop()
	select {
	case <-hold:
	case <-timer.C:
		c.mu.Lock()
		c.mu.hold = nil
		c.mu.Unlock()
	}
}

// receivedLocked looks at a frame of the server.
func (c *watchedConn) receivedLocked(head []byte) {
	if c.mu.begun && len(head) >= 4 && int32(binary.BigEndian.Uint32(head)) == xidNotification || len(c.mu.sent) == 0 {
		return
	}
	sent := c.mu.sent[0]
	c.mu.sent = c.mu.sent[1:]
	switch {
	case c.mu.begun:
		if c.mu.lease != nil {
			c.mu.lease.prove(sent)
		}
	case len(head) == headBytes:
		c.mu.begun = true
		timeout := time.Duration(int32(binary.BigEndian.Uint32(head[4:]))) * time.Millisecond
		c.mu.lease = c.handshake(int64(binary.BigEndian.Uint64(head[8:])), timeout, sent)
		if c.mu.lease != nil && c.mu.lease.resumed() && c.watching != nil && c.watching() {
			c.mu.hold = make(chan struct{})
		}
	}
}

// frames cuts a stream into frames: four bytes of length, and what follows.
type frames struct {
	length [4]byte
	have   int // bytes of length
	head   [headBytes]byte
	kept   int // bytes of head
	left   int // bytes of the frame that are still to come
}

// feed calls done at the end of each frame, with its first bytes. The frame's bytes are gone when done returns.
func (f *frames) feed(p []byte, done func(head []byte)) {
	for len(p) > 0 {
		if f.have < len(f.length) {
			n := copy(f.length[f.have:], p)
			f.have, p = f.have+n, p[n:]
			if f.have < len(f.length) {
				return
			}
			f.left, f.kept = int(min(binary.BigEndian.Uint32(f.length[:]), frameBytesMax)), 0
		}
		n := min(len(p), f.left)
		f.kept += copy(f.head[f.kept:], p[:n])
		f.left, p = f.left-n, p[n:]
		if f.left == 0 {
			done(f.head[:f.kept])
			f.have = 0
		}
	}
}
