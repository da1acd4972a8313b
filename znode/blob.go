package znode

import (
	"encoding/binary"
	"math/bits"
)

// blobRef is where a node's name and data are: the chunk in the high bits, the slot in it in the low ones. 0 is none;
// empty blobs have none.
type blobRef uint32

const (
	noBlob       blobRef = 0
	blobSlotBits         = 12
	blobSlotMask         = 1<<blobSlotBits - 1

	blobChunksMax = 1 << (32 - blobSlotBits)

	// Up to 128 bytes the size classes are 8 bytes apart, above that there are eight to each doubling, so that at most an
	// eighth of a slot is lost.
	blobFineBytesMax = 128
	blobFineClasses  = blobFineBytesMax/8 + 1
	blobClasses      = blobFineClasses + 8*8
	blobLargeClass   = blobClasses // a chunk for one blob of any larger size
)

// blobClass returns the size class of a blob of n bytes, n at least 1.
func blobClass(n uint32) int {
	switch {
	case n <= blobFineBytesMax:
		return int((n + 7) / 8)
	case n > blobClassBytesMax:
		return blobLargeClass
	}
	doubling := bits.Len32(n-1) - 8
	return blobFineClasses + 8*doubling + int((n-1)>>(4+doubling)) - 8
}

// blobClassBytes returns the size of a class's slots.
func blobClassBytes(class int) uint32 {
	if class < blobFineClasses {
		return uint32(class) * 8
	}
	class -= blobFineClasses
	return uint32(class%8+9) << (4 + class/8)
}

// chunk is memory for blobs of one class. Free slots are linked through their first two bytes.
type chunk struct {
	buf   []byte
	size  uint32 // of a slot
	class uint8
	slots uint16
	used  uint16
	fresh uint16 // the first slot that was never used
	free  uint16 // the first freed slot, plus 1; 0 if there is none
	// Chunks of a class that have room form a list; 0 ends it.
	next, prev uint32
}

// blobStore keeps names and data in a few large pieces of memory without pointers. A chunk that becomes empty is given
// back to the runtime unless it is the last of its class with room, so that memory can move between classes.
//
//	blobRef      | chunk, 20 bits | slot, 12 bits |
//	chunk.buf    | slot 0: name data unused | slot 1: ... |      all slots of one size
//
// The reference does not tell the length: the node knows it, and needs it anyway. A blob is never changed in place, not
// even by data of the same length: an open snapshot may still have to read it. Instead, new data get a new blob and the
// old one goes to its chunk's free list, which hands it out again next.
type blobStore struct {
	chunks []chunk
	unused []uint32            // positions in chunks that are free
	room   [blobClasses]uint32 // head of each class's list of chunks with room
	grow   [blobClasses]uint32 // bytes of the last chunk of each class
	blobs  int
	bytes  int64 // memory held
}

// get returns a blob of n bytes, which must be its length.
func (s *blobStore) get(ref blobRef, n uint32) []byte {
	if n == 0 {
		return []byte{}
	}
	c := &s.chunks[ref>>blobSlotBits]
	off := uint32(ref&blobSlotMask) * c.size
	return c.buf[off : off+n : off+n]
}

// put allocates a blob and returns it with the memory to fill.
func (s *blobStore) put(n uint32) (blobRef, []byte) {
	if n == 0 {
		return noBlob, nil
	}
	s.blobs++
	class := blobClass(n)
	if class == blobLargeClass {
		id := s.newChunk(class, n, 1)
		s.chunks[id].used = 1
		return blobRef(id << blobSlotBits), s.chunks[id].buf
	}
	id := s.room[class]
	if id == 0 {
		id = s.growClass(class)
	}
	c := &s.chunks[id]
	slot := c.fresh
	if c.free != 0 {
		slot = c.free - 1
		c.free = binary.LittleEndian.Uint16(c.buf[uint32(slot)*c.size:])
	} else {
		c.fresh++
	}
	if c.used++; c.used == c.slots {
		s.unlink(id)
	}
	off := uint32(slot) * c.size
	return blobRef(id<<blobSlotBits | uint32(slot)), c.buf[off : off+n : off+n]
}

// drop frees a blob.
func (s *blobStore) drop(ref blobRef) {
	if ref == noBlob {
		return
	}
	s.blobs--
	id, slot := uint32(ref>>blobSlotBits), uint16(ref&blobSlotMask)
	c := &s.chunks[id]
	if c.class == blobLargeClass {
		s.dropChunk(id)
		return
	}
	if c.used == c.slots {
		s.link(id)
	}
	c.used--
	binary.LittleEndian.PutUint16(c.buf[uint32(slot)*c.size:], c.free)
	c.free = slot + 1
	if c.used == 0 && (c.next != 0 || c.prev != 0) {
		s.unlink(id)
		s.dropChunk(id)
	}
}

// growClass adds a chunk to a class that has no room. Chunks double up to the usual size, so that a class that holds a
// handful of blobs does not cost 256 KiB.
func (s *blobStore) growClass(class int) uint32 {
	g := &s.grow[class]
	*g = min(max(*g*2, chunkBytesMin), chunkBytesMax)
	size := blobClassBytes(class)
	id := s.newChunk(class, size, min(max(*g/size, 1), chunkSlotsMax))
	s.link(id)
	return id
}

// newChunk allocates a chunk and finds a position for it. It is not in its class's list yet.
func (s *blobStore) newChunk(class int, size, slots uint32) uint32 {
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, chunk{}) // 0 is no chunk
	}
	var id uint32
	if n := len(s.unused); n > 0 {
		id, s.unused = s.unused[n-1], s.unused[:n-1]
	} else {
		if len(s.chunks) == blobChunksMax {
			panic("znode: too many chunks of blobs")
		}
		id = uint32(len(s.chunks))
		s.chunks = append(s.chunks, chunk{})
	}
	s.chunks[id] = chunk{buf: make([]byte, size*slots), size: size, class: uint8(class), slots: uint16(slots)}
	s.bytes += int64(size) * int64(slots)
	return id
}

// dropChunk gives a chunk's memory to the runtime. Its position is used again, since references have only 20 bits for it.
func (s *blobStore) dropChunk(id uint32) {
	s.bytes -= int64(len(s.chunks[id].buf))
	s.chunks[id] = chunk{}
	s.unused = append(s.unused, id)
}

// link puts a chunk in front of its class's list of those with room.
func (s *blobStore) link(id uint32) {
	c := &s.chunks[id]
	head := &s.room[c.class]
	c.next, c.prev = *head, 0
	if *head != 0 {
		s.chunks[*head].prev = id
	}
	*head = id
}

// unlink takes a chunk out of that list, when it is full or goes.
func (s *blobStore) unlink(id uint32) {
	c := &s.chunks[id]
	if c.prev != 0 {
		s.chunks[c.prev].next = c.next
	} else {
		s.room[c.class] = c.next
	}
	if c.next != 0 {
		s.chunks[c.next].prev = c.prev
	}
	c.next, c.prev = 0, 0
}
