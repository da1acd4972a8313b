//go:build unix && !linux

package vfs

// SyncData implements File. Without a portable fdatasync it is a full sync.
func (f osFile) SyncData() error { return f.Sync() }

// FlushRange implements File. There is no portable call for it, and it promises nothing.
func (f osFile) FlushRange(off, n int64, wait bool) error { return nil }
