//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

func TestResultsAreKept(t *testing.T) {
	dir := t.TempDir()
	r, err := openResults(dir)
	require.NoError(t, err)
	require.NoError(t, r.add(&record{Row: rowGet, Contestant: "zabra", Round: 1, Run: runOf(500, 20)}))
	require.NoError(t, r.add(&record{Row: rowSnapshot, Contestant: "zabra", Snapshots: [][2]float64{{1, 2}}, Values: map[string]float64{"stall_ms": 7}}))

	r, err = openResults(dir)
	require.NoError(t, err)
	require.Equal(t, 2, r.rounds())
	for key, want := range map[string]float64{"ops": 500, "p50": 5, "p99": 20, "max": 80, "cpu": 500, "rss": 104.8576} {
		got, known := r.all[entry{rowGet, "zabra", 1}].value(key)
		require.True(t, known, key)
		require.InDelta(t, want, got, 1e-9, key)
	}
	snapshot := r.all[entry{rowSnapshot, "zabra", 0}]
	require.Equal(t, [][2]float64{{1, 2}}, snapshot.Snapshots)
	_, known := snapshot.value("ops")
	require.False(t, known, "there was no run")
}

// A comparison that is killed leaves half a line; that entry is measured again and the others stay.
func TestTornResultsLine(t *testing.T) {
	dir := t.TempDir()
	r, err := openResults(dir)
	require.NoError(t, err)
	require.NoError(t, r.add(&record{Row: rowGet, Contestant: "zabra", Run: runOf(500, 20)}))
	name := filepath.Join(dir, resultsFile)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, append(text, []byte(`{"row":"set-64x16","contes`)...), 0o644))

	r, err = openResults(dir)
	require.NoError(t, err)
	require.True(t, r.done(entry{rowGet, "zabra", 0}))
	require.False(t, r.done(entry{rowSet, "zabra", 0}))
	require.NoError(t, r.add(&record{Row: rowSet, Contestant: "zabra", Run: runOf(400, 20)}))
	r, err = openResults(dir)
	require.NoError(t, err)
	require.Len(t, r.all, 2)
}

func TestBadResultsLine(t *testing.T) {
	for _, line := range []string{"{", "{}", `{"row":"get-64x16","contestant":"zabra","round":-1}`, `{"row":"get-64x16","contestant":"zabra","run":[]}`, "text"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, resultsFile), []byte(line+"\n"), 0o644))
		_, err := openResults(dir)
		require.ErrorContains(t, err, "line 1", line)
	}
}

// What has a result is not measured again; what failed is. A failure does not take a result away.
func TestResume(t *testing.T) {
	rows, err := chosenRows(rowGet + "," + rowKillPicture + "," + rowBinary + ",lock")
	require.NoError(t, err)
	c := &comparison{reference: harness.Apache380, rounds: 2, rows: rows, scale: fullScale, span: span{time.Second, time.Second},
		store: &results{all: map[entry]*record{}}}
	zabra, plain, big := contestants(c.reference)
	// Two rounds: get by three, lock by two; the picture by two and the binary by one, once.
	require.Equal(t, 2*3+2*2+2+1, c.pending())
	require.Positive(t, c.estimate())

	add(t, c.store, record{Row: rowGet, Contestant: zabra.name, Round: 0, Run: runOf(1, 1)})
	add(t, c.store, record{Row: rowGet, Contestant: big.name, Round: 1, Run: runOf(1, 1)})
	add(t, c.store, record{Row: rowGet, Contestant: plain.name, Round: 0, Failed: "no"})
	require.Equal(t, 11, c.pending())
	add(t, c.store, record{Row: rowGet, Contestant: zabra.name, Round: 0, Failed: "no"})
	require.Equal(t, 11, c.pending())

	bouts := c.bouts(stations[1], 0)
	require.Equal(t, []string{"zabra", "apache-3.8.0", "apache-3.8.0-Xmx4g"}, []string{bouts[0].who.name, bouts[1].who.name, bouts[2].who.name})
	require.Len(t, bouts[0].rows, 1, "lock alone")
	require.Len(t, bouts[1].rows, 2)
	require.Len(t, bouts[2].rows, 1, "get alone: a lock line has no use for a larger heap")
	c.again = true
	require.Equal(t, 13, c.pending())
}

func TestLoadArguments(t *testing.T) {
	l := load{"mixed", 64, 16, 100, 50, 5000, []string{"--timeline", "100ms"}}
	require.Equal(t, []string{"bench", "mixed", "--servers", "127.0.0.1:1,127.0.0.1:2", "--format", "json", "--quiet", "--sessions", "64", "--outstanding", "16",
		"--data-bytes", "100", "--pid", "7,8", "--duration", "3s", "--warmup", "1s", "--reads", "50", "--rate", "5000", "--timeline", "100ms"},
		l.arguments([]string{"127.0.0.1:1", "127.0.0.1:2"}, []int{7, 8}, span{time.Second, 3 * time.Second}))
}

func TestStalls(t *testing.T) {
	timeline := []intervalJSON{{AtSeconds: 0, MaxUs: 9000}, {AtSeconds: 1, MaxUs: 2000}, {AtSeconds: 2, MaxUs: 50000}, {AtSeconds: 3, MaxUs: 1000}}
	with, without := stalls(timeline, [][2]float64{{2.1, 2.2}}, 0.05)
	require.Equal(t, 50.0, with)
	require.Equal(t, 9.0, without)
}

// A snapshot is seen under its own name, as the reference server writes it, and under a temporary one first.
func TestSnapshotWatch(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "version-2")
	require.NoError(t, os.Mkdir(folder, 0o755))
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	put("snapshot.1", "old")
	w := &snapshotWatch{pattern: filepath.Join(folder, "*snapshot.*"), files: map[string]*[2]time.Time{}, sizes: map[string]int64{}}
	w.look()
	clear(w.files)
	w.look()
	require.Empty(t, w.files, "it was there before")

	put("snapshot.2", "a")
	w.look()
	put("snapshot.2", "ab")
	w.look()
	own := w.files[filepath.Join(folder, "snapshot.2")]
	require.NotNil(t, own)
	require.True(t, own[1].After(own[0]), "it has grown")

	put("zabra.snapshot.tmp", "a")
	w.look()
	begun := w.begun
	require.Len(t, w.files, 1, "it has no name yet")
	require.NoError(t, os.Rename(filepath.Join(folder, "zabra.snapshot.tmp"), filepath.Join(folder, "snapshot.3")))
	w.look()
	require.Equal(t, begun, w.files[filepath.Join(folder, "snapshot.3")][0])
	require.Len(t, w.files, 2)

	at := w.files[filepath.Join(folder, "snapshot.3")][0]
	require.Len(t, since([][2]time.Time{{at, at.Add(time.Second)}}, at.Add(-time.Second), 5), 1)
	require.Empty(t, since([][2]time.Time{{at, at.Add(time.Second)}}, at.Add(2*time.Second), 5), "before the measurement")
	require.Empty(t, since([][2]time.Time{{at, at.Add(time.Second)}}, at.Add(-9*time.Second), 5), "behind it")
}

func TestRecordSummary(t *testing.T) {
	rec := &record{}
	line, err := json.Marshal(record{Row: rowGet, Contestant: "zabra", Run: runOf(500, 20)})
	require.NoError(t, err)
	require.NoError(t, rec.parse(line))
	require.Contains(t, rec.summary(rowByID(rowGet)), "ops=500  p50=5  p99=20")
}
