// Package logfile writes a log to a file that is set aside when it has grown: name becomes name.1, name.1 becomes name.2, and
// so on, as the appenders of log4j and logback number them. Where something else sets files aside, Reopen takes up the new one.
package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// mode lets the owner and the group read a log: it tells who does what.
const mode = 0o640

// File is a log file. Any goroutine may use it.
type File struct {
	path     string
	bytesMax int64 // 0: it is never set aside here
	kept     int

	mu struct {
		sync.Mutex
		file *os.File
		size int64
		torn bool // the last write has left a part of a line
	}
}

// Open opens the file for appending, and makes it if it is not there. It is set aside before it would grow beyond bytesMax;
// kept is how many of the old ones stay.
func Open(path string, bytesMax int64, kept int) (*File, error) {
	l := &File{path: path, bytesMax: bytesMax, kept: max(kept, 1)}
	return l, l.openLocked()
}

// openLocked opens the file anew. If that fails the one that is open stays so.
func (l *File) openLocked() error {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if l.mu.file != nil {
		err = l.mu.file.Close()
	}
	l.mu.file, l.mu.size, l.mu.torn = f, info.Size(), false
	return err
}

// Path is the name that the file was opened by.
func (l *File) Path() string { return l.path }

// Write appends whole lines. If n is less than the length of b, the rest is lost, and what is written next begins on a line of its
// own. An error beside all of n tells that the file could not be set aside; it goes on growing, and that is tried again after as
// many bytes.
func (l *File) Write(b []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rotateErr error
	if l.bytesMax > 0 && l.mu.size > 0 && l.mu.size+int64(len(b)) > l.bytesMax {
		if rotateErr = l.rotateLocked(); rotateErr != nil {
			l.mu.size = 0
		}
	}
	if l.mu.torn {
		if _, err := l.mu.file.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
	}
	n, err = l.mu.file.Write(b)
	l.mu.size += int64(n)
	l.mu.torn = n > 0 && n < len(b)
	if err != nil {
		return n, err
	}
	return n, rotateErr
}

// rotateLocked sets the file aside and begins a new one. The oldest one that is kept makes room.
func (l *File) rotateLocked() error {
	for i := l.kept - 1; i > 0; i-- {
		if err := os.Rename(l.aside(i), l.aside(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(l.path, l.aside(1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.openLocked()
}

func (l *File) aside(i int) string { return fmt.Sprintf("%s.%d", l.path, i) }

// Reopen takes up the file that has the name now, which is a new one if the old one was moved away. If it fails, the old one stays.
func (l *File) Reopen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openLocked()
}

// Sync has the system write the file out.
func (l *File) Sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.file.Sync()
}

// Close closes the file. Nothing is written after it.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.file.Close()
}
