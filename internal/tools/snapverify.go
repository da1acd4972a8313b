package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
	"zabra/znode"
)

// VerifySnapshots checks snapshots, or all snapshots of data directories, in full: structure, checksums, and the digest at
// their end. ZooKeeper writes snapshots while the tree changes, so that its digest may be that of a later moment; then the
// log beside the snapshot is replayed up to there. logDir is where the logs are, if not beside the snapshots. A
// *DamagedError tells that something is wrong.
func VerifySnapshots(o Output, args []string, logDir string) (err error) {
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	bad := 0
	for _, arg := range args {
		files, err := snapshotFiles(arg)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			fmt.Fprintf(o.Err, "%s: no snapshots\n", arg)
		}
		for _, file := range files {
			j, err := verifySnapshot(file, logDir)
			var gone *NoFileError
			if errors.As(err, &gone) && file != arg {
				continue // the running server has purged it
			}
			if err != nil {
				return err
			}
			if j.State == stateDamaged {
				bad++
			}
			p.snapshotCheck(j)
			p.flush()
		}
	}
	if bad > 0 {
		return &DamagedError{Files: bad}
	}
	return nil
}

func (p *printer) snapshotCheck(j jsonSnapshot) {
	switch {
	case p.JSON:
		p.object(j)
	case j.State == stateDamaged:
		p.printf("%s: DAMAGED: %s. A start passes over it and takes an older one, if the log reaches back to that.\n", j.File, j.Why)
	default:
		p.printf("%s: OK, zxid %s, %s, %s, %s\n", j.File, j.Zxid, count(j.Nodes, "node"), count(j.Sessions, "session"), j.Note)
	}
}

// verifyTree checks what only a tree in memory can tell: its digest.
func (s *snapshot) verifyTree(logDir string) (note string, err error) {
	if !s.info.HasDigest {
		return "no digest to compare", nil
	}
	if s.info.DigestZxid == s.named {
		return s.compareDigest("digest right")
	}
	err = s.replayTo(logDir)
	if err == errNoLog {
		return fmt.Sprintf("written while the tree changed: its digest is that of %v, which the logs at hand do not reach",
			s.info.DigestZxid), nil
	}
	if err != nil {
		return "", err
	}
	return s.compareDigest(fmt.Sprintf("written while the tree changed, digest right after the log was replayed up to %v",
		s.info.DigestZxid))
}

func (s *snapshot) compareDigest(right string) (string, error) {
	if got := s.tree.Digest(); got != s.info.Digest {
		return "", fmt.Errorf("its digest is %d, but that of its content is %d", s.info.Digest, got)
	}
	return right, nil
}

// errNoLog says that the log does not reach from the snapshot to its digest.
var errNoLog = errors.New("the logs do not reach that far")

// replayTo applies the log behind the snapshot up to the transaction of its digest.
func (s *snapshot) replayTo(logDir string) error {
	dir, err := dirOfSnapshot(s.file)
	if err != nil {
		return errNoLog
	}
	st, err := openReadOnly(dir, logDir)
	if err != nil {
		return errNoLog
	}
	defer st.Close() // what it writes at its end stays in memory
	r, err := st.OpenLog(s.named)
	if err != nil {
		return errNoLog
	}
	defer r.Close()
	var (
		h   znode.TxnHeader
		txn znode.Txn
		res znode.Result
	)
	for s.tree.LastZxid() < s.info.DigestZxid {
		e, err := r.Next()
		if err != nil {
			return errNoLog // what is wrong with the log is not the snapshot's fault
		}
		if _, _, err := znode.DecodeTxn(e.Payload, fieldBytesMax, &h, &txn); err != nil {
			return errNoLog
		}
		s.tree.Apply(&h, &txn, &res)
	}
	return nil
}

// snapshotFiles are the snapshots that an argument of VerifySnapshots stands for, oldest first.
func snapshotFiles(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoFileError{File: arg}
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{arg}, nil
	}
	dir := versionFolder(arg)
	names, err := vfs.OS{}.List(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	zxids := map[string]zxid.Zxid{}
	for _, name := range names {
		if kind, z := storage.KindOf(name); kind == storage.KindSnapshot {
			file := filepath.Join(dir, name)
			files, zxids[file] = append(files, file), z
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(zxids[a], zxids[b]) })
	return files, nil
}

func verifySnapshot(file, logDir string) (jsonSnapshot, error) {
	s, err := readSnapshot(vfs.OS{}, file)
	if err != nil {
		if !damagedSnapshot(err) {
			return jsonSnapshot{}, err
		}
		_, z := storage.KindOf(filepath.Base(file))
		return jsonSnapshot{File: file, State: stateDamaged, Zxid: z.String(), Why: strings.TrimPrefix(err.Error(),
			file+" is damaged: ")}, nil
	}
	j := s.summary()
	j.State = stateOK
	if s.info.DanglingACLs > 0 {
		j.Note = count(s.info.DanglingACLs, "ACL") + " missing, which the log may repair; "
	}
	note, err := s.verifyTree(logDir)
	if err != nil {
		j.State, j.Why = stateDamaged, err.Error()
		return j, nil
	}
	j.Note += note
	return j, nil
}

// damagedSnapshot tells damage from a file that cannot be read at all.
func damagedSnapshot(err error) bool {
	var path *fs.PathError
	var missing *NoFileError
	return errors.Is(err, znode.ErrSnapshot) || !errors.As(err, &path) && !errors.As(err, &missing)
}

// dirOfSnapshot is the data directory that a snapshot lies in. A snapshot elsewhere has none.
func dirOfSnapshot(file string) (string, error) {
	file, err := filepath.Abs(file)
	if err == nil && filepath.Base(filepath.Dir(file)) != dataFolder {
		err = errNoLog
	}
	return filepath.Dir(filepath.Dir(file)), err
}

// openReadOnly opens a data directory on an overlay: nothing is changed and no lock is taken.
func openReadOnly(dir, logDir string) (*storage.Store, error) {
	cfg := storage.Config{SnapDir: filepath.ToSlash(dir), LogDir: filepath.ToSlash(logDir), NoAutocreate: true,
		Go: func(f func()) { f() }}
	return storage.Open(newOverlay(vfs.OS{}), cfg)
}
