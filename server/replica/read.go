package replica

import (
	"bytes"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// execute answers a request that changes no node: reads, watch operations, sync and ping. The caller holds the tree's
// read lock, or is the stepping goroutine. Everything happens in this one critical section: the read, the watch, the
// zxid of the reply, its place in the outbox.
func (r *Replica) execute(c *Conn, tree *znode.Tree, op wire.Op, xid int32, body []byte, ids []wire.ID, recvMs int64, now Now) {
	z := tree.LastZxid()
	rd := reader{r: r, c: c, tree: tree, op: op, xid: xid, ids: ids, z: z, d: jute.NewDecoder(body, r.cfg.FieldBytesMax)}
	switch op {
	case wire.OpPing:
		rd.xid = wire.XidPing // whatever xid it came with
		rd.header(wire.CodeOK)
	case wire.OpSync:
		rd.sync()
	case wire.OpGetData:
		rd.getData()
	case wire.OpExists:
		rd.exists()
	case wire.OpGetChildren, wire.OpGetChildren2:
		rd.getChildren()
	case wire.OpGetACL:
		rd.getACL()
	case wire.OpGetAllChildrenNumber:
		rd.countAll()
	case wire.OpGetEphemerals:
		rd.getEphemerals()
	case wire.OpWhoAmI:
		rd.whoAmI()
	case wire.OpMultiRead:
		rd.multiRead()
	case wire.OpSetWatches, wire.OpSetWatches2:
		rd.setWatches()
	case wire.OpAddWatch:
		rd.addWatch()
	case wire.OpCheckWatches, wire.OpRemoveWatches:
		rd.watchType()
	default:
		panic("replica: not a read: " + op.String())
	}
	c.endReply(op, rd.xid, z, recvMs, now.MonoMs)
}

// reader is one read on its way: each of its methods decodes the record and starts the reply, which execute ends.
type reader struct {
	r    *Replica
	c    *Conn
	tree *znode.Tree
	op   wire.Op
	xid  int32
	ids  []wire.ID
	z    zxid.Zxid
	d    jute.Decoder
}

// header starts the reply. Nothing may fail after it.
func (rd *reader) header(code wire.Code) *jute.Encoder {
	return rd.c.beginReply(rd.xid, rd.z, code)
}

// node finds the node of a read, checks the permission and refuses with the right code.
func (rd *reader) node(path []byte, perm int32) (znode.Node, bool) {
	n, code := rd.find(path, perm)
	if code != wire.CodeOK {
		rd.header(code)
		return 0, false
	}
	return n, true
}

func (rd *reader) find(path []byte, perm int32) (znode.Node, wire.Code) {
	if rd.d.Err() != nil || path == nil {
		return 0, wire.CodeMarshalling
	}
	n, ok := rd.tree.Find(path)
	if !ok {
		return 0, wire.CodeNoNode
	}
	if !rd.r.auth.Allows(rd.tree.ACL(n), perm, rd.ids) {
		return 0, wire.CodeNoAuth
	}
	return n, wire.CodeOK
}

func (rd *reader) getData() {
	var req wire.PathWatchRequest
	req.Decode(&rd.d)
	n, ok := rd.node(req.Path, wire.PermRead)
	if !ok {
		return
	}
	if req.Watch {
		rd.watch(znode.TableData, req.Path)
	}
	e, data := rd.header(wire.CodeOK), rd.tree.Data(n)
	e.Buffer(data)
	rd.stat(e, n)
	rd.noteRead(req.Path, len(data))
}

func (rd *reader) exists() {
	var req wire.PathWatchRequest
	req.Decode(&rd.d)
	n, code := rd.find(req.Path, wire.PermRead)
	if code != wire.CodeMarshalling && bytes.IndexByte(req.Path, 0) >= 0 {
		code = wire.CodeBadArguments
	}
	if req.Watch && (code == wire.CodeOK || code == wire.CodeNoNode) {
		rd.watch(znode.TableData, req.Path)
	}
	e := rd.header(code)
	if code == wire.CodeOK {
		rd.stat(e, n)
		rd.noteRead(req.Path, 0)
	}
}

func (rd *reader) getChildren() {
	var req wire.PathWatchRequest
	req.Decode(&rd.d)
	n, ok := rd.node(req.Path, wire.PermRead)
	if !ok {
		return
	}
	if req.Watch {
		rd.watch(znode.TableChild, req.Path)
	}
	e := rd.header(wire.CodeOK)
	rd.noteRead(req.Path, rd.children(e, n))
	if rd.op == wire.OpGetChildren2 {
		rd.stat(e, n)
	}
}

// children lists the children of a node, and returns how long their names are together.
func (rd *reader) children(e *jute.Encoder, n znode.Node) (total int) {
	e.Count(rd.tree.NumChildren(n))
	rd.tree.VisitChildren(n, func(name []byte) bool {
		e.UString(name)
		total += len(name)
		return true
	})
	return total
}

func (rd *reader) stat(e *jute.Encoder, n znode.Node) {
	st := rd.tree.Stat(n)
	st.Encode(e)
}

func (rd *reader) getACL() {
	var req wire.PathRequest
	req.Decode(&rd.d)
	n, ok := rd.node(req.Path, wire.PermRead|wire.PermAdmin)
	if !ok {
		return
	}
	list := rd.tree.ACL(n)
	entries := list.Entries()
	if !rd.r.auth.Allows(list, wire.PermAdmin, rd.ids) {
		entries = rd.r.auth.Mask(entries)
	}
	e := rd.header(wire.CodeOK)
	wire.AppendACLs(e, entries)
	rd.stat(e, n)
}

func (rd *reader) countAll() {
	var req wire.PathRequest
	req.Decode(&rd.d)
	n, ok := rd.node(req.Path, wire.PermRead)
	if !ok {
		return
	}
	total := rd.tree.CountDescendants(n)
	if len(req.Path) == 0 {
		total++ // under this name of the root, ZooKeeper counts the root as well
	}
	rd.header(wire.CodeOK).Int32(int32(total))
}

// getEphemerals lists the session's own nodes. The prefix is compared as text, not as a path.
func (rd *reader) getEphemerals() {
	var req wire.PathRequest
	req.Decode(&rd.d)
	if rd.d.Err() != nil {
		rd.header(wire.CodeMarshalling)
		return
	}
	prefix := req.Path
	if trimmed := bytes.TrimFunc(prefix, isJavaBlank); len(trimmed) == 0 || string(trimmed) == "/" {
		prefix = nil
	}
	e := rd.header(wire.CodeOK)
	at, n := e.Len(), int32(0)
	e.Int32(0)
	rd.tree.VisitEphemerals(rd.c.SessionID(), func(path []byte) bool {
		if bytes.HasPrefix(path, prefix) {
			e.UString(path)
			n++
		}
		return true
	})
	e.PatchInt32(at, n)
}

// isJavaBlank tells what Java trims off the ends of a text: the blank and all below it, and no blank beyond ASCII.
func isJavaBlank(r rune) bool { return r <= ' ' }

func (rd *reader) whoAmI() {
	reply := wire.WhoAmIReply{Clients: rd.r.auth.WhoAmI(rd.ids)}
	reply.Encode(rd.header(wire.CodeOK))
}

// sync is answered in its turn. On a standalone server whatever was acknowledged before it is applied here; in an ensemble
// its turn comes when that is proven.
func (rd *reader) sync() {
	var req wire.PathRequest
	req.Decode(&rd.d)
	if rd.d.Err() != nil {
		rd.header(wire.CodeMarshalling)
		return
	}
	rd.header(wire.CodeOK).UString(req.Path)
}

// multiRead answers each of its reads by itself. It sets no watches. As in ZooKeeper, a mixture of reads and writes cannot
// be read; a list of writes, and one with a null path, can, and break at the first of those: the results before it follow
// the error.
func (rd *reader) multiRead() {
	ops, err := wire.DecodeMultiRead(&rd.d, nil)
	reads := countReads(ops)
	if err != nil || (reads > 0 && reads < len(ops)) {
		rd.header(wire.CodeMarshalling)
		return
	}
	if bytes := rd.multiReadBytes(ops); bytes > outBytesMax {
		rd.header(wire.CodeMarshalling)
		rd.r.cfg.Refused(Refusal{Conn: rd.c, Session: rd.c.SessionID(), Op: rd.op, Bytes: bytes, Limit: outBytesMax,
			Why: "the reply to a multiRead would be too large"})
		return
	}
	results := make([]wire.MultiResult, 0, len(ops))
	for i := range ops {
		if reads == 0 || ops[i].Path == nil {
			wire.AppendMultiResults(rd.header(wire.CodeMarshalling), results)
			return
		}
		results = append(results, rd.readOne(&ops[i]))
	}
	wire.AppendMultiResults(rd.header(wire.CodeOK), results)
}

// multiReadBytes is about how large the reply would be. A small request may name a large node many times.
func (rd *reader) multiReadBytes(ops []wire.MultiOp) (total int) {
	for i := range ops {
		n, code := rd.find(ops[i].Path, wire.PermRead)
		switch {
		case code != wire.CodeOK:
		case ops[i].Op == wire.OpGetData:
			total += len(rd.tree.Data(n))
		default:
			rd.tree.VisitChildren(n, func(name []byte) bool {
				total += 4 + len(name)
				return total <= outBytesMax
			})
		}
		if total > outBytesMax {
			return total
		}
	}
	return total
}

func (rd *reader) readOne(m *wire.MultiOp) wire.MultiResult {
	n, code := rd.find(m.Path, wire.PermRead)
	if code != wire.CodeOK {
		return wire.MultiResult{Op: wire.OpError, Err: code}
	}
	res := wire.MultiResult{Op: m.Op}
	if m.Op == wire.OpGetData {
		res.Data, res.Stat = rd.tree.Data(n), rd.tree.Stat(n)
		rd.r.meter.noteRead(m.Path, len(res.Data), new(*Namespace))
		return res
	}
	total := 0
	res.Children = make([][]byte, 0, rd.tree.NumChildren(n))
	rd.tree.VisitChildren(n, func(name []byte) bool {
		res.Children = append(res.Children, name) // the tree's own memory, unchanged under its lock
		total += len(name)
		return true
	})
	rd.r.meter.noteRead(m.Path, total, new(*Namespace))
	return res
}
