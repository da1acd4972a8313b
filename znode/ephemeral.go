package znode

import (
	"slices"

	"zabra/zab/zxid"
)

// ephemeralIndex lists the ephemeral nodes of each session in the order of their creation. The links are beside the
// nodes, since few nodes are ephemeral.
type ephemeralIndex struct {
	owners map[zxid.SessionID]ephemeralList
	links  map[Node]ephemeralLink
}

type ephemeralList struct{ first, last Node }

type ephemeralLink struct{ next, prev Node }

func (x *ephemeralIndex) init() {
	x.owners = make(map[zxid.SessionID]ephemeralList)
	x.links = make(map[Node]ephemeralLink)
}

// add puts a node at the end of its owner's list.
func (x *ephemeralIndex) add(s zxid.SessionID, id Node) {
	l, ok := x.owners[s]
	x.links[id] = ephemeralLink{prev: l.last}
	if ok {
		last := x.links[l.last]
		last.next = id
		x.links[l.last] = last
	} else {
		l.first = id
	}
	l.last = id
	x.owners[s] = l
}

// remove takes a node out of its owner's list, in constant time: a session may have a million nodes.
func (x *ephemeralIndex) remove(s zxid.SessionID, id Node) {
	link, ok := x.links[id]
	if !ok {
		panic("znode: an ephemeral node is missing in its index")
	}
	delete(x.links, id)
	l := x.owners[s]
	if link.prev == noNode {
		l.first = link.next
	} else {
		prev := x.links[link.prev]
		prev.next = link.next
		x.links[link.prev] = prev
	}
	if link.next == noNode {
		l.last = link.prev
	} else {
		next := x.links[link.next]
		next.prev = link.prev
		x.links[link.next] = next
	}
	if l.first == noNode {
		delete(x.owners, s)
		return
	}
	x.owners[s] = l
}

// VisitEphemerals calls f with the path of every node that session s owns until it returns false. The order depends on
// the tree's history only. The path is valid during the call.
func (t *Tree) VisitEphemerals(s zxid.SessionID, f func(path []byte) bool) {
	var path []byte
	for id := t.ephemerals.owners[s].first; id != noNode; id = t.ephemerals.links[id].next {
		path = t.AppendPath(path[:0], id)
		if !f(path) {
			return
		}
	}
}

// EphemeralCount returns the number of ephemeral nodes.
func (t *Tree) EphemeralCount() int { return len(t.ephemerals.links) }

// EphemeralOwners returns the number of sessions that own ephemeral nodes.
func (t *Tree) EphemeralOwners() int { return len(t.ephemerals.owners) }

// Orphans returns the owners of ephemeral nodes that are not in the session table, by id. There are none in a tree
// whose whole history was applied; after loading an inconsistent snapshot they are to be closed like sessions.
func (t *Tree) Orphans() []zxid.SessionID {
	var orphans []zxid.SessionID
	for s := range t.ephemerals.owners {
		if _, ok := t.sessions.pos[s]; !ok {
			orphans = append(orphans, s)
		}
	}
	slices.Sort(orphans)
	return orphans
}
