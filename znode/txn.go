package znode

import (
	"encoding/binary"
	"errors"
	"fmt"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

// TxnHeader begins every logged transaction (32 bytes).
type TxnHeader struct {
	// ClientID is the session that asked for the transaction, 0 for those that the server makes of itself.
	ClientID zxid.SessionID
	// Cxid is the client's number of its request. Clients may repeat them.
	Cxid int32
	Zxid zxid.Zxid
	// Time is the leader's wall clock, in milliseconds since 1970. It becomes ctime and mtime.
	Time int64
	Type wire.Op
}

// Txn is the body of a transaction of any type. It holds results, not requests: paths have their sequence numbers,
// versions are the new ones, so that a transaction can be applied again to a tree that has seen it. Type tells which
// fields count:
//
//	create, create2       Path Data ACL Ephemeral ParentCVersion
//	createTTL             Path Data ACL ParentCVersion TTL
//	createContainer       Path Data ACL ParentCVersion
//	delete                Path (deleteContainer too)
//	setData               Path Data Version (reconfig too)
//	setACL                Path ACL Version
//	check                 Path Version, within a multi only
//	error                 Err
//	createSession         Timeout
//	closeSession          Paths if HasPaths
//	multi                 Multi
type Txn struct {
	Type       wire.Op
	Path, Data []byte
	// ACL is nil for the null vector, which stands for wire.OpenACL.
	ACL       []wire.ACL
	Ephemeral bool
	// ParentCVersion is the parent's stored cversion after the create; -1 in logs of ZooKeeper before 3.4.
	ParentCVersion int32
	// TTL is in milliseconds.
	TTL int64
	// Version is the data version after a setData, the ACL version after a setACL, and one more than the version that a
	// check asked for.
	Version int32
	Err     wire.Code
	// Timeout of a session is in milliseconds.
	Timeout int32
	// Paths are the ephemerals that end with the session. Without HasPaths, in logs of ZooKeeper before 3.6, those in the
	// tree end.
	Paths    [][]byte
	HasPaths bool
	Multi    []Txn
}

// Digest of the whole tree after a transaction. Servers write version 2.
type Digest struct {
	Version int32
	Value   uint64
}

// DigestVersion is the version of the digest that this package computes.
const DigestVersion = 2

// digestBytes is the encoded size of a Digest.
const digestBytes = 12

// ErrTxn says that a transaction's bytes are not one, beyond being too short.
var ErrTxn = errors.New("znode: malformed transaction")

// AppendTxn appends a transaction as it stands in the log and goes to learners. t.Type must be h.Type. d is nil for a
// transaction without a digest.
func AppendTxn(b []byte, h *TxnHeader, t *Txn, d *Digest) []byte {
	var e jute.Encoder
	e.Reset(b)
	e.Int64(int64(h.ClientID))
	e.Int32(h.Cxid)
	e.Int64(int64(h.Zxid))
	e.Int64(h.Time)
	e.Int32(int32(h.Type))
	appendTxnBody(&e, t)
	if d != nil {
		e.Int32(d.Version)
		e.Int64(int64(d.Value))
	}
	return e.Bytes()
}

func appendTxnBody(e *jute.Encoder, t *Txn) {
	switch t.Type {
	case wire.OpCreate, wire.OpCreate2:
		appendTxnCreate(e, t)
		e.Bool(t.Ephemeral)
		e.Int32(t.ParentCVersion)
	case wire.OpCreateTTL:
		appendTxnCreate(e, t)
		e.Int32(t.ParentCVersion)
		e.Int64(t.TTL)
	case wire.OpCreateContainer:
		appendTxnCreate(e, t)
		e.Int32(t.ParentCVersion)
	case wire.OpDelete, wire.OpDeleteContainer:
		e.UString(t.Path)
	case wire.OpSetData, wire.OpReconfig:
		e.UString(t.Path)
		e.Buffer(t.Data)
		e.Int32(t.Version)
	case wire.OpSetACL:
		e.UString(t.Path)
		wire.AppendACLs(e, t.ACL)
		e.Int32(t.Version)
	case wire.OpCheck:
		e.UString(t.Path)
		e.Int32(t.Version)
	case wire.OpError:
		e.Int32(int32(t.Err))
	case wire.OpCreateSession:
		e.Int32(t.Timeout)
	case wire.OpCloseSession:
		appendTxnCloseSession(e, t)
	case wire.OpMulti:
		appendTxnMulti(e, t)
	default:
		panic(fmt.Sprintf("znode: no transaction of type %d", t.Type))
	}
}

func appendTxnCreate(e *jute.Encoder, t *Txn) {
	e.UString(t.Path)
	e.Buffer(t.Data)
	wire.AppendACLs(e, t.ACL)
}

func appendTxnCloseSession(e *jute.Encoder, t *Txn) {
	if !t.HasPaths {
		return
	}
	e.Count(len(t.Paths))
	for _, p := range t.Paths {
		e.UString(p)
	}
}

func appendTxnMulti(e *jute.Encoder, t *Txn) {
	e.Count(len(t.Multi))
	for i := range t.Multi {
		e.Int32(int32(t.Multi[i].Type))
		length := e.Len()
		e.Int32(0)
		appendTxnBody(e, &t.Multi[i])
		e.PatchInt32(length, int32(e.Len()-length-4))
	}
}

// DecodeTxn reads a transaction. Paths and data alias payload; t's slices are used again. fieldBytesMax bounds one
// string or buffer (0: the default of jute). The result tells whether there was a digest. Bytes behind the digest are
// ignored, since later versions may add fields there. A transaction that cannot be applied to any tree, such as one
// with a null path, is ErrTxn.
func DecodeTxn(payload []byte, fieldBytesMax int, h *TxnHeader, t *Txn) (Digest, bool, error) {
	d := jute.NewDecoder(payload, fieldBytesMax)
	h.ClientID = zxid.SessionID(d.Int64())
	h.Cxid = d.Int32()
	h.Zxid = zxid.Zxid(d.Int64())
	h.Time = d.Int64()
	h.Type = wire.Op(d.Int32())
	decodeTxnBody(&d, h.Type, fieldBytesMax, t, false)
	var dig Digest
	has := d.Remaining() > 0
	if has {
		dig.Version = d.Int32()
		dig.Value = uint64(d.Int64())
	}
	if err := d.Err(); err != nil {
		return Digest{}, false, fmt.Errorf("transaction %v of type %d: %w", h.Zxid, h.Type, err)
	}
	return dig, has, nil
}

// txnTimeOffset is where a transaction has its time: behind the session, the client's number and the zxid.
const txnTimeOffset = 8 + 4 + 8

// TxnTime returns the time of an encoded transaction, see TxnHeader.Time; 0 if there is none.
func TxnTime(payload []byte) int64 {
	if len(payload) < txnTimeOffset+8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(payload[txnTimeOffset:]))
}

