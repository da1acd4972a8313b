//go:build interop && linux

package integration

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"zabra/integration/harness"
)

const (
	oracleReplyWait = 10 * time.Second
	oracleGoneWait  = 15 * time.Second
	oraclePollPause = 5 * time.Millisecond
	passwdBytes     = 16
)

// oracleSide is one of the two servers with the sessions of a run.
type oracleSide struct {
	server   *harness.Server
	view     *oracleView
	sessions []*oracleSession
	left     []*oracleSession // those that were left without a close
	barriers int32
}

// oracleSession is a session, whether a connection serves it or not.
type oracleSession struct {
	name    string
	id      int64
	passwd  []byte
	timeout int32
	conn    *oracleConn // nil without
	old     *oracleConn // left behind by an attach
	oldOut  []string    // what came on it in the present step
	out     []string    // what came in the present step
}

// oracleConn is a connection with the requests that are not answered yet.
type oracleConn struct {
	net.Conn
	r       *bufio.Reader
	xid     int32
	waiting []oracleWaiting
	ending  bool // the server has said its last word
}

type oracleWaiting struct{ op, xid int32 }

// What reading a frame can come to.
type oracleGot int

const (
	gotReply oracleGot = iota
	gotEvent
	gotBarrier
	gotEnd  // the server ended the connection
	gotNone // nothing came in time
)

func newOracleSide(server *harness.Server, sessions int) *oracleSide {
	s := &oracleSide{server: server, view: &oracleView{sessions: map[int64]string{}, times: map[int64]int64{}}}
	for i := range sessions {
		s.sessions = append(s.sessions, &oracleSession{name: fmt.Sprintf("s%d", i)})
	}
	return s
}

// do carries a step out and returns what came of it, by session.
func (s *oracleSide) do(step *oracleStep) map[string][]string {
	for _, one := range s.sessions {
		one.out, one.oldOut = nil, nil
	}
	one := s.sessions[step.session]
	switch step.act {
	case actSend:
		s.send(one, step.reqs)
	case actRaw:
		s.raw(one, step.raw)
	case actOpen:
		s.open(one, &step.connect, step.reqs...)
	case actAttach:
		s.attach(one, &step.connect, step.reqs...)
	case actEnsure:
		s.ensure(one)
	case actDrop:
		s.drop(one)
	case actRestart:
		s.restart(one)
	case actAwaitGone:
		if len(step.reqs) > 0 {
			s.send(one, step.reqs)
		}
		s.awaitGone(one, step.path)
	}
	s.settle()
	out := map[string][]string{}
	for _, one := range s.sessions {
		if len(one.out) > 0 {
			out[one.name] = one.out
		}
		if len(one.oldOut) > 0 {
			out[one.name+" old"] = one.oldOut
		}
	}
	if step.loose {
		for _, lines := range out {
			sortEvents(lines)
		}
	}
	return out
}

// settle waits until all that the step caused has arrived: a read on each connection, whose answer comes behind it.
func (s *oracleSide) settle() {
	for _, one := range s.sessions {
		if one.old != nil {
			s.barrier(one.old, &one.oldOut)
			one.old.Close()
			one.old = nil
		}
		if one.conn != nil && s.barrier(one.conn, &one.out) != gotBarrier {
			one.conn.Close()
			one.conn = nil
		}
	}
}

func (s *oracleSide) barrier(c *oracleConn, out *[]string) oracleGot {
	for c.ending { // whether a request still gets through now is open
		if got := s.read(c, out); got == gotEnd || got == gotNone {
			return got
		}
	}
	s.barriers = (s.barriers + 1) & 0xffffff
	xid := oracleBarrierXid + s.barriers
	q := readReq(opExists, oracleBarrierPath, 0)
	_, _ = c.Write(q.frame(xid, 0)) // a connection that is ended tells so when it is read
	for {
		switch got := s.read(c, out); got {
		case gotBarrier, gotEnd, gotNone:
			return got
		}
	}
}

