package wire

const (
	// FrameBytesMaxDefault bounds the length of a client's frame unless configured otherwise (jute.maxbuffer). Frames of
	// servers have no bound.
	FrameBytesMaxDefault = 0xfffff

	// FrameHeadBytes is the size of the length in front of each frame. The length does not count itself.
	FrameHeadBytes = 4

	// PasswordBytes is the length of every session password that a server gives out.
	PasswordBytes = 16

	// StatBytes is the encoded size of a Stat.
	StatBytes = 68

	// RequestHeaderBytes and ReplyHeaderBytes are the encoded sizes of the headers.
	RequestHeaderBytes = 8
	ReplyHeaderBytes   = 16

	multiHeaderBytes = 9
)

// The least number of bytes that an element of a list takes. They bound how many elements a frame can hold, and with it
// the memory that is taken for a count that a peer announces.
const (
	stringBytesMin = 4         // a length
	aclBytesMin    = 4 + 4 + 4 // permissions, two lengths
	clientBytesMin = 4 + 4     // two lengths

	// A multi announces no count, its list grows as it is read: a frame of n bytes holds at most n/multiOpBytesMin
	// operations. The smallest has a header, the length of a path, the byte of a watch flag.
	multiOpBytesMin = multiHeaderBytes + 4 + 1
)
