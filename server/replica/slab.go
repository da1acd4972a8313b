package replica

import (
	"sync"
	"unsafe"
)

// slab hands out pieces of memory that are written once and never again, from chunks: what is made in one go is mostly
// let go in one go, and the collector has one object to look at instead of many. A chunk stays as long as one of its
// pieces is in use, so pieces that may live long do not belong here.
type slab struct {
	chunk []byte // its length is what is used
	bytes int    // of a chunk
}

// room returns an empty slice with place for n bytes, to be filled and given to keep.
func (s *slab) room(n int) []byte {
	if n > s.bytes/slabPieceShare {
		return make([]byte, 0, n)
	}
	if cap(s.chunk)-len(s.chunk) < n {
		s.chunk = make([]byte, 0, s.bytes)
	}
	used := len(s.chunk)
	return s.chunk[used : used : used+n]
}

// keep takes what was filled into room out of what is free. If it has become longer than asked for, it has moved to memory
// of its own.
func (s *slab) keep(b []byte) []byte {
	used := len(s.chunk)
	if len(b) > 0 && cap(s.chunk)-used >= len(b) && unsafe.SliceData(s.chunk[used:used+1]) == unsafe.SliceData(b) {
		s.chunk = s.chunk[:used+len(b)]
	}
	return b[:len(b):len(b)]
}

// copyOf returns a copy of b.
func (s *slab) copyOf(b []byte) []byte { return s.keep(append(s.room(len(b)), b...)) }

// text is copyOf for a string.
func (s *slab) text(b []byte) string {
	kept := s.copyOf(b)
	return unsafe.String(unsafe.SliceData(kept), len(kept))
}

// bodySlabs are for the records of requests that wait in a line, which readers copy out of their frames.
var bodySlabs = sync.Pool{New: func() any { return &slab{bytes: bodyChunkBytes} }}

// copyBody copies a record.
func copyBody(b []byte) []byte {
	s := bodySlabs.Get().(*slab)
	b = s.copyOf(b)
	bodySlabs.Put(s)
	return b
}
