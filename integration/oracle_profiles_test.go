//go:build interop && linux

package integration

import (
	"encoding/binary"
	"fmt"
)

// oracleProfiles are chosen by the seed: seed modulo their number.
var oracleProfiles = []*oracleProfile{
	{name: "tree", steps: 150, odd: 25, choices: []choice{
		{40, sendOne((*oracleGen).write)}, {30, sendOne((*oracleGen).read)}, {5, stepSetACL}, {3, sendOne((*oracleGen).multi)}, {2, stepUnknown},
		{2, sendOne(reconfig)}, {3, sendOne((*oracleGen).plain)}, {3, stepSASL},
	}},
	{name: "multi", steps: 120, odd: 12, choices: []choice{
		{50, sendOne((*oracleGen).multi)}, {15, sendOne((*oracleGen).write)}, {10, sendOne((*oracleGen).read)}, {10, sendOne((*oracleGen).multiRead)},
		{10, sendOne((*oracleGen).watchOp)}, {2, stepClose},
	}},
	{name: "watch", steps: 180, odd: 4, choices: []choice{
		{45, sendOne((*oracleGen).watchOp)}, {35, sendOne((*oracleGen).write)}, {8, sendOne((*oracleGen).multi)}, {8, sendOne((*oracleGen).setWatches)},
		{6, stepReconnect}, {2, stepClose}, {5, stepSetACL},
	}},
	{name: "watchodd", steps: 150, odd: 30, choices: []choice{
		{45, sendOne((*oracleGen).watchOp)}, {40, sendOne((*oracleGen).write)}, {8, sendOne((*oracleGen).setWatches)}, {3, stepReconnect},
	}},
	{name: "acl", steps: 150, odd: 8, auth: true, choices: []choice{
		{30, sendOne((*oracleGen).write)}, {25, sendOne((*oracleGen).read)}, {15, stepSetACL}, {10, sendOne((*oracleGen).watchOp)},
		{8, sendOne((*oracleGen).multi)}, {4, sendOne((*oracleGen).multiRead)}, {5, stepAuth}, {3, sendOne((*oracleGen).plain)}, {2, stepReconnect},
		{2, sendOne((*oracleGen).setWatches)},
	}},
	{name: "session", steps: 120, odd: 4, choices: []choice{
		{25, sendOne((*oracleGen).ephemeral)}, {15, sendOne((*oracleGen).write)}, {15, sendOne((*oracleGen).read)}, {10, sendOne((*oracleGen).watchOp)},
		{6, stepClose}, {8, stepReconnect}, {4, stepHandshake}, {5, sendOne((*oracleGen).multi)}, {1, stepExpire},
	}},
	{name: "quota", steps: 150, odd: 4, choices: []choice{
		{25, sendOne((*oracleGen).quota)}, {40, sendOne((*oracleGen).quotaWrite)}, {15, sendOne((*oracleGen).write)}, {10, sendOne((*oracleGen).quotaRead)},
		{8, sendOne((*oracleGen).multi)}, {2, stepClose},
	}},
	{name: "batch", steps: 90, odd: 8, choices: []choice{{60, stepBatch}, {15, sendOne((*oracleGen).watchOp)}, {3, stepClose}, {3, stepReconnect}}},
	{name: "batchacl", steps: 90, odd: 4, auth: true, choices: []choice{{60, stepBatch}, {15, sendOne((*oracleGen).watchOp)}, {3, stepAuth}, {10, stepSetACL}}},
	{name: "malformed", steps: 120, odd: 20, choices: []choice{
		{60, stepMangled}, {15, sendOne((*oracleGen).any)}, {6, stepFrame}, {3, stepUnknown}, {3, stepHandshake}, {3, stepClose},
	}},
	{name: "restart", steps: 60, odd: 10, auth: true, choices: []choice{
		{20, sendOne((*oracleGen).write)}, {10, sendOne((*oracleGen).multi)}, {6, sendOne((*oracleGen).ephemeral)}, {6, stepSetACL}, {6, sendOne((*oracleGen).quota)},
		{10, sendOne((*oracleGen).quotaWrite)}, {10, stepBatch}, {2, stepClose}, {5, sendOne((*oracleGen).read)}, {3, stepRestart},
	}},
	{name: "reaper", steps: 40, odd: 0, reaping: true, choices: []choice{
		{10, stepContainer}, {10, stepOutlived}, {20, sendOne((*oracleGen).watchOp)}, {20, sendOne((*oracleGen).reaperWrite)},
	}},
}

