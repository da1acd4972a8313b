package server_test

import (
	"fmt"
	"slices"
	"time"

	"zabra/jute"
)

const (
	goldenReplyWait  = 10 * time.Second
	goldenCloseWait  = 5 * time.Second
	goldenRefuseWait = 1500 * time.Millisecond // for the end of the connection after a refusal that ends it
	goldenKickWait   = time.Second             // for the end of the connection that a session had before
	goldenPollPause  = 100 * time.Millisecond
)

// goldenSession is what a name of a recording stands for: a connection and the session that it had last.
type goldenSession struct {
	name    string
	conn    *goldenConn
	id      int64
	passwd  []byte
	timeout int32
	over    bool  // it was closed by request
	last    int64 // zxid of the last recorded reply that had one
	pending []goldenRequest
}

// goldenRun replays one recording against one server.
type goldenRun struct {
	addr     string
	reader   goldenReader
	sessions map[string]*goldenSession
	order    []*goldenSession
	saved    map[string]string
	out      goldenResults    // of the step under way
	early    map[string][]any // events that the next step waits for and the last one has brought
	hidden   int32            // error code of the last reply that was not recorded
}

func newGoldenRun(addr string, base int64) *goldenRun {
	return &goldenRun{
		addr:     addr,
		reader:   goldenReader{sessions: map[int64]string{}, times: map[int64]int64{}, base: base},
		sessions: map[string]*goldenSession{},
		saved:    map[string]string{},
		early:    map[string][]any{},
	}
}

// close ends all connections.
func (r *goldenRun) close() {
	for _, s := range r.order {
		if s.conn != nil {
			_ = s.conn.nc.Close()
			for range s.conn.frames {
			}
		}
	}
}

// do runs a step and returns what arrived.
func (r *goldenRun) do(step *goldenStep) goldenResults {
	r.out, r.early = goldenResults(r.early), map[string][]any{}
	s := r.session(step.Session)
	switch step.Op {
	case "connect":
		r.connect(s, step.Args)
	case "ensure":
		r.ensure(s)
	case "drop":
		if s.conn != nil {
			s.conn.drop(step.Args.truth("reset"))
			s.conn = nil
		}
	case "tcp":
		r.dial(s)
	case "raw":
		r.raw(s, step.Args)
	case "sleep":
		r.wait(nil, milliseconds(step.Args, "ms", 0), func() bool { return false })
	case "await":
		r.await(s, step.Args)
	case "fourlw":
		r.fourLetterWord(step.Args)
	case "par":
		r.parallel(step.Steps)
	case "batch":
		r.requests(s, step.Steps, step.Args, true)
	default:
		r.requests(s, []goldenStep{*step}, step.Args, false)
	}
	r.barriers()
	if step.Op == "par" {
		r.summarize(step.Steps)
	}
	return r.out
}

// keepEarly takes out of what a step has brought the events that the next one is there to wait for. What the server does by
// itself, such as the removal of an empty container, may come a moment before anybody waits for it.
func (r *goldenRun) keepEarly(got, want goldenResults, next *goldenStep) {
	if next.Op != "await" || next.Args.text("what", "event") != "event" {
		return
	}
	list := got[next.Session]
	for surplus := countEvents(list) - countEvents(want[next.Session]); surplus > 0 && isGoldenEvent(list[len(list)-1]); surplus-- {
		last := len(list) - 1
		r.early[next.Session] = append([]any{list[last]}, r.early[next.Session]...)
		list = list[:last]
	}
	got[next.Session] = list
}

func milliseconds(a goldenArgs, name string, fallback time.Duration) time.Duration {
	return time.Duration(a.integer(name, fallback.Milliseconds())) * time.Millisecond
}

func (r *goldenRun) session(name string) *goldenSession {
	if s, ok := r.sessions[name]; ok {
		return s
	}
	s := &goldenSession{name: name}
	if name != "" {
		r.sessions[name] = s
		r.order = append(r.order, s)
	}
	return s
}

