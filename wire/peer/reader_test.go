package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"zabra/zab"
)

// frame builds a frame with a right checksum around any body.
func frame(kind FrameKind, body ...byte) []byte {
	return seal(append(make([]byte, headerBytes), body...), 0, kind)
}

// requestFrame is a frame whose byte string of requests is made of parts.
func requestFrame(parts ...[]byte) []byte {
	list := bytes.Join(parts, nil)
	return frame(KindRequest, append([]byte{0x91, 0xc4, byte(len(list))}, list...)...)
}

func TestEveryPrefixRefused(t *testing.T) {
	for _, s := range samples() {
		whole := encode(t, &s.message)
		kind := kindOf[s.message.Kind]
		for n := range whole {
			frames, err := readAll(whole[:n], purposeOf(kind))
			require.Empty(t, frames)
			if n == 0 {
				require.Equal(t, io.EOF, err)
				continue
			}
			require.Equal(t, io.ErrUnexpectedEOF, err, "%s cut at %d", s.name, n)
		}
		// The same for a body whose frame is right.
		body := whole[headerBytes:]
		for n := range body {
			_, err := readAll(frame(kind, body[:n]...), purposeOf(kind))
			var fe *FrameError
			require.ErrorAs(t, err, &fe, "%s with a body cut at %d", s.name, n)
			require.Equal(t, kind, fe.Kind)
		}
		_, err := readAll(frame(kind, append(bytes.Clone(body), 0)...), purposeOf(kind))
		require.ErrorContains(t, err, "1 bytes are left after the last element")
	}
}

func TestEveryFlippedBitRefused(t *testing.T) {
	for _, s := range samples() {
		whole := encode(t, &s.message)
		for i := range 8 * len(whole) {
			b := bytes.Clone(whole)
			b[i/8] ^= 1 << (i % 8)
			frames, err := readAll(b, purposeOf(kindOf[s.message.Kind]))
			require.Error(t, err)
			require.Empty(t, frames, "%s with bit %d flipped", s.name, i)
		}
	}
}

