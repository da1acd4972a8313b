package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// FieldBytesMaxDefault bounds one string or buffer unless configured otherwise: ZooKeeper's default for jute.maxbuffer
// (0xfffff) plus that for its extra size (the same).
const FieldBytesMaxDefault = 2 * 0xfffff

// nullLength is the length that stands for a null string, buffer or vector.
const nullLength = -1

// A Decoder fails with one of these, wrapped with what was read and where.
var (
	// ErrShort says that the input ends before the value does.
	ErrShort = errors.New("jute: input too short")
	// ErrLength says that a length is below -1, or above the bound of a field, or more than the input can hold.
	ErrLength = errors.New("jute: bad length")
)

// Decoder consumes values from a byte slice. Its error is sticky: once a value could not be read, that one and all
// later ones are zero values, nothing remains, and Err says what went wrong, so a record is decoded without a look at
// errors and checked once at its end. A Decoder is a value; copies go on independently of each other.
type Decoder struct {
	b             []byte // what is left
	size          int    // length of the whole input, to tell offsets in errors
	fieldBytesMax int
	err           error
}

// NewDecoder starts at the beginning of b. What it returns aliases b. fieldBytesMax bounds the length of one string or
// buffer, in bytes; 0 or less stands for FieldBytesMaxDefault.
func NewDecoder(b []byte, fieldBytesMax int) Decoder {
	if fieldBytesMax <= 0 {
		fieldBytesMax = FieldBytesMaxDefault
	}
	return Decoder{b: b, size: len(b), fieldBytesMax: fieldBytesMax}
}

// Bool reads one byte; anything but 0 is true.
func (d *Decoder) Bool() bool { return d.Byte() != 0 }

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if len(d.b) < 1 {
		d.short(1)
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// Int32 reads 4 bytes.
func (d *Decoder) Int32() int32 {
	if len(d.b) < 4 {
		d.short(4)
		return 0
	}
	v := int32(binary.BigEndian.Uint32(d.b))
	d.b = d.b[4:]
	return v
}

// Int64 reads 8 bytes.
func (d *Decoder) Int64() int64 {
	if len(d.b) < 8 {
		d.short(8)
		return 0
	}
	v := int64(binary.BigEndian.Uint64(d.b))
	d.b = d.b[8:]
	return v
}

// Buffer reads a length and as many bytes. The result aliases the input and has no spare capacity. It is nil if the
// buffer is null, and neither nil nor longer than 0 if it is empty. A length below -1 or above the bound of a field is
// ErrLength, one beyond the end of the input ErrShort.
func (d *Decoder) Buffer() []byte {
	n := int(d.Int32())
	if n == nullLength || d.err != nil {
		return nil
	}
	if n < 0 || n > d.fieldBytesMax {
		d.badField(n)
		return nil
	}
	if n > len(d.b) {
		d.short(n)
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

// UString reads a string like Buffer. If its bytes are not UTF-8, the result is a copy in which each malformed sequence
// is replaced by one U+FFFD; malformed text is never an error. Sequences are told apart as Java does, so that a name
// comes out with the same characters, and the same number of them, as in ZooKeeper.
func (d *Decoder) UString() []byte {
	b := d.Buffer()
	if utf8.Valid(b) {
		return b
	}
	return appendRepaired(make([]byte, 0, len(b)+utf8.UTFMax), b)
}

// Vector reads the length of a vector, in elements. A null vector gives (0, true). Any other negative count gives an
// empty vector, as in ZooKeeper. elemBytesMin is the least number of bytes that an element takes, at least 1: a count
// that cannot fit into what is left is ErrLength, so the caller may take memory for n elements at once.
func (d *Decoder) Vector(elemBytesMin int) (n int, null bool) {
	n = int(d.Int32())
	if n < 0 {
		return 0, n == nullLength
	}
	if n > len(d.b)/max(elemBytesMin, 1) {
		d.badCount(n, elemBytesMin)
		return 0, false
	}
	return n, false
}

// Remaining returns the number of bytes not yet consumed, 0 after an error.
func (d *Decoder) Remaining() int { return len(d.b) }

// Rest consumes and returns all that is left. It aliases the input.
func (d *Decoder) Rest() []byte {
	v := d.b
	d.b = d.b[len(d.b):]
	return v
}

// Err returns the first error, or nil.
func (d *Decoder) Err() error { return d.err }

// Fail makes err the decoder's error unless there is one already, for values that are well formed but not allowed. A
// nil err changes nothing.
func (d *Decoder) Fail(err error) {
	if d.err != nil || err == nil {
		return
	}
	d.err = err
	// With nothing left, each read takes its error path and gives a zero value: the fast paths need not look at err.
	d.b = nil
}

// The functions below make errors. They are apart from the reads so that those can be inlined.

func (d *Decoder) short(want int) {
	if d.err == nil {
		d.Fail(fmt.Errorf("%w: %d bytes wanted at offset %d, %d left", ErrShort, want, d.offset(), len(d.b)))
	}
}

func (d *Decoder) badField(n int) {
	d.Fail(fmt.Errorf("%w: field of %d bytes before offset %d, at most %d allowed", ErrLength, n, d.offset(), d.fieldBytesMax))
}

func (d *Decoder) badCount(n, elemBytesMin int) {
	d.Fail(fmt.Errorf("%w: vector of %d elements before offset %d, each of %d bytes or more, %d left",
		ErrLength, n, d.offset(), elemBytesMin, len(d.b)))
}

func (d *Decoder) offset() int { return d.size - len(d.b) }
