package peer

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"zabra/zab"
)

// Frame is what a Reader hands out.
type Frame struct {
	Kind FrameKind
	// Message is set for the kinds that carry one. It owns its memory. From, To and Conn are left to the caller, who
	// knows them from the greeting.
	Message *zab.Message
	// Chunk is set for KindChunk.
	Chunk Chunk
}

// Chunk is a piece of a snapshot file.
type Chunk struct {
	// Offset is where in the file the piece begins, Size the length of the whole file, in bytes.
	Offset, Size int64
	// Data is at most ChunkBytesMax long. In a Frame it is valid until the Reader's next call.
	Data []byte
}

// Last reports whether the file ends with this chunk. A file of which everything is there already ends with an empty one.
func (c Chunk) Last() bool { return c.Offset+int64(len(c.Data)) == c.Size }

// chunkBody is the body of a chunk.
type chunkBody struct {
	Offset, Size int64
	Data         []byte
}

func (b *chunkBody) check() error {
	switch end := b.Offset + int64(len(b.Data)); {
	case b.Offset < 0 || b.Size < 0 || end < 0 || end > b.Size:
		return fmt.Errorf("%d bytes at offset %d of %d", len(b.Data), b.Offset, b.Size)
	case len(b.Data) > ChunkBytesMax:
		return fmt.Errorf("%d bytes in one chunk, more than %d", len(b.Data), ChunkBytesMax)
	case len(b.Data) == 0 && end != b.Size:
		return fmt.Errorf("an empty chunk before the end of the file")
	}
	return nil
}

// FrameError says why a frame was refused. The connection cannot be used any more: where the next frame begins is not
// known, or the peer speaks another language.
type FrameError struct {
	Kind FrameKind
	Err  error
}

// Error names the kind of the frame and the reason.
func (e *FrameError) Error() string { return fmt.Sprintf("peer: bad %v frame: %v", e.Kind, e.Err) }

// Unwrap returns the reason.
func (e *FrameError) Unwrap() error { return e.Err }

// crcTable is that of CRC32C.
var crcTable = crc32.MakeTable(crc32.Castagnoli)

// checksum covers the length and the kind at the beginning of a header, and the body.
func checksum(header, body []byte) uint32 {
	return crc32.Update(crc32.Update(0, crcTable, header[:5]), crcTable, body)
}

// seal fills in the header of the frame that begins at start and ends with b.
func seal(b []byte, start int, kind FrameKind) []byte {
	frame := b[start:]
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-headerBytes))
	frame[4] = byte(kind)
	binary.BigEndian.PutUint32(frame[5:], checksum(frame, frame[headerBytes:]))
	return b
}
