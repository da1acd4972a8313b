package replica

import "sync"

// Outboxes borrow their memory while there is something in them, so that an idle connection has none: small buffers, or large
// ones where the connection's last output was large.
var (
	smallBuffers = sync.Pool{New: func() any { return &outBuffer{make([]byte, 0, smallBufferBytes)} }}
	largeBuffers = sync.Pool{New: func() any { return &outBuffer{make([]byte, 0, largeBufferBytes)} }}
	// emptyBuffers are what buffers are put into pools with.
	emptyBuffers = sync.Pool{New: func() any { return new(outBuffer) }}
)

type outBuffer struct{ b []byte }

// borrowBuffer returns an empty buffer. It comes back by Release.
func borrowBuffer(large bool) []byte {
	pool := &smallBuffers
	if large {
		pool = &largeBuffers
	}
	box := pool.Get().(*outBuffer)
	b := box.b
	box.b = nil
	emptyBuffers.Put(box)
	return b
}

// Release gives back what Output has returned, when it is written. It may have grown; one that is larger than is worth
// keeping is left to the collector.
func Release(out []byte) {
	pool := &smallBuffers
	switch n := cap(out); {
	case n < smallBufferBytes || n > largeBufferKeptMax:
		return
	case n >= largeBufferBytes:
		pool = &largeBuffers
	case n > 2*smallBufferBytes:
		return
	}
	box := emptyBuffers.Get().(*outBuffer)
	box.b = out[:0]
	pool.Put(box)
}
