//go:build !linux && !darwin && !freebsd && !dragonfly

package server

// diskFree does not know here.
func diskFree(string) (free int64, ok bool) { return 0, false }
