package main

import (
	"os"
	"runtime/debug"
)

// How the garbage collector is run, unless GOGC or GOMEMLIMIT in the environment say otherwise. The tree is kept in memory
// without pointers, so that a collection costs little however many nodes there are, and a low percentage keeps a large server
// small; but with a live heap of a few MiB, as most have, it would run a hundred times a second under load. A block that
// counts as live and is never touched, so that the system gives no memory for it, makes it wait until
// collectPercent of heapFloorBytes have been allocated.
const (
	collectPercent = 15
	heapFloorBytes = 96 << 20
)

var heapFloor []byte

func tuneCollector() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(collectPercent)
	heapFloor = make([]byte, heapFloorBytes)
}
