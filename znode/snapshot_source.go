package znode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"

	"zabra/jute"
)

// ErrSnapshot says that a snapshot is damaged, or not one. Read errors of the source are passed on beside it.
var ErrSnapshot = errors.New("znode: bad snapshot")

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
	err           error
}

func newSnapshotSource(r io.Reader, fieldBytesMax int) *snapshotSource {
	if fieldBytesMax <= 0 {
		fieldBytesMax = jute.FieldBytesMaxDefault
	}
	return &snapshotSource{r: r, buf: make([]byte, snapshotReadBytes), checksum: adler32.New(), fieldBytesMax: fieldBytesMax}
}

// fail makes the first error stick, with the place.
func (s *snapshotSource) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: offset %d: %w", ErrSnapshot, s.offset+int64(s.pos), fmt.Errorf(format, args...))
		s.pos, s.end = s.summed, s.summed
	}
}

// need makes n bytes available at buf[pos:] or fails. n is bounded by the caller.
func (s *snapshotSource) need(n int) bool {
	if s.end-s.pos >= n {
		return true
	}
	if s.err != nil {
		return false
	}
	s.shift(n)
	got, err := io.ReadAtLeast(s.r, s.buf[s.end:], n-(s.end-s.pos))
	s.end += got
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		s.fail("%w", err)
		return false
	}
	return true
}

// shift moves what is unread to the front of a buffer that holds n bytes.
func (s *snapshotSource) shift(n int) {
	s.sum()
	from := s.buf[s.pos:s.end]
	if n > len(s.buf) {
		s.buf = make([]byte, n)
	}
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
	if s.err == nil && s.end-s.pos < n {
		s.shift(n)
		got, err := io.ReadAtLeast(s.r, s.buf[s.end:], n-s.end)
		s.end += got
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			s.fail("%w", err)
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

// text reads a string and appends it to b; malformed UTF-8 is repaired. It reports whether the string is not
// null.
func (s *snapshotSource) text(b []byte) ([]byte, bool) {
	n := s.length()
	if n < 0 || !s.need(n) {
		return b, false
	}
	raw := s.buf[s.pos : s.pos+n]
	b = append(b, storedText(raw)...)
	s.pos += n
	return b, true
}

// seal reads a checksum of everything before it and compares.
func (s *snapshotSource) seal() {
	s.sum()
	want := int64(s.checksum.Sum32())
	got := s.int64()
	if s.err == nil && got != want {
		s.fail("checksum %#x of the file does not match its content, %#x", got, want)
	}
	if mark, ok := s.text(nil); s.err == nil && (!ok || string(mark) != RootPath) {
		s.fail("checksum is followed by %q", mark)
	}
}
