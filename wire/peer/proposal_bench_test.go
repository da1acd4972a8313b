package peer

import (
	"bytes"
	"fmt"
	"testing"

	"zabra/zab"
)

// BenchmarkProposal writes and reads a PROPOSAL with a batch of transactions of 200 bytes.
func BenchmarkProposal(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		message := zab.Message{Kind: zab.MessageProposal, Zxid: z(8, 0), Committed: z(8, 0)}
		for i := range uint32(n) {
			origin := zab.Origin{Server: 2, Conn: 77, Seq: uint64(i)}
			message.Entries = append(message.Entries, zab.Entry{Zxid: z(8, i+1), Payload: make([]byte, 200), Origin: origin})
		}
		raw := encode(b, &message)
		b.Run(fmt.Sprintf("encode/entries=%d", n), func(b *testing.B) {
			var e Encoder
			buf := make([]byte, 0, 2*len(raw))
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.AppendMessage(buf, &message); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("decode/entries=%d", n), func(b *testing.B) {
			r := NewReader(&stream{frame: bytes.Clone(raw)}, PurposeQuorum)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
