package sim

import (
	"bytes"
	"errors"

	"zabra/jute"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/zab/zxid"
)

// client is a client as the protocol knows it: one session at a time, requests in order, back to another server when the
// connection is lost. It knows what it may expect, and compares.
type client struct {
	w     *world
	index int

	conn        *clientConn // nil: not connected
	connected   bool        // the handshake is done
	session     zxid.SessionID
	password    []byte
	timeoutMs   int32
	xid         int32
	lastSeen    zxid.Zxid
	lastHeard   Micros
	lastSent    Micros
	sent        []*request // on this connection, not answered
	watches     []*watch
	names       []string // nodes that it has created and may delete
	versions    map[string]int32
	server      zxid.ServerID // it was last connected to
	attempt     uint64
	silent      bool // it stands still: its session is to expire
	stopped     bool
	ending      bool // closeSession was sent
	thinking    bool // the next request is planned
	connectedAt Micros
	// proved is set when a write that was sent after the faults has been answered.
	proved bool
}

func newClient(w *world, index int) *client {
	return &client{w: w, index: index, versions: map[string]int32{}}
}

// connect tries a server, and another one if that does not serve.
func (c *client) connect() {
	if c.conn != nil || c.stopped {
		return
	}
	w := c.w
	c.attempt++
	attempt := c.attempt
	s := w.servers[w.clientRnd.IntN(len(w.servers))]
	w.after(w.net.clientLatency(), func() {
		if c.attempt != attempt || c.conn != nil || c.stopped {
			return
		}
		if !s.running || s.pausedUntil > w.queue.now || !s.status.Serving {
			w.after(w.clientRnd.between(5*millisecond, 120*millisecond), c.connect)
			return
		}
		c.open(s)
	})
}

// open sends the handshake: for a new session, or for the one that the client has.
func (c *client) open(s *server) {
	c.conn = openConn(c, s)
	c.connected, c.ending, c.sent = false, false, nil
	c.lastHeard = c.w.queue.now
	if c.session == 0 {
		c.timeoutMs = int32(sessionTimeoutMinMs + c.w.clientRnd.IntN(sessionTimeoutMaxMs-sessionTimeoutMinMs))
		c.lastSeen = 0
	}
	var e jute.Encoder
	req := wire.ConnectRequest{LastZxidSeen: c.lastSeen, TimeoutMs: c.timeoutMs, SessionID: c.session, Password: c.password, HasReadOnly: true}
	if req.Password == nil {
		req.Password = make([]byte, wire.PasswordBytes)
	}
	req.Encode(&e)
	c.w.note(0, "client connects", int64(c.index), int64(s.id))
	c.conn.toServer(bytes.Clone(e.Bytes()))
	c.watchdog(c.conn)
}

// watchdog keeps the session alive with pings, and gives a silent server up.
func (c *client) watchdog(cc *clientConn) {
	third := Micros(c.timeoutMs) * millisecond / 3
	c.w.after(third/2, func() {
		if c.conn != cc {
			return
		}
		now := c.w.queue.now
		if now-c.lastHeard > 2*third {
			c.lost(cc, "the server is silent")
			return
		}
		if c.connected && !c.silent && !c.ending && now-c.lastSent > third/2 {
			c.request(&request{op: wire.OpPing, xid: wire.XidPing})
		}
		c.watchdog(cc)
	})
}

// lost ends a connection. What was asked for and not answered has an unknown outcome.
func (c *client) lost(cc *clientConn, why string) {
	if c.conn != cc {
		return
	}
	w := c.w
	w.noteText(0, "client", "%d has lost s%d: %s", c.index, cc.s.id, why)
	if !cc.ended {
		cc.leave()
	}
	for _, r := range c.sent {
		if r.isWrite() {
			w.count.Unknown++
		}
	}
	c.conn, c.connected, c.sent = nil, false, nil
	w.after(w.clientRnd.between(0, 60*millisecond), c.connect)
}

