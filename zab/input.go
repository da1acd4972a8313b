package zab

import "zabra/zab/zxid"

// InputKind says what happened.
type InputKind uint8

// The kinds of inputs.
const (
	InputTick         InputKind = iota + 1 // nothing but the passing of time
	InputPropose                           // Entries are to be ordered and made durable
	InputPersisted                         // all persist operations up to Token are durable
	InputMessage                           // Message came in
	InputLinkUp                            // the election link to Peer can be used, perhaps anew
	InputLinkDown                          // the election link to Peer is gone
	InputConnected                         // Conn is open: to Peer, the leader, or from Peer, a learner
	InputDisconnected                      // Conn is gone
	InputHistory                           // History answers a request
	InputProgress                          // a part of a snapshot went through Conn
	InputSnapshot                          // the snapshot that SNAP announced on Conn was received in full
	InputBarrier                           // ID: tell when it is proven that this server leads
	InputSend                              // Message of the layer above, to be sent if the role allows
	InputResign                            // give up leadership, or the following
	InputHandOver                          // a leader is to leave the lead to another that has everything; ignored if there is none
	InputRestore                           // a standalone server: the snapshot of Zxid, which the shell has ready, is to be all there is
)

// Input is anything that happens to a Node. A run is a list of inputs and can be replayed.
type Input struct {
	Kind InputKind
	// NowMs is a monotonic clock in milliseconds. It never goes back.
	NowMs int64

	Entries []Entry // InputPropose
	Token   Token   // InputPersisted
	Message *Message
	Peer    zxid.ServerID
	Conn    ConnID
	History *History
	ID      uint64
	Zxid    zxid.Zxid // InputRestore
}
