package tools

import (
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
	"zabra/znode"
)

// Diagnose looks at a data directory and tells what state it is in and what would happen at a start. It changes nothing:
// the start is tried on an overlay. logDir is dataLogDir, empty if it is the same. A directory that does not exist, or
// cannot be read at all, is an error; everything else is a finding.
func Diagnose(dir, logDir string, now time.Time) (*Diagnosis, error) {
	if logDir == "" {
		logDir = dir
	}
	d := &Diagnosis{Dir: dataDirOf(dir), LogDir: dataDirOf(logDir), now: now}
	d.cfg = storage.Config{SnapDir: d.Dir, LogDir: d.LogDir, NoAutocreate: true, Go: func(f func()) { f() }}
	for _, dir := range []string{d.Dir, d.LogDir} {
		if info, err := os.Stat(dir); err != nil {
			return nil, err
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s is no directory", dir)
		}
	}
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
	d.Fresh = len(d.Snapshots) == 0 && len(d.Logs) == 0
	d.judge()
	return d, nil
}

func (d *Diagnosis) lookAtDisk() {
	for i, dir := range []string{d.Dir, d.LogDir} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil {
			continue
		}
		free, all := int64(st.Bavail)*st.Bsize, int64(st.Blocks)*st.Bsize
		if i == 0 || free < d.FreeBytes {
			d.FreeBytes, d.DiskBytes = free, all
		}
		if i == 1 && d.Dir == d.LogDir {
			break
		}
		if free < freeBytesLow {
			d.find(LevelWarning, fmt.Sprintf("%s has %s of disk left", dir, sizeText(free)),
				"Make room: a full disk stops the server. \"zabra purge\" removes old snapshots and logs.")
		}
		if unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
			d.find(LevelWarning, fmt.Sprintf("%s cannot be written to by this user", dir),
				"Run the doctor as the user that runs the server, or give that user the directory.")
		}
	}
}

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
	line, _, _ := strings.Cut(text, "\n")
	line = strings.TrimSuffix(line, "\r")
	id, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		d.find(LevelError, fmt.Sprintf("the first line of myid is %q, which is no number", line),
			"Write the server's number into "+name+", without blanks.")
		return
	}
	d.MyID, d.myidOK = strconv.FormatInt(id, 10), true
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
	d.state, err = storage.ReadState(vfs.OS{}, d.cfg)
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

// lookAtFolder takes stock of a version-2 folder.
func (d *Diagnosis) lookAtFolder(dir string) error {
	names, err := vfs.OS{}.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owners := map[uint32]int{}
	for _, name := range names {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		if err != nil {
			continue // it went away meanwhile
		}
		if st, ok := statOf(info); ok {
			owners[st.Uid]++
		}
		kind, z := storage.KindOf(name)
		switch {
		case info.IsDir() || kind == storage.KindForeign:
			d.find(LevelNote, fmt.Sprintf("%s is no file of a server; it is ignored", file), "")
		case unix.Access(file, unix.R_OK) != nil:
			d.find(LevelError, fmt.Sprintf("%s cannot be read by this user", file),
				"Give the file to the user that runs the server (chown, chmod).")
		case kind == storage.KindLog:
			d.addLog(file)
		case kind == storage.KindSnapshot:
			d.addSnapshot(SnapshotFact{File: file, Zxid: z.String(), Bytes: info.Size(), z: z, modified: info.ModTime()})
		case kind == storage.KindLeftover:
			d.leftover(file, info)
		case kind == storage.KindForeignData:
			d.foreign = append(d.foreign, file)
			d.find(LevelWarning, fmt.Sprintf("%s has a name that Apache ZooKeeper takes for data; Zabra ignores it", file),
				"Move it away, if it is a copy or what a crash left.")
		}
		if info.ModTime().After(d.now.Add(futureSlack)) {
			d.find(LevelNote, fmt.Sprintf("%s is dated in the future: the clock was or is wrong", file), "")
		}
	}
	if len(owners) > 1 {
		d.find(LevelWarning, fmt.Sprintf("the files in %s belong to %s", dir, count(len(owners), "different user")),
			"A server was perhaps started once as another user, such as root. Give all files to the one that runs it (chown -R).")
	}
	return nil
}

func (d *Diagnosis) leftover(file string, info fs.FileInfo) {
	what := "is left of an interrupted write; the next start removes it"
	switch filepath.Base(file) {
	case "zabra.received", "zabra.received.info":
		what = "is a snapshot on its way from another server; the transfer is resumed if that server is met again"
	case "currentEpoch.tmp", "acceptedEpoch.tmp":
		what = "is left of an interrupted change of the epoch; it is looked at when the epoch lags behind the log"
	}
	if d.Use.live() {
		what = "is a file in the making"
	}
	d.find(LevelNote, fmt.Sprintf("%s (%s) %s", file, sizeText(info.Size()), what), "")
}

func (d *Diagnosis) addLog(file string) {
	c, err := checkLog(vfs.OS{}, file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // purged meanwhile
	case err != nil:
		d.find(LevelError, fmt.Sprintf("%s cannot be read: %v", file, err), "Look at the disk and at the system's log.")
	default:
		d.Logs = append(d.Logs, c)
	}
}

func (d *Diagnosis) addSnapshot(f SnapshotFact) {
	f.Modified = f.modified.Format(time.RFC3339)
	r, _, err := storage.OpenSnapshotFile(vfs.OS{}, f.File)
	if err == nil {
		err = errors.Join(znode.VerifySnapshot(r, fieldBytesMax), r.Close())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.Why = err.Error()
	default:
		f.Whole = true
	}
	d.Snapshots = append(d.Snapshots, f)
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
