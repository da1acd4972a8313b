package jute

import (
	"encoding/hex"
	"hash"
	"hash/crc32"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// What Java 17 makes of these, one by one.
func TestRepairVectors(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"never valid", "ff", "efbfbd"},
		{"path", "2fff", "2fefbfbd"},
		{"cut after the lead", "c2", "efbfbd"},
		{"lead without continuation", "c241", "efbfbd41"},
		{"overlong of two", "c0af", "efbfbdefbfbd"},
		{"overlong of three", "e08080", "efbfbdefbfbdefbfbd"},
		{"overlong of four", "f08f8080", "efbfbdefbfbdefbfbdefbfbd"},
		{"surrogate pair", "eda0bdedb880", "efbfbdefbfbd"},
		{"surrogate cut at the end", "eda0", "efbfbd"},
		{"surrogate cut by a character", "eda041", "efbfbd41"},
		{"three of four", "f09f98", "efbfbd"},
		{"two of four", "f09f41", "efbfbd41"},
		{"above the last character", "f4908080", "efbfbdefbfbdefbfbdefbfbd"},
		{"lead above f4", "f5808080", "efbfbdefbfbdefbfbdefbfbd"},
		{"five bytes", "f880808080", "efbfbdefbfbdefbfbdefbfbdefbfbd"},
		{"two of three", "e28241", "efbfbd41"},
		{"lead before a character", "e2e282ac", "efbfbde282ac"},
		{"lone continuations", "80bf", "efbfbdefbfbd"},
		{"among valid ones", "61c3a9ff62", "61c3a9efbfbd62"},
		{"valid, four bytes", "f09f9880", "f09f9880"},
		{"valid, replacement character itself", "efbfbd", "efbfbd"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := decodeString(t, unhex(t, tt.in))
			require.NotNil(t, got)
			require.Equal(t, tt.want, hex.EncodeToString(got))
		})
	}
}

// The checksums are printed by testdata/JavaUTF8.java. They cover all sequences of up to two bytes, and all of up to
// four out of the bytes at which a decoder has to decide something.
func TestRepairAsJava(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	edges := []byte{
		0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
		0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff,
	}
	require.Equal(t, uint32(0xd365e6ec), repairSum(all, 2))
	require.Equal(t, uint32(0x0e9fa9ea), repairSum(edges, 4))
}

func repairSum(alphabet []byte, lengthMax int) uint32 {
	sum := crc32.NewIEEE()
	for n := range lengthMax + 1 {
		repairWalk(sum, alphabet, make([]byte, n), 0)
	}
	return sum.Sum32()
}

func repairWalk(sum hash.Hash32, alphabet, b []byte, at int) {
	if at == len(b) {
		var out [64]byte
		got := appendRepaired(out[:1], b)
		got[0] = byte(len(got) - 1)
		sum.Write(got)
		return
	}
	for _, c := range alphabet {
		b[at] = c
		repairWalk(sum, alphabet, b, at+1)
	}
}

func TestRepairProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "b")
		got := appendRepaired(nil, b)
		require.True(t, utf8.Valid(got))
		if utf8.Valid(b) {
			require.Equal(t, string(b), string(got))
		}
		require.LessOrEqual(t, utf8.RuneCount(got), utf8.RuneCount(b), "Go tells more sequences apart than Java")
	})
}

func TestSurrogates(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"grinning face", "\U0001f600", "eda0bdedb880"},
		{"first", "\U00010000", "eda080edb080"},
		{"last", "\U0010ffff", "edafbfedbfbf"},
		{"among others", "/aé€\U0001f600/b", "2f61c3a9e282aceda0bdedb8802f62"},
		{"behind eight plain ones", "12345678\U0001f600", "3132333435363738eda0bdedb880"},
		{"none", "/aé€\uffff", "2f61c3a9e282acefbfbf"},
		{"malformed bytes stay", "\xf0a\xff", "f061ff"},
		{"malformed beside a pair", "\xff\U0001f600\xf0", "ffeda0bdedb880f0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var bytes, text Encoder
			bytes.UString([]byte(tt.in))
			text.String(tt.in)
			require.Equal(t, tt.want, hex.EncodeToString(bytes.Bytes()[4:]))
			require.Equal(t, len(tt.want)/2, int(bytes.Bytes()[3]), "length")
			require.Equal(t, bytes.Bytes(), text.Bytes())
		})
	}
}

// decodeString decodes b as a string by way of UString.
func decodeString(t *testing.T, b []byte) []byte {
	t.Helper()
	var e Encoder
	e.Buffer(b)
	d := NewDecoder(e.Bytes(), 0)
	got := d.UString()
	require.NoError(t, d.Err())
	require.Zero(t, d.Remaining())
	return got
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}
