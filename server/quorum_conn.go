package server

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"

	"zabra/internal/storage"
	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/zxid"
)

// quorumConns holds the connections between a leader and its learners, as this server has them.
type quorumConns struct {
	mu     sync.Mutex
	closed bool
	lastID zab.ConnID
	// generation is that of the role for which connections are taken.
	generation uint32
	open       map[zab.ConnID]*quorumConn
}

// quorumConn is one connection between a leader and a learner. Messages leave and arrive in order.
type quorumConn struct {
	m    *member
	id   zab.ConnID
	peer zxid.ServerID
	nc   net.Conn
	// hungUp is set when this side has ended the connection: what still comes in is not for this role.
	hungUp atomic.Bool
	// learner is what a leader measures of the peer; nil on a learner.
	learner *learnerMeter
	// syncing is MessageDiff or MessageSnap from the time at which a leader begins to bring the peer up to date until it is
	// done. It belongs to the stepping goroutine.
	syncing zab.MessageKind
	// arrivals are the times of the proposals that a learner has received, until they are committed. The reader's.
	arrivals passages

	out struct {
		sync.Mutex
		queue  []zab.Message
		bytes  int
		slow   bool // the queue has a message that takes the disk to write
		rest   bool // writer has bytes that the socket did not take at once
		fin    bool // the connection ends behind the queue
		alive  bool // a sign of life is to be sent
		closed bool
		wake   chan struct{} // holds at most one
		// sinceMs is when the first message of the queue came, flights are the proposals that are not acknowledged.
		sinceMs int64
		flights passages
	}
	// writing is held by who takes from the queue and writes: the writing goroutine, or the one that stepped. The next
	// fields belong to it.
	writing sync.Mutex
	writer  connWriter
	spare   []zab.Message
	raw     syscall.RawConn // nil where nothing can be written without waiting
	pinned  struct {
		sync.Mutex
		transfer *storage.Transfer // the snapshot for this learner; nil: none
		gone     bool
	}
	progressMs atomic.Int64
	counts     connCounts
	incoming   incoming // the reader's
}

func (t *quorumConns) init() { t.open = make(map[zab.ConnID]*quorumConn) }

// beginRole makes connections of earlier roles end, after what was sent on them.
func (t *quorumConns) beginRole(generation uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.generation = generation
	for _, c := range t.open {
		c.hangUp()
	}
}

// add takes a connection for the role of that generation, unless it has ended. A connection that the peer had before is
// over: it would not have made another one.
func (t *quorumConns) add(m *member, nc net.Conn, peer zxid.ServerID, generation uint32) *quorumConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.generation != generation {
		return nil
	}
	for _, c := range t.open {
		if c.peer == peer {
			c.hangUp()
		}
	}
	t.lastID++
	c := &quorumConn{m: m, id: t.lastID, peer: peer, nc: nc}
	if st := m.status.Load(); st != nil && st.Role == zab.RoleLeading {
		c.learner = m.meter.learner(peer)
	}
	c.out.wake = make(chan struct{}, 1)
	c.counts.establishedMs = m.s.clock.now().WallMs
	c.writer.c = c
	if socket, ok := nc.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn() // without it, all is left to the writing goroutine
	}
	t.open[c.id] = c
	m.input(zab.Input{Kind: zab.InputConnected, Peer: c.peer, Conn: c.id})
	return c
}

func (t *quorumConns) get(id zab.ConnID) *quorumConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// remove forgets c and tells the core of its end.
func (t *quorumConns) remove(c *quorumConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, c.id)
	c.m.input(zab.Input{Kind: zab.InputDisconnected, Peer: c.peer, Conn: c.id})
}

// send queues a message on its connection, if that is still there, and returns the connection: somebody has to write.
func (t *quorumConns) send(msg *zab.Message) *quorumConn {
	c := t.get(msg.Conn)
	if c != nil {
		c.send(msg)
	}
	return c
}

// hangUp ends a connection as the core asks for. What has ended the role is told with that.
func (t *quorumConns) hangUp(h zab.Hangup, roleEnded string) {
	if c := t.get(h.Conn); c != nil {
		if h.Why != "" && h.Why != roleEnded {
			c.m.s.log.Info("connection ended", zap.Int64("server", int64(c.peer)), zap.String("because", h.Why))
		}
		c.hangUp()
	}
}

func (t *quorumConns) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, c := range t.open {
		c.nc.Close()
	}
}

func (t *quorumConns) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// serve is the life of the connection, on the goroutine of its reader.
func (c *quorumConn) serve() {
	c.m.s.spawn(c.write)
	err := c.read()
	c.nc.Close()
	c.out.Lock()
	c.out.closed = true
	c.out.queue = nil
	c.out.Unlock()
	signal(c.out.wake)
	c.unpin(true)
	c.incoming.park()
	c.m.conns.remove(c)
	if c.m.ctx.Err() == nil && !c.hungUp.Load() {
		c.m.lost(c.peer, "quorum connection", err)
	}
}

