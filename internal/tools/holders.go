package tools

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"zabra/internal/storage"
)

// Use tells who is at work on a data directory.
type Use struct {
	// Locked says that a Zabra server runs here; LockedBy is its process, 0 if that cannot be told from here.
	Locked   bool `json:"locked"`
	LockedBy int  `json:"lockedBy,omitempty"`
	// Writers are other processes that have files of the directory open for writing. Servers of ZooKeeper take no lock, so
	// this is all that shows them; processes of other users are not seen without the right to.
	Writers []Process `json:"writers,omitempty"`
}

// Process is one that has files open.
type Process struct {
	PID  int    `json:"pid"`
	Name string `json:"name"`
	File string `json:"file"`
}

// live tells whether somebody is at work.
func (u Use) live() bool { return u.Locked || len(u.Writers) > 0 }

// who says it in words.
func (u Use) who() string {
	switch {
	case u.Locked && u.LockedBy != 0:
		return fmt.Sprintf("a Zabra server (process %d)", u.LockedBy)
	case u.Locked:
		return "a Zabra server"
	}
	w := u.Writers[0]
	return fmt.Sprintf("process %d (%s)", w.PID, w.Name)
}

func useOf(cfg storage.Config) (Use, error) {
	var u Use
	for _, name := range storage.LockFiles(cfg) {
		held, pid, err := lockHeld(name)
		if err != nil {
			return u, err
		}
		if held {
			u.Locked, u.LockedBy = true, pid
		}
	}
	for _, p := range writersIn(foldersOf(cfg)) {
		if p.PID != u.LockedBy {
			u.Writers = append(u.Writers, p)
		}
	}
	return u, nil
}

// lockHeld tells whether somebody holds the lock on a file. It looks at the system's list first, which disturbs nobody; the
// list does not show processes of other containers, so a shared lock is tried for a moment then.
func lockHeld(name string) (held bool, pid int, err error) {
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return false, 0, err
	}
	if pid := listedLock(st.Ino); pid != 0 {
		return true, pid, nil
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return true, 0, nil
	}
	return false, 0, nil // closing the file gives it back; where there are no locks, nobody holds one
}

// listedLock looks for the holder of an exclusive lock on an inode in the system's list of locks.
func listedLock(inode uint64) int {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4242 fe:01:131090 0 EOF
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[3] != "WRITE" || !strings.HasSuffix(fields[5],
			":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil {
			return pid
		}
	}
	return 0
}

// writersIn lists the other processes that have a file of one of the folders open for writing. Where the system does not
// tell, there are none.
func writersIn(dirs []string) (found []Process) {
	real := map[string]bool{}
	for _, dir := range dirs {
		if dir, err := filepath.Abs(dir); err == nil {
			real[dir] = true
			if dir, err = filepath.EvalSymlinks(dir); err == nil {
				real[dir] = true
			}
		}
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if file := writtenBy(filepath.Join("/proc", name), real); file != "" {
			comm, _ := os.ReadFile(filepath.Join("/proc", name, "comm"))
			found = append(found, Process{PID: pid, Name: strings.TrimSpace(string(comm)), File: file})
		}
	}
	return found
}

// writtenBy returns a file in one of the folders that a process has open for writing, empty if there is none.
func writtenBy(process string, dirs map[string]bool) string {
	fds, err := os.Open(filepath.Join(process, "fd"))
	if err != nil {
		return ""
	}
	defer fds.Close()
	names, _ := fds.Readdirnames(-1)
	for _, name := range names {
		target, err := os.Readlink(filepath.Join(process, "fd", name))
		if err != nil || !dirs[filepath.Dir(target)] {
			continue
		}
		info, err := os.ReadFile(filepath.Join(process, "fdinfo", name))
		if err == nil && opensForWriting(string(info)) {
			return target
		}
	}
	return ""
}

// opensForWriting reads the flags of a descriptor, which are octal.
func opensForWriting(fdinfo string) bool {
	_, rest, found := strings.Cut(fdinfo, "flags:")
	line, _, _ := strings.Cut(rest, "\n")
	flags, err := strconv.ParseInt(strings.TrimSpace(line), 8, 64)
	return found && err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// foldersOf are the one or two folders with files.
func foldersOf(cfg storage.Config) []string {
	snap, log := filepath.Join(cfg.SnapDir, dataFolder), filepath.Join(cfg.LogDir, dataFolder)
	if snap == log {
		return []string{snap}
	}
	return []string{snap, log}
}
