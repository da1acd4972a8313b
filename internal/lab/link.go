package lab

import (
	"errors"
	"net"
	"sync"
	"time"
)

// What the link knows of the protocol: two xids, and the opcodes of reads that can leave a watch. In these the last byte of
// the request says whether to.
const (
	xidEvent = -1
	xidPing  = -2

	opExists       = 3
	opGetData      = 4
	opGetChildren  = 8
	opGetChildren2 = 12

	errOK     = 0
	errNoNode = -101
)

// errCut is what a client gets that was killed.
var errCut = errors.New("lab: this client was killed")

// link is the way of one client to the server. It counts what passes, and knows from that whether the client waits for an
// event.
type link struct {
	// changed is called when something has changed, without a lock held.
	changed func()

	mu struct {
		sync.Mutex
		conn   net.Conn
		cut    bool
		asked  map[int32]int32 // opcodes of reads on their way that leave a watch, by xid
		counts linkCounts
		// waits is set by an answer that left a watch, and cleared by an event.
		waits bool
	}
}

// linkCounts are what has passed.
type linkCounts struct {
	requests int64 // without handshakes and pings
	pings    int64
	events   int64
}

func (a linkCounts) minus(b linkCounts) linkCounts {
	return linkCounts{a.requests - b.requests, a.pings - b.pings, a.events - b.events}
}

func newLink(changed func()) *link { return &link{changed: changed} }

// dial is a zk.Dialer.
func (l *link) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	if l.isCut() {
		return nil, errCut
	}
	nc, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.cut {
		return nil, errors.Join(errCut, nc.Close())
	}
	l.mu.conn, l.mu.asked = nc, map[int32]int32{}
	c := &linkConn{Conn: nc}
	c.out.frame, c.in.frame = l.sent, l.received
	return c, nil
}

// kill cuts the connection for good, without a word to the server.
func (l *link) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.cut = true
	if l.mu.conn != nil {
		l.mu.conn.Close()
	}
}

func (l *link) isCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.cut
}

// state returns what has passed, and whether the client waits for an event.
func (l *link) state() (counts linkCounts, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.counts, l.mu.waits
}

func (l *link) sent(head []byte, last byte) {
	xid, op := int32At(head, 0), int32At(head, 4)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.mu.cut: // it does not leave
		return
	case xid == xidPing:
		l.mu.counts.pings++
		return
	}
	l.mu.counts.requests++
	switch op {
	case opExists, opGetData, opGetChildren, opGetChildren2:
		if last != 0 {
			l.mu.asked[xid] = op
		}
	}
}

func (l *link) received(head []byte, _ byte) {
	if l.note(int32At(head, 0), int32At(head, 12)) {
		l.changed()
	}
}

// note takes up a reply or an event. It tells whether the client begins or ceases to wait by it.
func (l *link) note(xid, code int32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if xid == xidEvent {
		l.mu.counts.events++
		l.mu.waits = false
		return true
	}
	op, watched := l.mu.asked[xid]
	delete(l.mu.asked, xid)
	if !watched || code != errOK && !(op == opExists && code == errNoNode) {
		return false
	}
	l.mu.waits = true
	return true
}

// linkConn is a connection of a link. Package zk reads on one goroutine and writes on another.
type linkConn struct {
	net.Conn
	in, out framer
}

func (c *linkConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.feed(p[:max(n, 0)])
	return n, err
}

// Write looks at the bytes before they leave: the answer may be there before the call returns.
func (c *linkConn) Write(p []byte) (int, error) {
	c.out.feed(p)
	return c.Conn.Write(p)
}
