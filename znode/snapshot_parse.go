package znode

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Ahead runs fill ahead of its consumer, on another goroutine. fill is called with the number of a slot, from 0 up to
// slots, that is free, and reports false when there is nothing more; it is not called again then. take waits for the next
// slot that was filled, in the order in which that was begun, until there is none; it frees the one that it returned
// before. stop ends it at any time: when it returns, fill does not run and will not. It must be called, and may be twice.
// take and stop are called by one goroutine.
type Ahead func(slots int, fill func(slot int) bool) (take func() (slot int, ok bool), stop func())

// start is a, or fills the one slot whenever it is asked for, if a is nil.
func (a Ahead) start(slots int, fill func(slot int) bool) (take func() (slot int, ok bool), stop func()) {
	if a != nil {
		return a(slots, fill)
	}
	return func() (int, bool) { return 0, fill(0) }, func() {}
}

// snapshotParser is the half of reading that knows the file and not the tree. It ends with the first error, which is in
// src, or with the last checksum.
type snapshotParser struct {
	src  *snapshotSource
	info SnapshotInfo
	// sums asks for the CRCs of the nodes, and digest for their parts of the tree's.
	sums, digest bool

	batches [snapshotSlots]snapshotBatch
	stage   parserStage
	last    []byte // path of the node before, in its batch or, between batches, in kept
	kept    []byte
	// above are the lengths of the paths of the ancestors of the last node, and of its own: in a depth-first walk a parent
	// is always among them.
	above []int
}

type parserStage uint8

const (
	parseRoot parserStage = iota
	parseNodes
	parseTail
	parseDone
)

// snapshotBatch is what is handed on at a time: nodes and the memory that they are in.
type snapshotBatch struct {
	buf   []byte
	nodes []parsedNode
	// digest is the sum of the parts of all nodes but the root.
	digest uint64
	end    int64 // offset behind the nodes
}

// parsedNode is a node as the file has it.
type parsedNode struct {
	st         StoredStat
	path, data []byte // in the batch's buffer; data are nil for null
	acl        int64  // id in the file
	offset     int64  // behind the path
	nameAt     int32  // in the path
	// parent is the parent's level: how many nodes are above it. The node itself is one below; level 0 is the root's. With
	// parentElsewhere its parent is to be searched for and it is at level 1.
	parent int32
	crc    uint32
	// broken says that the file cannot be read beyond the path. It is handed on because it may be misplaced, which
	// would be the earlier error.
	broken bool

	// These are set by the loader: the parent, the hash and the id in the tree.
	above, id Node
	hash      uint32
}

const (
	parentElsewhere int32 = -1
	parentNone      int32 = -2 // the root
)

// name returns the node's name.
func (n *parsedNode) name() []byte { return n.path[n.nameAt:] }

// orphan is the error for a node whose parent is not there.
func (n *parsedNode) orphan() error {
	return snapshotError(n.offset, orphanFormat, n.path)
}

const orphanFormat = "node %q without a parent, or with a bad name"

func newSnapshotParser(r io.Reader, fieldBytesMax int) *snapshotParser {
	return &snapshotParser{src: newSnapshotSource(r, fieldBytesMax)}
}

// fill puts the next nodes into a batch, as many as fit into its buffer, and at least one. It reads the file's tail in a
// call of its own, since it may have to move what the buffer holds. It reports false when everything was read.
func (p *snapshotParser) fill(slot int) bool {
	if p.stage == parseDone {
		return false
	}
	b := &p.batches[slot]
	// A slot before may have had a larger buffer, which a single read has filled.
	if unread := p.src.unread(); len(b.buf) < max(unread, snapshotReadBytes) {
		b.buf = make([]byte, max(unread, snapshotReadBytes))
	}
	b.nodes, b.digest = b.nodes[:0], 0
	p.src.move(b.buf)
	for p.stage < parseTail && p.src.err == nil && p.src.hasNode(len(b.nodes) == 0) {
		p.readNode(b)
	}
	if p.stage == parseTail && len(b.nodes) == 0 {
		p.src.seal()
		p.readTail()
		p.stage = parseDone
	}
	if p.src.err != nil {
		p.stage = parseDone
	}
	b.buf, b.end = p.src.buf, p.src.at()
	p.kept = append(p.kept[:0], p.last...)
	p.last = p.kept
	return true
}

