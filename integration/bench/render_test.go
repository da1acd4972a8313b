//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

var update = flag.Bool("update", false, "rewrite the golden file; read it like code")

// sample makes results of two rounds of all rows but one, with figures that follow from row and round.
func sample(t *testing.T) *document {
	t.Helper()
	r := &results{all: map[entry]*record{}}
	zabra, plain, big := contestants(harness.Apache380)
	for i, of := range allRows() {
		if of.id == "three-lock" {
			continue
		}
		for round := range 2 {
			for _, who := range []contestant{zabra, plain, big} {
				if of.wanted(who, round) && (who.name != big.name || of.bigHeap) {
					add(t, r, sampleRecord(of, who, i, round))
				}
			}
		}
	}
	m := machine{CPU: "A CPU", Cores: 2, MemoryGiB: 23.4, Kernel: "Linux 6.1", FileSystem: "ext4", Disk: "virtual disk (virtio), not rotational", SyncUs: 61,
		Virtual: true, Zabra: "zabra 0.1.0, go1.26", Reference: "apache-3.8.0", Java: "openjdk 17", MeasureSec: 3, WarmupSec: 1, JVMWarmup: 3, KillsPerRun: 4,
		At: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)}
	return &document{results: r, machine: m, reference: harness.Apache380, notes: "testdata/notes", folder: "benchmarks",
		plots: r.plots(harness.Apache380), found: r.findings(harness.Apache380)}
}

// sampleRecord makes Zabra 4 to 9 times better than the others, the same in each run of the test.
func sampleRecord(of row, who contestant, number, round int) record {
	better := 1.0
	if who.kind == harness.Zabra {
		better = float64(4+number%6) + float64(round)/2
	} else if who.jvm[0] == bigHeap {
		better = 1.3
	}
	run := runOf(1000*better, 900/better)
	if len(of.load.extra) > 0 {
		run = json.RawMessage(strings.TrimSuffix(string(run), "}") + `,"timeline":[` + sampleTimeline(better) + `]}`)
	}
	if of.id == rowWatch {
		run = json.RawMessage(strings.TrimSuffix(string(run), "}") + fmt.Sprintf(`,"fanout_us":{"answer":{"p50":%g},"last_event":{"p50":%g}}}`, 3000/better, 9000/better))
	}
	rec := record{Row: of.id, Contestant: who.name, Round: round, Binary: "abc", Values: map[string]float64{"event_s": 2.1}, Run: run}
	for _, key := range []string{"start_ms", "stall_ms", "quiet_ms", "gap_median_ms", "gap_worst_ms", "megabytes", memoryEmpty, memoryQuarter, memoryHalf, memoryFull} {
		rec.Values[key] = 100 / better
	}
	if of.id == rowSnapshot {
		rec.Snapshots = [][2]float64{{0.1, 0.2}}
	}
	return rec
}

func sampleTimeline(better float64) string {
	parts := make([]string, 30)
	for i := range parts {
		parts[i] = fmt.Sprintf(`{"at_seconds":%.1f,"operations":%d,"max_us":%g}`, float64(i)/10, i%7*15, 500/better)
	}
	return strings.Join(parts, ",")
}

func TestRender(t *testing.T) {
	d := sample(t)
	text, err := d.markdown()
	require.NoError(t, err)
	text += "\n<!-- the table for the README -->\n\n" + d.compact()
	const golden = "testdata/benchmarks.golden"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
	require.LessOrEqual(t, strings.Count(d.compact(), "\n"), 8)
}

// A reason that somebody has written is there however often the document is made.
func TestNotesSurvive(t *testing.T) {
	d := sample(t)
	d.notes = t.TempDir()
	d.found = []finding{{row: rowByID(rowKill), figure: figure{label: "median", aim: 4}, plain: spread{2, 1, 3, 5}, verdict: missed}}
	require.NoError(t, os.WriteFile(filepath.Join(d.notes, rowKill+".md"), []byte("The disk is to blame.\n"), 0o644))
	out := filepath.Join(t.TempDir(), "benchmarks.md")
	for range 2 {
		require.NoError(t, d.write(out))
		text, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Contains(t, string(text), "### leader killed, three servers\n\n- median: 2.0× (1.00–3.0), aim ≥ 4×\n\nThe disk is to blame.\n")
	}
	plots, err := filepath.Glob(filepath.Join(filepath.Dir(out), "benchmarks", "*.svg"))
	require.NoError(t, err)
	require.Len(t, plots, 6)
}

// Every plot is well-formed XML, stays inside its picture, and is the same each time.
func TestPlots(t *testing.T) {
	plots := sample(t).plots
	require.Len(t, plots, 6)
	again := sample(t).plots
	for i, p := range plots {
		text := p.chart.svg()
		wellFormed(t, p.file, text)
		require.Equal(t, string(text), string(again[i].chart.svg()), p.file)
		require.NotContains(t, string(text), "NaN", p.file)
		require.NotContains(t, string(text), "Inf", p.file)
		require.Equal(t, 2, bytes.Count(text, []byte("<polyline")), p.file)
	}
}

func wellFormed(t *testing.T, name string, text []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(text))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, name)
	}
}

func TestChartsOfNothing(t *testing.T) {
	r := &results{all: map[entry]*record{}}
	require.Empty(t, r.plots(harness.Apache380))
	c := &chart{title: `a < b & "c"`, lines: []plotLine{{name: "none"}}, xMax: 1}
	c.fromZero(0)
	wellFormed(t, "empty", c.svg())
	c = &chart{lines: []plotLine{{name: "none"}}}
	c.decades()
	c.seconds(0)
	wellFormed(t, "empty", c.svg())
}

func TestRoundStep(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 3: 5, 6: 10, 0.03: 0.05, 130: 200} {
		require.InDelta(t, want, roundStep(v), 1e-9, "%g", v)
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{12.3: "12", 9.96: "10", 6.04: "6.0", 1.234: "1.23", 0.0312: "0.03"} {
		require.Equal(t, want, digits(v))
	}
}
