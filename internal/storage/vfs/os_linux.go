package vfs

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// SyncData implements File with fdatasync.
func (f osFile) SyncData() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// FlushRange implements File with sync_file_range. Where the file system does not have it, nothing happens.
func (f osFile) FlushRange(off, n int64, wait bool) error {
	flags := unix.SYNC_FILE_RANGE_WRITE
	if wait {
		flags |= unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	}
	switch err := unix.SyncFileRange(int(f.Fd()), off, n, flags); err {
	case nil, unix.ENOSYS, unix.EINVAL, unix.ESPIPE, unix.EOPNOTSUPP, unix.EINTR:
		return nil
	default:
		return &fs.PathError{Op: "sync_file_range", Path: f.Name(), Err: err}
	}
}
