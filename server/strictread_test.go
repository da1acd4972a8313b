package server_test

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"zabra/conf"
	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// strictRead is what ZooKeeper finds in a data directory.
type strictRead struct {
	// base is the newest snapshot's zxid, snapshot its name.
	base     zxid.Zxid
	snapshot string
	older    int // snapshots
	// after are the transactions behind it, in order and without a gap.
	after [][]byte
	// padded are logs that do not end with their last record.
	padded []numberedFile
}

func (r *strictRead) last() zxid.Zxid { return r.base + zxid.Zxid(len(r.after)) }

// readStrictly reads a directory by the letter of ZooKeeper's rules, with code of its own: the newest snapshot, then the
// logs from the last one that begins at or before the next transaction. What stops ZooKeeper 3.8 or 3.9 is an error.
func readStrictly(fsys vfs.FS, cfg *conf.Config) (*strictRead, error) {
	return readBehind(fsys, cfg, 0)
}

// readBehind does so with an older snapshot, as if the newest ones were broken.
func readBehind(fsys vfs.FS, cfg *conf.Config, broken int) (*strictRead, error) {
	snapDir, logDir := path.Join(cfg.DataDir, "version-2"), path.Join(cfg.LogDir(), "version-2")
	snapshots, err := numberedFiles(fsys, snapDir, "snapshot")
	if err != nil {
		return nil, err
	}
	logs, err := numberedFiles(fsys, logDir, "log")
	if err != nil {
		return nil, err
	}
	if len(snapshots) <= broken {
		return nil, fmt.Errorf("no snapshot found, and %d logs", len(logs))
	}
	newest := snapshots[len(snapshots)-1-broken]
	r := &strictRead{base: newest.zxid, snapshot: newest.name, older: len(snapshots) - 1 - broken}
	first := 0
	for i, log := range logs {
		if log.zxid <= r.base+1 {
			first = i
		}
	}
	for _, log := range logs[min(first, len(logs)):] {
		if err := r.readLog(fsys, logDir, log); err != nil {
			return nil, fmt.Errorf("%s: %w", log.name, err)
		}
	}
	return r, nil
}

func (r *strictRead) readLog(fsys vfs.FS, dir string, log numberedFile) error {
	const headerBytes = 16
	b, err := readWhole(fsys, path.Join(dir, log.name))
	if err != nil {
		return err
	}
	if len(b) < headerBytes {
		return fmt.Errorf("the header is cut short after %d bytes", len(b))
	}
	if string(b[:4]) != "ZKLG" {
		return fmt.Errorf("wrong magic number %x", b[:4])
	}
	payloads, end, err := parseRecords(b[headerBytes:])
	if err != nil {
		return err
	}
	if headerBytes+end != len(b) {
		r.padded = append(r.padded, log)
	}
	for _, p := range payloads {
		switch z := payloadZxid(p); {
		case z <= r.last():
		case z != r.last()+1:
			return fmt.Errorf("transaction %v comes after %v", z, r.last())
		default:
			r.after = append(r.after, p)
		}
	}
	return nil
}

type numberedFile struct {
	name string
	zxid zxid.Zxid
}

// numberedFiles lists the files "<prefix>.<hex>" by number. Anything behind a second dot is ignored, as ZooKeeper does.
func numberedFiles(fsys vfs.FS, dir, prefix string) ([]numberedFile, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return nil, err
	}
	var files []numberedFile
	for _, name := range names {
		parts := strings.Split(name, ".")
		if len(parts) < 2 || parts[0] != prefix {
			continue
		}
		z, err := strconv.ParseInt(parts[1], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, numberedFile{name, zxid.Zxid(z)})
	}
	slices.SortFunc(files, func(a, b numberedFile) int { return cmp.Compare(a.zxid, b.zxid) })
	return files, nil
}

func readWhole(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	return b, nil
}
