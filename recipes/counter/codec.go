package counter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

var (
	// ErrCorrupt is a node that does not hold a number as the codec writes it.
	ErrCorrupt = errors.New("counter: the node holds something else than the number")
	// ErrOverflow is a change that would leave the range of the number. Nothing is changed.
	ErrOverflow = errors.New("counter: the number is out of range")
)

// Codec is how a number lies in its node. Decode fails with ErrCorrupt, Encode with ErrOverflow. A node without data
// is 0: kazoo makes it so, and Curator reads it so.
type Codec interface {
	Encode(n int64) ([]byte, error)
	Decode(data []byte) (int64, error)
}

var (
	// Curator64 is the layout of Curator's DistributedAtomicLong: 8 bytes, the highest first.
	Curator64 Codec = fixed(8)
	// Curator32 is that of its SharedCount and DistributedAtomicInteger, and of kazoo's Counter with support_curator:
	// 4 bytes, the highest first.
	Curator32 Codec = fixed(4)
	// KazooText is that of kazoo's Counter with whole numbers: decimal digits, after a minus sign if need be. kazoo's
	// numbers have no bounds; those beyond 64 bits, and fractions, are ErrCorrupt here.
	KazooText Codec = text{}
)

// fixed is a number of bytes, 4 or 8.
type fixed int

func (size fixed) Encode(n int64) ([]byte, error) {
	if size == 8 {
		return binary.BigEndian.AppendUint64(nil, uint64(n)), nil
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d does not fit into 32 bits", ErrOverflow, n)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(int32(n))), nil
}

func (size fixed) Decode(data []byte) (int64, error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case len(data) != int(size):
		return 0, fmt.Errorf("%w: %d bytes instead of %d: %s", ErrCorrupt, len(data), size, excerpt(data))
	case size == 8:
		return int64(binary.BigEndian.Uint64(data)), nil
	}
	return int64(int32(binary.BigEndian.Uint32(data))), nil
}

type text struct{}

func (text) Encode(n int64) ([]byte, error) { return strconv.AppendInt(nil, n, 10), nil }

func (text) Decode(data []byte) (int64, error) {
	if len(data) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: not a decimal number of 64 bits: %s", ErrCorrupt, excerpt(data))
	}
	return n, nil
}

// excerptBytesMax is how much of a strange value an error shows.
const excerptBytesMax = 32

func excerpt(data []byte) string {
	if len(data) > excerptBytesMax {
		return fmt.Sprintf("%q...", data[:excerptBytesMax])
	}
	return fmt.Sprintf("%q", data)
}

// sum adds without wrapping round.
func sum(a, b int64) (int64, error) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, fmt.Errorf("%w: %d and %d is more than 64 bits hold", ErrOverflow, a, b)
	}
	return a + b, nil
}