// send queues a message; writeSoon has to follow. It never waits: a connection whose backlog is over the bound is cut.
func (c *quorumConn) send(msg *zab.Message) {
	size := messageBytes(msg)
	c.out.Lock()
	if c.out.closed || c.out.fin {
		c.out.Unlock()
		return
	}
	if c.out.bytes > 0 && c.out.bytes+size > peerQueueBytesMax {
		bytes := c.out.bytes
		c.out.closed, c.out.queue = true, nil
		c.out.Unlock()
		c.m.s.log.Warn("quorum connection cut off: the other server does not take what it is sent. It is brought up to date when it connects again; if this comes again, look at its disk and at the network between them",
			zap.Int64("server", int64(c.peer)), zap.Int("bytes", bytes), zap.Int("limit", peerQueueBytesMax))
		c.nc.Close()
		return
	}
	if len(c.out.queue) == 0 {
		c.out.sinceMs = c.m.sendMs
	}
	c.out.queue = append(c.out.queue, *msg)
	c.counts.gives(msg)
	c.out.bytes += size
	c.noteSentLocked(msg)
	switch msg.Kind {
	case zab.MessageSnap, zab.MessageAckEpoch, zab.MessageNewLeader:
		c.out.slow = true
	}
	c.out.Unlock()
}

// messageBytes estimates what a message takes in memory.
func messageBytes(msg *zab.Message) int {
	n := peerMessageBytes
	for i := range msg.Entries {
		n += len(msg.Entries[i].Payload) + peerMessageBytes/2
	}
	n += len(msg.Touches) * peerMessageBytes / 8
	for i := range msg.Requests {
		n += peerMessageBytes + len(msg.Requests[i].Body)
		for _, id := range msg.Requests[i].Identities {
			n += len(id.Scheme) + len(id.ID)
		}
	}
	return n
}

// hangUp ends the connection once everything queued is written, or soon.
func (c *quorumConn) hangUp() {
	if !c.hungUp.CompareAndSwap(false, true) {
		return
	}
	_ = c.nc.SetDeadline(time.Now().Add(peerLingerTime))
	c.out.Lock()
	c.out.fin = true
	c.out.Unlock()
	signal(c.out.wake)
}

// await waits until there is something to write. It is false when nothing follows any more.
func (c *quorumConn) await() bool {
	for {
		c.out.Lock()
		due, fin := len(c.out.queue) > 0 || c.out.alive || c.out.rest, c.out.fin
		closed := c.out.closed
		c.out.Unlock()
		if closed || fin && !due {
			return false
		}
		if due {
			return true
		}
		<-c.out.wake
	}
}

// left waits for who is writing directly, and tells whether that has left something.
func (c *quorumConn) left() bool {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out.Lock()
	defer c.out.Unlock()
	return !c.out.closed && (len(c.out.queue) > 0 || c.out.rest)
}

// take returns all messages that wait; with direct only if they can be written without waiting for disk or socket. The
// caller holds writing.
func (c *quorumConn) take(direct bool) (queue []zab.Message, alive, ok bool) {
	c.out.Lock()
	defer c.out.Unlock()
	if direct && (c.out.slow || c.out.rest || c.out.fin || c.out.closed || c.out.bytes > peerDirectBytesMax) {
		return nil, false, false
	}
	queue, alive = c.out.queue, c.out.alive
	c.noteTakenLocked()
	c.out.queue, c.out.bytes = c.spare[:0], 0
	c.out.slow, c.out.rest, c.out.alive = false, false, false
	c.spare = nil
	return queue, alive, true
}

// write is the writing goroutine: it sends what others have left, everything that waits with as few writes as its size
// allows.
func (c *quorumConn) write() {
	for c.await() || c.left() {
		c.writing.Lock()
		err := c.writeAll()
		c.writing.Unlock()
		if err != nil {
			c.writeFailed(err)
			return
		}
	}
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return // the reader waits for the other end, and not long
	}
	c.nc.Close()
}

// writeAll writes all that waits, at the pace at which the peer takes it. The caller holds writing.
func (c *quorumConn) writeAll() error {
	if _, err := c.gather(false); err != nil {
		return err
	}
	return c.writer.flush()
}

// gather puts together what waits. It is not ok if that cannot be written directly and should.
func (c *quorumConn) gather(direct bool) (ok bool, err error) {
	queue, alive, ok := c.take(direct)
	if !ok {
		return false, nil
	}
	for i := range queue {
		if err := c.writer.add(&queue[i]); err != nil {
			return true, err
		}
	}
	if alive {
		c.writer.b = peer.AppendKeepAlive(c.writer.b)
	}
	clear(queue)
	c.spare = queue
	return true, nil
}

// writeSoon has written what was sent: at once, if it is little and the socket takes it, so that no other goroutine has to
// be woken; otherwise by the writing goroutine. It never waits.
func (c *quorumConn) writeSoon() {
	if !c.writeDirect() {
		signal(c.out.wake)
	}
}

