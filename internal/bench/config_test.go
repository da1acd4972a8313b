package bench

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

func TestCheck(t *testing.T) {
	for _, workload := range Workloads {
		c := Default(workload)
		require.NoError(t, c.Check(), workload)
	}
	for _, tc := range []struct {
		want   string
		change func(c *Config)
	}{
		{`no workload "nonsense"`, func(c *Config) { c.Workload = "nonsense" }},
		{"--servers", func(c *Config) { c.Servers = nil }},
		{`--servers "localhost"`, func(c *Config) { c.Servers = []string{"localhost"} }},
		{"--sessions 0", func(c *Config) { c.Sessions = 0 }},
		{"--outstanding 10001", func(c *Config) { c.Outstanding = 10001 }},
		{"--data-bytes -1", func(c *Config) { c.DataBytes = -1 }},
		{"--nodes 1000001", func(c *Config) { c.Nodes = 1000001 }},
		{"--reads 101", func(c *Config) { c.ReadPercent = 101 }},
		{"--ops 0", func(c *Config) { c.Ops = 0 }},
		{"--watches 0", func(c *Config) { c.Watches = 0 }},
		{"--children 0", func(c *Config) { c.ChildrenPerNode = 0 }},
		{"--threads 0", func(c *Config) { c.Threads = 0 }},
		{"--count -1", func(c *Config) { c.Count = -1 }},
		{"--rate NaN", func(c *Config) { c.Rate = math.NaN() }},
		{"--rate: workload lock", func(c *Config) { c.Workload, c.Rate = Lock, 5 }},
		{"--duration: a run without", func(c *Config) { c.Duration = 0 }},
		{"must not be negative", func(c *Config) { c.Warmup = -1 }},
		{"--timeline 1ns", func(c *Config) { c.Timeline = 1 }},
		{"--session-timeout 0s", func(c *Config) { c.SessionTimeout = 0 }},
		{`--root "/"`, func(c *Config) { c.Root = "/" }},
		{`--root "/zookeeper"`, func(c *Config) { c.Root = "/zookeeper" }},
		{`--root "/zookeeper/quota"`, func(c *Config) { c.Root = "/zookeeper/quota" }},
		{`--root "a/b"`, func(c *Config) { c.Root = "a/b" }},
		{`--root "/a//b"`, func(c *Config) { c.Root = "/a//b" }},
		{`--root "/\x01"`, func(c *Config) { c.Root = "/\x01" }},
	} {
		c := Default(Get)
		tc.change(&c)
		require.ErrorContains(t, c.Check(), tc.want)
		res, err := Run(t.Context(), c)
		require.ErrorContains(t, err, tc.want)
		require.Nil(t, res)
	}
	c := Default(Fill)
	c.Nodes = 5_000_000
	require.NoError(t, c.Check(), "a fill takes more nodes")
}

