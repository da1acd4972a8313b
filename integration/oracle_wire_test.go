//go:build interop && linux

package integration

import (
	"encoding/binary"
	"fmt"
	"sort"
	"strings"
	"time"
)

// Opcodes that the oracle sends, beside those that are written as numbers where an odd one is wanted.
const (
	opCreate                = 1
	opDelete                = 2
	opExists                = 3
	opGetData               = 4
	opSetData               = 5
	opGetACL                = 6
	opSetACL                = 7
	opGetChildren           = 8
	opSync                  = 9
	opPing                  = 11
	opGetChildren2          = 12
	opCheck                 = 13
	opMulti                 = 14
	opCreate2               = 15
	opReconfig              = 16
	opCheckWatches          = 17
	opRemoveWatches         = 18
	opCreateContainer       = 19
	opDeleteContainer       = 20
	opCreateTTL             = 21
	opMultiRead             = 22
	opAuth                  = 100
	opSetWatches            = 101
	opSASL                  = 102
	opGetEphemerals         = 103
	opGetAllChildrenNumber  = 104
	opSetWatches2           = 105
	opAddWatch              = 106
	opWhoAmI                = 107
	opCloseSession          = -11
	opErrorResult           = -1
	xidNotification         = -1
	xidPing                 = -2
	codeMarshalling         = -5
	codeUnimplemented       = -6
	codeAuthFailed          = -115
	pathNull                = "\x00null" // stands for a null string or buffer
	oracleFrameBytesMax     = 16 << 20
	oracleBarrierXid        = 0x7f000000
	oracleBarrierPath       = "/oracle-barrier" // never created
	stateSyncConnected      = 3
	oracleClockToleranceMax = 5 * time.Minute
)

// oracleBytes is a request that is being written.
type oracleBytes []byte

func (b oracleBytes) i32(v int32) oracleBytes { return binary.BigEndian.AppendUint32(b, uint32(v)) }
func (b oracleBytes) i64(v int64) oracleBytes { return binary.BigEndian.AppendUint64(b, uint64(v)) }
func (b oracleBytes) u8(v byte) oracleBytes   { return append(b, v) }

func (b oracleBytes) text(s string) oracleBytes {
	if s == pathNull {
		return b.i32(-1)
	}
	return append(b.i32(int32(len(s))), s...)
}

func (b oracleBytes) texts(list []string, null bool) oracleBytes {
	if null {
		return b.i32(-1)
	}
	b = b.i32(int32(len(list)))
	for _, s := range list {
		b = b.text(s)
	}
	return b
}

// oracleReq is a request as both servers get it, but for the zxid that some carry.
type oracleReq struct {
	op   int32
	xid  int32 // 0: the connection counts
	body []byte
	// zxidAt is where the body holds a zxid that is counted from the beginning of the run; -1 for none.
	zxidAt int
	// subs are the operations of a multi, which stand in front of body.
	subs []oracleSub
	text string
}

// oracleSub is an operation of a multi with its header.
type oracleSub struct {
	bytes []byte
	text  string
}

