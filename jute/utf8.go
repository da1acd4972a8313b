package jute

import (
	"encoding/binary"
	"unicode/utf8"
)

// lead4Min is the first byte of the lowest UTF-8 sequence of 4 bytes. Such sequences, and only they, stand for
// characters above U+FFFF.
const lead4Min = 0xf0

// hasSupplementary reports whether b, if it is UTF-8, has a character above U+FFFF.
func hasSupplementary(b []byte) bool {
	const highBits = 0x8080808080808080
	for len(b) >= 8 && binary.LittleEndian.Uint64(b)&highBits == 0 {
		b = b[8:]
	}
	for _, c := range b {
		if c >= lead4Min {
			return true
		}
	}
	return false
}

// appendSurrogates appends b to dst, each character above U+FFFF as its two UTF-16 surrogates, each of them in three
// bytes as if it were a character.
func appendSurrogates(dst, b []byte) []byte {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if size == 4 {
			// 20 bits are left when the offset of the supplementary planes is taken off; each surrogate carries 10.
			r -= 0x10000
			dst = append3(dst, 0xd800+r>>10)
			dst = append3(dst, 0xdc00+r&0x3ff)
		} else {
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
	return dst
}

// append3 appends the three-byte form of r, which utf8.AppendRune would refuse for a surrogate.
func append3(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// appendRepaired appends b to dst with each malformed sequence replaced by one U+FFFD.
func appendRepaired(dst, b []byte) []byte {
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			dst = utf8.AppendRune(dst, utf8.RuneError)
			size = malformedLen(b)
		} else {
			dst = append(dst, b[:size]...)
		}
		b = b[size:]
	}
	return dst
}

// malformedLen returns how many bytes at the start of b, which are not valid UTF-8, Java's decoder takes for one
// malformed sequence: the lead byte and the bytes behind it that can continue it. It differs in one point from what
// Unicode recommends (and from Go, which takes single bytes): an encoded surrogate, ED A0 80 to ED BF BF, is one
// sequence and not three.
func malformedLen(b []byte) int {
	var want int
	low, high := byte(0x80), byte(0xbf) // range of the second byte
	switch lead := b[0]; {
	case lead < 0xc2, lead > 0xf4:
		return 1
	case lead < 0xe0:
		want = 2
	case lead < lead4Min:
		want = 3
		if lead == 0xe0 {
			low = 0xa0 // lower ones would be overlong
		}
	default:
		want = 4
		if lead == 0xf0 {
			low = 0x90 // lower ones would be overlong
		} else if lead == 0xf4 {
			high = 0x8f // higher ones would be above U+10FFFF
		}
	}
	n := 1
	for n < want && n < len(b) && low <= b[n] && b[n] <= high {
		low, high = 0x80, 0xbf
		n++
	}
	return n
}