// read takes one frame and adds a line for it.
func (s *oracleSide) read(c *oracleConn, out *[]string) oracleGot {
	frame, err := c.frame()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		*out = append(*out, "none")
		return gotNone
	case err != nil:
		*out = append(*out, "closed")
		return gotEnd
	}
	r := &oracleReader{b: frame}
	xid, zxid, code := r.i32(), r.i64(), r.i32()
	if xid == xidNotification {
		*out = append(*out, s.view.event(zxid, code, r))
		return gotEvent
	}
	if xid >= oracleBarrierXid {
		if code != int32(-101) {
			*out = append(*out, fmt.Sprintf("barrier err%d", code))
		}
		return gotBarrier
	}
	op := int32(0)
	if len(c.waiting) > 0 {
		op = c.waiting[0].op
		c.waiting = c.waiting[1:]
	}
	*out = append(*out, s.view.reply(op, xid, zxid, code, r))
	c.ending = c.ending || code == codeAuthFailed || code == codeUnimplemented && zxid == -1
	return gotReply
}

func (c *oracleConn) frame() ([]byte, error) {
	_ = c.SetReadDeadline(time.Now().Add(oracleReplyWait))
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > oracleFrameBytesMax {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(c.r, body)
	return body, err
}

// send writes the requests in one piece and waits for as many answers.
func (s *oracleSide) send(one *oracleSession, reqs []oracleReq) {
	c := one.conn
	if c == nil {
		one.out = append(one.out, "no connection")
		return
	}
	_, _ = c.Write(s.frames(c, reqs))
	s.take(one, len(reqs))
}

// frames numbers requests and builds them.
func (s *oracleSide) frames(c *oracleConn, reqs []oracleReq) (frames []byte) {
	for i := range reqs {
		xid := reqs[i].xid
		if xid == 0 {
			c.xid++
			xid = c.xid
		}
		frames = append(frames, reqs[i].frame(xid, s.view.base)...)
		c.waiting = append(c.waiting, oracleWaiting{reqs[i].op, xid})
	}
	return frames
}

// take reads until so many answers are there, or no more can come.
func (s *oracleSide) take(one *oracleSession, replies int) {
	for replies > 0 {
		switch s.read(one.conn, &one.out) {
		case gotReply:
			replies--
		case gotEnd, gotNone:
			one.conn.Close()
			one.conn = nil
			return
		}
	}
}

// raw writes bytes as they are; what comes back comes before the barrier's answer.
func (s *oracleSide) raw(one *oracleSession, b []byte) {
	if one.conn == nil {
		one.out = append(one.out, "no connection")
		return
	}
	_, _ = one.conn.Write(b)
}

func (s *oracleSide) dial() (*oracleConn, error) {
	c, err := net.DialTimeout("tcp4", s.server.Addr(), oracleReplyWait)
	if err != nil {
		return nil, err
	}
	return &oracleConn{Conn: c, r: bufio.NewReader(c)}, nil
}

// oracleConnect says how a session is asked for.
type oracleConnect struct {
	timeout int32
	passwd  string // own, wrong, short, long, empty, null, or with the length negative or huge
	lastAdd int64  // added to the last zxid that the session's client has seen
	last    bool   // send that zxid, else 0
	oldForm bool   // leave the last byte of the request out
	proto   int32
	ro      byte // the last byte
	extra   int  // bytes behind the record
	cut     int  // bytes that are missing at the end of the record
}

func (s *oracleSide) connectFrame(one *oracleSession, how *oracleConnect) []byte {
	passwd := bytes.Clone(one.passwd)
	if len(passwd) == 0 {
		passwd = make([]byte, passwdBytes)
	}
	last := int64(0)
	if how.last {
		last = s.view.last + how.lastAdd
	}
	b := oracleBytes{0, 0, 0, 0}.i32(how.proto).i64(last).i32(how.timeout).i64(one.id)
	switch how.passwd {
	case "wrong":
		passwd[3] ^= 1
	case "short":
		passwd = passwd[:passwdBytes-1]
	case "long":
		passwd = append(passwd, 0)
	case "empty":
		passwd = nil
	}
	switch how.passwd {
	case "null":
		b = b.i32(-1)
	case "negative":
		b = b.i32(-2)
	case "huge":
		b = b.i32(0x7ffffff0)
	default:
		b = b.text(string(passwd))
	}
	if !how.oldForm {
		b = b.u8(how.ro)
	}
	b = append(b, make([]byte, how.extra)...)
	b = b[:max(len(b)-how.cut, 4)]
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// open makes a new session in the place of an old one, which is closed. The requests go out in one piece with the one for
// the session.
func (s *oracleSide) open(one *oracleSession, how *oracleConnect, reqs ...oracleReq) {
	if one.conn != nil {
		s.send(one, []oracleReq{closeReq()})
		if one.conn != nil {
			s.barrier(one.conn, &one.out)
			one.conn.Close()
			one.conn = nil
		}
	}
	if one.id != 0 {
		left := *one
		s.left = append(s.left, &left)
	}
	one.id, one.passwd = 0, nil
	s.connect(one, how, reqs...)
}

// attach goes on with a session on a new connection. The old one, if there is any, is for the server to end.
func (s *oracleSide) attach(one *oracleSession, how *oracleConnect, reqs ...oracleReq) {
	one.old, one.conn = one.conn, nil
	s.connect(one, how, reqs...)
}

func (s *oracleSide) connect(one *oracleSession, how *oracleConnect, reqs ...oracleReq) {
	c, err := s.dial()
	if err != nil {
		one.out = append(one.out, "cannot connect: "+err.Error())
		return
	}
	_, _ = c.Write(append(s.connectFrame(one, how), s.frames(c, reqs)...))
	frame, err := c.frame()
	if err != nil {
		one.out = append(one.out, "refused")
		c.Close()
		return
	}
	r := &oracleReader{b: frame}
	proto, timeout, id := r.i32(), r.i32(), r.i64()
	passwd := bytes.Clone(r.take(int(r.i32())))
	line := fmt.Sprintf("connected proto%d timeout%d rest%x", proto, timeout, r.b)
	one.conn = c
	switch {
	case r.short:
		line = fmt.Sprintf("connect answer %x", frame)
	case id == 0:
		line = fmt.Sprintf("rejected proto%d timeout%d rest%x passwd %x", proto, timeout, r.b, passwd)
	case id == one.id:
		line += fmt.Sprintf(" same session, same password %t", bytes.Equal(passwd, one.passwd))
	default:
		line += fmt.Sprintf(" new session, password of %d", len(passwd))
		one.id, one.passwd, one.timeout = id, passwd, timeout
		s.view.sessions[id] = one.name
	}
	one.out = append(one.out, line)
	s.take(one, len(reqs))
}

// ensure gives a session a connection if it has none: to itself if it lives, else to a new one.
func (s *oracleSide) ensure(one *oracleSession) {
	if one.conn != nil {
		return
	}
	if one.id != 0 {
		s.connect(one, &oracleConnect{timeout: oracleTimeoutMs})
		if one.conn != nil && s.barrier(one.conn, &one.out) == gotBarrier {
			return
		}
		if one.conn != nil {
			one.conn.Close()
			one.conn = nil
		}
	}
	s.open(one, &oracleConnect{timeout: oracleTimeoutMs})
}

// drop ends the connection without a word and waits until the server has noticed.
func (s *oracleSide) drop(one *oracleSession) {
	if one.conn == nil {
		return
	}
	port := one.conn.LocalAddr().(*net.TCPAddr).Port
	one.conn.Close()
	one.conn = nil
	deadline := time.Now().Add(oracleReplyWait)
	listed := fmt.Sprintf(":%d[", port)
	for {
		answer, err := harness.FourLetter(s.server.Addr(), "cons")
		if err == nil && answer != "" && !strings.Contains(answer, listed) {
			return
		}
		if time.Now().After(deadline) {
			one.out = append(one.out, "the server keeps the connection")
			return
		}
		time.Sleep(oraclePollPause) // between two looks at the list
	}
}

// restart kills the server and starts it again on what it has on disk. Sessions live on without connections.
func (s *oracleSide) restart(one *oracleSession) {
	s.server.Kill()
	for _, each := range s.sessions {
		if each.conn != nil {
			each.conn.Close()
			each.conn = nil
		}
	}
	if err := s.server.Start(); err != nil {
		one.out = append(one.out, err.Error())
	}
}

// awaitGone waits until a node is deleted by the server.
func (s *oracleSide) awaitGone(one *oracleSession, path string) {
	deadline := time.Now().Add(oracleGoneWait)
	for one.conn != nil {
		c := one.conn
		s.barriers++
		q := readReq(opExists, path, 0)
		_, _ = c.Write(q.frame(oracleBarrierXid, 0))
		var lines []string
		got := gotEvent
		for got == gotEvent {
			got = s.read(c, &lines)
		}
		gone := got != gotBarrier || len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], "barrier err")
		for _, line := range lines {
			if !strings.HasPrefix(line, "barrier err") {
				one.out = append(one.out, line)
			}
		}
		if gone {
			return
		}
		if time.Now().After(deadline) {
			one.out = append(one.out, "not gone: "+path)
			return
		}
		time.Sleep(oraclePollPause) // between two looks at the node
	}
}
