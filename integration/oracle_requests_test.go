//go:build interop && linux

package integration

import "fmt"

// oracleACL is an entry of a list; either text may be pathNull.
type oracleACL struct {
	perms      int32
	scheme, id string
}

var openEntries = []oracleACL{{31, "world", "anyone"}}

func (b oracleBytes) acl(list []oracleACL) oracleBytes {
	if list == nil {
		return b.i32(-1)
	}
	b = b.i32(int32(len(list)))
	for _, e := range list {
		b = b.i32(e.perms).text(e.scheme).text(e.id)
	}
	return b
}

func showACL(list []oracleACL) string {
	if list == nil {
		return "null"
	}
	return fmt.Sprint(list)
}

func plainReq(op int32, body []byte, text string) oracleReq {
	return oracleReq{op: op, body: body, zxidAt: -1, text: text}
}

// show renders a path or data for a report.
func show(s string) string {
	switch {
	case s == pathNull:
		return "null"
	case len(s) > 60:
		return fmt.Sprintf("%.40q+%d", s, len(s)-40)
	}
	return fmt.Sprintf("%q", s)
}

var opNames = map[int32]string{
	opCreate: "create", opDelete: "delete", opExists: "exists", opGetData: "getData", opSetData: "setData", opGetACL: "getACL",
	opSetACL: "setACL", opGetChildren: "getChildren", opSync: "sync", opPing: "ping", opGetChildren2: "getChildren2",
	opCheck: "check", opMulti: "multi", opCreate2: "create2", opReconfig: "reconfig", opCheckWatches: "checkWatches",
	opRemoveWatches: "removeWatches", opCreateContainer: "createContainer", opDeleteContainer: "deleteContainer",
	opCreateTTL: "createTTL", opMultiRead: "multiRead", opAuth: "auth", opSetWatches: "setWatches", opSASL: "sasl",
	opGetEphemerals: "getEphemerals", opGetAllChildrenNumber: "getAllChildrenNumber", opSetWatches2: "setWatches2",
	opAddWatch: "addWatch", opWhoAmI: "whoAmI", opCloseSession: "close",
}

// createReq builds any kind of create; ttl counts for createTTL only.
func createReq(op int32, path, data string, acl []oracleACL, flags int32, ttl int64) oracleReq {
	b := oracleBytes{}.text(path).text(data).acl(acl).i32(flags)
	text := fmt.Sprintf("%s %s data=%s acl=%s flags=%d", opNames[op], show(path), show(data), showACL(acl), flags)
	if op == opCreateTTL {
		b = b.i64(ttl)
		text += fmt.Sprintf(" ttl=%d", ttl)
	}
	return plainReq(op, b, text)
}

// versionReq is delete and check.
func versionReq(op int32, path string, version int32) oracleReq {
	return plainReq(op, oracleBytes{}.text(path).i32(version), fmt.Sprintf("%s %s v%d", opNames[op], show(path), version))
}

func deleteReq(path string, version int32) oracleReq { return versionReq(opDelete, path, version) }

func setDataReq(path, data string, version int32) oracleReq {
	return plainReq(opSetData, oracleBytes{}.text(path).text(data).i32(version),
		fmt.Sprintf("setData %s %s v%d", show(path), show(data), version))
}

func setACLReq(path string, acl []oracleACL, version int32) oracleReq {
	return plainReq(opSetACL, oracleBytes{}.text(path).acl(acl).i32(version), fmt.Sprintf("setACL %s %s v%d", show(path), showACL(acl), version))
}

// readReq is a request with a path and, for the four reads that can leave a watch, the byte that asks for it.
func readReq(op int32, path string, watch byte) oracleReq {
	b := oracleBytes{}.text(path)
	text := opNames[op] + " " + show(path)
	switch op {
	case opExists, opGetData, opGetChildren, opGetChildren2:
		b = b.u8(watch)
		if watch != 0 {
			text += fmt.Sprintf(" watch=%d", watch)
		}
	}
	return plainReq(op, b, text)
}

// numberReq is a request with a path and a number: addWatch, checkWatches, removeWatches.
func numberReq(op int32, path string, n int32) oracleReq {
	return plainReq(op, oracleBytes{}.text(path).i32(n), fmt.Sprintf("%s %s %d", opNames[op], show(path), n))
}

// bareReq is a request without a record.
func bareReq(op int32) oracleReq { return plainReq(op, nil, opNames[op]) }

func closeReq() oracleReq { return bareReq(opCloseSession) }

func authReq(scheme, token string) oracleReq {
	q := plainReq(opAuth, oracleBytes{}.i32(0).text(scheme).text(token), fmt.Sprintf("auth %s %s", show(scheme), show(token)))
	q.xid = -4
	return q
}

// setWatchesReq names watches of old; since is counted from the beginning of the run.
func setWatchesReq(op int32, since int64, lists [5][]string) oracleReq {
	b := oracleBytes{}.i64(since)
	n := 3
	if op == opSetWatches2 {
		n = 5
	}
	text := fmt.Sprintf("%s since +%d", opNames[op], since)
	for _, list := range lists[:n] {
		b = b.texts(list, list == nil)
		if list == nil {
			text += " null"
			continue
		}
		text += fmt.Sprintf(" %q", list)
	}
	q := plainReq(op, b, text)
	q.xid, q.zxidAt = -8, 0
	return q
}

// asSub makes an operation of a multi of a request.
func asSub(q oracleReq) oracleSub {
	b := oracleBytes{}.i32(q.op).u8(0).i32(-1)
	return oracleSub{bytes: append(b, q.body...), text: q.text}
}

// multiReq is a multi or multiRead of some operations.
func multiReq(op int32, subs []oracleSub) oracleReq {
	q := plainReq(op, oracleBytes{}.i32(-1).u8(1).i32(-1), opNames[op])
	q.subs = subs
	return q
}
