package znode

import (
	"encoding/binary"
	"errors"
	"hash"
	"io"

	"zabra/internal/adler"
	"zabra/jute"
)

// snapshotSource reads a stream through one buffer and checksums what was consumed. Its error is sticky: then all reads
// give zero values.
type snapshotSource struct {
	r             io.Reader
	buf           []byte
	pos, end      int // what is unread in buf
	summed        int // up to where buf is in the checksum, at most pos
	offset        int64
	checksum      hash.Hash32
	fieldBytesMax int
	readErr       error // of r, which is not read again after one; io.EOF at its end
	err           error
}

func newSnapshotSource(r io.Reader, fieldBytesMax int) *snapshotSource {
	if fieldBytesMax <= 0 {
		fieldBytesMax = jute.FieldBytesMaxDefault
	}
	return &snapshotSource{r: r, checksum: adler.New(), fieldBytesMax: fieldBytesMax}
}

// fail makes the first error stick, with the place. What buf holds stays as it is.
func (s *snapshotSource) fail(format string, args ...any) {
	if s.err == nil {
		s.err = snapshotError(s.at(), format, args...)
		s.pos, s.end = s.summed, s.summed
	}
}

// unread returns how much buf holds beyond what was consumed.
func (s *snapshotSource) unread() int { return s.end - s.pos }

// at returns the offset of what is read next.
func (s *snapshotSource) at() int64 { return s.offset + int64(s.pos) }

// need makes n bytes available at buf[pos:] or fails. n is bounded by the caller.
func (s *snapshotSource) need(n int) bool {
	if s.end-s.pos >= n {
		return true
	}
	if s.err != nil {
		return false
	}
	if s.prefetch(n); s.end-s.pos >= n {
		return true
	}
	if errors.Is(s.readErr, io.EOF) {
		s.fail("%w", io.ErrUnexpectedEOF)
	} else {
		s.fail("%w", s.readErr)
	}
	return false
}

// prefetch tries to have n bytes or more at buf[pos:]. What is there moves to the front of the buffer unless nothing more
// can be read.
func (s *snapshotSource) prefetch(n int) {
	if s.end-s.pos >= n || s.readErr != nil {
		return
	}
	buf := s.buf
	if n > len(buf) {
		buf = make([]byte, max(n, snapshotReadBytes))
	}
	s.move(buf)
	for s.readErr == nil && s.end < n {
		got, err := s.r.Read(s.buf[s.end:])
		s.end += got
		s.readErr = err
	}
}

// hasNode reports whether the node at buf[pos:] is there as a whole, or as much of it as there is. It makes room and reads
// only if it may load.
func (s *snapshotSource) hasNode(load bool) bool {
	for {
		want := s.nodeBytes()
		switch {
		case s.end-s.pos >= want:
			return true
		case !load:
			return false
		case s.readErr != nil:
			return true
		}
		s.prefetch(want)
	}
}

// nodeBytes returns how many bytes from buf[pos:] on the node there takes: all of them, or as many as tell more, or as
// many as tell that it cannot be read. For the path that ends the nodes it is that path.
func (s *snapshotSource) nodeBytes() int {
	const lengthBytes = 4
	b := s.buf[s.pos:s.end]
	if len(b) < lengthBytes {
		return lengthBytes
	}
	path := int(int32(binary.BigEndian.Uint32(b)))
	if path < 0 || path > s.fieldBytesMax {
		return lengthBytes
	}
	n := lengthBytes + path
	switch {
	case len(b) < n:
		return n
	case path == 1 && b[lengthBytes] == '/':
		return n
	case len(b) < n+lengthBytes:
		return n + lengthBytes
	}
	data := int(int32(binary.BigEndian.Uint32(b[n:])))
	if n += lengthBytes; data > s.fieldBytesMax {
		return n
	}
	return n + max(data, 0) + storedBodyBytes
}

// move goes on in another buffer, or at the front of the same, which has room for what is unread.
func (s *snapshotSource) move(buf []byte) {
	s.sum()
	from := s.buf[s.pos:s.end]
	if len(from) > len(buf) {
		panic("znode: a buffer of a snapshot is too small for what is unread")
	}
	s.buf = buf
	s.end = copy(s.buf, from)
	s.offset += int64(s.pos)
	s.pos, s.summed = 0, 0
}

// sum brings the checksum up to date. Large pieces make it fast, so it waits until a seal or the buffer's end.
func (s *snapshotSource) sum() {
	s.checksum.Write(s.buf[s.summed:s.pos])
	s.summed = s.pos
}

// rest returns how many bytes are left, at most n.
func (s *snapshotSource) rest(n int) int {
	if s.err == nil {
		s.prefetch(n)
		if s.end-s.pos < n && !errors.Is(s.readErr, io.EOF) && !errors.Is(s.readErr, io.ErrUnexpectedEOF) {
			s.fail("%w", s.readErr)
		}
	}
	return min(s.end-s.pos, n)
}

func (s *snapshotSource) int32() int32 {
	if !s.need(4) {
		return 0
	}
	v := binary.BigEndian.Uint32(s.buf[s.pos:])
	s.pos += 4
	return int32(v)
}

func (s *snapshotSource) int64() int64 {
	if !s.need(8) {
		return 0
	}
	v := binary.BigEndian.Uint64(s.buf[s.pos:])
	s.pos += 8
	return int64(v)
}

// count reads the number of elements of a list; null is not allowed.
func (s *snapshotSource) count(what string) int {
	n := s.int32()
	if n < 0 {
		s.fail("%d %s", n, what)
		return 0
	}
	return int(n)
}

// length reads the length of a string or buffer, -1 for null.
func (s *snapshotSource) length() int {
	n := int(s.int32())
	if n < -1 || n > s.fieldBytesMax {
		s.fail("field of %d bytes, at most %d allowed", n, s.fieldBytesMax)
		return -1
	}
	return n
}

// text reads a string; malformed UTF-8 is repaired. It is valid until the next read that has to fill the buffer. text
// reports whether the string is not null.
func (s *snapshotSource) text() ([]byte, bool) {
	n := s.length()
	if n < 0 || !s.need(n) {
		return nil, false
	}
	raw := s.buf[s.pos : s.pos+n : s.pos+n]
	s.pos += n
	return storedText(raw), true
}

// seal reads a checksum of everything before it and compares.
func (s *snapshotSource) seal() {
	s.sum()
	want := int64(s.checksum.Sum32())
	got := s.int64()
	if s.err == nil && got != want {
		s.fail("checksum %#x of the file does not match its content, %#x", got, want)
	}
	if mark, ok := s.text(); s.err == nil && (!ok || string(mark) != RootPath) {
		s.fail("checksum is followed by %q", mark)
	}
}
