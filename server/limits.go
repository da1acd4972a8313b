package server

import (
	"time"

	"zabra/internal/storage"
)

// Bounds of this package. Their unit is in the name.
const (
	// readBufferBytes is the size of the buffers that readers borrow while there is something to read. A frame that does
	// not fit gets memory of its own, which grows with what really arrives: bigFrameGrowth times that.
	readBufferBytes = 32 << 10
	bigFrameGrowth  = 4
	// writeChunkBytes is how much is written to a slow client under one deadline.
	writeChunkBytes = 64 << 10
	// writeStallMin is the least time that a client may take nothing of its output before it is given up. The longest
	// session timeout counts where it is longer.
	writeStallMin = 30 * time.Second
	// lingerTime and lingerBytesMax bound how long, and with how much input, a connection that was ended from this side
	// is still read, so that the client sees its last answer and an orderly end and no reset.
	lingerTime     = time.Second
	lingerBytesMax = 16 << 20
	// wordWriteTime bounds the time in which the answer to a four-letter word is taken.
	wordWriteTime = 10 * time.Second
	// tlsHandshakeTime bounds the TLS handshake of a client.
	tlsHandshakeTime = 10 * time.Second
	// securedReadBytes is how much of an encrypted connection is taken in at once, unaskedBytesMax how much the TLS library may
	// have to say by itself before the server has something to say.
	securedReadBytes = 4 << 10
	unaskedBytesMax  = 4 << 10
	// subjectBytesMax bounds the name in a client's certificate. It goes along with each of its writes.
	subjectBytesMax = 4 << 10
	// certPollTime is the pause between two looks at the files of certificates.
	certPollTime = 5 * time.Second
	// refusedPeekBytes and refusedPeekTime bound what is read of a frame that is too long, to name its operation and path.
	refusedPeekBytes = 512
	refusedPeekTime  = 250 * time.Millisecond
	// refusalQuietMs is the time in which refusals of one kind and one address make one line in the log.
	refusalQuietMs = 60_000
	// refusalKeysMax bounds the kinds and addresses that are remembered for it.
	refusalKeysMax = 4096
	// refusalQueueMax is how many of the replica's refusals wait for the log. More are only counted.
	refusalQueueMax = 256
	// refusalTextBytesMax bounds each text in such a line, before what cannot be printed is escaped.
	refusalTextBytesMax = 512
	// auditQueueMax and auditQueueBytesMax bound the records that wait for the audit log; each takes auditEntryBytes beside its path,
	// and auditIdentityBytes beside the text for each of its identities.
	auditQueueMax      = 64 << 10
	auditQueueBytesMax = 64 << 20
	auditEntryBytes    = 256
	auditIdentityBytes = 64
	// auditWaitMax is how long a step waits for room among them. It is short beside the times after which members of an
	// ensemble give each other up.
	auditWaitMax = 500 * time.Millisecond
	// auditWriteBytes is how much of the audit log is written at once.
	auditWriteBytes = 64 << 10
	// auditFileBytesMax is the size at which the file of the audit log is set aside, auditFilesKept how many old ones stay.
	auditFileBytesMax = 10 << 20
	auditFilesKept    = 10
	// auditTroubleQuietMs is the time in which trouble with its file makes one line in the log.
	auditTroubleQuietMs = 60_000
	// flushersMax is the number of goroutines that write what steps have left to be written.
	flushersMax = 8
	// flushBatch is how many connections a flusher takes at once, and how many of one step are urgent.
	flushBatch = 32
	// flushUrgentInRow is how many batches of urgent connections go before one of others.
	flushUrgentInRow = 4
	// flushDirectMax is how many connections of one step are written by the goroutine that took it.
	flushDirectMax = 4
	// peersDirectMax is to how many other servers what a step has for them is written by the goroutine that took it,
	// peerDirectBytesMax up to how much.
	peersDirectMax     = 6
	peerDirectBytesMax = 32 << 10
	// peerStepBytes is how much of what another server has sent is handed on before a step is taken for it.
	peerStepBytes = 64 << 10
	// readerRoundsMax is how many steps the reader of a connection takes in a row before it goes on reading.
	readerRoundsMax = 4
	// manyEntriesMin is how many transactions have to have become durable for requests to be looked at before they are applied.
	manyEntriesMin = 32
	// directEntriesMax is how many transactions that have become durable are applied on the disk goroutine.
	directEntriesMax = 16
	// flushQueueKeptMax is the length above which the memory of an emptied queue is not kept.
	flushQueueKeptMax = 4096
	// syncBatchBytesMax is how much is appended to the log before it is synced, though more may wait: what is durable can
	// be answered then. The storage itself never has more in flight.
	syncBatchBytesMax = 1 << 20
	// passagesMax is of how many messages with proposals the time is remembered until they are acknowledged or committed.
	passagesMax = 1024
	// scrapesMax is how many scrapes of /metrics are answered at a time, scrapeConnsMax how many connections its port takes.
	// The others bound what one of them may take.
	scrapesMax           = 4
	scrapeConnsMax       = 64
	scrapeReadTime       = 10 * time.Second
	scrapeWriteTime      = 30 * time.Second
	scrapeIdleTime       = 10 * time.Second
	scrapeHeaderBytesMax = 16 << 10
	// scrapeEndTime is what a scrape that is being answered gets when the server ends.
	scrapeEndTime = 500 * time.Millisecond
	// windowSteps steps of windowStep are what quantiles in /metrics are about, as in ZooKeeper.
	windowSteps = 5
	windowStep  = 2 * time.Minute
	// acceptBackoffMin and acceptBackoffMax bound the pause after a failed accept, such as for want of file descriptors.
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second
	// acceptFailureQuietMs is the time in which failed accepts make one line in the log.
	acceptFailureQuietMs = 10_000

	// helloPendingMax is how many connections on a port for other servers may be in the middle of their greeting. With one
	// more, the oldest of them is closed.
	helloPendingMax = 64
	// linkBackoffMin and linkBackoffMax bound the pause between two attempts to reach another member's election port.
	linkBackoffMin = 5 * time.Millisecond
	linkBackoffMax = time.Second
	// linkCallsAgain is the time within which a member that is connected may ask once to be called; more is strange.
	linkCallsAgain = 10 * time.Second
	// joinBackoffMin and joinBackoffMax do the same for the leader's quorum port.
	joinBackoffMin = 5 * time.Millisecond
	joinBackoffMax = 100 * time.Millisecond
	// joinPauseMax bounds the pause before the next connection to a leader when the last ones have come to nothing.
	joinPauseMax = 500 * time.Millisecond
	// bindRetryPause is the pause between two attempts to bind the election port, bindBackoffMin and bindBackoffMax
	// bound that for the quorum port, which an earlier role of the same process may still hold.
	bindRetryPause = time.Second
	bindBackoffMin = 5 * time.Millisecond
	bindBackoffMax = time.Second
	// peerQuietMs is the time in which the same trouble with another member makes one line in the log.
	peerQuietMs = 60_000
	// inputBytesMax bounds what other members have sent and no step has taken yet. Their connections are not read while
	// it is exceeded.
	inputBytesMax = 64 << 20
	// peerQueueBytesMax is the backlog of a connection to another member at which it is cut. The leader's own window
	// keeps far below it. A single message may be larger.
	peerQueueBytesMax = 64 << 20
	// peerMessageBytes is what a message costs in such a count beside its data.
	peerMessageBytes = 128
	// peerWriteBytes is how much is put together for one write to another member, peerBufferKeptBytesMax the size above
	// which the memory for that is not kept.
	peerWriteBytes         = 256 << 10
	peerBufferKeptBytesMax = 1 << 20
	// peerLingerTime bounds how long a connection to another member that was ended from this side is still written and
	// read.
	peerLingerTime = time.Second
	// historyBytesMax bounds the part of the log that is read at once for a learner.
	historyBytesMax = 1 << 20
	// snapshotChunkBytes is how much of a snapshot goes to a learner in one piece.
	snapshotChunkBytes = 256 << 10
	// newSnapshotsMax is how many snapshots in a row are waited for to get one that is as new as a learner needs it: one
	// that was begun before, and the next.
	newSnapshotsMax = 2
	// commitLogCountDefault is ZooKeeper's default and minimum of commitLogCount.
	commitLogCountDefault = 500
	// progressQuietMs is the least time between two signs of life of one transfer.
	progressQuietMs = 100
	// settleTime bounds how long a server that is about to hand over its role waits for its clients to take their
	// answers, handOverTime how long for the role to end and the other members to be told.
	settleTime   = 50 * time.Millisecond
	handOverTime = 500 * time.Millisecond
	// adminConnsMax is how many connections the admin server has at a time. With one more, the one that has been quiet
	// longest is closed, or the new one if all are busy.
	adminConnsMax = 128
	// adminHeaderTime bounds how long a client of the admin server takes to send the head of a request, and a TLS handshake;
	// adminHeaderBytesMax bounds the head.
	adminHeaderTime     = 10 * time.Second
	adminHeaderBytesMax = 32 << 10
	// adminStallTime is how long a client of the admin server may take nothing of an answer, or send nothing of a body.
	adminStallTime = 30 * time.Second
	// adminLookupTime bounds how long an admin command looks for the address of a name.
	adminLookupTime = 500 * time.Millisecond
	// snapRetainMin is the fewest snapshots that a purge leaves, as in the storage.
	snapRetainMin = storage.RetainMin
	// refusalsRecentMax is how many refusals are kept to be shown.
	refusalsRecentMax = 256
	// idleTime bounds how long a member that is shut down waits for what is under way to commit.
	idleTime = 2 * time.Second

	// snapshotAttemptsMax is how often a command tries to get the place of the snapshot that is being written.
	snapshotAttemptsMax = 4
	// diskReserveBytes is what the commands that write files leave free of the disk, roomStepBytes how much they write
	// between two looks at it. restoreBytesMax bounds the snapshot that a restore receives.
	diskReserveBytes = 256 << 20
	roomStepBytes    = 16 << 20
	restoreBytesMax  = 1 << 40
	// handOverAwaitTime bounds how long the command handover waits for the next leader.
	handOverAwaitTime = 10 * time.Second
	// lockWait is how long the start waits for a data directory that somebody else uses: a purge by hand, a server that ends.
	lockWait = time.Second
	// topSampleEvery is how many requests of a connection there are for one that is counted, topKeysMax how many clients and
	// paths are kept count of, topPathBytesMax how much of a path.
	topSampleEvery  = 64
	topKeysMax      = 512
	topPathBytesMax = 1024
	// topListDefault and topListMax are how many entries a list of top has.
	topListDefault = 20
	topListMax     = 500
	// surveyNodes is how many nodes top looks at under one lock.
	surveyNodes = 4096
)
