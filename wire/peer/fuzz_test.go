package peer

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzReader feeds any bytes to a Reader. Whatever it accepts must be written again as the same bytes.
func FuzzReader(f *testing.F) {
	for _, s := range samples() {
		f.Add(encode(f, &s.message), uint8(purposeOf(kindOf[s.message.Kind])))
	}
	f.Add(append(frame(KindChunk, 0x93, 0, 2, 0xc4, 2, 1, 2), AppendKeepAlive(nil)...), uint8(PurposeQuorum))
	f.Fuzz(func(t *testing.T, b []byte, purpose uint8) {
		var e Encoder
		r := NewReader(bytes.NewReader(b), Purpose(purpose))
		read := 0
		for {
			fr, err := r.Next()
			if err != nil {
				requireReaderError(t, err)
				return
			}
			out := again(t, &e, fr)
			require.Equal(t, b[read:read+len(out)], out)
			read += len(out)
		}
	})
}

func requireReaderError(t *testing.T, err error) {
	var fe *FrameError
	if !errors.As(err, &fe) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("error of an unknown kind: %v", err)
	}
}

// again writes a frame that was read.
func again(t *testing.T, e *Encoder, f Frame) []byte {
	var out []byte
	var err error
	switch {
	case f.Message != nil:
		out, err = e.AppendMessage(nil, f.Message)
	case f.Kind == KindChunk:
		out, err = e.AppendChunk(nil, f.Chunk)
	default:
		out = AppendKeepAlive(nil)
	}
	require.NoError(t, err)
	return out
}

// FuzzBody feeds any bytes to the decoder of a kind's body, past the checksum.
func FuzzBody(f *testing.F) {
	for _, s := range samples() {
		f.Add(uint8(kindOf[s.message.Kind]), encode(f, &s.message)[headerBytes:])
	}
	f.Add(uint8(KindChunk), []byte{0x93, 0, 2, 0xc4, 2, 1, 2})
	f.Add(uint8(KindKeepAlive), []byte{0x90})
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		k := FrameKind(kind)
		if !k.Known() || len(body) > kinds[k].layout.bytesMax {
			return
		}
		b := frame(k, body...)
		r := NewReader(bytes.NewReader(b), purposeOf(k))
		fr, err := r.Next()
		if err != nil {
			requireReaderError(t, err)
			return
		}
		var e Encoder
		require.Equal(t, b, again(t, &e, fr))
	})
}

// FuzzHello feeds any bytes to both sides of a greeting.
func FuzzHello(f *testing.F) {
	h := Hello{From: 2, To: 1, Purpose: PurposeQuorum, ConfigVersion: 3}
	f.Add(greetingOf(Version, greetingHello, h.body()))
	f.Add(greetingOf(Version, greetingAccepted, h.body()))
	f.Add(greetingOf(7, greetingRefused, []byte("reason\n")))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		peer, err := Answer(&script{in: bytes.NewReader(b)}, Hello{From: 1, Purpose: PurposeQuorum}, nil)
		if err == nil {
			require.Equal(t, b[:greetingHeadBytes+len(peer.body())], greetingOf(Version, greetingHello, peer.body()))
		}
		peer, err = Greet(&script{in: bytes.NewReader(b)}, Hello{From: 1, To: 2, Purpose: PurposeQuorum})
		if err == nil {
			require.Equal(t, b[:greetingHeadBytes+len(peer.body())], greetingOf(Version, greetingAccepted, peer.body()))
		}
	})
}
