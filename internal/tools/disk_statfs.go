//go:build linux || darwin || freebsd || dragonfly

package tools

import "golang.org/x/sys/unix"

// diskSpace returns the free and the whole space, in bytes, of the file system that dir is on; ok is false where the system
// does not tell.
func diskSpace(dir string) (free, all int64, ok bool) {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0, 0, false
	}
	// The types of these numbers differ from system to system.
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), true
}
