package server

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"

	"zabra/wire"
)

// readBuffer is what readers borrow while there is something to read.
type readBuffer [readBufferBytes]byte

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// inbound holds the bytes that a connection has received and not yet handed on. Bytes live in one of three places: in a
// borrowed buffer while the reader works, in rest while it waits, in big when a frame is larger than a buffer.
//
// Memory follows what has arrived, never what was announced: rest has exactly the bytes that are there, big at most
// bigFrameGrowth times as many.
type inbound struct {
	buf  *readBuffer
	r, w int // unread bytes of buf
	rest []byte
	// big is a frame under assembly, its length included; bigBytes is how long it will be.
	big      []byte
	bigBytes int
}

// announced is the length of the frame that is not complete, 0 if not even that is known.
func (in *inbound) announced() int {
	if in.big != nil {
		return in.bigBytes - wire.FrameHeadBytes
	}
	head, ok := in.head()
	if !ok {
		return 0
	}
	return int(binary.BigEndian.Uint32(head[:]))
}

// space returns where the next bytes are to be put. It is never empty.
func (in *inbound) space() []byte {
	if in.big != nil && len(in.big) < in.bigBytes {
		if len(in.big) == cap(in.big) {
			grown := make([]byte, len(in.big), min(in.bigBytes, bigFrameGrowth*cap(in.big)))
			copy(grown, in.big)
			in.big = grown
		}
		return in.big[len(in.big):cap(in.big)]
	}
	if in.buf == nil {
		in.buf = readBuffers.Get().(*readBuffer)
		in.r, in.w = 0, copy(in.buf[:], in.rest)
		in.rest = nil
	}
	return in.buf[in.w:]
}

// got notes that n bytes were put into space.
func (in *inbound) got(n int) {
	if in.big != nil && len(in.big) < in.bigBytes {
		in.big = in.big[:len(in.big)+n]
		return
	}
	in.w += n
}

// head returns the first four unread bytes, if they are there.
func (in *inbound) head() (head [wire.FrameHeadBytes]byte, ok bool) {
	b := in.unread()
	if len(b) < len(head) {
		return head, false
	}
	copy(head[:], b)
	return head, true
}

// unread returns the bytes that no frame was cut from yet.
func (in *inbound) unread() []byte {
	if in.buf == nil {
		return in.rest
	}
	return in.buf[in.r:in.w]
}

// next returns the next frame without its length, or false if it is not complete. The frame is valid until the next call
// of a method.
func (in *inbound) next(bytesMax int) (frame []byte, ok bool, err error) {
	if in.big != nil {
		if len(in.big) < in.bigBytes {
			return nil, false, nil
		}
		frame = in.big[wire.FrameHeadBytes:]
		in.big = nil
		return frame, true, nil
	}
	in.unpark()
	head, ok := in.head()
	if !ok {
		in.compact()
		return nil, false, nil
	}
	n, ok := wire.FrameLength(head, bytesMax)
	if !ok {
		return nil, false, &lengthError{bytes: n, max: bytesMax}
	}
	total := wire.FrameHeadBytes + n
	switch have := in.w - in.r; {
	case total <= have:
		frame = in.buf[in.r+wire.FrameHeadBytes : in.r+total]
		in.r += total
		return frame, true, nil
	case have < len(in.buf): // even a frame that will not fit stays here until the buffer is full
		in.compact()
	default:
		in.big = make([]byte, have, min(total, bigFrameGrowth*have))
		copy(in.big, in.buf[in.r:in.w])
		in.bigBytes = total
		in.r, in.w = 0, 0
	}
	return nil, false, nil
}

// compact moves the unread bytes to the front, so that a frame that fits into a buffer finds its place.
func (in *inbound) compact() {
	if in.buf != nil && in.r > 0 {
		in.w = copy(in.buf[:], in.buf[in.r:in.w])
		in.r = 0
	}
}

// park gives the buffer back and keeps what is unread.
func (in *inbound) park() {
	if in.buf == nil {
		return
	}
	if in.r < in.w {
		in.rest = append(in.rest[:0], in.buf[in.r:in.w]...)
	}
	readBuffers.Put(in.buf)
	in.buf, in.r, in.w = nil, 0, 0
}

// unpark undoes park if something was kept.
func (in *inbound) unpark() {
	if in.buf == nil && len(in.rest) > 0 {
		in.space()
	}
}

// drop forgets everything unread and tells how much that was.
func (in *inbound) drop() int {
	n := len(in.unread()) + len(in.big)
	in.r, in.w, in.rest, in.big = 0, 0, nil, nil
	return n
}

// free gives all memory back.
func (in *inbound) free() {
	in.drop()
	in.park()
}

// fill waits until there are bytes and takes them in. At the end of the stream it returns io.EOF.
func (c *conn) fill() error {
	if t := c.tls.Load(); t != nil {
		return t.fill(c)
	}
	if err := c.raw.Read(c.onReadable); err != nil {
		return err
	}
	switch {
	case c.readErr != 0:
		return os.NewSyscallError("read", c.readErr)
	case c.readN == 0:
		return io.EOF
	}
	c.s.meter.bytesIn.Add(int64(c.readN))
	c.in.got(c.readN)
	return nil
}

// readable reads once what the socket has. The runtime calls it, and again when the socket may have become readable
// after it returned false. No buffer is held while it waits.
func (c *conn) readable(fd uintptr) bool {
	for {
		n, err := syscall.Read(int(fd), c.in.space())
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			c.in.park()
			return false
		}
		c.readN, c.readErr = n, 0
		if err != nil {
			c.readErr = err.(syscall.Errno)
		}
		return true
	}
}

// lengthError tells of a frame whose length is out of bounds.
type lengthError struct {
	bytes, max int
	suspect    string // what the bytes look like instead; empty for no idea
}

func (e *lengthError) Error() string {
	return fmt.Sprintf("frame of %d bytes, the limit is %d (jute.maxbuffer)", e.bytes, e.max)
}
