//go:build linux

package harness

import (
	"encoding/binary"
	"fmt"
)

// begin appends a frame's length, to be set by end, and the request header.
func begin(b []byte, xid, op int32) ([]byte, int) {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(xid))
	return binary.BigEndian.AppendUint32(b, uint32(op)), at
}

func end(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

func appendBytes(b, v []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
	return append(b, v...)
}

// AppendGet appends a getData request without a watch.
func AppendGet(b []byte, xid int32, path string) []byte { return AppendGetWatch(b, xid, path, false) }

// AppendGetWatch appends a getData request.
func AppendGetWatch(b []byte, xid int32, path string, watch bool) []byte {
	b, at := begin(b, xid, OpGetData)
	b = appendBytes(b, []byte(path))
	if watch {
		return end(append(b, 1), at)
	}
	return end(append(b, 0), at)
}

// AppendSync appends a sync request.
func AppendSync(b []byte, xid int32, path string) []byte {
	b, at := begin(b, xid, OpSync)
	return end(appendBytes(b, []byte(path)), at)
}

// AppendSet appends a setData request for any version.
func AppendSet(b []byte, xid int32, path string, data []byte) []byte {
	return AppendSetVersion(b, xid, path, data, AnyVersion)
}

// AnyVersion is the version that fits every node.
const AnyVersion = -1

// AppendSetVersion appends a setData request.
func AppendSetVersion(b []byte, xid int32, path string, data []byte, version int32) []byte {
	b, at := begin(b, xid, OpSetData)
	return end(appendSet(b, path, data, version), at)
}

func appendSet(b []byte, path string, data []byte, version int32) []byte {
	b = appendBytes(b, []byte(path))
	b = appendBytes(b, data)
	return binary.BigEndian.AppendUint32(b, uint32(version))
}

// AppendDelete appends a delete request.
func AppendDelete(b []byte, xid int32, path string, version int32) []byte {
	b, at := begin(b, xid, OpDelete)
	return end(appendPathVersion(b, path, version), at)
}

func appendPathVersion(b []byte, path string, version int32) []byte {
	return binary.BigEndian.AppendUint32(appendBytes(b, []byte(path)), uint32(version))
}

// AppendCreate appends a create request with the ACL that lets everybody do everything.
func AppendCreate(b []byte, xid int32, path string, data []byte, flags int32) []byte {
	b, at := begin(b, xid, OpCreate)
	return end(appendCreate(b, path, data, flags), at)
}

func appendCreate(b []byte, path string, data []byte, flags int32) []byte {
	b = appendBytes(b, []byte(path))
	b = appendBytes(b, data)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint32(b, 31)
	b = appendBytes(b, []byte("world"))
	b = appendBytes(b, []byte("anyone"))
	return binary.BigEndian.AppendUint32(b, uint32(flags))
}

// SubOp is one operation of a multi: OpCreate, OpSetData, OpDelete or OpCheck.
type SubOp struct {
	Op      int32
	Path    string
	Data    []byte // of OpCreate and OpSetData
	Version int32  // of all but OpCreate
}

// AppendMulti appends a transaction of several operations.
func AppendMulti(b []byte, xid int32, ops []SubOp) []byte {
	b, at := begin(b, xid, OpMulti)
	for _, op := range ops {
		b = appendMultiHeader(b, op.Op, 0)
		switch op.Op {
		case OpCreate:
			b = appendCreate(b, op.Path, op.Data, 0)
		case OpSetData:
			b = appendSet(b, op.Path, op.Data, op.Version)
		case OpDelete, OpCheck:
			b = appendPathVersion(b, op.Path, op.Version)
		default:
			panic(fmt.Sprintf("a multi of opcode %d", op.Op))
		}
	}
	return end(appendMultiHeader(b, -1, 1), at)
}

func appendMultiHeader(b []byte, op int32, done byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	b = append(b, done)
	return binary.BigEndian.AppendUint32(b, 0xffffffff)
}

// AppendPing appends a ping.
func AppendPing(b []byte) []byte {
	b, at := begin(b, -2, OpPing)
	return end(b, at)
}

// AppendClose appends the request that ends the session.
func AppendClose(b []byte, xid int32) []byte {
	b, at := begin(b, xid, OpClose)
	return end(b, at)
}
