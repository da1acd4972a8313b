// Package zxid holds the identifiers that the protocol, the tree, the sessions and the wire share. It is a leaf: it
// imports nothing of this module.
package zxid

import "strconv"

// Zxid is a transaction id: the leader's epoch in the high 32 bits, a counter in the low 32. Zxids order all
// transactions of an ensemble. They are compared as signed 64-bit integers, as ZooKeeper does.
type Zxid int64

// Epoch numbers the reign of a leader. ZooKeeper cannot represent epochs of 2^31 and more.
type Epoch uint32

// ServerID identifies a server of an ensemble, the number in its myid file. A standalone server has none; the byte 1
// stands for it in session ids.
type ServerID int64

// SessionID identifies a client session. Its top byte is the id of the server that made it; 0 is never a session.
type SessionID int64

const (
	// CounterMin is the counter of the first transaction of an epoch. Counter 0 stands for the epoch's beginning.
	CounterMin = 1
	// CounterMax is the last counter that may be handed out: 0xffffffff is reserved: Apache servers force an election before it.
	CounterMax = 0xfffffffe
)

// Make puts an epoch and a counter together.
func Make(e Epoch, counter uint32) Zxid { return Zxid(int64(e)<<32 | int64(counter)) }

// Epoch returns the epoch in which z was proposed.
func (z Zxid) Epoch() Epoch { return Epoch(uint64(z) >> 32) }

// Counter returns the position of z in its epoch, from 1; 0 stands for the epoch's beginning.
func (z Zxid) Counter() uint32 { return uint32(z) }

// String renders z as ZooKeeper logs it: lower-case hex with 0x.
func (z Zxid) String() string { return "0x" + z.Hex() }

// Hex renders z as it stands in file names: lower-case hex without prefix or padding.
func (z Zxid) Hex() string { return strconv.FormatUint(uint64(z), 16) }

// ServerByte returns the top byte of s, which names the server that created the session.
func (s SessionID) ServerByte() byte { return byte(uint64(s) >> 56) }

// String renders s as ZooKeeper logs it: lower-case hex with 0x.
func (s SessionID) String() string { return "0x" + strconv.FormatUint(uint64(s), 16) }