// sendOne makes a step of one request.
func sendOne(make func(g *oracleGen) oracleReq) func(g *oracleGen) {
	return func(g *oracleGen) {
		session, q := g.session(), make(g)
		g.send(session, q)
		if q.op == opCheck || q.op == opSASL {
			g.revive(session)
		}
	}
}

func stepSetACL(g *oracleGen) {
	g.send(g.session(), setACLReq(g.path(), g.acl(), pick[int32](g, -1, -1, -1, 0, 1, 2, -2)))
}

func (g *oracleGen) plain() oracleReq { return pick(g, bareReq(opWhoAmI), bareReq(opPing)) }

func reconfig(g *oracleGen) oracleReq {
	b := oracleBytes{}.text(pick(g, "", pathNull, "server.1=a:1:2;3")).text(pathNull).text(pathNull).i64(-1)
	return plainReq(opReconfig, b, "reconfig")
}

func stepSASL(g *oracleGen) {
	session := g.session()
	token := pick(g, "", "abc", pathNull)
	g.send(session, plainReq(opSASL, oracleBytes{}.text(token), "sasl "+show(token)))
	g.revive(session)
}

// stepUnknown sends an opcode that ends the connection. (-10, with which servers make sessions, is refused on purpose.)
func stepUnknown(g *oracleGen) {
	session := g.session()
	op := pick[int32](g, 0, 10, 23, 99, 108, -1, -2, -9, -12, 1000, opCheck)
	q := plainReq(op, oracleBytes{}.text(g.path()).i32(-1), fmt.Sprintf("op %d", op))
	g.send(session, q)
	g.revive(session)
}

func stepClose(g *oracleGen) {
	session := g.session()
	g.send(session, closeReq())
	if g.chance(30) {
		g.add(oracleStep{session: session, act: actAttach, connect: oracleConnect{timeout: oracleTimeoutMs}})
	}
	g.revive(session)
}

// stepReconnect comes back to a session on a new connection, mostly after the old one was lost, and sets the watches again.
func stepReconnect(g *oracleGen) {
	session := g.session()
	if g.chance(70) {
		g.add(oracleStep{session: session, act: actDrop})
		for range g.IntN(4) {
			g.send(g.session(), g.write())
		}
	}
	g.add(oracleStep{session: session, act: actAttach, connect: oracleConnect{timeout: oracleTimeoutMs + int32(g.IntN(3000)), oldForm: g.chance(30), last: g.chance(50)}})
	if g.chance(70) {
		g.send(session, g.setWatches())
	}
}

// stepHandshake asks for a session in an odd way. A wrong password is tried only where no connection is open: otherwise
// the reference would end that one, which is not copied.
func stepHandshake(g *oracleGen) {
	session := g.session()
	how := oracleConnect{timeout: oracleTimeoutMs, oldForm: g.chance(30), extra: g.IntN(2) * g.IntN(9)}
	if how.oldForm {
		how.extra = 0
	}
	if g.chance(20) {
		how.ro, how.proto = byte(g.IntN(3)), pick[int32](g, 0, 1, -1, 99)
	}
	switch g.IntN(6) {
	case 0:
		g.add(oracleStep{session: session, act: actDrop})
		how.passwd = pick(g, "wrong", "short", "long", "empty", "null")
		g.add(oracleStep{session: session, act: actAttach, connect: how})
	case 1:
		how.passwd = pick(g, "wrong", "short", "long", "empty", "null")
		g.add(oracleStep{session: session, act: actOpen, connect: how})
	case 2:
		how.passwd = pick(g, "", "", "negative", "huge")
		how.cut = 2 + g.IntN(50)
		g.add(oracleStep{session: session, act: actDrop})
		g.add(oracleStep{session: session, act: pick(g, actOpen, actAttach), connect: how})
	case 3:
		// Requests right behind the one for the session wait for it.
		how.extra = 0
		g.add(oracleStep{session: session, act: pick(g, actOpen, actAttach), connect: how, reqs: []oracleReq{g.any(), g.any(), g.any()}})
	case 4:
		how.last, how.lastAdd = true, pick[int64](g, 0, -1, 1000000)
		g.add(oracleStep{session: session, act: actAttach, connect: how})
	default:
		// The session must not end by itself, so it is closed before it can.
		how.timeout = pick[int32](g, 0, -1, 1, 999, 1000, 59999, 60000, 60001, 1<<31-1, -1<<31)
		g.add(oracleStep{session: session, act: actOpen, connect: how})
		g.send(session, closeReq())
	}
	g.add(oracleStep{session: session, act: actEnsure})
}

