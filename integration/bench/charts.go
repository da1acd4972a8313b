//go:build linux

package main

import (
	"fmt"
	"math"

	"zabra/integration/harness"
)

// plot is one picture of the document.
type plot struct {
	file, caption string
	chart         *chart
}

// plots draws every picture for which there are results.
func (r *results) plots(reference harness.Kind) (all []plot) {
	for _, draw := range []func(harness.Kind) (plot, bool){
		r.plotShares, r.plotLatency(rowGet, "get"), r.plotLatency(rowSet, "set"), r.plotMemory, r.plotKill, r.plotSnapshot,
	} {
		if p, there := draw(reference); there {
			all = append(all, p)
		}
	}
	return all
}

// medianOf is the median of a figure over all rounds.
func (r *results) medianOf(id, key string, who contestant) (float64, bool) {
	values := r.values(row{id: id}, figure{key: key}, who)
	return median(values), len(values) > 0
}

// both makes the two lines of a plot, points in units of one figure of the reference server.
func (r *results) both(reference harness.Kind, unit float64, points func(contestant) [][2]float64) []plotLine {
	zabra, plain, _ := contestants(reference)
	lines := []plotLine{{name: "Zabra", class: "a", dots: true, points: points(zabra)},
		{name: referenceName(reference), class: "b", dots: true, points: points(plain)}}
	for _, l := range lines {
		for i := range l.points {
			l.points[i][1] /= unit
		}
	}
	return lines
}

// sharePoints are the rows of the plot of throughput over the share of reads.
var sharePoints = []struct {
	percent float64
	id      string
}{{0, rowSet}, {25, "mixed-25"}, {50, rowMixed50}, {75, "mixed-75"}, {90, "mixed-90"}, {100, rowGet}}

func (r *results) plotShares(reference harness.Kind) (plot, bool) {
	_, plain, _ := contestants(reference)
	unit, there := r.medianOf(rowSet, "ops", plain)
	if !there {
		return plot{}, false
	}
	c := &chart{title: "Throughput over the share of reads, 64 sessions × 16 outstanding, one server", xName: "reads, %",
		yName: "operations/s, " + referenceName(reference) + " with writes only = 1", note: "higher is better", xMin: 0, xMax: 100}
	c.lines = r.both(reference, unit, func(who contestant) (points [][2]float64) {
		for _, p := range sharePoints {
			if v, there := r.medianOf(p.id, "ops", who); there {
				points = append(points, [2]float64{p.percent, v})
			}
		}
		return points
	})
	for _, p := range sharePoints {
		c.xTicks = append(c.xTicks, tick{p.percent, fmt.Sprintf("%.0f", p.percent)})
	}
	c.fromZero(0)
	return plot{"throughput.svg", "Throughput over the share of reads", c}, true
}

