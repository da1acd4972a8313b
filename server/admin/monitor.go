package admin

import (
	"slices"
	"strconv"
	"strings"
)

// Metrics are all measurements of a server: what mntr prints. A server lists only what it measures, so that a missing
// line can be told from a zero.
type Metrics struct {
	Version   string
	Mode      Mode
	PeerState string // such as "leading - broadcast"; empty for a standalone server
	Gauges    []Sample
	Counters  []Sample
	Summaries []Summary
}

// Sample is one number. Name is that of ZooKeeper's metric, without the prefix zk_.
type Sample struct {
	Name  string
	Help  string
	Value Number
}

// Number is an integer or, if IsFloat, a floating-point number.
type Number struct {
	Int     int64
	Float   float64
	IsFloat bool
}

// Int makes a Number.
func Int(v int64) Number { return Number{Int: v} }

// Float makes a Number.
func Float(v float64) Number { return Number{Float: v, IsFloat: true} }

// Summary sums up a series of samples since the start or the last reset. Without samples all its numbers are 0.
type Summary struct {
	Name            string
	Help            string
	Count, Sum      int64
	Min, Max        int64
	Percentiles     Percentiles
	WithPercentiles bool
}

// Percentiles are estimates of a summary's distribution, in its unit.
type Percentiles struct{ P50, P95, P99, P999 int64 }

// AppendText implements [Answer]: a line of "zk_", name, tab and value for each number, in ZooKeeper's order of blocks
// and by name inside each. The form never depends on the metrics provider, since agents parse it line by line and give
// up at the first line that they do not understand.
func (m Metrics) AppendText(b []byte) []byte {
	b = appendMetric(b, "", "version", m.Version)
	b = appendMetric(b, "", "server_state", string(m.Mode))
	if m.PeerState != "" {
		b = appendMetric(b, "", "peer_state", m.PeerState)
	}
	b = appendSamples(b, m.Gauges)
	b = appendSamples(b, m.Counters)
	for _, percentiles := range []bool{false, true} {
		for _, s := range sortedByName(m.Summaries, func(s Summary) string { return s.Name }) {
			if s.WithPercentiles == percentiles {
				b = appendSummary(b, &s)
			}
		}
	}
	return b
}

func appendSamples(b []byte, samples []Sample) []byte {
	for _, s := range sortedByName(samples, func(s Sample) string { return s.Name }) {
		b = appendMetricName(b, "", s.Name)
		if s.Value.IsFloat {
			b = appendDouble(b, s.Value.Float)
		} else {
			b = strconv.AppendInt(b, s.Value.Int, 10)
		}
		b = append(b, '\n')
	}
	return b
}

func appendSummary(b []byte, s *Summary) []byte {
	avg := 0.0
	if s.Count > 0 {
		avg = float64(s.Sum) / float64(s.Count)
	}
	b = appendMetricName(b, "avg_", s.Name)
	b = append(appendDouble(b, avg), '\n')
	b = appendIntMetric(b, "min_", s.Name, s.Min)
	b = appendIntMetric(b, "max_", s.Name, s.Max)
	b = appendIntMetric(b, "cnt_", s.Name, s.Count)
	b = appendIntMetric(b, "sum_", s.Name, s.Sum)
	if !s.WithPercentiles {
		return b
	}
	b = appendIntMetric(b, "p50_", s.Name, s.Percentiles.P50)
	b = appendIntMetric(b, "p95_", s.Name, s.Percentiles.P95)
	b = appendIntMetric(b, "p99_", s.Name, s.Percentiles.P99)
	return appendIntMetric(b, "p999_", s.Name, s.Percentiles.P999)
}

func appendMetricName(b []byte, part, name string) []byte {
	b = append(b, "zk_"...)
	b = append(b, part...)
	b = append(b, name...)
	return append(b, '\t')
}

func appendMetric(b []byte, part, name, value string) []byte {
	return append(append(appendMetricName(b, part, name), value...), '\n')
}

func appendIntMetric(b []byte, part, name string, v int64) []byte {
	return append(strconv.AppendInt(appendMetricName(b, part, name), v, 10), '\n')
}

func sortedByName[T any](list []T, name func(T) string) []T {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return sorted
}