// stepExpire lets a session with a node of its own run into its timeout.
func stepExpire(g *oracleGen) {
	session := g.session()
	watcher := (session + 1) % oracleSessions
	path := fmt.Sprintf("/expire%d", len(g.steps))
	g.add(oracleStep{session: session, act: actOpen, connect: oracleConnect{timeout: oracleShortTimeoutMs}, loose: true})
	g.send(session, createReq(opCreate2, path, "", openEntries, 1, 0), createReq(opCreate, "/a/e", "", openEntries, 1, 0))
	g.add(oracleStep{session: watcher, act: actEnsure})
	g.send(watcher, numberReq(opAddWatch, "/", 1))
	g.add(oracleStep{session: session, act: actDrop})
	g.add(oracleStep{session: watcher, act: actAwaitGone, path: path, loose: true})
	g.add(oracleStep{session: session, act: actAttach, connect: oracleConnect{timeout: oracleTimeoutMs}})
	g.add(oracleStep{session: session, act: actEnsure})
}

func stepAuth(g *oracleGen) {
	session := g.session()
	scheme := pick(g, "digest", "digest", "digest", "digest", "ip", "world", "auth", "super", "nonesuch", "", pathNull)
	token := pick(g, fmt.Sprintf("user%d:x", g.IntN(20)), "ann:a", "bob:b", "ann:wrong", "super:test", "user", "", ":", "a:b:c", "\u00fc:\u00e9", "\xff:\xfe", pathNull)
	g.send(session, authReq(scheme, token))
	g.revive(session)
}

// ephemeral is a request that has to do with nodes that belong to sessions.
func (g *oracleGen) ephemeral() oracleReq {
	op := pick[int32](g, opCreate, opCreate2, opCreate2)
	q := createReq(op, g.path(), g.data(), openEntries, pick[int32](g, 1, 1, 3), 0)
	switch g.IntN(5) {
	case 0:
		return readReq(opGetEphemerals, pick(g, "/", "/a", "/b/x"), 0)
	case 1:
		return multiReq(opMulti, []oracleSub{asSub(q), g.sub(), asSub(createReq(op, g.path(), "", openEntries, 3, 0))})
	}
	return q
}

// Paths and texts of quotas. Texts that cannot be read are left out: for the reference they make writes fail, here they
// do not limit. Nor is there a quota on the root, which would end the reference.
var (
	quotaPaths = []string{
		"/zookeeper/quota/a", "/zookeeper/quota/a/x", "/zookeeper/quota/b", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats",
		"/zookeeper/quota/a/x/zookeeper_limits", "/zookeeper/quota/a/x/zookeeper_stats", "/zookeeper/quota/b/zookeeper_limits", "/zookeeper/quota/b/zookeeper_stats",
		"/zookeeper/quota/zookeeper_stats", "/zookeeper/quota/a/x/p", "/zookeeper/quota/zookeeper", "/zookeeper/quota/zookeeper/zookeeper_limits",
		"/zookeeper/quota/zookeeper/zookeeper_stats", "/zookeeper/quota/a/zookeeper_limits/x", "/zookeeper/quota/a/zookeeper_stats/zookeeper_stats",
	}
	quotaLimits = []string{
		"count=3,bytes=20", "count=-1,bytes=-1=;byteHardLimit=20;countHardLimit=3", "count=-1,bytes=-1=;byteHardLimit=40;countHardLimit=-1",
		"count=2,bytes=10=;byteHardLimit=30;countHardLimit=5", "countHardLimit=2", "byteHardLimit=0", "count=1", "", "count==5,bytes==7", "count=1;;,countHardLimit=4,",
		"count=9223372036854775807,bytes=-1=;byteHardLimit=9223372036854775807;countHardLimit=+5", "byteHardLimit=-9223372036854775808,countHardLimit=002",
		"count=-1,bytes=-1=;countHardLimit=0", "other=1,countHardLimit=3", "countHardLimit=3,countHardLimit=5", "count=-1,bytes=-1=;byteHardLimit=9=;countHardLimit=3=",
	}
	quotaStats = []string{"count=0,bytes=0", "count=5,bytes=50", "count=-3,bytes=-7"}
)

