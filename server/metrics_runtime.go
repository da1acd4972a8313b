package server

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// runtimeExporter shows under the names of the Java machine, which dashboards and alert rules ask for, what comes closest to
// them here. The names of Go's own collector are beside them.
type runtimeExporter struct{ untouchedBytes int64 }

var (
	jvmMemory = map[string]*prometheus.Desc{
		"used":      prometheus.NewDesc("jvm_memory_bytes_used", "Memory in use, bytes: Go's heap, and the rest of Go's memory as nonheap", []string{"area"}, nil),
		"committed": prometheus.NewDesc("jvm_memory_bytes_committed", "Memory taken from the system, bytes: Go's heap, and the rest of Go's memory as nonheap", []string{"area"}, nil),
		"max":       prometheus.NewDesc("jvm_memory_bytes_max", "How far Go's heap may grow, bytes: the least of GOMEMLIMIT, the limit of the container and the memory of the machine", []string{"area"}, nil),
	}
	jvmPool = map[string]*prometheus.Desc{
		"used":      prometheus.NewDesc("jvm_memory_pool_bytes_used", "Memory in use, bytes, by the part of Go's memory", []string{"pool"}, nil),
		"committed": prometheus.NewDesc("jvm_memory_pool_bytes_committed", "Memory taken from the system, bytes, by the part of Go's memory", []string{"pool"}, nil),
		"max":       prometheus.NewDesc("jvm_memory_pool_bytes_max", "As jvm_memory_bytes_max; the other parts have no bound of their own", []string{"pool"}, nil),
	}
	jvmPoolAllocated = prometheus.NewDesc("jvm_memory_pool_allocated_bytes_total", "Bytes ever allocated in the heap", []string{"pool"}, nil)
	jvmGC            = prometheus.NewDesc("jvm_gc_collection_seconds", "Garbage collections: how many, and how long they have stopped the process, seconds", []string{"gc"}, nil)
	jvmThreads       = prometheus.NewDesc("jvm_threads_current", "Goroutines; go_threads counts the threads of the system", nil, nil)
	jvmThreadsState  = prometheus.NewDesc("jvm_threads_state", "Goroutines by state: RUNNABLE is running, ready to run, or in a call of the system", []string{"state"}, nil)
	jvmDeadlocked    = prometheus.NewDesc("jvm_threads_deadlocked", "Always 0: Go does not look for goroutines that wait for one another", nil, nil)
	jvmInfo          = prometheus.NewDesc("jvm_info", "Always 1; what runs the server", []string{"version", "vendor", "runtime"}, nil)
)

// The parts of Go's memory.
const (
	poolHeap    = "Go heap"
	poolStacks  = "Go stacks"
	poolRuntime = "Go runtime"
	collector   = "Go"
)

// runtimeNames are what is read of Go's runtime.
var runtimeNames = []string{
	"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes",
	"/memory/classes/heap/stacks:bytes", "/memory/classes/os-stacks:bytes", "/memory/classes/heap/released:bytes",
	"/memory/classes/total:bytes", "/gc/heap/allocs:bytes", "/sched/goroutines:goroutines",
	"/sched/goroutines/running:goroutines", "/sched/goroutines/runnable:goroutines", "/sched/goroutines/not-in-go:goroutines",
	"/sched/goroutines/waiting:goroutines",
}

// Describe implements [prometheus.Collector].
func (e *runtimeExporter) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (e *runtimeExporter) Collect(ch chan<- prometheus.Metric) {
	v := readRuntime()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	untouched := float64(e.untouchedBytes)
	heap := max(v["/memory/classes/heap/objects:bytes"]-untouched, 0)
	committed := heap + v["/memory/classes/heap/unused:bytes"] + v["/memory/classes/heap/free:bytes"]
	stacks := v["/memory/classes/heap/stacks:bytes"] + v["/memory/classes/os-stacks:bytes"]
	rest := max(v["/memory/classes/total:bytes"]-v["/memory/classes/heap/released:bytes"]-untouched-committed-stacks, 0)
	limit := float64(heapLimit())
	for area, sizes := range map[string][2]float64{"heap": {heap, committed}, "nonheap": {stacks + rest, stacks + rest}} {
		gauge(jvmMemory["used"], sizes[0], area)
		gauge(jvmMemory["committed"], sizes[1], area)
	}
	gauge(jvmMemory["max"], limit, "heap")
	for pool, sizes := range map[string][2]float64{poolHeap: {heap, committed}, poolStacks: {stacks, stacks}, poolRuntime: {rest, rest}} {
		gauge(jvmPool["used"], sizes[0], pool)
		gauge(jvmPool["committed"], sizes[1], pool)
	}
	gauge(jvmPool["max"], limit, poolHeap)
	ch <- prometheus.MustNewConstMetric(jvmPoolAllocated, prometheus.CounterValue, v["/gc/heap/allocs:bytes"], poolHeap)
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	ch <- prometheus.MustNewConstSummary(jvmGC, uint64(gc.NumGC), gc.PauseTotal.Seconds(), nil, collector)
	gauge(jvmThreads, v["/sched/goroutines:goroutines"])
	for state, n := range threadStates(v) {
		gauge(jvmThreadsState, n, state)
	}
	gauge(jvmDeadlocked, 0)
	gauge(jvmInfo, 1, runtime.Version(), "zabra", "Go")
}

// threadStates are the states of Java's threads. Goroutines are in two of them.
func threadStates(v map[string]float64) map[string]float64 {
	return map[string]float64{
		"NEW": 0, "BLOCKED": 0, "TIMED_WAITING": 0, "TERMINATED": 0,
		"RUNNABLE": v["/sched/goroutines/running:goroutines"] + v["/sched/goroutines/runnable:goroutines"] + v["/sched/goroutines/not-in-go:goroutines"],
		"WAITING":  v["/sched/goroutines/waiting:goroutines"],
	}
}

func readRuntime() map[string]float64 {
	samples := make([]runtimemetrics.Sample, len(runtimeNames))
	for i, name := range runtimeNames {
		samples[i].Name = name
	}
	runtimemetrics.Read(samples)
	values := make(map[string]float64, len(samples))
	for _, s := range samples {
		if s.Value.Kind() == runtimemetrics.KindUint64 {
			values[s.Name] = float64(s.Value.Uint64())
		}
	}
	return values
}

// heapLimit is how far the heap may grow, in bytes. Alert rules divide by it.
func heapLimit() uint64 {
	_, limit, _ := memory()
	if c := containerLimit(cgroupFile); c > 0 {
		limit = min(limit, c)
	}
	return max(limit, 1)
}

// cgroupFile tells the limit of the container's memory.
const cgroupFile = "/sys/fs/cgroup/memory.max"

// containerLimit is 0 where there is none.
func containerLimit(file string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return n
}
