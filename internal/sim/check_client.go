package sim

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// pop is E-17: replies come in the order of the requests.
func (c *client) pop(h *wire.ReplyHeader) *request {
	if len(c.sent) > 0 && c.sent[0].op == wire.OpPing { // a ping is answered in its turn
		c.w.fail("E-17", "client %d gets a reply before that to its ping", c.index)
	}
	if len(c.sent) == 0 || c.sent[0].xid != h.Xid {
		c.w.fail("E-17", "client %d gets a reply to %d out of turn", c.index, h.Xid)
	}
	r := c.sent[0]
	c.sent = c.sent[1:]
	return r
}

func (c *client) popPing() {
	if len(c.sent) == 0 || c.sent[0].op != wire.OpPing {
		c.w.fail("E-17", "client %d gets the answer to a ping out of turn", c.index)
	}
	c.sent = c.sent[1:]
}

// checkZxid is E-17 and E-08: no reply shows an older state than one before, and none a state that is not committed.
func (c *client) checkZxid(h *wire.ReplyHeader) {
	if h.Zxid <= 0 {
		return
	}
	if h.Zxid < c.lastSeen {
		c.w.fail("E-17", "client %d sees %v after %v", c.index, h.Zxid, c.lastSeen)
	}
	if !c.w.ghost.isCommitted(h.Zxid) {
		c.w.fail("E-17", "client %d gets a reply of %v, which is not committed", c.index, h.Zxid)
	}
	c.lastSeen = h.Zxid
}

// checkReply compares an answer with what is true.
func (c *client) checkReply(r *request, h *wire.ReplyHeader, d *jute.Decoder) {
	switch r.op {
	case wire.OpSetWatches:
		if h.Err != wire.CodeOK {
			c.w.fail("WATCH", "client %d cannot set its watches again: %v", c.index, h.Err)
		}
		c.watchesSet(h.Zxid)
	case wire.OpGetData, wire.OpExists, wire.OpGetChildren2:
		c.checkRead(r, h, d)
	case wire.OpSync: // E-37
		if h.Err == wire.CodeOK && h.Zxid < r.floor {
			c.w.fail("E-37", "the sync of client %d is answered at %v; %v was committed when it was asked for", c.index, h.Zxid, r.floor)
		}
	default:
		c.checkWrite(r, h, d)
	}
	if h.Zxid > 0 {
		c.checkWatches(h.Zxid)
	}
}

// checkRead is E-17 and E-35: a read shows exactly the state of the zxid that it names.
func (c *client) checkRead(r *request, h *wire.ReplyHeader, d *jute.Decoder) {
	g := &c.w.ghost
	want := g.at(r.path, h.Zxid)
	if h.Err != wire.CodeOK {
		if h.Err != wire.CodeNoNode || want.exists {
			c.w.fail("E-17", "client %d reads %s at %v: %v, it exists: %t", c.index, r.path, h.Zxid, h.Err, want.exists)
		}
		delete(c.versions, r.path)
		if r.op == wire.OpExists && r.watch {
			c.noteWatch(r.path, watchExist, h.Zxid)
		}
		return
	}
	stat, data, children := decodeRead(r.op, d)
	if d.Err() != nil || d.Remaining() > 0 {
		c.w.fail("E-17", "client %d cannot read the answer to %v: %v", c.index, r.op, d.Err())
	}
	if !want.exists || stat != want.stat || r.op == wire.OpGetData && data != want.data || r.op == wire.OpGetChildren2 && children != want.children {
		c.w.fail("E-17", "client %d reads %s at %v: %+v; true is %t %+v (data %#x, %#x; children %#x, %#x)", c.index, r.path, h.Zxid, stat,
			want.exists, want.stat, data, want.data, children, want.children)
	}
	if stat.Czxid > stat.Mzxid || stat.Czxid > stat.Pzxid || stat.Mzxid > h.Zxid || stat.Pzxid > h.Zxid {
		c.w.fail("E-35", "client %d gets the stat %+v of %s at %v", c.index, stat, r.path, h.Zxid)
	}
	c.versions[r.path] = stat.Version
	if r.watch {
		kind := watchData
		if r.op == wire.OpGetChildren2 {
			kind = watchChild
		}
		c.noteWatch(r.path, kind, h.Zxid)
	}
}

