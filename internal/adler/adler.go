// Package adler computes Adler-32 (RFC 1950), the checksum of every record of a log and of every snapshot. The standard library
// adds up byte by byte, and was a twelfth of all that a server under creates did; this adds up eight bytes at a time, in lanes
// of a word, and takes half the time.
package adler

import (
	"encoding/binary"
	"hash"
)

const (
	modulus = 65521
	// blockBytes is how much is added up before the sums have to be reduced: a multiple of strideBytes with which neither
	// sum comes near the end of its 64 bits. (The usual bound of 5,552 is that of 32 bits.)
	blockBytes = 1 << 14
	// strideBytes is eight words. With more of them the lanes below would overflow.
	strideBytes = 64

	evenBytes = 0x00ff00ff00ff00ff
	// Multiplying four lanes of 16 bits by these leaves a sum of them in the topmost one: of each lane once, or of the bytes of
	// a word, each as many times as bytes follow it in the word, itself included.
	laneOnes = 0x0001_0001_0001_0001
	laneEven = 0x0008_0006_0004_0002 // bytes 0, 2, 4, 6 of a word, the first in the lowest lane
	laneOdd  = 0x0007_0005_0003_0001 // bytes 1, 3, 5, 7
	laneTop  = 48
)

// Checksum returns the checksum of p.
func Checksum(p []byte) uint32 { return Update(1, p) }

// Update adds p to a checksum. That of nothing is 1.
func Update(sum uint32, p []byte) uint32 {
	a, b := uint64(sum&0xffff), uint64(sum>>16)
	for len(p) >= strideBytes {
		block := p[:min(len(p), blockBytes)&^(strideBytes-1)]
		p = p[len(block):]
		for ; len(block) >= strideBytes; block = block[strideBytes:] {
			s, w := words((*[strideBytes]byte)(block))
			b += strideBytes*a + w
			a += s
		}
		a, b = a%modulus, b%modulus
	}
	for _, c := range p {
		a += uint64(c)
		b += a
	}
	return uint32(b%modulus)<<16 | uint32(a%modulus)
}

// words returns the sum of the bytes, and their sum with the weights 64 to 1. In its loop, even and odd are the sums of
// the words so far, in lanes, and evens and odds the sums of those: each word as many times as words follow it.
func words(p *[strideBytes]byte) (sum, weighted uint64) {
	var even, odd, evens, odds uint64
	for i := 0; i < strideBytes; i += 8 {
		word := binary.LittleEndian.Uint64(p[i:])
		evens, odds = evens+even, odds+odd
		even, odd = even+word&evenBytes, odd+word>>8&evenBytes
	}
	sum = (even + odd) * laneOnes >> laneTop
	weighted = 8*((evens+odds)*laneOnes>>laneTop) + even*laneEven>>laneTop + odd*laneOdd>>laneTop
	return sum, weighted
}

// digest is the checksum so far.
type digest uint32

// New returns the checksum as a hash.
func New() hash.Hash32 {
	d := new(digest)
	d.Reset()
	return d
}

func (d *digest) Reset()         { *d = 1 }
func (d *digest) Size() int      { return 4 }
func (d *digest) BlockSize() int { return strideBytes }
func (d *digest) Sum32() uint32  { return uint32(*d) }

func (d *digest) Write(p []byte) (int, error) {
	*d = digest(Update(uint32(*d), p))
	return len(p), nil
}

func (d *digest) Sum(b []byte) []byte { return binary.BigEndian.AppendUint32(b, d.Sum32()) }
