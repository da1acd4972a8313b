package peer

import (
	"fmt"
	"math"

	"zabra/zab"
	"zabra/zab/zxid"
)

// layout is how the body of a frame is laid out. Kinds of the same form share one.
type layout struct {
	// shape has one letter for each element of the body; see checkShape.
	shape string
	// bytesMax bounds the body.
	bytesMax int
	// fields are the fields of the message that travel.
	fields field
	// pick returns the struct that mirrors the body.
	pick func(*bodies) body
}

// bulkBytesMax bounds bodies that fill a frame.
const bulkBytesMax = FrameBytesMax - headerBytes

var (
	emptyLayout        = layout{shape: "", bytesMax: scalarBodyBytesMax}
	chunkLayout        = layout{shape: "iid", bytesMax: ChunkBytesMax + scalarBodyBytesMax}
	epochLayout        = layout{"u", scalarBodyBytesMax, fieldEpoch, func(b *bodies) body { return &b.epoch }}
	infoLayout         = layout{"ui", scalarBodyBytesMax, fieldEpoch | fieldConfigVersion, func(b *bodies) body { return &b.info }}
	zxidLayout         = layout{"i", scalarBodyBytesMax, fieldZxid, func(b *bodies) body { return &b.zxid }}
	epochZxidLayout    = layout{"ui", scalarBodyBytesMax, fieldEpoch | fieldZxid, func(b *bodies) body { return &b.epochZxid }}
	idLayout           = layout{"u", scalarBodyBytesMax, fieldID, func(b *bodies) body { return &b.id }}
	syncedLayout       = layout{"ui", scalarBodyBytesMax, fieldID | fieldZxid, func(b *bodies) body { return &b.synced }}
	batchLayout        = layout{"iid", bulkBytesMax, fieldZxid | fieldCommitted | fieldEntries, func(b *bodies) body { return &b.batch }}
	pongLayout         = layout{"ud", bulkBytesMax, fieldID | fieldTouches, func(b *bodies) body { return &b.pong }}
	snapLayout         = layout{"iisi", namedBodyBytesMax, fieldZxid | fieldSnapshot, func(b *bodies) body { return &b.snap }}
	requestsLayout     = layout{"d", bulkBytesMax, fieldRequests, func(b *bodies) body { return &b.requests }}
	refusedLayout      = layout{"iuui", scalarBodyBytesMax, fieldOwner | fieldCode, func(b *bodies) body { return &b.refused }}
	notificationLayout = layout{
		"uuiiui", scalarBodyBytesMax, fieldVote | fieldRound | fieldRole | fieldConfigVersion,
		func(b *bodies) body { return &b.notification },
	}
	ackEpochLayout = layout{
		"uidibiisi", ackEpochBodyBytesMax, fieldEpoch | fieldZxid | fieldEnds | fieldFloor | fieldNoVote | fieldResume,
		func(b *bodies) body { return &b.ackEpoch },
	}
	revalidateLayout = layout{
		"uiiiuu", scalarBodyBytesMax, fieldID | fieldSession | fieldTimeout | fieldOwner,
		func(b *bodies) body { return &b.revalidate },
	}
	revalidatedLayout = layout{
		"uibi", scalarBodyBytesMax, fieldID | fieldSession | fieldValid | fieldZxid,
		func(b *bodies) body { return &b.revalidated },
	}
)

// body mirrors the body of a frame: a struct whose fields are its elements, in order.
type body interface {
	// fill takes the fields of a message. It refuses what the types of the message allow and the dialect does not.
	fill(m *zab.Message) error
	// tell checks the ranges of all elements and puts them into a message.
	tell(m *zab.Message) error
}

// bodies holds one struct for each layout, so that reading and writing need not allocate them.
type bodies struct {
	notification notificationBody
	epoch        epochBody
	info         infoBody
	zxid         zxidBody
	epochZxid    epochZxidBody
	id           idBody
	synced       syncedBody
	ackEpoch     ackEpochBody
	snap         snapBody
	batch        batchBody
	pong         pongBody
	requests     requestsBody
	refused      refusedBody
	revalidate   revalidateBody
	revalidated  revalidatedBody
	chunk        chunkBody
}

func checkZxid(what string, z int64) error {
	if z < 0 {
		return fmt.Errorf("%s %d is negative", what, z)
	}
	return nil
}

// checkEpoch refuses the epochs that ZooKeeper cannot represent.
func checkEpoch(e uint64) error {
	if e > math.MaxInt32 {
		return fmt.Errorf("epoch %d is above %d", e, math.MaxInt32)
	}
	return nil
}

func checkInt32(what string, n int64) error {
	if n < math.MinInt32 || n > math.MaxInt32 {
		return fmt.Errorf("%s %d does not fit into 32 bits", what, n)
	}
	return nil
}

// checkTimeout refuses what is not a length of time in milliseconds.
func checkTimeout(what string, ms int64) error {
	if ms < 0 || ms > math.MaxInt32 {
		return fmt.Errorf("%s of %d ms", what, ms)
	}
	return nil
}

// checkName refuses file names that could lead anywhere but to a file of the directory meant.
func checkName(name string) error {
	if name == "" || len(name) > nameBytesMax {
		return fmt.Errorf("file name of %d bytes", len(name))
	}
	for i := range len(name) {
		c := name[i]
		ok := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || i > 0 && (c == '.' || c == '-' || c == '_')
		if !ok {
			return fmt.Errorf("file name %q", name)
		}
	}
	return nil
}

func checkConfigVersion(v int64) error {
	if v < 0 {
		return fmt.Errorf("configuration version %d is negative", v)
	}
	return nil
}

func origin(server int64, conn, seq uint64) zab.Origin {
	return zab.Origin{Server: zxid.ServerID(server), Conn: conn, Seq: seq}
}
