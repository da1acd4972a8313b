package server

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/ensemble"
)

// link is the election link to one other member. There is one connection, made by the server with the larger id. The
// other one, while it has none, connects too, says hello and is called back: so nobody waits for a pause of somebody who
// does not know yet that this server is there.
//
// A link has a goroutine of its own for dialling and one each for reading and writing, so that what goes to one member
// never waits for another.
type link struct {
	m    *member
	peer ensemble.Member
	// poke ends a pause between two attempts; it holds at most one.
	poke chan struct{}

	mu   sync.Mutex
	next *zab.Message // the newest notification, not written yet
	conn *linkConn    // nil: the link is down
	// called is when the peer last asked to be called although it was connected.
	called time.Time
}

// keepAlives is how many signs of life go out in the time after which a silent link counts as down.
const keepAlives = 4

// linkConn is one connection of a link.
type linkConn struct {
	nc    net.Conn
	began time.Time
	wake  chan struct{} // there is something to write; holds at most one
	done  chan struct{} // closed at its end
}

func newLink(m *member, peer ensemble.Member) *link {
	return &link{m: m, peer: peer, poke: make(chan struct{}, 1)}
}

// dials reports whether this server's connections are the ones that are kept.
func (l *link) dials() bool { return l.m.id > l.peer.ID }

// send replaces what was not sent yet. Where there is no connection, it makes for an attempt at once.
func (l *link) send(msg *zab.Message) {
	copied := *msg
	l.mu.Lock()
	l.next = &copied
	conn := l.conn
	l.mu.Unlock()
	if conn == nil {
		signal(l.poke)
	} else {
		signal(conn.wake)
	}
}

// signal leaves a note in a channel that holds one.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// run keeps the link up until the server ends. The pause between attempts grows, also after connections that did not last:
// a peer that ends each of them at once is not to be called in a tight loop.
func (l *link) run() {
	pause := linkBackoffMin
	for l.m.linkCtx.Err() == nil {
		short := false
		if conn := l.current(); conn != nil {
			select {
			case <-conn.done:
			case <-l.m.linkCtx.Done():
			}
			if short = time.Since(conn.began) <= linkBackoffMax; !short {
				pause = linkBackoffMin
			}
		} else if err := l.connect(); err != nil {
			if l.m.linkCtx.Err() == nil {
				l.m.unreachable(l.peer.ID, "election address", electionAddresses(l.peer), err)
			}
		} else if l.dials() {
			continue
		}
		if l.pause(pause, short) {
			pause = linkBackoffMin
		} else {
			pause = min(2*pause, linkBackoffMax)
		}
	}
}

// pause waits until d is over. It reports true if something new made it end before, which nothing does if it is firm.
func (l *link) pause(d time.Duration, firm bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	poke := l.poke
	if firm {
		poke = nil
	}
	select {
	case <-timer.C:
	case <-poke:
		return true
	case <-l.m.linkCtx.Done():
	}
	return false
}

func (l *link) current() *linkConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// connect makes the connection, or asks the peer for it.
func (l *link) connect() error {
	ctx, cancel := context.WithTimeout(l.m.linkCtx, l.m.limits.dial)
	defer cancel()
	nc, err := l.m.dial(ctx, electionAddresses(l.peer), l.peer.ID, peer.PurposeElection)
	if err != nil {
		return err
	}
	if !l.dials() {
		return nc.Close()
	}
	l.attach(nc)
	return nil
}