func (g *oracleGen) quota() oracleReq {
	path := pick(g, quotaPaths...)
	text := pick(g, quotaLimits...)
	if path[len(path)-1] == 's' && path[len(path)-2] == 't' && path[len(path)-3] == 'a' {
		text = pick(g, quotaStats...)
	}
	switch g.IntN(10) {
	case 0:
		return setDataReq(path, text, -1)
	case 1:
		return deleteReq(path, -1)
	}
	return createReq(pick[int32](g, opCreate, opCreate2), path, text, openEntries, pick[int32](g, 0, 0, 0, 0, 0, 1), 0)
}

func (g *oracleGen) quotaRead() oracleReq {
	return readReq(pick[int32](g, opGetData, opGetData, opExists), pick(g, quotaPaths...), byte(g.IntN(2)))
}

func (g *oracleGen) quotaWrite() oracleReq {
	path := pick(g, usualPaths...)
	data := pick(g, "", pathNull, "1", "12345", "1234567890", "12345678901234567890")
	switch g.IntN(6) {
	case 0:
		return deleteReq(path, -1)
	case 1, 2:
		return setDataReq(path, data, g.version())
	}
	return createReq(pick[int32](g, opCreate, opCreate2, opCreateContainer), path, data, openEntries, pick[int32](g, 0, 0, 0, 1, 2), 0)
}

// stepBatch writes many requests at once. What may end the connection, and setACL, behind which the reference may still
// judge by the old list, only come last.
func stepBatch(g *oracleGen) {
	session := g.session()
	var reqs []oracleReq
	for range 2 + g.IntN(14) {
		reqs = append(reqs, g.any())
	}
	switch g.IntN(12) {
	case 0:
		reqs = append(reqs, setACLReq(g.path(), g.acl(), -1))
	case 1:
		reqs = append(reqs, closeReq())
	}
	g.send(session, reqs...)
	if reqs[len(reqs)-1].op == opCloseSession {
		g.add(oracleStep{session: session, act: actEnsure})
	}
}

// stepMangled sends a request with something wrong. Bytes are not changed in createTTL: some flags end the reference.
func stepMangled(g *oracleGen) {
	session, q := g.session(), g.any()
	if len(q.subs) > 0 {
		for _, s := range q.subs {
			q.body = append(append([]byte(nil), s.bytes...), q.body...)
		}
		q.subs = nil
	}
	q.body = append([]byte(nil), q.body...)
	q.text += " as"
	for range 1 + g.IntN(2) {
		g.mangle(&q)
	}
	q.text += fmt.Sprintf(" %d:%.300x", q.op, q.body)
	g.send(session, q)
	g.revive(session)
}

func (g *oracleGen) mangle(q *oracleReq) {
	n := len(q.body)
	fragile := q.op == opCreateTTL || q.op == opMulti
	switch g.IntN(6) {
	case 0:
		q.body = q.body[:g.IntN(n+1)]
		return
	case 1:
		for range 1 + g.IntN(12) {
			q.body = append(q.body, byte(g.Uint32()))
		}
		return
	case 2:
		q.xid = pick[int32](g, 7, -2, -4, -8, -3, -1<<31, 1<<30)
		return
	case 3:
		if !fragile && n >= 4 {
			at := g.IntN(n - 3)
			binary.BigEndian.PutUint32(q.body[at:], pick[uint32](g, 0, 0xffffffff, 0xfffffffe, 0x7fffffff, 0x80000000, 1, 0x100000, 0x1fffff))
		}
	case 4:
		if !fragile && n > 0 {
			q.body[g.IntN(n)] ^= 1 << g.IntN(8)
		}
	case 5:
		if q.op != opMulti && q.op != opMultiRead { // the record of another kind of request
			q.op = pick[int32](g, opCreate, opDelete, opExists, opGetData, opSetData, opGetACL, opSetACL, opGetChildren, opSync, opPing, opGetChildren2,
				opMulti, opCreate2, opCheckWatches, opRemoveWatches, opMultiRead, opGetEphemerals, opGetAllChildrenNumber, opAddWatch, opWhoAmI)
		}
	}
	if q.zxidAt >= len(q.body)-8 || q.op != opSetWatches && q.op != opSetWatches2 {
		q.zxidAt = -1
	}
}

