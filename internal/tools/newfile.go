package tools

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
)

// newFile is a copy of a log in the making. Until it is whole and durable it has a name that no server takes for data, so
// that what an interrupted copy leaves is never mistaken for a log. The next copy of the same name takes that over.
type newFile struct {
	name, making string
	f            *os.File
	w            *bufio.Writer
	err          error
	kept         bool
}

// makingPrefix begins the name of a copy that is not whole.
const makingPrefix = ".zabra-copy."

// createCopy begins a copy of source. One that exists already under that name is an error that matches fs.ErrExist.
func createCopy(source, name string) (*newFile, error) {
	if _, err := os.Lstat(name); err == nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	making := filepath.Join(filepath.Dir(name), makingPrefix+filepath.Base(name))
	f, err := openMaking(making)
	if err != nil {
		return nil, err
	}
	c := &newFile{name: name, making: making, f: f, w: bufio.NewWriter(f)}
	if err := takeOver(f, info); err != nil {
		c.discard()
		return nil, err
	}
	return c, nil
}

// openMaking opens the file under its name for the time being and locks it: what another process is writing there is left
// alone.
func openMaking(making string) (*os.File, error) {
	const mode = 0o600
	f, err := os.OpenFile(making, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, mode)
	if err != nil {
		return nil, err
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == unix.EWOULDBLOCK || !sameNow(f, making) {
		f.Close()
		return nil, fmt.Errorf("%s is being written by another process", making)
	}
	return f, nil
}

// sameNow tells whether an open file still has its name.
func sameNow(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(name)
	return err == nil && os.SameFile(opened, named)
}

// takeOver empties the file and gives it the permissions of the source, and its owner where we may: a copy is read by those
// who may read the log, and by nobody else.
func takeOver(f *os.File, source fs.FileInfo) error {
	const ownerWrites = 0o200
	if st, ok := statOf(source); ok && os.Geteuid() == 0 {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // a file server may forbid it; then the copy is ours
	}
	return errors.Join(f.Truncate(0), f.Chmod(source.Mode().Perm()|ownerWrites))
}

func (f *newFile) write(b []byte) {
	if _, err := f.w.Write(b); err != nil && f.err == nil {
		f.err = err
	}
}

// keep makes the file durable and gives it its name, which must still be free.
func (f *newFile) keep() error {
	if err := errors.Join(f.err, f.w.Flush(), f.f.Sync()); err != nil {
		return err
	}
	// An empty file of our own takes the name first: a rename alone would replace what somebody else has put there.
	place, err := os.OpenFile(f.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(place.Close(), os.Rename(f.making, f.name)); err != nil {
		return errors.Join(err, os.Remove(f.name))
	}
	f.kept = true
	return errors.Join(vfs.OS{}.SyncDir(filepath.Dir(f.name)), f.f.Close())
}

// discard removes a file that was not kept.
func (f *newFile) discard() {
	if !f.kept {
		os.Remove(f.making)
		f.f.Close()
	}
}

// warnOfName tells that a copy stands where a ZooKeeper server takes it for a log.
func (f *newFile) warnOfName(o Output) {
	dir, err := filepath.Abs(filepath.Dir(f.name))
	kind, _ := storage.KindOf(filepath.Base(f.name))
	if err == nil && kind == storage.KindForeignData && filepath.Base(dir) == dataFolder {
		fmt.Fprintf(o.Err, "%s: Apache ZooKeeper takes a file of that name for a log. Put it in its place, or move it away, before "+
			"such a server starts here.\n", f.name)
	}
}
