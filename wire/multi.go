package wire

import (
	"errors"
	"fmt"

	"zabra/jute"
)

// MultiOp is one operation of a multi or multiRead. It is a union: Op says which fields are used.
type MultiOp struct {
	// Op is OpCreate, OpCreate2, OpCreateContainer or OpCreateTTL (Create), OpDelete or OpCheck (Path, Version), OpSetData
	// (Path, Data, Version), OpGetData or OpGetChildren (Path).
	Op Op
	// Create is the record of all four kinds of create. Its TTL is -1 unless Op is OpCreateTTL.
	Create     CreateTTLRequest
	Path, Data []byte
	Version    int32
}

// Target returns the path that the operation is about, whatever its kind.
func (m *MultiOp) Target() []byte {
	if m.isCreate() {
		return m.Create.Path
	}
	return m.Path
}

// ErrMultiNullACL is when a create without TTL has a null ACL. Such a request gets no zxid from ZooKeeper, unlike all others
// that DecodeMulti refuses.
var ErrMultiNullACL = errors.New("wire: null ACL in a create of a multi")

// Further reasons for which DecodeMulti refuses a list.
var (
	errMultiNull  = errors.New("wire: null where a multi does not allow it")
	errMultiOp    = errors.New("wire: operation not allowed in a multi")
	errMultiFlags = errors.New("wire: create flags not allowed in a multi")
)

// DecodeMulti reads the body of a multi or multiRead into the memory of ops and returns the list, which aliases the
// decoder's input. What is refused here, ZooKeeper refuses as a whole with CodeMarshalling: an operation of another kind
// than MultiOp names, a null path, a null ACL or flags other than 0 to 4 in a create without TTL, and a list without its
// end. What it refuses operation by operation (an unknown kind of node in createTTL, say) is left to the caller, and so
// is a mixture of reads and writes. After an error the list is empty.
func DecodeMulti(d *jute.Decoder, ops []MultiOp) ([]MultiOp, error) {
	ops, err := DecodeMultiRead(d, ops)
	if err != nil {
		return ops, err
	}
	for i := range ops {
		if ops[i].Target() == nil {
			d.Fail(errMultiNull)
			return ops[:0], fmt.Errorf("multi, operation %d (%v): %w", i, ops[i].Op, errMultiNull)
		}
	}
	return ops, nil
}

// DecodeMultiRead is DecodeMulti for a multiRead: it lets null paths through, over which ZooKeeper stumbles only when it
// comes to the operation.
func DecodeMultiRead(d *jute.Decoder, ops []MultiOp) ([]MultiOp, error) {
	ops = ops[:0]
	for {
		var h MultiHeader
		h.Decode(d)
		if d.Err() != nil {
			return ops[:0], fmt.Errorf("multi, operation %d: %w", len(ops), d.Err())
		}
		if h.Done { // its type and error do not count
			return ops, nil
		}
		ops = append(ops, MultiOp{Op: h.Type})
		ops[len(ops)-1].decode(d)
		if d.Err() != nil {
			return ops[:0], fmt.Errorf("multi, operation %d (%v): %w", len(ops)-1, h.Type, d.Err())
		}
	}
}

// AppendMulti writes the body of a multi or multiRead. An operation that a multi cannot hold is a bug of the caller, and
// panics.
func AppendMulti(e *jute.Encoder, ops []MultiOp) {
	for i := range ops {
		h := MultiHeader{Type: ops[i].Op, Err: multiErrNone}
		h.Encode(e)
		ops[i].encode(e)
	}
	appendMultiEnd(e)
}

// multiErrNone is the error in the headers of a request, and in the one that ends a list.
const multiErrNone = -1

func appendMultiEnd(e *jute.Encoder) {
	end := MultiHeader{Type: OpError, Done: true, Err: multiErrNone}
	end.Encode(e)
}

func (m *MultiOp) isCreate() bool {
	switch m.Op {
	case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
		return true
	}
	return false
}

// decode reads the record of m.Op and applies the rules for decoding it within a multi.
func (m *MultiOp) decode(d *jute.Decoder) {
	switch m.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		m.Create.decodeCreate(d)
		m.checkCreate(d)
	case OpCreateTTL:
		m.Create.Decode(d)
	case OpDelete, OpCheck:
		m.Path = d.UString()
		m.Version = d.Int32()
	case OpSetData:
		m.Path = d.UString()
		m.Data = d.Buffer()
		m.Version = d.Int32()
	case OpGetData, OpGetChildren:
		m.Path = d.UString()
		d.Bool() // a multiRead sets no watches, whatever is asked
	default:
		d.Fail(errMultiOp)
	}
}

// checkCreate fails d if a create without TTL is not allowed as it is.
func (m *MultiOp) checkCreate(d *jute.Decoder) {
	switch flags := m.Create.Flags; {
	case d.Err() != nil:
	case flags < FlagPersistent || flags > FlagTTLSequential:
		d.Fail(fmt.Errorf("%w: %d", errMultiFlags, flags))
	case m.Create.ACL == nil:
		d.Fail(ErrMultiNullACL)
	case flags > FlagContainer:
		d.Fail(fmt.Errorf("%w: %d", errMultiFlags, flags))
	}
}

func (m *MultiOp) encode(e *jute.Encoder) {
	switch m.Op {
	case OpCreate, OpCreate2, OpCreateContainer:
		m.Create.encodeCreate(e)
	case OpCreateTTL:
		m.Create.Encode(e)
	case OpDelete, OpCheck:
		e.UString(m.Path)
		e.Int32(m.Version)
	case OpSetData:
		e.UString(m.Path)
		e.Buffer(m.Data)
		e.Int32(m.Version)
	case OpGetData, OpGetChildren:
		e.UString(m.Path)
		e.Bool(false)
	default:
		panic(fmt.Sprintf("wire: %v cannot be in a multi", m.Op))
	}
}
