package znode

import "math"

// dueAlways is the time from which an empty container that has had children is to be reaped: any.
const dueAlways = math.MinInt64

// expiryIndex holds the nodes that the server may have to delete by itself: containers and TTL nodes, as long as they
// have no children. So looking for those whose time has come does not touch the rest of the tree.
type expiryIndex struct {
	due        dueHeap // TTL nodes by the end of their time; containers that have had children, with dueAlways
	unused     dueHeap // containers that never had a child, by mtime
	containers int     // all, with or without children
	ttls       int
}

func (x *expiryIndex) init() {
	x.due.pos = make(map[Node]int32)
	x.unused.pos = make(map[Node]int32)
}

// dueHeap is a binary heap of nodes, the earliest first, from which any node can be removed. Looking for what is due
// does not change it: a node stays until it is deleted or written to, since the deletion that somebody proposes for it
// may come to nothing.
type dueHeap struct {
	items []dueItem
	pos   map[Node]int32
}

type dueItem struct {
	at int64
	id Node
}

// set enters a node or gives it another time.
func (h *dueHeap) set(id Node, at int64) {
	i, ok := h.pos[id]
	if !ok {
		i = int32(len(h.items))
		h.items = append(h.items, dueItem{})
	}
	h.place(int(i), dueItem{at, id})
}

// remove takes a node out if it is there.
func (h *dueHeap) remove(id Node) {
	i, ok := h.pos[id]
	if !ok {
		return
	}
	delete(h.pos, id)
	last := len(h.items) - 1
	moved := h.items[last]
	h.items = h.items[:last]
	if int(i) < last {
		h.place(int(i), moved)
	}
}

// place puts an item where it belongs, from the free place i up or down.
func (h *dueHeap) place(i int, it dueItem) {
	for i > 0 && it.at < h.items[(i-1)/2].at {
		i = h.move(i, (i-1)/2)
	}
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.items[child+1].at < h.items[child].at {
			child++
		}
		if h.items[child].at >= it.at {
			break
		}
		i = h.move(i, child)
	}
	h.items[i] = it
	h.pos[it.id] = int32(i)
}

// move fills the free place i with the item at from, which becomes the free place.
func (h *dueHeap) move(i, from int) int {
	h.items[i] = h.items[from]
	h.pos[h.items[i].id] = int32(i)
	return from
}

// visit calls f for every node that is due before a time. It looks at no more than twice as many items as it reports.
func (h *dueHeap) visit(i int, before int64, f func(id Node) bool) bool {
	if i >= len(h.items) || h.items[i].at >= before {
		return true
	}
	return f(h.items[i].id) && h.visit(2*i+1, before, f) && h.visit(2*i+2, before, f)
}

// updateExpiry enters, moves or removes a container or TTL node after a change of its children, cversion or mtime.
func (t *Tree) updateExpiry(id Node) {
	n := t.nodes.at(id)
	if n.owner >= 0 {
		return
	}
	kind := t.cfg.kind(n.owner)
	switch {
	case n.numChildren > 0 || kind == KindEphemeral:
		t.expiry.due.remove(id)
		t.expiry.unused.remove(id)
	case kind == KindTTL:
		t.expiry.due.set(id, addSaturating(n.mtime, ownerTTL(n.owner)))
	case n.cversion > 0:
		t.expiry.unused.remove(id)
		t.expiry.due.set(id, dueAlways)
	default:
		t.expiry.due.remove(id)
		t.expiry.unused.set(id, n.mtime)
	}
}

// addSaturating adds a duration, which is not negative, to a time that may be anything.
func addSaturating(at, ms int64) int64 {
	if at > math.MaxInt64-ms {
		return math.MaxInt64
	}
	return at + ms
}

// Expired calls f with the path of every node that ought to be deleted at the wall-clock time nowMs, until f returns
// false: containers without children that have had one, or that are older than maxNeverUsedMs without ever having had
// one (unless that is 0), and TTL nodes without children that were not written to for longer than their time. It looks
// at these nodes only. The path is valid during the call. The order depends on the tree's history only.
func (t *Tree) Expired(nowMs, maxNeverUsedMs int64, f func(path []byte) bool) {
	var path []byte
	visit := func(id Node) bool {
		path = t.AppendPath(path[:0], id)
		return f(path)
	}
	if t.expiry.due.visit(0, nowMs, visit) && maxNeverUsedMs > 0 {
		t.expiry.unused.visit(0, nowMs-maxNeverUsedMs, visit)
	}
}

// ContainerCount returns the number of container nodes.
func (t *Tree) ContainerCount() int { return t.expiry.containers }

// TTLCount returns the number of TTL nodes.
func (t *Tree) TTLCount() int { return t.expiry.ttls }

// addKind enters a new node into the index of its kind.
func (t *Tree) addKind(id Node) {
	owner := t.nodes.at(id).owner
	switch t.cfg.kind(owner) {
	case KindEphemeral:
		t.ephemerals.add(sid(owner), id)
	case KindContainer:
		t.expiry.containers++
		t.updateExpiry(id)
	case KindTTL:
		t.expiry.ttls++
		t.updateExpiry(id)
	}
}

// removeKind takes a node out of the index of its kind.
func (t *Tree) removeKind(id Node) {
	owner := t.nodes.at(id).owner
	switch t.cfg.kind(owner) {
	case KindEphemeral:
		t.ephemerals.remove(sid(owner), id)
	case KindContainer:
		t.expiry.containers--
		t.expiry.due.remove(id)
		t.expiry.unused.remove(id)
	case KindTTL:
		t.expiry.ttls--
		t.expiry.due.remove(id)
	}
}
