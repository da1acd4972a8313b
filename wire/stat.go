package wire

import (
	"zabra/jute"
	"zabra/zab/zxid"
)

// Stat is what clients see of a node besides its data, ACL and children.
type Stat struct {
	// Czxid and Mzxid are the transactions that created the node and that last set its data.
	Czxid, Mzxid zxid.Zxid
	// Ctime and Mtime are the leader's wall clock at those, in milliseconds since 1970.
	Ctime, Mtime int64
	// Version counts changes of the data, CVersion creations and deletions of children, AVersion changes of the ACL.
	Version, CVersion, AVersion int32
	// EphemeralOwner is the session that owns an ephemeral node, 0 for nodes of every other kind.
	EphemeralOwner zxid.SessionID
	// DataLength is in bytes; null data counts 0. NumChildren counts direct children.
	DataLength, NumChildren int32
	// Pzxid is the last transaction that created or deleted a direct child, the node's own creation if none did.
	Pzxid zxid.Zxid
}

// Encode writes the Stat, StatBytes long.
func (s *Stat) Encode(e *jute.Encoder) {
	e.Int64(int64(s.Czxid))
	e.Int64(int64(s.Mzxid))
	e.Int64(s.Ctime)
	e.Int64(s.Mtime)
	e.Int32(s.Version)
	e.Int32(s.CVersion)
	e.Int32(s.AVersion)
	e.Int64(int64(s.EphemeralOwner))
	e.Int32(s.DataLength)
	e.Int32(s.NumChildren)
	e.Int64(int64(s.Pzxid))
}

// Decode reads the Stat.
func (s *Stat) Decode(d *jute.Decoder) {
	s.Czxid = zxid.Zxid(d.Int64())
	s.Mzxid = zxid.Zxid(d.Int64())
	s.Ctime = d.Int64()
	s.Mtime = d.Int64()
	s.Version = d.Int32()
	s.CVersion = d.Int32()
	s.AVersion = d.Int32()
	s.EphemeralOwner = zxid.SessionID(d.Int64())
	s.DataLength = d.Int32()
	s.NumChildren = d.Int32()
	s.Pzxid = zxid.Zxid(d.Int64())
}
