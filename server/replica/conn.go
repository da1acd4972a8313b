package replica

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"zabra/internal/sasl"
	"zabra/jute"
	"zabra/session"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// Verdict tells the reader of a connection how to go on after a frame.
type Verdict uint8

const (
	// Continue: hand over the next frame.
	Continue Verdict = iota
	// Flush: write the output out, waiting for the client if need be, before the next frame.
	Flush
	// Wait: do not read until Resumed delivers. A handshake is on its way, or too much is in flight.
	Wait
	// Closing: read no more. The connection ends when its output is written.
	Closing
)

// The states of a connection, in the order in which it goes through them.
const (
	stateNew         = iota // waiting for the ConnectRequest
	stateConnecting         // the handshake is under way
	stateEstablished        // requests are served
	stateClosing            // nothing more is read
)

// Errors of Receive: the connection is to be closed without an answer.
var (
	ErrShortFrame    = errors.New("frame is shorter than a request header")
	ErrHandshake     = errors.New("the first frame is not a connect request")
	ErrClientAhead   = errors.New("the client has seen a later zxid than this server has")
	ErrSASLNullToken = errors.New("sasl request without a token")
)

// Conn is a client's connection as the replica sees it. Receive belongs to the connection's reader, Output to whoever
// writes; the rest belongs to the stepping goroutine or is atomic.
type Conn struct {
	r      *Replica
	owner  any
	gen    uint64
	remote netip.AddrPort
	shard  uint32

	state   atomic.Int32
	closed  atomic.Bool
	ids     atomic.Pointer[[]wire.ID]
	session atomic.Pointer[session.Handle]
	// watcher is the connection in watches, which belong to the tree that the connection was established with.
	watcher znode.WatcherID
	watches *znode.Watches

	// pending counts requests that are not answered yet. Only the reader raises it (and the handshake, while the reader
	// waits), only the stepping goroutine lowers it, after the answer is in the outbox: a reader that sees 0 may answer a read itself.
	pending     atomic.Int32
	queuedBytes atomic.Int64
	// waiting is set while the reader waits for pending to run empty.
	waiting atomic.Bool
	resumed chan struct{}
	nextSeq uint64 // the reader's
	// login is the SASL login that is under way or over, nil before it. It is the reader's.
	login *sasl.Server

	// in carries requests from the reader to the stepping goroutine.
	in struct {
		sync.Mutex
		buf *itemBuffer // nil when nothing waits
	}
	// queued tells that the connection stands in the replica's inbox. Guarded by inbox.mu.
	queued bool

	// out is the outbox.
	out struct {
		sync.Mutex
		enc   jute.Encoder
		fin   bool  // close once everything is written
		class uint8 // of the buffer that the last output needed
		// lastRead is the namespace of the last read.
		lastRead *Namespace
		stats    connStats
	}

	// The rest is the stepping goroutine's.
	fifo      fifo
	connect   *wire.ConnectRequest // from the handshake's arrival to its answer
	timeoutMs int32
	asked     bool // the handshake is being dealt with
	cut       bool // the server has ceased to serve
	dirty     bool // stands in replica.dirty
	again     bool // stands in replica.again
	parked    bool // stands in replica.parked
	// syncs counts the syncs in the line that were set going; proven is the last one whose proof has come.
	syncs  int
	proven uint64
	// sentIDs is what went to the leader for the identities that begin at sentOf.
	sentIDs []zab.Identity
	sentOf  *wire.ID
}

// Open makes a Conn for a new TCP connection. Any goroutine may call it. While the server does not serve, the connection is
// one that ends at once.
func (r *Replica) Open(owner any, remote netip.AddrPort, now Now) *Conn {
	c := &Conn{r: r, owner: owner, remote: remote, resumed: make(chan struct{}, 1)}
	c.gen = r.lastGen.Add(1)
	c.shard = uint32(c.gen)
	ids := []wire.ID{znode.RemoteID(remote.Addr())}
	c.ids.Store(&ids)
	c.out.stats.openedMs = now.WallMs
	r.conns.mu.Lock()
	r.conns.byGen[c.gen] = c
	serving := r.conns.serving
	r.conns.mu.Unlock()
	if !serving {
		c.finish()
	}
	return c
}

