package server

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/histogram"
	"zabra/zab/zxid"
)

// Quantiles are about what came in the last steps of the window; before it is full, about everything.
func TestWindow(t *testing.T) {
	var h histogram.Histogram
	row := labelled{summaryMetric: &summaryMetric{name: "x"}, series: &h}
	none := labelled{summaryMetric: &summaryMetric{name: "y"}}
	key := counterKey{name: "x"}
	var w window
	for n := range 3 * windowSteps {
		h.Add(int64(n))
		recent := h.Total().Since(w.begin(key))
		require.EqualValues(t, min(n+1, windowSteps), recent.Count, "after %d steps", n)
		w.step([]labelled{row, none})
		require.LessOrEqual(t, len(w.steps), windowSteps)
	}
	require.EqualValues(t, windowSteps-1, h.Total().Since(w.begin(key)).Count)
	for range windowSteps {
		w.step([]labelled{row, none})
	}
	require.Zero(t, h.Total().Since(w.begin(key)).Count)
	require.Zero(t, w.begin(counterKey{name: "y"}).Count)
}

func TestPassages(t *testing.T) {
	var p passages
	var h histogram.Histogram
	for z := range zxid.Zxid(passagesMax + 10) {
		p.note(z, int64(z))
	}
	require.Len(t, p.list, passagesMax)
	p.reached(9, 20, &h)
	require.EqualValues(t, 10, h.Total().Count)
	require.EqualValues(t, 10*20-45, h.Total().Sum)
	require.Len(t, p.list, passagesMax-10)
	p.reached(9, 20, &h)
	require.EqualValues(t, 10, h.Total().Count)
	p.reached(11, 10, &h) // two, of which one seems to come from the future
	require.EqualValues(t, 11, h.Total().Count)
	p.reached(passagesMax, 1<<20, &h)
	require.Empty(t, p.list)
}

func TestContainerLimit(t *testing.T) {
	for text, want := range map[string]uint64{"max\n": 0, "1073741824\n": 1 << 30, "": 0, "-1\n": 0} {
		file := filepath.Join(t.TempDir(), "memory.max")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.Equal(t, want, containerLimit(file), "%q", text)
	}
	require.Zero(t, containerLimit(filepath.Join(t.TempDir(), "none")))
	require.Positive(t, heapLimit())
}

// No name of a table is there twice, and each has its help text.
func TestMetricTables(t *testing.T) {
	seen := map[string]bool{}
	note := func(name, help string) {
		require.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
		require.NotEmpty(t, help, name)
	}
	for _, table := range [][]metric{gauges, fileGauges, memberGauges, leaderGauges, counters, memberCounters, absentCounters} {
		for _, m := range table {
			note(m.name, m.help)
		}
	}
	for _, table := range [][]summaryMetric{basicSummaries, percentileSummaries, absentSummaries} {
		for i, m := range table {
			note(m.name, m.help)
			require.Equal(t, fmt.Sprint(m.get == nil), fmt.Sprint(&table[0] == &absentSummaries[0]), "%s, line %d", m.name, i)
		}
	}
}
