package wire

import (
	"fmt"
	"testing"

	"zabra/jute"
)

// hotRecords are the requests and replies that servers see most.
func hotRecords() []struct {
	name string
	r    Record
} {
	path, data := []byte("/services/orders/instance-0000000042"), make([]byte, 100)
	children := func(n int) *ChildrenReply {
		r := &ChildrenReply{}
		for i := range n {
			r.Children = append(r.Children, fmt.Appendf(nil, "instance-%010d", i))
		}
		return r
	}
	return []struct {
		name string
		r    Record
	}{
		{"getData", &PathWatchRequest{Path: path}},
		{"setData", &SetDataRequest{Path: path, Data: data, Version: -1}},
		{"create", &CreateRequest{Path: path, Data: data, ACL: OpenACL}},
		{"delete", &PathVersionRequest{Path: path, Version: -1}},
		{"dataReply", &DataReply{Data: data, Stat: goldenStatValue}},
		{"createReply", &CreateReply{Path: path, Stat: goldenStatValue}},
		{"children=10", children(10)},
		{"children=1000", children(1000)},
	}
}

func BenchmarkRecordEncode(b *testing.B) {
	for _, h := range hotRecords() {
		b.Run(h.name, func(b *testing.B) {
			buf := make([]byte, 0, 64<<10)
			var e jute.Encoder
			b.ReportAllocs()
			for b.Loop() {
				e.Reset(buf)
				h.r.Encode(&e)
			}
		})
	}
}

// BenchmarkRecordDecode decodes into a record that was used before.
func BenchmarkRecordDecode(b *testing.B) {
	for _, h := range hotRecords() {
		b.Run(h.name, func(b *testing.B) {
			in := encoded(h.r)
			var d jute.Decoder
			b.ReportAllocs()
			for b.Loop() {
				d = jute.NewDecoder(in, 0)
				if h.r.Decode(&d); d.Err() != nil || d.Remaining() != 0 {
					b.Fatal(d.Err(), d.Remaining())
				}
			}
		})
	}
}

// BenchmarkFraming writes a packet of requests, and finds them in it again.
func BenchmarkFraming(b *testing.B) {
	const perPacket = 16
	request := PathWatchRequest{Path: []byte("/services/orders/instance-0000000042")}
	packet := func(e *jute.Encoder) {
		for i := range perPacket {
			AppendRequest(e, RequestHeader{Xid: int32(i), Op: OpGetData}, &request)
		}
	}
	b.Run("write", func(b *testing.B) {
		buf := make([]byte, 0, 4096)
		var e jute.Encoder
		b.ReportAllocs()
		for b.Loop() {
			e.Reset(buf)
			packet(&e)
		}
	})
	b.Run("read", func(b *testing.B) {
		var e jute.Encoder
		packet(&e)
		b.ReportAllocs()
		for b.Loop() {
			found := 0
			for in := e.Bytes(); len(in) > 0; found++ {
				n, ok := FrameLength([FrameHeadBytes]byte(in), 1<<20)
				if !ok {
					b.Fatal(n)
				}
				d := jute.NewDecoder(in[FrameHeadBytes:FrameHeadBytes+n], 0)
				var h RequestHeader
				if h.Decode(&d); h.Op.Info().Class != ClassRead {
					b.Fatal(h.Op)
				}
				in = in[FrameHeadBytes+n:]
			}
			if found != perPacket {
				b.Fatal(found)
			}
		}
	})
}