// Identify gives the connection the identities that its client has proved before the first frame, such as by a certificate. It
// belongs to the reader, which calls it before Receive.
func (c *Conn) Identify(more []wire.ID) {
	ids := znode.AddIDs(*c.ids.Load(), more)
	c.ids.Store(&ids)
}

// Owner returns what Open was given.
func (c *Conn) Owner() any { return c.owner }

// Remote returns the client's address.
func (c *Conn) Remote() netip.AddrPort { return c.remote }

// Resumed delivers once after each Wait.
func (c *Conn) Resumed() <-chan struct{} { return c.resumed }

// SessionID returns the session of the connection, 0 before the handshake is done.
func (c *Conn) SessionID() zxid.SessionID {
	if h := c.session.Load(); h != nil {
		return h.ID()
	}
	return 0
}

// Touch notes that the client was heard: it takes output, which may keep its pings from being read.
func (c *Conn) Touch(now Now) {
	if h := c.session.Load(); h != nil {
		h.Touch(now.MonoMs)
	}
}

// Closed tells that the socket is gone. Watches go with it, the session lives on. Requests that were received are still
// carried out. It may be called more than once, from any goroutine.
func (c *Conn) Closed() {
	if !c.closed.CompareAndSwap(false, true) {
		return
	}
	c.state.Store(stateClosing)
	r := c.r
	r.conns.mu.Lock()
	delete(r.conns.byGen, c.gen)
	c.out.Lock()
	r.conns.gone.add(&c.out.stats, r.statsGeneration.Load())
	c.out.Unlock()
	r.conns.mu.Unlock()
	r.post(c)
}

// Output takes everything that is to be written and leaves spare, which may be nil, as the new outbox. With fin the
// connection ends when those bytes are out. Writers must not overtake one another: the caller sees to it that one writes at a
// time, and gives the memory to ReleaseOutput.
func (c *Conn) Output(spare []byte) (out []byte, fin bool) {
	c.out.Lock()
	out, fin = c.out.enc.Bytes(), c.out.fin
	if len(out) > 0 {
		c.out.class = bufferClass(len(out))
	}
	c.out.enc.Reset(spare[:0])
	c.out.Unlock()
	return out, fin
}

// outbox returns the outbox, with room for an answer. out is locked.
func (c *Conn) outbox() *jute.Encoder {
	if e := &c.out.enc; cap(e.Bytes()) == 0 {
		e.Reset(borrowBuffer(c.out.class))
	}
	return &c.out.enc
}

// HasOutput tells whether Output would return bytes or fin.
func (c *Conn) HasOutput() bool {
	c.out.Lock()
	defer c.out.Unlock()
	return c.out.enc.Len() > 0 || c.out.fin
}

