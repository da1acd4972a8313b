package wire

import (
	"zabra/jute"
	"zabra/zab/zxid"
)

// Request ids (xids) with a meaning. Others are the client's own, and are echoed.
const (
	// XidNotification is the xid of every watch event.
	XidNotification = -1
	// XidPing is the xid of every reply to a ping, whatever the request's was.
	XidPing = -2
	// XidAuth is used by most clients for auth requests.
	XidAuth = -4
	// XidSetWatches is used by the C client for setWatches requests.
	XidSetWatches = -8
)

// StateSyncConnected is the only state that a server ever sends in a watch event.
const StateSyncConnected = 3

// RequestHeader begins every frame of a client but the first.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// Encode writes the header.
func (h *RequestHeader) Encode(e *jute.Encoder) {
	e.Int32(h.Xid)
	e.Int32(int32(h.Op))
}

// Decode reads the header.
func (h *RequestHeader) Decode(d *jute.Decoder) {
	h.Xid = d.Int32()
	h.Op = Op(d.Int32())
}

// ReplyHeader begins every frame of a server but the first. A body follows only if Err is CodeOK, and after a failed
// SASL exchange.
type ReplyHeader struct {
	Xid  int32
	Zxid zxid.Zxid
	Err  Code
}

// Encode writes the header.
func (h *ReplyHeader) Encode(e *jute.Encoder) { AppendReplyHeader(e, h.Xid, h.Zxid, h.Err) }

// Decode reads the header.
func (h *ReplyHeader) Decode(d *jute.Decoder) {
	h.Xid = d.Int32()
	h.Zxid = zxid.Zxid(d.Int64())
	h.Err = Code(d.Int32())
}

// AppendReplyHeader writes a ReplyHeader of these fields.
func AppendReplyHeader(e *jute.Encoder, xid int32, z zxid.Zxid, err Code) {
	e.Int32(xid)
	e.Int64(int64(z))
	e.Int32(int32(err))
}

// MultiHeader stands before each operation and each result of a multi, and, with Done set, behind the last one.
type MultiHeader struct {
	Type Op
	Done bool
	Err  Code
}

// Encode writes the header.
func (h *MultiHeader) Encode(e *jute.Encoder) {
	e.Int32(int32(h.Type))
	e.Bool(h.Done)
	e.Int32(int32(h.Err))
}

// Decode reads the header.
func (h *MultiHeader) Decode(d *jute.Decoder) {
	h.Type = Op(d.Int32())
	h.Done = d.Bool()
	h.Err = Code(d.Int32())
}