// attach makes nc the link's connection in place of an older one.
func (l *link) attach(nc net.Conn) {
	c := &linkConn{nc: nc, began: time.Now(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.mu.Lock()
	if old := l.conn; old != nil {
		if time.Since(old.began) < linkBackoffMax {
			l.m.trouble.note(l.m, "twice", l.peer.ID, fmt.Sprintf("server %d connects again and again; do two servers have that number in their myid file?", l.peer.ID),
				zap.Stringer("remote", nc.RemoteAddr()), zap.Stringer("before", old.nc.RemoteAddr()))
		}
		l.downLocked()
	}
	l.conn = c
	l.m.input(zab.Input{Kind: zab.InputLinkUp, Peer: l.peer.ID})
	if l.next != nil {
		signal(c.wake)
	}
	l.mu.Unlock()
	l.m.reached(l.peer.ID, "election address")
	signal(l.poke) // the dialling goroutine has to wait for the end of this connection now
	l.m.s.spawn(func() { l.write(c) })
	l.m.s.spawn(func() { l.detach(c, l.read(c)) })
}

// blink tells the core that the link is gone and, if it is not, that it is there again.
func (l *link) blink() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m.input(zab.Input{Kind: zab.InputLinkDown, Peer: l.peer.ID})
	if l.conn != nil {
		l.m.input(zab.Input{Kind: zab.InputLinkUp, Peer: l.peer.ID})
	}
}

// downLocked ends the connection.
func (l *link) downLocked() {
	l.conn.nc.Close()
	close(l.conn.done)
	l.conn = nil
	l.m.input(zab.Input{Kind: zab.InputLinkDown, Peer: l.peer.ID})
}

// detach takes c out if it is still the link's connection.
func (l *link) detach(c *linkConn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != c {
		return
	}
	l.downLocked()
	if l.m.linkCtx.Err() == nil {
		l.m.lost(l.peer.ID, "election link", err)
	}
}

// read hands on notifications until the connection ends, or nothing comes for too long: a peer whose process stands still
// is no voter to wait for.
func (l *link) read(c *linkConn) error {
	stop := context.AfterFunc(l.m.linkCtx, func() { c.nc.Close() })
	defer stop()
	r := peer.NewReader(c.nc, peer.PurposeElection)
	for {
		_ = c.nc.SetReadDeadline(time.Now().Add(l.m.limits.quiet))
		frame, err := r.Next()
		if err != nil {
			return err
		}
		if msg := frame.Message; msg != nil {
			msg.From, msg.To = l.peer.ID, l.m.id
			l.m.s.steps.message(msg, peerMessageBytes)
			l.m.s.advance(readerRoundsMax)
		}
	}
}

// write sends the newest notification whenever there is one, and signs of life in between.
func (l *link) write(c *linkConn) {
	var enc peer.Encoder
	alive := time.NewTicker(l.m.limits.quiet / keepAlives)
	defer alive.Stop()
	for {
		select {
		case <-c.wake:
		case <-alive.C:
		case <-c.done:
			return
		}
		msg := l.take(c)
		var b []byte
		var err error
		if msg == nil {
			b = peer.AppendKeepAlive(nil)
		} else if b, err = enc.AppendMessage(nil, msg); err != nil {
			l.m.s.log.Error("a notification cannot be sent to another member, which is a defect of this program; report it with this line", zap.Error(err))
			continue
		}
		_ = c.nc.SetWriteDeadline(time.Now().Add(l.m.limits.quiet))
		if _, err = c.nc.Write(b); err != nil {
			l.keep(msg)
			c.nc.Close() // the reader ends with it, and tells
			return
		}
	}
}

// take returns what is to be sent on c, nil if there is nothing.
func (l *link) take(c *linkConn) *zab.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != c {
		return nil
	}
	msg := l.next
	l.next = nil
	return msg
}

// keep puts back what could not be sent, unless there is something newer.
func (l *link) keep(msg *zab.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = msg
	}
}

// electionAddresses and quorumAddresses list where a member listens.
func electionAddresses(m ensemble.Member) []string {
	return addresses(m, func(a ensemble.Address) int { return a.ElectionPort })
}

func quorumAddresses(m ensemble.Member) []string {
	return addresses(m, func(a ensemble.Address) int { return a.QuorumPort })
}

func addresses(m ensemble.Member, port func(ensemble.Address) int) []string {
	list := make([]string, len(m.Addresses))
	for i, a := range m.Addresses {
		list[i] = net.JoinHostPort(a.Host, fmt.Sprint(port(a)))
	}
	return list
}

// electionListener takes what comes in on one address of the election port.
type electionListener struct {
	m *member
	l net.Listener
}

func (e *electionListener) close() { e.l.Close() }

// acceptLoop greets whoever connects, each on a goroutine of its own: one that says nothing keeps nobody waiting.
func (e *electionListener) acceptLoop() { e.m.accept(e.m.linkCtx, e.l, e.greet) }

// greet takes a connection of a member with a larger id, and calls back one with a smaller id.
func (e *electionListener) greet(nc net.Conn) func() {
	nc, hello, err := e.m.answer(nc, peer.PurposeElection, e.check)
	if err != nil {
		return nil
	}
	l := e.m.links[hello.From]
	if !l.dials() {
		l.attach(nc)
		return nil
	}
	nc.Close()
	l.callBack()
	return nil
}

// callBack connects to a peer that has none of this server's connections, so that one which this server takes for good
// cannot be. One that was made a moment ago may be news to the peer, and stays.
func (l *link) callBack() {
	l.mu.Lock()
	again := l.conn != nil && time.Since(l.called) < linkCallsAgain
	if l.conn != nil {
		l.called = time.Now()
	}
	if l.conn != nil && time.Since(l.conn.began) > linkBackoffMax {
		l.downLocked()
	}
	l.mu.Unlock()
	if again {
		l.m.trouble.note(l.m, "twice", l.peer.ID, fmt.Sprintf("server %d asks again and again to be called, although it is connected; "+
			"do two servers have that number in their myid file?", l.peer.ID))
	}
	signal(l.poke)
}

// check says why a greeting is refused.
func (e *electionListener) check(h peer.Hello) error {
	if err := e.m.checkHello(h); err != nil {
		return err
	}
	if e.m.links[h.From] == nil {
		return fmt.Errorf("servers %d and %d are observers, which have nothing to say to each other in an election", h.From, e.m.id)
	}
	return nil
}

// checkHello refuses strangers. The addresses are not compared: a member is who its id says.
func (m *member) checkHello(h peer.Hello) error {
	if h.From == m.id {
		return fmt.Errorf("server %d is this server itself: two servers have the same myid", h.From)
	}
	if _, ok := m.config.Member(h.From); !ok {
		return fmt.Errorf("server %d is not among the members %v of this server's configuration", h.From, memberIDs(m.config))
	}
	return nil
}
