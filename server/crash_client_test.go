package server_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"zabra/jute"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/zab/zxid"
)

// crashClient is a client of the crash test. It outlives the servers, as its session may.
type crashClient struct {
	w      *crashWorld
	remote netip.AddrPort

	conn        *replica.Conn // nil: not connected
	established bool
	waiting     bool // the server wants no more requests for now
	ended       bool // the session's close was sent: nothing follows

	id        zxid.SessionID
	password  []byte
	timeoutMs int32
	xid       int32
	lastSeen  zxid.Zxid
	sent      []*crashRequest // on this connection, not answered yet
	in        []byte
}

// answer is one frame that came from the server. Handshakes count as replies with the zxid of their session.
type answer struct {
	c      *crashClient
	z      zxid.Zxid
	header wire.ReplyHeader
	body   []byte
	req    *crashRequest // nil for a handshake
}

// connect begins a handshake, with the session that the client has or for a new one.
func (c *crashClient) connect() {
	c.conn = c.w.srv.OpenConn(c.remote)
	c.established, c.waiting, c.ended, c.sent, c.in = false, false, false, nil, nil
	if c.id == 0 {
		c.timeoutMs = int32(2000 + c.w.rng.IntN(60000))
	}
	var e jute.Encoder
	req := wire.ConnectRequest{LastZxidSeen: c.lastSeen, TimeoutMs: c.timeoutMs, SessionID: c.id, Password: c.password, HasReadOnly: true}
	req.Encode(&e)
	c.receive(e.Bytes())
}

// send hands over a request.
func (c *crashClient) send(r *crashRequest) {
	c.xid++
	if r.xid = c.xid; r.op == wire.OpPing {
		r.xid = wire.XidPing
	}
	var e jute.Encoder
	wire.AppendRequest(&e, wire.RequestHeader{Xid: r.xid, Op: r.op}, r.record())
	c.sent = append(c.sent, r)
	if !r.isRead() {
		c.w.requests[requestID{c.id, r.xid}] = r
	}
	c.ended = r.op == wire.OpCloseSession
	c.receive(e.Bytes()[wire.FrameHeadBytes:])
}

func (c *crashClient) receive(frame []byte) {
	verdict, err := c.conn.Receive(frame, c.w.srv.Now())
	c.w.ok(err, "request of %v", c.remote)
	c.waiting = verdict == replica.Wait
}

// drop ends the connection without a word. What is in flight is never answered.
func (c *crashClient) drop() {
	c.conn.Closed()
	c.forget()
}

func (c *crashClient) forget() {
	c.conn, c.sent, c.established = nil, nil, false
}

// ready tells whether the client may send a request.
func (c *crashClient) ready() bool { return c.conn != nil && c.established && !c.waiting && !c.ended }

// collect takes what the server has answered. Each reply must be that to the oldest request.
func (c *crashClient) collect() (list []answer) {
	if c.conn == nil {
		return nil
	}
	select {
	case <-c.conn.Resumed():
		c.waiting = false
	default:
	}
	out, fin := c.conn.Output(nil)
	c.in = append(c.in, out...)
	for len(c.in) > 0 {
		d := jute.NewDecoder(c.in, jute.FieldBytesMaxDefault)
		frame := d.Buffer()
		c.w.ok(d.Err(), "output of %v", c.remote)
		c.in = d.Rest()
		list = append(list, c.parse(frame))
	}
	if fin {
		c.conn.Closed()
		c.forget()
	}
	return list
}

func (c *crashClient) parse(frame []byte) answer {
	d := jute.NewDecoder(frame, jute.FieldBytesMaxDefault)
	if !c.established {
		return c.parseConnect(&d)
	}
	a := answer{c: c}
	a.header.Decode(&d)
	c.w.ok(d.Err(), "reply")
	c.w.require(len(c.sent) > 0 && c.sent[0].xid == a.header.Xid, "%v got a reply to %d, sent are %v", c.remote, a.header.Xid, len(c.sent))
	a.z, a.body, a.req = a.header.Zxid, d.Rest(), c.sent[0]
	c.sent = c.sent[1:]
	c.lastSeen = max(c.lastSeen, a.z)
	return a
}

// parseConnect takes the answer to a handshake: a session, or the word that it is over. Both must be true, and certain.
func (c *crashClient) parseConnect(d *jute.Decoder) answer {
	var resp wire.ConnectResponse
	resp.Decode(d)
	c.w.ok(d.Err(), "handshake")
	born, died := c.w.sessionLife(cmp.Or(resp.SessionID, c.id))
	c.established = resp.SessionID != 0
	if !c.established {
		c.w.require(c.id != 0 && died != 0, "the living session %v was refused", c.id)
		c.id, c.password = 0, nil
		return answer{c: c, z: died}
	}
	durable := c.w.disk.durable()
	c.w.require(born != 0 && (died == 0 || died > durable), "session %v was accepted: begun by %v, ended by %v", resp.SessionID, born, died)
	c.w.require(c.id == 0 || c.id == resp.SessionID, "session %v instead of %v", resp.SessionID, c.id)
	c.id, c.password, c.timeoutMs = resp.SessionID, slices.Clone(resp.Password), resp.TimeoutMs
	return answer{c: c, z: born}
}

// String tells what an answer is about.
func (a *answer) String() string {
	if a.req == nil {
		return fmt.Sprintf("handshake of %v", a.c.remote)
	}
	return fmt.Sprintf("reply to %v %d of session %v at %v", a.req.op, a.req.xid, a.c.id, a.z)
}
