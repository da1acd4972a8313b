package znode

import (
	"errors"
	"fmt"
	"math"
)

// Check verifies every invariant of the tree: links and counts of children, the child index, checksums and digest, the
// indexes of ephemeral, container and TTL nodes, the use of ACLs (with none dangling), quota prefixes, the accounting of
// all memory, and the watch tables. It visits everything and changes nothing; the caller holds the lock or is the
// goroutine that changes the tree. An error is a bug of ours, or damage in what the tree was loaded from.
func (t *Tree) Check() error {
	c := treeCheck{t: t, aclRefs: make([]int, len(t.acls.entries)), prefixes: make(map[string]struct{}), refs: make(map[blobRef]struct{})}
	return errors.Join(c.nodes(), c.store(), c.index(), c.acls(), c.kinds(), c.sessions(), c.quotas(), c.blobs(), t.watches.Check())
}

// treeCheck holds what the walk over all nodes counts, to be compared with what the tree keeps.
type treeCheck struct {
	t          *Tree
	aclRefs    []int
	prefixes   map[string]struct{}
	live       int
	refs       map[blobRef]struct{}
	ephemerals int
	containers int
	ttls       int
	due        int
	unused     int
}

// nodes walks the tree from its root.
func (c *treeCheck) nodes() error {
	t := c.t
	var digest uint64
	var dataBytes int64
	var path []byte
	for id := rootNode; id != noNode; id = t.nextBelow(rootNode, id) {
		n := t.nodes.at(id)
		if path = t.AppendPath(path[:0], id); id != rootNode && ReservedPath(path) && n.owner != 0 {
			return fmt.Errorf("node %q is built-in and has an owner", path)
		}
		if c.live++; c.live > t.nodes.live {
			return fmt.Errorf("more nodes in the tree than %d", t.nodes.live)
		}
		if err := c.node(id, n, path); err != nil {
			return fmt.Errorf("node %q: %w", path, err)
		}
		digest += t.nodeDigest(n, path)
		dataBytes += int64(len(path)) + int64(max(n.dataLen, 0))
	}
	switch {
	case c.live != t.nodes.live:
		return fmt.Errorf("%d nodes in the tree, %d in the store", c.live, t.nodes.live)
	case digest != t.digest:
		return fmt.Errorf("digest %#x, recomputed %#x", t.digest, digest)
	case dataBytes != t.dataBytes:
		return fmt.Errorf("data size %d, recomputed %d", t.dataBytes, dataBytes)
	}
	return nil
}

// node verifies all that one node says of itself and how it is found.
func (c *treeCheck) node(id Node, n *node, path []byte) error {
	t := c.t
	if (n.blob == noBlob) != (n.blobLen() == 0) {
		return fmt.Errorf("blob %d for %d bytes", n.blob, n.blobLen())
	}
	if n.blob != noBlob {
		c.refs[n.blob] = struct{}{}
	}
	if n.dataLen < -1 {
		return fmt.Errorf("data length %d", n.dataLen)
	}
	if crc := PathDataCRC(path, t.Data(id)); crc != n.crc {
		return fmt.Errorf("CRC of path and data %#x, recomputed %#x", n.crc, crc)
	}
	if int(n.acl) >= len(c.aclRefs) || t.acls.entries[n.acl].list == nil {
		return fmt.Errorf("ACL position %d is not in use", n.acl)
	}
	c.aclRefs[n.acl]++
	if id != rootNode && t.child(n.parent, t.name(n)) != id {
		return errors.New("not found through the child index")
	}
	if found, ok := t.Find(path); !ok || found != id {
		return errors.New("not found by its path")
	}
	if prefix := quotaPrefix(path, quotaLimitsName); prefix != nil {
		c.prefixes[string(prefix)] = struct{}{}
	}
	if err := c.children(id, n); err != nil {
		return err
	}
	return c.kind(id, n)
}

// children follows a node's list of children both ways.
func (c *treeCheck) children(id Node, n *node) error {
	t := c.t
	count, last := uint32(0), noNode
	for child := n.firstChild; child != noNode; child = t.nodes.at(child).next {
		m := t.nodes.at(child)
		if m.parent != id {
			return fmt.Errorf("child %q has another parent", t.name(m))
		}
		if last != noNode && m.prev != last {
			return fmt.Errorf("child %q is not linked back", t.name(m))
		}
		if count++; count > n.numChildren {
			break
		}
		last = child
	}
	if count != n.numChildren {
		return fmt.Errorf("%d children or more, %d counted", count, n.numChildren)
	}
	if count > 0 && t.nodes.at(n.firstChild).prev != last {
		return errors.New("the first child does not lead to the last")
	}
	return nil
}

