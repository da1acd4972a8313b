package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
)

// The fuzz targets feed bytes of a peer to the decoders. None may panic, and what decodes must come back the same from
// its own encoding. Characters above U+FFFF are the exception: encoding changes them, once.

// FuzzFrame cuts a stream of bytes into frames as a server does: handshake first, then requests.
func FuzzFrame(f *testing.F) {
	var e jute.Encoder
	start := BeginFrame(&e)
	(&ConnectRequest{TimeoutMs: 10000, Password: make([]byte, 16), HasReadOnly: true}).Encode(&e)
	EndFrame(&e, start)
	AppendRequest(&e, RequestHeader{Xid: 1, Op: OpGetData}, &PathWatchRequest{Path: []byte("/a"), Watch: true})
	AppendRequest(&e, RequestHeader{Xid: 2, Op: OpCloseSession}, nil)
	f.Add(e.Bytes())
	f.Add([]byte("ruok"))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for first := true; len(stream) >= FrameHeadBytes; first = false {
			head := [FrameHeadBytes]byte(stream)
			n, ok := FrameLength(head, FrameBytesMaxDefault)
			if word, isWord := FourLetterWord(head); isWord {
				require.Equal(t, string(head[:]), word)
				return
			}
			if !ok {
				FrameSuspect(head)
				return
			}
			require.GreaterOrEqual(t, n, 0)
			if stream = stream[FrameHeadBytes:]; n > len(stream) {
				return
			}
			fuzzFrameBody(t, stream[:n], first)
			stream = stream[n:]
		}
	})
}

func fuzzFrameBody(t *testing.T, body []byte, first bool) {
	if first {
		fuzzRecord(t, body, &ConnectRequest{}, &ConnectRequest{}, &ConnectRequest{})
		return
	}
	d := jute.NewDecoder(body, 0)
	var h RequestHeader
	h.Decode(&d)
	if d.Err() == nil {
		fuzzRequest(t, h.Op, d.Rest())
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(int32(OpCreate2), unhex(f, "00000002 2f61 00000001 78"+goldenOpen+"00000003"))
	f.Add(int32(OpCreateTTL), unhex(f, "00000002 2f61 ffffffff ffffffff 00000005 0000000000000001"))
	f.Add(int32(OpExists), unhex(f, "00000003 eda0bd 09"))
	f.Add(int32(OpSetACL), unhex(f, "00000002 2f61 00000001 00000000 ffffffff ffffffff 00000000"))
	f.Add(int32(OpSetWatches), unhex(f, "0000000000000001 00000001 00000001 2f fffffffe ffffffff"))
	f.Add(int32(OpSetWatches2), unhex(f, "0000000000000001 00000001 00000001 2f 00000000 00000000 00000000 ffffffff"))
	f.Add(int32(OpAuth), unhex(f, "00000000 00000006 646967657374 00000003 613a62"))
	f.Add(int32(OpReconfig), unhex(f, "ffffffff ffffffff 00000000 ffffffffffffffff"))
	f.Fuzz(func(t *testing.T, op int32, body []byte) { fuzzRequest(t, Op(op), body) })
}

// fuzzRequest decodes body as a request of op.
func fuzzRequest(t *testing.T, op Op, body []byte) {
	if op == OpMulti || op == OpMultiRead {
		fuzzMulti(t, body)
		return
	}
	if first := emptyRequest(op); first != nil {
		fuzzRecord(t, body, first, emptyRequest(op), emptyRequest(op))
	}
}

// emptyRequest returns the record of op's requests, nil if there is none.
func emptyRequest(op Op) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return &CreateRequest{}
	case OpCreateTTL:
		return &CreateTTLRequest{}
	case OpDelete, OpCheck:
		return &PathVersionRequest{}
	case OpExists, OpGetData, OpGetChildren, OpGetChildren2:
		return &PathWatchRequest{}
	case OpSetData:
		return &SetDataRequest{}
	case OpSetACL:
		return &SetACLRequest{}
	case OpGetACL, OpSync, OpGetEphemerals, OpGetAllChildrenNumber, OpDeleteContainer:
		return &PathRequest{}
	case OpReconfig:
		return &ReconfigRequest{}
	case OpCheckWatches, OpRemoveWatches:
		return &WatchTypeRequest{}
	case OpAddWatch:
		return &AddWatchRequest{}
	case OpAuth:
		return &AuthRequest{}
	case OpSASL:
		return &SASLRequest{}
	case OpSetWatches:
		return &setWatchesV1{}
	case OpSetWatches2:
		return &SetWatchesRequest{}
	case OpCreateSession:
		return &CreateSessionRequest{}
	}
	return nil
}

