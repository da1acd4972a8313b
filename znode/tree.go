// Package znode is the tree of a ZooKeeper server: nodes with their stats, ACLs, quotas and watches, the replicated
// sessions, the transactions that change them, and snapshots. It reads and writes Apache ZooKeeper's formats.
//
// The main path: DecodeTxn gives a Txn, Tree.Apply changes the tree and triggers Watches; Tree.Find leads to a Node, of
// which Tree.Stat and Tree.Data are read; Tree.OpenSnapshot and ReadSnapshot write and read the whole.
//
// The tree is built for millions of nodes. A node is a struct without pointers in a page, named by a number; names and
// data are in large chunks of bytes; children are found through one hash table for the whole tree and listed through
// links. So the garbage collector sees a few thousand objects, and a snapshot is a matter of copying a page of nodes
// before its first change. No operation takes time in proportion to the tree, but for those on whole subtrees, such as
// counting the usage of a new quota. (Tables of pointers are copied when they grow: one for about a thousand nodes.)
//
// The package is pure: it starts no goroutine and reads no clock; nothing depends on the order of a map.
package znode

import (
	"bytes"
	"slices"

	"zabra/wire"
	"zabra/zab/zxid"
)

// Config configures a tree.
type Config struct {
	// ExtendedTypes tells that TTL nodes may be created. Existing ones are what they are without it.
	ExtendedTypes bool
	// Emulate353TTL takes every negative owner, but for the container's, for a TTL node's as ZooKeeper 3.5.3 coded it.
	// It counts only with ExtendedTypes.
	Emulate353TTL bool
	// NoDigest switches the tree's digest off.
	NoDigest bool
	// HashSeed is mixed into the hashes of names. Nothing but speed depends on it; one that clients cannot know keeps them
	// from choosing names that collide.
	HashSeed uint64
	// Auth is kept for those who check permissions; the tree does not.
	Auth *Auth
	// Ahead lets ReadSnapshot work on two goroutines. Nil is one: nothing but speed depends on it.
	Ahead Ahead
	// Fired is called, by the goroutine that changes the tree, with the kind of each event that somebody watches for and the
	// number of those who do. It must not block. Nil is allowed.
	Fired func(typ wire.EventType, watchers int)
}

// Tree is the replicated state of a server. One goroutine changes it, under Lock; others read under RLock.
type Tree struct {
	cfg     Config
	lock    shardedLock
	watches *Watches

	nodes      nodeStore
	blobs      blobStore
	index      childIndex
	acls       aclTable
	ephemerals ephemeralIndex
	expiry     expiryIndex
	sessions   sessionTable
	quotas     quotaIndex

	lastZxid  zxid.Zxid
	digest    uint64
	dataBytes int64 // of all paths and data

	snapshot *Snapshot // the open one
	// Blobs that the open snapshot still needs, and those that an ended one needed, to be freed bit by bit.
	deferred, reclaim []blobRef

	op      OpResult // of a transaction that is not a multi
	hint    Hint     // of the transaction that is being applied
	scratch []byte   // for paths, by the goroutine that changes the tree
	text    []byte   // for quota usage, by the same
}

func sid(owner int64) zxid.SessionID { return zxid.SessionID(owner) }

// NewTree returns the tree of a fresh server: the root, /zookeeper, /zookeeper/config which everybody may read, and
// /zookeeper/quota; no session, zxid 0.
func NewTree(cfg Config) *Tree {
	t := newEmptyTree(cfg)
	t.addBuiltin()
	return t
}

// newEmptyTree returns a tree with nothing but a root that snapshots may overwrite.
func newEmptyTree(cfg Config) *Tree {
	t := &Tree{cfg: cfg, watches: NewWatches()}
	t.watches.onFire = cfg.Fired
	t.index.init(cfg.HashSeed)
	t.acls.init()
	t.ephemerals.init()
	t.expiry.init()
	t.sessions.init()
	t.quotas.init()
	t.nodes.alloc()
	root := t.nodes.at(rootNode)
	root.crc = PathDataCRC(nil, nil)
	t.end(root, nil)
	t.dataBytes = rootPathBytes
	return t
}

// addBuiltin adds the built-in nodes that are missing. They are older than any transaction: their stats are 0. Snapshots
// of ZooKeeper before 3.5 lack the config node.
func (t *Tree) addBuiltin() {
	t.addBuiltinNode(rootNode, ZookeeperPath, StoredStat{}, nil)
	zk, _ := t.Find([]byte(ZookeeperPath))
	t.addBuiltinNode(zk, ConfigPath, StoredStat{AVersion: -1}, wire.ReadACL)
	t.addBuiltinNode(zk, QuotaPath, StoredStat{}, nil)
}

func (t *Tree) addBuiltinNode(parent Node, path string, st StoredStat, acl []wire.ACL) {
	_, name := SplitPath([]byte(path))
	if t.child(parent, name) == noNode {
		t.insert(parent, t.index.hash(parent, name), []byte(path), name, []byte{}, &st, t.acls.retain(acl))
	}
}

