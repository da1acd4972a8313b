package znode

import (
	"cmp"
	"slices"

	"zabra/wire"
	"zabra/zab/zxid"
)

// NodeCreated fires the watches that the creation of path concerns. acl is the new node's list, parentACL its
// parent's.
func (w *Watches) NodeCreated(path []byte, z zxid.Zxid, acl, parentACL *ACLList) {
	w.fire(TableData, wire.EventNodeCreated, path, z, acl)
	w.childrenChanged(path, z, parentACL)
}

// NodeDataChanged fires the watches that new data at path concern.
func (w *Watches) NodeDataChanged(path []byte, z zxid.Zxid, acl *ACLList) {
	w.fire(TableData, wire.EventNodeDataChanged, path, z, acl)
}

// NodeDeleted fires the watches that the deletion of path concerns. acl is the list that the node had. Whoever is told
// by the data table is not told again by the child table, but a one-shot child watch is used up all the same.
func (w *Watches) NodeDeleted(path []byte, z zxid.Zxid, acl, parentACL *ACLList) {
	w.reached = w.collect(w.reached[:0], TableData, path)
	w.others = w.collect(w.others[:0], TableChild, path)
	w.others = slices.DeleteFunc(w.others, func(r recipient) bool {
		_, told := slices.BinarySearchFunc(w.reached, r.id, compareRecipient)
		return told
	})
	if len(w.reached)+len(w.others) > 0 {
		w.fired(wire.EventNodeDeleted, len(w.reached)+len(w.others))
		e := NewEvent(wire.EventNodeDeleted, path, z, acl)
		w.reached = notify(w.reached, e)
		w.others = notify(w.others, e)
	}
	w.childrenChanged(path, z, parentACL)
}

func (w *Watches) childrenChanged(path []byte, z zxid.Zxid, parentACL *ACLList) {
	parent, _ := SplitPath(path)
	w.fire(TableChild, wire.EventNodeChildrenChanged, parent, z, parentACL)
}

func (w *Watches) fire(table WatchTable, typ wire.EventType, path []byte, z zxid.Zxid, acl *ACLList) {
	w.reached = w.collect(w.reached[:0], table, path)
	if len(w.reached) > 0 {
		w.fired(typ, len(w.reached))
		w.reached = notify(w.reached, NewEvent(typ, path, z, acl))
	}
}

// fired tells that an event goes to so many watchers.
func (w *Watches) fired(typ wire.EventType, watchers int) {
	if w.onFire != nil {
		w.onFire(typ, watchers)
	}
}

// notify hands e to all of to and returns the slice emptied, so that it keeps no watcher alive.
func notify(to []recipient, e *Event) []recipient {
	for _, r := range to {
		r.state.w.Notify(e)
	}
	clear(to)
	return to[:0]
}

// collect appends to got, in the order of ids and each once, the watchers that a change at path concerns: those with any
// watch at the path, and for the data table those with a recursive watch at an ancestor. One-shot watches at the path are
// gone then.
func (w *Watches) collect(got []recipient, table WatchTable, path []byte) []recipient {
	got = w.take(got, table, path)
	if table != TableData || w.recursive.Load() == 0 {
		return got
	}
	if len(path) <= 1 {
		return got
	}
	exact := len(got)
	h := hashMore(hashSeed, path[:1])
	got = w.appendRecursive(got, h, path[:1])
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			got = w.appendRecursive(got, h, path[:i])
		}
		h = (h ^ uint32(path[i])) * hashPrime
	}
	if len(got) > exact {
		slices.SortFunc(got, func(a, b recipient) int { return cmp.Compare(a.id, b.id) })
		got = slices.CompactFunc(got, func(a, b recipient) bool { return a.id == b.id })
	}
	return got
}

func compareRecipient(r recipient, id WatcherID) int { return cmp.Compare(r.id, id) }

// take appends all watchers at path and uses up their one-shot watches.
func (w *Watches) take(got []recipient, table WatchTable, path []byte) []recipient {
	sh := w.shard(hashBytes(path))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wp := sh.paths[table][string(path)]
	if wp == nil {
		return got
	}
	spent := uint32(0)
	for i := range wp.refs {
		ref := &wp.refs[i]
		if ref.modes == 0 {
			continue
		}
		if s := w.registry.get(ref.id); s != nil {
			got = append(got, recipient{id: ref.id, state: s})
		}
		if ref.modes &^= WatchStandard; ref.modes == 0 {
			w.forget(ref.id, table, wp)
			spent++
		}
	}
	if spent > 0 {
		wp.dead += spent
		w.counts[table].watches.Add(-int64(spent))
		w.shrink(sh, table, wp)
	}
	return got
}

// appendRecursive appends the watchers that have a recursive watch at path, whose hash is h.
func (w *Watches) appendRecursive(got []recipient, h uint32, path []byte) []recipient {
	sh := w.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	wp := sh.paths[TableData][string(path)]
	if wp == nil {
		return got
	}
	for _, ref := range wp.refs {
		if ref.modes&WatchRecursive == 0 {
			continue
		}
		if s := w.registry.get(ref.id); s != nil {
			got = append(got, recipient{id: ref.id, state: s})
		}
	}
	return got
}
