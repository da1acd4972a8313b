// Package vfs is the file system as the storage engine sees it: only the calls that it makes, each with what must be
// durable when it returns. There are three implementations. OS is the real one. Mem lives in memory and can be cloned
// as a crash might leave it. Fault wraps another one, counts operations and lets a test fail any of them.
//
// The way in: FS.Create or FS.Open, File.WriteAt, File.SyncData, FS.SyncDir.
package vfs

import (
	"io"
	"time"
)

// FS is a file system. Names are slash-separated paths. All methods may be called from any goroutine.
type FS interface {
	// Open opens an existing file for reading. Sync works on it too.
	Open(name string) (File, error)
	// OpenWrite opens an existing file for reading and writing.
	OpenWrite(name string) (File, error)
	// Create makes an empty file, or empties an existing one, and opens it for reading and writing. The name is
	// durable only after SyncDir of its directory.
	Create(name string) (File, error)
	// Remove deletes a file. The deletion is durable only after SyncDir.
	Remove(name string) error
	// Rename gives a file a new name, replacing what had that name. Within a directory it is one step: after a crash
	// either the old or the new state is there; it is durable only after SyncDir. From one directory to another each
	// has its own part: until both are synced, a crash may leave the file under both names, or under none.
	Rename(oldName, newName string) error
	// List returns the names in a directory, without path, sorted.
	List(dir string) ([]string, error)
	// Stat tells a file's size. A missing file gives an error that matches fs.ErrNotExist.
	Stat(name string) (Info, error)
	// MkdirAll creates a directory and its parents and makes the new entries durable.
	MkdirAll(dir string) error
	// SyncDir makes all creations, renames and removals in dir durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock that ends with the process at the latest, or fails at once if somebody else has
	// it. The lock file stays when the lock is released.
	Lock(name string) (io.Closer, error)
}

// Info is what Stat tells.
type Info struct {
	Size int64
	Dir  bool
	// ModTime is when the file was changed last; the zero time where files have none.
	ModTime time.Time
}

// File is an open file. ReadAt, Size, Sync, SyncData and FlushRange may overlap with WriteAt; writes to overlapping
// ranges may not overlap in time.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length; what is added reads as zeros.
	Truncate(size int64) error
	// Sync makes content and all metadata durable. After an error nothing is known about what is durable, and
	// calling again proves nothing.
	Sync() error
	// SyncData makes the content durable, and the length as far as it is needed to read it (fdatasync). The same
	// holds after an error.
	SyncData() error
	// FlushRange starts writing a range to the device, so that a later Sync finds little to do, and with wait set
	// also waits for it. It makes nothing durable. Its error counts like that of Sync: the kernel reports a failed
	// write-back once per open file, so that the Sync to come may not tell it again.
	FlushRange(off, n int64, wait bool) error
}

// errLocked has its own type so that it reads well inside a wrapped error.
type errLocked struct{}

func (errLocked) Error() string { return "locked by another process" }

// ErrLocked is returned by Lock when somebody else holds the lock.
var ErrLocked error = errLocked{}
