package znode

import (
	"bytes"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// eventOverheadBytes is a notification frame without its path: length prefix, ReplyHeader, type, state, path length.
const eventOverheadBytes = 4 + 16 + 4 + 4 + 4

// Watcher receives the events of the watches that were set under its WatcherID; a client connection is one.
type Watcher interface {
	// Notify hands over an event. It is called by the goroutine that applies transactions, under the tree's write lock:
	// it must not block and must not call back into the tree or its watches. The event is immutable, shared with other
	// watchers, and may be kept. The permission to read Event.ACL is the watcher's to check: it knows who is connected.
	// A Notify may still arrive shortly after the watcher was detached.
	Notify(e *Event)
}

// Event is something that happened to a watched path.
type Event struct {
	Type wire.EventType
	// Path is the node's full path (for EventNodeChildrenChanged the parent's).
	Path []byte
	// Zxid is that of the transaction, or -1 for an event that answers a setWatches.
	Zxid zxid.Zxid
	// ACL is the list against which READ must be granted before the event may be delivered: the node's own at the time of
	// the change, the parent's for EventNodeChildrenChanged; nil if the event is not to be filtered.
	ACL *ACLList

	frame []byte
}

// NewEvent makes an event whose frame is built already, so that it can be shared between goroutines. It copies path.
func NewEvent(typ wire.EventType, path []byte, z zxid.Zxid, acl *ACLList) *Event {
	e := &Event{Type: typ, Path: path, Zxid: z, ACL: acl}
	e.frame = e.encode()
	// The frame ends with the path: normally one copy serves both. The text differs only when the encoder had to write a
	// character beyond U+FFFF its own way.
	if tail := e.frame[len(e.frame)-len(path):]; path != nil && bytes.Equal(tail, path) {
		e.Path = tail
	} else {
		e.Path = bytes.Clone(path)
	}
	return e
}

// Frame returns the whole notification as it goes over the wire, length prefix included. Callers share it and must not
// change it. On an Event that NewEvent did not make, the first call builds the frame, which is not safe for concurrent
// use.
func (e *Event) Frame() []byte {
	if e.frame == nil {
		e.frame = e.encode()
	}
	return e.frame
}

func (e *Event) encode() []byte {
	var enc jute.Encoder
	enc.Reset(make([]byte, 0, eventOverheadBytes+len(e.Path)))
	enc.Int32(0)
	h := wire.ReplyHeader{Xid: wire.XidNotification, Zxid: e.Zxid}
	h.Encode(&enc)
	w := wire.WatcherEvent{Type: e.Type, State: wire.StateSyncConnected, Path: e.Path}
	w.Encode(&enc)
	enc.PatchInt32(0, int32(enc.Len()-4))
	return enc.Bytes()
}
