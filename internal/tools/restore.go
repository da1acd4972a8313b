package tools

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/server/replica"
	"zabra/zab/zxid"
	"zabra/znode"
)

// RestoreOptions are those of Restore.
type RestoreOptions struct {
	// File is a snapshot or a backup, compressed or not.
	File string
	// SnapDir and LogDir are dataDir and dataLogDir; an empty LogDir is SnapDir.
	SnapDir, LogDir string
	// Epoch is the one that the state begins with; 0 for the one after the snapshot's. Clients that have seen later ones
	// are refused.
	Epoch zxid.Epoch
	// Compression of the file that is written: "", "gz" or "snappy". NoDigest and NoLastZxid leave out what stands at its
	// end. All of it is to be as the server is configured.
	Compression          string
	NoDigest, NoLastZxid bool
}

// NotEmptyError refuses a data directory that holds something.
type NotEmptyError struct{ Dir, Name string }

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("%s is not empty, it holds %s. Nothing was changed. A state is restored into an empty directory only: move this one away first, and keep it until all is well", e.Dir, e.Name)
}

// Restore makes a snapshot the state with which a server starts on an empty data directory, and members of an ensemble each
// on theirs. The snapshot is read in full before anything is written. It gets the zxid of a new epoch and loses its
// sessions, for the reasons that server/replica/restore.go gives; the nodes, and the digest, are those of the snapshot. When
// Restore returns, the state is durable.
func Restore(o Output, opt RestoreOptions) (err error) {
	cfg := storage.Config{SnapDir: dataDirOf(opt.SnapDir), Compression: opt.Compression}
	if opt.LogDir != "" && !sameDataDir(dataDirOf(opt.SnapDir), dataDirOf(opt.LogDir)) {
		cfg.LogDir = dataDirOf(opt.LogDir)
	}
	if err := checkEmpty(cfg); err != nil {
		return err
	}
	from, tree, err := readRestored(opt)
	if err != nil {
		return fmt.Errorf("%s: %w", opt.File, err)
	}
	name, err := place(cfg, opt, tree)
	if err != nil {
		return err
	}
	p := o.buffered()
	defer func() { err = errors.Join(err, p.end()) }()
	if p.JSON {
		p.object(map[string]any{"file": opt.File, "snapshotZxid": from.String(), "zxid": tree.LastZxid().String(), "nodes": tree.NodeCount(),
			"digest": fmt.Sprint(tree.Digest()), "written": name})
		return nil
	}
	p.printf("%s: zxid %v, %s, digest %d\nwritten: %s, to start at zxid %v\n", opt.File, from, count(tree.NodeCount(), "node"), tree.Digest(), name, tree.LastZxid())
	return nil
}

// readRestored checks a snapshot, and then builds the state of it.
func readRestored(opt RestoreOptions) (from zxid.Zxid, tree *znode.Tree, err error) {
	info, from, err := inspectBackup(opt.File)
	if err != nil {
		return 0, nil, err
	}
	z, err := replica.RestoredZxid(from, 0)
	if err != nil {
		return 0, nil, err
	}
	if opt.Epoch > 0 {
		if opt.Epoch < z.Epoch() {
			return 0, nil, fmt.Errorf("its epoch is %d; the epoch to begin with must be a later one, not %d", from.Epoch(), opt.Epoch)
		}
		z = zxid.Make(opt.Epoch, 0)
	}
	r, _, _, err := storage.OpenBackupFile(vfs.OS{}, opt.File)
	if err != nil {
		return 0, nil, err
	}
	tree, err = replica.ReadRestored(r, znode.Config{}, fieldBytesMax, info, z)
	return from, tree, errors.Join(err, r.Close())
}

// inspectBackup reads a snapshot to its end and tells which transaction it ends at: by itself, or else by its name.
func inspectBackup(file string) (info znode.SnapshotInfo, from zxid.Zxid, err error) {
	r, z, named, err := storage.OpenBackupFile(vfs.OS{}, file)
	if err != nil {
		return info, 0, err
	}
	defer r.Close()
	if info, err = znode.InspectSnapshot(r, fieldBytesMax); err != nil {
		return info, 0, err
	}
	var rest [1]byte
	if n, err := r.Read(rest[:]); n > 0 || !errors.Is(err, io.EOF) {
		return info, 0, errors.Join(errors.New("there is something behind its end"), err)
	}
	switch {
	case info.HasLastZxid:
		return info, info.LastZxid, nil
	case named:
		return info, z, nil
	}
	return info, 0, errors.New("it does not say which transaction it ends at, and neither does its name, which would have to be snapshot.<zxid in hex>")
}

// checkEmpty refuses directories that hold anything of a server's. The file with which a server locks one may stay.
func checkEmpty(cfg storage.Config) error {
	for _, dir := range slices.Compact([]string{cfg.SnapDir, cfg.LogDir}) {
		if dir == "" {
			continue
		}
		dir = path.Join(dir, dataFolder)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			kind, _ := storage.KindOf(e.Name())
			if kind != storage.KindForeign && !strings.HasSuffix(e.Name(), ".lock") {
				return &NotEmptyError{Dir: dir, Name: e.Name()}
			}
		}
	}
	return nil
}

// place writes the snapshot of the state.
func place(cfg storage.Config, opt RestoreOptions, tree *znode.Tree) (name string, err error) {
	s, err := storage.Open(vfs.OS{}, cfg)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := checkEmpty(cfg); err != nil { // as it is now that nobody else can change it
		return "", err
	}
	snap, err := tree.OpenSnapshot(znode.SnapshotOptions{Digest: !opt.NoDigest, LastZxid: !opt.NoDigest && !opt.NoLastZxid})
	if err != nil {
		return "", err
	}
	defer snap.Close()
	if err := s.WriteSnapshot(snap.Zxid(), snap.Next); err != nil {
		return "", err
	}
	files, err := s.Snapshots()
	if err != nil {
		return "", err
	}
	return path.Join(cfg.SnapDir, dataFolder, files[0].Name), nil
}
