package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/znode"
)

// PurgeOptions are those of Purge.
type PurgeOptions struct {
	// LogDir and SnapDir are dataLogDir and dataDir; an empty SnapDir is LogDir.
	LogDir, SnapDir string
	// Retain is how many snapshots stay, 3 at least.
	Retain int
	// DryRun only names what would be removed.
	DryRun bool
}

// RetainError refuses a number of snapshots, in the words of ZooKeeper's tool.
type RetainError struct{}

func (e *RetainError) Error() string { return "count should be greater than or equal to 3" }

// NoPathError says that a directory is not there, in the words of ZooKeeper's tool.
type NoPathError struct{ Path string }

func (e *NoPathError) Error() string { return fmt.Sprintf("Path '%s' does not exist. ", e.Path) }

// LockedError says that a server of ours has the directory: it purges by itself, and knows what it still needs.
type LockedError struct{ Dir string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is in use by a running Zabra server or another purge, nothing was removed. Let the server purge: set "+
		"autopurge.purgeInterval "+
		"(hours) and autopurge.snapRetainCount in its configuration. Or stop it first.", e.Dir)
}

// Purge removes snapshots and logs that nobody needs any more and prints the name of each before it goes. The newest Retain
// snapshots stay that are whole: each is read in full before anything is removed. So do the logs from the one on that holds
// the transaction after the oldest of them. With fewer whole snapshots nothing is removed, and that is told.
//
// A ZooKeeper server may run on the directory, as with its own tool. One of ours may not: a *LockedError.
func Purge(o Output, opt PurgeOptions) (err error) {
	if opt.Retain < storage.RetainMin {
		return &RetainError{}
	}
	opt.SnapDir = cmp.Or(opt.SnapDir, opt.LogDir)
	for _, dir := range []string{opt.LogDir, opt.SnapDir} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return &NoPathError{Path: dir}
		}
	}
	cfg := storage.Config{SnapDir: dataDirOf(opt.SnapDir), LogDir: dataDirOf(opt.LogDir)}
	if sameDataDir(cfg.SnapDir, cfg.LogDir) {
		cfg.LogDir = cfg.SnapDir
	}
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	if lockedNow(cfg) {
		// The purge would be refused at its end, too, but after it has read gigabytes.
		locked := &LockedError{Dir: opt.SnapDir}
		if !opt.DryRun {
			return locked
		}
		fmt.Fprintf(o.Err, "A purge without --dry-run would be refused: %v\n", locked)
	}
	return purge(p, cfg, opt)
}

// lockedNow tells whether a server of ours is seen to run. What cannot be told here the purge itself finds out.
func lockedNow(cfg storage.Config) bool {
	for _, name := range storage.LockFiles(cfg) {
		if held, _, err := lockHeld(name); err == nil && held {
			return true
		}
	}
	return false
}

func purge(p *printer, cfg storage.Config, opt PurgeOptions) error {
	var below vfs.FS = vfs.OS{}
	if opt.DryRun {
		below = newOverlay(vfs.OS{})
	}
	whole := 0
	verify := func(r io.Reader, _ zab.SnapshotFile) error {
		err := znode.VerifySnapshot(r, fieldBytesMax)
		if err == nil {
			whole++
		}
		return err
	}
	err := storage.PurgeOffline(&removalTeller{FS: below, p: p, dryRun: opt.DryRun}, cfg, opt.Retain, verify)
	if errors.Is(err, vfs.ErrLocked) {
		return &LockedError{Dir: opt.SnapDir}
	}
	if err == nil && whole < opt.Retain {
		p.tooFew(opt, whole)
	}
	return err
}

// tooFew tells that there are too few whole snapshots to remove anything.
func (p *printer) tooFew(opt PurgeOptions, whole int) {
	if p.JSON {
		p.object(map[string]any{"dir": opt.SnapDir, "refused": "too few whole snapshots", "wholeSnapshots": whole, "retain": opt.Retain})
		return
	}
	p.printf("%s: %s found, %d are to be kept: nothing was removed\n", opt.SnapDir, count(whole, "whole snapshot"), opt.Retain)
}

// dataDirOf takes the folder version-2 for the directory above it.
func dataDirOf(dir string) string {
	if dir = filepath.Clean(dir); filepath.Base(dir) == dataFolder {
		dir = filepath.Dir(dir)
	}
	return filepath.ToSlash(dir)
}

// removalTeller prints what is removed before it is.
type removalTeller struct {
	vfs.FS
	p      *printer
	dryRun bool
}

// Remove implements vfs.FS.
func (t *removalTeller) Remove(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return t.FS.Remove(name)
	}
	ms := info.ModTime().UnixMilli()
	switch {
	case t.p.JSON:
		t.p.object(map[string]any{"file": name, "bytes": info.Size(), "modified": t.p.iso(ms), "removed": !t.dryRun})
	case t.dryRun:
		t.p.printf("Would remove file: %s\t%s\n", t.p.at(ms, layoutFile), name)
	default:
		t.p.printf("Removing file: %s\t%s\n", t.p.at(ms, layoutFile), name)
	}
	t.p.flush()
	return t.FS.Remove(name)
}
