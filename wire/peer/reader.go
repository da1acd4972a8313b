package peer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"zabra/zab"
)

// Reader reads the frames of one connection. It must not be used by two goroutines at a time.
type Reader struct {
	r      *bufio.Reader
	places places // where this connection is
	header [headerBytes]byte
	body   []byte
	dec    decoder
	err    error
}

// NewReader reads what follows the greetings on a connection for the purpose. Kinds that have no place there are refused.
func NewReader(r io.Reader, purpose Purpose) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, readBufferBytes), places: 1 << purpose}
}

// Next returns the next frame. The error is io.EOF where the peer closed the connection between two frames,
// io.ErrUnexpectedEOF where it broke off within one, a *FrameError for a frame that is not as it should be, or that of
// the connection. After an error there is nothing more to read: it is returned again.
func (r *Reader) Next() (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	f, err := r.next()
	if err != nil {
		r.err = err
		return Frame{}, err
	}
	return f, nil
}

func (r *Reader) next() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.header[:]); err != nil {
		return Frame{}, err
	}
	kind := FrameKind(r.header[4])
	if err := r.admit(kind); err != nil {
		return Frame{}, &FrameError{kind, err}
	}
	length := binary.BigEndian.Uint32(r.header[:])
	if limit := kinds[kind].layout.bytesMax; int64(length) > int64(limit) {
		return Frame{}, &FrameError{kind, fmt.Errorf("a body of %d bytes is longer than %d", length, limit)}
	}
	body, err := r.readBody(int(length))
	if err != nil {
		return Frame{}, err
	}
	if sum := binary.BigEndian.Uint32(r.header[5:]); sum != checksum(r.header[:], body) {
		return Frame{}, &FrameError{kind, errors.New("the checksum does not match")}
	}
	f, err := r.dec.frame(kind, body)
	if err != nil {
		return Frame{}, &FrameError{kind, err}
	}
	return f, nil
}

// admit refuses kinds that are unknown or have no place here.
func (r *Reader) admit(kind FrameKind) error {
	switch {
	case !kind.Known():
		return errors.New("unknown kind")
	case kinds[kind].places&r.places == 0:
		return errors.New("it has no place on a connection of this purpose")
	}
	return nil
}

// readBody reads length bytes into the Reader's buffer. A long body takes memory as it comes in, not as it is announced.
func (r *Reader) readBody(length int) ([]byte, error) {
	if cap(r.body) > scratchBytesMax {
		r.body = nil
	}
	body := r.body[:0]
	for len(body) < length {
		step := min(length, max(2*len(body), bodyStepBytes))
		if cap(body) < step {
			body = append(make([]byte, 0, step), body...)
		}
		at := len(body)
		body = body[:min(length, cap(body))]
		if _, err := io.ReadFull(r.r, body[at:]); err != nil {
			return nil, noEOF(err)
		}
	}
	r.body = body
	return body, nil
}

// noEOF is for reads in the middle of something.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// decoder reads bodies.
type decoder struct {
	dec    *codec.Decoder
	bodies bodies
}

// frame decodes a body of a known kind.
func (d *decoder) frame(kind FrameKind, b []byte) (Frame, error) {
	info := &kinds[kind]
	if err := checkShape(b, info.layout.shape); err != nil {
		return Frame{}, err
	}
	switch {
	case kind == KindChunk:
		body := &d.bodies.chunk // its buffer is used again and again
		if err := d.decode(b, body); err != nil {
			return Frame{}, err
		}
		return Frame{Kind: kind, Chunk: Chunk(*body)}, body.check()
	case info.message == 0:
		return Frame{Kind: kind}, nil
	}
	body := info.layout.pick(&d.bodies)
	d.forget()
	if err := d.decode(b, body); err != nil {
		return Frame{}, err
	}
	m := &zab.Message{Kind: info.message}
	if err := body.tell(m); err != nil {
		return Frame{}, err
	}
	return Frame{Kind: kind, Message: m}, nil
}

func (d *decoder) decode(b []byte, into any) error {
	if d.dec == nil {
		d.dec = codec.NewDecoderBytes(b, handle)
	} else {
		d.dec.ResetBytes(b)
	}
	return d.dec.Decode(into)
}

// forget lets go of the memory that the last message owns, so that the library does not write into it again, and of
// buffers that one long message has made.
func (d *decoder) forget() {
	d.bodies.batch.Entries = nil
	d.bodies.requests.Requests = nil
	if cap(d.bodies.pong.Touches) > scratchBytesMax {
		d.bodies.pong.Touches = nil
	}
}

// Ready reports whether the next frame has arrived in full, so that Next does not wait. One that is longer than the Reader's
// buffer never has.
func (r *Reader) Ready() bool {
	if r.r.Buffered() < headerBytes {
		return false
	}
	head, _ := r.r.Peek(4)
	return uint64(r.r.Buffered()) >= headerBytes+uint64(binary.BigEndian.Uint32(head))
}
