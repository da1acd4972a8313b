package replica

import (
	"errors"

	"zabra/jute"
	"zabra/wire"
)

// writeBody is the record of a write, whichever it is. Its slices are parts of the record.
type writeBody struct {
	create wire.CreateTTLRequest
	target wire.PathVersionRequest
	data   wire.SetDataRequest
	acl    wire.SetACLRequest
	multi  []wire.MultiOp
	// multiErr says that the list of a multi cannot be read. As in ZooKeeper, that is found out when its transaction is made.
	multiErr error
}

// decode reads the record of a write. It reports false for one that cannot be read: such a request uses no zxid, and
// every server answers it in the same way.
func (b *writeBody) decode(op wire.Op, d *jute.Decoder) bool {
	*b = writeBody{}
	switch op {
	case wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer:
		var plain wire.CreateRequest
		plain.Decode(d)
		b.create = wire.CreateTTLRequest{Path: plain.Path, Data: plain.Data, ACL: plain.ACL, Flags: plain.Flags, TTL: -1}
	case wire.OpCreateTTL:
		b.create.Decode(d)
	case wire.OpDelete:
		b.target.Decode(d)
	case wire.OpSetData:
		b.data.Decode(d)
	case wire.OpSetACL:
		b.acl.Decode(d)
	case wire.OpDeleteContainer:
		var req wire.PathRequest
		req.Decode(d)
		b.target.Path = req.Path
		return d.Err() == nil && req.Path != nil
	case wire.OpReconfig:
		var req wire.ReconfigRequest
		req.Decode(d)
	case wire.OpMulti:
		b.multi, b.multiErr = wire.DecodeMulti(d, nil)
		return !errors.Is(b.multiErr, wire.ErrMultiNullACL)
	default:
		panic("replica: not a write: " + op.String())
	}
	return d.Err() == nil
}