// readNode reads the next node, or the path that ends the nodes.
func (p *snapshotParser) readNode(b *snapshotBatch) {
	path, ok := p.src.text()
	switch {
	case p.src.err != nil:
	case !ok:
		p.src.fail("null path")
	case (p.stage == parseRoot) != (len(path) == 0):
		p.src.fail("node %q in the place of the root, or the root again", path)
	case p.stage == parseRoot:
		p.stage = parseNodes
		p.readRoot(b, path)
	case len(path) == 1 && path[0] == '/':
		p.stage = parseTail
	default:
		p.readInner(b, path)
	}
}

func (p *snapshotParser) readRoot(b *snapshotBatch, path []byte) {
	n := b.next()
	n.path, n.offset, n.nameAt, n.parent = path, p.src.at(), 0, parentNone
	p.readBody(n)
	if p.src.err == nil && n.st.Owner != 0 {
		p.src.fail("the root has the owner %#x", uint64(n.st.Owner))
	}
	n.broken = p.src.err != nil
	p.above, p.last = append(p.above, 0), path
}

// readInner reads a node below the root.
func (p *snapshotParser) readInner(b *snapshotBatch, path []byte) {
	parent, nameAt := p.findParent(path)
	if parent == parentNone {
		p.src.fail(orphanFormat, path)
		return
	}
	n := b.next()
	n.path, n.offset, n.nameAt, n.parent = path, p.src.at(), int32(nameAt), parent
	p.readBody(n)
	// Those cannot be deleted, so they must not be anybody's to delete.
	if n.st.Owner != 0 && p.src.err == nil && ReservedPath(path) {
		p.src.fail("node %q has the owner %#x", path, uint64(n.st.Owner))
	}
	if n.broken = p.src.err != nil; !n.broken && p.digest {
		b.digest += NodeDigest(path, n.crc, &n.st)
	}
}

// findParent returns the level of a node's parent and where the node's name begins, parentNone if its path is none.
func (p *snapshotParser) findParent(path []byte) (parent int32, nameAt int) {
	slash := bytes.LastIndexByte(path, '/')
	if slash < 0 || slash == len(path)-1 {
		return parentNone, 0
	}
	k := len(p.above)
	for k > 1 && p.above[k-1] > slash {
		k--
	}
	parent = int32(k - 1)
	if p.above[k-1] != slash || !bytes.Equal(p.last[:slash], path[:slash]) {
		// Not depth-first, which no server writes, but nothing forbids.
		parent, k = parentElsewhere, 1
	}
	p.above, p.last = append(p.above[:k], len(path)), path
	return parent, slash + 1
}

// readBody reads what follows a node's path.
func (p *snapshotParser) readBody(n *parsedNode) {
	size := p.src.length()
	have := max(size, 0)
	if !p.src.need(have + storedBodyBytes) {
		return
	}
	b := p.src.buf[p.src.pos:][:have+storedBodyBytes]
	p.src.pos += len(b)
	n.data = nil
	if size >= 0 {
		n.data = b[:size:size]
	}
	b = b[have:]
	n.acl = int64(binary.BigEndian.Uint64(b))
	if n.acl > aclIDMax {
		p.src.fail("ACL id %d is out of range", n.acl)
		return
	}
	n.st.decode(b[8:])
	if p.sums {
		n.crc = PathDataCRC(n.path, n.data)
	}
}

// decode reads a stat as snapshots have it.
func (st *StoredStat) decode(b []byte) {
	b = b[:storedStatBytes]
	st.Czxid, st.Mzxid = zx(int64(binary.BigEndian.Uint64(b))), zx(int64(binary.BigEndian.Uint64(b[8:])))
	st.Ctime, st.Mtime = int64(binary.BigEndian.Uint64(b[16:])), int64(binary.BigEndian.Uint64(b[24:]))
	st.Version, st.CVersion = int32(binary.BigEndian.Uint32(b[32:])), int32(binary.BigEndian.Uint32(b[36:]))
	st.AVersion, st.Owner = int32(binary.BigEndian.Uint32(b[40:])), int64(binary.BigEndian.Uint64(b[44:]))
	st.Pzxid = zx(int64(binary.BigEndian.Uint64(b[52:])))
}

// next appends a node whose fields are to be set, all of them.
func (b *snapshotBatch) next() *parsedNode {
	if n := len(b.nodes); n < cap(b.nodes) {
		b.nodes = b.nodes[:n+1]
	} else {
		b.nodes = append(b.nodes, parsedNode{})
	}
	return &b.nodes[len(b.nodes)-1]
}
