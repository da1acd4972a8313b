package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
)

var getDataBody = func() []byte {
	var e jute.Encoder
	AppendRequest(&e, RequestHeader{Xid: 1, Op: OpGetData}, &PathWatchRequest{Path: []byte("/services/orders/instance-0000000042"), Watch: true})
	return e.Bytes()[FrameHeadBytes:]
}()

// decodeGetData is what a server does with each read before it looks at the tree.
func decodeGetData(body []byte) (OpInfo, PathWatchRequest, error) {
	d := jute.NewDecoder(body, 0)
	var h RequestHeader
	var r PathWatchRequest
	h.Decode(&d)
	info := h.Op.Info()
	r.Decode(&d)
	return info, r, d.Err()
}

// encodeDataReply is what a server does with each answer to getData.
func encodeDataReply(buf, data []byte) []byte {
	var e jute.Encoder
	e.Reset(buf)
	start := BeginFrame(&e)
	AppendReplyHeader(&e, 1, 0x205, CodeOK)
	r := DataReply{Data: data, Stat: goldenStatValue}
	r.Encode(&e)
	EndFrame(&e, start)
	return e.Bytes()
}

func TestNoAllocation(t *testing.T) {
	buf, data := make([]byte, 0, 1024), make([]byte, 100)
	multi := func() []byte {
		var e jute.Encoder
		AppendMulti(&e, []MultiOp{
			{Op: OpCheck, Path: []byte("/a")}, {Op: OpSetData, Path: []byte("/b"), Data: data}, {Op: OpDelete, Path: []byte("/c")},
		})
		return e.Bytes()
	}()
	ops := make([]MultiOp, 0, 4)
	open := encoded(&CreateRequest{Path: []byte("/a"), ACL: OpenACL})
	paths := encoded(&SetWatchesRequest{Data: texts0("/a", "/b"), Exist: texts0("/c"), Child: texts0(), Persistent: texts0(), Recursive: texts0()})
	var watches SetWatchesRequest

	tests := []struct {
		name string
		want float64
		run  func()
	}{
		{"header and getData", 0, func() { decodeGetData(getDataBody) }},
		{"reply with a stat", 0, func() { encodeDataReply(buf, data) }},
		{"create with the open ACL", 0, func() {
			d := jute.NewDecoder(open, 0)
			var r CreateRequest
			r.Decode(&d)
		}},
		{"multi into a used list", 0, func() {
			d := jute.NewDecoder(multi, 0)
			ops, _ = DecodeMulti(&d, ops)
		}},
		{"setWatches2 into a used record", 0, func() {
			d := jute.NewDecoder(paths, 0)
			watches.Decode(&d)
		}},
		{"tables", 0, func() {
			_ = OpGetData.Info()
			_ = Op(23).Info()
			_ = OpGetData.String()
			_ = CodeNoNode.String()
		}},
		{"four-letter word", 0, func() { FourLetterWord([4]byte{'w', 'c', 'h', 's'}) }},
	}
	for _, tt := range tests {
		require.InDelta(t, tt.want, testing.AllocsPerRun(100, tt.run), 0.01, tt.name)
	}
	require.Len(t, ops, 3)
	require.Len(t, watches.Data, 2)
}

func BenchmarkDecodeGetData(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decodeGetData(getDataBody); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeDataReply(b *testing.B) {
	buf, data := make([]byte, 0, 1024), make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		encodeDataReply(buf, data)
	}
}

func BenchmarkEncodeStat(b *testing.B) {
	buf := make([]byte, 0, StatBytes)
	b.ReportAllocs()
	for b.Loop() {
		var e jute.Encoder
		e.Reset(buf)
		goldenStatValue.Encode(&e)
	}
}

func BenchmarkDecodeCreate(b *testing.B) {
	body := encoded(&CreateRequest{Path: []byte("/services/orders/instance-"), Data: make([]byte, 100), ACL: OpenACL, Flags: FlagEphemeralSequential})
	b.ReportAllocs()
	for b.Loop() {
		d := jute.NewDecoder(body, 0)
		var r CreateRequest
		r.Decode(&d)
		if d.Err() != nil {
			b.Fatal(d.Err())
		}
	}
}

func BenchmarkDecodeMulti(b *testing.B) {
	var e jute.Encoder
	for range 100 {
		AppendMulti(&e, []MultiOp{{Op: OpSetData, Path: []byte("/services/orders/x"), Data: make([]byte, 100), Version: -1}})
		e.Reset(e.Bytes()[:e.Len()-multiHeaderBytes])
	}
	appendMultiEnd(&e)
	var ops []MultiOp
	b.ReportAllocs()
	for b.Loop() {
		d := jute.NewDecoder(e.Bytes(), 0)
		var err error
		if ops, err = DecodeMulti(&d, ops); err != nil || len(ops) != 100 {
			b.Fatal(len(ops), err)
		}
	}
}
