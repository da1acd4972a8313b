package sim

import (
	"net/netip"
	"slices"

	"zabra/jute"
	"zabra/server/replica"
)

// clientConn is a client's connection to a server, both ends of it.
type clientConn struct {
	c    *client
	s    *server
	rc   *replica.Conn
	life uint32
	// closed is the server's end, ended the client's.
	closed, ended bool
	// waiting holds frames back because the server does not read.
	waiting  bool
	held     [][]byte
	lastIn   Micros
	lastOut  Micros
	answered bool // the handshake
}

// openConn connects a client to a server that serves.
func openConn(c *client, s *server) *clientConn {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + c.index)}), uint16(4000+c.index))
	cc := &clientConn{c: c, s: s, life: s.life}
	cc.rc = s.replica.Open(cc, addr, s.now())
	s.clientConns = append(s.clientConns, cc)
	return cc
}

// toServer sends a frame, without its length.
func (cc *clientConn) toServer(frame []byte) {
	w := cc.c.w
	at := max(cc.lastIn, w.queue.now+w.net.clientLatency())
	cc.lastIn = at
	w.queue.add(event{at: at, srv: cc.s, life: cc.life, run: func() { cc.arrive(frame) }})
}

// clientLatency is how long something takes between a client and a server.
func (n *network) clientLatency() Micros { return n.w.clientRnd.longTail(60, 8*millisecond) }

// arrive is what the reader of the connection does with a frame.
func (cc *clientConn) arrive(frame []byte) {
	if cc.closed {
		return
	}
	if cc.waiting {
		cc.held = append(cc.held, frame)
		return
	}
	verdict, err := cc.rc.Receive(frame, cc.s.now())
	if err != nil {
		cc.s.w.noteText(cc.s.id, "refuses", "client %d: %v", cc.c.index, err)
		cc.c.refused(err)
		cc.cut()
		return
	}
	cc.waiting = verdict == replica.Wait
	cc.flush()
}

// flush writes what the replica has for the client.
func (cc *clientConn) flush() {
	if cc.closed || !cc.rc.HasOutput() {
		return
	}
	out, fin := cc.rc.Output(nil)
	w := cc.c.w
	at := max(cc.lastOut, w.queue.now+w.net.clientLatency())
	cc.lastOut = at
	for len(out) > 0 {
		d := jute.NewDecoder(out, fieldBytesMax)
		frame := d.Buffer()
		if d.Err() != nil {
			w.fail("E-17", "s%d sends client %d something that is no frame: %v", cc.s.id, cc.c.index, d.Err())
		}
		out = d.Rest()
		cc.checkReplied(frame)
		w.queue.add(event{at: at, run: func() { cc.c.receive(cc, frame) }})
	}
	if fin {
		cc.cut()
	}
}

// resumeClients lets the readers go on that were told to wait.
func (s *server) resumeClients() {
	for _, cc := range slices.Clone(s.clientConns) {
		if !cc.waiting {
			continue
		}
		select {
		case <-cc.rc.Resumed():
		default:
			continue
		}
		cc.waiting = false
		held := cc.held
		cc.held = nil
		for _, frame := range held {
			cc.arrive(frame)
		}
	}
}

// cut ends the server's end. The client comes to know of it behind what was sent to it before; of a server that lost its
// power, after a while.
func (cc *clientConn) cut() {
	if cc.closed {
		return
	}
	cc.closed = true
	w := cc.c.w
	cc.rc.Closed()
	if i := slices.Index(cc.s.clientConns, cc); i >= 0 {
		cc.s.clientConns = slices.Delete(cc.s.clientConns, i, i+1)
	}
	at := max(cc.lastOut, w.queue.now+w.net.clientLatency())
	w.queue.add(event{at: at, run: func() { cc.c.lost(cc, "the server has closed it") }})
}

// leave ends the client's end: the server comes to know of it later.
func (cc *clientConn) leave() {
	cc.ended = true
	w := cc.c.w
	at := max(cc.lastIn, w.queue.now+w.net.clientLatency())
	w.queue.add(event{at: at, srv: cc.s, life: cc.life, run: cc.cut})
}
