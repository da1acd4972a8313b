package adler

import (
	"bytes"
	"hash/adler32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sum is that of the standard library, whatever the bytes are and wherever they are divided.
func TestSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 3*blockBytes+77)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	for _, data := range [][]byte{random, bytes.Repeat([]byte{0xff}, 5*blockBytes+31), make([]byte, 1000), []byte("Wikipedia")} {
		for n := 0; n <= len(data); n = n*3/2 + 1 {
			require.Equal(t, adler32.Checksum(data[:n]), Update(1, data[:n]), "%d bytes", n)
		}
		whole := New()
		for rest := data; len(rest) > 0; {
			n := min(1+rnd.IntN(blockBytes), len(rest))
			_, err := whole.Write(rest[:n])
			require.NoError(t, err)
			rest = rest[n:]
		}
		require.Equal(t, adler32.Checksum(data), whole.Sum32())
	}
	require.Equal(t, uint32(0x11e60398), Update(1, []byte("Wikipedia")))
}

// The worst bytes with the worst sums to begin with do not overflow anything.
func TestSumAtItsLimits(t *testing.T) {
	const start = (modulus-1)<<16 | (modulus - 1)
	data := bytes.Repeat([]byte{0xff}, 2*blockBytes)
	a, b := uint64(modulus-1), uint64(modulus-1)
	for _, c := range data {
		a = (a + uint64(c)) % modulus
		b = (b + a) % modulus
	}
	require.Equal(t, uint32(b)<<16|uint32(a), Update(start, data))
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("abc"), 1)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		at = max(0, min(at, len(data)))
		require.Equal(t, adler32.Checksum(data), Update(Update(1, data[:at]), data[at:]))
	})
}

func BenchmarkSum(b *testing.B) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 16<<10/16)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			Update(1, data)
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			adler32.Checksum(data)
		}
	})
}
