package peer

import "zabra/zab"

const (
	// FrameBytesMax is the longest frame that is written or read, header included. It has room for the longest record
	// that a log can hold, 64 MiB, and what stands around it.
	FrameBytesMax = 65 << 20
	// EntryBytesMax is the longest payload of one transaction that is sure to fit into a frame.
	EntryBytesMax = FrameBytesMax - 1024
	// ChunkBytesMax is the longest piece of a snapshot in one frame.
	ChunkBytesMax = 1 << 20

	// headerBytes is the length of what stands before the body of a frame: length, kind, checksum.
	headerBytes = 4 + 1 + 4
	// entryHeadBytes is the length of what stands before the payload of an entry: zxid, origin, length.
	entryHeadBytes = 8 + 24 + 4
	// requestHeadBytes is the length of what stands before the identities of a request: origin, session, cxid, opcode and the
	// number of identities. requestFixedBytes counts the length of its record, too.
	requestHeadBytes  = 24 + 8 + 4 + 4 + 2
	requestFixedBytes = requestHeadBytes + 4
	// touchBytes is the length of a touch: session, timeout, age.
	touchBytes = 8 + 4 + 4

	// identitiesMax bounds the identities that come with a request.
	identitiesMax = 1024
	// nameBytesMax bounds the file name of a snapshot.
	nameBytesMax = 255
	// scalarBodyBytesMax bounds the bodies that hold nothing but a few integers and truth values.
	scalarBodyBytesMax = 128
	// namedBodyBytesMax bounds the body that holds a file name besides, ackEpochBodyBytesMax the one with the ends of
	// epochs, too.
	namedBodyBytesMax    = 512
	ackEpochBodyBytesMax = namedBodyBytesMax + 8*zab.EndsMax

	// readBufferBytes is the size of a Reader's buffer.
	readBufferBytes = 64 << 10
	// bodyStepBytes is the most memory that is taken for a body before as much of it has come in.
	bodyStepBytes = 1 << 20

	// helloBodyBytesMax bounds the body of a greeting, of whatever version.
	helloBodyBytesMax = 1024
	// reasonBytesMax cuts the reason of a refusal.
	reasonBytesMax = 512
)
