package storage

import "time"

// Limits and sizes. Those marked "on disk" are part of the file formats and may never change.
const (
	// fileHeaderBytes is the length of the header of logs and snapshots (on disk).
	fileHeaderBytes = 16
	// recordOverheadBytes is what a log record adds to its payload: checksum, length, end byte (on disk).
	recordOverheadBytes = 8 + 4 + 1
	// recordEndByte closes each record (on disk).
	recordEndByte = 0x42
	// txnHeaderBytes is the length of the header every transaction starts with; txnZxidOffset is where its zxid
	// stands in it (on disk).
	txnHeaderBytes = 32
	txnZxidOffset  = 12

	// batchBytesMax bounds what is written to the log between two syncs. A larger record goes alone. Recovery relies
	// on it: a valid record further than this behind a bad one cannot be the trace of a crash. It may be lowered but
	// never raised, because a newer server must understand what an older one left.
	batchBytesMax = 1 << 20
	// recordBytesMaxDefault is ZooKeeper's default limit of one record.
	recordBytesMaxDefault = 2 * 0xfffff
	// recordReadBytesMax bounds a record that is read, whatever the configured limit for writing is. This is about the
	// log alone: whoever decodes the transaction may still refuse a field above the configured limit (jute.maxbuffer),
	// so a directory need not load after that was lowered. An intact record above this bound is refused, never cut off.
	recordReadBytesMax = 64 << 20
	// padSlackBytes: a log grows when fewer bytes than this are left before its end (ZooKeeper's rule).
	padSlackBytes = 4096
	// zeroAheadBytes is how far real zeros are written ahead of the log's end, zeroChunkBytes how many at once. New
	// zeros are written when less than zeroAheadLowBytes are left.
	zeroAheadBytes    = 4 << 20
	zeroAheadLowBytes = 2 << 20
	zeroChunkBytes    = 256 << 10

	// rewriteBytes is how much of the end of a log recovery writes once more when no mark says what was durable: enough
	// for the largest record that is read, and for many batches of ordinary ones.
	rewriteBytes = recordReadBytesMax + batchBytesMax
	// scanChunkBytes is the unit in which recovery reads behind the end of a log.
	scanChunkBytes = 1 << 20
	// readBufferBytes is the buffer of a sequential reader.
	readBufferBytes = 256 << 10
	// directReadBytes is what a reader of a snapshot must ask for to get it without another copy.
	directReadBytes = 32 << 10
	// scanChecksumBytesMax bounds the work of looking for records behind a bad one. Ordinary data comes nowhere near
	// it; where it is used up, the answer is that something follows, which is the careful one.
	scanChecksumBytesMax = 4 << 30
	// scanCounterMax is how far ahead a zxid may lie to be taken for a record's in that search.
	scanCounterMax = 1 << 24

	// snapshotChunkBytes is how much of a snapshot is made and written at a time.
	snapshotChunkBytes = 1 << 20
	// snapshotFlushLagBytes bounds how much of a snapshot may be dirty in memory while it is written.
	snapshotFlushLagBytes = 4 << 20
	// snappyBlockBytes is the input of one snappy block (on disk, as snappy-java writes it), snappyBlockBytesMax the
	// largest output of one that is read.
	snappyBlockBytes    = 32 << 10
	snappyBlockBytesMax = 1 << 20

	// syncWarnDefault is ZooKeeper's default of how long a sync takes that counts as slow.
	syncWarnDefault = time.Second
	// snapshotSizeFactorDefault is ZooKeeper's, logServedBytes the size up to which the log is handed on whatever the size
	// of the snapshot: reading it costs less than everything around a transfer.
	snapshotSizeFactorDefault = 0.33
	logServedBytes            = 16 << 20
	// historyCursors is how many places in the log are remembered at which an answer of History ended: more than there are
	// servers that catch up at a time.
	historyCursors = 32
	// historyArenaBytes is the unit in which History takes memory for payloads.
	historyArenaBytes = 64 << 10
	// receivedBytesMax bounds the size of a snapshot that is received. Disks of that size are rare, and mistakes are not.
	receivedBytesMax = 1 << 42
	// receivedSyncBytes is how much of a received snapshot a restart may cost: so often it is synced, and noted how far.
	receivedSyncBytes = 64 << 20
	// receivedInfoBytesMax bounds the note about a received snapshot.
	receivedInfoBytesMax = 512

	// lockRetryPause is the pause between two attempts to take a directory that somebody else uses.
	lockRetryPause = 10 * time.Millisecond

	// snapRetainMin is the fewest snapshots that a purge keeps.
	snapRetainMin = 3
	// snapCountMin is the fewest transactions between two snapshots.
	snapCountMin = 2
	// epochFileBytesMax bounds an epoch file: a decimal number.
	epochFileBytesMax = 32
)