// kind verifies that a node is in the index of its kind, and in no other.
func (c *treeCheck) kind(id Node, n *node) error {
	t := c.t
	due, isDue := t.expiry.due.pos[id]
	unused, isUnused := t.expiry.unused.pos[id]
	wantDue, wantUnused, at := false, false, int64(0)
	switch t.cfg.kind(n.owner) {
	case KindEphemeral:
		if c.ephemerals++; id == rootNode {
			return errors.New("ephemeral root")
		}
		if _, ok := t.ephemerals.links[id]; !ok {
			return errors.New("ephemeral node not in its index")
		}
	case KindContainer:
		c.containers++
		wantDue, at = n.numChildren == 0 && n.cversion > 0, math.MinInt64
		wantUnused = n.numChildren == 0 && n.cversion <= 0
	case KindTTL:
		c.ttls++
		wantDue, at = n.numChildren == 0, addSaturating(n.mtime, ownerTTL(n.owner))
	}
	if isDue != wantDue || isUnused != wantUnused {
		return fmt.Errorf("listed as due %t and as never used %t, should be %t and %t", isDue, isUnused, wantDue, wantUnused)
	}
	if isDue {
		if c.due++; t.expiry.due.items[due] != (dueItem{at, id}) {
			return fmt.Errorf("due as %v, should be at %d", t.expiry.due.items[due], at)
		}
	}
	if isUnused {
		if c.unused++; t.expiry.unused.items[unused] != (dueItem{n.mtime, id}) {
			return fmt.Errorf("never used as %v, should be since %d", t.expiry.unused.items[unused], n.mtime)
		}
	}
	return nil
}

// store verifies that all nodes are either in the tree or free.
func (c *treeCheck) store() error {
	s := &c.t.nodes
	free := 0
	for id := s.free; id != noNode; id = s.at(id).next {
		if free++; free > int(s.end) {
			return errors.New("the list of free nodes has no end")
		}
		if n := *s.at(id); n != (node{next: n.next}) {
			return fmt.Errorf("free node %d is not empty", id)
		}
	}
	if handed := int(s.end) - int(rootNode); free+s.live != handed {
		return fmt.Errorf("%d nodes handed out, %d live, %d free", handed, s.live, free)
	}
	return nil
}

// index verifies the child index's directory and that each node in it is where its hash leads.
func (c *treeCheck) index() error {
	x := &c.t.index
	if len(x.dir) != 1<<x.depth {
		return fmt.Errorf("child index: %d entries for depth %d", len(x.dir), x.depth)
	}
	nodes, segments := 0, 0
	for i := 0; i < len(x.dir); {
		s := x.dir[i]
		span := len(x.dir) >> s.depth
		for j := range span {
			if x.dir[i+j] != s {
				return fmt.Errorf("child index: entry %d does not lead where entry %d does", i+j, i)
			}
		}
		for ; s != nil; s = s.overflow {
			segments++
			used, err := c.segment(s, i)
			if err != nil {
				return err
			}
			nodes += used
		}
		i += span
	}
	if nodes != x.count || nodes != c.t.nodes.live-1 || segments != x.segments {
		return fmt.Errorf("child index: %d nodes in %d segments, %d in %d counted, %d in the tree",
			nodes, segments, x.count, x.segments, c.t.nodes.live-1)
	}
	return nil
}

func (c *treeCheck) segment(s *segment, first int) (int, error) {
	x := &c.t.index
	used, gone := 0, 0
	for i := range segmentSlots {
		g, slot := &s.groups[i/groupSlots], i%groupSlots
		switch tag := g.tag(slot); tag {
		case tagEmpty:
		case tagGone:
			gone++
		default:
			used++
			n := c.t.nodes.at(g.nodes[slot])
			if n.hash != x.hash(n.parent, c.t.name(n)) || tag != hashTag(n.hash) {
				return 0, fmt.Errorf("child index: wrong hash for node %d", g.nodes[slot])
			}
			if x.dir[first] != x.segment(n.hash) {
				return 0, fmt.Errorf("child index: node %d in the wrong segment", g.nodes[slot])
			}
		}
	}
	if used != int(s.used) || gone != int(s.gone) {
		return 0, fmt.Errorf("child index: segment of %d nodes and %d marks counts %d and %d", used, gone, s.used, s.gone)
	}
	return used, nil
}

// acls compares the table's counts with the nodes.
func (c *treeCheck) acls() error {
	a := &c.t.acls
	used, dangling := 0, 0
	ids := make(map[int64]struct{}, len(a.entries))
	for pos := 1; pos < len(a.entries); pos++ {
		e := &a.entries[pos]
		if e.list == nil {
			continue
		}
		used++
		if e.refs != c.aclRefs[pos] {
			return fmt.Errorf("ACL %d has %d nodes, %d counted", e.id, c.aclRefs[pos], e.refs)
		}
		if _, ok := ids[e.id]; ok || e.id == aclOpenID || e.id > a.lastID {
			return fmt.Errorf("ACL id %d is not unique, or above the last, %d", e.id, a.lastID)
		}
		ids[e.id] = struct{}{}
		if e.key == "" {
			dangling++
		} else if _, ok := a.byKey[e.key]; !ok {
			return fmt.Errorf("ACL %d cannot be found by its entries", e.id)
		}
	}
	for key, pos := range a.byKey { // order: any broken entry is enough
		if a.entries[pos].key != key {
			return fmt.Errorf("ACL %d is found by other entries", a.entries[pos].id)
		}
	}
	switch {
	case used+len(a.unused)+1 != len(a.entries):
		return fmt.Errorf("ACL table: %d positions, %d used, %d free", len(a.entries), used, len(a.unused))
	case dangling != a.dangling:
		return fmt.Errorf("ACL table: %d lists are missing, %d counted", dangling, a.dangling)
	case dangling > 0:
		return fmt.Errorf("the ACLs of some nodes are missing: %d lists", dangling)
	}
	return nil
}

