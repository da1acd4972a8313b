package bench

import (
	"bytes"
	"encoding/binary"
	"strings"

	"zabra/jute"
	"zabra/wire"
)

const (
	// numberDigits is the width of all numbers in paths, so that they can be patched.
	numberDigits = 6
	// xidAt is where the xid stands in a frame.
	xidAt = wire.FrameHeadBytes
)

// numbersMax is how many numbers there are.
const numbersMax = 1_000_000

// number stands for a number in the path of a template. Its bytes are in no path and in no data.
var number = strings.Repeat("\x01", numberDigits)

// template is a request as a whole frame, with the places where one request differs from another.
type template struct {
	frame []byte
	at    []int // offsets of the numbers
	write bool
}

// newTemplate encodes a request. A record with number in its paths has a place for each.
func newTemplate(op wire.Op, record wire.Record) *template {
	var e jute.Encoder
	wire.AppendRequest(&e, wire.RequestHeader{Op: op}, record)
	t := &template{frame: bytes.Clone(e.Bytes()), write: op.Info().Class == wire.ClassWrite}
	for from := 0; ; {
		i := bytes.Index(t.frame[from:], []byte(number))
		if i < 0 {
			return t
		}
		t.at = append(t.at, from+i)
		from += i + numberDigits
	}
}

// append adds the frame to b and returns where it starts, for put.
func (t *template) append(b []byte, xid int32) (frames []byte, start int) {
	start = len(b)
	b = append(b, t.frame...)
	binary.BigEndian.PutUint32(b[start+xidAt:], uint32(xid))
	return b, start
}

// put writes a number to one of the places of the frame that starts at start.
func (t *template) put(b []byte, start, place int, n uint32) {
	putNumber(b[start+t.at[place]:], n)
}

// pairs are the numbers 00 to 99.
var pairs = func() (p [200]byte) {
	for i := range 100 {
		p[2*i], p[2*i+1] = byte('0'+i/10), byte('0'+i%10)
	}
	return p
}()

// putNumber writes n, below numbersMax, with zeros in front.
func putNumber(b []byte, n uint32) {
	_ = b[numberDigits-1]
	copy(b[0:2], pairs[n/10000%100*2:][:2])
	copy(b[2:4], pairs[n/100%100*2:][:2])
	copy(b[4:6], pairs[n%100*2:][:2])
}
