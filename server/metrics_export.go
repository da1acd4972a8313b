package server

import (
	"math"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"zabra/internal/histogram"
	"zabra/server/admin"
)

// exporter hands the metrics to Prometheus, under ZooKeeper's names as they are: without a prefix, and without _total for
// counters. All is computed when it is asked for. Counters and summaries are those since the start.
type exporter struct {
	s      *Server
	window window
}

// labelName is the name of every label, as in ZooKeeper.
const labelName = "key"

// Describe implements [prometheus.Collector]. What there is depends on the role, so that nothing is told in advance.
func (e *exporter) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (e *exporter) Collect(ch chan<- prometheus.Metric) {
	m := e.s.moment()
	e.samples(ch, prometheus.GaugeValue, m.gauges())
	e.samples(ch, prometheus.CounterValue, m.counters())
	told := map[counterKey]bool{}
	for _, row := range e.s.summaries() {
		key := counterKey{row.name, exportLabel(row.label)}
		if !told[key] {
			told[key] = true
			ch <- e.summary(&row, key)
		}
	}
	ch <- fsyncHistogram(e.s.meter.fsyncUs.Total())
}

// samples hands gauges or counters on.
func (e *exporter) samples(ch chan<- prometheus.Metric, kind prometheus.ValueType, list []admin.Sample) {
	told := map[counterKey]bool{}
	for _, s := range list {
		key := counterKey{s.Name, exportLabel(s.Label)}
		if told[key] {
			continue
		}
		told[key] = true
		v := float64(s.Value.Int)
		if s.Value.IsFloat {
			v = s.Value.Float
		}
		desc, labels := descOf(key, s.Help)
		ch <- prometheus.MustNewConstMetric(desc, kind, v, labels...)
	}
}

// summary has the quantiles of ZooKeeper's summaries, NaN where the window has no sample.
func (e *exporter) summary(row *labelled, key counterKey) prometheus.Metric {
	var total, recent histogram.Snapshot
	if row.series != nil {
		total = row.series.Total()
		recent = total.Since(e.window.begin(key))
	}
	shares := []float64{0.5}
	if row.percentiles {
		shares = []float64{0.5, 0.9, 0.99}
	}
	quantiles := make(map[float64]float64, len(shares))
	for _, q := range shares {
		quantiles[q] = math.NaN()
		if recent.Count > 0 {
			quantiles[q] = float64(recent.Quantile(q))
		}
	}
	desc, labels := descOf(key, row.help)
	return prometheus.MustNewConstSummary(desc, total.Count, float64(total.Sum), quantiles, labels...)
}

// descOf makes the description of a metric.
func descOf(key counterKey, help string) (desc *prometheus.Desc, labels []string) {
	if key.label == "" {
		return prometheus.NewDesc(key.name, help, nil, nil), nil
	}
	return prometheus.NewDesc(key.name, help, []string{labelName}, nil), []string{key.label}
}

// exportLabel makes a label of what Prometheus takes, which is UTF-8. Names of nodes may hold what is none. The few that
// become the same are shown once.
func exportLabel(label string) string { return strings.ToValidUTF8(label, "\uFFFD") }

// fsyncUsMin and fsyncSteps make the bounds of the histogram of syncs: two to each power of two, from 32 microseconds
// to 25 seconds.
const (
	fsyncUsMin = 32
	fsyncSteps = 20
)

// fsyncHistogram shows how long syncs of the log take, so that Prometheus can compute quantiles over any time and any number
// of servers.
func fsyncHistogram(us histogram.Snapshot) prometheus.Metric {
	const perSecond = 1e6
	buckets := make(map[float64]uint64, 2*fsyncSteps)
	for i := range fsyncSteps {
		for _, bound := range []int64{fsyncUsMin << i, fsyncUsMin << i * 3 / 2} {
			buckets[float64(bound)/perSecond] = us.Below(bound)
		}
	}
	desc := prometheus.NewDesc("fsync_seconds", "Time to sync the log, seconds; ZooKeeper has no such series", nil, nil)
	return prometheus.MustNewConstHistogram(desc, us.Count, float64(us.Sum)/perSecond, buckets)
}
