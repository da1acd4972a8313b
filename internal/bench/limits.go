package bench

import "time"

const (
	sessionsMax    = 100_000
	outstandingMax = 10_000
	nodesMax       = numbersMax
	fillNodesMax   = numbersMax * foldersNodes
	opsMax         = 10_000  // of one transaction
	watchesMax     = 10_000  // of one session
	childrenMax    = 100_000 // of one folder
	dataBytesMax   = 1 << 20 // servers take no more unless configured otherwise
	threadsMax     = 64
	intervalsMax   = 100_000 // of a timeline; what comes later counts for the last
	rateMax        = 100_000_000.0

	// frameBytesMax bounds what a server may send in one frame: a long list of children.
	frameBytesMax = 64 << 20
	// readBytes is how much is read at once. A frame that is longer makes the buffer grow.
	readBytes = 256 << 10

	// writeBytesMax bounds what is put together for one write, but for a single request.
	writeBytesMax = 1 << 20

	// portableBytes bounds what the portable poller keeps in memory for a socket, in and out each.
	portableBytes = 1 << 20
	// dialMax bounds an attempt of the portable poller to connect.
	dialMax = 30 * time.Second

	// openingMax is how many connections a thread opens at a time: more would not fit into the backlog of a listener.
	openingMax = 64
	// foldersNodes is how many nodes of a fill stand in one folder.
	foldersNodes = 1000
	// burstRequests and burstBytes bound what the preparation sends before it reads the answers.
	burstRequests = 512
	burstBytes    = 128 << 10

	// silenceMaxDefault is how long no answer at all is waited for.
	silenceMaxDefault = 30 * time.Second
	// checkPeriod is how often a thread looks after silence, pings and the end of a run.
	checkPeriod = 50 * time.Millisecond
	// coarse is the shortest time for which milliseconds are good enough.
	coarse = 20 * time.Millisecond
	// retryPause lies between two attempts of a session to find a server that takes it.
	retryPause = 5 * time.Millisecond
	// tidyMax bounds the clean-up after a run that failed.
	tidyMax = 5 * time.Second
	// latencyMax is the longest latency that a histogram can hold; a longer one counts as that.
	latencyMax = time.Hour
)

// requestBytes is more than a request has beside its data and the root's name.
const requestBytes = 128

// slotsMin is enough for all that a session has outstanding beside the requests of a stream.
const slotsMin = 16