// decodeTxnBody reads the body of a transaction, or of an operation within a multi if nested.
func decodeTxnBody(d *jute.Decoder, typ wire.Op, fieldBytesMax int, t *Txn, nested bool) {
	*t = Txn{Type: typ, Paths: t.Paths[:0], Multi: t.Multi[:0]}
	switch typ {
	case wire.OpCreate, wire.OpCreate2:
		decodeTxnCreate(d, t)
		t.Ephemeral = d.Bool()
		t.ParentCVersion = -1
		// Logs of ZooKeeper before 3.4 (no multi, no digest then) end here.
		if old := typ == wire.OpCreate && !nested && d.Remaining() == 0; !old {
			t.ParentCVersion = d.Int32()
		}
	case wire.OpCreateTTL:
		decodeTxnCreate(d, t)
		t.ParentCVersion = d.Int32()
		t.TTL = d.Int64()
	case wire.OpCreateContainer:
		decodeTxnCreate(d, t)
		t.ParentCVersion = d.Int32()
	case wire.OpDelete:
		t.Path = decodeTxnPath(d)
	case wire.OpDeleteContainer:
		t.Path = decodeTxnPath(d)
	case wire.OpSetData:
		decodeTxnSetData(d, t)
	case wire.OpError:
		t.Err = wire.Code(d.Int32())
	case wire.OpCheck:
		if !nested {
			d.Fail(fmt.Errorf("%w: check outside a multi", ErrTxn))
		}
		t.Path = decodeTxnPath(d)
		t.Version = d.Int32()
	default:
		if nested {
			d.Fail(fmt.Errorf("%w: type %d within a multi", ErrTxn, typ))
		}
		decodeTxnTop(d, fieldBytesMax, t)
	}
}

// decodeTxnTop reads the types that do not occur within a multi.
func decodeTxnTop(d *jute.Decoder, fieldBytesMax int, t *Txn) {
	switch t.Type {
	case wire.OpReconfig:
		decodeTxnSetData(d, t)
	case wire.OpSetACL:
		t.Path = decodeTxnPath(d)
		t.ACL = decodeStoredACLs(d)
		t.Version = d.Int32()
	case wire.OpCreateSession:
		t.Timeout = d.Int32()
	case wire.OpCloseSession:
		decodeTxnCloseSession(d, t)
	case wire.OpMulti:
		decodeTxnMulti(d, fieldBytesMax, t)
	default:
		d.Fail(fmt.Errorf("%w: unknown type %d", ErrTxn, t.Type))
	}
}

func decodeTxnPath(d *jute.Decoder) []byte {
	p := d.UString()
	if p == nil {
		d.Fail(fmt.Errorf("%w: null path", ErrTxn))
	}
	return p
}

func decodeTxnCreate(d *jute.Decoder, t *Txn) {
	t.Path = decodeTxnPath(d)
	t.Data = d.Buffer()
	t.ACL = decodeStoredACLs(d)
}

func decodeTxnSetData(d *jute.Decoder, t *Txn) {
	t.Path = decodeTxnPath(d)
	t.Data = d.Buffer()
	t.Version = d.Int32()
}

// decodeTxnCloseSession reads the paths, if there are any: 12 bytes that begin with a 2 are a digest, since a body of
// that length holds one string.
func decodeTxnCloseSession(d *jute.Decoder, t *Txn) {
	if d.Remaining() == 0 {
		return
	}
	if peek := *d; d.Remaining() == digestBytes && peek.Int32() == DigestVersion {
		return
	}
	t.HasPaths = true
	n, _ := d.Vector(stringBytesMin)
	for range n {
		t.Paths = append(t.Paths, decodeTxnPath(d))
	}
}

func decodeTxnMulti(d *jute.Decoder, fieldBytesMax int, t *Txn) {
	n, _ := d.Vector(multiOpBytesMin)
	if cap(t.Multi) < n {
		t.Multi = make([]Txn, n)
	}
	t.Multi = t.Multi[:n]
	for i := range t.Multi {
		typ := wire.Op(d.Int32())
		body := d.Buffer()
		if d.Err() != nil {
			return
		}
		nested := jute.NewDecoder(body, fieldBytesMax)
		decodeTxnBody(&nested, typ, fieldBytesMax, &t.Multi[i], true)
		if err := nested.Err(); err != nil {
			d.Fail(fmt.Errorf("operation %d of a multi, type %d: %w", i, typ, err))
			return
		}
	}
}
