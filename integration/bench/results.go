//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	resultsFile    = "results.jsonl"
	machineFile    = "machine.json"
	recordBytesMax = 16 << 20 // of one line
)

// record is what one contestant did in one round of one row: a line of the results.
type record struct {
	Row        string    `json:"row"`
	Contestant string    `json:"contestant"`
	Round      int       `json:"round"`
	At         time.Time `json:"at"`
	Binary     string    `json:"binary"` // of Zabra, the beginning of its SHA-256: results of several builds are told apart
	// Failed says why there is no result. Such a row is measured again when the comparison is resumed.
	Failed string `json:"failed,omitempty"`
	// Values are measured by the comparison itself, by name with the unit at its end.
	Values map[string]float64 `json:"values,omitempty"`
	// Snapshots are the times at which a snapshot was being written, in seconds from the beginning of the measurement.
	Snapshots [][2]float64 `json:"snapshots,omitempty"`
	// Run is the output of zabra bench as it was.
	Run json.RawMessage `json:"run,omitempty"`

	run runJSON
}

const bytesPerMiB, bytesPerMB = 1 << 20, 1e6

// value returns a figure of the record: one of Values, or one of the run by the name of a quantile, ops, cpu (microseconds of the
// servers' CPU per operation), rss (MB), answer and last_event (microseconds, medians).
func (r *record) value(key string) (float64, bool) {
	if v, known := r.Values[key]; known {
		return v, true
	}
	if r.Run == nil {
		return 0, false
	}
	q := r.run.Latency
	values := map[string]float64{"ops": r.run.OperationsPerSecond, "p50": q.P50, "p90": q.P90, "p99": q.P99, "p999": q.P999, "max": q.Max}
	if s := r.run.Server; s != nil {
		values["rss"] = s.RSSMiB * bytesPerMiB / bytesPerMB
		if r.run.Operations > 0 {
			values["cpu"] = s.CPUSeconds * 1e6 / float64(r.run.Operations)
		}
	}
	if f := r.run.Fanout; f != nil {
		values["answer"], values["last_event"] = f.Answer.P50, f.Last.P50
	}
	v, known := values[key]
	return v, known
}

// entry names what is measured once.
type entry struct {
	row, contestant string
	round           int
}

// results are all records of a folder, the newest of each entry.
type results struct {
	dir string
	all map[entry]*record
}

// openResults reads what is there. A last line that is cut short, as a comparison leaves it that was killed, is passed over.
func openResults(dir string) (*results, error) {
	r := &results{dir: dir, all: map[entry]*record{}}
	text, err := os.ReadFile(filepath.Join(dir, resultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	lines := bufio.NewScanner(bytes.NewReader(whole))
	lines.Buffer(nil, recordBytesMax)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		rec := &record{}
		if err := rec.parse(lines.Bytes()); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w; remove the line, or the file", filepath.Join(dir, resultsFile), n, err)
		}
		r.put(rec)
	}
	return r, lines.Err()
}

func (r *record) parse(line []byte) error {
	if err := json.Unmarshal(line, r); err != nil {
		return err
	}
	if r.Row == "" || r.Contestant == "" || r.Round < 0 {
		return errors.New("not a result of the comparison")
	}
	if r.Run == nil {
		return nil
	}
	return json.Unmarshal(r.Run, &r.run)
}

func (r *results) put(rec *record) {
	at := entry{rec.Row, rec.Contestant, rec.Round}
	if old := r.all[at]; old != nil && old.Failed == "" && rec.Failed != "" {
		return // a later failure does not take away what was measured
	}
	r.all[at] = rec
}

// done says whether an entry has been measured.
func (r *results) done(at entry) bool {
	rec := r.all[at]
	return rec != nil && rec.Failed == ""
}

// add keeps a record and appends it to the file.
func (r *results) add(rec *record) error {
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := rec.parse(line); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(r.dir, resultsFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cutTorn(f); err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return err
	}
	r.put(rec)
	return f.Close()
}

// cutTorn removes a last line that has no end, and leaves the file at its end.
func cutTorn(f *os.File) error {
	text, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	size := int64(bytes.LastIndexByte(text, '\n') + 1)
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err = f.Seek(size, 0)
	return err
}

// rounds returns the number of rounds of which there is any result.
func (r *results) rounds() int {
	n := 0
	for at := range r.all {
		n = max(n, at.round+1)
	}
	return n
}
