package wire

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
)

const (
	goldenStat = "0000000000000205 0000000000000206 0000018f00000001 0000018f00000002" +
		"00000001 00000002 00000003 0100000bfa45007e 00000004 00000005 0000000000000207"
	goldenOpen = "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65"
)

var goldenStatValue = Stat{
	Czxid: 0x205, Mzxid: 0x206, Ctime: 0x18f00000001, Mtime: 0x18f00000002,
	Version: 1, CVersion: 2, AVersion: 3, EphemeralOwner: 0x0100000bfa45007e,
	DataLength: 4, NumChildren: 5, Pzxid: 0x207,
}

// The bytes of each record. Those of the handshake and of create2 were seen between the Java client and a real server.
func TestGoldenRecords(t *testing.T) {
	tests := []struct {
		name   string
		bytes  string
		record Record
	}{
		{
			"connect request", "00000000 0000000000000000 00002710 0000000000000000 00000010 00000000000000000000000000000000 00",
			&ConnectRequest{TimeoutMs: 10000, Password: make([]byte, 16), HasReadOnly: true},
		},
		{
			"connect request of an old client, back to a session",
			"00000000 0000000000000205 00002710 0100000bfa45007e 00000010 c8c8f8a0061da7550e3607398ab77f68",
			&ConnectRequest{
				LastZxidSeen: 0x205, TimeoutMs: 10000, SessionID: 0x0100000bfa45007e,
				Password: unhex(t, "c8c8f8a0061da7550e3607398ab77f68"),
			},
		},
		{
			"connect request with a null password", "00000063 ffffffffffffffff ffffffff 0000000000000000 ffffffff 01",
			&ConnectRequest{ProtocolVersion: 99, LastZxidSeen: -1, TimeoutMs: -1, ReadOnly: true, HasReadOnly: true},
		},
		{
			"connect response", "00000000 00002710 0100000bfa45007e 00000010 c8c8f8a0061da7550e3607398ab77f68 00",
			&ConnectResponse{
				TimeoutMs: 10000, SessionID: 0x0100000bfa45007e,
				Password: unhex(t, "c8c8f8a0061da7550e3607398ab77f68"), HasReadOnly: true,
			},
		},
		{
			"connect response to an old client", "00000000 00002710 0100000bfa45007e 00000010 c8c8f8a0061da7550e3607398ab77f68",
			&ConnectResponse{
				TimeoutMs: 10000, SessionID: 0x0100000bfa45007e,
				Password: unhex(t, "c8c8f8a0061da7550e3607398ab77f68"),
			},
		},
		{"request header", "00000001 0000000f", &RequestHeader{Xid: 1, Op: OpCreate2}},
		{"reply header", "00000001 0000000000000205 ffffff9b", &ReplyHeader{Xid: 1, Zxid: 0x205, Err: CodeNoNode}},
		{"multi header", "ffffffff 01 ffffffff", &MultiHeader{Type: OpError, Done: true, Err: -1}},
		{"watcher event", "00000003 00000003 00000002 2f61", &WatcherEvent{EventNodeDataChanged, StateSyncConnected, []byte("/a")}},
		{"stat", goldenStat, &goldenStatValue},
		{
			"create", "00000007 2f686578766563 00000003 616263" + goldenOpen + "00000000",
			&CreateRequest{Path: []byte("/hexvec"), Data: []byte("abc"), ACL: OpenACL},
		},
		{
			"createTTL", "00000002 2f61 ffffffff 00000000 00000005 000000ffffffffff",
			&CreateTTLRequest{Path: []byte("/a"), ACL: []ACL{}, Flags: FlagTTL, TTL: 1<<40 - 1},
		},
		{"delete", "00000002 2f61 ffffffff", &PathVersionRequest{Path: []byte("/a"), Version: -1}},
		{"sync of nothing", "ffffffff", &PathRequest{}},
		{"getData of the root's alias", "00000000 01", &PathWatchRequest{Path: []byte{}, Watch: true}},
		{"setData", "00000002 2f61 00000000 00000007", &SetDataRequest{Path: []byte("/a"), Data: []byte{}, Version: 7}},
		{
			"setACL with null strings", "00000002 2f61 00000001 0000001f ffffffff ffffffff ffffffff",
			&SetACLRequest{Path: []byte("/a"), ACL: []ACL{{Perms: PermAll, NullScheme: true, NullID: true}}, Version: -1},
		},
		{
			"reconfig", "00000001 61 00000000 ffffffff ffffffffffffffff",
			&ReconfigRequest{Joining: []byte("a"), Leaving: []byte{}, ConfigID: -1},
		},
		{
			"auth", "00000000 00000006 646967657374 00000005 626f623a70",
			&AuthRequest{Scheme: []byte("digest"), Auth: []byte("bob:p")},
		},
		{"sasl", "ffffffff", &SASLRequest{}},
		{"createSession", "00002710", &CreateSessionRequest{TimeoutMs: 10000}},
		{"removeWatches", "00000002 2f61 00000003", &WatchTypeRequest{Path: []byte("/a"), Type: WatchTypeAny}},
		{"addWatch", "00000002 2f61 00000001", &AddWatchRequest{Path: []byte("/a"), Mode: AddWatchPersistentRecursive}},
		{
			"setWatches", "0000000000000205 00000001 00000002 2f61 00000000 ffffffff",
			&setWatchesV1{SetWatchesRequest{0x205, texts0("/a"), texts0(), nil, texts0(), texts0()}},
		},
		{
			"setWatches2", "0000000000000205 00000000 00000000 00000000 00000001 00000002 2f62 ffffffff",
			&SetWatchesRequest{0x205, texts0(), texts0(), texts0(), texts0("/b"), nil},
		},
		{"create reply", "00000002 2f61", &PathReply{[]byte("/a")}},
		{"create2 reply", "00000002 2f61" + goldenStat, &CreateReply{[]byte("/a"), goldenStatValue}},
		{"getData reply", "ffffffff" + goldenStat, &DataReply{nil, goldenStatValue}},
		{"getACL reply", goldenOpen + goldenStat, &ACLReply{OpenACL, goldenStatValue}},
		{"getChildren reply", "00000002 00000001 61 00000001 62", &ChildrenReply{texts0("a", "b")}},
		{"getChildren2 reply", "00000000" + goldenStat, &Children2Reply{texts0(), goldenStatValue}},
		{"getAllChildrenNumber reply", "00000003", &CountReply{3}},
		{"addWatch reply", "00000000", &ErrorReply{CodeOK}},
		{
			"whoAmI reply", "00000001 00000002 6970 00000009 3132372e302e302e31",
			&WhoAmIReply{[]ClientInfo{{"ip", "127.0.0.1"}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.bytes)
			require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(encoded(tt.record)))
			got := emptyLike(t, tt.record)
			require.Zero(t, decode(t, want, got))
			require.Equal(t, tt.record, got)
		})
	}
}

