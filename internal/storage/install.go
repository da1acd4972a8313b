package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"zabra/zab/zxid"
)

// InstallSnapshot makes the received snapshot of z all there is: every log and every other snapshot is moved to the folder
// "superseded" beside version-2, whether it is older or newer, since it may hold what the leader has discarded. The log
// goes on behind z. It is durable on return.
//
// The state file announces the installation; from the moment on at which that is durable, it is done to its end, by the
// next Open if need be. A crash before leaves everything as it was. The folder keeps what the last installation has
// replaced, until Purge or the next one; a file of that name is never read again.
func (s *Store) InstallSnapshot(z zxid.Zxid) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.Sync(); err != nil {
		return err
	}
	in := &s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.complete || in.note.file.Zxid != z {
		return fmt.Errorf("storage: the snapshot of %v was not received", z)
	}
	if err := s.roll(); err != nil {
		return err
	}
	s.files.Lock()
	defer s.files.Unlock()
	s.generation.Add(1)
	file := in.note.file
	if err := s.install(z, in.note.suffix()); err != nil {
		return s.fail(fmt.Errorf("install %s: %w", file.Name, err))
	}
	in.forget()
	s.installed(z, file.Name)
	return nil
}

// installed makes the snapshot of z the end of the history in memory, too.
func (s *Store) installed(z zxid.Zxid, name string) {
	s.hasSnapshot.Store(true)
	s.barrier.Store(int64(z))
	s.appender.last = z
	s.resetCounters()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.durable = position{File: noFile, Last: z}
	s.mu.floor = z
	s.mu.verified = map[string]bool{name: true}
}

// install announces an installation and carries it out.
func (s *Store) install(z zxid.Zxid, suffix uint32) error {
	_ = s.clearSuperseded() // what stays is replaced, or deleted by a purge
	newest, err := s.newestName()
	if err != nil {
		return err
	}
	rec := &s.state.rec
	rec.install = installIntent{zxid: z, newest: max(newest, s.appender.last), suffix: suffix}
	rec.log, rec.begun = position{File: noFile, Last: z}, fingerprint{}
	rec.own = z
	if err := s.writeState(true); err != nil {
		return err
	}
	return s.finishInstall()
}

// finishInstall does what is left of the installation that the state file announces, and takes the announcement back.
func (s *Store) finishInstall() error {
	rec := &s.state.rec
	file := rec.install.file()
	err := s.fs.Rename(s.snapPath(receivedName), s.snapPath(file.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := s.fs.Stat(s.snapPath(file.Name)); err != nil {
		return err // nothing may be moved away for a snapshot that is not there
	}
	if err := s.fs.SyncDir(s.snapDir); err != nil {
		return err
	}
	if err := s.supersede(s.cfg.SnapDir, snapshotPrefix, file.Name); err != nil {
		return err
	}
	if err := s.supersede(s.cfg.LogDir, logPrefix, ""); err != nil {
		return err
	}
	if err := s.removeInfo(); err != nil {
		return err
	}
	rec.barrier, rec.floor, rec.cutFloor = rec.install.zxid, rec.install.zxid, rec.install.zxid
	rec.install = noInstall
	return s.writeState(true)
}

// supersede moves every file with a prefix out of the version-2 folder in parent, except one. The names are not looked at
// closely: ZooKeeper takes snapshot.ff.tmp and log.5.bak for what they are not. A crash may leave a moved file under both
// names or under none; nobody needs it.
func (s *Store) supersede(parent, prefix, except string) error {
	from, to := path.Join(parent, versionDir), path.Join(parent, supersededDir)
	names, err := s.fs.List(from)
	if err != nil {
		return err
	}
	moved := false
	for i := len(names) - 1; i >= 0; i-- {
		if !strings.HasPrefix(names[i], prefix) || names[i] == except {
			continue
		}
		if !moved {
			if err := s.fs.MkdirAll(to); err != nil {
				return err
			}
			moved = true
		}
		if err := s.moveAway(path.Join(from, names[i]), path.Join(to, names[i])); err != nil {
			return err
		}
	}
	if !moved {
		return nil
	}
	if err := s.fs.SyncDir(to); err != nil {
		return err
	}
	return s.fs.SyncDir(from)
}

// moveAway renames a file, or removes it where version-2 is a file system of its own.
func (s *Store) moveAway(from, to string) error {
	err := s.fs.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		return s.fs.Remove(from)
	}
	return err
}

// clearSuperseded deletes what an earlier installation has replaced.
func (s *Store) clearSuperseded() error {
	for _, dir := range s.supersededDirs() {
		names, err := s.fs.List(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if !strings.HasPrefix(name, snapshotPrefix) && !strings.HasPrefix(name, logPrefix) {
				continue // not ours
			}
			if err := s.removeOld(path.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) supersededDirs() []string {
	dirs := []string{path.Join(s.cfg.SnapDir, supersededDir)}
	if s.cfg.LogDir != s.cfg.SnapDir {
		dirs = append(dirs, path.Join(s.cfg.LogDir, supersededDir))
	}
	return dirs
}

// newestName returns the highest zxid in the name of a log or snapshot.
func (s *Store) newestName() (newest zxid.Zxid, err error) {
	for _, dir := range s.dirs() {
		names, err := s.fs.List(dir)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			if z, _, ok := parseSnapshotName(name); ok {
				newest = max(newest, z)
			}
			if z, ok := parseLogName(name); ok {
				newest = max(newest, z)
			}
		}
	}
	return newest, nil
}

// resumeInstall ends an installation that a crash interrupted. If there are files that were not there when it was announced,
// another server was started on the directory between, found it usable, and went on from what it saw: then that is what
// counts, the installation is off, and the state file is stale. The result tells whether it still holds.
func (s *Store) resumeInstall() (bool, error) {
	intent := s.state.rec.install
	if intent.zxid < 0 {
		return true, nil
	}
	newest, err := s.newestName()
	if err == nil && newest > max(intent.newest, intent.zxid) {
		return false, nil
	}
	if err == nil {
		err = s.rewriteSlot()
	}
	if err == nil {
		err = s.finishInstall()
	}
	if err != nil {
		return false, &DirError{Dir: s.snapDir, Why: "Cannot finish the installation of a snapshot in", Err: err}
	}
	return true, nil
}
