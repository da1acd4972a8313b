package admin

import (
	"slices"
	"strconv"
	"strings"
)

// Metrics are all measurements of a server: what mntr prints. What can be measured in ZooKeeper's server and not in this one,
// since it works in another way, is listed with 0 or without samples, so that agents and dashboards find what they ask for;
// the help text says so.
type Metrics struct {
	Version   string
	Mode      Mode
	PeerState string // such as "leading - broadcast"; empty for a standalone server
	// ObserverMaster is the server that an observer is connected to; 0 for any other server.
	ObserverMaster int64
	Gauges         []Sample
	Counters       []Sample
	Summaries      []Summary
}

// Sample is one number. Name is that of ZooKeeper's metric, without the prefix zk_. Label, if there is one, says what the
// number is of: a namespace or the id of a server.
type Sample struct {
	Name  string
	Label string
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

// Summary sums up a series of samples since the start or the last reset. Without samples all its numbers are 0. Label is as
// that of a Sample.
type Summary struct {
	Name            string
	Label           string
	Help            string
	Count, Sum      int64
	Min, Max        int64
	Percentiles     Percentiles
	WithPercentiles bool
}

// Percentiles are estimates of a summary's distribution, in its unit.
type Percentiles struct{ P50, P95, P99, P999 int64 }

// AppendText implements [Answer]: a line of "zk_", key, tab and value for each number, in ZooKeeper's order of blocks
// and by name inside each. The form never depends on the metrics provider, since agents parse it line by line and give
// up at the first line that they do not understand.
func (m Metrics) AppendText(b []byte) []byte {
	b = appendMetric(b, "version", m.Version)
	b = appendMetric(b, "server_state", string(m.Mode))
	if m.PeerState != "" {
		b = appendMetric(b, "peer_state", m.PeerState)
	}
	if m.ObserverMaster != 0 {
		b = appendMetric(b, "observer_master_id", strconv.FormatInt(m.ObserverMaster, 10))
	}
	m.Each(func(key string, v Number) {
		b = appendMetricName(b, key)
		if v.IsFloat {
			b = appendDouble(b, v.Float)
		} else {
			b = strconv.AppendInt(b, v.Int, 10)
		}
		b = append(b, '\n')
	})
	return b
}

// Each calls f for every number with the key that mntr has for it behind "zk_", in the order of mntr.
func (m Metrics) Each(f func(key string, v Number)) {
	words := m.labelWords()
	for _, samples := range [][]Sample{m.Gauges, m.Counters} {
		for _, labelled := range []bool{false, true} {
			for _, s := range sorted(samples, sampleKey) {
				switch {
				case (s.Label != "") != labelled:
				case labelled:
					f(words[s.Label]+"_"+s.Name, s.Value)
				default:
					f(s.Name, s.Value)
				}
			}
		}
	}
	summaries := sorted(m.Summaries, summaryKey)
	for _, labelled := range []bool{false, true} {
		for _, percentiles := range []bool{false, true} {
			for i := range summaries {
				if s := &summaries[i]; s.WithPercentiles == percentiles && (s.Label != "") == labelled {
					s.each(words[s.Label], f)
				}
			}
		}
	}
}

// each calls f for every number of a summary.
func (s *Summary) each(word string, f func(key string, v Number)) {
	name := s.Name
	if word != "" {
		name = word + "_" + name
	}
	avg := 0.0
	if s.Count > 0 {
		avg = float64(s.Sum) / float64(s.Count)
	}
	f("avg_"+name, Float(avg))
	f("min_"+name, Int(s.Min))
	f("max_"+name, Int(s.Max))
	f("cnt_"+name, Int(s.Count))
	f("sum_"+name, Int(s.Sum))
	if s.WithPercentiles {
		f("p50_"+name, Int(s.Percentiles.P50))
		f("p95_"+name, Int(s.Percentiles.P95))
		f("p99_"+name, Int(s.Percentiles.P99))
		f("p999_"+name, Int(s.Percentiles.P999))
	}
}

// labelWords maps the labels to what stands for them in keys, which are words for every agent: of ASCII letters, digits and
// underscores. What differs stays different.
func (m Metrics) labelWords() map[string]string {
	var labels []string
	for _, samples := range [][]Sample{m.Gauges, m.Counters} {
		for _, s := range samples {
			labels = append(labels, s.Label)
		}
	}
	for _, s := range m.Summaries {
		labels = append(labels, s.Label)
	}
	slices.Sort(labels)
	labels = slices.Compact(labels)
	words, taken := map[string]string{}, map[string]bool{}
	for _, plain := range []bool{true, false} { // a label that is a word keeps its name
		for _, label := range labels {
			word := strings.Map(wordRune, label)
			if (word == label) != plain {
				continue
			}
			for n := 2; taken[word]; n++ {
				word = strings.Map(wordRune, label) + "_" + strconv.Itoa(n)
			}
			words[label], taken[word] = word, true
		}
	}
	return words
}

func wordRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
		return r
	}
	return '_'
}

func sampleKey(s Sample) string   { return s.Name + "\x00" + s.Label }
func summaryKey(s Summary) string { return s.Name + "\x00" + s.Label }

func appendMetricName(b []byte, key string) []byte {
	b = append(b, "zk_"...)
	b = append(b, key...)
	return append(b, '\t')
}

func appendMetric(b []byte, key, value string) []byte {
	return append(append(appendMetricName(b, key), value...), '\n')
}

func sorted[T any](list []T, key func(T) string) []T {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return list
}
