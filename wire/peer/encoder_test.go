package peer

import (
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
)

func TestNotSendable(t *testing.T) {
	requests := []zab.Request{{Identities: make([]zab.Identity, identitiesMax+1)}}
	tests := []struct {
		name    string
		message zab.Message
		want    string
	}{
		{"no kind", zab.Message{}, "cannot send MESSAGE-0"},
		{"a field without a place", zab.Message{Kind: zab.MessageCommit, Zxid: 1, ID: 4}, "cannot send COMMIT: it has no place for ID"},
		{"another one", zab.Message{Kind: zab.MessagePing, Valid: true}, "cannot send PING: it has no place for Valid"},
		{"negative zxid", zab.Message{Kind: zab.MessageAck, Zxid: -1}, "cannot send ACK: zxid -1 is negative"},
		{"epoch", zab.Message{Kind: zab.MessageLeaderInfo, Epoch: 1 << 31}, "epoch 2147483648 is above"},
		{"role", zab.Message{Kind: zab.MessageNotification, Role: zab.RoleStandalone}, "role 4"},
		{"no request", zab.Message{Kind: zab.MessageRequest}, "there is no request"},
		{"identities", zab.Message{Kind: zab.MessageRequest, Requests: requests}, "1025 identities"},
		{"file name", zab.Message{Kind: zab.MessageSnap, Snapshot: zab.SnapshotFile{Name: "a/b"}}, `file name "a/b"`},
		{"long file name", zab.Message{Kind: zab.MessageSnap, Snapshot: zab.SnapshotFile{Name: strings.Repeat("a", 256)}}, "file name of 256 bytes"},
		{"order", zab.Message{Kind: zab.MessageInform, Zxid: 5, Entries: []zab.Entry{{Zxid: 5, Payload: []byte{1}}}}, "transaction 0x5 follows 0x5"},
		{"no payload", zab.Message{Kind: zab.MessageInform, Entries: []zab.Entry{{Zxid: 5}}}, "transaction 0x5 is empty"},
		{"age", zab.Message{Kind: zab.MessagePong, Touches: []zab.Touch{{AgeMs: -1}}}, "age of -1 ms"},
		{"timeout", zab.Message{Kind: zab.MessageRevalidate, TimeoutMs: -1}, "timeout of -1 ms"},
		{"resume", zab.Message{Kind: zab.MessageAckEpoch, Resume: zab.SnapshotProgress{Offset: 4}}, "file name of 0 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var e Encoder
			before := []byte("before")
			b, err := e.AppendMessage(before, &tt.message)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, "before", string(b))
		})
	}
}

func TestBadChunks(t *testing.T) {
	var e Encoder
	for _, c := range []Chunk{
		{Offset: -1, Size: 5}, {Offset: 4, Size: 5, Data: []byte{1, 2}}, {Offset: 4, Size: 5},
		{Offset: math.MaxInt64, Size: math.MaxInt64, Data: []byte{1}}, {Size: 1 << 40, Data: make([]byte, ChunkBytesMax+1)},
	} {
		_, err := e.AppendChunk(nil, c)
		require.Error(t, err)
	}
	b, err := e.AppendChunk(nil, Chunk{Size: ChunkBytesMax, Data: make([]byte, ChunkBytesMax)})
	require.NoError(t, err)
	frames, err := readAll(b, PurposeQuorum)
	require.Equal(t, io.EOF, err)
	require.True(t, frames[0].Chunk.Last())
}

// TestAppends: frames go behind what is there, whatever the capacity of the slice is.
func TestAppends(t *testing.T) {
	var e Encoder
	for _, room := range []int{0, 1, 20, 200, 4096} {
		b := append(make([]byte, 0, 6+room), "before"...)
		for _, s := range samples() {
			var err error
			b, err = e.AppendMessage(b, &s.message)
			require.NoError(t, err)
		}
		require.Equal(t, "before", string(b[:6]))
		var one []byte
		for _, s := range samples() {
			one = append(one, encode(t, &s.message)...)
		}
		require.Equal(t, one, b[6:])
	}
}