func TestBadFrames(t *testing.T) {
	long := func(kind FrameKind, length uint32) []byte {
		b := frame(kind)
		binary.BigEndian.PutUint32(b, length)
		return b
	}
	badSum := frame(KindPing, 0x91, 1)
	badSum[5] ^= 1
	head := make([]byte, requestHeadBytes-2)
	bare := append(bytes.Clone(head), 0, 0, 0, 0, 0, 0)
	tests := []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"unknown kind", frame(99, 0x90), "bad FRAME-99 frame: unknown kind"},
		{"kind 0", frame(0, 0x90), "bad FRAME-0 frame: unknown kind"},
		{"election kind", frame(KindNotification, 0x90), "bad NOTIFICATION frame: it has no place on a connection of this purpose"},
		{"too long for a frame", long(KindProposal, FrameBytesMax), "a body of 68157440 bytes is longer than 68157431"},
		{"too long for its kind", long(KindAck, 129), "bad ACK frame: a body of 129 bytes is longer than 128"},
		{"checksum", badSum, "bad PING frame: the checksum does not match"},
		{"empty body", frame(KindPing), "the body ends too early"},
		{"a map", frame(KindPing, 0x81, 1, 2), "it begins with 0x81 instead of an array of 1 elements"},
		{"an element too few", frame(KindUpToDate, 0x91, 1), "it begins with 0x91 instead of an array of 2 elements"},
		{"an element too many", frame(KindPing, 0x92, 1, 2), "it begins with 0x92 instead of an array of 1 elements"},
		{"long form of the array", frame(KindPing, 0xdc, 0, 1, 1), "it begins with 0xdc"},
		{"nil", frame(KindPing, 0x91, 0xc0), "element 1: type 0xc0 instead of an unsigned integer"},
		{"float", frame(KindAck, 0x91, 0xca, 0, 0, 0, 0), "element 1: type 0xca instead of an integer"},
		{"negative id", frame(KindPing, 0x91, 0xff), "element 1: type 0xff instead of an unsigned integer"},
		{"number in a long form", frame(KindPing, 0x91, 0xcc, 5), "element 1: not in its shortest form"},
		{"number in a longer form", frame(KindPing, 0x91, 0xcf, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff), "element 1: not in its shortest form"},
		{"signed form of a positive number", frame(KindAck, 0x91, 0xd1, 0x7f, 0xff), "element 1: not in its shortest form"},
		{"negative number in a long form", frame(KindRefused, 0x94, 1, 1, 1, 0xd0, 0xff), "element 4: not in its shortest form"},
		{"zxid of 64 bits", frame(KindAck, 0x91, 0xcf, 0xff, 0, 0, 0, 0, 0, 0, 0), "does not fit into 64 bits with a sign"},
		{"negative zxid", frame(KindAck, 0x91, 0xff), "bad ACK frame: zxid -1 is negative"},
		{"number for a truth value", frame(KindRevalidated, 0x94, 1, 1, 1, 1), "element 3: type 0x01 instead of true or false"},
		{"string for bytes", frame(KindPong, 0x92, 1, 0xa0), "element 2: type 0xa0 instead of a byte string"},
		{"bytes for a string", frame(KindSnap, 0x94, 1, 1, 0xc4, 1, 'a', 0), "element 3: type 0xc4 instead of a string"},
		{"bytes longer than the body", frame(KindPong, 0x92, 1, 0xc6, 0xff, 0xff, 0xff, 0xff), "element 2: the body ends too early"},
		{"bytes in a long form", frame(KindPong, 0x92, 1, 0xc5, 0, 1, 7), "element 2: not in its shortest form"},
		{"epoch", frame(KindLeaderInfo, 0x91, 0xce, 0x80, 0, 0, 0), "epoch 2147483648 is above 2147483647"},
		{"half a touch", frame(KindPong, 0x92, 1, 0xc4, 1, 7), "1 bytes are no whole number of touches"},
		{"path for a name", frame(KindSnap, 0x94, 1, 1, 0xa3, '.', '.', '/', 0), `file name "../"`},
		{"hidden file", frame(KindSnap, 0x94, 1, 1, 0xa2, '.', 'a', 0), `file name ".a"`},
		{"no name", frame(KindSnap, 0x94, 1, 1, 0xa0, 0), "file name of 0 bytes"},
		{"negative offset", frame(KindSnap, 0x94, 1, 1, 0xa1, 'a', 0xff), "offset -1 is negative"},
		{"role", frame(KindRefused, 0x94, 1, 1, 1, 0xd3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff), "code -2147483649 does not fit into 32 bits"},
		{"no request", requestFrame(), "request 1 of a batch: it ends too early"},
		{"half a request", requestFrame(bare[:len(bare)-1]), "request 1 of a batch: it ends too early"},
		{"bytes behind a request", requestFrame(bare, []byte{7}), "request 2 of a batch: it ends too early"},
		{"record beyond the end", requestFrame(head, []byte{0, 0, 0, 0, 0, 9, 1}), "request 1 of a batch: it ends too early"},
		{"half an identity", requestFrame(head, []byte{0, 1, 0, 0, 0, 1, 'a'}), "request 1 of a batch: it ends too early"},
		{"identity beyond the end", requestFrame(head, []byte{0, 1, 0xff, 0xff, 0xff, 0xff, 'a'}), "request 1 of a batch: it ends too early"},
		{"many identities", requestFrame(head, []byte{4, 1}), "request 1 of a batch: 1025 identities"},
		{"identities of nothing", requestFrame(head, []byte{0xff, 0xff, 0, 0, 0, 0}), "there is none"},
		{"repeated identities", requestFrame(bare, bare), "request 2 of a batch: it repeats the identities"},
		{"chunk beyond its file", frame(KindChunk, 0x93, 5, 6, 0xc4, 2, 1, 2), "2 bytes at offset 5 of 6"},
		{"empty chunk in the middle", frame(KindChunk, 0x93, 5, 6, 0xc4, 0), "an empty chunk before the end of the file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(bytes.NewReader(append(tt.bytes, frame(KindPing, 0x91, 1)...)), PurposeQuorum)
			f, err := r.Next()
			require.Equal(t, Frame{}, f)
			var fe *FrameError
			require.ErrorAs(t, err, &fe)
			require.ErrorContains(t, err, tt.want)
			_, again := r.Next()
			require.Same(t, err, again, "what follows a bad frame is not read")
		})
	}
}

func TestBadNotifications(t *testing.T) {
	for want, body := range map[string][]byte{
		"role 4":                             {0x96, 1, 4, 1, 1, 1, 0},
		"configuration version -1":           {0x96, 1, 0, 1, 1, 1, 0xff},
		"epoch 4294967295 is above":          {0x96, 1, 0, 1, 1, 0xce, 0xff, 0xff, 0xff, 0xff, 0},
		"element 1: type 0xff instead of an": {0x96, 0xff, 0, 1, 1, 1, 0},
	} {
		_, err := readAll(frame(KindNotification, body...), PurposeElection)
		require.ErrorContains(t, err, want)
	}
	_, err := readAll(frame(KindPing, 0x91, 1), PurposeElection)
	require.ErrorContains(t, err, "it has no place on a connection of this purpose")
}

