package server_test

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"zabra/jute"
)

const goldenPasswdBytes = 16

// dial gives s a new connection without a session, in the place of an old one.
func (r *goldenRun) dial(s *goldenSession) bool {
	if s.conn != nil {
		s.conn.drop(false)
		s.conn = nil
	}
	s.pending = nil
	c, err := dialGolden(r.addr)
	if err != nil {
		r.add(s, goldenObject{"k": "closed", "dial": err.Error()})
		return false
	}
	s.conn = c
	return true
}

// connect opens a connection and a session, or comes back to one.
func (r *goldenRun) connect(s *goldenSession, a goldenArgs) {
	if !r.dial(s) {
		return
	}
	s.conn.mute = a.truth("mute")
	s.conn.write(r.connectRequest(s, a))
	s.conn.greet = true
	before := len(r.out[s.name])
	r.wait(s, goldenReplyWait, func() bool { return len(r.out[s.name]) > before })
	if len(r.out[s.name]) == before {
		r.add(s, goldenObject{"k": "none", "of": "connect"})
		return
	}
	answer := r.out[s.name][before].(goldenObject)["k"]
	if answer == "rejected" {
		r.wait(s, goldenCloseWait, func() bool { return s.conn.ended })
	}
	if a.has("attach") && answer != "closed" {
		r.awaitKick(s, a.text("attach", ""))
	}
}

func (r *goldenRun) connectRequest(s *goldenSession, a goldenArgs) []byte {
	id, timeout, passwd := int64(0), int32(10000), make([]byte, goldenPasswdBytes)
	last := any("0")
	if name := a.text("attach", ""); name != "" {
		last = "last"
		if n, err := strconv.ParseUint(name, 0, 64); err == nil {
			id = int64(n)
		} else {
			of := r.session(name)
			id, timeout, passwd = of.id, of.timeout, bytes.Clone(of.passwd)
		}
	}
	if v, ok := a["lastZxid"]; ok {
		last = v
	}
	var e goldenEncoder
	e.Int32(0)
	e.Int32(int32(a.integer("proto", 0)))
	e.Int64(r.zxid(last, s.name))
	e.Int32(int32(a.integer("timeout", int64(timeout))))
	e.Int64(id)
	e.Buffer(oddPasswd(passwd, a))
	if ro, ok := a["readOnly"]; !ok || ro != nil {
		e.Bool(a.truth("readOnly"))
	}
	e.PatchInt32(0, int32(e.Len()-4))
	return e.Bytes()
}

func oddPasswd(passwd []byte, a goldenArgs) []byte {
	v, ok := a["passwd"]
	if ok && v == nil {
		return nil
	}
	switch a.text("passwd", "own") {
	case "zero":
		return make([]byte, goldenPasswdBytes)
	case "wrong":
		passwd[0] ^= 1
	case "short":
		return passwd[:len(passwd)-1]
	case "long":
		return append(passwd, 0)
	case "empty":
		return []byte{}
	}
	return passwd
}

// greeting reads the answer to a connect request.
func (r *goldenRun) greeting(s *goldenSession, frame []byte) {
	d := jute.NewDecoder(frame, goldenFrameBytesMax)
	proto, timeout, id, passwd := d.Int32(), d.Int32(), d.Int64(), d.Buffer()
	if d.Err() != nil {
		r.add(s, goldenObject{"k": "frame"})
		return
	}
	o := goldenObject{"k": "connected", "timeout": timeout}
	switch {
	case d.Remaining() == 0:
		o["ro"] = nil
	case d.Bool():
		o["ro"] = true
	}
	if proto != 0 {
		o["proto"] = proto
	}
	if d.Remaining() > 0 {
		o["extra"] = bytesValue(d.Rest(), false)
	}
	switch {
	case bytes.Equal(passwd, make([]byte, goldenPasswdBytes)):
		o["pw"] = "zero"
	case len(passwd) != goldenPasswdBytes:
		o["pw"] = len(passwd)
	default:
		o["pw"] = r.passwdAge(id, passwd)
	}
	if id == 0 {
		o["k"] = "rejected"
		r.add(s, o)
		return
	}
	if _, ok := r.reader.sessions[id]; !ok {
		r.reader.sessions[id] = s.name
	}
	o["session"] = r.reader.sessions[id]
	s.id, s.passwd, s.timeout, s.over = id, bytes.Clone(passwd), timeout, false
	s.conn.inOrder = true
	r.add(s, o)
}

// passwdAge says whether a session's password is the one that it always had.
func (r *goldenRun) passwdAge(id int64, passwd []byte) any {
	for _, s := range r.order {
		if s.id != id || s.passwd == nil {
			continue
		}
		if bytes.Equal(s.passwd, passwd) {
			return "same"
		}
		return "changed"
	}
	return "new"
}

// awaitKick waits for the end of the connection that the session had before somebody came back to it.
func (r *goldenRun) awaitKick(s *goldenSession, attach string) {
	of, ok := r.sessions[attach]
	if !ok {
		return
	}
	for _, other := range r.order {
		if other == s || other.id != of.id || other.conn == nil || other.conn.ended {
			continue
		}
		r.wait(other, goldenKickWait, func() bool { return other.conn.ended })
	}
}

// ensure makes sure that s has a connection that works.
func (r *goldenRun) ensure(s *goldenSession) {
	if c := s.conn; c != nil && !c.ended && c.inOrder {
		before := len(r.out[s.name])
		r.barrier(s)
		if !c.ended {
			if len(r.out[s.name]) == before {
				r.add(s, goldenObject{"k": "alive"})
			}
			return
		}
	}
	if s.id != 0 && !s.over {
		r.connect(s, goldenArgs{"attach": s.name})
		if s.conn != nil && !s.conn.ended {
			return
		}
	}
	r.connect(s, nil)
}

