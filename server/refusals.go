package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

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
	detail  string // text that may hold words of the client's
	noise   bool   // from somebody who is no client: not worth a warning
}

// refusals logs refusals: the first of a kind and address at once and in full, then one line in a while that also says
// how many it stands for. Scanners and broken clients repeat themselves by the thousand.
//
// A log may block, on a full pipe for one. So what the replica refuses in the middle of its work, even under its locks,
// goes through a queue.
type refusals struct {
	log        *zap.Logger
	queue      chan queuedRefusal
	overflowed atomic.Int64 // those that found the queue full, since a line was last written

	recent recentRefusals

	mu    sync.Mutex
	known map[refusalKey]*refusalState
}

type queuedRefusal struct {
	nowMs int64
	refusal
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
	r.queue = make(chan queuedRefusal, refusalQueueMax)
	r.known = make(map[refusalKey]*refusalState)
}

// enqueue leaves a refusal to the loop. It never waits.
func (r *refusals) enqueue(nowMs int64, f refusal) {
	select {
	case r.queue <- queuedRefusal{nowMs, f}:
	default:
		r.overflowed.Add(1)
	}
}

// refusalLoop logs what was queued, to the end also when the server is being closed.
func (s *Server) refusalLoop() {
	r := &s.refusals
	for {
		select {
		case f := <-r.queue:
			r.note(f.nowMs, f.refusal)
		case <-s.quit:
			for {
				select {
				case f := <-r.queue:
					r.note(f.nowMs, f.refusal)
				default:
					return
				}
			}
		}
	}
}

// note logs a refusal, or counts it. The log may block.
func (r *refusals) note(nowMs int64, f refusal) {
	r.recent.add(nowMs, f)
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
		fields = append(fields, zap.String("path", printable(f.path)))
	}
	if f.detail != "" {
		fields = append(fields, zap.String("detail", printable(f.detail)))
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
	if n := r.overflowed.Swap(0); n > 0 {
		fields = append(fields, zap.Int64("overflowed", n))
	}
	if f.noise {
		r.log.Info(printable(f.why), fields...)
		return
	}
	r.log.Warn(printable(f.why), fields...)
}

// printable makes a text that may come from a client fit for a line of the log: bounded, and quoted if it holds what
// cannot be printed, such as a newline.
func printable(text string) string {
	if len(text) > refusalTextBytesMax {
		text = strings.ToValidUTF8(text[:refusalTextBytesMax], "") + "..."
	}
	for _, c := range text {
		if c == utf8.RuneError || !strconv.IsPrint(c) {
			return strconv.Quote(text)
		}
	}
	return text
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

// refused takes the replica's refusals. It is called in the middle of the replica's work, at times under its locks, and
// must not wait.
func (s *Server) refused(f replica.Refusal) {
	if f.Backlog {
		// Not a request, but a backlog: the client does not read, so that there is no point in writing what it was sent.
		s.spawn(f.Conn.Owner().(*conn).cut)
	}
	told := refusal{
		kind: "request " + f.Op.String(), remote: f.Conn.Remote(), session: f.Session, op: f.Op, hasOp: !f.Backlog,
		path: f.Path, bytes: f.Bytes, limit: f.Limit, why: f.Why,
	}
	if f.Op == wire.OpAuth || f.Op == wire.OpSASL {
		s.meter.authFailed.Add(1)
		// The reason names what the client sent. As a field it cannot pass for anything else in the line.
		told.why, told.detail = "authentication refused", f.Why
	}
	s.refusals.enqueue(s.clock.now().MonoMs, told)
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
		f.why = fmt.Sprintf("Refusing session request for client /%s as %v client must try another server. "+
			"If this server was restored or wiped, restart the client", c.remote, err)
	case refuseThrottled(&f, err):
	default:
		f.kind, f.why = "frame", "connection closed, because its client sent what cannot be read; look at the program at that address: "+err.Error()
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
