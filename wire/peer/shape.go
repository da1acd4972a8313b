package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// The types of msgpack that bodies use, by their first byte.
const (
	fixIntMax = 0x7f
	fixArray  = 0x90
	fixStr    = 0xa0
	codeFalse = 0xc2
	codeTrue  = 0xc3
	codeBin8  = 0xc4
	codeBin16 = 0xc5
	codeBin32 = 0xc6
	codeUint8 = 0xcc
	codeInt8  = 0xd0
	codeInt64 = 0xd3
	codeStr8  = 0xd9
	codeStr16 = 0xda
	codeStr32 = 0xdb
	negFixInt = 0xe0
)

var errShort = errors.New("the body ends too early")

// checkShape makes sure that a body is an array with exactly the elements of shape, each of its type and in its shortest
// form, and nothing after it. The library that decodes it afterwards is more lenient than that: it takes nil for
// anything, leaves out what is missing, skips what it does not know, and believes lengths.
//
// The letters of a shape: u an unsigned integer, i a signed one, b true or false, s a string, d a byte string ("data").
func checkShape(body []byte, shape string) error {
	if len(body) == 0 {
		return errShort
	}
	if body[0] != fixArray|byte(len(shape)) {
		return fmt.Errorf("it begins with %#02x instead of an array of %d elements", body[0], len(shape))
	}
	rest := body[1:]
	for i := range len(shape) {
		n, err := elementLength(rest, shape[i])
		if err != nil {
			return fmt.Errorf("element %d: %w", i+1, err)
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes are left after the last element", len(rest))
	}
	return nil
}

// elementLength checks the element that b begins with and returns its length in bytes.
func elementLength(b []byte, letter byte) (int, error) {
	if len(b) == 0 {
		return 0, errShort
	}
	switch letter {
	case 'u':
		return intLength(b, false)
	case 'i':
		return intLength(b, true)
	case 'b':
		if b[0] != codeFalse && b[0] != codeTrue {
			return 0, wrongType(b, "true or false")
		}
		return 1, nil
	case 's':
		return textLength(b)
	case 'd':
		return dataLength(b)
	}
	panic("peer: unknown letter in a shape: " + string(letter))
}

func wrongType(b []byte, want string) error {
	return fmt.Errorf("type %#02x instead of %s", b[0], want)
}

var errLong = errors.New("not in its shortest form")

// intLength checks an integer. Numbers from 0 are unsigned in msgpack whatever their type here.
func intLength(b []byte, signed bool) (int, error) {
	switch c := b[0]; {
	case c <= fixIntMax:
		return 1, nil
	case c >= negFixInt && signed:
		return 1, nil
	case c >= codeUint8 && c < codeInt8:
		width := 1 << (c - codeUint8)
		v, err := bigEndian(b[1:], width)
		switch {
		case err != nil:
			return 0, err
		case signed && v > math.MaxInt64:
			return 0, fmt.Errorf("%d does not fit into 64 bits with a sign", v)
		case width == 1 && v <= fixIntMax, width > 1 && v>>(4*width) == 0:
			return 0, errLong
		}
		return 1 + width, nil
	case c >= codeInt8 && c <= codeInt64 && signed:
		return negativeLength(b)
	}
	if signed {
		return 0, wrongType(b, "an integer")
	}
	return 0, wrongType(b, "an unsigned integer")
}

// negativeLength checks a number below the 32 that take one byte.
func negativeLength(b []byte) (int, error) {
	width := 1 << (b[0] - codeInt8)
	v, err := bigEndian(b[1:], width)
	if err != nil {
		return 0, err
	}
	shift := 64 - 8*width
	n := int64(v<<shift) >> shift
	if width == 1 && n >= -32 || width > 1 && n >= -1<<(4*width-1) {
		return 0, errLong
	}
	return 1 + width, nil
}

// bigEndian reads a number of 1, 2, 4 or 8 bytes.
func bigEndian(b []byte, width int) (uint64, error) {
	if len(b) < width {
		return 0, errShort
	}
	switch width {
	case 1:
		return uint64(b[0]), nil
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), nil
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), nil
	}
	return binary.BigEndian.Uint64(b), nil
}

func textLength(b []byte) (int, error) {
	switch b[0] {
	case codeStr8:
		return sizedLength(b, 1, 32)
	case codeStr16:
		return sizedLength(b, 2, 1<<8)
	case codeStr32:
		return sizedLength(b, 4, 1<<16)
	}
	n := int(b[0]) - fixStr
	if n < 0 || n > 31 {
		return 0, wrongType(b, "a string")
	}
	if len(b) < 1+n {
		return 0, errShort
	}
	return 1 + n, nil
}

func dataLength(b []byte) (int, error) {
	switch b[0] {
	case codeBin8:
		return sizedLength(b, 1, 0)
	case codeBin16:
		return sizedLength(b, 2, 1<<8)
	case codeBin32:
		return sizedLength(b, 4, 1<<16)
	}
	return 0, wrongType(b, "a byte string")
}

// sizedLength checks a string whose length stands in width bytes and is at least low, or it could stand in fewer.
func sizedLength(b []byte, width int, low uint64) (int, error) {
	n, err := bigEndian(b[1:], width)
	switch {
	case err != nil:
		return 0, err
	case n < low:
		return 0, errLong
	case n > uint64(len(b)-1-width):
		return 0, errShort
	}
	return 1 + width + int(n), nil
}