// stepFrame sends a frame that is none.
func stepFrame(g *oracleGen) {
	session := g.session()
	raw := pick(g, []byte{0, 0, 0, 0}, []byte{0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7}, []byte{0xff, 0xff, 0xff, 0xff}, []byte{0x7f, 0, 0, 0}, []byte{0, 0x10, 0, 0},
		[]byte{0, 0, 0, 4, 0, 0, 0, 1}, []byte("ruok"), []byte{0x80, 0, 0, 0})
	g.add(oracleStep{session: session, act: actRaw, raw: raw})
	g.add(oracleStep{session: session, act: actEnsure})
}

// stepContainer lets the server delete a container whose last child goes.
func stepContainer(g *oracleGen) {
	session := g.session()
	path := fmt.Sprintf("/c%d", len(g.steps))
	op, flags := int32(opCreateContainer), int32(4)
	g.send(session, createReq(op, path, g.data(), openEntries, flags, 0))
	below := path
	if g.chance(30) { // one container in the other: the outer one goes when the inner one is gone
		below += "/inner"
		g.send(session, createReq(op, below, "", openEntries, flags, 0))
	}
	g.send(session, createReq(opCreate, below+"/x", "", openEntries, pick[int32](g, 0, 1), 0))
	g.send(g.session(), pick(g, readReq(opGetData, path, 1), readReq(opGetChildren, path, 1), numberReq(opAddWatch, path, 0), numberReq(opAddWatch, "/", 1)))
	if below == path && g.chance(30) {
		g.send(session, createReq(opCreate, path+"/y", "", openEntries, 0, 0))
		g.send(session, deleteReq(path+"/y", -1))
	}
	g.add(oracleStep{session: session, act: actAwaitGone, path: path, reqs: []oracleReq{deleteReq(below+"/x", -1)}})
	g.send(session, readReq(opExists, path, 0))
}

// stepOutlived lets the server delete a TTL node.
func stepOutlived(g *oracleGen) {
	session := g.session()
	path := fmt.Sprintf("/t%d", len(g.steps))
	ttl := pick[int64](g, 1, 5)
	q := createReq(opCreateTTL, path, "", openEntries, 5, ttl)
	if g.chance(40) {
		// The child is there in the same transaction, before the node can be outlived.
		g.send(session, multiReq(opMulti, []oracleSub{asSub(q), asSub(createReq(opCreate, path+"/x", "", openEntries, 0, 0))}))
		q = deleteReq(path+"/x", -1)
	}
	g.send(g.session(), pick(g, readReq(opExists, path, 1), readReq(opGetData, path, 1), readReq(opGetChildren, path, 1), numberReq(opAddWatch, path, 0)))
	g.add(oracleStep{session: session, act: actAwaitGone, path: path, reqs: []oracleReq{q}})
}

// stepRestart has the servers read what they have on disk.
func stepRestart(g *oracleGen) {
	g.add(oracleStep{act: actRestart})
	for session := range oracleSessions {
		g.add(oracleStep{session: session, act: actEnsure})
		if g.chance(50) {
			g.login(session, pick(g, "ann:a", "bob:b"))
		}
	}
}

// reaperWrite makes no node that the server would delete, for when that happens cannot be foretold.
func (g *oracleGen) reaperWrite() oracleReq {
	switch g.IntN(3) {
	case 0:
		return deleteReq(g.path(), -1)
	case 1:
		return setDataReq(g.path(), g.data(), -1)
	}
	return createReq(opCreate, g.path(), g.data(), openEntries, 0, 0)
}
