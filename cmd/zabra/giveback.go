package main

import (
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// A server that was busy holds memory that it does not need any more: garbage of the last requests, stacks that were deeper,
// room that the collector was about to use. When the server has become quiet it collects once and gives that memory back to
// the system. Under load it does not, since the next request would take the memory again.
const (
	giveBackEvery = time.Second
	// quietTicks is how many times in a row the process has to be quiet: at most quietCPUPercent of one processor.
	quietTicks      = 2
	quietCPUPercent = 10
	// giveBackBytesMin is how much has to have been allocated since the last time for another collection to be worth it, and
	// giveBackLiveShare the part of a large heap, of which a collection has more to look through.
	giveBackBytesMin  = 8 << 20
	giveBackLiveShare = 8
)

// giveBack gives memory back in quiet moments until stop is closed.
func giveBack(stop <-chan struct{}) {
	ticker := time.NewTicker(giveBackEvery)
	defer ticker.Stop()
	var q quiet
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		if q.due(processCPU(), heapBytes(allocatedMetric), heapBytes(liveMetric)) {
			debug.FreeOSMemory()
			q.done(heapBytes(allocatedMetric))
		}
	}
}

// quiet decides when memory is given back.
type quiet struct {
	ticks     int           // quiet ones in a row
	cpu       time.Duration // of the process, at the last tick
	allocated uint64        // when memory was given back last
}

// due is asked once per giveBackEvery with what the process has used and allocated since its start, and what the last
// collection found in use.
func (q *quiet) due(cpu time.Duration, allocated, live uint64) bool {
	used := cpu - q.cpu
	q.cpu = cpu
	if used*100 > giveBackEvery*quietCPUPercent {
		q.ticks = 0
		return false
	}
	q.ticks++
	return q.ticks >= quietTicks && allocated-q.allocated >= max(giveBackBytesMin, live/giveBackLiveShare)
}

// done notes that memory was given back. What that itself has used does not count as work.
func (q *quiet) done(allocated uint64) {
	q.allocated, q.ticks = allocated, 0
	q.cpu = processCPU()
}

func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	allocatedMetric = "/gc/heap/allocs:bytes"
	liveMetric      = "/gc/heap/live:bytes"
)

func heapBytes(metric string) uint64 {
	sample := []metrics.Sample{{Name: metric}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