func (r *goldenRun) add(s *goldenSession, o goldenObject) { r.out[s.name] = append(r.out[s.name], o) }

// wait takes frames of s, if it is not nil, until done or until the time is up, and keeps the other sessions alive
// meanwhile. It reports whether done became true.
func (r *goldenRun) wait(s *goldenSession, limit time.Duration, done func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	alive := time.NewTicker(goldenKeepAlivePause)
	defer alive.Stop()
	for !done() {
		var frames chan []byte
		if s != nil && s.conn != nil && !s.conn.ended {
			frames = s.conn.frames
		}
		select {
		case frame, ok := <-frames:
			r.take(s, frame, ok)
		case <-alive.C:
			r.keepAlive()
		case <-deadline.C:
			return false
		}
	}
	return true
}

// keepAlive pings whom nobody else keeps alive. A session with a request under way is alive anyhow.
func (r *goldenRun) keepAlive() {
	for _, s := range r.order {
		if c := s.conn; c != nil && c.inOrder && !c.mute && !c.ended && len(s.pending) == 0 {
			c.sendPing()
		}
	}
}

// take looks at one frame of s, or at its connection's end.
func (r *goldenRun) take(s *goldenSession, frame []byte, ok bool) {
	if !ok {
		s.conn.ended = true
		s.pending = nil
		r.add(s, goldenObject{"k": "closed"})
		return
	}
	if len(s.pending) > 0 && s.pending[0].op == goldenOps["createSession"] && (len(frame) == 36 || len(frame) == 37) {
		s.pending = s.pending[1:]
		s.conn.greet = true
	}
	if s.conn.greet {
		s.conn.greet = false
		r.greeting(s, frame)
		return
	}
	d := jute.NewDecoder(frame, goldenFrameBytesMax)
	h := goldenHead{xid: d.Int32(), zxid: d.Int64(), err: d.Int32()}
	if d.Err() != nil {
		r.add(s, goldenObject{"k": "frame"})
		return
	}
	if h.xid >= goldenBarrierXid {
		return // a late barrier, or a request that took such an xid: the recorder did not see that answer either
	}
	i := slices.IndexFunc(s.pending, func(q goldenRequest) bool { return q.xid == h.xid })
	switch {
	case i >= 0:
	case h.xid == -1:
		r.add(s, r.reader.event(h, &d))
		return
	case h.xid == goldenXids["ping"] && s.conn.pings > 0:
		s.conn.pings--
		return
	}
	var req *goldenRequest
	if len(s.pending) > 0 {
		q := s.pending[max(i, 0)]
		s.pending = slices.Delete(s.pending, max(i, 0), max(i, 0)+1)
		req = &q
	}
	if req != nil && req.hidden {
		r.hidden = h.err
		return
	}
	r.reply(s, h, r.reader.reply(h, &d, req, i >= 0), req)
}

// reply notes a reply and what follows from it.
func (r *goldenRun) reply(s *goldenSession, h goldenHead, o goldenObject, req *goldenRequest) {
	if h.zxid > 0 {
		s.last = h.zxid
	}
	if req != nil && req.op == goldenOps["close"] && h.err == 0 {
		s.over = true
	}
	if path, ok := o["path"].(string); ok && req != nil && req.save != "" {
		r.saved[req.save] = path
	}
	r.add(s, o)
}

// requests sends one or more requests in one piece and waits for the replies.
func (r *goldenRun) requests(s *goldenSession, steps []goldenStep, a goldenArgs, batch bool) {
	if s.conn == nil || s.conn.ended {
		r.add(s, goldenObject{"k": "noconn"})
		return
	}
	s.conn.write(r.encode(s, steps, batch))
	if a.truth("noreply") {
		s.pending = nil
		return
	}
	before := len(r.out[s.name])
	if !r.wait(s, milliseconds(a, "wait", goldenReplyWait), func() bool { return len(s.pending) == 0 }) {
		s.pending = nil
		r.add(s, goldenObject{"k": "none", "of": "reply"})
		return
	}
	r.awaitEnd(s, before)
}

