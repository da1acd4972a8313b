//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"zabra/integration/harness"
)

const (
	snapshotRate   = 5000            // writes a second
	snapshotWarmup = 3 * time.Second // the server has just been started, and a JVM is cold then
	// snapshotMargin around the writing of a snapshot counts as its time: writes that it delays are answered behind it.
	snapshotMargin = 300 * time.Millisecond
	snapshotLook   = 10 * time.Millisecond // between two looks into the directory
)

// nodes takes one server from an empty directory through a million nodes and a restart to a snapshot under load.
func (b *bout) nodes() error {
	dir, err := freshFolder(b.data, b.who)
	if err != nil {
		return err
	}
	f := &field{dir: dir}
	defer f.close()
	if f.server, err = newServer(dir, b.who); err != nil {
		return err
	}
	if err := b.startTimed(f, rowStartEmpty); err != nil {
		return err
	}
	if !slices.ContainsFunc(b.rows, func(r row) bool { return r.id != rowStartEmpty }) {
		return nil
	}
	if err := b.fill(f); err != nil {
		return err
	}
	f.pinger.Close()
	f.pinger = nil
	if err := f.server.Stop(); err != nil {
		return err
	}
	// The reference server makes a snapshot after a number of transactions between half of that and the whole.
	count := int((snapshotWarmup + b.scale.snapshotRun).Seconds() * snapshotRate / 2)
	if err := f.server.Set(map[string]string{"snapCount": strconv.Itoa(count)}); err != nil {
		return err
	}
	if err := b.startTimed(f, rowStartFull); err != nil {
		return err
	}
	return b.snapshot(f)
}

// find returns the row when it is to be measured.
func (b *bout) find(id string) (row, bool) {
	for _, r := range b.rows {
		if r.id == id {
			return r, true
		}
	}
	return row{}, false
}

// startTimed starts the field's server, and emits how long it took if that row is wanted.
func (b *bout) startTimed(f *field, id string) error {
	took, err := f.server.StartMeasured()
	if err != nil {
		return err
	}
	f.addrs, f.pids = []string{f.server.Addr()}, []int{f.server.PID()}
	f.pinger = harness.StartPinger(f.addrs, pingPeriod)
	if r, wanted := b.find(id); wanted {
		return b.emit(r, record{Values: map[string]float64{"start_ms": ms(took)}})
	}
	return nil
}

// fill makes the nodes in three parts and looks at the memory before, between and after them.
func (b *bout) fill(f *field) error {
	values := map[string]float64{}
	quarter := b.scale.nodes / 4
	if err := b.memory(f, values, memoryEmpty); err != nil {
		return err
	}
	r, wanted := b.find(rowMemory)
	if !wanted { // the rows behind it need the nodes all the same
		r = rowByID(rowMemory)
	}
	for i, part := range []struct {
		nodes int
		key   string
	}{{quarter, memoryQuarter}, {quarter, memoryHalf}, {b.scale.nodes - 2*quarter, memoryFull}} {
		if _, _, err := b.generator.closedRun(fillLoad(r.load, i, part.nodes), f, span{}); err != nil {
			return err
		}
		if err := b.memory(f, values, part.key); err != nil {
			return err
		}
	}
	live, err := f.server.LiveHeap()
	switch {
	case err == nil:
		values[memoryLive] = float64(live) / bytesPerMB
	case !errors.Is(err, harness.ErrNoLiveHeap): // then the figure is not shown
		return err
	}
	if !wanted {
		return nil
	}
	return b.emit(r, record{Values: values})
}

func rowByID(id string) row {
	all := allRows()
	return all[slices.IndexFunc(all, func(r row) bool { return r.id == id })]
}

func (b *bout) memory(f *field, values map[string]float64, key string) error {
	time.Sleep(b.scale.settle) // what an operator looks at is not the memory of the last moment
	usage, err := harness.ProcessUsage(f.server.PID())
	values[key] = float64(usage.RSSBytes) / bytesPerMB
	return err
}

