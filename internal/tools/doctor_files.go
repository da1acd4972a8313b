package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zabra/internal/storage"
	"zabra/znode"
)

// lookAtFolder takes stock of a version-2 folder.
func (d *Diagnosis) lookAtFolder(dir string) error {
	names, err := d.fs.List(dir)
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
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went away meanwhile
		case err != nil:
			d.unreadable(file, 0, err)
		default:
			if st, ok := statOf(info); ok {
				owners[st.Uid]++
			}
			d.lookAtFile(file, info)
		}
	}
	if len(owners) > 1 {
		d.find(LevelWarning, fmt.Sprintf("the files in %s belong to %s", dir, count(len(owners), "different user")),
			"A server was perhaps started once as another user, such as root. Give all files to the one that runs it (chown -R).")
	}
	return nil
}

func (d *Diagnosis) lookAtFile(file string, info fs.FileInfo) {
	kind, z := storage.KindOf(filepath.Base(file))
	regular := info.Mode().IsRegular()
	switch {
	case !regular && (kind == storage.KindLog || kind == storage.KindSnapshot):
		d.unreadable(file, info.Size(), errors.New("it is no regular file"))
	case !regular || kind == storage.KindForeign:
		d.find(LevelNote, fmt.Sprintf("%s is no file of a server; it is ignored", file), "")
	case kind == storage.KindLog:
		d.addLog(file, info.Size())
	case kind == storage.KindSnapshot:
		d.addSnapshot(SnapshotFact{File: file, Zxid: z.String(), Bytes: info.Size(), z: z, modified: info.ModTime()})
	default:
		d.lookAtOther(kind, file, info)
	}
	if info.ModTime().After(d.now.Add(futureSlack)) {
		d.find(LevelNote, fmt.Sprintf("%s is dated in the future: the clock was or is wrong", file), "")
	}
}

// lookAtOther looks at what has the name of a server's file and holds no data.
func (d *Diagnosis) lookAtOther(kind storage.Kind, file string, info fs.FileInfo) {
	f, err := d.fs.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it went away meanwhile
		return
	case err != nil:
		d.unreadable(file, info.Size(), err)
		return
	}
	f.Close()
	switch kind {
	case storage.KindLeftover:
		d.leftover(file, info)
	case storage.KindForeignData:
		d.foreign = append(d.foreign, file)
		d.find(LevelWarning, fmt.Sprintf("%s has a name that Apache ZooKeeper takes for data; Zabra ignores it", file),
			"Move it away, if it is a copy or what a crash left.")
	}
}

// unreadable notes a file that cannot be read. One with the name of data counts as data: the directory is not empty.
func (d *Diagnosis) unreadable(file string, size int64, err error) {
	switch kind, z := storage.KindOf(filepath.Base(file)); kind {
	case storage.KindLog:
		d.Logs = append(d.Logs, &LogCheck{File: file, State: stateUnreadable, Bytes: size, Why: causeOf(err), named: z})
	case storage.KindSnapshot:
		d.Snapshots = append(d.Snapshots, SnapshotFact{File: file, Zxid: z.String(), Bytes: size, Why: causeOf(err), Unreadable: true, z: z})
	default:
		d.find(LevelError, fmt.Sprintf("%s cannot be read: %s", file, causeOf(err)), doReadable)
	}
}

// tellUnreadable tells of the data that cannot be read.
func (d *Diagnosis) tellUnreadable(starts bool) {
	var faults []string
	for _, s := range d.Snapshots {
		if s.Unreadable {
			faults = append(faults, fmt.Sprintf("%s cannot be read: %s", s.File, s.Why))
		}
	}
	for _, l := range d.Logs {
		if l.State == stateUnreadable {
			faults = append(faults, fmt.Sprintf("%s cannot be read: %s", l.File, l.Why))
		}
	}
	if len(faults) == 0 {
		return
	}
	what, level := faults[len(faults)-1], LevelError
	if others := len(faults) - 1; others > 0 {
		what += fmt.Sprintf("; nor can %s", count(others, "other file"))
	}
	if starts {
		what += "; a start goes on without that"
	}
	if starts || d.Use.live() {
		level = LevelWarning
	}
	d.find(level, what, doReadable)
}

// doReadable is what to do about a file that cannot be read.
const doReadable = "Give the file to the user that runs the server (chown, chmod), or run the doctor as that user. If that is not " +
	"it, look at the disk and at the system's log."

// causeOf leaves the name of the file out of an error.
func causeOf(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
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

func (d *Diagnosis) addLog(file string, size int64) {
	c, err := checkLog(d.fs, file)
	switch {
	case errors.Is(err, fs.ErrNotExist): // purged meanwhile
	case err != nil:
		d.unreadable(file, size, err)
	default:
		d.Logs = append(d.Logs, c)
	}
}

func (d *Diagnosis) addSnapshot(f SnapshotFact) {
	r, _, err := storage.OpenSnapshotFile(d.fs, f.File)
	if err == nil {
		err = errors.Join(znode.VerifySnapshot(r, fieldBytesMax), r.Close())
	}
	var disk *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case errors.As(err, &disk):
		f.Why, f.Unreadable = causeOf(err), true
	case err != nil:
		f.Why = err.Error()
	default:
		f.Whole = true
	}
	d.Snapshots = append(d.Snapshots, f)
}
