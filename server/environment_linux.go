package server

import "golang.org/x/sys/unix"

// physicalMemory returns the machine's memory in bytes, 0 if the system does not tell.
func physicalMemory() uint64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}

func osName() string { return "Linux" }

func osRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return notAvailable
	}
	return unix.ByteSliceToString(u.Release[:])
}
