package replica

// post puts c into the inbox and asks for a step, from any goroutine.
func (r *Replica) post(c *Conn) {
	r.put(c)
	r.cfg.Wake()
}

// postReceived is post for what the connection's reader has received.
func (r *Replica) postReceived(c *Conn) {
	r.put(c)
	r.cfg.Received(c)
}

func (r *Replica) put(c *Conn) {
	r.inbox.mu.Lock()
	if !c.queued {
		c.queued = true
		r.inbox.conns = append(r.inbox.conns, c)
	}
	r.inbox.mu.Unlock()
}

// HasRequests tells, from any goroutine, whether connections wait for a step.
func (r *Replica) HasRequests() bool {
	r.inbox.mu.Lock()
	defer r.inbox.mu.Unlock()
	return len(r.inbox.conns) > 0
}

func (r *Replica) takeInbox() []*Conn {
	r.inbox.mu.Lock()
	conns := r.inbox.conns
	r.inbox.conns = r.taken[:0]
	for _, c := range conns {
		c.queued = false
	}
	r.inbox.mu.Unlock()
	r.taken = conns
	return conns
}

// markDirty notes that c has output or is to be closed.
func (r *Replica) markDirty(c *Conn) {
	if !c.dirty {
		c.dirty = true
		r.dirty = append(r.dirty, c)
	}
}

func (r *Replica) takeDirty() []*Conn {
	for _, c := range r.dirty {
		c.dirty = false
	}
	return r.dirty
}

// serve takes what a connection's reader has put in, and makes transactions of the writes among it.
func (r *Replica) serve(c *Conn) {
	switch {
	case c.closed.Load():
		// What was received is carried out, though nobody will hear of it: a client may send its last request and go.
		if !c.cut && c.session.Load() != nil {
			r.counters.staleRequests.Add(uint64(c.takeIn()))
			r.stale(c)
			r.prepare(c)
		}
		r.forget(c)
		return
	case c.cut: // read before its reader knew
		r.drop(c)
		return
	case c.connect != nil && c.fifo.empty() && c.state.Load() == stateConnecting:
		if !c.asked {
			c.asked = true
			r.serveConnect(c)
		}
		return
	}
	c.takeIn()
	r.prepare(c)
	r.drain(c)
}

// takeIn moves what the reader has put in to the line, and tells how many requests that are.
func (c *Conn) takeIn() (n int) {
	c.in.Lock()
	arrived := c.in.buf
	c.in.buf = nil
	c.in.Unlock()
	if arrived != nil {
		n = len(arrived.items)
		c.r.arrived += n
	}
	c.fifo.take(arrived)
	return n
}

// prepare sets the requests of a connection going, in their order. A write behind a sync waits until the sync is
// answered: otherwise its transaction could be applied before. A learner's writes wait while too much is on its way to the
// leader.
func (r *Replica) prepare(c *Conn) {
	lim := r.limits.Load()
	timed := lim.Throttle.timed()
	for it := c.fifo.peekUnproposed(); it != nil; it = c.fifo.peekUnproposed() {
		if timed && !r.waited(c, it, &lim.Throttle) {
			return
		}
		switch it.kind {
		case itemWrite:
			if c.syncs > 0 {
				return
			}
			switch {
			case r.term.leading:
				r.prepWrite(c, it)
				if r.audit.on {
					r.auditPrepared(c, it)
				}
			case len(r.parked) > 0 || r.forwardedBytes > 0 && r.forwardedBytes+it.travelBytes() > forwardedBytesMax:
				r.park(c)
				return
			default:
				r.forward(c, it)
				if r.audit.on {
					r.auditPrepared(c, it)
				}
			}
		case itemSync:
			c.syncs++
			round := r.gather()
			round.here = append(round.here, syncWaiter{c, it.seq})
		}
		c.fifo.unproposed++
	}
}

// park notes a connection whose next write waits until the leader has answered more of the others.
func (r *Replica) park(c *Conn) {
	if !c.parked {
		c.parked = true
		r.parked = append(r.parked, c)
	}
}

// unpark lets the parked connections go on when half of what was on its way is answered.
func (r *Replica) unpark() {
	if len(r.parked) == 0 || r.forwardedBytes > forwardedBytesMax/2 {
		return
	}
	for _, c := range r.parked {
		c.parked = false
		if !c.again {
			c.again = true
			r.again = append(r.again, c)
		}
	}
	r.parked = r.parked[:0]
}

// serveAgain takes up the connections whose writes had to wait.
func (r *Replica) serveAgain() {
	list := r.again
	r.again = nil
	for _, c := range list {
		c.again = false
		if !c.closed.Load() && !c.cut {
			r.prepare(c)
			r.drain(c)
		}
	}
}

// drain answers what is due at the head of a connection's line: everything up to the next write in flight.
func (r *Replica) drain(c *Conn) {
	for !c.fifo.empty() {
		if c.ended() { // nobody will get the answers: not a read more
			c.dropRest()
			return
		}
		if c.fifo.head == c.fifo.unproposed {
			return // a write that waits for a sync, and what is behind it
		}
		it := c.fifo.front()
		switch {
		case it.kind == itemSync && it.seq > c.proven:
			return
		case it.kind == itemRead, it.kind == itemSync:
			r.meter.InLine.Add(r.now.MonoMs - it.recvMs)
			r.execute(c, r.Tree(), it.op, it.xid, it.body, it.ids, it.recvMs, r.now)
		case it.kind == itemReply || it.kind == itemSASL:
			c.answerKnown(it, r.now.MonoMs)
		case it.proposed:
			return
		case it.silent: // no reply at all
		default: // a write that could not be read: the answer is known, and no zxid was used
			z := r.Tree().LastZxid()
			c.beginReply(it.xid, z, it.code)
			c.endReply(it.op, it.xid, z, it.recvMs, r.now.MonoMs)
		}
		r.markDirty(c)
		if r.done(c, it) {
			return
		}
	}
}

// done takes the front item, which is answered, off the line, and reports whether it was the last one of its connection.
func (r *Replica) done(c *Conn, it *item) (last bool) {
	if it.kind == itemSync {
		c.syncs--
		if c.syncs == 0 && !c.again && c.fifo.unproposed < len(c.fifo.items) {
			c.again = true
			r.again = append(r.again, c)
		}
	}
	if last = it.last; last && it.silent {
		c.finish()
		c.resume()
	}
	c.answered(it)
	c.fifo.pop()
	if last {
		c.dropRest()
	}
	return last
}

// forget takes a connection whose socket is gone out of everything. Its transactions in flight are still applied.
func (r *Replica) forget(c *Conn) {
	c.unwatch()
	if id := c.SessionID(); id != 0 && r.bySession[id] == c {
		delete(r.bySession, id)
	}
	r.drop(c)
}
