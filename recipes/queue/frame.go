package queue

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Curator's DistributedQueue and those made of it put a frame around the data: a version, then each item as a mark, a length and
// its bytes, then an end mark. All numbers are big-endian.
const (
	frameVersion = 0x00010001
	frameItem    = 1
	frameEnd     = 2
	// frameItemBytes is the mark and the length.
	frameItemBytes = 5
)

// frame puts a frame around one item.
func frame(data []byte) []byte {
	out := make([]byte, 0, 4+frameItemBytes+len(data)+1)
	out = binary.BigEndian.AppendUint32(out, frameVersion)
	out = append(out, frameItem)
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	out = append(out, data...)
	return append(out, frameEnd)
}

var errFrame = errors.New("queue: the data is cut off")

// unframe takes the items out. They alias the data. What follows the end mark is ignored, as Curator ignores it.
func unframe(data []byte) (items [][]byte, err error) {
	if len(data) < 4 {
		return nil, errFrame
	}
	if version := binary.BigEndian.Uint32(data); version != frameVersion {
		return nil, fmt.Errorf("queue: version %#x of the data is unknown", version)
	}
	for rest := data[4:]; len(rest) > 0; {
		switch {
		case rest[0] == frameEnd:
			return items, nil
		case rest[0] != frameItem:
			return nil, fmt.Errorf("queue: mark %d in the data is unknown", rest[0])
		case len(rest) < frameItemBytes:
			return nil, errFrame
		}
		size := uint64(binary.BigEndian.Uint32(rest[1:]))
		if rest = rest[frameItemBytes:]; size > uint64(len(rest)) {
			return nil, errFrame
		}
		items, rest = append(items, rest[:size:size]), rest[size:]
	}
	return nil, errFrame
}