// A template becomes the request that the codec would have made.
func TestTemplate(t *testing.T) {
	tm := newTemplate(wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a-" + number + "/" + number), Data: []byte("x"), Version: -1})
	require.True(t, tm.write)
	require.Len(t, tm.at, 2)
	for _, n := range []uint32{0, 1, 42, 123456, numbersMax - 1} {
		b, start := tm.append([]byte("before"), 7)
		tm.put(b, start, 0, n)
		tm.put(b, start, 1, 65)
		var want jute.Encoder
		path := "/a-" + strings.Repeat("0", 6-len(decimal(n))) + decimal(n) + "/000065"
		wire.AppendRequest(&want, wire.RequestHeader{Xid: 7, Op: wire.OpSetData}, &wire.SetDataRequest{Path: []byte(path), Data: []byte("x"), Version: -1})
		require.Equal(t, want.Bytes(), b[start:])
	}
}

func decimal(n uint32) string {
	b, _ := json.Marshal(n)
	return string(b)
}

func TestNextXid(t *testing.T) {
	require.EqualValues(t, 2, nextXid(1))
	require.EqualValues(t, 1, nextXid(math.MaxInt32), "0 and below have meanings")
}

func example() *Result {
	q := Quantiles{P50: 12.5, P90: 999, P99: 1500, P999: 250_000, Max: 2_500_000, Mean: 20}
	return &Result{
		Workload: Mixed, Servers: []string{"a:1", "b:2"}, Sessions: 64, Outstanding: 16, DataBytes: 100, Nodes: 1024, ReadPercent: 90,
		RatePerSecond: 5000, Seed: 1, BeganUnixMs: 1700000000000, DurationSeconds: 5, Operations: 25000, Errors: 3,
		ErrorCodes: map[string]int64{"NoNode": 1, "ConnectionLoss": 2}, OperationsPerSecond: 5000, Latency: q, Reads: &q, Writes: &q,
		Fanout:   &Fanout{Watchers: 9, Answer: q, First: q, Last: q},
		Timeline: []Interval{{0, 12000, 0, 5}, {1, 13000, 3, 7}}, Server: &Usage{4.5, 30.25}, GeneratorCPUSeconds: 1.5,
	}
}

func TestFormats(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, example().Write(&b, JSON))
	require.Equal(t, 1, strings.Count(b.String(), "\n"), "one line")
	var back Result
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, example(), &back)

	b.Reset()
	require.NoError(t, example().Write(&b, Markdown))
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	require.Len(t, lines, 2+1+2+3)
	for _, line := range lines {
		require.Equal(t, 11, strings.Count(line, "|"), line)
	}
	require.Equal(t, "| mixed, 64 sessions x 16, 1024 nodes of 100 bytes, 90 % reads, 5000 per second | 5000 | 3 | 12 µs | 999 µs | 1.50 ms | 250 ms | 2.50 s | 4.50 s | 30.2 MiB |", lines[2])

	b.Reset()
	require.NoError(t, example().Write(&b, Text))
	for _, want := range []string{"a:1, b:2", "25000 in 5.000 s, 5000 per second", "3 (ConnectionLoss 2, NoNode 1)", "p99 1.50 ms", "of writes", "last event", "4.50 s of CPU, 30.2 MiB", "1.50 s of CPU"} {
		require.Contains(t, b.String(), want)
	}
	require.ErrorContains(t, example().Write(&b, "xml"), "no format")
}

// The recorder puts together what it is told one by one.
func TestRecorder(t *testing.T) {
	r := newRecorder(time.Second)
	r.from, r.until = int64(time.Second), int64(10*time.Second)
	require.False(t, r.counts(r.from-1))
	require.True(t, r.counts(r.from))
	require.False(t, r.counts(r.until))
	at := int64(2500 * time.Millisecond)
	for range 3 {
		r.success(at, int64(time.Millisecond), false)
	}
	r.success(at, int64(2*time.Millisecond), true)
	r.success(at, 5*int64(latencyMax), true)
	r.failure(at+int64(time.Second), wire.CodeNoNode, 2)
	r.flush()
	sum := newRecorder(time.Second)
	sum.from = r.from
	sum.merge(r)
	sum.merge(r)
	require.EqualValues(t, 10, sum.operations)
	require.EqualValues(t, 4, sum.errors)
	require.Equal(t, map[string]int64{"NoNode": 4}, names(sum.codes))
	require.EqualValues(t, 6, sum.latencies[reads].TotalCount())
	require.EqualValues(t, 4, sum.latencies[writes].TotalCount())
	require.Equal(t, []Interval{{0, 0, 0, 0}, {1, 10, 0, 3.6e9}, {2, 0, 4, 0}}, sum.timeline)
	q := quantiles(sum.all())
	require.InEpsilon(t, 1000, q.P50, 0.001)
	require.InEpsilon(t, 3.6e9, q.Max, 0.001)
	require.Equal(t, Quantiles{}, quantiles(newHistogram()))
}