func TestBadBatches(t *testing.T) {
	entry := func(z uint64, payload string) []byte {
		b := binary.BigEndian.AppendUint64(nil, z)
		b = append(b, make([]byte, 24)...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
		return append(b, payload...)
	}
	over := entry(2, "abc")
	over[35]++
	tests := []struct {
		name  string
		batch []byte
		want  string
	}{
		{"not after the last", entry(1, "a"), "transaction 0x1 follows 0x1"},
		{"twice the same", append(entry(2, "a"), entry(2, "a")...), "transaction 0x2 follows 0x2"},
		{"beginning of an epoch", entry(1<<32, "a"), "0x100000000 is not the zxid of a transaction"},
		{"negative", entry(1<<63, "a"), "follows 0x1"},
		{"empty", entry(2, ""), "transaction 0x2 is empty"},
		{"rest", append(entry(2, "a"), 1, 2, 3), "3 bytes are left after 1 transactions"},
		{"cut", over, "transaction 1 of a batch has 4 bytes, 3 are there"},
	}
	for _, tt := range tests {
		body := append([]byte{0x93, 1, 0, 0xc4, byte(len(tt.batch))}, tt.batch...)
		_, err := readAll(frame(KindProposal, body...), PurposeQuorum)
		require.ErrorContains(t, err, tt.want, tt.name)
	}
}

func TestBadEnds(t *testing.T) {
	for want, ends := range map[string][]byte{
		"the end 0x1 of an epoch is out of order": {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1},
		"the end 0x3 of an epoch is out of order": {0, 0, 0, 0, 0, 0, 0, 3},
		"7 bytes are not the ends":                {0, 0, 0, 0, 0, 0, 0},
		"520 bytes are not the ends":              make([]byte, 520),
	} {
		body := []byte{0x99, 0, 2, 0xc5, byte(len(ends) >> 8), byte(len(ends))}
		if len(ends) < 256 {
			body = []byte{0x99, 0, 2, 0xc4, byte(len(ends))}
		}
		body = append(append(body, ends...), 0, 0xc2, 0, 0, 0xa0, 0)
		_, err := readAll(frame(KindAckEpoch, body...), PurposeQuorum)
		require.ErrorContains(t, err, want)
	}
}

// TestErrorsOfTheConnection: what the connection says comes through as it is.
func TestErrorsOfTheConnection(t *testing.T) {
	broken := errors.New("connection reset")
	r := NewReader(iotest.ErrReader(broken), PurposeQuorum)
	_, err := r.Next()
	require.Equal(t, broken, err)
}

// TestMemoryComesAfterBytes: a long body that is announced and does not come costs little.
func TestMemoryComesAfterBytes(t *testing.T) {
	b := frame(KindProposal)
	binary.BigEndian.PutUint32(b, FrameBytesMax-headerBytes)
	r := NewReader(io.MultiReader(bytes.NewReader(b), strings.NewReader(strings.Repeat("x", 3<<20))), PurposeQuorum)
	_, err := r.Next()
	require.Equal(t, io.ErrUnexpectedEOF, err)
	require.LessOrEqual(t, cap(r.body), 8<<20)

	allocated := testing.AllocsPerRun(1, func() {
		r := NewReader(bytes.NewReader(b), PurposeQuorum)
		_, _ = r.Next()
	})
	require.Less(t, allocated, 20.0)
}

// TestMessagesOwnTheirMemory reads many frames with one Reader and looks at the messages afterwards.
func TestMessagesOwnTheirMemory(t *testing.T) {
	var e Encoder
	var stream []byte
	var want []*zab.Message
	for range 3 {
		for _, s := range samples() {
			if purposeOf(kindOf[s.message.Kind]) == PurposeQuorum {
				var err error
				stream, err = e.AppendMessage(stream, &s.message)
				require.NoError(t, err)
				want = append(want, &s.message)
			}
		}
	}
	for _, chunked := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
		r := NewReader(chunked, PurposeQuorum)
		var got []*zab.Message
		for f, err := r.Next(); ; f, err = r.Next() {
			if err != nil {
				require.Equal(t, io.EOF, err)
				break
			}
			got = append(got, f.Message)
		}
		clear(r.body)
		require.Equal(t, want, got)
	}
}

// TestLongBatch goes to the limit of a frame.
func TestLongBatch(t *testing.T) {
	var e Encoder
	m := zab.Message{Kind: zab.MessageProposal, Entries: []zab.Entry{{Zxid: 1, Payload: make([]byte, EntryBytesMax)}}}
	b, err := e.AppendMessage(nil, &m)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b), FrameBytesMax)
	require.LessOrEqual(t, cap(e.bodies.batch.Entries), scratchBytesMax, "the buffer of one long batch is not kept")
	frames, err := readAll(b, PurposeQuorum)
	require.Equal(t, io.EOF, err)
	require.Len(t, frames, 1)
	require.Len(t, frames[0].Message.Entries[0].Payload, EntryBytesMax)

	m.Entries[0].Payload = make([]byte, FrameBytesMax)
	_, err = e.AppendMessage(nil, &m)
	require.ErrorContains(t, err, "too long for a frame")
}
