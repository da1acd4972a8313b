package replica

import (
	"zabra/wire"
	"zabra/znode"
)

// prepMulti checks the operations of a multi one after the other, each seeing the ones before it. The first that is
// refused cancels all: its place and those behind it become errors, and the pending view is as it was.
//
// As in ZooKeeper, a list that cannot be read is refused with a transaction of its own, unless it is a null ACL that makes
// it so: that one is not readable at all, like a single write that is not.
func (r *Replica) prepMulti(o *op, b *writeBody) (txn znode.Txn, code wire.Code) {
	ops := b.multi
	if b.multiErr != nil || countReads(ops) > 0 {
		return txn, wire.CodeMarshalling
	}
	o.inMulti = true
	txn = znode.Txn{Type: wire.OpMulti, Multi: make([]znode.Txn, len(ops))}
	r.pending.begin()
	for i := range ops {
		sub, code := r.prepSub(o, &ops[i])
		if code == wire.CodeOK {
			txn.Multi[i] = sub
			continue
		}
		r.pending.rollback()
		if code == wire.CodeMarshalling { // not this operation alone
			return txn, code
		}
		txn.Multi[i] = znode.Txn{Type: wire.OpError, Err: code}
		for j := i + 1; j < len(ops); j++ {
			txn.Multi[j] = znode.Txn{Type: wire.OpError, Err: wire.CodeRuntimeInconsistency}
		}
		return txn, wire.CodeOK
	}
	r.pending.commit()
	return txn, wire.CodeOK
}

func (r *Replica) prepSub(o *op, m *wire.MultiOp) (znode.Txn, wire.Code) {
	o.code = m.Op
	switch m.Op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL:
		return r.prepCreate(o, &m.Create)
	case wire.OpDelete:
		return r.prepDelete(o, m.Path, m.Version)
	case wire.OpSetData:
		return r.prepSetData(o, m.Path, m.Data, m.Version)
	case wire.OpCheck:
		return r.prepCheck(o, m.Path, m.Version)
	default:
		panic("replica: not an operation of a multi: " + m.Op.String())
	}
}

// countReads counts the operations that belong into a multiRead.
func countReads(ops []wire.MultiOp) (n int) {
	for i := range ops {
		if ops[i].Op == wire.OpGetData || ops[i].Op == wire.OpGetChildren {
			n++
		}
	}
	return n
}
