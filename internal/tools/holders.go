package tools

import (
	"fmt"
	"io"
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

// lockHeld tells whether somebody holds the lock on a file, and who if that is known. The system's list of locks tells it
// without touching the file, where that list shows everybody. Elsewhere a shared lock is taken and given back at once: a
// server that starts in that very moment finds its lock taken.
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
	major, minor := unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev))
	locks, all := systemLocks()
	if pid, ok := holder(locks, fmt.Sprintf("%02x:%02x", major, minor), st.Ino); ok {
		return true, pid, nil
	}
	if all && major != 0 {
		return false, 0, nil
	}
	if lockRefused(f) {
		pid, _ := holder(locks, "", st.Ino) // where the list names another device than the file does
		return true, pid, nil
	}
	return false, 0, nil
}

// lockRefused tries a shared lock, which closing the file gives back. Where there are no locks, nobody holds one.
func lockRefused(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == unix.EWOULDBLOCK
}

// systemLocks reads the system's list of locks. It is all there is only outside of containers, and when it came in one piece:
// a longer one may lose a line while locks come and go. File systems without a device of their own (btrfs, overlays, network
// shares) have major number 0 and are not listed under the number that the file names.
func systemLocks() (list string, all bool) {
	f, err := os.Open("/proc/locks")
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, locksBytesMax))
	namespace, nsErr := os.Readlink("/proc/self/ns/pid")
	return string(b), err == nil && nsErr == nil && len(b) < os.Getpagesize() && namespace == firstPIDNamespace
}

// firstPIDNamespace is the kernel's number for the namespace that sees all processes.
const firstPIDNamespace = "pid:[4026531836]"

// holder looks in a list of locks for who holds an exclusive one on a file; an empty device stands for any.
func holder(list, device string, inode uint64) (pid int, ok bool) {
	number := ":" + strconv.FormatUint(inode, 10)
	for line := range strings.Lines(list) {
		// 1: FLOCK  ADVISORY  WRITE 4242 fe:01:131090 0 EOF
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[3] != "WRITE" {
			continue
		}
		if place := fields[5]; place != device+number && (device != "" || !strings.HasSuffix(place, number)) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil {
			return pid, true
		}
	}
	return 0, false
}

// writersIn lists the other processes that have a file of one of the folders open for writing. Where the system does not
// tell, there are none.
func writersIn(dirs []string) (found []Process) {
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
		if file := writtenBy(filepath.Join("/proc", name), dirs); file != "" {
			comm, _ := os.ReadFile(filepath.Join("/proc", name, "comm"))
			found = append(found, Process{PID: pid, Name: strings.TrimSpace(string(comm)), File: file})
		}
	}
	return found
}

// writtenBy returns a file in one of the folders that a process has open for writing, empty if there is none. What counts is
// the file and not its path: a process in a container has paths of its own. Only files with the name of a server's are looked
// at, so that nothing waits for a file system that somebody else uses.
func writtenBy(process string, dirs []string) string {
	fds, err := os.Open(filepath.Join(process, "fd"))
	if err != nil {
		return ""
	}
	defer fds.Close()
	names, _ := fds.Readdirnames(-1)
	for _, name := range names {
		fd := filepath.Join(process, "fd", name)
		target, err := os.Readlink(fd)
		base := filepath.Base(target)
		if kind, _ := storage.KindOf(base); err != nil || kind == storage.KindForeign {
			continue
		}
		info, err := os.ReadFile(filepath.Join(process, "fdinfo", name))
		if err != nil || !opensForWriting(string(info)) {
			continue
		}
		for _, dir := range dirs {
			if file := filepath.Join(dir, base); sameFile(fd, file) {
				return file
			}
		}
	}
	return ""
}

// sameFile tells whether two names lead to one file or folder.
func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
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
