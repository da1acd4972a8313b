package wire

import "zabra/jute"

// Values of the flags of a create request: the kind of the node, and whether a sequence number is appended to its name.
const (
	FlagPersistent          = 0
	FlagEphemeral           = 1
	FlagSequential          = 2 // persistent, sequential
	FlagEphemeralSequential = 3
	FlagContainer           = 4
	FlagTTL                 = 5
	FlagTTLSequential       = 6
)

// CreateRequest is the record of create, create2 and createContainer.
type CreateRequest struct {
	Path, Data []byte
	ACL        []ACL
	Flags      int32
}

// Encode writes the record.
func (r *CreateRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	e.Buffer(r.Data)
	AppendACLs(e, r.ACL)
	e.Int32(r.Flags)
}

// Decode reads the record.
func (r *CreateRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Data = d.Buffer()
	r.ACL = DecodeACLs(d)
	r.Flags = d.Int32()
}

// CreateTTLRequest is the record of createTTL.
type CreateTTLRequest struct {
	Path, Data []byte
	ACL        []ACL
	Flags      int32
	// TTL is the time to live in milliseconds.
	TTL int64
}

// Encode writes the record.
func (r *CreateTTLRequest) Encode(e *jute.Encoder) {
	r.encodeCreate(e)
	e.Int64(r.TTL)
}

// Decode reads the record.
func (r *CreateTTLRequest) Decode(d *jute.Decoder) {
	r.decodeCreate(d)
	r.TTL = d.Int64()
}

// encodeCreate writes r as a CreateRequest.
func (r *CreateTTLRequest) encodeCreate(e *jute.Encoder) {
	c := CreateRequest{Path: r.Path, Data: r.Data, ACL: r.ACL, Flags: r.Flags}
	c.Encode(e)
}

// decodeCreate reads a CreateRequest into r. Its TTL is then -1, none.
func (r *CreateTTLRequest) decodeCreate(d *jute.Decoder) {
	var c CreateRequest
	c.Decode(d)
	*r = CreateTTLRequest{Path: c.Path, Data: c.Data, ACL: c.ACL, Flags: c.Flags, TTL: ttlNone}
}

const ttlNone = -1

// PathVersionRequest is the record of delete and check. Version -1 matches every version.
type PathVersionRequest struct {
	Path    []byte
	Version int32
}

// Encode writes the record.
func (r *PathVersionRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	e.Int32(r.Version)
}

// Decode reads the record.
func (r *PathVersionRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Version = d.Int32()
}

// PathRequest is the record of getACL, sync, getEphemerals (a prefix), getAllChildrenNumber and deleteContainer.
type PathRequest struct {
	Path []byte
}

// Encode writes the record.
func (r *PathRequest) Encode(e *jute.Encoder) { e.UString(r.Path) }

// Decode reads the record.
func (r *PathRequest) Decode(d *jute.Decoder) { r.Path = d.UString() }

// PathWatchRequest is the record of exists, getData, getChildren and getChildren2.
type PathWatchRequest struct {
	Path []byte
	// Watch asks for a one-shot watch.
	Watch bool
}

// Encode writes the record.
func (r *PathWatchRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	e.Bool(r.Watch)
}

// Decode reads the record.
func (r *PathWatchRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Watch = d.Bool()
}

// SetDataRequest is the record of setData. Version -1 matches every version.
type SetDataRequest struct {
	Path, Data []byte
	Version    int32
}

// Encode writes the record.
func (r *SetDataRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	e.Buffer(r.Data)
	e.Int32(r.Version)
}

// Decode reads the record.
func (r *SetDataRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.Data = d.Buffer()
	r.Version = d.Int32()
}

// SetACLRequest is the record of setACL. Version is that of the ACL; -1 matches every version.
type SetACLRequest struct {
	Path    []byte
	ACL     []ACL
	Version int32
}

// Encode writes the record.
func (r *SetACLRequest) Encode(e *jute.Encoder) {
	e.UString(r.Path)
	AppendACLs(e, r.ACL)
	e.Int32(r.Version)
}

// Decode reads the record.
func (r *SetACLRequest) Decode(d *jute.Decoder) {
	r.Path = d.UString()
	r.ACL = DecodeACLs(d)
	r.Version = d.Int32()
}

// ReconfigRequest is the record of reconfig. NewMembers, if not null, replaces the whole configuration; otherwise
// Leaving and Joining change it.
type ReconfigRequest struct {
	Joining, Leaving, NewMembers []byte
	// ConfigID is the version that the configuration must have, -1 for any.
	ConfigID int64
}

// Encode writes the record.
func (r *ReconfigRequest) Encode(e *jute.Encoder) {
	e.UString(r.Joining)
	e.UString(r.Leaving)
	e.UString(r.NewMembers)
	e.Int64(r.ConfigID)
}

// Decode reads the record.
func (r *ReconfigRequest) Decode(d *jute.Decoder) {
	r.Joining = d.UString()
	r.Leaving = d.UString()
	r.NewMembers = d.UString()
	r.ConfigID = d.Int64()
}

// AuthRequest is the record of auth. Type is ignored by servers.
type AuthRequest struct {
	Type         int32
	Scheme, Auth []byte
}

// Encode writes the record.
func (r *AuthRequest) Encode(e *jute.Encoder) {
	e.Int32(r.Type)
	e.UString(r.Scheme)
	e.Buffer(r.Auth)
}

// Decode reads the record.
func (r *AuthRequest) Decode(d *jute.Decoder) {
	r.Type = d.Int32()
	r.Scheme = d.UString()
	r.Auth = d.Buffer()
}

// SASLRequest is the record of sasl, and of the reply to it.
type SASLRequest struct {
	Token []byte
}

// Encode writes the record.
func (r *SASLRequest) Encode(e *jute.Encoder) { e.Buffer(r.Token) }

// Decode reads the record.
func (r *SASLRequest) Decode(d *jute.Decoder) { r.Token = d.Buffer() }

// CreateSessionRequest is the record of createSession, which servers make for themselves.
type CreateSessionRequest struct {
	TimeoutMs int32
}

// Encode writes the record.
func (r *CreateSessionRequest) Encode(e *jute.Encoder) { e.Int32(r.TimeoutMs) }

// Decode reads the record.
func (r *CreateSessionRequest) Decode(d *jute.Decoder) { r.TimeoutMs = d.Int32() }
