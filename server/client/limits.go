package client

import "time"

const (
	// FrameBytesMaxDefault is the largest frame, in bytes, that is taken from a server unless Options say otherwise.
	// Replies may be larger than the largest request, so it is well above jute.maxbuffer.
	FrameBytesMaxDefault = 64 << 20
	// EventsQueuedMaxDefault is the number of events that may wait to be read from Client.Events.
	EventsQueuedMaxDefault = 4096
	// TimeoutDefault is the session timeout that is asked for.
	TimeoutDefault = 10 * time.Second

	// writeBytesMax is how much may wait to be written, in bytes, before new calls have to wait themselves. One call may
	// go over it.
	writeBytesMax = 1 << 20
	// writeBufferKeptBytes is the largest write buffer that is used again.
	writeBufferKeptBytes = 256 << 10
	readBufferBytes      = 32 << 10
	readStepBytes        = 1 << 20
	// wordAnswerBytesMax bounds the answer to a four-letter word.
	wordAnswerBytesMax = 64 << 20

	// pingsPerTimeout is how often a silent client pings during its session's timeout, as ZooKeeper's own clients do.
	pingsPerTimeout = 3
)