// Watches returns the tree's watches, which its transactions trigger.
func (t *Tree) Watches() *Watches { return t.watches }

// Find returns the node at path. "" and "/" are the root. A path that is not valid leads nowhere. It does not allocate.
func (t *Tree) Find(path []byte) (Node, bool) {
	if len(path) <= 1 {
		return rootNode, len(path) == 0 || path[0] == '/'
	}
	if path[0] != '/' {
		return noNode, false
	}
	id := rootNode
	for rest := path[1:]; ; {
		name := rest
		slash := bytes.IndexByte(rest, '/')
		if slash >= 0 {
			name = rest[:slash]
		}
		if id = t.child(id, name); id == noNode {
			return noNode, false
		}
		if slash < 0 {
			return id, true
		}
		rest = rest[slash+1:]
	}
}

// Stat returns a node's stat as clients see it.
func (t *Tree) Stat(id Node) wire.Stat {
	n := t.nodes.at(id)
	s := wire.Stat{
		Czxid: zx(n.czxid), Mzxid: zx(n.mzxid), Ctime: n.ctime, Mtime: n.mtime,
		// Creations and deletions of children together: c created and c-n deleted.
		Version: n.version, CVersion: 2*n.cversion - int32(n.numChildren), AVersion: n.aversion,
		DataLength: max(n.dataLen, 0), NumChildren: int32(n.numChildren), Pzxid: zx(n.pzxid),
	}
	if n.owner != 0 && t.cfg.kind(n.owner) == KindEphemeral {
		s.EphemeralOwner = sid(n.owner)
	}
	return s
}

// Stored returns a node's stat as snapshots hold it.
func (t *Tree) Stored(id Node) StoredStat { return t.nodes.at(id).stored() }

// Kind returns a node's kind.
func (t *Tree) Kind(id Node) Kind { return t.cfg.kind(t.nodes.at(id).owner) }

// Data returns a node's data, nil for null. It is the tree's own memory: nobody may change it, and it is valid only
// while the tree's lock is held, for the goroutine that changes the tree until its next change.
func (t *Tree) Data(id Node) []byte {
	n := t.nodes.at(id)
	if n.dataLen < 0 {
		return nil
	}
	return t.blobs.get(n.blob, n.blobLen())[n.nameLen:]
}

// name returns a node's name under the conditions of Data.
func (t *Tree) name(n *node) []byte { return t.blobs.get(n.blob, n.blobLen())[:n.nameLen] }

// ACL returns a node's list, which stays valid.
func (t *Tree) ACL(id Node) *ACLList { return t.acls.list(t.nodes.at(id).acl) }

// NumChildren returns the number of a node's children.
func (t *Tree) NumChildren(id Node) int { return int(t.nodes.at(id).numChildren) }

// Parent returns a node's parent, 0 for the root.
func (t *Tree) Parent(id Node) Node { return t.nodes.at(id).parent }

// AppendPath appends a node's path, "/" for the root.
func (t *Tree) AppendPath(b []byte, id Node) []byte {
	if id == rootNode {
		return append(b, '/')
	}
	size := 0
	for up := id; up != rootNode; {
		n := t.nodes.at(up)
		size += 1 + int(n.nameLen)
		up = n.parent
	}
	b = slices.Grow(b, size)
	end := len(b) + size
	b = b[:end]
	for up := id; up != rootNode; {
		n := t.nodes.at(up)
		end -= int(n.nameLen)
		copy(b[end:], t.name(n))
		end--
		b[end] = '/'
		up = n.parent
	}
	return b
}

// VisitChildren calls f with the name of every child, in the order of their creation, until it returns false. The name
// is valid like Data.
func (t *Tree) VisitChildren(id Node, f func(name []byte) bool) {
	for c := t.nodes.at(id).firstChild; c != noNode; {
		n := t.nodes.at(c)
		if !f(t.name(n)) {
			return
		}
		c = n.next
	}
}

// CountDescendants returns the number of nodes below a node. It visits them all, but for the root.
func (t *Tree) CountDescendants(id Node) int {
	if id == rootNode {
		return t.nodes.live - 1
	}
	count := -1
	for n := id; n != noNode; n = t.nextBelow(id, n) {
		count++
	}
	return count
}

// nextBelow returns the node after id in a walk of the subtree at top, parents before children; 0 at the end.
func (t *Tree) nextBelow(top, id Node) Node {
	n := t.nodes.at(id)
	if n.firstChild != noNode {
		return n.firstChild
	}
	for id != top {
		if n.next != noNode {
			return n.next
		}
		id = n.parent
		n = t.nodes.at(id)
	}
	return noNode
}

// LastZxid returns the last transaction that was applied.
func (t *Tree) LastZxid() zxid.Zxid { return t.lastZxid }

// NodeCount returns the number of nodes, the built-in ones included.
func (t *Tree) NodeCount() int { return t.nodes.live }

