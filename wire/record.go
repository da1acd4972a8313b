package wire

import "zabra/jute"

// Record is a record of the protocol. Encode appends it. Decode overwrites every field of it; whether that went well
// says the decoder's error, and after an error the fields are unspecified.
//
// In records a nil []byte is a null string or buffer, and an empty one that is not nil an empty string or buffer. What
// Decode puts into []byte fields aliases the decoder's input.
type Record interface {
	Encode(*jute.Encoder)
	Decode(*jute.Decoder)
}

// encodeStrings writes a vector of strings; nil is the null vector.
func encodeStrings(e *jute.Encoder, v [][]byte) {
	encodeCount(e, len(v), v == nil)
	for _, s := range v {
		e.UString(s)
	}
}

// decodeStrings reads a vector of strings into the memory of v. The null vector gives nil, an empty one a slice that is
// not nil.
func decodeStrings(d *jute.Decoder, v [][]byte) [][]byte {
	n, null := d.Vector(stringBytesMin)
	if null || d.Err() != nil {
		return nil
	}
	if cap(v) < n || v == nil {
		v = make([][]byte, n)
	}
	v = v[:n]
	for i := range v {
		v[i] = d.UString()
	}
	return v
}
