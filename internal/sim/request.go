package sim

import (
	"bytes"
	"fmt"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// writeID names a request that may become a transaction. Clients of this simulation never use an xid twice in a session.
type writeID struct {
	session zxid.SessionID
	xid     int32
}

// request is what a client has asked for.
type request struct {
	op      wire.Op
	xid     int32
	session zxid.SessionID
	path    string
	data    []byte
	version int32
	flags   int32
	multi   []wire.MultiOp
	watch   bool
	watches *wire.SetWatchesRequest
	sentAt  Micros
	// floor is the last committed transaction at the time of sending.
	floor zxid.Zxid

	// txn is what became of it; created is the path that it carries.
	txn     *txn
	created string
	code    wire.Code
	// results is what the reply to a multi has to say, without the stats.
	results []wire.MultiResult
	// refused is set when the client was told that nothing came of it.
	refused bool
	healed  bool // sent after the faults
}

func (r *request) isWrite() bool { return r.op.Info().Class == wire.ClassWrite }

func (r *request) record() wire.Record {
	path := []byte(r.path)
	switch r.op {
	case wire.OpCreate, wire.OpCreate2:
		return &wire.CreateRequest{Path: path, Data: r.data, ACL: wire.OpenACL, Flags: r.flags}
	case wire.OpDelete:
		return &wire.PathVersionRequest{Path: path, Version: r.version}
	case wire.OpSetData:
		return &wire.SetDataRequest{Path: path, Data: r.data, Version: r.version}
	case wire.OpGetData, wire.OpExists, wire.OpGetChildren2:
		return &wire.PathWatchRequest{Path: path, Watch: r.watch}
	case wire.OpSync:
		return &wire.PathRequest{Path: path}
	case wire.OpSetWatches:
		return r.watches
	}
	return nil
}

// request sends r on the connection.
func (c *client) request(r *request) {
	w := c.w
	if r.xid == 0 {
		c.xid++
		r.xid = c.xid
	}
	r.session, r.sentAt, r.floor, r.healed = c.session, w.queue.now, w.ghost.last(), w.healed
	c.lastSent = w.queue.now
	c.sent = append(c.sent, r)
	if r.isWrite() {
		w.writes[writeID{c.session, r.xid}] = r
	}
	var e jute.Encoder
	if r.op == wire.OpMulti {
		h := wire.RequestHeader{Xid: r.xid, Op: r.op}
		start := wire.BeginFrame(&e)
		h.Encode(&e)
		wire.AppendMulti(&e, r.multi)
		wire.EndFrame(&e, start)
	} else {
		wire.AppendRequest(&e, wire.RequestHeader{Xid: r.xid, Op: r.op}, r.record())
	}
	w.note(0, "client asks", int64(c.index)<<32|int64(uint32(r.xid)), int64(r.op))
	w.comment("  that is", "client %d, session %v, xid %d: %v %s version %d watch %t", c.index, c.session, r.xid, r.op, r.path, r.version, r.watch)
	c.conn.toServer(bytes.Clone(e.Bytes()[wire.FrameHeadBytes:]))
}

// keys are the plain nodes that clients write.
const keys = 6

// act sends a random request.
func (c *client) act() {
	rnd := c.w.clientRnd
	key := fmt.Sprintf("/k%d", rnd.IntN(keys))
	switch n := rnd.IntN(100); {
	case n < 9:
		c.request(&request{op: wire.OpCreate, path: key, data: c.data()})
	case n < 12:
		c.request(&request{op: wire.OpDelete, path: key, version: -1})
	case n < 30:
		c.request(&request{op: wire.OpSetData, path: key, data: c.data(), version: -1})
	case n < 40:
		c.request(&request{op: wire.OpSetData, path: key, data: c.data(), version: c.versions[key]})
	case n < 47:
		c.request(&request{op: wire.OpCreate2, path: "/q/s-", data: c.data(), flags: wire.FlagSequential})
	case n < 54:
		c.request(&request{op: wire.OpCreate, path: fmt.Sprintf("/e/c%d-%d", c.index, rnd.IntN(4)), flags: wire.FlagEphemeral})
	case n < 58:
		c.deleteOwn()
	case n < 65:
		c.multi(key)
	case n < 78:
		c.request(&request{op: wire.OpGetData, path: key, watch: c.wantsWatch()})
	case n < 85:
		c.request(&request{op: wire.OpExists, path: key, watch: c.wantsWatch()})
	case n < 91:
		c.request(&request{op: wire.OpGetChildren2, path: []string{"/q", "/e"}[rnd.IntN(2)], watch: c.wantsWatch()})
	case n < 99:
		c.w.count.Syncs++
		c.request(&request{op: wire.OpSync, path: key})
		c.request(&request{op: wire.OpGetData, path: key})
	default:
		c.ending = true
		c.request(&request{op: wire.OpCloseSession})
	}
	if c.conn != nil && len(c.sent) < framesMax && rnd.chance(4) && !c.ending {
		c.next() // one more before the answer
	}
}

func (c *client) wantsWatch() bool { return len(c.watches) < watchesMax && c.w.clientRnd.chance(2) }

// data is mostly short, and now and then so long that it spans pages of the log.
func (c *client) data() []byte {
	n := c.w.clientRnd.IntN(120)
	if c.w.clientRnd.chance(12) {
		n = 2000 + c.w.clientRnd.IntN(9000)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + (i+c.index+int(c.xid))%26)
	}
	return b
}

// makeParents creates the nodes that others are below.
func (c *client) makeParents() {
	for _, path := range []string{"/q", "/e"} {
		c.request(&request{op: wire.OpCreate, path: path})
	}
}

func (c *client) deleteOwn() {
	if len(c.names) == 0 {
		c.request(&request{op: wire.OpCreate2, path: "/q/s-", flags: wire.FlagSequential})
		return
	}
	path := c.names[0]
	c.names = c.names[1:]
	c.request(&request{op: wire.OpDelete, path: path, version: -1})
}

// multi changes a key and creates a node if the key has the version that the client knows.
func (c *client) multi(key string) {
	ops := []wire.MultiOp{
		{Op: wire.OpCheck, Path: []byte(key), Version: c.versions[key]},
		{Op: wire.OpSetData, Path: []byte(key), Data: c.data(), Version: -1},
	}
	if c.w.clientRnd.chance(2) {
		ops = ops[1:]
	}
	ops = append(ops, wire.MultiOp{Op: wire.OpCreate, Create: wire.CreateTTLRequest{Path: []byte("/q/s-"), ACL: wire.OpenACL,
		Flags: wire.FlagSequential, TTL: -1}})
	c.request(&request{op: wire.OpMulti, path: key, multi: ops})
}
