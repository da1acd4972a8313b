package peer

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
)

// hot are the messages of a busy ensemble: a batch of 32 small transactions and what goes with it.
func hot() []sample {
	var batch []zab.Entry
	for i := range uint32(32) {
		batch = append(batch, zab.Entry{Zxid: z(8, i+1), Payload: make([]byte, 220), Origin: zab.Origin{Server: 2, Conn: 77, Seq: uint64(i)}})
	}
	return []sample{
		{"Proposal32", zab.Message{Kind: zab.MessageProposal, Zxid: z(7, 1000), Committed: z(7, 999), Entries: batch}},
		{"Ack", zab.Message{Kind: zab.MessageAck, Zxid: z(8, 32)}},
		{"Commit", zab.Message{Kind: zab.MessageCommit, Zxid: z(8, 32)}},
		{"Ping", zab.Message{Kind: zab.MessagePing, ID: 70000}},
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, s := range hot() {
		b.Run(s.name, func(b *testing.B) {
			var e Encoder
			buf, err := e.AppendMessage(nil, &s.message)
			require.NoError(b, err)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf, _ = e.AppendMessage(buf[:0], &s.message)
			}
		})
	}
}

// stream is an endless repetition of one frame.
type stream struct {
	frame []byte
	at    int
}

func (s *stream) Read(b []byte) (n int, err error) {
	for n < len(b) {
		m := copy(b[n:], s.frame[s.at:])
		n += m
		s.at = (s.at + m) % len(s.frame)
	}
	return n, nil
}

func BenchmarkDecode(b *testing.B) {
	for _, s := range hot() {
		b.Run(s.name, func(b *testing.B) {
			raw := encode(b, &s.message)
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

// TestAllocations keeps the numbers of the benchmarks: writing allocates nothing once the buffers are there, reading the
// message and, for a batch, its bytes and entries.
func TestAllocations(t *testing.T) {
	for _, s := range hot() {
		var e Encoder
		buf, err := e.AppendMessage(nil, &s.message)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(100, func() { buf, _ = e.AppendMessage(buf[:0], &s.message) }), "writing %s", s.name)
		r := NewReader(&stream{frame: bytes.Clone(buf)}, PurposeQuorum)
		_, err = r.Next()
		require.NoError(t, err)
		most := 1.0
		if len(s.message.Entries) > 0 {
			most = 3
		}
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = r.Next() }), most, "reading %s", s.name)
	}
}