// Receive takes one frame without its length. It belongs to the connection's reader; the frame may be reused when it
// returns. An error means: close now, without an answer.
func (c *Conn) Receive(frame []byte, now Now) (Verdict, error) {
	switch c.state.Load() {
	case stateNew:
		return c.receiveConnect(frame)
	case stateEstablished:
	case stateClosing:
		return Closing, nil
	default:
		panic("replica: a frame was handed over before the handshake was done")
	}
	if len(frame) < requestHeaderBytes {
		return Closing, fmt.Errorf("%w: %d bytes", ErrShortFrame, len(frame))
	}
	d := jute.NewDecoder(frame, c.r.cfg.FieldBytesMax)
	xid, op := d.Int32(), wire.Op(d.Int32())
	body := frame[requestHeaderBytes:]
	c.countReceived(op)
	switch {
	case op == wire.OpAuth:
		return c.receiveAuth(xid, body, now)
	case op == wire.OpSASL:
		return c.receiveSASL(xid, body, now)
	case c.r.cfg.EnforcedSchemes != nil && !c.identified():
		return c.refuseStranger(op, xid, now), nil
	}
	h := c.session.Load()
	if h.Closing() {
		return Continue, nil // no reply at all: the session is on its way out
	}
	h.Touch(now.MonoMs)
	switch op.Info().Class {
	case wire.ClassSync:
		if c.r.cfg.Ensemble != nil {
			return c.enqueue(item{kind: itemSync, op: op, xid: xid, body: body, recvMs: now.MonoMs}), nil
		}
		return c.receiveRead(op, xid, body, now), nil
	case wire.ClassRead, wire.ClassConn:
		return c.receiveRead(op, xid, body, now), nil
	case wire.ClassWrite:
		if op != wire.OpCreateSession {
			return c.enqueue(item{kind: itemWrite, op: op, xid: xid, body: body, recvMs: now.MonoMs}), nil
		}
	}
	return c.receiveUnknown(op, xid, len(frame), now)
}

// receiveRead answers a read at once when nothing of its connection is in flight, else when its turn comes.
func (c *Conn) receiveRead(op wire.Op, xid int32, body []byte, now Now) Verdict {
	if c.pending.Load() != 0 {
		return c.enqueue(item{kind: itemRead, op: op, xid: xid, body: body, recvMs: now.MonoMs})
	}
	tree := c.r.Tree()
	tree.RLock(c.shard)
	c.r.execute(c, tree, op, xid, body, *c.ids.Load(), now.MonoMs, now)
	tree.RUnlock(c.shard)
	return c.afterReply()
}

// receiveUnknown answers an opcode that the server does not serve, and ends the connection.
func (c *Conn) receiveUnknown(op wire.Op, xid int32, frameBytes int, now Now) (Verdict, error) {
	c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: op, Bytes: frameBytes, Why: "unknown or unsupported opcode"})
	return c.answerInTurn(item{kind: itemReply, op: op, xid: xid, code: wire.CodeUnimplemented, last: true, recvMs: now.MonoMs}, now), nil
}

// answerInTurn gives an answer that is already known: at once when nothing is in flight, else when its turn comes.
func (c *Conn) answerInTurn(it item, now Now) Verdict {
	if it.last {
		c.state.Store(stateClosing)
	}
	if c.pending.Load() == 0 {
		c.answerKnown(&it, now.MonoMs)
	} else {
		c.enqueue(it)
	}
	if it.last {
		return Closing
	}
	return c.afterReply()
}

// answerKnown writes the answer of an itemReply or itemSASL.
func (c *Conn) answerKnown(it *item, nowMs int64) {
	z := zxid.Zxid(0)
	if it.code == wire.CodeUnimplemented {
		z = -1
	}
	e := c.beginReply(it.xid, z, it.code)
	if it.kind == itemSASL {
		var token []byte // null if there is nothing to say
		if len(it.body) > 0 {
			token = it.body
		}
		e.Buffer(token)
	}
	c.endReply(it.op, it.xid, z, it.recvMs, nowMs)
	if it.last {
		c.finish()
	}
}

// receiveAuth logs an identity in. The identity counts from the next request on; the answer keeps its place in the line,
// which every client accepts and kazoo needs.
func (c *Conn) receiveAuth(xid int32, body []byte, now Now) (Verdict, error) {
	var req wire.AuthRequest
	d := jute.NewDecoder(body, c.r.cfg.FieldBytesMax)
	req.Decode(&d)
	it := item{kind: itemReply, op: wire.OpAuth, xid: xid, recvMs: now.MonoMs}
	if d.Err() != nil {
		return Closing, fmt.Errorf("auth request: %w", d.Err())
	}
	added, code := c.authenticate(&req)
	if code != wire.CodeOK {
		it.code, it.last = wire.CodeAuthFailed, true
		c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: wire.OpAuth, Why: "authentication failed, scheme " + quoted(req.Scheme)})
		return c.answerInTurn(it, now), nil
	}
	if !c.addIDs(added) {
		it.code, it.last = wire.CodeAuthFailed, true
		c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Op: wire.OpAuth, Limit: identityBytesMax, Why: tooManyIdentities})
	}
	return c.answerInTurn(it, now), nil
}