// refused is told why a server has thrown the connection away.
func (c *client) refused(err error) {
	if errors.Is(err, replica.ErrClientAhead) {
		return // this server is behind: another one is tried
	}
	c.w.fail("E-17", "a request of client %d is refused: %v", c.index, err)
}

// receive takes a frame.
func (c *client) receive(cc *clientConn, frame []byte) {
	if c.conn != cc {
		return
	}
	c.lastHeard = c.w.queue.now
	d := jute.NewDecoder(frame, fieldBytesMax)
	if !c.connected {
		c.receiveConnect(&d)
		return
	}
	var h wire.ReplyHeader
	h.Decode(&d)
	if d.Err() != nil {
		c.w.fail("E-17", "client %d cannot read a reply: %v", c.index, d.Err())
	}
	switch h.Xid {
	case wire.XidNotification:
		c.receiveEvent(&d)
		return
	case wire.XidPing:
		c.checkZxid(&h)
		c.popPing()
		return
	}
	c.w.note(0, "client gets a reply", int64(c.index)<<32|int64(uint32(h.Xid)), int64(h.Zxid))
	r := c.pop(&h)
	c.checkZxid(&h)
	c.checkReply(r, &h, &d)
	c.w.count.Ops++
	c.next()
}

// receiveConnect takes the answer to the handshake.
func (c *client) receiveConnect(d *jute.Decoder) {
	var resp wire.ConnectResponse
	resp.Decode(d)
	w := c.w
	if d.Err() != nil {
		w.fail("E-17", "client %d cannot read the answer to its handshake: %v", c.index, d.Err())
	}
	if resp.SessionID == 0 {
		c.expired()
		return
	}
	h := w.ghost.sessions[resp.SessionID]
	if h == nil {
		w.fail("E-28", "client %d gets the session %v, which nobody has created", c.index, resp.SessionID)
	}
	if c.session != 0 && resp.SessionID != c.session {
		w.fail("E-28", "client %d asks for session %v and gets %v", c.index, c.session, resp.SessionID)
	}
	fresh := c.session == 0
	if !fresh && c.server != c.conn.s.id {
		w.count.Moves++
	}
	c.session, c.password, c.timeoutMs = resp.SessionID, bytes.Clone(resp.Password), resp.TimeoutMs
	c.connected, c.server, c.connectedAt = true, c.conn.s.id, c.w.queue.now
	w.note(0, "client has a session", int64(c.index), int64(resp.SessionID))
	if fresh {
		c.watches, c.names = nil, nil
		c.makeParents()
	} else if len(c.watches) > 0 {
		c.setWatches()
	}
	c.next()
}

// expired takes the word that the session is over: it must be true.
func (c *client) expired() {
	h := c.w.ghost.sessions[c.session]
	if c.session == 0 || h == nil || h.died == 0 {
		c.w.fail("E-28", "client %d is told that its session %v is over, which lives", c.index, c.session)
	}
	c.w.note(0, "client has lost its session", int64(c.index), int64(c.session))
	cc := c.conn
	c.session, c.password, c.watches = 0, nil, nil
	c.lost(cc, "the session is over")
}

// next plans the next request.
func (c *client) next() {
	w := c.w
	if c.conn == nil || !c.connected || c.stopped || len(c.sent) >= framesMax {
		return
	}
	if c.thinking {
		return
	}
	c.thinking = true
	think := w.clientRnd.between(2*millisecond, 700*millisecond)
	if w.clientRnd.chance(3) {
		think = w.clientRnd.between(0, 3*millisecond)
	}
	w.after(think, func() {
		c.thinking = false
		if c.conn != nil && c.connected && !c.stopped && !c.silent && !c.ending && len(c.sent) < framesMax {
			c.act()
		}
	})
}

// fallSilent makes the client stand still for a while, as a stopped process does.
func (c *client) fallSilent(d Micros) {
	c.silent = true
	c.w.after(d, func() {
		c.silent, c.connectedAt = false, c.w.queue.now
		c.next()
	})
}
