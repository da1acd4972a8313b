package znode

import (
	"encoding/binary"
	"math/bits"
)

// childIndex finds a node by parent and name. It is an extendible hash table: the top bits of a hash select a segment
// through a directory, a segment that is full is split in two. So no operation rehashes more than one segment, whatever
// the size of the tree, and only the directory (one pointer for about a thousand nodes) is ever copied as a whole.
// Results do not depend on the hash: nothing iterates over the index.
type childIndex struct {
	dir      []*segment // 2^depth
	depth    uint8
	segments int
	count    int
	seed     uint64
}

const (
	// A segment is 9,696 bytes, just under one of the runtime's size classes.
	segmentGroups = 242
	groupSlots    = 8
	segmentSlots  = segmentGroups * groupSlots
	// segmentFull is the number of slots in use, by nodes or marks, beyond which probing would become slow.
	segmentFull = segmentSlots * 7 / 8

	tagEmpty byte = 0 // was never used: a probe ends here
	tagGone  byte = 1 // was used: a probe goes on
	tagMin   byte = 2

	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// segment holds nodes in groups of eight slots. A probe begins at the group that the hash names and compares eight tags
// at a time; it ends at a group with an empty slot.
//
//	hash         | directory, depth bits | ... | tag, bits 16-23 | group, bits 0-15 scaled to 242 |
//
// A tag of eight bits keeps a probe from looking at nodes that are not meant: of those only one in 254 has the same.
// So a lookup waits for memory about four times: the tags, the slot, the node, and its name.
type segment struct {
	overflow *segment // further nodes, if splitting cannot separate them
	depth    uint8    // leading bits of the hash that all nodes here have in common
	used     uint16
	gone     uint16
	tags     [segmentSlots]byte
	nodes    [segmentSlots]Node
}

func (x *childIndex) init(seed uint64) {
	x.seed = seed
	x.dir = []*segment{new(segment)}
	x.segments = 1
}

// The multipliers are arbitrary odd numbers without pattern.
const (
	hashMul1 = 0x9e3779b97f4a7c15
	hashMul2 = 0xd6e8feb86659fd93
)

func hashMix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hash is a function of parent, name and seed only. It takes eight bytes of the name at a time; the multiplication mixes
// every bit of the input into both halves of the product. The length goes in at the end, so that zeros count.
func (x *childIndex) hash(parent Node, name []byte) uint32 {
	h := hashMix(x.seed^uint64(parent)^hashMul2, hashMul1)
	n := uint64(len(name))
	for len(name) >= 8 {
		h = hashMix(h^binary.LittleEndian.Uint64(name), hashMul1)
		name = name[8:]
	}
	var tail uint64
	for i, c := range name {
		tail |= uint64(c) << (8 * i)
	}
	h = hashMix(h^tail, hashMul2^n<<56)
	return uint32(h>>32) ^ uint32(h)
}

func hashTag(hash uint32) byte {
	if t := byte(hash >> 16); t >= tagMin {
		return t
	}
	return tagMin + byte(hash>>16)
}

func hashGroup(hash uint32) uint32 { return hash & 0xffff * segmentGroups >> 16 }

func (x *childIndex) segment(hash uint32) *segment { return x.dir[uint64(hash)<<x.depth>>32] }

// child returns the child of parent with this name, 0 if there is none.
func (t *Tree) child(parent Node, name []byte) Node {
	return t.childHashed(t.index.hash(parent, name), parent, name)
}

// childHashed is child for those who need the hash as well.
func (t *Tree) childHashed(hash uint32, parent Node, name []byte) Node {
	for s := t.index.segment(hash); s != nil; s = s.overflow {
		if id := t.childIn(s, hash, parent, name); id != noNode {
			return id
		}
	}
	return noNode
}

// childIn probes one segment of a chain.
func (t *Tree) childIn(s *segment, hash uint32, parent Node, name []byte) Node {
	pattern := lowBits * uint64(hashTag(hash))
	for g := hashGroup(hash); ; {
		tags := binary.LittleEndian.Uint64(s.tags[g*groupSlots:])
		// The lowest flagged byte matches for sure, those above it perhaps: nodes are compared anyway.
		for m := zeroBytes(tags ^ pattern); m != 0; m &= m - 1 {
			id := s.nodes[g*groupSlots+uint32(bits.TrailingZeros64(m)/8)]
			if t.isChild(id, hash, parent, name) {
				return id
			}
		}
		if zeroBytes(tags) != 0 {
			return noNode
		}
		if g++; g == segmentGroups {
			g = 0
		}
	}
}

// isChild compares a candidate, the cheapest first: the name is in other memory than the node.
func (t *Tree) isChild(id Node, hash uint32, parent Node, name []byte) bool {
	if id == noNode {
		return false
	}
	n := t.nodes.at(id)
	return n.hash == hash && n.parent == parent && int(n.nameLen) == len(name) && string(t.blobs.get(n.blob, n.blobLen())[:n.nameLen]) == string(name)
}

// zeroBytes flags the bytes of v that are 0: exactly up to the lowest of them, perhaps others above.
func zeroBytes(v uint64) uint64 { return (v - lowBits) &^ v & highBits }

// add puts a node in, which has its hash set and is not there yet.
func (x *childIndex) add(nodes *nodeStore, id Node) {
	hash := nodes.at(id).hash
	x.count++
	for {
		s := x.segment(hash)
		for full(s) {
			if s.overflow == nil {
				break
			}
			s = s.overflow
		}
		if !full(s) {
			s.put(hash, id)
			return
		}
		x.makeRoom(nodes, hash, s)
	}
}

// full counts marks like nodes, because a probe has to go past both.
func full(s *segment) bool { return int(s.used)+int(s.gone) >= segmentFull }

// makeRoom changes something about the segments for hash, of which last is the last of the chain, so that add gets on.
func (x *childIndex) makeRoom(nodes *nodeStore, hash uint32, last *segment) {
	switch {
	case int(last.gone) > segmentFull/4:
		last.sweep(nodes)
	case x.canSplit(x.segment(hash)):
		x.split(nodes, hash)
	default:
		last.overflow = new(segment)
		last.overflow.depth = last.depth
		x.segments++
	}
}

// canSplit keeps the directory in proportion to what it leads to. Hashes that somebody has chosen to share their
// leading bits would make it grow for nothing; such nodes end up in a chain, which is slow but right.
func (x *childIndex) canSplit(s *segment) bool {
	if s.depth < x.depth {
		return true
	}
	return x.depth < indexDepthMax && len(x.dir) <= 4*x.segments+16
}

// split replaces the segment for hash, with its chain, by two that differ in one more bit of the hash.
func (x *childIndex) split(nodes *nodeStore, hash uint32) {
	old := x.segment(hash)
	if old.depth == x.depth {
		dir := make([]*segment, 2*len(x.dir))
		for i, s := range x.dir {
			dir[2*i], dir[2*i+1] = s, s
		}
		x.dir = dir
		x.depth++
	}
	depth := old.depth + 1
	low, high := &segment{depth: depth}, &segment{depth: depth}
	span := len(x.dir) >> depth // entries of the directory for each of the two
	first := int(uint64(hash)<<x.depth>>32) / (2 * span) * (2 * span)
	for i := range span {
		x.dir[first+i], x.dir[first+span+i] = low, high
	}
	x.segments += 2
	for ; old != nil; old = old.overflow {
		x.segments--
		x.distribute(nodes, old)
	}
}

// distribute puts the nodes of a segment that is not in use any more where they belong now.
func (x *childIndex) distribute(nodes *nodeStore, old *segment) {
	var ids, hashes [segmentSlots]uint32
	n := 0
	for i, tag := range old.tags {
		if tag >= tagMin {
			ids[n] = uint32(old.nodes[i])
			n++
		}
	}
	// Nearly each of these reads waits for memory. In a loop of their own they wait together.
	for i, id := range ids[:n] {
		hashes[i] = nodes.at(Node(id)).hash
	}
	for i, hash := range hashes[:n] {
		if s := x.segment(hash); !full(s) {
			s.put(hash, Node(ids[i]))
		} else {
			x.count--
			x.add(nodes, Node(ids[i]))
		}
	}
}

// sweep removes the marks of removed nodes.
func (s *segment) sweep(nodes *nodeStore) {
	old := *s
	*s = segment{overflow: old.overflow, depth: old.depth}
	for i, tag := range old.tags {
		if tag >= tagMin {
			s.put(nodes.at(old.nodes[i]).hash, old.nodes[i])
		}
	}
}

// put fills a slot of a segment that has room.
func (s *segment) put(hash uint32, id Node) {
	for g := hashGroup(hash); ; {
		tags := s.tags[g*groupSlots : (g+1)*groupSlots]
		for i, tag := range tags {
			if tag < tagMin {
				if tag == tagGone {
					s.gone--
				}
				tags[i] = hashTag(hash)
				s.nodes[g*groupSlots+uint32(i)] = id
				s.used++
				return
			}
		}
		if g++; g == segmentGroups {
			g = 0
		}
	}
}

// remove takes a node out, which must be there.
func (x *childIndex) remove(nodes *nodeStore, id Node) {
	hash := nodes.at(id).hash
	for s := x.segment(hash); s != nil; s = s.overflow {
		if s.remove(hash, id) {
			x.count--
			return
		}
	}
	panic("znode: a node is missing in the child index")
}

// remove takes a node out if it is in this segment of a chain.
func (s *segment) remove(hash uint32, id Node) bool {
	for g := hashGroup(hash); ; {
		word := binary.LittleEndian.Uint64(s.tags[g*groupSlots:])
		for i := g * groupSlots; i < (g+1)*groupSlots; i++ {
			if s.nodes[i] == id && s.tags[i] >= tagMin {
				s.nodes[i] = noNode
				s.used--
				// Where a probe ends anyway, no mark is needed to keep it going.
				if zeroBytes(word) != 0 {
					s.tags[i] = tagEmpty
				} else {
					s.tags[i] = tagGone
					s.gone++
				}
				return true
			}
		}
		if zeroBytes(word) != 0 {
			return false
		}
		if g++; g == segmentGroups {
			g = 0
		}
	}
}
