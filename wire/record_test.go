package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
	"zabra/jute"
	"zabra/zab/zxid"
)

// setWatchesV1 makes a Record of the V1 methods.
type setWatchesV1 struct{ SetWatchesRequest }

func (r *setWatchesV1) Encode(e *jute.Encoder) { r.EncodeV1(e) }
func (r *setWatchesV1) Decode(d *jute.Decoder) { r.DecodeV1(d) }

// aclList makes a Record of a list of ACL entries.
type aclList struct{ acl []ACL }

func (l *aclList) Encode(e *jute.Encoder) { AppendACLs(e, l.acl) }
func (l *aclList) Decode(d *jute.Decoder) { l.acl = DecodeACLs(d) }

// records has every record of the package: how to make an empty one, and how to draw one.
var records = []struct {
	name  string
	empty func() Record
	draw  func(t *rapid.T) Record
}{
	{"RequestHeader", func() Record { return &RequestHeader{} }, func(t *rapid.T) Record {
		return &RequestHeader{Xid: int32s(t), Op: Op(int32s(t))}
	}},
	{"ReplyHeader", func() Record { return &ReplyHeader{} }, func(t *rapid.T) Record {
		return &ReplyHeader{Xid: int32s(t), Zxid: zxids(t), Err: Code(int32s(t))}
	}},
	{"MultiHeader", func() Record { return &MultiHeader{} }, func(t *rapid.T) Record {
		return &MultiHeader{Type: Op(int32s(t)), Done: bools(t), Err: Code(int32s(t))}
	}},
	{"WatcherEvent", func() Record { return &WatcherEvent{} }, func(t *rapid.T) Record {
		return &WatcherEvent{Type: EventType(int32s(t)), State: int32s(t), Path: texts(t)}
	}},
	{"ConnectRequest", func() Record { return &ConnectRequest{} }, func(t *rapid.T) Record { return connectRequests(t) }},
	{"ConnectResponse", func() Record { return &ConnectResponse{} }, func(t *rapid.T) Record { return connectResponses(t) }},
	{"Stat", func() Record { return &Stat{} }, func(t *rapid.T) Record { s := stats(t); return &s }},
	{"ACL", func() Record { return &ACL{} }, func(t *rapid.T) Record { a := acls(t); return &a }},
	{"ACLs", func() Record { return &aclList{} }, func(t *rapid.T) Record { return &aclList{aclLists(t)} }},
	{"CreateRequest", func() Record { return &CreateRequest{} }, func(t *rapid.T) Record {
		return &CreateRequest{Path: texts(t), Data: buffers(t), ACL: aclLists(t), Flags: int32s(t)}
	}},
	{"CreateTTLRequest", func() Record { return &CreateTTLRequest{} }, func(t *rapid.T) Record {
		return &CreateTTLRequest{Path: texts(t), Data: buffers(t), ACL: aclLists(t), Flags: int32s(t), TTL: int64s(t)}
	}},
	{"PathVersionRequest", func() Record { return &PathVersionRequest{} }, func(t *rapid.T) Record {
		return &PathVersionRequest{Path: texts(t), Version: int32s(t)}
	}},
	{"PathRequest", func() Record { return &PathRequest{} }, func(t *rapid.T) Record { return &PathRequest{Path: texts(t)} }},
	{"PathWatchRequest", func() Record { return &PathWatchRequest{} }, func(t *rapid.T) Record {
		return &PathWatchRequest{Path: texts(t), Watch: bools(t)}
	}},
	{"SetDataRequest", func() Record { return &SetDataRequest{} }, func(t *rapid.T) Record {
		return &SetDataRequest{Path: texts(t), Data: buffers(t), Version: int32s(t)}
	}},
	{"SetACLRequest", func() Record { return &SetACLRequest{} }, func(t *rapid.T) Record {
		return &SetACLRequest{Path: texts(t), ACL: aclLists(t), Version: int32s(t)}
	}},
	{"ReconfigRequest", func() Record { return &ReconfigRequest{} }, func(t *rapid.T) Record {
		return &ReconfigRequest{Joining: texts(t), Leaving: texts(t), NewMembers: texts(t), ConfigID: int64s(t)}
	}},
	{"AuthRequest", func() Record { return &AuthRequest{} }, func(t *rapid.T) Record {
		return &AuthRequest{Type: int32s(t), Scheme: texts(t), Auth: buffers(t)}
	}},
	{"SASLRequest", func() Record { return &SASLRequest{} }, func(t *rapid.T) Record { return &SASLRequest{Token: buffers(t)} }},
	{"CreateSessionRequest", func() Record { return &CreateSessionRequest{} }, func(t *rapid.T) Record {
		return &CreateSessionRequest{TimeoutMs: int32s(t)}
	}},
	{"WatchTypeRequest", func() Record { return &WatchTypeRequest{} }, func(t *rapid.T) Record {
		return &WatchTypeRequest{Path: texts(t), Type: int32s(t)}
	}},
	{"AddWatchRequest", func() Record { return &AddWatchRequest{} }, func(t *rapid.T) Record {
		return &AddWatchRequest{Path: texts(t), Mode: int32s(t)}
	}},
	{"SetWatchesRequest", func() Record { return &SetWatchesRequest{} }, func(t *rapid.T) Record {
		return &SetWatchesRequest{zxids(t), textLists(t), textLists(t), textLists(t), textLists(t), textLists(t)}
	}},
	{"SetWatchesRequest V1", func() Record { return &setWatchesV1{} }, func(t *rapid.T) Record {
		return &setWatchesV1{SetWatchesRequest{zxids(t), textLists(t), textLists(t), textLists(t), [][]byte{}, [][]byte{}}}
	}},
	{"PathReply", func() Record { return &PathReply{} }, func(t *rapid.T) Record { return &PathReply{Path: texts(t)} }},
	{"CreateReply", func() Record { return &CreateReply{} }, func(t *rapid.T) Record {
		return &CreateReply{Path: texts(t), Stat: stats(t)}
	}},
	{"DataReply", func() Record { return &DataReply{} }, func(t *rapid.T) Record {
		return &DataReply{Data: buffers(t), Stat: stats(t)}
	}},
	{"ACLReply", func() Record { return &ACLReply{} }, func(t *rapid.T) Record {
		return &ACLReply{ACL: aclLists(t), Stat: stats(t)}
	}},
	{"ChildrenReply", func() Record { return &ChildrenReply{} }, func(t *rapid.T) Record {
		return &ChildrenReply{Children: textLists(t)}
	}},
	{"Children2Reply", func() Record { return &Children2Reply{} }, func(t *rapid.T) Record {
		return &Children2Reply{Children: textLists(t), Stat: stats(t)}
	}},
	{"CountReply", func() Record { return &CountReply{} }, func(t *rapid.T) Record { return &CountReply{Total: int32s(t)} }},
	{"ErrorReply", func() Record { return &ErrorReply{} }, func(t *rapid.T) Record { return &ErrorReply{Err: Code(int32s(t))} }},
	{"WhoAmIReply", func() Record { return &WhoAmIReply{} }, func(t *rapid.T) Record { return whoAmIReplies(t) }},
}

