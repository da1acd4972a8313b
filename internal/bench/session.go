package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// state is where a session stands.
type state uint8

const (
	stateClosed     state = iota // there is no connection
	stateConnecting              // the socket is not connected yet
	stateGreeting                // the ConnectRequest has no answer yet
	stateReady
)

// stamp is what is remembered of a request until it is answered.
type stamp struct {
	at    int64 // when it was sent, or due: latencies count from there
	write bool
}

// session is a session with its connection, if it has one at the moment. It belongs to one thread.
type session struct {
	index  int // of all sessions of the run
	server int // the index of the server that it is on, or tries
	state  state
	// gen counts the sockets: an event of an earlier one does not count.
	gen  uint32
	fd   int   // epoll's
	slot int32 // epoll's
	pipe *pipe // portable's

	id       zxid.SessionID // 0 before the first connection
	password []byte
	timeout  time.Duration
	zxid     zxid.Zxid // the highest one seen

	// next is the xid of the next request, want that of the next reply, flying the number of requests in between.
	next, want int32
	flying     int
	sent       []stamp // by the low bits of the xid

	rest    []byte // the beginning of a frame
	pending []byte // what the socket did not take yet
	// Times on the thread's clock: since when the state holds, the last bytes out and in, and when to connect again; 0 is never.
	since, spoke, heard, retry int64
	pinged                     int64 // when the ping was sent that is not answered, 0 if there is none

	opened int64  // of the workload: when the connection was begun
	serial uint32 // of the workload: how many requests were made
	lock   lockState
}

// nextXid is the xid that follows another: from 1, since 0 and below have meanings.
func nextXid(x int32) int32 {
	if x == math.MaxInt32 {
		return 1
	}
	return x + 1
}

func newSession(index int, c *Config) *session {
	slots := slotsMin // more than are flying at a time, so that no two share a slot, even where xids start again
	for slots < 2*c.Outstanding {
		slots *= 2
	}
	return &session{index: index, server: index % len(c.Servers), sent: make([]stamp, slots), next: 1, want: 1, fd: -1}
}

// take gives a request that is due or sent at that time its xid.
func (s *session) take(at int64, write bool) (xid int32) {
	xid = s.next
	s.sent[int(xid)&(len(s.sent)-1)] = stamp{at, write}
	s.next = nextXid(xid)
	s.flying++
	return xid
}

// connect begins to connect to the session's server.
func (t *thread) connect(s *session) error {
	s.gen++
	s.state, s.since, s.retry = stateConnecting, t.now, 0
	s.next, s.want, s.flying, s.pinged = 1, 1, 0, 0
	s.rest, s.pending = s.rest[:0], s.pending[:0]
	if err := t.poll.dial(s, t.run.addrs[s.server]); err != nil {
		s.state = stateClosed
		return t.work.lost(s, 0, fmt.Errorf("%s: %w", t.run.Servers[s.server], err))
	}
	t.open++
	return nil
}

// greet sends the ConnectRequest on a socket that is connected.
func (t *thread) greet(s *session) error {
	if err := t.poll.dialled(s); err != nil {
		return t.lost(s, err)
	}
	password := s.password
	if password == nil {
		password = make([]byte, wire.PasswordBytes)
	}
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	req := wire.ConnectRequest{
		LastZxidSeen: s.zxid, TimeoutMs: int32(t.run.SessionTimeout.Milliseconds()), SessionID: s.id, Password: password, HasReadOnly: true,
	}
	req.Encode(&e)
	wire.EndFrame(&e, start)
	s.state = stateGreeting
	return t.send(s, e.Bytes())
}

// greeted takes the answer to the ConnectRequest.
func (t *thread) greeted(s *session, frame []byte) error {
	var resp wire.ConnectResponse
	d := jute.NewDecoder(frame, len(frame))
	resp.Decode(&d)
	if d.Err() != nil {
		return fmt.Errorf("%s: answer to the handshake: %w", t.run.Servers[s.server], d.Err())
	}
	if resp.SessionID == 0 || resp.TimeoutMs <= 0 {
		s.id, s.password = 0, nil
		return t.lost(s, wire.CodeSessionExpired)
	}
	s.id, s.password = resp.SessionID, append(s.password[:0], resp.Password...)
	s.timeout = time.Duration(resp.TimeoutMs) * time.Millisecond
	s.state, s.since = stateReady, t.now
	return t.work.ready(s)
}

// send writes frames, or what the socket takes of them; the rest follows when there is room.
func (t *thread) send(s *session, frames []byte) error {
	s.spoke = t.now
	if len(s.pending) > 0 {
		s.pending = append(s.pending, frames...)
		return nil
	}
	n, err := t.poll.write(s, frames)
	if err != nil && !errors.Is(err, errAgain) {
		return t.lost(s, err)
	}
	if n < len(frames) {
		s.pending = append(s.pending, frames[n:]...)
	}
	return nil
}

// flush writes what is pending.
func (t *thread) flush(s *session) error {
	n, err := t.poll.write(s, s.pending)
	if err != nil && !errors.Is(err, errAgain) {
		return t.lost(s, err)
	}
	s.pending = append(s.pending[:0], s.pending[n:]...)
	if len(s.pending) == 0 && s.state == stateReady {
		return t.work.settled(s)
	}
	return nil
}

// request sends one request that is not from a template.
func (t *thread) request(s *session, op wire.Op, record wire.Record) error {
	return t.send(s, t.encode(nil, s, op, record))
}

