package wire

import (
	"strconv"

	"zabra/jute"
	"zabra/zab/zxid"
)

// EventType is what a watch event tells.
type EventType int32

// The events that servers send.
const (
	EventNodeCreated         EventType = 1
	EventNodeDeleted         EventType = 2
	EventNodeDataChanged     EventType = 3
	EventNodeChildrenChanged EventType = 4
)

// String returns the event's name in ZooKeeper's documentation, or event(9) for a number that servers do not send.
func (t EventType) String() string {
	switch t {
	case EventNodeCreated:
		return "NodeCreated"
	case EventNodeDeleted:
		return "NodeDeleted"
	case EventNodeDataChanged:
		return "NodeDataChanged"
	case EventNodeChildrenChanged:
		return "NodeChildrenChanged"
	}
	return "event(" + strconv.Itoa(int(t)) + ")"
}

// Types of watches, as checkWatches and removeWatches name them.
const (
	WatchTypeChildren            = 1
	WatchTypeData                = 2 // those of exists too
	WatchTypeAny                 = 3
	WatchTypePersistent          = 4
	WatchTypePersistentRecursive = 5
)

// Modes of addWatch.
const (
	AddWatchPersistent          = 0
	AddWatchPersistentRecursive = 1
)

// WatcherEvent is the body of a notification.
type WatcherEvent struct {
	Type EventType
	// State is always StateSyncConnected.
	State int32
	Path  []byte
}

// Encode writes the record.
func (w *WatcherEvent) Encode(e *jute.Encoder) {
	e.Int32(int32(w.Type))
	e.Int32(w.State)
	e.UString(w.Path)
}

// Decode reads the record.
func (w *WatcherEvent) Decode(d *jute.Decoder) {
	w.Type = EventType(d.Int32())
	w.State = d.Int32()
	w.Path = d.UString()
}

// WatchTypeRequest is the record of checkWatches and removeWatches.
type WatchTypeRequest struct {
	Path []byte
	Type int32
}

// Encode writes the record.
func (r *WatchTypeRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	e.Int32(r.Type)
}

// Decode reads the record.
func (r *WatchTypeRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Type = d.Int32()
}

// AddWatchRequest is the record of addWatch.
type AddWatchRequest struct {
	Path []byte
	Mode int32
}

// Encode writes the record.
func (r *AddWatchRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	e.Int32(r.Mode)
}

// Decode reads the record.
func (r *AddWatchRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Mode = d.Int32()
}

// SetWatchesRequest is the record of setWatches2 and, by way of its V1 methods, of setWatches. With it a client names
// all its watches to a server that it has just connected to. Decoding uses the memory of the lists that are there.
type SetWatchesRequest struct {
	// RelativeZxid is the last zxid that the client has seen: what changed after it is told at once.
	RelativeZxid                              zxid.Zxid
	Data, Exist, Child, Persistent, Recursive [][]byte
}

// Encode writes the record of setWatches2.
func (r *SetWatchesRequest) Encode(e *jute.Encoder) {
	r.EncodeV1(e)
	encodeStrings(e, r.Persistent)
	encodeStrings(e, r.Recursive)
}

// Decode reads the record of setWatches2.
func (r *SetWatchesRequest) Decode(d *jute.Decoder) {
	r.decodeLists(d)
	r.Persistent = decodeStrings(d, r.Persistent)
	r.Recursive = decodeStrings(d, r.Recursive)
}

// EncodeV1 writes the record of setWatches, which has three lists only.
func (r *SetWatchesRequest) EncodeV1(e *jute.Encoder) {
	e.Int64(int64(r.RelativeZxid))
	encodeStrings(e, r.Data)
	encodeStrings(e, r.Exist)
	encodeStrings(e, r.Child)
}

// DecodeV1 reads the record of setWatches. The other two lists are then empty, not null.
func (r *SetWatchesRequest) DecodeV1(d *jute.Decoder) {
	r.decodeLists(d)
	r.Persistent, r.Recursive = [][]byte{}, [][]byte{}
}

// decodeLists reads what both records begin with.
func (r *SetWatchesRequest) decodeLists(d *jute.Decoder) {
	r.RelativeZxid = zxid.Zxid(d.Int64())
	r.Data = decodeStrings(d, r.Data)
	r.Exist = decodeStrings(d, r.Exist)
	r.Child = decodeStrings(d, r.Child)
}
