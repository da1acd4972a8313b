package replica

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"pgregory.net/rapid"
)

// Pieces never overlap, whatever their size, whether they outgrow the room that was asked for or not.
func TestSlabPiecesAreApart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := slab{bytes: 256}
		var pieces, want [][]byte
		for i := range rapid.IntRange(1, 60).Draw(rt, "pieces") {
			asked, used := rapid.IntRange(0, 90).Draw(rt, "asked"), rapid.IntRange(0, 120).Draw(rt, "used")
			text := bytes.Repeat([]byte{byte(i)}, used)
			pieces, want = append(pieces, s.keep(append(s.room(asked), text...))), append(want, text)
			if rapid.Bool().Draw(rt, "text") {
				require.Equal(rt, string(text), s.text(text))
			}
		}
		for i := range pieces {
			require.True(rt, bytes.Equal(want[i], pieces[i]), "piece %d", i)
			_ = append(pieces[i], 0xff) // must not reach into the next one
		}
		for i := range pieces {
			require.True(rt, bytes.Equal(want[i], pieces[i]), "piece %d after appending", i)
		}
	})
}

// Buffers of requests go back empty: nothing of one connection is left for another.
func TestItemBuffersGoBackEmpty(t *testing.T) {
	var f fifo
	for round := range 3 {
		arrived := &itemBuffer{make([]item, 0, 4)}
		for i := range 100 {
			arrived.items = append(arrived.items, item{seq: uint64(i), body: []byte("secret")})
		}
		f.push(item{seq: 1000})
		f.take(arrived)
		require.Empty(t, arrived.items, "given back")
		for range 101 {
			f.pop()
		}
		require.True(t, f.empty())
		require.Nil(t, f.buf, "round %d", round)
		for _, it := range arrived.items[:cap(arrived.items)] {
			require.Nil(t, it.body)
		}
	}
}

func TestOutputBuffersBySize(t *testing.T) {
	for _, tt := range []struct{ bytes, want int }{{0, 256}, {256, 256}, {257, 2 << 10}, {2 << 10, 2 << 10}, {2<<10 + 1, 16 << 10}, {1 << 20, 16 << 10}} {
		require.GreaterOrEqual(t, cap(borrowBuffer(bufferClass(tt.bytes))), tt.want, tt.bytes)
	}
	ReleaseOutput(nil)
	ReleaseOutput(make([]byte, 10))
	ReleaseOutput(make([]byte, bufferKeptBytesMax+1))
	grown := make([]byte, 100, 3<<10)
	ReleaseOutput(grown)
	require.GreaterOrEqual(t, cap(borrowBuffer(bufferClass(2<<10))), 2<<10)
}
