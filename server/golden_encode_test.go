package server_test

import (
	"fmt"

	"zabra/jute"
)

// The requests and replies are put together and taken apart here once more, field by field, so that a mistake in package
// wire cannot hide on both sides.

// goldenOps are the requests that a step can send.
var goldenOps = map[string]int32{
	"create": 1, "delete": 2, "exists": 3, "getData": 4, "setData": 5, "getACL": 6, "setACL": 7, "getChildren": 8, "sync": 9, "ping": 11, "getChildren2": 12,
	"check": 13, "multi": 14, "create2": 15, "reconfig": 16, "checkWatches": 17, "removeWatches": 18, "createContainer": 19, "deleteContainer": 20, "createTTL": 21,
	"multiRead": 22, "auth": 100, "setWatches": 101, "sasl": 102, "getEphemerals": 103, "getAllChildrenNumber": 104, "setWatches2": 105, "addWatch": 106, "whoAmI": 107,
	"createSession": -10, "close": -11,
}

// goldenXids are the requests with an xid of their own; all others count from 1 on each connection.
var goldenXids = map[string]int32{"ping": -2, "auth": -4, "setWatches": -8, "setWatches2": -8}

type goldenEncoder struct {
	jute.Encoder
	saved map[string]string
	zxid  func(v any) int64
}

func (e *goldenEncoder) field(f field) {
	switch {
	case f.count != nil:
		e.Int32(*f.count)
	case f.null:
		e.Int32(-1)
	default:
		e.Int32(int32(len(f.b)))
		e.Raw(f.b)
	}
}

// path writes a string or buffer that is null when it is left out.
func (e *goldenEncoder) path(a goldenArgs, name string) { e.field(goldenField(a[name], e.saved)) }

// data writes a buffer that is empty when it is left out.
func (e *goldenEncoder) data(a goldenArgs, name string) {
	if !a.has(name) {
		e.Int32(0)
		return
	}
	e.path(a, name)
}

func (e *goldenEncoder) int32(a goldenArgs, name string, fallback int64) {
	e.Int32(int32(a.integer(name, fallback)))
}

// watch writes a boolean, or the byte that a number asks for.
func (e *goldenEncoder) watch(a goldenArgs) {
	if a.has("watch") && !a.truth("watch") {
		e.Byte(byte(a.integer("watch", 0)))
		return
	}
	e.Bool(a.truth("watch"))
}

func (e *goldenEncoder) acl(a goldenArgs) {
	v, ok := a["acl"]
	if !ok {
		v = "open"
	}
	entry := func(perms int64, scheme, id field) {
		e.Int32(int32(perms))
		e.field(scheme)
		e.field(id)
	}
	world := func(perms int64) { entry(perms, field{b: []byte("world")}, field{b: []byte("anyone")}) }
	switch v := v.(type) {
	case string:
		e.Int32(1)
		switch v {
		case "open":
			world(31)
		case "read":
			world(1)
		case "creator":
			entry(31, field{b: []byte("auth")}, field{})
		default:
			panic("unknown ACL " + v)
		}
	case []any:
		e.Int32(int32(len(v)))
		for _, x := range v {
			x := x.([]any)
			perms := goldenArgs{"p": x[0]}.integer("p", 0)
			entry(perms, goldenField(x[1], e.saved), goldenField(x[2], e.saved))
		}
	default:
		e.field(goldenField(v, e.saved))
	}
}

// paths writes a list of paths, empty when it is left out.
func (e *goldenEncoder) paths(a goldenArgs, name string) {
	v, ok := a[name]
	if !ok {
		e.Int32(0)
		return
	}
	list, ok := v.([]any)
	if !ok {
		e.field(goldenField(v, e.saved))
		return
	}
	e.Int32(int32(len(list)))
	for _, p := range list {
		e.field(goldenField(p, e.saved))
	}
}