// writeDirect reports whether everything that waits was written.
func (c *quorumConn) writeDirect() bool {
	if c.raw == nil || !c.writing.TryLock() {
		return false
	}
	defer c.writing.Unlock()
	ok, err := c.gather(true)
	if !ok {
		return false
	}
	if err != nil {
		c.writeFailed(err)
		return true
	}
	if len(c.writer.b) == 0 { // others were faster
		return true
	}
	n, err := tryWrite(c.raw, c.writer.b)
	if err != nil {
		c.writeFailed(err)
		return true
	}
	if n == len(c.writer.b) {
		c.writer.b = c.writer.b[:0]
		return true
	}
	c.writer.b = append(c.writer.b[:0], c.writer.b[n:]...)
	c.out.Lock()
	c.out.rest = true
	c.out.Unlock()
	return false
}

// writeFailed cuts the connection; its reader tells the core.
func (c *quorumConn) writeFailed(err error) {
	c.nc.Close()
	ended := errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) // the reader tells
	if c.m.ctx.Err() == nil && !c.hungUp.Load() && !ended {
		c.m.trouble.note(c.m, "write", c.peer, "quorum connection cut off: the other server could not be written to. It is brought up to date when it connects again; if this comes again, look at that server and at the network between them",
			zap.Int64("server", int64(c.peer)), zap.Error(err))
	}
}

// connWriter puts messages together.
type connWriter struct {
	c   *quorumConn
	enc peer.Encoder
	b   []byte
}

// add appends a message, and writes when enough has come together. A snapshot goes out behind the message that announces
// it.
func (w *connWriter) add(msg *zab.Message) (err error) {
	switch msg.Kind {
	case zab.MessageAckEpoch:
		msg.Resume = w.c.m.s.store.Resume()
	case zab.MessageNewLeader:
		w.c.unpin(false) // from here on the learner lives on what is in memory
	}
	if w.b, err = w.enc.AppendMessage(w.b, msg); err != nil {
		return fmt.Errorf("%v: %w", msg.Kind, err)
	}
	if msg.Kind == zab.MessageSnap {
		if err := w.flush(); err != nil {
			return err
		}
		return w.c.sendSnapshot(w, msg)
	}
	if len(w.b) >= peerWriteBytes {
		return w.flush()
	}
	return nil
}

// flush writes what has come together. The peer has to take it bit by bit, each within the limit.
func (w *connWriter) flush() error {
	for rest := w.b; len(rest) > 0; {
		if !w.c.hungUp.Load() {
			_ = w.c.nc.SetWriteDeadline(time.Now().Add(w.c.m.limits.write))
		}
		n, err := w.c.nc.Write(rest[:min(len(rest), peerWriteBytes)])
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	if !w.c.hungUp.Load() {
		_ = w.c.nc.SetWriteDeadline(time.Time{}) // or what is written directly would fail when it has passed
	}
	w.b = w.b[:0]
	if cap(w.b) > peerBufferKeptBytesMax {
		w.b = nil
	}
	return nil
}

// read hands on what arrives until the connection ends.
func (c *quorumConn) read() error {
	r := peer.NewReader(c.nc, peer.PurposeQuorum)
	for owed := 0; ; {
		// What has come in one packet belongs to one step, within bounds: there is other work for it.
		if owed > 0 && (owed >= peerStepBytes || !r.Ready()) {
			c.m.s.advance(readerRoundsMax)
			owed = 0
		}
		frame, err := r.Next()
		if err != nil {
			return err
		}
		if c.hungUp.Load() {
			continue
		}
		switch frame.Kind {
		case peer.KindKeepAlive:
			c.progress()
			continue
		case peer.KindChunk:
			if err := c.receiveChunk(frame.Chunk); err != nil {
				return err
			}
			continue
		}
		msg := frame.Message
		msg.From, msg.To, msg.Conn = c.peer, c.m.id, c.id
		if msg.Kind == zab.MessageRequest && c.m.s.isDraining() {
			continue // a leader that is about to go takes no more; its learners' clients will hear of the loss
		}
		if msg.Kind == zab.MessageSnap {
			if err := c.beginSnapshot(msg); err != nil {
				return err
			}
		}
		c.counts.takes(msg)
		c.noteReceived(msg)
		bytes := messageBytes(msg)
		c.m.s.steps.message(msg, bytes)
		owed += bytes
	}
}

// progress tells the core, not too often, that a part of a snapshot went through. It reports whether it did.
func (c *quorumConn) progress() bool {
	nowMs := c.m.s.clock.now().MonoMs
	if last := c.progressMs.Load(); nowMs-last < progressQuietMs || !c.progressMs.CompareAndSwap(last, nowMs) {
		return false
	}
	c.m.input(zab.Input{Kind: zab.InputProgress, Conn: c.id})
	return true
}

// keepAlive tells the peer that this server is there and busy with what it has sent.
func (c *quorumConn) keepAlive() {
	c.out.Lock()
	c.out.alive = true
	c.out.Unlock()
	signal(c.out.wake)
}