// TestRecordRoundTrip draws each record, reads back what it writes, and reads each proper prefix of that.
func TestRecordRoundTrip(t *testing.T) {
	for _, tt := range records {
		t.Run(tt.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := tt.draw(t)
				b := encoded(want)
				got := tt.empty()
				require.Zero(t, decode(t, b, got), "bytes left over")
				require.Equal(t, want, got)

				// What follows a record is none of its business. The field that may be missing is the exception.
				if !endsOptional(want) {
					got = tt.empty()
					require.Equal(t, 3, decode(t, append(b[:len(b):len(b)], 1, 2, 3), got))
					require.Equal(t, want, got)
				}
				requirePrefixesRefused(t, want, b, tt.empty)
			})
		})
	}
}

// TestRecordDecodeOverwrites decodes into a record that is in use already: nothing of it may stay.
func TestRecordDecodeOverwrites(t *testing.T) {
	for _, tt := range records {
		t.Run(tt.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				used, want := tt.draw(t), tt.draw(t)
				decode(t, encoded(want), used)
				require.Equal(t, want, used)
			})
		})
	}
}

// endsOptional tells of a record whose last byte may be missing, and is there.
func endsOptional(r Record) bool {
	switch r := r.(type) {
	case *ConnectRequest:
		return !r.HasReadOnly
	case *ConnectResponse:
		return !r.HasReadOnly
	}
	return false
}

