package znode

import (
	"math"

	"zabra/zab/zxid"
)

// Kind is what decides how a node ends. It is encoded in the stored owner.
type Kind uint8

const (
	// KindPersistent nodes stay until they are deleted.
	KindPersistent Kind = iota
	// KindEphemeral nodes end with their session.
	KindEphemeral
	// KindContainer nodes are deleted by the server once their last child is gone.
	KindContainer
	// KindTTL nodes are deleted by the server when they have no children and have not been written to for their time.
	KindTTL
)

// OwnerContainer is the stored owner of container nodes.
const OwnerContainer int64 = math.MinInt64

const (
	// TTLMsMax is the longest time to live, in milliseconds (nearly 35 years).
	TTLMsMax = 1<<40 - 1

	// A TTL node's owner has the byte ff on top, two bytes 0 for the feature "TTL", and the time in the low five bytes.
	ownerTTLBase = -1 << 56
	ownerTTLMask = -1 << 40
)

// OwnerTTL is the stored owner of a TTL node with a time to live of ms milliseconds, 0 to TTLMsMax.
func OwnerTTL(ms int64) int64 { return ownerTTLBase | ms&TTLMsMax }

// StoredStat is the part of a node's state, besides data and ACL, that snapshots hold and digests cover. CVersion counts
// the children ever created, unlike what clients see.
type StoredStat struct {
	Czxid, Mzxid                zxid.Zxid
	Ctime, Mtime                int64
	Version, CVersion, AVersion int32
	// Owner is the session of an ephemeral node, or what kind.go's constants say, or 0.
	Owner int64
	Pzxid zxid.Zxid
}

// Kind decides the node's kind. A node with the owner of a TTL node is one whether or not the extended types are
// enabled: what a node is belongs to the data. (An Apache server without the setting takes it for an ephemeral of an
// unknown session and deletes it when it loads.)
func (s *StoredStat) Kind(cfg *Config) Kind { return cfg.kind(s.Owner) }

// TTL returns the time to live of a TTL node, in milliseconds.
func (s *StoredStat) TTL() int64 { return ownerTTL(s.Owner) }

func (c *Config) kind(owner int64) Kind {
	switch {
	case owner == 0:
		return KindPersistent
	case owner == OwnerContainer:
		return KindContainer
	case owner&ownerTTLMask == ownerTTLBase:
		return KindTTL
	case owner < 0 && c.ExtendedTypes && c.Emulate353TTL:
		return KindTTL
	}
	return KindEphemeral
}

// ownerTTL also reads the coding of ZooKeeper 3.5.3, where a TTL node's owner is the sign bit and the time.
func ownerTTL(owner int64) int64 {
	if owner&ownerTTLMask == ownerTTLBase {
		return owner & TTLMsMax
	}
	return owner & math.MaxInt64
}