// body writes the record of a request.
func (e *goldenEncoder) body(op string, a goldenArgs) {
	switch op {
	case "create", "create2", "createContainer", "createTTL":
		e.createBody(op, a)
	case "delete", "check":
		e.path(a, "path")
		e.int32(a, "version", -1)
	case "exists", "getData", "getChildren", "getChildren2":
		e.path(a, "path")
		e.watch(a)
	case "setData":
		e.path(a, "path")
		e.data(a, "data")
		e.int32(a, "version", -1)
	case "getACL", "sync", "getEphemerals", "getAllChildrenNumber", "deleteContainer":
		e.path(a, "path")
	case "setACL":
		e.path(a, "path")
		e.acl(a)
		e.int32(a, "version", -1)
	case "multi", "multiRead":
		e.multiBody(a)
	case "reconfig":
		e.path(a, "joining")
		e.path(a, "leaving")
		e.path(a, "members")
		e.Int64(a.integer("config", -1))
	case "checkWatches", "removeWatches":
		e.path(a, "path")
		e.int32(a, "type", 3)
	case "auth":
		e.int32(a, "type", 0)
		e.path(a, "scheme")
		e.path(a, "auth")
	case "sasl":
		e.path(a, "token")
	case "setWatches", "setWatches2":
		e.setWatchesBody(op, a)
	case "addWatch":
		e.path(a, "path")
		e.int32(a, "mode", 0)
	case "createSession":
		e.int32(a, "timeout", 0)
	case "req", "hex":
		e.Raw(mustHex(a.text("hex", "")))
	case "whoAmI", "ping", "close":
	default:
		panic(fmt.Sprintf("unknown request %q", op))
	}
}

func (e *goldenEncoder) createBody(op string, a goldenArgs) {
	flags := map[string]int64{"createContainer": 4, "createTTL": 5}[op]
	e.path(a, "path")
	e.data(a, "data")
	e.acl(a)
	e.int32(a, "flags", flags)
	if op == "createTTL" {
		e.Int64(a.integer("ttl", 100000))
	}
}

func (e *goldenEncoder) setWatchesBody(op string, a goldenArgs) {
	rel, ok := a["rel"]
	if !ok {
		rel = "last"
	}
	e.Int64(e.zxid(rel))
	lists := []string{"data", "exist", "child", "persistent", "recursive"}
	if op == "setWatches" {
		lists = lists[:3]
	}
	for _, name := range lists {
		e.paths(a, name)
	}
}

func (e *goldenEncoder) multiBody(a goldenArgs) {
	ops, _ := a["ops"].([]any)
	for _, x := range ops {
		sub := goldenArgs(x.(map[string]any))
		op := sub.text("op", "")
		e.Int32(int32(sub.integer("_type", int64(goldenOps[op]))))
		e.Bool(sub.truth("_done"))
		e.int32(sub, "_err", -1)
		e.body(op, sub)
	}
	if !a.truth("noEnd") {
		e.Int32(-1)
		e.Bool(true)
		e.Int32(-1)
	}
}

// goldenRequest is a request under way.
type goldenRequest struct {
	op     int32 // decides how the reply is read
	xid    int32 // the one that the reply should carry
	at     int   // position in a batch, -1 outside
	save   string
	hidden bool // the reply is not recorded
}

// encodeRequest makes the whole frame of a step and says what is expected back. next is the connection's next xid.
func encodeRequest(s *goldenStep, next func() int32, saved map[string]string, zxid func(any) int64) ([]byte, goldenRequest) {
	op, ok := goldenOps[s.Op]
	if !ok {
		op = int32(s.Args.integer("type", 0)) // req
	}
	op = int32(s.Args.integer("_type", int64(op)))
	xid, ok := goldenXids[s.Op]
	switch {
	case s.Args.has("_xid"):
		xid = int32(s.Args.integer("_xid", 0))
	case !ok:
		xid = next()
	}
	e := goldenEncoder{saved: saved, zxid: zxid}
	e.Int32(0)
	e.Int32(xid)
	e.Int32(op)
	e.body(s.Op, s.Args)
	frame := e.Bytes()
	if n := int(s.Args.integer("_trunc", 0)); n > 0 {
		frame = frame[:max(len(frame)-n, 4+8)]
	}
	frame = append(frame, mustHex(s.Args.text("_extra", ""))...)
	e.Reset(frame)
	e.PatchInt32(0, int32(s.Args.integer("_len", int64(len(frame)-4))))
	if op == goldenOps["ping"] {
		xid = goldenXids["ping"]
	}
	return e.Bytes(), goldenRequest{op: op, xid: xid, at: -1, save: s.Save}
}