// snapshot writes at a fixed rate and notes when a snapshot was written meanwhile.
func (b *bout) snapshot(f *field) error {
	r, wanted := b.find(rowSnapshot)
	if !wanted {
		return nil
	}
	watch := watchSnapshots(f.server.DataDir())
	raw, run, err := b.generator.run(r.load, f, span{snapshotWarmup, b.scale.snapshotRun})
	times := watch.end()
	if err != nil {
		return err
	}
	if run.Errors > 0 {
		return fmt.Errorf("%d writes failed", run.Errors)
	}
	spans := since(times, time.UnixMilli(run.BeganUnixMs), run.DurationSeconds)
	if len(spans) == 0 {
		return errors.New("no snapshot fell into the run")
	}
	with, without := stalls(run.Timeline, spans, snapshotMargin.Seconds())
	return b.emit(r, record{Run: raw, Snapshots: spans, Values: map[string]float64{
		"stall_ms": with, "quiet_ms": without, "snapshots": float64(len(spans))}})
}

// stalls returns the longest latency of the intervals in which a snapshot was being written, and of the others, in ms.
func stalls(timeline []intervalJSON, snapshots [][2]float64, margin float64) (with, without float64) {
	for i, interval := range timeline {
		end := interval.AtSeconds
		if i+1 < len(timeline) {
			end = timeline[i+1].AtSeconds
		}
		inside := slices.ContainsFunc(snapshots, func(s [2]float64) bool {
			return interval.AtSeconds <= s[1]+margin && end >= s[0]-margin
		})
		if inside {
			with = max(with, interval.MaxUs/1000)
		} else {
			without = max(without, interval.MaxUs/1000)
		}
	}
	return with, without
}

// snapshotWatch looks again and again into a data directory for snapshots that are being written: under their own name, or first
// under a temporary one.
type snapshotWatch struct {
	pattern    string
	stop, done chan struct{}
	files      map[string]*[2]time.Time // by name: when a snapshot was begun, and when it grew last
	sizes      map[string]int64
	temporary  bool      // there was such a file at the last look
	begun      time.Time // when it was first seen
}

func watchSnapshots(dataDir string) *snapshotWatch {
	w := &snapshotWatch{pattern: filepath.Join(dataDir, "version-2", "*snapshot.*"), stop: make(chan struct{}), done: make(chan struct{}),
		files: map[string]*[2]time.Time{}, sizes: map[string]int64{}}
	w.look()
	clear(w.files) // those that were there before
	go w.run()
	return w
}

func (w *snapshotWatch) run() {
	defer close(w.done)
	ticker := time.NewTicker(snapshotLook)
	defer ticker.Stop()
	for {
		w.look()
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		}
	}
}

func (w *snapshotWatch) look() {
	names, _ := filepath.Glob(w.pattern) // the pattern is ours and well formed
	now := time.Now()
	isTemporary := func(name string) bool { return strings.HasSuffix(name, ".tmp") }
	temporary := slices.ContainsFunc(names, isTemporary)
	if temporary && !w.temporary {
		w.begun = now
	}
	w.temporary = temporary
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || isTemporary(name) {
			continue
		}
		if old, known := w.sizes[name]; known && old == info.Size() {
			continue
		}
		w.sizes[name] = info.Size()
		if w.files[name] == nil {
			begun := now
			if !w.begun.IsZero() {
				begun, w.begun = w.begun, time.Time{}
			}
			w.files[name] = &[2]time.Time{begun, now}
		}
		w.files[name][1] = now
	}
}

// end returns when snapshots were written.
func (w *snapshotWatch) end() (times [][2]time.Time) {
	close(w.stop)
	<-w.done
	for _, t := range w.files {
		times = append(times, *t)
	}
	slices.SortFunc(times, func(a, b [2]time.Time) int { return a[0].Compare(b[0]) })
	return times
}

// since returns the times that overlap a measurement, in seconds from its beginning.
func since(times [][2]time.Time, began time.Time, seconds float64) (spans [][2]float64) {
	for _, t := range times {
		from, to := t[0].Sub(began).Seconds(), t[1].Sub(began).Seconds()
		if to > 0 && from < seconds {
			spans = append(spans, [2]float64{from, to})
		}
	}
	return spans
}
