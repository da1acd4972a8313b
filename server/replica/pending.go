package replica

import (
	"zabra/wire"
	"zabra/zab/zxid"
	"zabra/znode"
)

// pendingNode is a node as it will be when everything proposed so far is applied.
type pendingNode struct {
	exists   bool
	stat     znode.StoredStat
	acl      *znode.ACLList
	children int32
	// pathDataCRC is what the node's digest begins with, see znode.NodeDigest.
	pathDataCRC uint32
	dataBytes   int32
	// digest is the node's part of the tree's, if known.
	digest    uint64
	hasDigest bool
	// node is where the tree has it; 0 if it does not, or if the node is a later one of that path.
	node znode.Node
	// last is the newest proposal that changed the node; when that is applied the entry is dropped.
	last zxid.Zxid
	// key is what the entry is found by; empty for the root.
	key string
	// recycled is set while the entry is none.
	recycled bool
}

// pendingView is the tree plus the effects of transactions that are proposed but not applied: what a write is checked
// against, so that pipelined writes see each other. It belongs to the stepping goroutine, which is also the tree's only
// mutator, so it reads the tree without a lock.
type pendingView struct {
	tree     *znode.Tree
	noDigest bool
	nodes    map[string]*pendingNode
	// touched lists, in the order of proposals, which entry each one changed.
	touched []touch
	// ephemerals lists, per session, paths of ephemeral nodes whose create is in flight, in order. It may hold paths that
	// were deleted again, or whose create was taken back with its multi.
	ephemerals map[zxid.SessionID][]pendingEphemeral
	// digest is the tree's digest after everything that is proposed.
	digest uint64
	undo   undoLog
	free   []*pendingNode
	keys   slab
}

type touch struct {
	zxid zxid.Zxid
	node *pendingNode
}

type pendingEphemeral struct {
	zxid zxid.Zxid
	path string
}

// undoLog remembers what a multi changed until it is known to succeed.
type undoLog struct {
	active  bool
	digest  uint64
	touched int
	nodes   []undoNode
}

type undoNode struct {
	node *pendingNode
	had  bool
	old  pendingNode
}

func newPendingView(tree *znode.Tree, noDigest bool) *pendingView {
	return &pendingView{
		tree:       tree,
		noDigest:   noDigest,
		nodes:      make(map[string]*pendingNode),
		ephemerals: make(map[zxid.SessionID][]pendingEphemeral),
		digest:     tree.Digest(),
		keys:       slab{bytes: keyChunkBytes},
	}
}

// canonical maps the two names of the root to one.
func canonical(path []byte) []byte {
	if len(path) == 1 && path[0] == '/' {
		return path[:0]
	}
	return path
}

// get returns the node as it will be; false if it will not exist.
func (v *pendingView) get(path []byte) (pendingNode, bool) {
	path = canonical(path)
	if n, ok := v.nodes[string(path)]; ok {
		return *n, n.exists
	}
	n, ok := v.tree.Find(path)
	if !ok {
		return pendingNode{}, false
	}
	return v.stored(n), true
}

// getChild is get for a node whose parent get has returned.
func (v *pendingView) getChild(parent *pendingNode, path []byte) (pendingNode, bool) {
	if n, ok := v.nodes[string(path)]; ok {
		return *n, n.exists
	}
	_, name := znode.SplitPath(path)
	slash := len(path) - len(name) - 1
	if parent.node == 0 || len(name) == 0 || slash == 1 { // "//x", which is no path, splits as "/x" does
		return v.get(path)
	}
	n, ok := v.tree.Child(parent.node, name)
	if !ok {
		return pendingNode{}, false
	}
	return v.stored(n), true
}

// stored returns a node as the tree has it.
func (v *pendingView) stored(n znode.Node) pendingNode {
	return pendingNode{
		exists:      true,
		node:        n,
		stat:        v.tree.Stored(n),
		acl:         v.tree.ACL(n),
		children:    int32(v.tree.NumChildren(n)),
		pathDataCRC: v.tree.PathDataCRC(n),
		dataBytes:   int32(len(v.tree.Data(n))),
	}
}

// put records what a proposal makes of a node. old is what get returned for it.
func (v *pendingView) put(path []byte, old, n *pendingNode, z zxid.Zxid) {
	path = canonical(path)
	if !v.noDigest {
		switch {
		case !old.exists:
		case old.hasDigest:
			v.digest -= old.digest
		default:
			v.digest -= znode.NodeDigest(path, old.pathDataCRC, &old.stat)
		}
		if n.hasDigest = n.exists; n.exists {
			n.digest = znode.NodeDigest(path, n.pathDataCRC, &n.stat)
			v.digest += n.digest
		}
	}
	n.last = z
	p, had := v.nodes[string(path)]
	if !had {
		p = v.alloc()
		p.key = v.keys.text(path)
		v.nodes[p.key] = p
	}
	if v.undo.active {
		v.undo.nodes = append(v.undo.nodes, undoNode{node: p, had: had, old: *p})
	}
	if !had || p.last != z {
		v.touched = append(v.touched, touch{zxid: z, node: p})
	}
	n.key = p.key
	*p = *n
}