// TestHandshakeSizes pins the four sizes that clients count on.
func TestHandshakeSizes(t *testing.T) {
	password := make([]byte, PasswordBytes)
	require.Len(t, encoded(&ConnectRequest{Password: password, HasReadOnly: true}), 45)
	require.Len(t, encoded(&ConnectRequest{Password: password}), 44)
	require.Len(t, encoded(&ConnectResponse{Password: password, HasReadOnly: true}), 37)
	require.Len(t, encoded(&ConnectResponse{Password: password}), 36)
}

// TestConnectResponsePassword: the field has its fixed size whatever it is made of.
func TestConnectResponsePassword(t *testing.T) {
	for _, tt := range []struct{ name, password, want string }{
		{"null is expired", "", "00000000000000000000000000000000"},
		{"short", "c8c8", "c8c80000000000000000000000000000"},
		{"long", "c8c8f8a0061da7550e3607398ab77f68ff", "c8c8f8a0061da7550e3607398ab77f68"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got ConnectResponse
			decode(t, encoded(&ConnectResponse{Password: unhex(t, tt.password)}), &got)
			require.Equal(t, tt.want, hex.EncodeToString(got.Password))
		})
	}
}

// TestConnectRequestPassword: any length is taken but one below -1, and bytes behind the record do not matter.
func TestConnectRequestPassword(t *testing.T) {
	const head = "00000000 0000000000000000 00002710 0000000000000000"
	for _, tt := range []struct {
		name, tail string
		want       ConnectRequest
	}{
		{"null", "ffffffff", ConnectRequest{TimeoutMs: 10000}},
		{"empty", "00000000 00", ConnectRequest{TimeoutMs: 10000, Password: []byte{}, HasReadOnly: true}},
		{"short", "00000001 ff 01", ConnectRequest{TimeoutMs: 10000, Password: []byte{0xff}, ReadOnly: true, HasReadOnly: true}},
		{"trailing bytes", "ffffffff 02 030405", ConnectRequest{TimeoutMs: 10000, ReadOnly: true, HasReadOnly: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got ConnectRequest
			decode(t, unhex(t, head+tt.tail), &got)
			require.Equal(t, tt.want, got)
		})
	}
	d := jute.NewDecoder(unhex(t, head+"fffffffe"), 0)
	var r ConnectRequest
	r.Decode(&d)
	require.ErrorIs(t, d.Err(), jute.ErrLength)
}

// TestGoldenRequestFrame is a whole create2 as the Java client sends it, with its length.
func TestGoldenRequestFrame(t *testing.T) {
	var e jute.Encoder
	AppendRequest(&e, RequestHeader{Xid: 1, Op: OpCreate2}, &CreateRequest{Path: []byte("/hexvec"), Data: []byte("abc"), ACL: OpenACL})
	require.Equal(t, unhex(t, "00000039 00000001 0000000f 00000007 2f686578766563 00000003 616263"+goldenOpen+"00000000"), e.Bytes())
}

// TestGoldenFailedMulti is the answer to a multi of five whose third deletes a node that does not exist.
func TestGoldenFailedMulti(t *testing.T) {
	want := unhex(t, `ffffffff 00 00000000 00000000   ffffffff 00 00000000 00000000   ffffffff 00 ffffff9b ffffff9b
		ffffffff 00 fffffffe fffffffe   ffffffff 00 fffffffe fffffffe   ffffffff 01 ffffffff`)
	results := []MultiResult{
		{Op: OpError},
		{Op: OpError},
		{Op: OpError, Err: CodeNoNode},
		{Op: OpError, Err: CodeRuntimeInconsistency},
		{Op: OpError, Err: CodeRuntimeInconsistency},
	}
	var e jute.Encoder
	AppendMultiResults(&e, results)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(e.Bytes()))
	d := jute.NewDecoder(want, 0)
	got, err := DecodeMultiResults(&d, nil)
	require.NoError(t, err)
	require.Equal(t, results, got)
}

// texts0 makes a list that is not nil.
func texts0(s ...string) [][]byte {
	list := [][]byte{}
	for _, t := range s {
		list = append(list, []byte(t))
	}
	return list
}

// emptyLike returns an empty record of the type of r.
func emptyLike(t *testing.T, r Record) Record {
	t.Helper()
	for _, known := range records {
		if e := known.empty(); sameType(e, r) {
			return e
		}
	}
	require.Fail(t, "record type missing in the table", "%T", r)
	return nil
}

func unhex(t require.TestingT, s string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}
