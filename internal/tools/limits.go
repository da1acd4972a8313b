package tools

import "time"

const (
	// fieldBytesMax bounds one string or buffer that the tools read. It is far above the default of a server, so that they
	// can look at what a server with a raised jute.maxbuffer wrote.
	fieldBytesMax = 64 << 20
	// overlayPageBytes is the unit in which an overlay keeps changed content.
	overlayPageBytes = 4096
	// snapshotTriesMax is how many snapshots ZooKeeper tries at a start.
	snapshotTriesMax = 100
	// apacheRecordBytesMax is the largest record that ZooKeeper reads unless jute.maxbuffer is raised.
	apacheRecordBytesMax = 2 * 0xfffff
	// freeBytesLow is the free space below which the doctor warns: a new log takes 64 MiB at once by default.
	freeBytesLow = 256 << 20
	// smallFileBytesMax bounds what is read of myid and the epoch files.
	smallFileBytesMax = 4096
	// locksBytesMax bounds what is read of the system's list of locks.
	locksBytesMax = 1 << 20
	// futureSlack is how far ahead of the clock a file may be dated without a word.
	futureSlack = 5 * time.Minute
)
