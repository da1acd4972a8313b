package servertest

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"time"

	"zabra/server/client"
	"zabra/wire"
)

const (
	// framesQueuedMax is how many frames may be under way in one direction of a connection. Then no more are read.
	framesQueuedMax = 1024
	// requestHeadBytes and replyXidBytes are what a frame has to have at least, to be looked at.
	requestHeadBytes = 8
	replyXidBytes    = 4
)

// passage is one connection through a Proxy. Each direction has a goroutine that reads and one that writes.
type passage struct {
	p      *Proxy
	ctx    context.Context // ends when the passage is cut
	cut    context.CancelFunc
	client net.Conn

	// Proxy.mu guards the rest. waiting are the requests that have passed and are not answered, oldest first.
	waiting              []passed
	greeted, established bool // the ConnectRequest and the ConnectResponse have passed
}

// passed is a request whose reply is to come.
type passed struct {
	xid, op int32
	drop    bool // the reply
}

// frame is what travels: a frame's body, or the end of the stream.
type frame struct {
	body []byte
	end  bool
	due  time.Time // when it arrives at the other side
}

func newPassage(p *Proxy, nc net.Conn) *passage {
	l := &passage{p: p, client: nc}
	l.ctx, l.cut = context.WithCancel(context.Background())
	return l
}

// run is the life of the connection.
func (l *passage) run() {
	defer l.cut()
	defer l.client.Close()
	defer context.AfterFunc(l.ctx, func() {
		l.client.Close()
		l.p.change(func() {}) // whoever waits looks at ctx again
	})()
	if !l.enter() {
		return
	}
	defer l.leave()
	server, err := client.DialConn(l.ctx, l.p.target)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(l.ctx, func() { server.Close() })()
	c := client.NewConn(l.client)
	up, down := make(chan frame, framesQueuedMax), make(chan frame, framesQueuedMax)
	var both sync.WaitGroup
	both.Go(func() { l.read(c, up) })
	both.Go(func() { l.write(server, up, l.request) })
	both.Go(func() { l.read(server, down) })
	both.Go(func() { l.write(c, down, l.reply) })
	both.Wait()
}

// enter waits until the connection may go on to the server. It reports false if it is to be cut.
func (l *passage) enter() bool {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusing || p.closed {
		return false
	}
	p.passages[l] = struct{}{}
	for (p.frozen || p.expiring > 0) && l.ctx.Err() == nil {
		p.wake.Wait()
	}
	if l.ctx.Err() != nil {
		delete(p.passages, l)
		return false
	}
	return true
}

func (l *passage) leave() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	delete(l.p.passages, l)
}

// read takes frames in until the stream ends, and hands that on too.
func (l *passage) read(from *client.Conn, queue chan<- frame) {
	for {
		body, err := from.ReadFrame()
		l.p.mu.Lock()
		due := time.Now().Add(l.p.delay)
		l.p.mu.Unlock()
		select {
		case queue <- frame{body: body, end: err != nil, due: due}:
		case <-l.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// write passes frames on. judge, with Proxy.mu held, says whether one may pass; otherwise the connection is cut.
func (l *passage) write(to *client.Conn, queue <-chan frame, judge func([]byte) bool) {
	for {
		var f frame
		select {
		case f = <-queue:
		case <-l.ctx.Done():
			return
		}
		if !l.admit(&f, judge) {
			l.cut()
			return
		}
		if f.end {
			_ = to.CloseWrite() // it fails when the other end is gone, which the other direction finds too
			return
		}
		if to.WriteFrame(f.body) != nil {
			l.cut()
			return
		}
	}
}

// admit waits for the moment at which a frame may pass, and reports whether it does.
func (l *passage) admit(f *frame, judge func([]byte) bool) bool {
	if wait := time.Until(f.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.ctx.Done():
			return false
		}
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	for l.p.frozen && l.ctx.Err() == nil {
		l.p.wake.Wait()
	}
	return l.ctx.Err() == nil && (f.end || judge(f.body))
}

// request judges what a client sends.
func (l *passage) request(body []byte) bool {
	r := passed{op: OpConnect}
	switch {
	case !l.greeted:
		l.greeted = true
	case len(body) < requestHeadBytes:
		return true // for the server to judge
	default:
		r.xid, r.op = int32(binary.BigEndian.Uint32(body)), int32(binary.BigEndian.Uint32(body[4:]))
	}
	if r.op == OpPing {
		r.xid = wire.XidPing // that of the reply, whatever was sent
	}
	if take(l.p.dropRequests, r.op) {
		return false
	}
	r.drop = take(l.p.dropReplies, r.op)
	l.p.requests[r.op]++
	l.waiting = append(l.waiting, r)
	return true
}

// reply judges what the server sends.
func (l *passage) reply(body []byte) bool {
	if !l.established {
		return l.connected(body)
	}
	if len(body) < replyXidBytes {
		return true // for the client to judge
	}
	xid := int32(binary.BigEndian.Uint32(body))
	if xid == wire.XidNotification {
		l.p.notifications++
		return true
	}
	return !l.answered(xid).drop
}

// answered takes out the request that a reply belongs to: the oldest with that xid. Most of the time it is the first of
// all, but pings, auth and sasl are answered out of turn. A reply to nothing is the client's to judge.
func (l *passage) answered(xid int32) passed {
	for i, r := range l.waiting {
		if r.xid == xid {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			return r
		}
	}
	return passed{}
}

// connected judges the answer to the handshake, and remembers the session.
func (l *passage) connected(body []byte) bool {
	l.established = true
	if len(l.waiting) > 0 && l.waiting[0].op == OpConnect {
		drop := l.waiting[0].drop
		l.waiting = slices.Delete(l.waiting, 0, 1)
		if drop {
			return false
		}
	}
	if answer, err := decodeConnected(body); err == nil && answer.TimeoutMs > 0 {
		l.p.session, l.p.password = answer.SessionID, slices.Clone(answer.Password)
	}
	return true
}
