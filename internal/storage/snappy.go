package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
)

// The xerial framing of snappy (on disk): a header of 16 bytes, then blocks, each an i32 length and a raw snappy block.
var snappyHeader = [16]byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1}

// snappyMagic is what the header begins with.
const snappyMagic = "\x82SNAPPY\x00"

var errSnappyHeader = errors.New("not a snappy stream")

// snappyReader undoes the framing.
type snappyReader struct {
	r     io.Reader
	block []byte
	out   []byte // decoded and not yet read; its whole memory is decoded[:]
	buf   []byte
}

func newSnappyReader(r io.Reader) (*snappyReader, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if string(head[:8]) != string(snappyHeader[:8]) {
		return nil, errSnappyHeader
	}
	if compatible := binary.BigEndian.Uint32(head[12:]); compatible > 1 {
		return nil, fmt.Errorf("snappy stream of the unknown version %d", compatible)
	}
	return &snappyReader{r: r}, nil
}

// Read implements io.Reader.
func (sr *snappyReader) Read(b []byte) (int, error) {
	for len(sr.out) == 0 {
		if err := sr.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, sr.out)
	sr.out = sr.out[n:]
	return n, nil
}

// next decodes one block. Both lengths are bounded before memory is taken.
func (sr *snappyReader) next() error {
	var head [4]byte
	if _, err := io.ReadFull(sr.r, head[:]); err != nil {
		return err
	}
	n := int(int32(binary.BigEndian.Uint32(head[:])))
	if n <= 0 || n > snappy.MaxEncodedLen(snappyBlockBytesMax) {
		return fmt.Errorf("snappy block of %d bytes", n)
	}
	if cap(sr.block) < n {
		sr.block = make([]byte, n)
	}
	block := sr.block[:n]
	if _, err := io.ReadFull(sr.r, block); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	size, err := snappy.DecodedLen(block)
	if err != nil {
		return err
	}
	if size > snappyBlockBytesMax {
		return fmt.Errorf("snappy block of %d bytes when decoded", size)
	}
	if cap(sr.buf) < size {
		sr.buf = make([]byte, size)
	}
	sr.out, err = snappy.Decode(sr.buf[:cap(sr.buf)], block)
	return err
}

// snappyWriter does the framing. Close writes what is left; it does not close w.
type snappyWriter struct {
	w       io.Writer
	started bool
	in, out []byte
}

// Write implements io.Writer.
func (sw *snappyWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		n := min(len(b), snappyBlockBytes-len(sw.in))
		sw.in = append(sw.in, b[:n]...)
		b = b[n:]
		if len(sw.in) == snappyBlockBytes {
			if err := sw.block(); err != nil {
				return 0, err
			}
		}
	}
	return total, nil
}

// Close implements io.Closer.
func (sw *snappyWriter) Close() error { return sw.block() }

func (sw *snappyWriter) block() error {
	if !sw.started {
		sw.started = true
		if _, err := sw.w.Write(snappyHeader[:]); err != nil {
			return err
		}
	}
	if len(sw.in) == 0 {
		return nil
	}
	if sw.out == nil {
		sw.out = make([]byte, 4+snappy.MaxEncodedLen(snappyBlockBytes))
	}
	enc := snappy.Encode(sw.out[4:], sw.in)
	binary.BigEndian.PutUint32(sw.out, uint32(len(enc)))
	sw.in = sw.in[:0]
	_, err := sw.w.Write(sw.out[:4+len(enc)])
	return err
}
