//go:build linux

package harness

import (
	"fmt"
	"os"
	"syscall"
)

// diskSlackBytes is what Fill leaves free, enough for the directory entry of a file.
const diskSlackBytes = 8 << 10

// Disk is a file system in memory that can be full at any moment: it is made as small as what it holds. It needs the right to
// mount (root). What was written survives the death of a process, as it does in a page cache; that nothing unsynced survives a
// power cut can only be shown by a simulated disk.
type Disk struct {
	dir  string
	size int64
}

// NewDisk mounts a file system of the given size on dir, which must exist.
func NewDisk(dir string, sizeBytes int64) (*Disk, error) {
	d := &Disk{dir: dir, size: sizeBytes}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, d.option(sizeBytes)); err != nil {
		return nil, fmt.Errorf("mount a file system for the disk-full fault on %s (root is needed): %w", dir, os.NewSyscallError("mount", err))
	}
	return d, nil
}

func (d *Disk) option(size int64) string { return fmt.Sprintf("size=%d,mode=755", size) }

// Fill takes away all free space.
func (d *Disk) Fill() error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	used := int64(s.Blocks-s.Bfree) * s.Bsize
	return d.resize(used + diskSlackBytes)
}

// Free gives the space back.
func (d *Disk) Free() error { return d.resize(d.size) }

func (d *Disk) resize(size int64) error {
	return os.NewSyscallError("remount", syscall.Mount("tmpfs", d.dir, "tmpfs", syscall.MS_REMOUNT, d.option(size)))
}

// Close unmounts the file system; its files are gone.
func (d *Disk) Close() error {
	return os.NewSyscallError("umount", syscall.Unmount(d.dir, syscall.MNT_DETACH))
}
