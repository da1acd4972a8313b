package znode

import (
	"fmt"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

func zx(v int64) zxid.Zxid { return zxid.Zxid(v) }

// aclIDMax bounds the ids that are accepted from a snapshot, so that there are higher ones for new lists.
const aclIDMax = 1 << 62

// aclOpenID is the id under which nodes in a snapshot are open to everybody, without an entry in its list of ACLs.
const aclOpenID int64 = -1

// aclOpen is the position of the open list in the table. It is always there and not counted.
const aclOpen uint32 = 0

// deniedACL stands for a list that a snapshot forgot: it grants nothing to anybody (an empty one would grant all).
var deniedACL = NewACLList([]wire.ACL{{Perms: 0, Scheme: schemeWorld, ID: idAnyone}})

// aclEntry is a list that nodes have in common.
type aclEntry struct {
	list *ACLList
	// key is the list as text. It is empty for dangling entries: ids that nodes of a snapshot have but its list of ACLs
	// lacks. ZooKeeper writes the ACLs before the nodes while both go on changing; the log that follows repairs them.
	key  string
	id   int64 // as in snapshots; ids are local to a server
	refs int   // nodes
}

// aclTable interns lists, so that a node holds a small number.
type aclTable struct {
	entries  []aclEntry
	unused   []uint32 // free positions in entries
	byKey    map[string]uint32
	lastID   int64 // the highest ever used
	dangling int
	scratch  []byte
}

func (a *aclTable) init() {
	a.entries = []aclEntry{{list: NewACLList(wire.OpenACL), id: aclOpenID}}
	a.byKey = make(map[string]uint32)
}

// list returns what a node with this position has.
func (a *aclTable) list(pos uint32) *ACLList { return a.entries[pos].list }

// retain returns the position of a list and counts one more node for it. nil is open. Entries are kept, not copied.
// The open list, which most nodes have, needs no lookup and no count. (In a snapshot of Apache it may have an id of its
// own beside -1; nodes that come with it keep it.)
func (a *aclTable) retain(acl []wire.ACL) uint32 {
	if acl == nil || isOpen(acl) {
		return aclOpen
	}
	key := a.keyOf(acl)
	if pos, ok := a.byKey[string(key)]; ok {
		a.entries[pos].refs++
		return pos
	}
	a.lastID++
	pos := a.insert(aclEntry{list: NewACLList(acl), key: string(key), id: a.lastID, refs: 1})
	a.byKey[a.entries[pos].key] = pos
	return pos
}

// release counts one node less.
func (a *aclTable) release(pos uint32) {
	if pos == aclOpen {
		return
	}
	e := &a.entries[pos]
	if e.refs--; e.refs > 0 {
		return
	}
	if e.refs < 0 {
		panic(fmt.Sprintf("znode: ACL %d released too often", e.id))
	}
	a.drop(pos)
}

// drop forgets an entry that no node has. Its position is used again, its id never.
func (a *aclTable) drop(pos uint32) {
	e := &a.entries[pos]
	// Two ids of a snapshot can have the same list; the key leads to one of them.
	if e.key == "" {
		a.dangling--
	} else if a.byKey[e.key] == pos {
		delete(a.byKey, e.key)
	}
	*e = aclEntry{}
	a.unused = append(a.unused, pos)
}

func (a *aclTable) insert(e aclEntry) uint32 {
	if e.key == "" {
		a.dangling++
	}
	if n := len(a.unused); n > 0 {
		pos := a.unused[n-1]
		a.unused = a.unused[:n-1]
		a.entries[pos] = e
		return pos
	}
	a.entries = append(a.entries, e)
	return uint32(len(a.entries) - 1)
}

// keyOf returns the encoding of a list, valid until the next call. Lists are the same if their encodings are, the order
// of entries included, as in ZooKeeper.
func (a *aclTable) keyOf(acl []wire.ACL) []byte {
	var e jute.Encoder
	e.Reset(a.scratch[:0])
	wire.AppendACLs(&e, acl)
	a.scratch = e.Bytes()
	return a.scratch
}

func isOpen(acl []wire.ACL) bool {
	return len(acl) == 1 && acl[0] == wire.ACL{Perms: wire.PermAll, Scheme: schemeWorld, ID: idAnyone}
}

// load enters a list of a snapshot under its id, without a node yet. It fails if the id cannot be one or has one already.
func (a *aclTable) load(id int64, acl []wire.ACL, byID map[int64]uint32) error {
	if _, ok := byID[id]; ok || id == aclOpenID || id > aclIDMax {
		return fmt.Errorf("ACL id %d is out of range or occurs twice", id)
	}
	a.lastID = max(a.lastID, id)
	pos := a.insert(aclEntry{list: NewACLList(acl), key: string(a.keyOf(acl)), id: id})
	byID[id] = pos
	if _, ok := a.byKey[a.entries[pos].key]; !ok {
		a.byKey[a.entries[pos].key] = pos
	}
	return nil
}

// loadNode returns the position for a node of a snapshot and counts it.
func (a *aclTable) loadNode(id int64, byID map[int64]uint32) uint32 {
	if id == aclOpenID {
		return aclOpen
	}
	pos, ok := byID[id]
	if !ok {
		a.lastID = max(a.lastID, id)
		pos = a.insert(aclEntry{list: deniedACL, id: id})
		byID[id] = pos
	}
	a.entries[pos].refs++
	return pos
}

// purge drops the lists that no node has.
func (a *aclTable) purge() {
	for pos := 1; pos < len(a.entries); pos++ {
		if e := &a.entries[pos]; e.list != nil && e.refs == 0 {
			a.drop(uint32(pos))
		}
	}
}
