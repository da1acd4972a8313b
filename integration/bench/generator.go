//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"zabra/integration/harness"
)

// generatorSlack is what a run may take beside its warm-up and its measurement: preparing, cleaning up, waiting for a server
// that does not answer.
const generatorSlack = 4 * time.Minute

// runJSON is what the comparison reads of the output of zabra bench.
type runJSON struct {
	BeganUnixMs         int64          `json:"began_unix_ms"`
	DurationSeconds     float64        `json:"duration_seconds"`
	Operations          int64          `json:"operations"`
	Errors              int64          `json:"errors"`
	OperationsPerSecond float64        `json:"operations_per_second"`
	Latency             quantilesJSON  `json:"latency_us"`
	Fanout              *fanoutJSON    `json:"fanout_us"`
	Timeline            []intervalJSON `json:"timeline"`
	Server              *struct {
		CPUSeconds float64 `json:"cpu_seconds"`
		RSSMiB     float64 `json:"rss_mib"`
	} `json:"server"`
}

type quantilesJSON struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

type fanoutJSON struct {
	Watchers int           `json:"watchers"`
	Answer   quantilesJSON `json:"answer"`
	Last     quantilesJSON `json:"last_event"`
}

type intervalJSON struct {
	AtSeconds  float64 `json:"at_seconds"`
	Operations int64   `json:"operations"`
	Errors     int64   `json:"errors"`
	MaxUs      float64 `json:"max_us"`
}

// span is how long a run warms up and measures.
type span struct{ warmup, measure time.Duration }

// arguments returns the command line of a run.
func (l load) arguments(addrs []string, pids []int, s span) []string {
	args := []string{"bench", l.workload, "--servers", strings.Join(addrs, ","), "--format", "json", "--quiet",
		"--sessions", strconv.Itoa(l.sessions), "--outstanding", strconv.Itoa(l.outstanding), "--data-bytes", strconv.Itoa(l.dataBytes)}
	if len(pids) > 0 {
		texts := make([]string, len(pids))
		for i, pid := range pids {
			texts[i] = strconv.Itoa(pid)
		}
		args = append(args, "--pid", strings.Join(texts, ","))
	}
	if s.measure > 0 {
		args = append(args, "--duration", s.measure.String(), "--warmup", s.warmup.String())
	}
	if l.workload == "mixed" {
		args = append(args, "--reads", strconv.Itoa(l.reads))
	}
	if l.rate > 0 {
		args = append(args, "--rate", strconv.Itoa(l.rate))
	}
	return append(args, l.extra...)
}

// generator starts zabra bench as a process of its own.
type generator struct{ path string }

// zabraBinary is the server under test, and the load generator unless another one is named.
func zabraBinary() string {
	if path := os.Getenv("ZABRA_BIN"); path != "" {
		return path
	}
	return filepath.Join(harness.Root(), "bin", "zabra")
}

// run returns the JSON object that the generator prints, and what it says.
func (g generator) run(l load, f *field, s span) (json.RawMessage, runJSON, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.warmup+s.measure+generatorSlack)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, g.path, l.arguments(f.addrs, f.pids, s)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := harness.StartChild(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	var run runJSON
	if err != nil {
		return nil, run, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args[1:], " "), err, lastLine(errs.String()))
	}
	if err := json.Unmarshal(out.Bytes(), &run); err != nil {
		return nil, run, fmt.Errorf("%s: the output is not one JSON object: %w", strings.Join(cmd.Args[1:], " "), err)
	}
	return json.RawMessage(bytes.TrimSpace(out.Bytes())), run, nil
}

// closedRun is run for a closed loop, in which every request has to succeed.
func (g generator) closedRun(l load, f *field, s span) (json.RawMessage, runJSON, error) {
	raw, run, err := g.run(l, f, s)
	if err == nil && (run.Errors > 0 || run.Operations == 0) {
		err = fmt.Errorf("%s: %d operations and %d errors", l.name(), run.Operations, run.Errors)
	}
	return raw, run, err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