// kinds verifies the indexes of ephemeral, container and TTL nodes from their own side: nothing more than the nodes.
func (c *treeCheck) kinds() error {
	t := c.t
	listed := 0
	for s, l := range t.ephemerals.owners { // order: any broken owner is enough
		prev := noNode
		for id := l.first; id != noNode; id = t.ephemerals.links[id].next {
			if listed++; listed > c.ephemerals {
				return fmt.Errorf("more than %d ephemeral nodes listed", c.ephemerals)
			}
			if t.nodes.at(id).owner != int64(s) || t.ephemerals.links[id].prev != prev {
				return fmt.Errorf("ephemeral node %d of session %v in a wrong list or place", id, s)
			}
			prev = id
		}
		if l.first == noNode || l.last != prev {
			return fmt.Errorf("list of ephemeral nodes of session %v has no beginning or another end", s)
		}
	}
	x := &t.expiry
	switch {
	case listed != c.ephemerals || len(t.ephemerals.links) != c.ephemerals:
		return fmt.Errorf("%d ephemeral nodes, %d listed, %d linked", c.ephemerals, listed, len(t.ephemerals.links))
	case x.containers != c.containers || x.ttls != c.ttls:
		return fmt.Errorf("%d containers and %d TTL nodes, %d and %d counted", c.containers, c.ttls, x.containers, x.ttls)
	case len(x.due.items) != c.due || len(x.due.pos) != c.due || len(x.unused.items) != c.unused || len(x.unused.pos) != c.unused:
		return errors.New("nodes that do not exist are listed as due or never used")
	}
	return errors.Join(x.due.check(), x.unused.check())
}

func (h *dueHeap) check() error {
	for i := 1; i < len(h.items); i++ {
		if h.items[i].at < h.items[(i-1)/2].at {
			return fmt.Errorf("due nodes out of order at %d", i)
		}
	}
	return nil
}

func (c *treeCheck) sessions() error {
	s := &c.t.sessions
	if len(s.list) != len(s.pos) {
		return fmt.Errorf("%d sessions, %d indexed", len(s.list), len(s.pos))
	}
	for i, e := range s.list {
		if s.pos[e.id] != int32(i) {
			return fmt.Errorf("session %v at %d, indexed at %d", e.id, i, s.pos[e.id])
		}
	}
	return nil
}

func (c *treeCheck) quotas() error {
	if len(c.prefixes) != len(c.t.quotas.prefixes) {
		return fmt.Errorf("%d quotas, %d indexed", len(c.prefixes), len(c.t.quotas.prefixes))
	}
	for p := range c.prefixes { // order: any missing prefix is enough
		if _, ok := c.t.quotas.prefixes[p]; !ok {
			return fmt.Errorf("quota on %q is not indexed", p)
		}
	}
	return nil
}

// blobs verifies that all memory for names and data is accounted for.
func (c *treeCheck) blobs() error {
	s := &c.t.blobs
	inNodes := len(c.refs)
	for _, refs := range [][]blobRef{c.t.deferred, c.t.reclaim} {
		for _, ref := range refs {
			c.refs[ref] = struct{}{}
		}
	}
	if s.blobs != len(c.refs) { // one that two nodes share would be missing here
		return fmt.Errorf("%d blobs, %d in nodes, %d with those waiting to be freed", s.blobs, inNodes, len(c.refs))
	}
	used, free, bytes := 0, 0, int64(0)
	for id := 1; id < len(s.chunks); id++ {
		k := &s.chunks[id]
		if k.buf == nil {
			free++
			continue
		}
		used += int(k.used)
		bytes += int64(len(k.buf))
	}
	if used != s.blobs || free != len(s.unused) || bytes != s.bytes {
		return fmt.Errorf("blobs: %d in chunks, %d counted; %d free chunks, %d listed; %d bytes, %d counted",
			used, s.blobs, free, len(s.unused), bytes, s.bytes)
	}
	for class, head := range s.room {
		for id := head; id != 0; id = s.chunks[id].next {
			if k := &s.chunks[id]; int(k.class) != class || k.used >= k.slots {
				return fmt.Errorf("blobs: chunk %d of class %d is full or in the list of class %d", id, k.class, class)
			}
		}
	}
	return nil
}
