package server_test

import (
	"errors"
	"fmt"
	"path"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server"
	"zabra/zab/zxid"
	"zabra/znode"
)

// recovery is a server that has opened a directory and serves nobody yet, and what is known of its predecessor.
type recovery struct {
	srv *server.Server
	fs  vfs.FS
	cfg *conf.Config
	// history is everything that was ever logged, acked the newest transaction that anybody was told of.
	history [][]byte
	acked   zxid.Zxid
	modelAt func(zxid.Zxid) (*dataModel, error)
}

// check wants to see everything that was acknowledged, in order, and of the rest a number of whole transactions. The state
// must be the one that they lead to. ZooKeeper must find the same in the directory.
func (r *recovery) check() error {
	tree, last := r.srv.Replica().Tree(), r.srv.Stats().Zxid
	if last < r.acked {
		return fmt.Errorf("the state ends at %v, but %v was acknowledged", last, r.acked)
	}
	if int(last) > len(r.history) {
		return fmt.Errorf("the state ends at %v, but only %d transactions were logged", last, len(r.history))
	}
	found, err := readStrictly(r.fs, r.cfg)
	if err != nil {
		return fmt.Errorf("ZooKeeper would not start: %w", err)
	}
	if found.last() != last {
		return fmt.Errorf("ZooKeeper finds everything up to %v, we up to %v", found.last(), last)
	}
	for i, payload := range found.after {
		if z := found.base + zxid.Zxid(i+1); string(payload) != string(r.history[z-1]) {
			return fmt.Errorf("transaction %v is not the one that was logged", z)
		}
	}
	// The snapshots that a purge keeps would do as well.
	for i := 1; i < r.cfg.AutopurgeSnapRetainCount && i <= found.older; i++ {
		older, err := readBehind(r.fs, r.cfg, i)
		if err == nil && older.last() != last {
			err = fmt.Errorf("the log ends at %v instead of %v", older.last(), last)
		}
		if err != nil {
			return fmt.Errorf("with the newest %d snapshots broken: %w", i, err)
		}
	}
	want, err := r.modelAt(last)
	if err == nil {
		err = want.diff(tree, r.cfg.DigestEnabled)
	}
	if orphans := tree.Orphans(); len(orphans) > 0 {
		err = errors.Join(err, fmt.Errorf("ephemerals without a session: %v", orphans))
	}
	return errors.Join(err, tree.Check(), r.checkSnapshot(found))
}

// checkSnapshot compares the newest snapshot with the state at its zxid: it must not show anything later or earlier.
func (r *recovery) checkSnapshot(found *strictRead) error {
	if path.Ext(found.snapshot) != "."+found.base.Hex() {
		return nil // compressed: the server has read it
	}
	f, err := r.fs.Open(path.Join(r.cfg.DataDir, "version-2", found.snapshot))
	if err != nil {
		return err
	}
	defer f.Close()
	tree, _, err := znode.ReadSnapshot(&fileReader{File: f}, znode.Config{ExtendedTypes: true}, jute.FieldBytesMaxDefault, found.base)
	if err != nil {
		return fmt.Errorf("%s: %w", found.snapshot, err)
	}
	want, err := r.modelAt(found.base)
	if err == nil {
		err = want.diff(tree, true)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", found.snapshot, err)
	}
	return nil
}

type fileReader struct {
	vfs.File
	off int64
}

// Read implements io.Reader.
func (r *fileReader) Read(b []byte) (int, error) {
	n, err := r.ReadAt(b, r.off)
	r.off += int64(n)
	return n, err
}
