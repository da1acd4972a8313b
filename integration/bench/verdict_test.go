//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// runOf makes the output of a run with so many operations a second and that p99.
func runOf(ops, p99 float64) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"operations":1000,"operations_per_second":%g,"duration_seconds":3,
		"latency_us":{"p50":%g,"p90":%g,"p99":%g,"p999":%g,"max":%g},"server":{"cpu_seconds":0.5,"rss_mib":100}}`, ops, p99/4, p99/2, p99, p99*2, p99*4))
}

// add puts a record into results without a file.
func add(t *testing.T, r *results, rec record) {
	t.Helper()
	line, err := json.Marshal(rec)
	require.NoError(t, err)
	kept := &record{}
	require.NoError(t, kept.parse(line))
	r.put(kept)
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.True(t, math.IsNaN(median(nil)))
	given := []float64{3, 1, 2}
	median(given)
	require.Equal(t, []float64{3, 1, 2}, given, "the caller's order stays")
}

// A ratio is made of two results of one round, and says how many times better the first is.
func TestFactorsPairRounds(t *testing.T) {
	r := &results{all: map[entry]*record{}}
	zabra, plain, _ := contestants(harness.Apache380)
	for round, ops := range []float64{600, 500, 900} {
		add(t, r, record{Row: rowGet, Contestant: zabra.name, Round: round, Run: runOf(ops, 10)})
	}
	for round, ops := range []float64{100, 50} {
		add(t, r, record{Row: rowGet, Contestant: plain.name, Round: round, Run: runOf(ops, 40)})
	}
	add(t, r, record{Row: rowGet, Contestant: plain.name, Round: 2, Failed: "it fell over"})
	of := rowByID(rowGet)
	require.Equal(t, []float64{6, 10}, r.factors(of, figure{key: "ops", higher: true}, zabra, plain))
	require.Equal(t, []float64{4, 4}, r.factors(of, figure{key: "p99"}, zabra, plain), "of latencies, less is better")
	require.Equal(t, spread{median: 8, low: 6, high: 10, pairs: 2}, spreadOf(r.factors(of, figure{key: "ops", higher: true}, zabra, plain)))
	require.Empty(t, r.factors(of, figure{key: "no such"}, zabra, plain))
}

func TestVerdict(t *testing.T) {
	at := func(v float64) spread { return spread{median: v, pairs: 5} }
	aim, both := row{}, row{bigHeap: true}
	for name, test := range map[string]struct {
		found finding
		want  verdict
	}{
		"no aim":                       {finding{plain: at(3)}, noAim},
		"above":                        {finding{row: aim, figure: figure{aim: 5}, plain: at(5.51)}, met},
		"just above is too near":       {finding{row: aim, figure: figure{aim: 5}, plain: at(5.4)}, near},
		"just below is too near":       {finding{row: aim, figure: figure{aim: 5}, plain: at(4.6)}, near},
		"below":                        {finding{row: aim, figure: figure{aim: 5}, plain: at(4.4)}, missed},
		"nothing measured":             {finding{row: aim, figure: figure{aim: 5}}, unmeasured},
		"both heaps":                   {finding{row: both, figure: figure{aim: 8}, plain: at(9), big: at(6.7)}, met},
		"larger heap below 3/4":        {finding{row: both, figure: figure{aim: 8}, plain: at(9), big: at(5)}, missed},
		"larger heap near 3/4":         {finding{row: both, figure: figure{aim: 8}, plain: at(9), big: at(6.2)}, near},
		"larger heap not measured":     {finding{row: both, figure: figure{aim: 8}, plain: at(9)}, unmeasured},
		"default heap below":           {finding{row: both, figure: figure{aim: 8}, plain: at(7), big: at(7)}, missed},
		"missed beats not measured":    {finding{row: both, figure: figure{aim: 8}, plain: at(2)}, missed},
		"a limit":                      {finding{figure: figure{limit: 20}, limit: at(0.89)}, met},
		"too near to a limit":          {finding{figure: figure{limit: 20}, limit: at(0.95)}, near},
		"over a limit":                 {finding{figure: figure{limit: 20}, limit: at(1.2)}, missed},
		"a limit that does not vary":   {finding{figure: figure{limit: 20, exact: true}, limit: at(0.99)}, met},
		"over one":                     {finding{figure: figure{limit: 20, exact: true}, limit: at(1.01)}, missed},
		"the worst of ratio and limit": {finding{figure: figure{aim: 10, limit: 20}, plain: at(20), limit: at(2)}, missed},
	} {
		require.Equal(t, test.want, test.found.decide(), name)
	}
}

// The table of rows is consistent in itself.
func TestRows(t *testing.T) {
	seen, stationNames := map[string]bool{}, map[string]bool{}
	for _, s := range stations {
		stationNames[s.name] = true
	}
	for _, r := range allRows() {
		require.False(t, seen[r.id], "%s is there twice", r.id)
		seen[r.id] = true
		require.True(t, stationNames[r.station], "%s has no station", r.id)
		for _, f := range r.figures {
			require.False(t, f.aim > 0 && f.key == "", r.id)
		}
	}
	for _, p := range sharePoints {
		require.True(t, seen[p.id], p.id)
	}
	for _, c := range compactRows {
		require.True(t, seen[c.row], c.row)
	}
	chosen, err := chosenRows("set-64x16,memory")
	require.NoError(t, err)
	require.Len(t, chosen, 2)
	_, err = chosenRows("set-64x17")
	require.ErrorContains(t, err, "set-64x17")
}
