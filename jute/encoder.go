package jute

import "encoding/binary"

// Encoder appends values to a byte slice. The zero value is ready for use and starts with an empty slice. It cannot
// fail: the sizes of what is written are the caller's own.
type Encoder struct {
	b []byte
}

// Reset makes the encoder continue behind the content of b, whose spare capacity it uses. Reset(buf[:0]) recycles buf.
func (e *Encoder) Reset(b []byte) { e.b = b }

// Bytes returns all that has been written, what Reset was given included. The slice is valid until the next write.
func (e *Encoder) Bytes() []byte { return e.b }

// Len returns the number of bytes written, what Reset was given included. It is the offset of the next value.
func (e *Encoder) Len() int { return len(e.b) }

// Bool writes one byte, 0 or 1.
func (e *Encoder) Bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// Byte writes one byte.
func (e *Encoder) Byte(v byte) { e.b = append(e.b, v) }

// Int32 writes 4 bytes.
func (e *Encoder) Int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }

// Int64 writes 8 bytes.
func (e *Encoder) Int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

// Count writes the length of a vector, in elements; the elements follow. -1 is the null vector.
func (e *Encoder) Count(n int) { e.Int32(int32(n)) }

// Raw writes b as it is, without a length.
func (e *Encoder) Raw(b []byte) { e.b = append(e.b, b...) }

// Buffer writes a length and the bytes of b. A nil b is null; an empty one that is not nil has length 0.
func (e *Encoder) Buffer(b []byte) {
	if b == nil {
		e.Int32(nullLength)
		return
	}
	e.Int32(int32(len(b)))
	e.b = append(e.b, b...)
}

// UString writes b, which holds UTF-8, as a string; nil is null. Characters above U+FFFF come out as two sequences of
// three bytes, one for each UTF-16 surrogate (the form known as CESU-8), because ZooKeeper writes them so. Bytes that
// are not UTF-8 are written unchanged; none come out of a Decoder.
func (e *Encoder) UString(b []byte) {
	if hasSupplementary(b) {
		e.surrogates(b)
		return
	}
	e.Buffer(b)
}

// String writes s like UString. It is never null: "" has length 0.
func (e *Encoder) String(s string) {
	for i := range len(s) {
		if s[i] >= lead4Min {
			e.surrogates([]byte(s))
			return
		}
	}
	e.Int32(int32(len(s)))
	e.b = append(e.b, s...)
}

// PatchInt32 overwrites the 4 bytes at offset off, which must have been written before. It serves lengths that are
// known only once what they measure has been written.
func (e *Encoder) PatchInt32(off int, v int32) {
	binary.BigEndian.PutUint32(e.b[off:off+4], uint32(v))
}

// surrogates writes a string that has characters above U+FFFF.
func (e *Encoder) surrogates(b []byte) {
	length := e.Len()
	e.Int32(0)
	e.b = appendSurrogates(e.b, b)
	e.PatchInt32(length, int32(e.Len()-length-4))
}
