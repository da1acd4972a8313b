package zab

const (
	// windowEntriesMin is how many committed transactions are kept in memory for learners whatever their size is, within
	// four times windowBytesMax. It is ZooKeeper's default and minimum of commitLogCount.
	windowEntriesMin = 500
	// windowBytesMax bounds the transactions in memory that are applied here: their payloads, and entryOverheadBytes for
	// each.
	windowBytesMax = 16 << 20
	// windowDroppedBytesMax bounds what was let go of them and still stands in the same slice.
	windowDroppedBytesMax = windowBytesMax / 2
	// windowBehindBytesMax bounds what a leader keeps for learners that are level and do not keep up, counted likewise.
	windowBehindBytesMax = 128 << 20
	// inflightBytesMax bounds what was sent to one learner and is not acknowledged. Beyond it the learner is served again
	// when it has answered, from memory or from disk.
	inflightBytesMax = 8 << 20
	// proposalBytesMax bounds the payloads of one PROPOSAL, if it has more than one transaction.
	proposalBytesMax = 512 << 10
	// entryOverheadBytes is what a transaction counts beyond its payload, in memory and on the way.
	entryOverheadBytes = 64
	// roomEntriesMax bounds the room that is made for transactions ahead of them.
	roomEntriesMax = 4096

	// finalizeWaitMs is how long an election waits for voters that can be reached and have not agreed, once a quorum has.
	finalizeWaitMs = 200
	// yieldLimitMs is how long a leader that has handed over leaves the lead to others: many times what an election takes.
	yieldLimitMs = 3000
	// connectLimitMs is how long a server waits for the connection to the leader that was elected, and a leader for
	// enough of them, before it looks again; initLimit if that is less. It doubles with each role that comes to nothing,
	// until one serves: connections may be slow.
	connectLimitMs = 1000
	// connectDoublingsMax is how often connectLimitMs doubles at most: to 17 minutes, beyond any initLimit of use.
	connectDoublingsMax = 10
	// epochLeapMax is how far the accepted epoch of a voter may be ahead of all that is known here.
	epochLeapMax = 1 << 20
	// resendMinMs and resendMaxMs bound the time after which a server that is looking for a leader says so again. The
	// time doubles while nothing happens.
	resendMinMs, resendMaxMs = 200, 2000

	// epochMax is the highest epoch that ZooKeeper can represent in a zxid.
	epochMax = 1<<31 - 1
	// counterMargin is how many zxids of an epoch are left when its leader makes room for the next.
	counterMargin = 1 << 20
)