func decodeRead(op wire.Op, d *jute.Decoder) (stat wire.Stat, data, children uint64) {
	switch op {
	case wire.OpGetData:
		var reply wire.DataReply
		reply.Decode(d)
		return reply.Stat, hashBytes(reply.Data), 0
	case wire.OpGetChildren2:
		var reply wire.Children2Reply
		reply.Decode(d)
		for _, name := range reply.Children {
			children += hashBytes(name)
		}
		return reply.Stat, 0, children
	}
	stat.Decode(d)
	return stat, 0, 0
}

// checkWrite is E-17: a write that is answered is the transaction that the answer names, and that is committed; one that
// is refused is none, or one that changes nothing.
func (c *client) checkWrite(r *request, h *wire.ReplyHeader, d *jute.Decoder) {
	w, t := c.w, r.txn
	switch {
	case t == nil && h.Err == wire.CodeOK:
		w.fail("E-17", "client %d is told that its request %d has succeeded, and it is not committed", c.index, r.xid)
	case t == nil:
		r.refused = true
		return
	case t.z != h.Zxid && h.Zxid > 0:
		w.fail("E-17", "client %d is told %v for its request %d, which is transaction %v", c.index, h.Zxid, r.xid, t.z)
	case r.code != h.Err:
		w.fail("E-17", "client %d is told %v for its request %d, and transaction %v says %v", c.index, h.Err, r.xid, t.z, r.code)
	}
	if r.healed && r.sentAt >= w.outageAt && h.Err == wire.CodeOK {
		c.proved = true
	}
	if h.Err != wire.CodeOK {
		return
	}
	switch r.op {
	case wire.OpCreate, wire.OpCreate2:
		path := d.UString()
		if string(path) != r.created {
			w.fail("E-17", "client %d is told that it has created %s, and transaction %v has created %s", c.index, path, t.z, r.created)
		}
		if r.flags == wire.FlagSequential {
			c.names = append(c.names, r.created)
		}
	case wire.OpSetData:
		var stat wire.Stat
		stat.Decode(d)
		if want := w.ghost.at(r.path, t.z); stat != want.stat {
			w.fail("E-17", "client %d gets the stat %+v for its write %v of %s; true is %+v", c.index, stat, t.z, r.path, want.stat)
		}
		c.versions[r.path] = stat.Version
	case wire.OpMulti:
		c.checkMulti(r, d)
	case wire.OpCloseSession:
		c.session, c.password, c.watches = 0, nil, nil
	}
}

// checkMulti is E-17 for the parts of a multi: each result is that of the part in its place, or the error that is there.
func (c *client) checkMulti(r *request, d *jute.Decoder) {
	got, err := wire.DecodeMultiResults(d, nil)
	if err != nil || len(got) != len(r.results) {
		c.w.fail("E-17", "client %d gets %d results for the %d parts of its request %d: %v", c.index, len(got), len(r.results), r.xid, err)
	}
	for i := range got {
		g, want := &got[i], &r.results[i]
		ok := g.Op == want.Op && g.Err == want.Err
		switch g.Op {
		case wire.OpCreate:
			ok = ok && bytes.Equal(g.Path, want.Path)
		case wire.OpSetData:
			ok = ok && g.Stat == c.w.ghost.at(r.path, r.txn.z).stat
		}
		if !ok {
			c.w.fail("E-17", "client %d is told %+v of part %d of its request %d; transaction %v says %+v", c.index, *g, i, r.xid, r.txn.z, *want)
		}
	}
}

// checkReplied looks at a frame as it leaves the server. It is LOCAL: whoever is told of a transaction is told by a server
// that has it on its disk.
func (cc *clientConn) checkReplied(frame []byte) {
	if !cc.answered {
		cc.answered = true
		cc.checkHandshake(frame)
		return
	}
	var h wire.ReplyHeader
	d := jute.NewDecoder(frame, fieldBytesMax)
	h.Decode(&d)
	if s := cc.s; h.Zxid > 0 && !s.durable.has(h.Zxid) {
		s.w.fail("LOCAL", "s%d tells client %d of %v, and its disk ends at %v", s.id, cc.c.index, h.Zxid, s.durable.last())
	}
}