const tooManyIdentities = "too many identities on one connection"

// addIDs gives the connection identities, unless it has too many then.
func (c *Conn) addIDs(added []wire.ID) bool {
	ids := znode.AddIDs(*c.ids.Load(), added)
	if len(ids) > identitiesMax || identityBytes(ids) > identityBytesMax {
		return false
	}
	c.ids.Store(&ids)
	return true
}

// authenticate looks at who a client says it is. One that has shown a certificate has proved all that the scheme x509 asks for.
func (c *Conn) authenticate(req *wire.AuthRequest) (added []wire.ID, code wire.Code) {
	ids := *c.ids.Load()
	if string(req.Scheme) == znode.SchemeX509 {
		for _, id := range ids {
			if id.Scheme == znode.SchemeX509 {
				return nil, wire.CodeOK
			}
		}
	}
	return c.r.auth.Login(req.Scheme, req.Auth, ids[0].ID)
}

// quoted makes a client's text fit for a line of the log.
func quoted(text []byte) string {
	const shown = 64
	if len(text) > shown {
		return strconv.Quote(string(text[:shown])) + "..."
	}
	return strconv.Quote(string(text))
}

func identityBytes(ids []wire.ID) (n int) {
	for _, id := range ids {
		n += len(id.Scheme) + len(id.ID)
	}
	return n
}

// enqueue puts a request into the line. Whoever called Receive sees to a step.
func (c *Conn) enqueue(it item) Verdict {
	lim := c.r.limits.Load()
	if lim.Throttle.LargeAboveBytes > 0 {
		var ok bool
		if it.large, ok = c.r.ReserveLarge(requestHeaderBytes + len(it.body)); !ok {
			return c.refuseLarge(&it)
		}
	}
	c.nextSeq++
	it.seq = c.nextSeq
	it.body = copyBody(it.body)
	it.ids = *c.ids.Load()
	if h := c.session.Load(); h != nil {
		h.Busy(1)
	}
	pending := c.pending.Add(1)
	queued := c.queuedBytes.Add(int64(len(it.body)))
	total := c.r.outstanding.Add(1)
	totalBytes := c.r.queuedBytes.Add(int64(len(it.body)))
	c.in.Lock()
	first := c.in.buf == nil
	if first {
		c.in.buf = itemBuffers.Get().(*itemBuffer)
	}
	c.in.buf.items = append(c.in.buf.items, it)
	c.in.Unlock()
	if first { // otherwise it stands in the inbox, or the stepping goroutine is about to look
		c.r.postReceived(c)
	}
	limit := lim.outstanding
	crowded := total >= limit || c.r.proposed.Load() >= limit
	if pending >= connRequestsMax || crowded && int64(pending) >= min(connShare, limit) ||
		queued >= connQueuedBytesMax || totalBytes >= queuedBytesMax || c.r.proposedBytes.Load() >= queuedBytesMax {
		return c.waitForDrain()
	}
	return Continue
}

// waitForDrain makes the reader wait until nothing of its connection is in flight.
func (c *Conn) waitForDrain() Verdict {
	c.waiting.Store(true)
	if c.pending.Load() == 0 && c.waiting.CompareAndSwap(true, false) {
		return Continue
	}
	c.r.counters.readPauses.Add(1)
	return Wait
}

