package server

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
)

func appendFrame(b, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
}

// receive puts b into in as the socket would, in pieces of at most max bytes.
func receive(in *inbound, b []byte, max int) int {
	n := copy(in.space(), b[:min(len(b), max)])
	in.got(n)
	return n
}

// Frames come out as they went in, however they are cut on their way and whenever the reader waits.
func TestInboundFrames(t *testing.T) {
	const bytesMax = 200_000
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(readBufferBytes-10, readBufferBytes+10),
			rapid.IntRange(0, bytesMax)), 1, 12).Draw(t, "sizes")
		var stream []byte
		var want [][]byte
		for i, size := range sizes {
			body := bytes.Repeat([]byte{byte(i + 1)}, size)
			want = append(want, body)
			stream = appendFrame(stream, body)
		}
		var in inbound
		var got [][]byte
		for len(stream) > 0 {
			if rapid.Bool().Draw(t, "parks before") {
				in.park()
			}
			stream = stream[receive(&in, stream, rapid.IntRange(1, 50_000).Draw(t, "chunk")):]
			for {
				frame, ok, err := in.next(bytesMax)
				require.NoError(t, err)
				if !ok {
					break
				}
				got = append(got, bytes.Clone(frame))
				if rapid.Bool().Draw(t, "parks between") {
					in.park()
				}
			}
		}
		require.Len(t, got, len(want))
		for i := range want {
			require.True(t, bytes.Equal(want[i], got[i]), "frame %d of %d bytes", i, len(want[i]))
		}
		require.Empty(t, in.unread())
		in.park()
		require.Zero(t, cap(in.rest)+cap(in.big))
		require.Nil(t, in.buf)
	})
}

// What is announced costs nothing until it comes.
func TestInboundMemory(t *testing.T) {
	const total = 1_000_000
	stream := appendFrame(nil, make([]byte, total))
	var in inbound
	received := 0
	for received < len(stream) {
		n := receive(&in, stream[received:], 1000)
		received += n
		_, ok, err := in.next(total)
		require.NoError(t, err)
		require.Equal(t, received == len(stream), ok)
		in.park()
		held := cap(in.rest) + cap(in.big)
		require.LessOrEqual(t, held, bigFrameGrowth*received, "after %d bytes", received)
		if received < readBufferBytes {
			require.LessOrEqual(t, held, received*5/4+16, "after %d bytes", received) // the allocator's rounding
		}
	}
}

func TestInboundLengths(t *testing.T) {
	for _, n := range []uint32{1001, 1 << 31, 0xffffffff, 0x47455420} {
		var in inbound
		head := binary.BigEndian.AppendUint32(nil, n)
		receive(&in, appendFrame(nil, []byte("first")), 100)
		receive(&in, head, 100)
		frame, ok, err := in.next(1000)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "first", string(frame))
		_, ok, err = in.next(1000)
		var tooLong *lengthError
		require.ErrorAs(t, err, &tooLong)
		require.Equal(t, int(int32(n)), tooLong.bytes)
		require.False(t, ok)
	}
	var in inbound
	receive(&in, appendFrame(nil, make([]byte, 1000)), 2000)
	_, ok, err := in.next(1000)
	require.NoError(t, err)
	require.True(t, ok)
}