// raw writes bytes as they are and takes what arrives.
func (r *goldenRun) raw(s *goldenSession, a goldenArgs) {
	if s.conn == nil || s.conn.ended {
		r.add(s, goldenObject{"k": "noconn"})
		return
	}
	b := mustHex(a.text("hex", ""))
	if a.has("fill") {
		b = append(b, goldenField(map[string]any{"fill": a["fill"], "len": a["len"]}, r.saved).b...)
	}
	s.conn.inOrder = false
	if as := a.text("as", ""); as != "" {
		s.pending = rawRequests(b, goldenOps[as])
	}
	chunk := int(a.integer("chunk", int64(max(len(b), 1))))
	for len(b) > 0 {
		n := min(chunk, len(b))
		s.conn.write(b[:n])
		if b = b[n:]; len(b) > 0 {
			time.Sleep(5 * time.Millisecond) // the recording's own pace: the bytes are to arrive one piece at a time
		}
	}
	r.takeRaw(s, a)
	s.pending = nil
	if a.truth("clean") && !s.conn.ended {
		s.conn.inOrder = true
	}
}

// rawRequests are the requests in b, as far as it consists of whole frames.
func rawRequests(b []byte, op int32) []goldenRequest {
	var all []goldenRequest
	for d := jute.NewDecoder(b, goldenFrameBytesMax); d.Remaining() > 0; {
		frame := d.Buffer()
		if d.Err() != nil {
			break
		}
		f := jute.NewDecoder(frame, goldenFrameBytesMax)
		all = append(all, goldenRequest{op: op, xid: f.Int32(), at: -1})
	}
	return all
}

func (r *goldenRun) takeRaw(s *goldenSession, a goldenArgs) {
	before := len(r.out[s.name])
	deadline := time.After(milliseconds(a, "wait", 500*time.Millisecond))
	arrived := func() bool { return len(r.out[s.name]) > before }
	for !s.conn.ended && !(a.truth("first") && arrived()) {
		select {
		case frame, ok := <-s.conn.frames:
			s.conn.greet = ok && a.truth("greeting")
			r.take(s, frame, ok)
			continue
		case <-deadline:
		}
		break
	}
	if !arrived() {
		r.add(s, goldenObject{"k": "none", "of": "raw"})
	}
}

// await waits for events, for the end of connections, or for a node to be gone.
func (r *goldenRun) await(s *goldenSession, a goldenArgs) {
	limit := milliseconds(a, "ms", 10*time.Second)
	deadline := time.Now().Add(limit)
	what, ok := a.text("what", "event"), true
	switch what {
	case "event":
		n := int(a.integer("n", 1))
		ok = r.wait(s, limit, func() bool { return countEvents(r.out[s.name]) >= n || s.conn == nil || s.conn.ended })
		ok = ok && countEvents(r.out[s.name]) >= n
	case "close":
		ok = r.wait(s, limit, func() bool { return s.conn == nil || s.conn.ended })
	case "gone":
		ok = r.awaitGone(s, a["path"], deadline)
	default:
		panic("await " + what)
	}
	if !ok {
		r.add(s, goldenObject{"k": "none", "of": what})
	}
	if name := a.text("closed", ""); name != "" {
		other := r.session(name)
		r.drain(other)
		if !r.wait(other, max(time.Until(deadline), 0), func() bool { return other.conn == nil || other.conn.ended }) {
			r.add(other, goldenObject{"k": "none", "of": "close"})
		}
	}
}

func countEvents(list []any) int {
	n := 0
	for _, x := range list {
		if isGoldenEvent(x) {
			n++
		}
	}
	return n
}

// isGoldenEvent tells whether a result, of a run or out of a recording, is an event.
func isGoldenEvent(x any) bool {
	o, ok := x.(goldenObject)
	return ok && o["k"] == "event"
}

// awaitGone asks for a node until there is none. The answers are kept out of the results, events are not.
func (r *goldenRun) awaitGone(s *goldenSession, path any, deadline time.Time) bool {
	for time.Now().Before(deadline) && s.conn != nil && !s.conn.ended {
		step := goldenStep{Op: "exists", Args: goldenArgs{"path": path}}
		frame, req := encodeRequest(&step, s.conn.nextXid, r.saved, nil)
		req.hidden = true
		s.pending = append(s.pending, req)
		s.conn.write(frame)
		if r.wait(s, goldenReplyWait, func() bool { return len(s.pending) == 0 }) && !s.conn.ended && r.hidden == -101 {
			return true
		}
		r.wait(s, goldenPollPause, func() bool { return s.conn.ended })
	}
	return false
}

// fourLetterWord sends a command on a connection of its own and reads the answer to its end.
func (r *goldenRun) fourLetterWord(a goldenArgs) {
	s := &goldenSession{name: "4lw"}
	nc, err := net.DialTimeout("tcp", r.addr, goldenWriteTimeout)
	if err != nil {
		r.add(s, goldenObject{"k": "text", "text": err.Error()})
		return
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(goldenReplyWait))
	_, _ = nc.Write([]byte(a.text("cmd", "")))
	text, _ := io.ReadAll(nc) // however it ends, the text so far counts
	if a.has("prefix") && a.text("prefix", "") != "" {
		r.add(s, goldenObject{"k": "text", "text": strings.HasPrefix(string(text), a.text("prefix", ""))})
		return
	}
	r.add(s, goldenObject{"k": "text", "text": bytesValue(text, false)})
}
