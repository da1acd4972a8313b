package zabtest

const (
	// TickMs, InitLimitMs and SyncLimitMs are the settings of every Node in a World.
	TickMs, InitLimitMs, SyncLimitMs = 200, 2000, 1000
	// beginMs is the clock's time when a World begins.
	beginMs = 1000
	// eventsMax bounds what may happen without the clock going on: more than that is a loop.
	eventsMax = 100_000
	// waitMsMax bounds how long Until lets the clock run.
	waitMsMax = 120_000
	// transferChunks is in how many parts a snapshot goes over a connection.
	transferChunks = 2
)