// FuzzReply decodes the bytes as each record that a server sends.
func FuzzReply(f *testing.F) {
	f.Add(unhex(f, "00000002 2f61"+goldenStat))
	f.Add(unhex(f, "00000002 00000001 61 ffffffff"+goldenStat))
	f.Add(unhex(f, goldenOpen+goldenStat))
	f.Add(unhex(f, "00000001 00000002 6970 00000003 3a3a31"))
	f.Add(unhex(f, "00000008 00 00000000 00000001 00000001 6b ffffffff 00 ffffff9b ffffff9b"+multiEnd))
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzRecord(t, body, &ReplyHeader{}, &ReplyHeader{}, &ReplyHeader{})
		fuzzRecord(t, body, &WatcherEvent{}, &WatcherEvent{}, &WatcherEvent{})
		fuzzRecord(t, body, &CreateReply{}, &CreateReply{}, &CreateReply{})
		fuzzRecord(t, body, &DataReply{}, &DataReply{}, &DataReply{})
		fuzzRecord(t, body, &ACLReply{}, &ACLReply{}, &ACLReply{})
		fuzzRecord(t, body, &ChildrenReply{}, &ChildrenReply{}, &ChildrenReply{})
		fuzzRecord(t, body, &Children2Reply{}, &Children2Reply{}, &Children2Reply{})
		fuzzRecord(t, body, &WhoAmIReply{}, &WhoAmIReply{}, &WhoAmIReply{})
		fuzzMultiResults(t, body)
	})
}

// FuzzConnect decodes the bytes as both records of the handshake.
func FuzzConnect(f *testing.F) {
	const head = "00000000 0000000000000000 00002710 0000000000000000"
	f.Add(unhex(f, head+"00000010 00000000000000000000000000000000 00"))
	f.Add(unhex(f, head+"00000010 00000000000000000000000000000000"))
	f.Add(unhex(f, head+"ffffffff"))
	f.Add(unhex(f, head+"fffffffe"))
	f.Add(unhex(f, "00000000 00002710 0100000bfa45007e 00000010 c8c8f8a0061da7550e3607398ab77f68 00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		fuzzRecord(t, body, &ConnectRequest{}, &ConnectRequest{}, &ConnectRequest{})

		var r ConnectResponse
		d := jute.NewDecoder(body, 0)
		r.Decode(&d)
		if d.Err() == nil && len(r.Password) == PasswordBytes { // others are not encoded as they came
			fuzzRecord(t, body, &ConnectResponse{}, &ConnectResponse{}, &ConnectResponse{})
		}
	})
}

// FuzzMulti decodes the bytes as a multi.
func FuzzMulti(f *testing.F) {
	f.Add(unhex(f, multiEnd))
	f.Add(unhex(f, "00000001 00 ffffffff 00000002 2f61 00000001 78"+goldenOpen+"00000003"+multiEnd))
	f.Add(unhex(f, "00000015 00 ffffffff 00000002 2f62 ffffffff ffffffff 00000063 ffffffffffffffff"+multiEnd))
	f.Add(unhex(f, "00000002 00 ffffffff 00000002 2f63 00000007 0000000d 00 ffffffff 00000002 2f65 00000000"+multiEnd))
	f.Add(unhex(f, "00000005 00 ffffffff 00000002 2f64 ffffffff ffffffff"+multiEnd))
	f.Add(unhex(f, "00000004 00 ffffffff 00000002 2f66 00 00000008 00 ffffffff 00000000 00"+multiEnd))
	f.Add(unhex(f, "00000007 00 ffffffff"+multiEnd))
	f.Fuzz(func(t *testing.T, body []byte) { fuzzMulti(t, body) })
}

// fuzzRecord decodes body into first, and if that is a record, its encoding into second, and the encoding of that into
// third.
func fuzzRecord(t *testing.T, body []byte, first, second, third Record) {
	d := jute.NewDecoder(body, 0)
	first.Decode(&d)
	if d.Err() != nil {
		return
	}
	b := encoded(first)
	requireEncodedSize(t, len(b), len(body))
	require.Zero(t, decode(t, b, second))
	if !hasSupplementary(body) {
		require.Equal(t, first, second)
	}
	decode(t, encoded(second), third)
	require.Equal(t, second, third)
}

// requireEncodedSize: a malformed byte grows to three, and nothing grows more, but for a server's password.
func requireEncodedSize(t *testing.T, encoded, body int) {
	require.LessOrEqual(t, encoded, 3*body+PasswordBytes)
}

func fuzzMulti(t *testing.T, body []byte) {
	d := jute.NewDecoder(body, 0)
	first, err := DecodeMulti(&d, nil)
	require.LessOrEqual(t, len(first), len(body)/multiOpBytesMin)
	if err != nil {
		require.Empty(t, first)
		return
	}
	second := multiAgain(t, first)
	if !hasSupplementary(body) {
		require.Equal(t, first, second)
	}
	require.Equal(t, second, multiAgain(t, second))
}

func multiAgain(t *testing.T, ops []MultiOp) []MultiOp {
	var e jute.Encoder
	AppendMulti(&e, ops)
	d := jute.NewDecoder(e.Bytes(), 0)
	// A list that is empty but not nil, as the one from which it came.
	again, err := DecodeMulti(&d, nil)
	require.NoError(t, err)
	require.Zero(t, d.Remaining())
	return again
}

func fuzzMultiResults(t *testing.T, body []byte) {
	d := jute.NewDecoder(body, 0)
	first, err := DecodeMultiResults(&d, nil)
	if err != nil {
		require.Empty(t, first)
		return
	}
	var e jute.Encoder
	AppendMultiResults(&e, first)
	d = jute.NewDecoder(e.Bytes(), 0)
	second, err := DecodeMultiResults(&d, nil)
	require.NoError(t, err)
	if !hasSupplementary(body) {
		require.Equal(t, first, second)
	}
}

// hasSupplementary reports whether b may hold characters above U+FFFF.
func hasSupplementary(b []byte) bool {
	for _, c := range b {
		if c >= 0xf0 && c <= 0xf4 {
			return true
		}
	}
	return false
}
