package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// The formats of Write.
const (
	Text     = "text"
	JSON     = "json"
	Markdown = "markdown"
)

// Formats are the names of all formats.
var Formats = []string{Text, JSON, Markdown}

// Write writes the result in one of the formats: JSON is one object on one line, Markdown a table of one row.
func (r *Result) Write(w io.Writer, format string) error {
	switch format {
	case JSON:
		return json.NewEncoder(w).Encode(r)
	case Markdown:
		_, err := io.WriteString(w, r.markdown())
		return err
	case Text:
		return r.text(w)
	}
	return fmt.Errorf("there is no format %q: choose one of %s", format, strings.Join(Formats, ", "))
}

func (r *Result) text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "workload\t%s\n", r.load())
	fmt.Fprintf(w, "servers\t%s\n", strings.Join(r.Servers, ", "))
	fmt.Fprintf(w, "operations\t%d in %.3f s, %.0f per second\n", r.Operations, r.DurationSeconds, r.OperationsPerSecond)
	fmt.Fprintf(w, "errors\t%s\n", r.errors())
	quantiles := func(what string, q *Quantiles) {
		if q != nil {
			fmt.Fprintf(w, "%s\tp50 %s  p90 %s  p99 %s  p99.9 %s  max %s  mean %s\n", what, duration(q.P50), duration(q.P90),
				duration(q.P99), duration(q.P999), duration(q.Max), duration(q.Mean))
		}
	}
	quantiles("latency", &r.Latency)
	quantiles("of reads", r.Reads)
	quantiles("of writes", r.Writes)
	if f := r.Fanout; f != nil {
		fmt.Fprintf(w, "watchers\t%d\n", f.Watchers)
		quantiles("answer", &f.Answer)
		quantiles("first event", &f.First)
		quantiles("last event", &f.Last)
	}
	if r.Server != nil {
		fmt.Fprintf(w, "server\t%.2f s of CPU, %.1f MiB resident\n", r.Server.CPUSeconds, r.Server.RSSMiB)
	}
	fmt.Fprintf(w, "generator\t%.2f s of CPU\n", r.GeneratorCPUSeconds)
	return w.Flush()
}

// load says what was asked of the servers.
func (r *Result) load() string {
	s := fmt.Sprintf("%s, %d sessions", r.Workload, r.Sessions)
	switch r.Workload {
	case Lock, Watch, Connect, Idle:
		return s
	case Mixed:
		s += fmt.Sprintf(" x %d, %d nodes of %d bytes, %d %% reads", r.Outstanding, r.Nodes, r.DataBytes, r.ReadPercent)
	case Create:
		s += fmt.Sprintf(" x %d, %d bytes", r.Outstanding, r.DataBytes)
	default:
		s += fmt.Sprintf(" x %d, %d nodes of %d bytes", r.Outstanding, r.Nodes, r.DataBytes)
	}
	if r.RatePerSecond > 0 {
		s += fmt.Sprintf(", %g per second", r.RatePerSecond)
	}
	return s
}

// errors tells their number, and what they were.
func (r *Result) errors() string {
	if r.Errors == 0 {
		return "none"
	}
	var kinds []string
	for name, n := range r.ErrorCodes {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(kinds)
	return fmt.Sprintf("%d (%s)", r.Errors, strings.Join(kinds, ", "))
}

// duration renders microseconds with a fitting unit.
func duration(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.0f µs", us)
	case us < 100_000:
		return fmt.Sprintf("%.2f ms", us/1000)
	case us < 1_000_000:
		return fmt.Sprintf("%.0f ms", us/1000)
	}
	return fmt.Sprintf("%.2f s", us/1e6)
}

func (r *Result) markdown() string {
	var b strings.Builder
	b.WriteString("| load | operations/s | errors | p50 | p90 | p99 | p99.9 | max | server CPU | server RSS |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	row := func(what string, perSecond, errors string, q Quantiles, cpu, rss string) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", what, perSecond, errors,
			duration(q.P50), duration(q.P90), duration(q.P99), duration(q.P999), duration(q.Max), cpu, rss)
	}
	cpu, rss := "", ""
	if r.Server != nil {
		cpu, rss = fmt.Sprintf("%.2f s", r.Server.CPUSeconds), fmt.Sprintf("%.1f MiB", r.Server.RSSMiB)
	}
	row(r.load(), fmt.Sprintf("%.0f", r.OperationsPerSecond), fmt.Sprint(r.Errors), r.Latency, cpu, rss)
	part := func(what string, q *Quantiles) {
		if q != nil {
			row(what, "", "", *q, "", "")
		}
	}
	part("its reads", r.Reads)
	part("its writes", r.Writes)
	if f := r.Fanout; f != nil {
		part("to the writer's answer", &f.Answer)
		part("to the first event", &f.First)
		part("to the last event", &f.Last)
	}
	return b.String()
}