// requirePrefixesRefused decodes each proper prefix of b, the encoding of r. The only one that is a record itself is a
// handshake without its readOnly byte.
func requirePrefixesRefused(t require.TestingT, r Record, b []byte, empty func() Record) {
	whole := len(b)
	switch r := r.(type) {
	case *ConnectRequest:
		if r.HasReadOnly {
			whole--
		}
	case *ConnectResponse:
		if r.HasReadOnly {
			whole--
		}
	}
	for cut := range whole {
		d := jute.NewDecoder(b[:cut], 0)
		empty().Decode(&d)
		require.Error(t, d.Err(), "prefix of %d of %d bytes", cut, len(b))
	}
}

func encoded(r Record) []byte {
	var e jute.Encoder
	r.Encode(&e)
	return e.Bytes()
}

// decode decodes b, which must be good, into r and returns the number of bytes left over.
func decode(t require.TestingT, b []byte, r Record) int {
	d := jute.NewDecoder(b, 0)
	r.Decode(&d)
	require.NoError(t, d.Err())
	return d.Remaining()
}

// The generators of field values. Null and empty are likely, and texts have no characters above U+FFFF, which come back
// as something else.

func bools(t *rapid.T) bool   { return rapid.Bool().Draw(t, "bool") }
func int32s(t *rapid.T) int32 { return rapid.Int32().Draw(t, "int") }
func int64s(t *rapid.T) int64 { return rapid.Int64().Draw(t, "long") }

func zxids(t *rapid.T) zxid.Zxid           { return zxid.Zxid(int64s(t)) }
func sessionIDs(t *rapid.T) zxid.SessionID { return zxid.SessionID(int64s(t)) }

func buffers(t *rapid.T) []byte {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	return append([]byte{}, rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "buffer")...)
}

func texts(t *rapid.T) []byte {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	return []byte(stringsOf(t))
}

func stringsOf(t *rapid.T) string {
	if bools(t) {
		return rapid.SampledFrom([]string{"", "world", "anyone", "auth", "digest", "ip", "sasl", "x509", "super"}).Draw(t, "known")
	}
	return rapid.StringOfN(rapid.RuneFrom([]rune("/ab.é€\uffff")), 0, 12, -1).Draw(t, "text")
}

func textLists(t *rapid.T) [][]byte {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	list := [][]byte{}
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		list = append(list, texts(t))
	}
	return list
}

func acls(t *rapid.T) ACL {
	a := ACL{Perms: int32s(t), NullScheme: bools(t), NullID: bools(t)}
	if !a.NullScheme {
		a.Scheme = stringsOf(t)
	}
	if !a.NullID {
		a.ID = stringsOf(t)
	}
	return a
}

func aclLists(t *rapid.T) []ACL {
	if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
		return nil
	}
	list := []ACL{}
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		list = append(list, acls(t))
	}
	return list
}

func stats(t *rapid.T) Stat {
	return Stat{
		Czxid: zxids(t), Mzxid: zxids(t), Ctime: int64s(t), Mtime: int64s(t),
		Version: int32s(t), CVersion: int32s(t), AVersion: int32s(t), EphemeralOwner: sessionIDs(t),
		DataLength: int32s(t), NumChildren: int32s(t), Pzxid: zxids(t),
	}
}

func connectRequests(t *rapid.T) *ConnectRequest {
	r := &ConnectRequest{
		ProtocolVersion: int32s(t), LastZxidSeen: zxids(t), TimeoutMs: int32s(t), SessionID: sessionIDs(t),
		Password: buffers(t), HasReadOnly: bools(t),
	}
	r.ReadOnly = r.HasReadOnly && bools(t)
	return r
}

func connectResponses(t *rapid.T) *ConnectResponse {
	r := &ConnectResponse{
		ProtocolVersion: int32s(t), TimeoutMs: int32s(t), SessionID: sessionIDs(t),
		Password:    rapid.SliceOfN(rapid.Byte(), PasswordBytes, PasswordBytes).Draw(t, "password"),
		HasReadOnly: bools(t),
	}
	r.ReadOnly = r.HasReadOnly && bools(t)
	return r
}

func whoAmIReplies(t *rapid.T) *WhoAmIReply {
	if bools(t) {
		return &WhoAmIReply{}
	}
	r := &WhoAmIReply{Clients: []ClientInfo{}}
	for range rapid.IntRange(0, 3).Draw(t, "n") {
		r.Clients = append(r.Clients, ClientInfo{Scheme: stringsOf(t), User: stringsOf(t)})
	}
	return r
}
