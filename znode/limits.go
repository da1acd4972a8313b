package znode

// Limits and sizes of the tree. None of them is a promise to clients.
const (
	// slabNodes is how many nodes are allocated together: 1,024 of them fill 13 pages of 8 KiB exactly.
	slabNodes = 1024
	// pageNodes is how many nodes are saved together when one of them changes under an open snapshot.
	pageNodes = 64
	slabPages = slabNodes / pageNodes

	// chunkBytesMin and chunkBytesMax bound what is allocated at once for blobs of one size class. A class begins with the
	// small one, so that a small tree stays small, and doubles.
	chunkBytesMin = 4 << 10
	chunkBytesMax = 256 << 10
	// chunkSlotsMax bounds the blobs of one chunk; it follows from the layout of a blobRef.
	chunkSlotsMax = 1 << blobSlotBits
	// blobClassBytesMax is the largest blob that shares a chunk with others.
	blobClassBytesMax = 32 << 10

	// indexDepthMax bounds the directory of the child index to 2^24 entries; 2^32 nodes need fewer.
	indexDepthMax = 24

	// lockShards is the number of reader locks. More of them make a writer slower, fewer make readers meet.
	lockShards = 8

	// reclaimBlobsMax bounds how many blobs that an ended snapshot had kept alive one transaction gives back.
	reclaimBlobsMax = 256

	// snapshotHoldBytes bounds the output for which Snapshot.Next keeps writers out at a stretch (one node more at most).
	snapshotHoldBytes = 256 << 10
	// snapshotStepBytesMax bounds the output of one call of Snapshot.Next (one node more at most).
	snapshotStepBytesMax = 1 << 20
	// snapshotReadBytes is the least buffer through which a snapshot is read: what is taken apart at a time, some hundreds
	// of ordinary nodes. It stays in a core's cache on the way from the file to the tree.
	snapshotReadBytes = 64 << 10
	// snapshotSlots is how many of those are under way between the two halves of reading.
	snapshotSlots = 4
	// reserveFactorMax bounds the room in the child index that is made ahead, as a multiple of the nodes that were read.
	reserveFactorMax = 16
	// snapshotTailBytesMax is more than the blocks behind a snapshot's first seal can take.
	snapshotTailBytesMax = 256

	// multiOpBytesMin is the least that an operation of a multi takes in a log: its type and the length of its body.
	multiOpBytesMin = 4 + 4
	// stringBytesMin is the least that a string takes: its length.
	stringBytesMin = 4
)
