package replica

import "sync"

// Outboxes borrow their memory while there is something in them, so that an idle connection has none. A connection gets a
// buffer of the size that its last output needed: thousands that wait for an event, or that have one request at a time, are
// served with a few hundred bytes each.
var bufferSizes = [...]int{256, 2 << 10, 16 << 10}

// bufferKeptBytesMax is up to which size a buffer that has grown is kept for others.
const bufferKeptBytesMax = 128 << 10

type outBuffer struct{ b []byte }

var (
	buffers [len(bufferSizes)]sync.Pool
	// emptyBuffers are what buffers are put into pools with.
	emptyBuffers = sync.Pool{New: func() any { return new(outBuffer) }}
)

// bufferClass is the smallest class with buffers of n bytes, or the last one.
func bufferClass(n int) uint8 {
	for class, size := range bufferSizes {
		if n <= size {
			return uint8(class)
		}
	}
	return uint8(len(bufferSizes) - 1)
}

// borrowBuffer returns an empty buffer. It comes back by ReleaseOutput.
func borrowBuffer(class uint8) []byte {
	box, ok := buffers[class].Get().(*outBuffer)
	if !ok {
		return make([]byte, 0, bufferSizes[class])
	}
	b := box.b
	box.b = nil
	emptyBuffers.Put(box)
	return b
}

// ReleaseOutput gives back what Output has returned, when it is written: nobody may hold it any more. It may have grown; one
// that is larger than is worth keeping is left to the collector.
func ReleaseOutput(out []byte) {
	n := cap(out)
	if n < bufferSizes[0] || n > bufferKeptBytesMax {
		return
	}
	class := len(bufferSizes) - 1
	for n < bufferSizes[class] {
		class--
	}
	box := emptyBuffers.Get().(*outBuffer)
	box.b = out[:0]
	buffers[class].Put(box)
}
