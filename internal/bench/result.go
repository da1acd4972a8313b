package bench

// Result is one run. Its JSON form is the output of zabra bench; names do not change, new ones may be added.
type Result struct {
	Workload    string   `json:"workload"`
	Servers     []string `json:"servers"`
	Sessions    int      `json:"sessions"`
	Outstanding int      `json:"outstanding"`
	// DataBytes is the size of a node's data, Nodes the number of nodes that the load is spread over.
	DataBytes   int `json:"data_bytes"`
	Nodes       int `json:"nodes"`
	ReadPercent int `json:"read_percent,omitempty"` // mixed
	// RatePerSecond is that of an open loop: latencies then count from the moment at which a request was due. 0 is a closed loop.
	RatePerSecond float64 `json:"rate_per_second,omitempty"`
	Seed          uint64  `json:"seed"`

	// BeganUnixMs is when the measurement began, behind the warm-up; DurationSeconds is how long it took.
	BeganUnixMs     int64   `json:"began_unix_ms"`
	DurationSeconds float64 `json:"duration_seconds"`
	// Operations were answered with success, Errors otherwise; ErrorCodes has the numbers by name of the code.
	Operations          int64            `json:"operations"`
	Errors              int64            `json:"errors"`
	ErrorCodes          map[string]int64 `json:"error_codes,omitempty"`
	OperationsPerSecond float64          `json:"operations_per_second"`

	// Latency is that of all operations; Reads and Writes divide those of mixed.
	Latency Quantiles  `json:"latency_us"`
	Reads   *Quantiles `json:"read_latency_us,omitempty"`
	Writes  *Quantiles `json:"write_latency_us,omitempty"`
	// Fanout is set by watch: from the write to its own answer, to the first and to the last event.
	Fanout *Fanout `json:"fanout_us,omitempty"`
	// Timeline has one interval after the other, when it was asked for.
	Timeline []Interval `json:"timeline,omitempty"`

	// Server is what the processes named by --pid used during the measurement, summed; RSS is that at its end.
	Server *Usage `json:"server,omitempty"`
	// GeneratorCPUSeconds is what the load generator itself used.
	GeneratorCPUSeconds float64 `json:"generator_cpu_seconds"`
}

// Quantiles are latencies in microseconds.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Fanout are latencies of a write to a node that many watch, medians and worst over the writes of the run, in microseconds.
type Fanout struct {
	Watchers int       `json:"watchers"`
	Answer   Quantiles `json:"answer"`
	First    Quantiles `json:"first_event"`
	Last     Quantiles `json:"last_event"`
}

// Interval is a piece of a run.
type Interval struct {
	AtSeconds  float64 `json:"at_seconds"` // its beginning, from that of the measurement
	Operations int64   `json:"operations"`
	Errors     int64   `json:"errors"`
	MaxUs      float64 `json:"max_us"` // longest latency of an operation that ended in it
}

// Usage is what processes used.
type Usage struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	RSSMiB     float64 `json:"rss_mib"`
}
