package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"

	"zabra/jute"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/zab/zxid"
)

// refusal is a request or connection that was turned away without an answer that says enough.
type refusal struct {
	kind    string // refusals of one kind and address share a line of the log for a while
	remote  netip.AddrPort
	session zxid.SessionID // 0: none
	op      wire.Op
	hasOp   bool
	path    string
	bytes   int
	limit   int // 0: none
	why     string
	noise   bool // from somebody who is no client: not worth a warning
}

// refusals logs refusals: the first of a kind and address at once and in full, then one line in a while that also says
// how many it stands for. Scanners and broken clients repeat themselves by the thousand.
type refusals struct {
	log *zap.Logger

	mu    sync.Mutex
	known map[refusalKey]*refusalState
}

type refusalKey struct {
	kind string
	addr netip.Addr
}

type refusalState struct {
	toldMs     int64
	suppressed int
}

func (r *refusals) init(log *zap.Logger) {
	r.log = log
	r.known = make(map[refusalKey]*refusalState)
}

// note logs a refusal, or counts it.
func (r *refusals) note(nowMs int64, f refusal) {
	suppressed, tell := r.count(nowMs, refusalKey{f.kind, f.remote.Addr()})
	if !tell {
		return
	}
	fields := []zap.Field{zap.Stringer("remote", f.remote)}
	if f.session != 0 {
		fields = append(fields, zap.Stringer("session", f.session))
	}
	if f.hasOp {
		fields = append(fields, zap.Stringer("op", f.op))
	}
	if f.path != "" {
		fields = append(fields, zap.String("path", f.path))
	}
	if f.bytes > 0 {
		fields = append(fields, zap.Int("bytes", f.bytes))
	}
	if f.limit > 0 {
		fields = append(fields, zap.Int("limit", f.limit))
	}
	if suppressed > 0 {
		fields = append(fields, zap.Int("notToldBefore", suppressed))
	}
	if f.noise {
		r.log.Info(f.why, fields...)
		return
	}
	r.log.Warn(f.why, fields...)
}

// count reports whether a refusal of this kind is to be told now, and how many were not since the last one.
func (r *refusals) count(nowMs int64, key refusalKey) (suppressed int, tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	st := r.known[key]
	if st == nil {
		if len(r.known) >= refusalKeysMax {
			r.forget(nowMs)
		}
		r.known[key] = &refusalState{toldMs: nowMs}
		return 0, true
	}
	if nowMs-st.toldMs < refusalQuietMs {
		st.suppressed++
		return 0, false
	}
	suppressed, st.suppressed, st.toldMs = st.suppressed, 0, nowMs
	return suppressed, true
}

// forget makes room: what is old goes, and if nothing is, everything does.
func (r *refusals) forget(nowMs int64) {
	for key, st := range r.known {
		if nowMs-st.toldMs >= refusalQuietMs {
			delete(r.known, key)
		}
	}
	if len(r.known) >= refusalKeysMax {
		clear(r.known)
	}
}

// refused takes the replica's refusals. It is called in the middle of the replica's work and must not wait.
func (s *Server) refused(f replica.Refusal) {
	if f.Backlog {
		// Not a request, but a backlog: the client does not read, so that there is no point in writing what it was sent.
		s.spawn(f.Conn.Owner().(*conn).cut)
	}
	s.refusals.note(s.clock.now().MonoMs, refusal{
		kind: "request " + f.Op.String(), remote: f.Conn.Remote(), session: f.Session, op: f.Op, hasOp: !f.Backlog,
		path: f.Path, bytes: f.Bytes, limit: f.Limit, why: f.Why,
	})
}

// refuse logs why a connection is closed without an answer.
func (c *conn) refuse(err error) {
	f := refusal{remote: c.remote}
	if rc := c.rc.Load(); rc != nil {
		f.session = rc.SessionID()
	}
	var tooLong *lengthError
	switch {
	case errors.Is(err, errClosing):
		return
	case errors.As(err, &tooLong) && !c.greeted:
		f.kind, f.noise, f.bytes, f.limit = "first length", true, tooLong.bytes, tooLong.max
		f.why = fmt.Sprintf("Len error. A message from /%s with advertised length of %d is either a malformed message or too large to process "+
			"(length is greater than jute.maxbuffer=%d)", c.remote, tooLong.bytes, tooLong.max)
		if tooLong.suspect != "" {
			f.why += "; it looks like " + tooLong.suspect
		}
	case errors.As(err, &tooLong):
		f.kind, f.bytes, f.limit = "length", tooLong.bytes, tooLong.max
		f.op, f.path, f.hasOp = c.peek()
		f.why = "request is longer than jute.maxbuffer allows; the connection is closed. Raise it on the servers and the clients, or write less"
	case errors.Is(err, replica.ErrClientAhead):
		f.kind = "client ahead"
		f.why = fmt.Sprintf("Refusing session request for client /%s: %v; client must try another server. "+
			"If this server was restored or wiped, restart the client", c.remote, err)
	default:
		f.kind, f.why = "frame", "connection closed: "+err.Error()
	}
	c.s.refusals.note(c.s.clock.now().MonoMs, f)
}

// peek reads as much of a frame that is too long as is needed to say what it asks for.
func (c *conn) peek() (op wire.Op, path string, ok bool) {
	c.deadline(time.Now().Add(refusedPeekTime))
	c.in.compact()
	for len(c.in.unread()) < refusedPeekBytes && c.fill() == nil {
	}
	b := c.in.unread()
	return describe(b[min(wire.FrameHeadBytes, len(b)):])
}

// describe reads operation and path off the beginning of a request, of which the rest may be missing. The path of a multi
// is that of its first operation.
func describe(b []byte) (op wire.Op, path string, ok bool) {
	if len(b) < wire.RequestHeaderBytes {
		return 0, "", false
	}
	op = wire.Op(int32(binary.BigEndian.Uint32(b[4:])))
	b = b[wire.RequestHeaderBytes:]
	switch op {
	case wire.OpMulti, wire.OpMultiRead:
		const multiHeaderBytes = 9
		b = b[min(multiHeaderBytes, len(b)):]
	case wire.OpSetWatches, wire.OpSetWatches2, wire.OpAuth, wire.OpSASL, wire.OpReconfig:
		return op, "", true
	}
	if len(b) < wire.FrameHeadBytes {
		return op, "", true
	}
	n := int(int32(binary.BigEndian.Uint32(b)))
	b = b[wire.FrameHeadBytes:]
	if n <= 0 || len(b) == 0 || b[0] != '/' {
		return op, "", true
	}
	text := b[:min(n, len(b), refusedPeekBytes)]
	var e jute.Encoder
	e.Buffer(text)
	d := jute.NewDecoder(e.Bytes(), len(text))
	path = string(d.UString())
	if n > len(text) {
		path += "..."
	}
	return op, path, true
}
