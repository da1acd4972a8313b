package sim

import "time"

// Micros is simulated time in microseconds.
type Micros int64

const (
	millisecond Micros = 1000
	second             = 1000 * millisecond
)

// String renders the time in seconds.
func (m Micros) String() string { return (time.Duration(m) * time.Microsecond).String() }

// The size of a world.
const (
	// Faults strike between these. Clients work from the beginning to the end of it.
	faultsFrom = 1500 * millisecond
	faultsTo   = 30 * second
	// opsMin is how many operations the clients of a world complete at least, and faultsMin how many faults strike; a world
	// that is slower lasts longer, up to faultsExtended, and fails if it has not got there then.
	opsMin         = 200
	faultsMin      = 5
	faultsExtended = 120 * second
	// servedFirst is which of a server's steps look at requests first: every third.
	servedFirst = 3
	// strikeAgain is when a fault that found nothing to hit tries again.
	strikeAgain = 250 * millisecond
	// livenessBound is how long after the end of the faults a leader must serve, all servers must be level, and every
	// client must have written something.
	livenessBound = 20 * second
	// quietBound is how long everything may take to come to rest after the clients have stopped.
	quietBound = 10 * second
	// stepsMax ends a world that does not end by itself.
	stepsMax = 3_000_000
)

// The servers' timing. It is scaled down from ZooKeeper's defaults, so that much happens in 30 seconds.
const (
	tickMs      = 200
	initLimitMs = 10 * tickMs
	syncLimitMs = 5 * tickMs
	// sessions ask for timeouts between these.
	sessionTimeoutMinMs = 4 * tickMs
	sessionTimeoutMaxMs = 16 * tickMs
)

const (
	// pageBytes is what the disk writes at once.
	pageBytes = 4096
	// chunkBytes is how much of a snapshot travels in one piece: little, so that transfers take a while and break.
	chunkBytes = 1500
	// historyBytesMax bounds one answer out of the log.
	historyBytesMax = 8 << 10
	// connBacklogMax is how many messages may wait on a connection between servers before it is cut.
	connBacklogMax = 4000
	// fieldBytesMax is jute.maxbuffer.
	fieldBytesMax = 1 << 20
	// framesMax bounds the requests of a client that are under way at once.
	framesMax = 6
	// watchesMax bounds the watches of a client.
	watchesMax = 6
)
