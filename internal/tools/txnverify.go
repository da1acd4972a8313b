package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// LogCheck is the result of the check of one log.
type LogCheck struct {
	File    string `json:"file"`
	State   string `json:"state"` // one of the state words
	First   string `json:"first,omitempty"`
	Last    string `json:"last,omitempty"`
	Records int    `json:"records"`
	Bytes   int64  `json:"bytes"`
	End     int64  `json:"end"`
	Torn    int64  `json:"tornBytes,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Why     string `json:"why,omitempty"`
	Do      string `json:"do,omitempty"`

	report storage.LogReport
	named  zxid.Zxid
}

// The words for the state of a file.
const (
	stateOK      = "ok"
	stateTorn    = "torn"
	stateEmpty   = "empty"
	stateDamaged = "damaged"
	stateGap     = "gap"
	// stateUnreadable is one of the doctor's alone: a check ends with the error.
	stateUnreadable = "unreadable"
)

func checkLog(fsys vfs.FS, file string) (*LogCheck, error) {
	c := &LogCheck{File: file, State: stateOK}
	_, c.named = storage.KindOf(filepath.Base(file))
	rep, err := storage.CheckLog(fsys, file, func(rec storage.LogRecord) error {
		if _, err := decodeLogTxn(rec.Payload); err != nil {
			return &storage.CorruptError{File: file, Offset: rec.Offset, Why: err.Error(),
				Do: "The record is intact: it was written by a newer server. Use that server, or a newer version of this one."}
		}
		return nil
	})
	var damage *storage.CorruptError
	if errors.As(err, &damage) {
		rep.Damage, err = damage, nil
	}
	if err != nil {
		return nil, err
	}
	c.report, c.Records, c.Bytes, c.End, c.Torn = rep, rep.Records, rep.Size, rep.End, rep.Torn
	if rep.Records > 0 {
		c.First, c.Last = rep.First.String(), rep.Last.String()
	}
	switch {
	case rep.Damage != nil:
		c.State, c.Offset, c.Why, c.Do = stateDamaged, &rep.Damage.Offset, rep.Damage.Why, rep.Damage.Do
	case rep.Empty:
		c.State, c.Why = stateEmpty, "it has no header: a crash left it before anything was written"
	case rep.Torn > 0:
		c.State, c.Offset, c.Why = stateTorn, &rep.End, rep.TornWhy
	}
	return c, nil
}

func (c *LogCheck) bad() bool { return c.State == stateDamaged || c.State == stateGap }

// text is the result in words.
func (c *LogCheck) text() string {
	span := "no transactions"
	if c.Records > 0 {
		span = fmt.Sprintf("%s, %s to %s", count(c.Records, "transaction"), c.First, c.Last)
	}
	switch c.State {
	case stateOK:
		return fmt.Sprintf("%s: OK, %s, %d bytes and %d of padding", c.File, span, c.End, c.Bytes-c.End)
	case stateEmpty:
		return fmt.Sprintf("%s: OK, empty: %s", c.File, c.Why)
	case stateTorn:
		return fmt.Sprintf("%s: OK, %s; torn end: %s behind offset %d are no transaction (%s), a start cuts them off",
			c.File, span, count(int(c.Torn), "byte"), c.End, c.Why)
	case stateGap:
		return fmt.Sprintf("%s: GAP: %s. %s", c.File, c.Why, c.Do)
	}
	return fmt.Sprintf("%s: DAMAGED at offset %d: %s (before it: %s). %s", c.File, *c.Offset, c.Why, span, c.Do)
}

// VerifyLogs checks logs, or all logs of data directories, in full: the checksum, length, end and content of each record,
// the order of the zxids, and what stands behind the last record. Between the logs of one directory it looks for holes that
// no snapshot covers. A *DamagedError tells that something is wrong. The end of a log that is being written may look torn.
func VerifyLogs(o Output, args []string) (err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	bad := 0
	for _, arg := range args {
		checks, err := verifyArg(arg)
		if err != nil {
			return err
		}
		if len(checks) == 0 {
			fmt.Fprintf(o.Err, "%s: no logs\n", arg)
		}
		for _, c := range checks {
			if c.bad() {
				bad++
			}
			if o.JSON {
				p.object(c)
			} else {
				p.printf("%s\n", c.text())
			}
		}
	}
	if bad > 0 {
		return &DamagedError{Files: bad}
	}
	return nil
}

func verifyArg(arg string) ([]*LogCheck, error) {
	info, err := os.Stat(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{File: arg}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		c, err := checkLog(vfs.OS{}, arg)
		return []*LogCheck{c}, err
	}
	files, snapshots, err := dataFiles(arg)
	if err != nil {
		return nil, err
	}
	var checks []*LogCheck
	for _, file := range files {
		c, err := checkLog(vfs.OS{}, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the running server has purged it
		}
		if err != nil {
			return nil, err
		}
		checks = append(checks, c)
	}
	findGaps(checks, snapshots)
	return checks, nil
}

// findGaps marks logs that do not go on where the one before ends, unless a snapshot covers the hole.
func findGaps(checks []*LogCheck, snapshots []zxid.Zxid) {
	var last zxid.Zxid
	for i, c := range checks {
		first := c.report.First
		if i > 0 && last > 0 && c.Records > 0 && c.State != stateDamaged && first > last+1 && !opensEpoch(last, first) {
			covered := slices.ContainsFunc(snapshots, func(z zxid.Zxid) bool { return z >= first-1 })
			if covered {
				c.Why = fmt.Sprintf("those between %v and %v are missing; a later snapshot holds them", last, first)
			} else {
				c.State, c.Why = stateGap, fmt.Sprintf("transactions between %v and %v are missing, and no snapshot covers them", last, first)
				c.Do = "Find the missing log, or empty this server's data directory if it is a member of an ensemble."
			}
		}
		last = max(last, c.report.Last)
	}
}

// opensEpoch tells whether z may follow last without one between, since it is the first of a later epoch.
func opensEpoch(last, z zxid.Zxid) bool {
	return z.Epoch() > last.Epoch() && z.Counter() == zxid.CounterMin
}

// dataFiles lists the logs of a data directory in their order, and the zxids of its snapshots. The folder version-2 itself
// may be named, too.
func dataFiles(dir string) (logs []string, snapshots []zxid.Zxid, err error) {
	dir = versionFolder(dir)
	names, err := vfs.OS{}.List(dir)
	if err != nil {
		return nil, nil, err
	}
	zxids := map[string]zxid.Zxid{}
	for _, name := range names {
		switch kind, z := storage.KindOf(name); kind {
		case storage.KindLog:
			logs, zxids[filepath.Join(dir, name)] = append(logs, filepath.Join(dir, name)), z
		case storage.KindSnapshot:
			snapshots = append(snapshots, z)
		}
	}
	slices.SortFunc(logs, func(a, b string) int { return cmp.Compare(zxids[a], zxids[b]) })
	return logs, snapshots, nil
}

// dataFolder is the folder of a data directory that holds the files.
const dataFolder = "version-2"

// versionFolder returns the folder with the files, whether dir is that or the data directory above it.
func versionFolder(dir string) string { return filepath.Join(dataDirOf(dir), dataFolder) }