// checkHandshake is E-28: a session that is accepted lives in the server's state, one that is refused does not.
func (cc *clientConn) checkHandshake(frame []byte) {
	var resp wire.ConnectResponse
	d := jute.NewDecoder(frame, fieldBytesMax)
	resp.Decode(&d)
	s := cc.s
	if resp.SessionID != 0 {
		if _, ok := s.replica.Tree().SessionTimeout(resp.SessionID); !ok {
			s.w.fail("E-28", "s%d accepts the session %v, which its state does not have", s.id, resp.SessionID)
		}
		return
	}
	if _, ok := s.replica.Tree().SessionTimeout(cc.c.session); ok {
		s.w.fail("E-28", "s%d says that the session %v is over, which is in its state", s.id, cc.c.session)
	}
}

// checkSession is E-28, E-30 and E-31: transactions of a session lie between its beginning and its end, and come from one
// connection after the other.
func (g *ghost) checkSession(t *txn) {
	s := g.sessions[t.session]
	switch {
	case t.session == 0:
		return
	case t.op == wire.OpCreateSession:
		if s != nil {
			g.w.fail("E-28", "transaction %v creates the session %v a second time", t.z, t.session)
		}
		return
	case t.op == wire.OpError:
		return
	case s == nil, s.died != 0:
		g.w.fail("E-28", "transaction %v (%v) belongs to the session %v, which does not live", t.z, t.op, t.session)
	case t.op == wire.OpCloseSession:
		if t.cxid == 0 {
			g.w.count.Expiries++
			g.checkExpiry(t, s)
		}
		return
	}
	key := connKey{server: t.origin.Server, conn: t.origin.Conn}
	if key.conn == 0 {
		return
	}
	if n := len(s.owners); n > 0 && s.owners[n-1] == key {
		return
	}
	for _, old := range s.owners {
		if old == key {
			g.w.fail("E-31", "transaction %v of session %v comes from connection %d of s%d, which had lost the session", t.z, t.session, key.conn, key.server)
		}
	}
	s.owners = append(s.owners, key)
}

// checkExpiry is E-30: a session gets its whole timeout from a new leader.
func (g *ghost) checkExpiry(t *txn, s *sessionHistory) {
	leader := g.w.server(g.leaders[t.z.Epoch()].server)
	if !leader.running || leader.status.Epoch != t.z.Epoch() {
		return
	}
	// The clocks drift by 3 % at most.
	if served := t.at - leader.servedSince; served < Micros(s.timeoutMs)*millisecond*94/100 {
		g.w.fail("E-30", "session %v with a timeout of %d ms is ended by a leader that serves since %v only", t.session, s.timeoutMs, served)
	}
	g.checkCalm(t)
}

// checkCalm is E-30: while nothing goes wrong, the session of a client that is connected and speaks up is not ended.
func (g *ghost) checkCalm(t *txn) {
	w := g.w
	if w.active > 0 && !w.healed {
		return
	}
	for _, c := range w.clients {
		long := 3 * Micros(c.timeoutMs) * millisecond
		if c.session == t.session && c.connected && !c.silent && !c.ending && min(t.at-c.connectedAt, t.at-w.calmSince, t.at-w.outageAt) > long {
			w.fail("E-30", "session %v with a timeout of %d ms is ended, although its client is connected since %v and sent something at %v", t.session,
				c.timeoutMs, c.connectedAt, c.lastSent)
		}
	}
}

