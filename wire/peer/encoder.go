package peer

import (
	"fmt"
	"slices"

	"github.com/hashicorp/go-msgpack/v2/codec"

	"zabra/zab"
)

// handle is how bodies are written and read: structs as arrays, numbers from 0 unsigned, byte strings apart from text.
// It is complete before the first use and never changed.
var handle = func() *codec.MsgpackHandle {
	h := &codec.MsgpackHandle{WriteExt: true, PositiveIntUnsigned: true}
	h.StructToArray = true
	h.ExplicitRelease = true
	// Lengths are checked before the library sees them; with a lower bound it would copy long strings piece by piece.
	h.MaxInitLen = FrameBytesMax
	return h
}()

// scratchBytesMax is how long a buffer may be to be kept for the next frame.
const scratchBytesMax = 4 << 20

// Encoder writes frames. The zero value is ready for use; it must not be used by two goroutines at a time.
type Encoder struct {
	enc    *codec.Encoder
	bodies bodies
	out    []byte
}

// AppendMessage appends one frame with the message to b. From, To and Conn do not travel: both ends of a connection know
// them. The error says which field is out of range or has no place in messages of this kind; b is then returned as it was.
func (e *Encoder) AppendMessage(b []byte, m *zab.Message) ([]byte, error) {
	kind := kindOf[m.Kind]
	if kind == 0 {
		return b, fmt.Errorf("peer: cannot send %v", m.Kind)
	}
	layout := kinds[kind].layout
	if lost := fieldsSet(m) &^ layout.fields; lost != 0 {
		return b, fmt.Errorf("peer: cannot send %v: it has no place for %v", m.Kind, lost)
	}
	body := layout.pick(&e.bodies)
	if err := body.fill(m); err != nil {
		return b, fmt.Errorf("peer: cannot send %v: %w", m.Kind, err)
	}
	start := len(b)
	b, err := e.appendBody(b, body, sizeOf(layout, &e.bodies))
	if err == nil && len(b)-start-headerBytes > layout.bytesMax {
		err = fmt.Errorf("a body of %d bytes is longer than %d", len(b)-start-headerBytes, layout.bytesMax)
	}
	e.forget()
	if err != nil {
		return b[:start], fmt.Errorf("peer: cannot send %v: %w", m.Kind, err)
	}
	return seal(b, start, kind), nil
}

// AppendChunk appends one frame with a piece of a snapshot to b. A chunk that is out of range is an error, and b is
// returned as it was.
func (e *Encoder) AppendChunk(b []byte, c Chunk) ([]byte, error) {
	body := &e.bodies.chunk
	*body = chunkBody(c)
	if body.Data == nil {
		body.Data = []byte{}
	}
	if err := body.check(); err != nil {
		return b, fmt.Errorf("peer: cannot send a chunk: %w", err)
	}
	start := len(b)
	b, err := e.appendBody(b, body, scalarBodyBytesMax+len(c.Data))
	*body = chunkBody{}
	if err != nil {
		return b[:start], fmt.Errorf("peer: cannot send a chunk: %w", err)
	}
	return seal(b, start, KindChunk), nil
}

// AppendKeepAlive appends a frame that says nothing but that the sender is there. It may be sent on any connection.
func AppendKeepAlive(b []byte) []byte {
	start := len(b)
	b = append(append(b, make([]byte, headerBytes)...), fixArray)
	return seal(b, start, KindKeepAlive)
}

// sizeOf bounds the length of a body that was filled.
func sizeOf(l *layout, b *bodies) int {
	n := scalarBodyBytesMax
	switch l {
	case &batchLayout:
		n += len(b.batch.Entries)
	case &pongLayout:
		n += len(b.pong.Touches)
	case &snapLayout, &ackEpochLayout:
		n = l.bytesMax
	case &requestsLayout:
		n += len(b.requests.Requests)
	}
	return n
}

// appendBody appends room for a header and the body, which takes at most size bytes.
func (e *Encoder) appendBody(b []byte, body any, size int) ([]byte, error) {
	if size > FrameBytesMax {
		return b, fmt.Errorf("a body of %d bytes does not fit into a frame", size)
	}
	b = slices.Grow(b, headerBytes+size)
	start := len(b) + headerBytes
	// The library writes to the beginning of the slice that it is given and moves elsewhere only if that is too short.
	e.out = b[start:start]
	if e.enc == nil {
		e.enc = codec.NewEncoderBytes(&e.out, handle)
	} else {
		e.enc.ResetBytes(&e.out)
	}
	if err := e.enc.Encode(body); err != nil {
		return b, err
	}
	if len(e.out) > size {
		panic(fmt.Sprintf("peer: a body of %d bytes was expected to take at most %d", len(e.out), size))
	}
	return b[:start+len(e.out)], nil
}

// forget lets go of what belongs to the message, and of buffers that one long message has made.
func (e *Encoder) forget() {
	e.out = nil
	if cap(e.bodies.requests.Requests) > scratchBytesMax {
		e.bodies.requests.Requests = nil
	}
	if cap(e.bodies.batch.Entries) > scratchBytesMax {
		e.bodies.batch.Entries = nil
	}
	if cap(e.bodies.pong.Touches) > scratchBytesMax {
		e.bodies.pong.Touches = nil
	}
}
