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
	// The groups of a segment are 9,720 bytes, just under one of the runtime's size classes.
	segmentGroups = 243
	groupSlots    = 8
	segmentSlots  = segmentGroups * groupSlots
	// segmentFull is the number of slots in use, by nodes or marks, beyond which probing would become slow.
	segmentFull = segmentSlots * 7 / 8
	// segmentFill is how many nodes a segment is to hold when the index is laid out for a number: few enough that the
	// spread of the hashes overfills hardly any.
	segmentFill = segmentFull * 15 / 16

	tagEmpty byte = 0 // was never used: a probe ends here
	tagGone  byte = 1 // was used: a probe goes on
	tagMin   byte = 2

	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// segment holds nodes in groups of eight slots. A probe begins at the group that the hash names and compares eight tags
// at a time; it ends at a group with an empty slot.
//
//	hash         | directory, depth bits | ... | tag, bits 16-23 | group, bits 0-15 scaled to 243 |
//
// A tag of eight bits keeps a probe from looking at nodes that are not meant: of those only one in 254 has the same.
// So a lookup waits for memory about three times: the group, the node, and its name. The groups are apart from what is
// said here, so that this is small enough for all segments of a large tree to be at hand.
type segment struct {
	groups   *[segmentGroups]group
	overflow *segment // further nodes, if splitting cannot separate them
	depth    uint8    // leading bits of the hash that all nodes here have in common
	used     uint16
	gone     uint16
}

// group is eight slots. The tags are in one word, that of slot 0 in its lowest byte, beside the nodes.
type group struct {
	tags  uint64
	nodes [groupSlots]Node
}

func (g *group) tag(slot int) byte { return byte(g.tags >> (8 * slot)) }

func (g *group) set(slot int, tag byte, id Node) {
	g.tags = g.tags&^(0xff<<(8*slot)) | uint64(tag)<<(8*slot)
	g.nodes[slot] = id
}

func newSegment(depth uint8) *segment {
	return &segment{depth: depth, groups: new([segmentGroups]group)}
}

func (x *childIndex) init(seed uint64) {
	x.seed = seed
	x.dir = []*segment{newSegment(0)}
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
	for i := hashGroup(hash); ; i = nextGroup(i) {
		g := &s.groups[i]
		if id := t.childInGroup(g, pattern, hash, parent, name); id != noNode {
			return id
		}
		if zeroBytes(g.tags) != 0 {
			return noNode
		}
	}
}

// childInGroup looks at the nodes of a group whose tags are those of the pattern.
func (t *Tree) childInGroup(g *group, pattern uint64, hash uint32, parent Node, name []byte) Node {
	// The lowest flagged byte matches for sure, those above it perhaps: nodes are compared anyway.
	for m := zeroBytes(g.tags ^ pattern); m != 0; m &= m - 1 {
		if id := g.nodes[lowestByte(m)]; t.isChild(id, hash, parent, name) {
			return id
		}
	}
	return noNode
}

func nextGroup(i uint32) uint32 {
	if i++; i == segmentGroups {
		return 0
	}
	return i
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

// lowestByte is the number of the lowest byte that zeroBytes has flagged.
func lowestByte(m uint64) int { return bits.TrailingZeros64(m) / 8 % groupSlots }

// add puts a node in, which has its hash set and is not there yet.
func (x *childIndex) add(nodes *nodeStore, id Node) { x.addHashed(nodes, nodes.at(id).hash, id) }

func (x *childIndex) addHashed(nodes *nodeStore, hash uint32, id Node) {
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

// claim puts a node in unless the parent has a child of that name, which it returns then. It is child and add in one
// probe. The node need not have its fields set yet.
func (t *Tree) claim(hash uint32, parent Node, name []byte, id Node) Node {
	s := t.index.segment(hash)
	if full(s) || s.gone > 0 || s.overflow != nil {
		if there := t.childHashed(hash, parent, name); there != noNode {
			return there
		}
		t.index.addHashed(&t.nodes, hash, id)
		return noNode
	}
	tag := hashTag(hash)
	pattern := lowBits * uint64(tag)
	for i := hashGroup(hash); ; i = nextGroup(i) {
		g := &s.groups[i]
		if there := t.childInGroup(g, pattern, hash, parent, name); there != noNode {
			return there
		}
		// Without marks the first empty slot is where a probe ends, and where the node belongs.
		if m := zeroBytes(g.tags); m != 0 {
			g.set(lowestByte(m), tag, id)
			s.used++
			t.index.count++
			return noNode
		}
	}
}

// touch reads all memory that claim needs for a hash. The result means nothing.
func (x *childIndex) touch(hash uint32) uint64 {
	g := &x.segment(hash).groups[hashGroup(hash)]
	return g.tags + uint64(g.nodes[groupSlots-1])
}

// room is how many nodes fit in without growing, if their hashes are spread evenly.
func (x *childIndex) room() int { return len(x.dir) * segmentFill }

// reserve has room for n nodes in all made at once, each node that is there being moved once. Names that were chosen to
// collide find no more room than they would have without.
func (x *childIndex) reserve(nodes *nodeStore, n int) {
	depth := x.depth
	for depth < indexDepthMax && n > segmentFill<<depth {
		depth++
	}
	if depth == x.depth {
		return
	}
	old := x.dir
	oldDepth := x.depth
	x.dir, x.depth = make([]*segment, 1<<depth), depth
	for i := range x.dir {
		x.dir[i] = newSegment(depth)
	}
	x.segments = len(x.dir)
	for i := 0; i < len(old); {
		s := old[i]
		i += 1 << (oldDepth - s.depth)
		for ; s != nil; s = s.overflow {
			x.distribute(nodes, s)
		}
	}
}

// makeRoom changes something about the segments for hash, of which last is the last of the chain, so that add gets on.
func (x *childIndex) makeRoom(nodes *nodeStore, hash uint32, last *segment) {
	switch {
	case int(last.gone) > segmentFull/4:
		last.sweep(nodes)
	case x.canSplit(x.segment(hash)):
		x.split(nodes, hash)
	default:
		last.overflow = newSegment(last.depth)
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
	low, high := newSegment(depth), newSegment(depth)
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
	for i := range old.groups {
		g := &old.groups[i]
		for slot, id := range g.nodes {
			if g.tag(slot) >= tagMin {
				ids[n] = uint32(id)
				n++
			}
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
	old := s.groups
	s.groups, s.used, s.gone = new([segmentGroups]group), 0, 0
	for i := range old {
		g := &old[i]
		for slot, id := range g.nodes {
			if g.tag(slot) >= tagMin {
				s.put(nodes.at(id).hash, id)
			}
		}
	}
}

// put fills a slot of a segment that has room.
func (s *segment) put(hash uint32, id Node) {
	for i := hashGroup(hash); ; i = nextGroup(i) {
		g := &s.groups[i]
		for slot := range groupSlots {
			if tag := g.tag(slot); tag < tagMin {
				if tag == tagGone {
					s.gone--
				}
				g.set(slot, hashTag(hash), id)
				s.used++
				return
			}
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
	for i := hashGroup(hash); ; i = nextGroup(i) {
		g := &s.groups[i]
		ends := zeroBytes(g.tags) != 0
		for slot := range groupSlots {
			if g.nodes[slot] != id || g.tag(slot) < tagMin {
				continue
			}
			s.used--
			// Where a probe ends anyway, no mark is needed to keep it going.
			if ends {
				g.set(slot, tagEmpty, noNode)
			} else {
				g.set(slot, tagGone, noNode)
				s.gone++
			}
			return true
		}
		if ends {
			return false
		}
	}
}