// encode appends a request that is not from a template to b.
func (t *thread) encode(b []byte, s *session, op wire.Op, record wire.Record) []byte {
	var e jute.Encoder
	e.Reset(b)
	xid := s.take(t.now, op.Info().Class == wire.ClassWrite)
	t.flying++
	wire.AppendRequest(&e, wire.RequestHeader{Xid: xid, Op: op}, record)
	return e.Bytes()
}

// pingFrame is a whole ping.
var pingFrame = func() []byte {
	var e jute.Encoder
	wire.AppendRequest(&e, wire.RequestHeader{Xid: wire.XidPing, Op: wire.OpPing}, nil)
	return e.Bytes()
}()

func (t *thread) ping(s *session) error {
	s.pinged = t.now
	return t.send(s, pingFrame)
}

// drop ends the connection. What was flying stays unanswered; how much that was is returned.
func (t *thread) drop(s *session) (lost int) {
	if s.state == stateClosed {
		return 0
	}
	lost = s.flying
	t.flying -= lost
	t.open--
	t.poll.cut(s)
	s.state, s.flying, s.gen = stateClosed, 0, s.gen+1
	return lost
}

// lost is drop for connections that were not meant to end.
func (t *thread) lost(s *session, cause error) error {
	was := s.state
	n := t.drop(s)
	addr := t.run.Servers[s.server]
	switch {
	case errors.Is(cause, io.EOF) && was == stateGreeting:
		cause = fmt.Errorf("%s closed the connection in answer to the handshake: it may not be serving, or its maxClientCnxns may be "+
			"too low for %d sessions (raise it, or use fewer --sessions)", addr, t.run.Sessions)
	case errors.Is(cause, io.EOF):
		cause = fmt.Errorf("%s closed the connection", addr)
	default:
		cause = fmt.Errorf("%s: %w", addr, cause)
	}
	return t.work.lost(s, n, cause)
}

// read takes what the socket has, and hands over the frames in it.
func (t *thread) read(s *session, ended bool) error {
	for gen := s.gen; ; {
		kept := copy(t.in, s.rest)
		n, err := t.poll.read(s, t.in[kept:])
		if errors.Is(err, errAgain) {
			return nil
		}
		t.now = t.clock()
		if err != nil {
			return t.lost(s, err)
		}
		s.heard = t.now
		full := kept+n == len(t.in)
		used, err := t.frames(s, t.in[:kept+n])
		if err != nil || s.gen != gen {
			return err
		}
		s.rest = append(s.rest[:0], t.in[used:kept+n]...)
		if s.state == stateReady {
			if err := t.work.settled(s); err != nil || s.gen != gen {
				return err
			}
		}
		if !full && !ended {
			return nil
		}
		t.grow(s.rest)
	}
}

// frames hands over all whole frames in b and returns where the rest begins.
func (t *thread) frames(s *session, b []byte) (used int, err error) {
	for gen := s.gen; len(b)-used >= wire.FrameHeadBytes; {
		n := int(int32(binary.BigEndian.Uint32(b[used:])))
		if n < 0 || n > frameBytesMax {
			return used, fmt.Errorf("%s: %w", t.run.Servers[s.server], frameError(n))
		}
		end := used + wire.FrameHeadBytes + n
		if end > len(b) {
			break
		}
		if err := t.frame(s, b[used+wire.FrameHeadBytes:end]); err != nil || s.gen != gen {
			return end, err
		}
		used = end
	}
	return used, nil
}

// frameError says that no frame can be so long.
func frameError(n int) error {
	return fmt.Errorf("a frame of %d bytes is announced: this does not seem to be a ZooKeeper server", n)
}

// grow makes room for the frame that begins with rest.
func (t *thread) grow(rest []byte) {
	if len(rest) < wire.FrameHeadBytes {
		return
	}
	if whole := wire.FrameHeadBytes + int(binary.BigEndian.Uint32(rest)); whole > len(t.in) {
		t.in = make([]byte, whole+readBytes)
	}
}

// frame takes one frame. What is no reply to the oldest request is a ping's, a watch event, or wrong.
func (t *thread) frame(s *session, f []byte) error {
	if s.state == stateGreeting {
		return t.greeted(s, f)
	}
	if len(f) < wire.ReplyHeaderBytes {
		return fmt.Errorf("%s sent a reply of %d bytes", t.run.Servers[s.server], len(f))
	}
	xid, code := int32(binary.BigEndian.Uint32(f)), wire.Code(int32(binary.BigEndian.Uint32(f[12:])))
	if xid == s.want && s.flying > 0 {
		s.want = nextXid(xid)
		s.flying--
		t.flying--
		s.zxid = max(s.zxid, zxid.Zxid(binary.BigEndian.Uint64(f[4:])))
		return t.work.replied(s, &s.sent[int(xid)&(len(s.sent)-1)], code, f[wire.ReplyHeaderBytes:])
	}
	switch xid {
	case wire.XidPing:
		at := s.pinged
		s.pinged = 0
		return t.work.ponged(s, at)
	case wire.XidNotification:
		return t.work.event(s, f[wire.ReplyHeaderBytes:])
	}
	return fmt.Errorf("%s answered the request with xid %d where that with xid %d was due (%d outstanding)", t.run.Servers[s.server],
		xid, s.want, s.flying)
}
