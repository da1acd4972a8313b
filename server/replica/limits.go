package replica

// Bounds of this package. Bytes and counts are in the names.
const (
	// requestHeaderBytes is the size of xid and opcode.
	requestHeaderBytes = 8
	// connRequestsMax is how many requests of one connection may wait or be in flight before it is not read any more.
	connRequestsMax = 4096
	// connShare is how many requests of one connection may be in flight although there are globalOutstandingLimit of all. With
	// fewer, many connections would be read one request at a time, and woken for each.
	connShare = 16
	// connQueuedBytesMax is the same bound for the bytes of those requests.
	connQueuedBytesMax = 16 << 20
	// queuedBytesMax bounds the bytes of all requests that wait or are in flight. A connection with a request of its own
	// in flight is not read while it is exceeded.
	queuedBytesMax = 256 << 20
	// forwardedBytesMax bounds the bytes of a learner's requests that the leader has not answered; one request alone may
	// be larger. It is half of what the queue of the connection to the leader holds.
	forwardedBytesMax = 32 << 20
	// requestBatchBytesMax bounds the requests that go to the leader in one message; a single one may be larger.
	requestBatchBytesMax = 256 << 10
	// requestCostBytes is what a request counts in that beside its record, and each of its identities beside its text.
	requestCostBytes = 64
	// outFlushBytes is the size of the outbox at which a reader has to write it out before it takes the next frame.
	outFlushBytes = 256 << 10
	// outBytesMax is the backlog of replies and events at which a client that does not read is cut off. A single reply
	// may be larger.
	outBytesMax = 32 << 20
	// identityBytesMax bounds the identities that a connection may gather by auth requests.
	identityBytesMax = 64 << 10
	// identitiesMax bounds their number: an "auth" entry of an ACL becomes as many entries.
	identitiesMax = 256
	// reapedPerScanMax is how many nodes one scan for outlived ones notes at most.
	reapedPerScanMax = 10_000
	// applyBatchBytesMax bounds the bytes of the transactions that are applied under one hold of the lock, and
	// applyBatchDefault is how many transactions are applied under one hold of the tree's write lock, and before the
	// answers to them are handed on.
	applyBatchDefault  = 64
	applyBatchBytesMax = 1 << 20
	// shownPathBytesMax is how much of a client's path goes into a line of the log.
	shownPathBytesMax = 256
	// connNumberBits is the part of a connection's number in an ensemble that counts; above it stand the milliseconds since
	// 1970 of the server's start.
	connNumberBits = 20
	// bodyChunkBytes and payloadChunkBytes are the chunks that the records of waiting requests and encoded transactions are cut from;
	// what is larger than slabPieceShare of a chunk gets memory of its own. keyChunkBytes is the same for pending paths.
	bodyChunkBytes    = 8 << 10
	payloadChunkBytes = 64 << 10
	keyChunkBytes     = 16 << 10
	slabPieceShare    = 4
	// itemBufferMin is the room for waiting requests that a connection borrows first, itemBufferKeptMax the largest that is
	// kept for others.
	itemBufferMin     = 32
	itemBufferKeptMax = 1024
	// NamespacesMax is how many namespaces are counted one by one, namespaceBytesMax how long their names may be;
	// namespaceSlots is the size of the table that finds them, a power of two above that.
	NamespacesMax     = 64
	namespaceBytesMax = 128
	namespaceSlots    = 256
	// readStatBytes is what a read counts for the stat in its answer, as in ZooKeeper.
	readStatBytes = 68
	// hintsTakenMax is how many hints of applied transactions are kept before the others are moved to the front.
	hintsTakenMax = 8192
	// quotaQuietMs is the time in which quotas that other servers' clients go beyond make one line in the log.
	quotaQuietMs = 60_000
	// outstandingDefault stands for an unset limit of outstanding requests.
	outstandingDefault = 16384
)
