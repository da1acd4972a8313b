//go:build linux || darwin || freebsd || dragonfly

package server

import "golang.org/x/sys/unix"

// diskFree returns the free space, in bytes, of the file system that dir is on; ok is false where the system does not tell.
func diskFree(dir string) (free int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true // their types differ from system to system
}
