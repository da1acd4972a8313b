package session

import (
	"encoding/binary"

	"zabra/zab/zxid"
)

const (
	// idContainer is the one id of a server 128 that can never be a session: as an owner it marks a container node.
	idContainer zxid.SessionID = -1 << 63
	// idCounterBits is the part of an id that counts; the byte above it names the server.
	idCounterBits = 56
	idCounterMask = 1<<idCounterBits - 1
	// idClockShift leaves the low 16 bits of a first id to the sessions of that millisecond and the following ones.
	idClockShift = 16
)

const (
	// passwordSalt is mixed into the id. It is published and the same everywhere: the password is a check, not a secret.
	passwordSalt = 0xB3415C00
	// lcgMultiplier and lcgIncrement are those of java.util.Random, whose output the password is.
	lcgMultiplier = 0x5DEECE66D
	lcgIncrement  = 0xB
	lcgMask       = 1<<48 - 1
)

// Password returns the 16 bytes that a client must show to re-attach to the session id. It is a pure function of the id,
// so any server of an ensemble can check it without having seen the session: the first 16 bytes that java.util.Random
// yields when it is seeded with the id XOR 0xB3415C00.
func Password(id zxid.SessionID) [16]byte {
	var p [16]byte
	state := (uint64(id) ^ passwordSalt ^ lcgMultiplier) & lcgMask
	for i := 0; i < len(p); i += 4 {
		state = (state*lcgMultiplier + lcgIncrement) & lcgMask
		binary.LittleEndian.PutUint32(p[i:], uint32(state>>16))
	}
	return p
}

// FirstID returns the id that a server gives to its first session after it started: the server's byte, then the low 40
// bits of the wall clock in milliseconds, then 16 zero bits.
//
// The clock alone is not enough: it can be set back, and its 40 bits wrap around every 34 years. So the id is raised
// above floor, the highest id with the same server byte that was ever seen in snapshot and log; otherwise two clients
// could come to share a session. A floor with another server's byte, such as 0, is no floor.
func FirstID(server byte, wallMs int64, floor zxid.SessionID) zxid.SessionID {
	id := withCounter(server, uint64(wallMs)<<idClockShift)
	if floor.ServerByte() == server && uint64(floor)&idCounterMask >= uint64(id)&idCounterMask {
		id = withCounter(server, uint64(floor)+1)
	}
	if reserved(id) {
		id++
	}
	return id
}

// IDs hands out session ids, one after the other. It belongs to one goroutine.
type IDs struct {
	next zxid.SessionID
}

// NewIDs returns a generator whose first id is first, as computed by FirstID.
func NewIDs(first zxid.SessionID) *IDs { return &IDs{next: first} }

// Next returns an id that this generator has not returned before. It never returns 0 or the value that marks containers,
// and it never leaves the server's byte: after 2^56 sessions it begins anew.
func (g *IDs) Next() zxid.SessionID {
	if reserved(g.next) {
		g.next++
	}
	id := g.next
	g.next = withCounter(id.ServerByte(), uint64(id)+1)
	return id
}

// reserveIDs is how many ids a server reserves at its start: more than it makes in one life. As ids come from a clock in
// units of 2^-16 milliseconds, a server that starts again and again gets ahead of the clock by 65 seconds each time at most.
const reserveIDs = 1 << 32

// Reserved returns the id up to which this generator may get in this life of the server.
func (g *IDs) Reserved() zxid.SessionID {
	return withCounter(g.next.ServerByte(), uint64(g.next)+reserveIDs)
}

// ReserveMore returns the mark to which ids have to be reserved anew, when sessions up to floor have become known and ids are
// reserved up to mark; it reports false if that is far enough. A floor with another server's byte is none.
func ReserveMore(mark, floor zxid.SessionID) (zxid.SessionID, bool) {
	if floor.ServerByte() != mark.ServerByte() || uint64(floor)&idCounterMask+reserveIDs/2 < uint64(mark)&idCounterMask {
		return mark, false
	}
	return withCounter(floor.ServerByte(), uint64(floor)+reserveIDs), true
}

// Raise sees to it that no id up to floor is returned any more, if floor has the generator's own server byte: sessions
// of an earlier life of this server may become known after it started.
func (g *IDs) Raise(floor zxid.SessionID) {
	if floor.ServerByte() == g.next.ServerByte() && uint64(floor)&idCounterMask >= uint64(g.next)&idCounterMask {
		g.next = withCounter(floor.ServerByte(), uint64(floor)+1)
	}
}

func reserved(id zxid.SessionID) bool { return id == 0 || id == idContainer }

// withCounter puts a server byte above the low 56 bits of counter.
func withCounter(server byte, counter uint64) zxid.SessionID {
	return zxid.SessionID(uint64(server)<<idCounterBits | counter&idCounterMask)
}

// Negotiate returns the session timeout in milliseconds that a server grants to a client that asks for askMs. As in
// ZooKeeper the request is first raised to the minimum and then lowered to the maximum, so the maximum wins if the two
// are crossed.
func Negotiate(askMs, minMs, maxMs int32) int32 { return min(max(askMs, minMs), maxMs) }
