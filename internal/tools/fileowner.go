package tools

import (
	"io/fs"
	"syscall"
)

// statOf returns what the system knows of a file beyond the usual.
func statOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}
