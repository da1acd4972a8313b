package znode

import "zabra/zab/zxid"

// Hint says where a transaction's node is, or its parent if it is a create or delete: whoever has checked the request has
// looked it up already. The zero value says nothing. A hint may be old: that is noticed.
type Hint struct {
	node  Node
	czxid zxid.Zxid
}

// HintOf returns a hint for a node that is there now.
func (t *Tree) HintOf(id Node) Hint { return Hint{id, zx(t.nodes.at(id).czxid)} }

// Child returns a child by its name, false if there is none.
func (t *Tree) Child(parent Node, name []byte) (Node, bool) {
	id := t.child(parent, name)
	return id, id != noNode
}

// ApplyHinted is Apply for somebody who knows where the node is.
func (t *Tree) ApplyHinted(h *TxnHeader, txn *Txn, res *Result, hint Hint) {
	t.hint = hint
	t.Apply(h, txn, res)
	t.hint = Hint{}
}

// findHinted is Find for the node that a hint is about. A node that took the place of the one in the hint was created after
// the hint was made, so by a later transaction than that one. czxid 0 is also that of a free place: of the nodes that no
// transaction has made only the root is taken at its word, which is never deleted.
func (t *Tree) findHinted(path []byte) (Node, bool) {
	if id := t.hint.node; id != noNode {
		if czxid := zx(t.nodes.at(id).czxid); czxid == t.hint.czxid && (czxid != 0 || id == rootNode) {
			return id, true
		}
	}
	return t.Find(path)
}
