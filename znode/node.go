package znode

// Node is a handle of a node: its position in the tree's memory. 0 is no node. A handle is valid while the tree's lock
// is held, for the goroutine that changes the tree until its next change.
type Node uint32

const (
	noNode   Node = 0
	rootNode Node = 1
)

// node holds no pointers: the garbage collector never looks into a slab, and a page of nodes can be saved by copying.
//
// It has 104 bytes, of which 60 are the stat that ZooKeeper stores. What else costs memory for a node of the tree: its
// blob (name and data, at most an eighth of it lost), and about ten bytes in the child index. Together a node with 100
// bytes of data and a short name takes some 226 bytes. Before adding a field, think of a million of them.
type node struct {
	czxid, mzxid, pzxid int64
	ctime, mtime        int64
	owner               int64
	version             int32
	cversion            int32 // children ever created
	aversion            int32

	parent     Node
	firstChild Node
	// The children of a node form a list in the order of their creation. next of the last is 0; prev of the first is the
	// last, so that the end is found without a field for it.
	next, prev  Node
	numChildren uint32

	acl     uint32 // position in the ACL table
	hash    uint32 // of parent and name, for the child index
	blob    blobRef
	nameLen uint32
	dataLen int32  // -1 for null
	crc     uint32 // CRC-32 of path and data, where the digest begins
}

func (n *node) blobLen() uint32 { return n.nameLen + uint32(max(n.dataLen, 0)) }

func (n *node) stored() StoredStat {
	return StoredStat{
		Czxid: zx(n.czxid), Mzxid: zx(n.mzxid), Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, CVersion: n.cversion, AVersion: n.aversion, Owner: n.owner, Pzxid: zx(n.pzxid),
	}
}

func (n *node) setStored(s *StoredStat) {
	n.czxid, n.mzxid, n.pzxid = int64(s.Czxid), int64(s.Mzxid), int64(s.Pzxid)
	n.ctime, n.mtime, n.owner = s.Ctime, s.Mtime, s.Owner
	n.version, n.cversion, n.aversion = s.Version, s.CVersion, s.AVersion
}

type (
	nodeSlab [slabNodes]node
	nodePage [pageNodes]node
)

// nodeStore hands out nodes from slabs. Freed ones are used again first; slabs are never given back, but a node is a
// node, so any later tree of that size finds room.
//
//	Node id      | slab, 22 bits | page, 4 bits | node in the page, 6 bits |
//
// While a snapshot is open the store keeps two versions of each page that has changed since: the live one in the slab,
// and a copy of how it was. Whoever writes goes through mut, which makes the copy before the first change; whoever
// reads for the snapshot goes through before, which prefers the copy. So opening costs nothing but an empty table of
// copies, a change costs at most one copy of 6.5 KiB, and pages that do not change are never copied. Nodes that were
// free when the snapshot was opened, and slabs that did not exist, are not reached from its root, so it does not matter
// what becomes of them.
type nodeStore struct {
	slabs []*nodeSlab
	end   Node // the first that was never handed out
	free  Node // list of freed ones, linked by next
	live  int

	// copies is set while a snapshot is open: the pages that have changed since, as they were. Slabs that are younger have
	// no entry.
	copies []*[slabPages]*nodePage
}

// at returns a node for reading.
func (s *nodeStore) at(id Node) *node { return &s.slabs[id/slabNodes][id%slabNodes] }

// mut returns a node for writing. Nothing may be written through at: this is where an open snapshot keeps its state.
func (s *nodeStore) mut(id Node) *node {
	if s.copies != nil {
		s.preserve(id)
	}
	return s.at(id)
}

func (s *nodeStore) preserve(id Node) {
	slab := int(id / slabNodes)
	if slab >= len(s.copies) {
		return
	}
	c := s.copies[slab]
	if c == nil {
		c = new([slabPages]*nodePage)
		s.copies[slab] = c
	}
	first := id % slabNodes / pageNodes * pageNodes
	if p := &c[first/pageNodes]; *p == nil {
		*p = new(nodePage)
		copy((*p)[:], s.slabs[slab][first:first+pageNodes])
	}
}

// before returns a node as it was when the snapshot was opened.
func (s *nodeStore) before(id Node) *node {
	if p := s.copies[id/slabNodes]; p != nil {
		if page := p[id%slabNodes/pageNodes]; page != nil {
			return &page[id%pageNodes]
		}
	}
	return s.at(id)
}

// blobBefore returns the blob that a node had when the snapshot was opened, 0 if none. The node must have been passed
// to mut since, so that it has been saved if it existed. This is how to tell a blob that the snapshot will read from one
// that was written since and can be freed at once; without it, a node that is written to all the time would pile up
// its old data for as long as the snapshot takes.
func (s *nodeStore) blobBefore(id Node) blobRef {
	if int(id/slabNodes) >= len(s.copies) {
		return noBlob
	}
	return s.before(id).blob
}

// openCopies begins to save pages. It costs one pointer for every slab.
func (s *nodeStore) openCopies() { s.copies = make([]*[slabPages]*nodePage, len(s.slabs)) }

func (s *nodeStore) closeCopies() { s.copies = nil }

// alloc returns a node whose fields are zero.
func (s *nodeStore) alloc() Node {
	s.live++
	if id := s.free; id != noNode {
		n := s.mut(id)
		s.free = n.next
		n.next = noNode
		return id
	}
	if s.end == noNode {
		if len(s.slabs) > 0 {
			panic("znode: more than 2^32 nodes")
		}
		s.end = rootNode
	}
	if int(s.end/slabNodes) == len(s.slabs) {
		s.slabs = append(s.slabs, new(nodeSlab))
	}
	id := s.end
	s.end++
	s.preserveNew(id)
	return id
}

// preserveNew saves the page of a node that is handed out for the first time, in a slab that an open snapshot knows.
func (s *nodeStore) preserveNew(id Node) {
	if s.copies != nil {
		s.preserve(id)
	}
}

func (s *nodeStore) release(id Node) {
	s.live--
	*s.mut(id) = node{next: s.free}
	s.free = id
}