// hint tells apply where a node is that get has returned.
func (v *pendingView) hint(n *pendingNode) znode.Hint {
	if n.node == 0 {
		return znode.Hint{}
	}
	return v.tree.HintOf(n.node)
}

// remove records that a node is deleted by a proposal that also moves its parent's pzxid, as every delete does.
func (v *pendingView) remove(path []byte, z zxid.Zxid) {
	old, ok := v.get(path)
	if !ok {
		return
	}
	gone := pendingNode{}
	v.put(path, &old, &gone, z)
	parentPath, _ := znode.SplitPath(path)
	if parent, ok := v.get(parentPath); ok {
		after := parent
		after.children--
		after.stat.Pzxid = max(after.stat.Pzxid, z)
		v.put(parentPath, &parent, &after, z)
	}
}

// addEphemeral notes an ephemeral node whose create is in flight.
func (v *pendingView) addEphemeral(s zxid.SessionID, path []byte, z zxid.Zxid) {
	v.ephemerals[s] = append(v.ephemerals[s], pendingEphemeral{zxid: z, path: string(path)})
}

// ephemeralsOf returns the ephemeral nodes that a session will own: those of the tree without deletes in flight, then
// those whose create is in flight.
func (v *pendingView) ephemeralsOf(s zxid.SessionID) []string {
	var paths []string
	owned := func(path []byte) bool {
		n, ok := v.get(path)
		return ok && n.stat.Owner == int64(s)
	}
	v.tree.VisitEphemerals(s, func(path []byte) bool {
		if owned(path) {
			paths = append(paths, string(path))
		}
		return true
	})
	pending := v.ephemerals[s]
	if len(pending) == 0 {
		return paths
	}
	seen := make(map[string]bool, len(paths)+len(pending))
	for _, p := range paths {
		seen[p] = true
	}
	for _, e := range pending {
		if !seen[e.path] && owned([]byte(e.path)) {
			seen[e.path] = true
			paths = append(paths, e.path)
		}
	}
	return paths
}

// applied drops what transactions up to z left behind: the tree has it now.
func (v *pendingView) applied(z zxid.Zxid) {
	i := 0
	for ; i < len(v.touched) && v.touched[i].zxid <= z; i++ {
		// A node that two of these transactions have changed comes twice; the second time it is recycled already.
		if p := v.touched[i].node; !p.recycled && p.last <= z {
			delete(v.nodes, p.key)
			v.recycle(p)
		}
	}
	if i == 0 {
		return
	}
	if i == len(v.touched) {
		clear(v.touched)
		v.touched = v.touched[:0]
		return
	}
	v.touched = v.touched[i:]
}

// appliedEphemeral drops the note of addEphemeral when the create is applied.
func (v *pendingView) appliedEphemeral(s zxid.SessionID, z zxid.Zxid) {
	list := v.ephemerals[s]
	i := 0
	for i < len(list) && list[i].zxid <= z {
		i++
	}
	switch {
	case i == 0:
	case i == len(list):
		delete(v.ephemerals, s)
	default:
		v.ephemerals[s] = list[i:]
	}
}

// begin makes everything until commit or rollback one unit.
func (v *pendingView) begin() {
	v.undo.active, v.undo.digest, v.undo.touched = true, v.digest, len(v.touched)
}

func (v *pendingView) commit() {
	clear(v.undo.nodes)
	v.undo = undoLog{nodes: v.undo.nodes[:0]}
}

// rollback takes back everything since begin, sequence numbers included.
func (v *pendingView) rollback() {
	for i := len(v.undo.nodes) - 1; i >= 0; i-- {
		u := &v.undo.nodes[i]
		if u.had {
			*u.node = u.old
			continue
		}
		delete(v.nodes, u.node.key)
		v.recycle(u.node)
	}
	v.digest = v.undo.digest
	v.touched = v.touched[:v.undo.touched]
	v.commit()
}

func (v *pendingView) alloc() *pendingNode {
	if n := len(v.free); n > 0 {
		p := v.free[n-1]
		v.free = v.free[:n-1]
		p.recycled = false
		return p
	}
	return new(pendingNode)
}

// recycledNodesMax bounds the memory kept for the next proposals.
const recycledNodesMax = 4096

func (v *pendingView) recycle(p *pendingNode) {
	*p = pendingNode{recycled: true}
	if len(v.free) < recycledNodesMax {
		v.free = append(v.free, p)
	}
}

// newNode returns the state of a node that a proposal creates.
func newNode(path, data []byte, acl *znode.ACLList, owner int64, z zxid.Zxid, wallMs int64) pendingNode {
	return pendingNode{
		exists: true,
		stat: znode.StoredStat{Czxid: z, Mzxid: z, Pzxid: z, Ctime: wallMs, Mtime: wallMs,
			Owner: owner},
		acl:         acl,
		pathDataCRC: znode.PathDataCRC(path, data),
		dataBytes:   int32(len(data)),
	}
}

// openACL is shared by all nodes that anybody may do anything with.
var openACL = znode.NewACLList(wire.OpenACL)

// aclList makes a list of entries, without memory for the usual one.
func aclList(entries []wire.ACL) *znode.ACLList {
	if len(entries) == 1 && entries[0] == wire.OpenACL[0] {
		return openACL
	}
	return znode.NewACLList(entries)
}
