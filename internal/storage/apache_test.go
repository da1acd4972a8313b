package storage

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// This is a reader as strict as ZooKeeper's, written for itself: it shares nothing with the package. It loads what
// ZooKeeper would load from a data directory, or says why ZooKeeper would not start.

// referenceLoad returns the newest snapshot's zxid and the transactions after it.
func referenceLoad(t testing.TB, fsys vfs.FS, dir string) (zxid.Zxid, []zab.Entry, error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, nil, err
	}
	snapshots, logs := referenceNames(names, "snapshot"), referenceNames(names, "log")
	if len(snapshots) == 0 {
		if len(logs) > 0 {
			return 0, nil, fmt.Errorf("no snapshot found, but there are log entries")
		}
		return 0, nil, nil
	}
	base := snapshots[len(snapshots)-1]
	entries, err := referenceLogs(t, fsys, dir, logs, base)
	return base, entries, err
}

// referenceNames returns the zxids of files "<prefix>.<hex>..." in ascending order; anything behind a second dot is
// ignored, as ZooKeeper does.
func referenceNames(names []string, prefix string) []zxid.Zxid {
	var ids []zxid.Zxid
	for _, name := range names {
		parts := strings.Split(name, ".")
		if len(parts) < 2 || parts[0] != prefix {
			continue
		}
		if v, err := strconv.ParseInt(parts[1], 16, 64); err == nil {
			ids = append(ids, zxid.Zxid(v))
		}
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

func referenceLogs(t testing.TB, fsys vfs.FS, dir string, logs []zxid.Zxid, after zxid.Zxid) ([]zab.Entry, error) {
	start := 0
	for i, z := range logs {
		if z < after+1 {
			start = i
		}
	}
	var all []zab.Entry
	highest := after
	for _, z := range logs[start:] {
		name := path.Join(dir, "log."+strconv.FormatInt(int64(z), 16))
		entries, _, err := referenceLog(readFile(t, fsys, name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, e := range entries {
			if e.Zxid <= highest {
				continue
			}
			if int64(e.Zxid)>>32 == int64(highest)>>32 && e.Zxid != highest+1 {
				return nil, fmt.Errorf("committed proposal cached out of order: %v is not the next proposal of %v", e.Zxid, highest)
			}
			highest = e.Zxid
			all = append(all, e)
		}
	}
	return all, nil
}

// referenceLog returns the records of one log and the offset where they end.
func referenceLog(b []byte) ([]zab.Entry, int, error) {
	if len(b) < 16 {
		return nil, 0, fmt.Errorf("EOF in the header")
	}
	if string(b[:4]) != "ZKLG" {
		return nil, 0, fmt.Errorf("invalid magic number")
	}
	var entries []zab.Entry
	off := 16
	for {
		rest := b[off:]
		if len(rest) < 12 {
			return entries, off, nil
		}
		n := int(int32(binary.BigEndian.Uint32(rest[8:])))
		switch {
		case n == 0:
			return entries, off, nil
		case n < 0 || n > 2*0xfffff:
			return nil, 0, fmt.Errorf("unreasonable length = %d", n)
		case len(rest) < 12+n+1 || rest[12+n] != 'B':
			return entries, off, nil
		}
		payload := rest[12 : 12+n]
		if binary.BigEndian.Uint64(rest) != uint64(adler32.Checksum(payload)) {
			return nil, 0, fmt.Errorf("CRC check failed")
		}
		if n < 32 {
			return nil, 0, fmt.Errorf("EOF in the transaction header")
		}
		entries = append(entries, zab.Entry{Zxid: zxid.Zxid(binary.BigEndian.Uint64(payload[12:])), Payload: slices.Clone(payload)})
		off += 12 + n + 1
	}
}
