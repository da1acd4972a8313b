package cache

import (
	"github.com/go-zookeeper/zk"
)

// Reads of different slots overtake each other: a list may be older than the data of a child, and the data of a parent
// older than both. Zxids put them into order again. The rule is admission: a child is shown only if its czxid is covered
// by a list of its parent (czxid <= pzxid) that belongs to the parent's present incarnation. From that follows what makes
// removals certain:
//   - A list without a child that is shown is newer than that child: pzxid never falls, and the child was in an older list.
//   - A parent that is missing or was made again took every child that is shown with it.
//
// What is not admitted waits for the next list.

// refusals counts how often a child was put off although the list was read again. A server whose pzxid is right ends that
// after two lists: the second one began when the child was there.
type refusals struct {
	count  int
	pzxid  int64  // of the parent
	listed uint64 // the node's listedAt
}

// applyData takes in what a read of a node's data has found.
func (m *mirror) applyData(n *node, r result) {
	switch {
	case r.missing:
		m.missing(n)
	case n.outdated(&r.stat) && m.doubt(n):
		m.schedule(&n.data)
	case !n.admitted(&r.stat):
		if n.present && n.entry.Stat.Czxid != r.stat.Czxid {
			m.remove(n) // the old one is gone for sure
		}
		n.putOff()
		m.schedule(&n.parent.list)
	default:
		m.admit(n, r)
	}
}

// outdated tells whether a read is older than what is known. One slot's reads are in order, and a new session begins with
// a sync, so this is not to be expected.
func (n *node) outdated(stat *zk.Stat) bool {
	if !n.present {
		return n.dead > 0 && stat.Czxid <= n.dead
	}
	return stat.Czxid < n.entry.Stat.Czxid || stat.Czxid == n.entry.Stat.Czxid && stat.Mzxid < n.entry.Stat.Mzxid
}

// doubt asks for another sync and look at a node whose server seems to be behind. If it is so again and again, the
// ensemble itself has gone back: it was restored from a backup. Then the node that was known is gone.
func (m *mirror) doubt(n *node) bool {
	m.distrust()
	if n.doubted++; n.doubted <= refusalsMax {
		return true
	}
	n.doubted = 0
	m.remove(n)
	n.dead = 0
	return false
}

func (n *node) admitted(stat *zk.Stat) bool {
	return n.parent == nil || stat.Czxid <= n.parent.pzxid ||
		n.refused.count >= refusalsMax && n.refused.pzxid == n.parent.pzxid
}

func (n *node) putOff() {
	r := &n.refused
	if r.pzxid != n.parent.pzxid {
		*r = refusals{pzxid: n.parent.pzxid}
	}
	if r.listed != n.listedAt {
		r.listed = n.listedAt
		r.count++
	}
}

// missing takes in that a node is not there. If its parent's list has named it since that read began, it may have been
// made again; otherwise the watch at the list tells how it goes on.
func (m *mirror) missing(n *node) {
	m.remove(n)
	if n.parent != nil && n.listedAt > n.data.startedAt {
		m.schedule(&n.data)
	}
}

// admit shows a node.
func (m *mirror) admit(n *node, r result) {
	n.doubted, n.refused = 0, refusals{}
	if n.present && n.entry.Stat.Czxid != r.stat.Czxid {
		m.remove(n)
	}
	was, old := n.present, n.entry
	added := int64(len(r.data) - len(old.data))
	if !was {
		added += int64(len(n.path))
	}
	if m.bytes+added > m.options.BytesMax && !n.silent {
		m.tooLarge("bytes", m.options.BytesMax, n.path)
		return
	}
	n.present, n.entry = true, Entry{Path: n.path, Stat: r.stat, data: string(r.data)}
	m.saw(r.stat.Mzxid)
	switch {
	case !was:
		m.show(n, 1, added, Event{Kind: Added, Entry: n.entry})
		if m.descends(n) {
			m.schedule(&n.list)
		}
	case old.Stat.Mzxid != r.stat.Mzxid:
		m.show(n, 0, added, Event{Kind: Changed, Entry: n.entry, Old: old})
	}
}

// show accounts for a change of the contents and tells the readers.
func (m *mirror) show(n *node, nodes int, bytes int64, e Event) {
	if n.silent {
		return
	}
	m.shown += nodes
	m.bytes += bytes
	m.emit(e)
}

func (m *mirror) saw(zxid int64) { m.zxid = max(m.zxid, zxid) }

// applyList takes in which children a node has.
func (m *mirror) applyList(n *node, r result) {
	known := n.entry.Stat.Czxid
	switch {
	case r.missing:
		m.schedule(&n.data)
	case !n.present: // removed while the list was read
	case r.stat.Czxid != known: // it belongs to another incarnation: which one counts, the data will tell
		m.schedule(&n.data)
		m.schedule(&n.list)
	case n.listed && r.stat.Pzxid < n.pzxid && m.doubt(n):
		m.schedule(&n.list)
	case !n.present: // doubt has given it up
		m.schedule(&n.data)
	default:
		n.doubted = 0
		m.clock++
		n.listed, n.pzxid = true, r.stat.Pzxid
		m.saw(r.stat.Pzxid)
		m.compare(n, r.names)
	}
}

// compare makes the children of a node those that a new list names.
func (m *mirror) compare(n *node, names []string) {
	named := make(map[string]bool, len(names))
	for _, name := range names {
		named[name] = true
	}
	var absent []*node
	for name, kid := range n.kids {
		if !named[name] {
			absent = append(absent, kid)
		}
	}
	sortByName(absent)
	for _, kid := range absent {
		m.detach(kid)
	}
	for _, name := range names {
		kid := n.kids[name]
		if kid == nil {
			if kid = m.attach(n, name); kid == nil {
				continue
			}
		}
		if m.err != nil {
			return
		}
		kid.listedAt = m.clock
		if !kid.present {
			m.schedule(&kid.data)
		}
	}
}

// attach makes a child known. It returns nil if the filter refuses it, and stops the cache at its bound.
func (m *mirror) attach(n *node, name string) *node {
	path := join(n.path, name)
	if m.options.Filter != nil && !m.options.Filter(path) {
		return nil
	}
	kid := newNode(n, path, name)
	if m.known()+1 > m.options.NodesMax {
		m.tooLarge("nodes", int64(m.options.NodesMax), path)
		return kid
	}
	n.kids[name], m.byPath[path] = kid, kid
	return kid
}

// known is how many nodes are known, without a root that is not part of the contents.
func (m *mirror) known() int {
	if m.root.silent {
		return len(m.byPath) - 1
	}
	return len(m.byPath)
}

// detach takes a child out of the tree.
func (m *mirror) detach(kid *node) {
	m.remove(kid)
	m.disarm(&kid.data)
	kid.gone = true
	delete(kid.parent.kids, kid.name)
	delete(m.byPath, kid.path)
	delete(m.faults, &kid.data)
}

// remove takes what is below a node out of the tree, and then its contents, but leaves the node known.
func (m *mirror) remove(n *node) {
	for _, kid := range n.sortedKids() {
		m.detach(kid)
	}
	m.disarm(&n.list)
	delete(m.faults, &n.list)
	n.listed, n.pzxid = false, 0
	if !n.present {
		return
	}
	old := n.entry
	n.present, n.entry, n.dead = false, Entry{}, old.Stat.Czxid
	m.show(n, -1, -int64(len(n.path)+len(old.data)), Event{Kind: Removed, Entry: old})
}