// rootPathBytes is what the root's path, "/", counts in DataSize.
const rootPathBytes = 1

// DataSize returns the length of all paths and data together, in bytes.
func (t *Tree) DataSize() int64 { return t.dataBytes }

// DanglingACLs returns the number of ACLs that nodes refer to but a snapshot did not hold. The log that follows a
// snapshot repairs them; what is left after it is damage. Such nodes are closed to everybody.
func (t *Tree) DanglingACLs() int { return t.acls.dangling }

// insert adds a node at the end of its parent's children. hash is that of the child index for it, and acl has been
// counted for it already. It enters the node
// everywhere but in quotas, and does not touch the parent's stat.
func (t *Tree) insert(parent Node, hash uint32, path, name, data []byte, st *StoredStat, acl uint32) Node {
	id := t.nodes.alloc()
	n := t.nodes.at(id)
	n.setStored(st)
	n.parent, n.hash, n.acl, n.crc = parent, hash, acl, PathDataCRC(path, data)
	t.fillBlob(n, name, data)
	t.end(n, path)
	t.index.add(&t.nodes, id)
	t.enter(parent, id, len(path)+len(data))
	return id
}

// fillBlob gives a new node its name and data.
func (t *Tree) fillBlob(n *node, name, data []byte) {
	n.nameLen, n.dataLen = uint32(len(name)), int32(len(data))
	var blob []byte
	n.blob, blob = t.blobs.put(n.blobLen())
	copy(blob[copy(blob, name):], data)
	if data == nil {
		n.dataLen = -1
	}
}

// enter is what is left to do for a new node that has its fields set and is in the child index. bytes is the length of its
// path and data.
func (t *Tree) enter(parent, id Node, bytes int) {
	t.dataBytes += int64(bytes)
	t.link(parent, id)
	t.addKind(id)
	t.updateExpiry(parent)
}

// link puts a new node behind its parent's other children. The list's order is that of creation, which makes listings
// and snapshots follow from the history alone, and lets a snapshot that was read come out again as it was.
func (t *Tree) link(parent, id Node) {
	p := t.nodes.mut(parent)
	p.numChildren++
	n := t.nodes.at(id)
	if p.firstChild == noNode {
		p.firstChild = id
		n.prev = id
		return
	}
	first := t.nodes.mut(p.firstChild)
	n.prev = first.prev
	t.nodes.mut(first.prev).next = id
	first.prev = id
}

// unlink takes a node out of its parent's children.
func (t *Tree) unlink(id Node) {
	n := t.nodes.at(id)
	next, prev := n.next, n.prev
	p := t.nodes.mut(n.parent)
	p.numChildren--
	if p.firstChild == id {
		p.firstChild = next
	} else {
		t.nodes.mut(prev).next = next
	}
	switch {
	case next != noNode:
		t.nodes.mut(next).prev = prev
	case p.firstChild != noNode: // the last one goes
		t.nodes.mut(p.firstChild).prev = prev
	}
}

// removeLeaf takes a node without children out of everything but quotas. It does not touch the parent's stat.
func (t *Tree) removeLeaf(id Node, path []byte) {
	n := t.begin(id, path)
	parent := n.parent
	t.dataBytes -= int64(len(path)) + int64(max(n.dataLen, 0))
	t.removeKind(id)
	t.index.remove(&t.nodes, id)
	t.unlink(id)
	t.acls.release(n.acl)
	t.dropBlob(id, n.blob)
	t.nodes.release(id)
	t.updateExpiry(parent)
}

// replaceData gives a node, which has been passed to mut, new data. The caller looks after the digest.
func (t *Tree) replaceData(id Node, path, data []byte) {
	n := t.nodes.at(id)
	t.dataBytes += int64(len(data)) - int64(max(n.dataLen, 0))
	ref, blob := t.blobs.put(n.nameLen + uint32(len(data)))
	copy(blob[copy(blob, t.name(n)):], data)
	t.dropBlob(id, n.blob)
	n.blob, n.dataLen = ref, int32(len(data))
	if data == nil {
		n.dataLen = -1
	}
	n.crc = PathDataCRC(path, data)
}

// dropBlob frees a blob of a node that has been passed to mut, now or when the open snapshot does not need it any more.
func (t *Tree) dropBlob(id Node, ref blobRef) {
	if ref != noBlob && t.snapshot != nil && t.nodes.blobBefore(id) == ref {
		t.deferred = append(t.deferred, ref)
		return
	}
	t.blobs.drop(ref)
}

// reclaimSome frees some of the blobs that an ended snapshot had kept, so that closing it is not one long pause.
func (t *Tree) reclaimSome() {
	n := len(t.reclaim)
	if n == 0 {
		return
	}
	rest := max(n-reclaimBlobsMax, 0)
	for _, ref := range t.reclaim[rest:] {
		t.blobs.drop(ref)
	}
	if t.reclaim = t.reclaim[:rest]; rest == 0 {
		t.reclaim = nil
	}
}
