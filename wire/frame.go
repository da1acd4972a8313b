package wire

import (
	"encoding/binary"

	"zabra/jute"
)

// FrameLength returns the length that head announces, in bytes. It is not ok if it is negative or above max: the
// connection must be closed then, and FrameSuspect may tell why.
func FrameLength(head [FrameHeadBytes]byte, max int) (n int, ok bool) {
	n = int(int32(binary.BigEndian.Uint32(head[:])))
	return n, n >= 0 && n <= max
}

// BeginFrame leaves room for the length of a frame and returns where, for EndFrame. The frame is what is written in
// between.
func BeginFrame(e *jute.Encoder) (start int) {
	start = e.Len()
	e.Int32(0)
	return start
}

// EndFrame fills in the length of the frame that BeginFrame began at start.
func EndFrame(e *jute.Encoder, start int) {
	e.PatchInt32(start, int32(e.Len()-start-FrameHeadBytes))
}

// AppendRequest writes a whole frame: its length, the header and the record, nil for operations that have none. A
// SetWatchesRequest is written in the form that h.Op wants.
func AppendRequest(e *jute.Encoder, h RequestHeader, r Record) {
	start := BeginFrame(e)
	h.Encode(e)
	if w, ok := r.(*SetWatchesRequest); ok && h.Op == OpSetWatches {
		w.EncodeV1(e)
	} else if r != nil {
		r.Encode(e)
	}
	EndFrame(e, start)
}

// AppendNotification writes the whole frame of a watch event.
func AppendNotification(e *jute.Encoder, h ReplyHeader, w *WatcherEvent) {
	start := BeginFrame(e)
	h.Encode(e)
	w.Encode(e)
	EndFrame(e, start)
}