// checkRequest is E-07 and E-17: a transaction is what somebody has asked for, and nothing that was asked for happens
// twice, or after the client was told that it has not happened.
func (g *ghost) checkRequest(t *txn, body *znode.Txn) {
	if t.cxid == 0 {
		switch t.op {
		case wire.OpCreateSession, wire.OpCloseSession:
		default:
			g.w.fail("E-07", "nobody has asked for transaction %v (%v)", t.z, t.op)
		}
		return
	}
	r := g.w.writes[writeID{t.session, t.cxid}]
	switch {
	case r == nil:
		g.w.fail("E-07", "nobody has asked for transaction %v (%v, session %v, %d)", t.z, t.op, t.session, t.cxid)
	case r.txn != nil:
		g.w.fail("E-07", "request %d of session %v became %v and %v", t.cxid, t.session, r.txn.z, t.z)
	case r.refused && t.op != wire.OpError:
		g.w.fail("E-17", "request %d of session %v, which was refused, became %v", t.cxid, t.session, t.z)
	}
	r.txn = t
	if t.op == wire.OpError {
		r.code = body.Err
		return
	}
	r.created = string(body.Path)
	if !r.matches(t.op, body) {
		g.w.fail("E-07", "transaction %v (%v %s) is not what request %d of session %v asked for (%v %s)", t.z, t.op, body.Path, t.cxid, t.session,
			r.op, r.path)
	}
	failed := slices.ContainsFunc(body.Multi, func(part znode.Txn) bool { return part.Type == wire.OpError })
	for i := range body.Multi {
		part := &body.Multi[i]
		result := wire.MultiResult{Op: part.Type, Err: part.Err, Path: bytes.Clone(part.Path)}
		if failed {
			result.Op = wire.OpError // those before the one that was refused have the code OK
		}
		r.results = append(r.results, result)
	}
}

func (r *request) matches(op wire.Op, body *znode.Txn) bool {
	switch r.op {
	case wire.OpCreate, wire.OpCreate2:
		ok := (op == wire.OpCreate || op == wire.OpCreate2) && bytes.Equal(body.Data, r.data) && body.Ephemeral == (r.flags&wire.FlagEphemeral != 0)
		if r.flags&wire.FlagSequential != 0 {
			return ok && strings.HasPrefix(r.created, r.path) && len(r.created) == len(r.path)+sequenceDigits
		}
		return ok && r.created == r.path
	case wire.OpSetData:
		return op == r.op && r.created == r.path && bytes.Equal(body.Data, r.data) && (r.version == -1 || body.Version == r.version+1)
	case wire.OpDelete:
		return op == r.op && r.created == r.path
	case wire.OpMulti:
		return op == r.op && matchParts(body.Multi, r.multi)
	}
	return op == r.op
}

// matchParts compares the parts of a multi. The first that is refused is an error, and so is everything behind it.
func matchParts(got []znode.Txn, want []wire.MultiOp) bool {
	if len(got) != len(want) {
		return false
	}
	failed := false
	for i := range want {
		isError := got[i].Type == wire.OpError
		if failed && !isError || !isError && !matchPart(&got[i], &want[i]) {
			return false
		}
		failed = isError
	}
	return true
}

func matchPart(got *znode.Txn, want *wire.MultiOp) bool {
	if got.Type != want.Op {
		return false
	}
	switch want.Op {
	case wire.OpCreate: // all of them are sequential
		return bytes.HasPrefix(got.Path, want.Create.Path) && len(got.Path) == len(want.Create.Path)+sequenceDigits &&
			bytes.Equal(got.Data, want.Create.Data)
	case wire.OpSetData:
		return bytes.Equal(got.Path, want.Path) && bytes.Equal(got.Data, want.Data)
	}
	return bytes.Equal(got.Path, want.Path) && got.Version == want.Version+1 // of a check
}

// sequenceDigits is the length of the number at the end of a sequential name.
const sequenceDigits = 10

// checkSequence is E-34: the numbers under one parent only rise.
func (g *ghost) checkSequence(t *txn, path string) {
	digits, ok := strings.CutPrefix(path, "/q/s-")
	if !ok {
		return
	}
	n, err := strconv.Atoi(digits)
	if err != nil || len(digits) != sequenceDigits || n <= g.lastSequence {
		g.w.fail("E-34", "transaction %v creates %s, after number %d", t.z, path, g.lastSequence)
	}
	g.lastSequence = n
}

// committedAt is the state that z belongs to: its digest, if it has one.
func (g *ghost) committedAt(z zxid.Zxid) (digest uint64, ok bool) {
	if t := g.txns[z]; t != nil && t.place > 0 && t.hasDigest {
		return t.digest, true
	}
	return 0, false
}
