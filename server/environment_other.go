//go:build unix && !linux

package server

import "runtime"

// physicalMemory returns 0: there is no portable way to ask.
func physicalMemory() uint64 { return 0 }

func osName() string { return runtime.GOOS }

func osRelease() string { return notAvailable }
