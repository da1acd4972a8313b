package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
)

// Diagnose looks at a data directory and tells what state it is in and what would happen at a start. It changes nothing:
// the start is tried on an overlay. logDir is dataLogDir, empty if it is the same. A directory that does not exist, or
// cannot be read at all, is an error; everything else is a finding.
func Diagnose(dir, logDir string, now time.Time) (*Diagnosis, error) {
	return diagnose(vfs.OS{}, dir, logDir, now)
}

func diagnose(fsys vfs.FS, dir, logDir string, now time.Time) (*Diagnosis, error) {
	d := &Diagnosis{Dir: dataDirOf(dir), LogDir: dataDirOf(cmp.Or(logDir, dir)), fs: fsys, now: now}
	for _, dir := range []string{d.Dir, d.LogDir} {
		if info, err := os.Stat(dir); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s is no directory", dir)
		}
	}
	if d.LogDir != d.Dir && sameDataDir(d.Dir, d.LogDir) {
		d.find(LevelWarning, fmt.Sprintf("%s is another name of %s", d.LogDir, d.Dir),
			"Leave dataLogDir out, or write both in the same way: a server takes them for two, and does not start.")
		d.LogDir = d.Dir
	}
	d.cfg = storage.Config{SnapDir: d.Dir, LogDir: d.LogDir, NoAutocreate: true, Go: func(f func()) { f() }}
	var err error
	if d.Use, err = useOf(d.cfg); err != nil {
		d.find(LevelWarning, fmt.Sprintf("whether a server runs here cannot be told: %v", err), "Run the doctor as the user that runs the server.")
	}
	d.lookAtDisk()
	d.readMyID()
	// The state file before the logs: what it promises of them is then there.
	if err := d.readState(); err != nil {
		return nil, err
	}
	for _, dir := range foldersOf(d.cfg) {
		if err := d.lookAtFolder(dir); err != nil {
			return nil, err
		}
	}
	if d.LogDir != d.Dir {
		d.lookAtSeparation()
	}
	d.lookAtSuperseded()
	// What has the name of data counts, whether or not it can be read.
	d.Fresh = len(d.Snapshots) == 0 && len(d.Logs) == 0
	d.judge()
	return d, nil
}

// sameDataDir tells whether two names lead to one data directory.
func sameDataDir(a, b string) bool {
	return sameFile(a, b) || sameFile(filepath.Join(a, dataFolder), filepath.Join(b, dataFolder))
}

func (d *Diagnosis) lookAtDisk() {
	dirs := []string{d.Dir, d.LogDir}
	if d.Dir == d.LogDir {
		dirs = dirs[:1]
	}
	for _, dir := range dirs {
		if free, all, ok := diskSpace(dir); ok {
			if d.DiskBytes == 0 || free < d.FreeBytes {
				d.FreeBytes, d.DiskBytes = free, all
			}
			if free < freeBytesLow {
				d.find(LevelWarning, fmt.Sprintf("%s has %s of disk left", dir, sizeText(free)),
					"Make room: a full disk stops the server. \"zabra purge\" removes old snapshots and logs.")
			}
		}
		if unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
			d.find(LevelWarning, fmt.Sprintf("%s cannot be written to by this user", dir),
				"Run the doctor as the user that runs the server, or give that user the directory.")
		}
	}
}

// readMyID reads myid as a server of ours does, which passes over blanks.
func (d *Diagnosis) readMyID() {
	name := filepath.Join(d.Dir, "myid")
	text, err := readSmall(name)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		d.find(LevelWarning, fmt.Sprintf("myid cannot be read: %v", err), "A member of an ensemble needs it.")
		return
	}
	line := firstLine(text)
	id, err := strconv.ParseInt(trimBlanks(line), 10, 64)
	if err != nil {
		d.find(LevelError, fmt.Sprintf("the first line of myid is %q, which is no number", line),
			"Write the server's number into "+name+".")
		return
	}
	d.MyID, d.myidOK = strconv.FormatInt(id, 10), true
	d.noteBlanks(name, line)
}

// trimBlanks takes off what a server of ours passes over around a number.
func trimBlanks(s string) string { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) }

// noteBlanks tells of a number in a file that ZooKeeper does not take for one.
func (d *Diagnosis) noteBlanks(file, line string) {
	if _, err := strconv.ParseInt(line, 10, 64); err == nil {
		return
	}
	d.blanks = file
	d.find(LevelNote, fmt.Sprintf("%s holds %q: Apache ZooKeeper refuses a number with blanks around it", file, line), "")
}

// firstLine is the first line of a text, without its end.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, "\r")
}

// readSmall reads a small file.
func readSmall(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, smallFileBytesMax))
	return string(b), err
}

// readState learns from the small files who was here.
func (d *Diagnosis) readState() error {
	var err error
	d.state, err = storage.ReadState(d.fs, d.cfg)
	if err != nil {
		var path *fs.PathError
		if !errors.As(err, &path) {
			d.find(LevelError, fmt.Sprintf("zabra.state cannot be used: %v", err), "Use the version of Zabra that wrote it, or a later one.")
			return nil
		}
		return err
	}
	switch {
	case d.state.Present && d.state.Holds:
		d.WrittenBy = "a Zabra server"
	case d.state.Present:
		d.WrittenBy = "Apache ZooKeeper, on what a Zabra server had left"
		d.find(LevelNote, "the epoch files say something else than zabra.state: a ZooKeeper server was at work here "+
			"since, so what zabra.state promises does not count", "")
	default:
		d.WrittenBy = "Apache ZooKeeper (there is no zabra.state)"
	}
	if d.state.Holds && d.state.Installing {
		d.find(LevelWarning, "a snapshot that was received from another server is only half installed",
			"Start the server: it finishes that first.")
	}
	return nil
}

// lookAtSeparation finds logs and snapshots in each other's directory.
func (d *Diagnosis) lookAtSeparation() {
	const do = "Check whether dataDir and dataLogDir are swapped, and move the files to where they belong."
	for _, c := range d.Logs {
		if filepath.Dir(c.File) != filepath.Join(d.LogDir, dataFolder) {
			d.find(LevelError, fmt.Sprintf("%s is a log in the directory for snapshots", c.File), do)
			return
		}
	}
	for _, s := range d.Snapshots {
		if filepath.Dir(s.File) != filepath.Join(d.Dir, dataFolder) {
			d.find(LevelError, fmt.Sprintf("%s is a snapshot in the directory for logs", s.File), do)
			return
		}
	}
}

// lookAtSuperseded tells of what an installed snapshot has replaced.
func (d *Diagnosis) lookAtSuperseded() {
	dirs := []string{d.Dir, d.LogDir}
	if d.Dir == d.LogDir {
		dirs = dirs[:1]
	}
	for _, dir := range dirs {
		dir = filepath.Join(dir, "superseded")
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			continue
		}
		var bytes int64
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				bytes += info.Size()
			}
		}
		d.find(LevelNote, fmt.Sprintf("%s holds %s (%s) that a snapshot from the leader has replaced; nobody reads them, "+
			"the next purge removes them",
			dir, count(len(entries), "file"), sizeText(bytes)), "")
	}
}
