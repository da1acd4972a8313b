package server

import (
	"sync/atomic"

	"zabra/zab"
)

// connCounts counts what goes over one connection between a leader and a learner.
type connCounts struct {
	establishedMs            int64 // wall clock; fixed
	received, requests, sent atomic.Int64
	zxid                     atomic.Int64 // of the last message that was sent and has one
}

// takes counts a message that came in.
func (n *connCounts) takes(msg *zab.Message) {
	n.received.Add(1)
	if msg.Kind == zab.MessageRequest {
		n.requests.Add(int64(len(msg.Requests)))
	}
}

// gives counts a message that is sent.
func (n *connCounts) gives(msg *zab.Message) {
	n.sent.Add(1)
	if last := len(msg.Entries) - 1; last >= 0 {
		n.zxid.Store(int64(msg.Entries[last].Zxid))
	} else if msg.Zxid > 0 {
		n.zxid.Store(int64(msg.Zxid))
	}
}

func (n *connCounts) reset() {
	n.received.Store(0)
	n.requests.Store(0)
	n.sent.Store(0)
}