func (r *goldenRun) encode(s *goldenSession, steps []goldenStep, batch bool) []byte {
	var frames []byte
	for i := range steps {
		frame, req := encodeRequest(&steps[i], s.conn.nextXid, r.saved, func(v any) int64 { return r.zxid(v, s.name) })
		if batch {
			req.at = i
		}
		if steps[i].Args.has("_len") {
			s.conn.inOrder = false
		}
		frames = append(frames, frame...)
		s.pending = append(s.pending, req)
	}
	return frames
}

func (r *goldenRun) zxid(v any, session string) int64 {
	return parseZxid(v, session, r.reader.base, func(name string) int64 { return r.session(name).last })
}

// awaitEnd waits for the end of a connection that the last reply announces.
func (r *goldenRun) awaitEnd(s *goldenSession, before int) {
	limit := time.Duration(0)
	for _, x := range r.out[s.name][before:] {
		if o := x.(goldenObject); o["k"] == "reply" && (o["err"] == int32(-6) || o["err"] == int32(-115)) {
			limit = goldenRefuseWait
		}
	}
	if s.over {
		limit = goldenCloseWait
	}
	if limit > 0 {
		r.wait(s, limit, func() bool { return s.conn.ended })
	}
}

// barriers waits until everything that the step caused has arrived.
func (r *goldenRun) barriers() {
	for _, s := range r.order {
		if c := s.conn; c != nil && c.inOrder && !c.mute && !c.ended {
			r.barrier(s)
		}
	}
	for _, s := range r.order {
		r.drain(s)
	}
}

func (r *goldenRun) barrier(s *goldenSession) {
	xid, reached := s.conn.sendBarrier(), false
	deadline := time.After(goldenReplyWait)
	for !reached && !s.conn.ended {
		select {
		case frame, ok := <-s.conn.frames:
			if ok && len(frame) >= 16 {
				d := jute.NewDecoder(frame, goldenFrameBytesMax)
				if d.Int32() == xid {
					reached = true
					d.Int64()
					if err := d.Int32(); err != -101 {
						r.add(s, goldenObject{"k": "barrier", "err": err})
					}
					continue
				}
			}
			r.take(s, frame, ok)
		case <-deadline:
			r.add(s, goldenObject{"k": "none", "of": "barrier"})
			return
		}
	}
}

// drain takes what has arrived without a barrier.
func (r *goldenRun) drain(s *goldenSession) {
	for s.conn != nil && !s.conn.ended {
		select {
		case frame, ok := <-s.conn.frames:
			r.take(s, frame, ok)
		default:
			return
		}
	}
}

// parallel sends one request on each of several sessions at once.
func (r *goldenRun) parallel(steps []goldenStep) {
	for i := range steps {
		s := r.session(steps[i].Session)
		if s.conn == nil || s.conn.ended {
			r.add(s, goldenObject{"k": "closed"})
			continue
		}
		s.conn.write(r.encode(s, steps[i:i+1], false))
	}
	for i := range steps {
		s := r.session(steps[i].Session)
		r.wait(s, goldenReplyWait, func() bool { return len(s.pending) == 0 })
	}
}

// summarize turns what a par step brought into the little that is certain.
func (r *goldenRun) summarize(steps []goldenStep) {
	const errClosed = 9999
	errs, events := []int{}, 0
	for _, list := range r.out {
		for _, x := range list {
			switch o := x.(goldenObject); o["k"] {
			case "reply":
				errs = append(errs, int(o["err"].(int32)))
			case "closed":
				errs = append(errs, errClosed)
			case "event":
				events++
			}
		}
	}
	slices.Sort(errs)
	o := goldenObject{"k": "par", "errs": errs}
	if events > 0 {
		o["events"] = events
	}
	if len(errs) != len(steps) {
		o["what"] = fmt.Sprint(r.out)
	}
	r.out = goldenResults{"*": {o}}
}