// answered takes a request out of the count, after its answer is in the outbox.
func (c *Conn) answered(it *item) {
	if it.forwarded {
		c.r.forwardedBytes -= it.travelBytes()
	}
	if it.large > 0 {
		c.r.ReleaseLarge(it.large)
	}
	c.r.queuedBytes.Add(-int64(len(it.body)))
	c.r.outstanding.Add(-1)
	c.queuedBytes.Add(-int64(len(it.body)))
	if h := c.session.Load(); h != nil {
		h.Busy(-1)
	}
	if c.pending.Add(-1) == 0 && c.waiting.CompareAndSwap(true, false) {
		c.resume()
	}
}

func (c *Conn) resume() {
	select {
	case c.resumed <- struct{}{}:
	default:
	}
}

// afterReply asks for a flush when the outbox has grown.
func (c *Conn) afterReply() Verdict {
	c.out.Lock()
	n, fin := c.out.enc.Len(), c.out.fin
	c.out.Unlock()
	switch {
	case fin:
		return Closing
	case n >= outFlushBytes:
		return Flush
	}
	return Continue
}

// beginReply locks the outbox and starts a frame; endReply must follow. The record is appended in between.
func (c *Conn) beginReply(xid int32, z zxid.Zxid, code wire.Code) *jute.Encoder {
	c.out.Lock()
	e := c.outbox()
	c.out.stats.frameStart = e.Len()
	e.Int32(0)
	e.Int32(xid)
	e.Int64(int64(z))
	e.Int32(int32(code))
	return e
}

// endReply completes the frame, counts it and unlocks the outbox. A client over its backlog is cut off.
func (c *Conn) endReply(op wire.Op, xid int32, z zxid.Zxid, recvMs, nowMs int64) {
	s := &c.out.stats
	start := s.frameStart
	size := c.out.enc.Len() - start
	c.out.enc.PatchInt32(start, int32(size-4))
	if c.out.fin { // the connection's last word is already there
		c.out.enc.Reset(c.out.enc.Bytes()[:start])
		c.out.Unlock()
		return
	}
	c.r.meter.replied(op, c.shard, s.replied(op, xid, z, size, recvMs, nowMs, c.r.statsGeneration.Load()))
	c.boundBacklog(start)
	c.out.Unlock()
}

// appendFrame appends a complete frame (an event).
func (c *Conn) appendFrame(frame []byte) {
	c.out.Lock()
	defer c.out.Unlock()
	if c.out.fin {
		return
	}
	start := c.out.enc.Len()
	c.outbox().Raw(frame)
	c.out.stats.sent++
	c.out.stats.eventBytes += int64(len(frame))
	c.boundBacklog(start)
}

// boundBacklog drops the output of a client that does not read, and ends the connection. before is the size of the
// backlog before the newest frame. out is locked.
func (c *Conn) boundBacklog(before int) {
	if before <= outBytesMax {
		return
	}
	c.out.enc.Reset(nil)
	c.out.fin = true
	c.state.Store(stateClosing)
	c.r.cfg.Refused(Refusal{Conn: c, Session: c.SessionID(), Bytes: before, Limit: outBytesMax, Backlog: true,
		Why: "client does not read its replies and events"})
}

// ended tells whether nothing can be answered any more.
func (c *Conn) ended() bool {
	if c.state.Load() != stateClosing {
		return false
	}
	c.out.Lock()
	defer c.out.Unlock()
	return c.out.fin || c.closed.Load()
}

// finish ends the connection once its output is written.
func (c *Conn) finish() {
	c.state.Store(stateClosing)
	c.out.Lock()
	c.out.fin = true
	c.out.Unlock()
}

// Notify appends a watch event if the connection may read the node. The caller holds the tree's write lock.
func (c *Conn) Notify(e *znode.Event) {
	if c.closed.Load() || !c.r.auth.Allows(e.ACL, wire.PermRead, *c.ids.Load()) {
		return
	}
	c.appendFrame(e.Frame())
	c.r.markDirty(c)
}
