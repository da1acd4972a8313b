package lab

import "encoding/binary"

const (
	lengthBytes = 4
	// headBytes is what is kept of a frame: xid and opcode of a request, xid, zxid and error of a reply.
	headBytes = 16
)

// framer cuts one direction of a connection into frames.
type framer struct {
	head [lengthBytes + headBytes]byte
	// have is how many bytes of the present frame have come, those of its length included; length is known from the fourth on.
	have, length int
	last         byte
	// began is set when the first frame is over, the handshake.
	began bool
	frame func(head []byte, last byte)
}

// feed takes the next bytes of the stream and calls frame for each frame that ends in them, apart from the handshake.
func (f *framer) feed(p []byte) {
	for len(p) > 0 {
		end := lengthBytes
		if f.have >= lengthBytes {
			end += f.length
		}
		n := min(len(p), end-f.have)
		if f.have < len(f.head) {
			copy(f.head[f.have:], p[:n])
		}
		f.last, f.have, p = p[n-1], f.have+n, p[n:]
		if f.have == lengthBytes {
			f.length = max(int(int32(binary.BigEndian.Uint32(f.head[:lengthBytes]))), 0)
		}
		if f.have < lengthBytes || f.have < lengthBytes+f.length {
			continue
		}
		if f.began {
			f.frame(f.head[lengthBytes:min(f.have, len(f.head))], f.last)
		}
		f.began, f.have = true, 0
	}
}

// int32At reads a number of a frame's head; 0 where the frame is too short for it.
func int32At(head []byte, at int) int32 {
	if len(head) < at+4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(head[at:]))
}
