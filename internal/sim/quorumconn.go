package sim

import (
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// quorumConn is a connection between a learner, which is ends[0], and its leader.
type quorumConn struct {
	n      *network
	ends   [2]*connEnd
	broken bool
	// What E-21 and E-20 look at: where the leader's stream stands, and what the learner had.
	sentTo    zxid.Zxid
	streaming bool
	learnerAt zxid.Zxid // of ACKEPOCH
	epoch     zxid.Epoch
	// delivered is the last transaction that has come in before NEWLEADER, newLeader that this has.
	delivered zxid.Zxid
	newLeader bool
	upToDate  bool
}

// connEnd is what one server knows of a connection.
type connEnd struct {
	c          *quorumConn
	side       int
	srv        *server
	life       uint32
	generation uint32
	num        zab.ConnID
	open       bool // the core knows it
	hungUp     bool // what still comes in is not for this role
	closed     bool // for good
	out        *pipe
	// stream is a snapshot on its way out, backlog what waits behind it.
	stream  *stream
	backlog []*zab.Message
	pinned  *stream // opened for an answer with a snapshot, not yet announced
}

func (e *connEnd) other() *connEnd { return e.c.ends[1-e.side] }

func (e *connEnd) alive() bool { return e.srv.running && e.srv.life == e.life }

// dial connects a learner to its leader, and tries again as long as that is wanted.
func (s *server) dial() {
	leader, ok := s.canDial()
	if !ok || s.dialling {
		return
	}
	s.dialling = true
	w := s.w
	w.afterOn(s, w.net.latency()*2+w.netRnd.between(0, 2*millisecond), func() { s.dialled(leader, s.status.Generation, 5*millisecond) })
}

// dialled is the end of an attempt: the leader listens, or it is tried again after a pause.
func (s *server) dialled(leader zxid.ServerID, generation uint32, pause Micros) {
	w := s.w
	now, ok := s.canDial()
	if !ok || now != leader || s.status.Generation != generation {
		s.dialling = false
		s.dial()
		return
	}
	l := w.server(leader)
	reachable := w.net.open(s.id, leader) && w.net.open(leader, s.id) && l.pausedUntil <= w.queue.now
	if reachable && l.running && l.status.Role == zab.RoleLeading {
		s.dialling = false
		w.net.connect(s, l)
		return
	}
	if !reachable {
		pause = 100 * millisecond // a timeout instead of a refusal
	}
	w.afterOn(s, pause+2*w.net.latency(), func() { s.dialled(leader, generation, min(2*pause, 100*millisecond)) })
}

// connect opens a connection. The leader knows of it first: it answers the hello.
func (n *network) connect(learner, leader *server) {
	c := &quorumConn{n: n}
	for i, s := range [2]*server{learner, leader} {
		s.lastConn++
		c.ends[i] = &connEnd{c: c, side: i, srv: s, life: s.life, generation: s.status.Generation, num: s.lastConn}
	}
	for i, e := range c.ends {
		o := c.ends[1-i]
		e.out = &pipe{n: n, from: e.srv.id, to: o.srv.id, toLife: o.life}
		e.out.deliver = func(x parcel) { o.receive(x) }
	}
	n.conns = append(n.conns, c)
	c.ends[1].begin()
	c.ends[0].out.lastAt = n.w.queue.now
	c.ends[0].begin()
}

// begin reports the connection to the core.
func (e *connEnd) begin() {
	e.open = true
	e.srv.conns[e.num] = e
	e.c.n.w.note(e.srv.id, "is connected to", int64(e.other().srv.id), int64(e.num))
	e.srv.input(zab.Input{Kind: zab.InputConnected, Peer: e.other().srv.id, Conn: e.num})
}

// finish ends this end: the core is told once.
func (e *connEnd) finish() {
	if e.closed {
		return
	}
	e.closed = true
	e.out.shut = true
	e.releaseStreams()
	if !e.alive() {
		e.c.forget()
		return
	}
	delete(e.srv.conns, e.num)
	if e.srv.receiving != nil && e.srv.receiving.end == e {
		e.srv.dropReception()
	}
	e.c.n.w.note(e.srv.id, "has lost connection", int64(e.num), int64(e.other().srv.id))
	e.open = false
	e.srv.input(zab.Input{Kind: zab.InputDisconnected, Conn: e.num})
	e.srv.dial()
	e.c.forget()
}

// forget drops a connection that is closed at both ends.
func (c *quorumConn) forget() {
	for _, e := range c.ends {
		if !e.closed && e.alive() {
			return
		}
	}
	conns := c.n.conns[:0]
	for _, o := range c.n.conns {
		if o != c {
			conns = append(conns, o)
		}
	}
	clear(c.n.conns[len(conns):])
	c.n.conns = conns
}

// send puts a message of the core on its way.
func (e *connEnd) send(m *zab.Message) {
	if e.closed || e.c.broken {
		e.sentIntoNothing()
		return
	}
	if e.stream != nil {
		e.backlog = append(e.backlog, m)
		return
	}
	if m.Kind == zab.MessageSnap {
		e.out.put(parcel{msg: m})
		e.beginStream(m)
		return
	}
	if e.srv.w.opts.Core&zab.PlantSkipPredecessor != 0 && m.Kind == zab.MessageProposal && e.srv.w.netRnd.chance(100) {
		return // without the check that is planted away, a channel that loses something must show
	}
	e.out.put(parcel{msg: m})
	if len(e.out.queue) > connBacklogMax {
		e.c.n.w.note(e.srv.id, "cuts off slow", int64(e.other().srv.id), 0)
		e.c.cut(true)
	}
}

// sentIntoNothing lets a sender find out that nobody is at the other end, if the other machine is there to say so.
func (e *connEnd) sentIntoNothing() {
	w := e.c.n.w
	o := e.other()
	if e.closed || !o.srv.running || !w.net.open(e.srv.id, o.srv.id) || !w.net.open(o.srv.id, e.srv.id) {
		return
	}
	if !o.closed && o.alive() {
		return // half-open: both machines think that it lives
	}
	w.afterOn(e.srv, 2*w.net.latency(), e.finish)
}

// receive takes what comes in.
func (e *connEnd) receive(x parcel) {
	if e.closed {
		return
	}
	switch {
	case x.eof:
		e.finish()
	case e.hungUp:
	case x.chunk != nil:
		e.receiveChunk(x.chunk)
	default:
		m := *x.msg
		m.Conn = e.num
		e.c.n.w.noteMessage(e.srv.id, "receives from", m.From, &m)
		e.received(&m)
		e.srv.input(zab.Input{Kind: zab.InputMessage, Message: &m})
	}
}

// hangup closes a connection on the core's word, after what was sent on it before.
func (s *server) hangup(h zab.Hangup) {
	e := s.conns[h.Conn]
	if e == nil {
		return
	}
	s.w.noteText(s.id, "hangs up", "on s%d, connection %d: %s", e.other().srv.id, h.Conn, h.Why)
	e.hangUp()
}

func (e *connEnd) hangUp() {
	s := e.srv
	if e.hungUp {
		return
	}
	e.hungUp = true
	e.out.put(parcel{eof: true})
	s.w.afterOn(s, s.w.net.latency(), e.finish)
	e.out.shut = true
}

// cut breaks a connection. Of what is under way a part may still come through. With loud, both ends are told after
// that; else they find out by their own timers.
func (c *quorumConn) cut(loud bool) {
	if c.broken {
		return
	}
	c.broken = true
	for _, e := range c.ends {
		if e.out.shut {
			continue
		}
		e.out.lose()
		if loud {
			e.out.shut = false
			e.out.put(parcel{eof: true})
			e.out.shut = true
		}
	}
}

// endDied tells the other end of a crash, if it is told at all.
func (c *quorumConn) endDied(s *server, loud bool) {
	for _, e := range c.ends {
		if e.srv != s {
			continue
		}
		e.closed = true
		e.releaseStreams()
		if !e.out.shut {
			e.out.lose()
			if loud {
				e.out.shut = false
				e.out.put(parcel{eof: true})
				e.out.shut = true
			}
		}
	}
	c.broken = true
	c.forget()
}

func (c *quorumConn) unblocked(a, b zxid.ServerID) {
	for _, e := range c.ends {
		if e.srv.id == a && e.other().srv.id == b {
			e.out.unstall()
		}
	}
}

// beginRole ends the connections of earlier roles, after what was sent on them.
func (s *server) beginRole() {
	for _, e := range s.openEnds() {
		if e.generation != s.status.Generation {
			e.hangUp()
		}
	}
}

// openEnds lists the connections by number.
func (s *server) openEnds() []*connEnd {
	list := make([]*connEnd, 0, len(s.conns))
	for _, e := range s.conns { // order: sorted below
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *connEnd) int { return int(a.num) - int(b.num) })
	return list
}