// frame builds the request with its length.
func (q *oracleReq) frame(xid int32, base int64) []byte {
	b := oracleBytes{0, 0, 0, 0}.i32(xid).i32(q.op)
	for _, s := range q.subs {
		b = append(b, s.bytes...)
	}
	at := len(b)
	b = append(b, q.body...)
	if q.zxidAt >= 0 && len(q.body) >= q.zxidAt+8 {
		field := b[at+q.zxidAt:]
		binary.BigEndian.PutUint64(field, binary.BigEndian.Uint64(field)+uint64(base))
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func (q *oracleReq) String() string {
	if len(q.subs) == 0 {
		return q.text
	}
	texts := make([]string, len(q.subs))
	for i, s := range q.subs {
		texts[i] = s.text
	}
	return fmt.Sprintf("%s[%s]", q.text, strings.Join(texts, "; "))
}

// oracleReader takes an answer apart. After the first field that is not there, everything is zero.
type oracleReader struct {
	b     []byte
	short bool
}

func (r *oracleReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short, r.b = true, nil
		return make([]byte, max(min(n, 8), 0))
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *oracleReader) i32() int32 { return int32(binary.BigEndian.Uint32(r.take(4))) }
func (r *oracleReader) i64() int64 { return int64(binary.BigEndian.Uint64(r.take(8))) }

// text reads a string or buffer in a form that can be printed.
func (r *oracleReader) text() string {
	n := r.i32()
	if n == -1 {
		return "null"
	}
	if int(n) > len(r.b) || n < 0 {
		r.take(-1)
		return "short"
	}
	return fmt.Sprintf("%q", r.take(int(n)))
}

func (r *oracleReader) texts(sorted bool) string {
	n := r.i32()
	if n == -1 {
		return "null"
	}
	var list []string
	for ; n > 0 && !r.short; n-- {
		list = append(list, r.text())
	}
	if sorted {
		sort.Strings(list)
	}
	return fmt.Sprint(list)
}

// oracleView gives zxids, session ids and times of one server a form in which they can be compared with those of another.
type oracleView struct {
	base     int64 // the last zxid before the run
	last     int64 // the highest zxid of an answer
	sessions map[int64]string
	times    map[int64]int64 // by the zxid of the transaction
}

// zxid tells a zxid as the distance from the beginning of the run.
func (v *oracleView) zxid(z int64) string {
	switch {
	case z <= 0:
		return fmt.Sprint(z)
	case z < v.base:
		return "pre"
	}
	return fmt.Sprintf("+%d", z-v.base)
}

// nodeZxid is zxid for those of a node: one from before the run may be any.
func (v *oracleView) nodeZxid(z int64) string {
	if z > 0 && z <= v.base {
		return "pre"
	}
	return v.zxid(z)
}

func (v *oracleView) session(id int64) string {
	if id == 0 {
		return ""
	}
	if name, ok := v.sessions[id]; ok {
		return " owner=" + name
	}
	return fmt.Sprintf(" owner=unknown(%#x)", uint64(id))
}

// clock checks the two times of a node: only their relation is told, and what is wrong with them.
func (v *oracleView) clock(cz, mz, ctime, mtime int64) string {
	if ctime == 0 && mtime == 0 {
		return "0"
	}
	now := time.Now().UnixMilli()
	far := func(t int64) bool {
		return max(now-t, t-now) > oracleClockToleranceMax.Milliseconds()
	}
	if cz <= v.base || ctime == 0 {
		if far(mtime) && mz > v.base {
			return "far"
		}
		return "pre"
	}
	known := func(z, t int64) bool {
		have, ok := v.times[z]
		v.times[z] = t
		return ok && have != t
	}
	switch {
	case far(ctime) || far(mtime):
		return "far"
	case known(cz, ctime) || known(mz, mtime):
		return "one transaction at two times"
	case mtime < ctime:
		return "backwards"
	case cz == mz:
		return "="
	}
	return "<="
}

func (v *oracleView) stat(r *oracleReader) string {
	cz, mz, ctime, mtime := r.i64(), r.i64(), r.i64(), r.i64()
	version, cversion, aversion := r.i32(), r.i32(), r.i32()
	owner, length, children, pz := r.i64(), r.i32(), r.i32(), r.i64()
	if r.short {
		return " stat{short}"
	}
	return fmt.Sprintf(" stat{c%s m%s p%s v%d cv%d av%d len%d nc%d t%s%s}", v.nodeZxid(cz), v.nodeZxid(mz), v.nodeZxid(pz),
		version, cversion, aversion, length, children, v.clock(cz, mz, ctime, mtime), v.session(owner))
}

func readACLs(r *oracleReader) string {
	n := r.i32()
	if n == -1 {
		return " acl=null"
	}
	var b strings.Builder
	for ; n > 0 && !r.short; n-- {
		fmt.Fprintf(&b, "(%d %s %s)", r.i32(), r.text(), r.text())
	}
	return " acl=" + b.String()
}

// event tells a notification; header is read already.
func (v *oracleView) event(zxid int64, code int32, r *oracleReader) string {
	typ, state, path := r.i32(), r.i32(), r.text()
	line := fmt.Sprintf("event %d %s z%s", typ, path, v.zxid(zxid))
	if state != stateSyncConnected || code != 0 {
		line += fmt.Sprintf(" state=%d err=%d", state, code)
	}
	return line + leftover(r)
}

func leftover(r *oracleReader) string {
	switch {
	case r.short:
		return " short"
	case len(r.b) > 0:
		return fmt.Sprintf(" and %d bytes %.40x", len(r.b), r.b)
	}
	return ""
}

// reply tells the answer to a request of kind op.
func (v *oracleView) reply(op int32, xid int32, zxid int64, code int32, r *oracleReader) string {
	v.last = max(v.last, zxid)
	line := fmt.Sprintf("reply x%d z%s err%d", xid, v.zxid(zxid), code)
	switch {
	case code == 0:
		line += v.record(op, r)
	case code == codeMarshalling && op == opMultiRead && len(r.b) > 0:
		line += v.results(r)
	case op == opSASL && len(r.b) > 0:
		line += " token=" + r.text()
	}
	return line + leftover(r)
}

func (v *oracleView) record(op int32, r *oracleReader) string {
	switch op {
	case opCreate, opSync:
		return " " + r.text()
	case opCreate2, opCreateContainer, opCreateTTL:
		return " " + r.text() + v.stat(r)
	case opExists, opSetData, opSetACL:
		return v.stat(r)
	case opGetData, opReconfig:
		return " data=" + r.text() + v.stat(r)
	case opGetACL:
		return readACLs(r) + v.stat(r)
	case opGetChildren, opGetEphemerals:
		return " " + r.texts(true)
	case opGetChildren2:
		return " " + r.texts(true) + v.stat(r)
	case opGetAllChildrenNumber:
		return fmt.Sprintf(" n=%d", r.i32())
	case opAddWatch:
		return fmt.Sprintf(" body=%d", r.i32())
	case opSASL:
		return " token=" + r.text()
	case opWhoAmI:
		return readClients(r)
	case opMulti, opMultiRead:
		return v.results(r)
	}
	return ""
}

func readClients(r *oracleReader) string {
	var list []string
	for n := r.i32(); n > 0 && !r.short; n-- {
		list = append(list, r.text()+":"+r.text())
	}
	sort.Strings(list)
	return fmt.Sprint(" who=", list)
}

// results tells the results of a multi or multiRead.
func (v *oracleView) results(r *oracleReader) string {
	var b strings.Builder
	for !r.short {
		typ, done, code := r.i32(), r.take(1)[0], r.i32()
		if done != 0 {
			fmt.Fprintf(&b, " end(%d %d)", typ, code)
			break
		}
		fmt.Fprintf(&b, " <%d", typ)
		if code != 0 {
			fmt.Fprintf(&b, " header err%d", code)
		}
		if typ == opErrorResult {
			fmt.Fprintf(&b, " err%d>", r.i32())
			continue
		}
		b.WriteString(v.record(typ, r) + ">")
	}
	return b.String()
}
