package queue

import "time"

const (
	// entryBytesMax bounds what one entry holds. A request of ZooKeeper has at most 1 MiB, and an entry should be far below
	// this bound.
	entryBytesMax = 512 << 10
	// lengthDefault is Options.LengthMax if it is 0, and lengthMax the most it can be: the names of all entries come in one
	// reply, which Java refuses beyond 1 MiB.
	lengthDefault = 10_000
	lengthMax     = 30_000
	// kazooPriorityMax is the lowest priority that kazoo knows.
	kazooPriorityMax = 999
	// dueMax is the latest time of a delayed entry: twelve hexadecimal digits of milliseconds, some 8,900 years.
	dueMaxMs = 1<<48 - 1

	// retryWaitFirst and retryWaitMax are the pauses between attempts in the background.
	retryWaitFirst = 50 * time.Millisecond
	retryWaitMax   = 2 * time.Second
)
