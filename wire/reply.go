package wire

import (
	"slices"

	"zabra/jute"
)

// The bodies of replies. A Stat alone answers exists, setData and setACL. A DataReply answers reconfig too, a
// ChildrenReply getEphemerals, a SASLRequest sasl. Where nothing is listed, a successful reply has no body.

// PathReply answers create and sync.
type PathReply struct {
	Path []byte
}

// Encode writes the record.
func (r *PathReply) Encode(e *jute.Encoder) { e.UString(r.Path) }

// Decode reads the record.
func (r *PathReply) Decode(d *jute.Decoder) { r.Path = d.UString() }

// CreateReply answers create2, createContainer and createTTL.
type CreateReply struct {
	Path []byte
	Stat Stat
}

// Encode writes the record.
func (r *CreateReply) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *CreateReply) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Stat.Decode(d)
}

// DataReply answers getData, and reconfig with the new configuration.
type DataReply struct {
	Data []byte
	Stat Stat
}

// Encode writes the record.
func (r *DataReply) Encode(e *jute.Encoder) {
	e.Buffer(r.Data)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *DataReply) Decode(d *jute.Decoder) {
	r.Data = d.Buffer()
	r.Stat.Decode(d)
}

// ACLReply answers getACL.
type ACLReply struct {
	ACL  []ACL
	Stat Stat
}

// Encode writes the record.
func (r *ACLReply) Encode(e *jute.Encoder) {
	AppendACLs(e, r.ACL)
	r.Stat.Encode(e)
}

// Decode reads the record.
func (r *ACLReply) Decode(d *jute.Decoder) {
	r.ACL = slices.Clone(DecodeACLs(d)) // the caller may do with it what it likes
	r.Stat.Decode(d)
}

// ChildrenReply answers getChildren with names, getEphemerals with paths.
type ChildrenReply struct {
	Children [][]byte
}

// Encode writes the record.
func (r *ChildrenReply) Encode(e *jute.Encoder) { encodeStrings(e, r.Children) }

// Decode reads the record, into the memory of the list that is there.
func (r *ChildrenReply) Decode(d *jute.Decoder) { r.Children = decodeStrings(d, r.Children) }

// Children2Reply answers getChildren2.
type Children2Reply struct {
	Children [][]byte
	Stat     Stat
}

// Encode writes the record.
func (r *Children2Reply) Encode(e *jute.Encoder) {
	encodeStrings(e, r.Children)
	r.Stat.Encode(e)
}

// Decode reads the record, into the memory of the list that is there.
func (r *Children2Reply) Decode(d *jute.Decoder) {
	r.Children = decodeStrings(d, r.Children)
	r.Stat.Decode(d)
}

// CountReply answers getAllChildrenNumber.
type CountReply struct {
	Total int32
}

// Encode writes the record.
func (r *CountReply) Encode(e *jute.Encoder) { e.Int32(r.Total) }

// Decode reads the record.
func (r *CountReply) Decode(d *jute.Decoder) { r.Total = d.Int32() }

// ErrorReply answers addWatch, with CodeOK, and is the body of a failed result in a multi.
type ErrorReply struct {
	Err Code
}

// Encode writes the record.
func (r *ErrorReply) Encode(e *jute.Encoder) { e.Int32(int32(r.Err)) }

// Decode reads the record.
func (r *ErrorReply) Decode(d *jute.Decoder) { r.Err = Code(d.Int32()) }

// ClientInfo is one identity of a connection as whoAmI shows it.
type ClientInfo struct {
	Scheme, User string
}

// WhoAmIReply answers whoAmI. Decoding takes null strings for empty ones.
type WhoAmIReply struct {
	Clients []ClientInfo
}

// Encode writes the record.
func (r *WhoAmIReply) Encode(e *jute.Encoder) {
	encodeCount(e, len(r.Clients), r.Clients == nil)
	for _, c := range r.Clients {
		e.String(c.Scheme)
		e.String(c.User)
	}
}

// Decode reads the record.
func (r *WhoAmIReply) Decode(d *jute.Decoder) {
	r.Clients = nil
	n, null := d.Vector(clientBytesMin)
	if null || d.Err() != nil {
		return
	}
	r.Clients = make([]ClientInfo, n)
	for i := range r.Clients {
		r.Clients[i].Scheme, _ = decodeString(d)
		r.Clients[i].User, _ = decodeString(d)
	}
}
