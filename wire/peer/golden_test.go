package peer

import (
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares bytes with those of a file in testdata, as hex in lines of 32 bytes.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".hex")
	if *update {
		var text strings.Builder
		for rest := got; len(rest) > 0; {
			n := min(32, len(rest))
			fmt.Fprintf(&text, "%x\n", rest[:n])
			rest = rest[n:]
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	require.NoError(t, err)
	require.Equal(t, want, got, "%s differs: the bytes of the dialect have changed", name)
}

func TestGoldenMessages(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			b := encode(t, &s.message)
			golden(t, s.name, b)
			kind := kindOf[s.message.Kind]
			frames, err := readAll(b, purposeOf(kind))
			require.ErrorIs(t, err, io.EOF)
			require.Len(t, frames, 1)
			require.Equal(t, kind, frames[0].Kind)
			require.Equal(t, &s.message, frames[0].Message)
		})
	}
}

func TestGoldenChunkAndKeepAlive(t *testing.T) {
	var e Encoder
	b, err := e.AppendChunk(nil, Chunk{Offset: 1 << 32, Size: 1<<32 + 5, Data: []byte("bytes")})
	require.NoError(t, err)
	golden(t, "chunk", b)
	empty, err := e.AppendChunk(nil, Chunk{Offset: 7, Size: 7})
	require.NoError(t, err)
	golden(t, "chunk-empty", empty)
	golden(t, "keepalive", AppendKeepAlive(nil))

	frames, err := readAll(AppendKeepAlive(append(b, empty...)), PurposeQuorum)
	require.ErrorIs(t, err, io.EOF)
	require.Len(t, frames, 3)
	require.Equal(t, KindChunk, frames[0].Kind)
	require.True(t, frames[1].Chunk.Last())
	require.Equal(t, Frame{Kind: KindKeepAlive}, frames[2])
}

// TestGoldenExample is the frame that the package's documentation takes apart.
func TestGoldenExample(t *testing.T) {
	m := zab.Message{Kind: zab.MessageCommit, Zxid: z(8, 2)}
	require.Equal(t, "0000000a"+"04"+"f98924f7"+"91"+"cf0000000800000002", hex.EncodeToString(encode(t, &m)))
}