var percentiles = []struct{ key, text string }{{"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"p999", "p99.9"}, {"max", "max"}}

func (r *results) plotLatency(id, name string) func(harness.Kind) (plot, bool) {
	return func(reference harness.Kind) (plot, bool) {
		_, plain, _ := contestants(reference)
		unit, there := r.medianOf(id, "p50", plain)
		if !there || unit <= 0 {
			return plot{}, false
		}
		c := &chart{title: "Latency of " + name + ", 64 sessions × 16 outstanding, one server", xName: "percentile",
			yName: "latency, p50 of " + referenceName(reference) + " = 1", note: "lower is better", xMin: 0, xMax: float64(len(percentiles) - 1)}
		c.lines = r.both(reference, unit, func(who contestant) (points [][2]float64) {
			for i, p := range percentiles {
				if v, there := r.medianOf(id, p.key, who); there {
					points = append(points, [2]float64{float64(i), v})
				}
			}
			return points
		})
		for i, p := range percentiles {
			c.xTicks = append(c.xTicks, tick{float64(i), p.text})
		}
		c.decades()
		return plot{"latency-" + name + ".svg", "Latency percentiles of " + name, c}, true
	}
}

func (r *results) plotMemory(reference harness.Kind) (plot, bool) {
	_, plain, _ := contestants(reference)
	unit, there := r.medianOf(rowMemory, memoryFull, plain)
	if !there {
		return plot{}, false
	}
	c := &chart{title: "Memory over the number of znodes of 100 B", xName: "znodes, thousands",
		yName: "RSS, " + referenceName(reference) + " at 1,000,000 = 1", note: "lower is better", xMin: 0, xMax: 1000}
	keys := []string{memoryEmpty, memoryQuarter, memoryHalf, memoryFull}
	at := []float64{0, 250, 500, 1000}
	c.lines = r.both(reference, unit, func(who contestant) (points [][2]float64) {
		for i, key := range keys {
			if v, there := r.medianOf(rowMemory, key, who); there {
				points = append(points, [2]float64{at[i], v})
			}
		}
		return points
	})
	for _, v := range at {
		c.xTicks = append(c.xTicks, tick{v, fmt.Sprintf("%.0f", v)})
	}
	c.fromZero(0)
	return plot{"memory.svg", "Memory over znodes", c}, true
}

// firstRecord returns a contestant's record of the first round that has one.
func (r *results) firstRecord(id string, who contestant) *record {
	for round := range r.rounds() {
		if rec := r.all[entry{id, who.name, round}]; rec != nil && rec.Failed == "" {
			return rec
		}
	}
	return nil
}

// backlogShown is the share up to which answers are drawn: when writing goes on, all that was due meanwhile is answered at once.
const backlogShown = 2

func (r *results) plotKill(reference harness.Kind) (plot, bool) {
	zabra, plain, _ := contestants(reference)
	a, b := r.firstRecord(rowKillPicture, zabra), r.firstRecord(rowKillPicture, plain)
	if a == nil || b == nil || len(a.run.Timeline) == 0 || len(b.run.Timeline) == 0 {
		return plot{}, false
	}
	c := &chart{title: "Leader killed, three servers, writes at a fixed rate",
		xName: fmt.Sprintf("seconds; the leader is killed at %.0f", pictureKillAt.Seconds()),
		yName: "writes answered in each tenth of a second, as a share of those that were due", note: "what is missing below 1 is the outage; behind it the backlog is answered, drawn up to 2"}
	until := wholeSeconds(a, b)
	c.lines = []plotLine{
		{name: "Zabra", class: "a", points: answered(a, until)},
		{name: referenceName(reference), class: "b", points: answered(b, until)}}
	c.bands = []band{{"mark", pictureKillAt.Seconds(), pictureKillAt.Seconds()}}
	c.seconds(until)
	c.fromZero(backlogShown)
	return plot{"leader-kill.svg", "A leader is killed", c}, true
}

// timelineStep is the interval of the timelines of both pictures, in seconds.
const timelineStep = 0.1

// wholeSeconds is how much of two timelines is drawn: an interval that is cut short would look like an outage.
func wholeSeconds(a, b *record) float64 {
	return math.Floor(min(a.run.DurationSeconds, b.run.DurationSeconds) + timelineStep/2)
}

// answered is the timeline of a run, moved so that both leaders are killed at the same place.
func answered(r *record, until float64) (points [][2]float64) {
	shift := pictureKillAt.Seconds() - r.Values["event_s"]
	for _, i := range r.run.Timeline {
		whole := i.AtSeconds+timelineStep <= r.run.DurationSeconds+timelineStep/2
		if at := i.AtSeconds + shift; whole && at >= 0 && at <= until {
			points = append(points, [2]float64{at, float64(i.Operations) / (pictureRate * timelineStep)})
		}
	}
	return points
}

func (r *results) plotSnapshot(reference harness.Kind) (plot, bool) {
	zabra, plain, _ := contestants(reference)
	a, b := r.firstRecord(rowSnapshot, zabra), r.firstRecord(rowSnapshot, plain)
	if a == nil || b == nil || len(a.run.Timeline) == 0 || len(b.run.Timeline) == 0 {
		return plot{}, false
	}
	unit := median(longest(b))
	if unit <= 0 || math.IsNaN(unit) {
		return plot{}, false
	}
	c := &chart{title: "Snapshots of 1,000,000 znodes under 5,000 writes/s", xName: "seconds; shaded: a snapshot is being written",
		yName: "longest write in each tenth of a second, median of " + referenceName(reference) + " = 1", note: "lower is better"}
	until := wholeSeconds(a, b)
	c.lines = []plotLine{{name: "Zabra", class: "a", points: worst(a, unit, until)}, {name: referenceName(reference), class: "b", points: worst(b, unit, until)}}
	for _, s := range a.Snapshots {
		c.bands = append(c.bands, band{"a", s[0], s[1]})
	}
	for _, s := range b.Snapshots {
		c.bands = append(c.bands, band{"b", s[0], s[1]})
	}
	c.seconds(until)
	c.decades()
	return plot{"snapshot.svg", "Snapshots under load", c}, true
}

func longest(r *record) (all []float64) {
	for _, i := range r.run.Timeline {
		all = append(all, i.MaxUs)
	}
	return all
}

// worst is the timeline of a run; intervals without an answer are left out, as the latencies of later ones tell of them.
func worst(r *record, unit, until float64) (points [][2]float64) {
	for _, i := range r.run.Timeline {
		if i.MaxUs > 0 && i.AtSeconds <= until {
			points = append(points, [2]float64{i.AtSeconds, i.MaxUs / unit})
		}
	}
	return points
}
