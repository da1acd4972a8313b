package wire

import "zabra/jute"

// Permission bits of an ACL entry. ZooKeeper does not check that no others are set.
const (
	PermRead   = 1
	PermWrite  = 2
	PermCreate = 4
	PermDelete = 8
	PermAdmin  = 16
	PermAll    = 31
)

// ID is an identity: whom an ACL entry speaks of, or who a connection has proved to be.
type ID struct {
	Scheme, ID string
}

// ACL is one entry of an access control list. It is comparable, and equal exactly if its encoding is: null strings,
// which some clients send for empty ones, are kept apart from "". A null string is "" here, with its flag set.
type ACL struct {
	Perms              int32
	Scheme, ID         string
	NullScheme, NullID bool
}

// The lists that clients use under these names. Nobody may change them.
var (
	// OpenACL lets everybody do everything.
	OpenACL = []ACL{{Perms: PermAll, Scheme: schemeWorld, ID: idAnyone}}
	// ReadACL lets everybody read.
	ReadACL = []ACL{{Perms: PermRead, Scheme: schemeWorld, ID: idAnyone}}
	// CreatorAllACL lets each identity of the creating connection do everything.
	CreatorAllACL = []ACL{{Perms: PermAll, Scheme: schemeAuth}}
)

const (
	schemeWorld = "world"
	schemeAuth  = "auth"
	idAnyone    = "anyone"
)

// Encode writes the entry.
func (a *ACL) Encode(e *jute.Encoder) {
	e.Int32(a.Perms)
	encodeString(e, a.Scheme, a.NullScheme)
	encodeString(e, a.ID, a.NullID)
}

// Decode reads the entry.
func (a *ACL) Decode(d *jute.Decoder) {
	a.Perms = d.Int32()
	a.Scheme, a.NullScheme = decodeString(d)
	a.ID, a.NullID = decodeString(d)
}

// AppendACLs writes a list; nil is the null vector.
func AppendACLs(e *jute.Encoder, acls []ACL) {
	encodeCount(e, len(acls), acls == nil)
	for i := range acls {
		acls[i].Encode(e)
	}
}

// openACLBytes is how OpenACL is encoded.
var openACLBytes = func() string {
	var e jute.Encoder
	AppendACLs(&e, OpenACL)
	return string(e.Bytes())
}()

// DecodeACLs reads a list. The null vector gives nil, an empty one a slice that is not nil. The list aliases nothing and
// may be kept, but not changed: nearly all nodes are open to everybody, and for them it is OpenACL itself. Another one of usual
// schemes and the id anyone takes a single allocation.
func DecodeACLs(d *jute.Decoder) []ACL {
	peek := *d
	if rest := peek.Rest(); len(rest) >= len(openACLBytes) && string(rest[:len(openACLBytes)]) == openACLBytes {
		d.Int32()
		d.Int32()
		d.Buffer()
		d.Buffer()
		return OpenACL
	}
	n, null := d.Vector(aclBytesMin)
	if null || d.Err() != nil {
		return nil
	}
	acls := make([]ACL, n)
	for i := range acls {
		acls[i].Decode(d)
	}
	if d.Err() != nil {
		return nil
	}
	return acls
}

func encodeString(e *jute.Encoder, s string, null bool) {
	if null {
		e.UString(nil)
		return
	}
	e.String(s)
}

// decodeString reads a string that is to be kept. Those that most lists consist of are not allocated anew.
func decodeString(d *jute.Decoder) (s string, null bool) {
	b := d.UString()
	switch string(b) { // the conversion does not allocate here
	case schemeWorld:
		return schemeWorld, false
	case idAnyone:
		return idAnyone, false
	case schemeAuth:
		return schemeAuth, false
	case "digest":
		return "digest", false
	case "ip":
		return "ip", false
	case "sasl":
		return "sasl", false
	case "x509":
		return "x509", false
	}
	return string(b), b == nil && d.Err() == nil
}

func encodeCount(e *jute.Encoder, n int, null bool) {
	if null {
		n = -1
	}
	e.Count(n)
}
