package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/klauspost/compress/snappy"
	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func TestSnapshotsRoundTrip(t *testing.T) {
	for _, compression := range []string{compressionNone, compressionGzip, compressionSnappy} {
		for _, size := range []int{0, 1, 32<<10 - 8, 32 << 10, 3 << 20} {
			m := vfs.NewMem()
			cfg := testConfig()
			cfg.Compression = compression
			s, err := Open(m, cfg)
			require.NoError(t, err)
			require.NoError(t, writeSnapshot(s, 0xabc, size))
			files, err := s.Snapshots()
			require.NoError(t, err)
			require.Equal(t, []zab.SnapshotFile{{Zxid: 0xabc, Name: snapshotName(0xabc, compression)}}, files)
			r, err := s.OpenSnapshot(files[0])
			require.NoError(t, err)
			require.NoError(t, checkSnapshot(r, files[0]))
			require.NoError(t, r.Close())
			require.NoError(t, s.Close())
		}
	}
}

func TestSnapshotOrder(t *testing.T) {
	m := vfs.NewMem()
	for _, name := range []string{"snapshot.5", "snapshot.10000000a.gz", "snapshot.ff", "snapshot.ff.snappy", "snapshot.ff.tmp", "snapshot.0"} {
		writeFile(t, m, "/data/version-2/"+name, []byte("x"))
	}
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	defer s.crash()
	files, err := s.Snapshots()
	require.NoError(t, err)
	require.Equal(t, []zab.SnapshotFile{{Zxid: 0x10000000a, Name: "snapshot.10000000a.gz"}, {Zxid: 0xff, Name: "snapshot.ff"},
		{Zxid: 0xff, Name: "snapshot.ff.snappy"}, {Zxid: 5, Name: "snapshot.5"}, {Zxid: 0, Name: "snapshot.0"}}, files)
	for _, bad := range []zab.SnapshotFile{{Zxid: 5, Name: "snapshot.ff"}, {Zxid: 5, Name: "../snapshot.5"}, {Zxid: 0xff, Name: "snapshot.ff.tmp"}} {
		_, err := s.OpenSnapshot(bad)
		require.Error(t, err)
	}
}

// The framing as the Java library writes it: one block of known content.
func TestSnappyFraming(t *testing.T) {
	var b bytes.Buffer
	w := &snappyWriter{w: &b}
	_, err := w.Write([]byte("abc"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.Equal(t, unhex(t, "82534e4150505900 00000001 00000001 | 00000005 | 03 08 616263"), b.Bytes())

	b.Reset()
	w = &snappyWriter{w: &b}
	data := bytes.Repeat([]byte("0123456789"), 10000)
	for i := 0; i < len(data); i += 777 {
		_, err := w.Write(data[i:min(i+777, len(data))])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	var blocks []int
	for rest := b.Bytes()[16:]; len(rest) > 0; {
		n := binary.BigEndian.Uint32(rest)
		size, err := snappy.DecodedLen(rest[4 : 4+n])
		require.NoError(t, err)
		blocks = append(blocks, size)
		rest = rest[4+n:]
	}
	require.Equal(t, []int{32768, 32768, 32768, 100000 - 3*32768}, blocks)
}

func TestSnappyRefusesLengths(t *testing.T) {
	head := string(snappyHeader[:])
	huge := snappy.Encode(nil, make([]byte, snappyBlockBytesMax+1))
	length := func(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	for name, stream := range map[string]string{
		"empty": "", "short header": head[:15], "other magic": "\x00" + head[1:], "version 2": head[:15] + "\x02",
		"negative": head + "\xff\xff\xff\xff", "huge": head + "\x7f\xff\xff\xff", "zero": head + "\x00\x00\x00\x00",
		"cut in a length": head + "\x00\x00", "cut in a block": head + length(5) + "\x03\x08ab", "garbage": head + length(4) + "\xff\xff\xff\xff",
		"decoded too large": head + length(len(huge)) + string(huge),
	} {
		r, err := newSnappyReader(strings.NewReader(stream))
		if err == nil {
			_, err = io.ReadAll(r)
		}
		require.Error(t, err, name)
	}
}

// Writing leaves nothing under the final name until all is durable, flushes as it goes, and never lets more than a few
// MiB pile up.
func TestSnapshotIsPaced(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	s := newStore(t, fault, testConfig())
	written, flushed, waited := int64(0), int64(0), int64(0)
	var kinds []vfs.Kind
	fault.Observe(func(op vfs.Op, err error) {
		kinds = append(kinds, op.Kind)
		switch op.Kind {
		case vfs.KindWrite:
			written += op.Len
			require.LessOrEqual(t, op.Len, int64(2*snapshotChunkBytes))
		case vfs.KindFlush:
			flushed = max(flushed, op.Off+op.Len)
			if flushed == written && op.Off < waited+snapshotFlushLagBytes && op.Off+op.Len < written {
				waited = op.Off + op.Len
			}
			waited = max(waited, flushed-snapshotFlushLagBytes)
			require.LessOrEqual(t, written-waited, int64(snapshotFlushLagBytes+2*snapshotChunkBytes))
		}
	})
	require.NoError(t, writeSnapshot(s, 1, 12<<20))
	require.Equal(t, written, flushed)
	require.Equal(t, []vfs.Kind{vfs.KindSync, vfs.KindClose, vfs.KindRename, vfs.KindSyncDir}, kinds[len(kinds)-4:])
	fault.Observe(nil)
	require.NoError(t, s.Close())
}

// What goes wrong in the tree is not the disk's fault: the store goes on, and nothing is left behind.
func TestSnapshotGivenUp(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	errTree := errors.New("tree")
	calls := 0
	err := s.WriteSnapshot(5, func(b []byte, budget int) ([]byte, bool, error) {
		if calls++; calls == 3 {
			return b, false, errTree
		}
		return append(b, make([]byte, budget)...), false, nil
	})
	require.ErrorIs(t, err, errTree)
	names, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.Equal(t, []string{"snapshot.0", "zabra.lock", "zabra.state"}, names)
	appendSync(t, s, txns(1, 1)...)
	require.NoError(t, s.Close())
}

// snapshotsAt makes a store with a snapshot after each of the given transactions, and a log for each stretch between.
func snapshotsAt(t *testing.T, fsys vfs.FS, at ...zxid.Zxid) *Store {
	s := newStore(t, fsys, testConfig())
	last := zxid.Zxid(0)
	for _, z := range at {
		appendSync(t, s, txns(last+1, z)...)
		s.SnapshotStarted()
		require.NoError(t, writeSnapshot(s, z, 100))
		last = z
	}
	appendSync(t, s, txns(last+1, last+2)...)
	return s
}

func contents(t *testing.T, m vfs.FS) (snapshots, logs []zxid.Zxid) {
	names, err := m.List("/data/version-2")
	require.NoError(t, err)
	for _, name := range names {
		if z, _, ok := parseSnapshotName(name); ok {
			snapshots = append(snapshots, z)
		}
	}
	return snapshots, logNames(names)
}

func TestPurge(t *testing.T) {
	tests := []struct {
		name            string
		retain          int
		damage          []zxid.Zxid
		snapshots, logs []zxid.Zxid
	}{
		{name: "three are kept", retain: 3, snapshots: []zxid.Zxid{20, 25, 30}, logs: []zxid.Zxid{16, 21, 26, 31}},
		{name: "never fewer", retain: 1, snapshots: []zxid.Zxid{20, 25, 30}, logs: []zxid.Zxid{16, 21, 26, 31}},
		{name: "five", retain: 5, snapshots: []zxid.Zxid{10, 15, 20, 25, 30}, logs: []zxid.Zxid{6, 11, 16, 21, 26, 31}},
		{name: "all", retain: 50, snapshots: []zxid.Zxid{0, 5, 10, 15, 20, 25, 30}, logs: []zxid.Zxid{1, 6, 11, 16, 21, 26, 31}},
		{name: "damaged ones do not count", retain: 3, damage: []zxid.Zxid{30, 20}, snapshots: []zxid.Zxid{10, 15, 20, 25, 30}, logs: []zxid.Zxid{6, 11, 16, 21, 26, 31}},
		{name: "too many are damaged", retain: 3, damage: []zxid.Zxid{30, 25, 20, 15, 10}, snapshots: []zxid.Zxid{0, 5, 10, 15, 20, 25, 30},
			logs: []zxid.Zxid{1, 6, 11, 16, 21, 26, 31}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := vfs.NewMem()
			s := snapshotsAt(t, m, 5, 10, 15, 20, 25, 30)
			for _, z := range tt.damage {
				patchFile(t, m, "/data/version-2/"+snapshotName(z, ""), 50, []byte{0xff})
			}
			require.NoError(t, s.Purge(tt.retain, checkSnapshot))
			snapshots, logs := contents(t, m)
			require.ElementsMatch(t, tt.snapshots, snapshots)
			require.Equal(t, tt.logs, logs)
			for _, z := range tt.snapshots {
				entries, err := readLog(s, z)
				require.NoError(t, err, "the log reaches back to %v", z)
				require.Equal(t, txnIDs(z+1, 32), zxids(entries))
			}
			require.NoError(t, s.Close())
		})
	}
}

// The verifier reads each snapshot once in the life of a process; a file that was written anew is read again.
func TestPurgeRemembersWhatItVerified(t *testing.T) {
	m := vfs.NewMem()
	s := snapshotsAt(t, m, 5, 10, 15, 20)
	read := 0
	verify := func(r io.Reader, f zab.SnapshotFile) error { read++; return checkSnapshot(r, f) }
	require.NoError(t, s.Purge(3, verify))
	require.Equal(t, 3, read)
	require.NoError(t, s.Purge(3, verify))
	require.Equal(t, 3, read)
	require.NoError(t, writeSnapshot(s, 20, 200))
	require.NoError(t, s.Purge(3, verify))
	require.Equal(t, 4, read)
	require.NoError(t, s.Close())
}

// What a reader may still need is spared until it is closed.
func TestPurgeSparesOpenReaders(t *testing.T) {
	m := vfs.NewMem()
	s := snapshotsAt(t, m, 5, 10, 15, 20, 25, 30)
	r, err := s.OpenLog(7)
	require.NoError(t, err)
	require.NoError(t, s.Purge(3, checkSnapshot))
	snapshots, logs := contents(t, m)
	require.ElementsMatch(t, []zxid.Zxid{20, 25, 30}, snapshots)
	require.Equal(t, []zxid.Zxid{6, 11, 16, 21, 26, 31}, logs)
	for want := zxid.Zxid(8); want <= 32; want++ {
		e, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want, e.Zxid)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, r.Close())
	require.NoError(t, s.Purge(3, checkSnapshot))
	_, logs = contents(t, m)
	require.Equal(t, []zxid.Zxid{16, 21, 26, 31}, logs)
	require.NoError(t, s.Close())
}

// The names of what guards a deletion, and the files, are synced before it.
func TestPurgeSyncsBeforeItDeletes(t *testing.T) {
	m := vfs.NewMem()
	require.NoError(t, snapshotsAt(t, m, 5, 10, 15, 20).Close())
	fault := vfs.NewFault(m)
	s, _, err := reopen(t, fault, testConfig())
	require.NoError(t, err)
	require.NoError(t, s.Begin(22))
	synced, dirs, removed := map[string]bool{}, 0, 0
	fault.Observe(func(op vfs.Op, err error) {
		switch op.Kind {
		case vfs.KindSync:
			synced[op.Name] = true
		case vfs.KindSyncDir:
			dirs++
		case vfs.KindRemove:
			removed++
			require.Len(t, synced, 3)
			require.Positive(t, dirs)
			if strings.Contains(op.Name, "log.") {
				require.GreaterOrEqual(t, dirs, 2, "snapshots go before their logs")
			}
		}
	})
	require.NoError(t, s.Purge(3, checkSnapshot))
	require.Equal(t, 2+1, removed)
	fault.Observe(nil)
	require.NoError(t, s.Close())
}

// A file that cannot be removed does not stop the server; a later purge removes it. A failed sync of a directory is final.
func TestPurgeCannotRemove(t *testing.T) {
	for _, prefix := range []string{snapshotPrefix, logPrefix} {
		fault := vfs.NewFault(vfs.NewMem())
		s := snapshotsAt(t, fault, 5, 10, 15, 20, 25, 30)
		fault.Inject(func(op vfs.Op) error {
			if op.Kind == vfs.KindRemove && strings.HasPrefix(path.Base(op.Name), prefix) {
				return errDisk
			}
			return nil
		})
		require.ErrorIs(t, s.Purge(3, checkSnapshot), errDisk)
		_, logs := contents(t, fault)
		require.Equal(t, []zxid.Zxid{1, 6, 11, 16, 21, 26, 31}, logs)
		appendSync(t, s, txns(33, 33)...)
		fault.Inject(nil)
		require.NoError(t, s.Purge(3, checkSnapshot))
		snapshots, logs := contents(t, fault)
		require.ElementsMatch(t, []zxid.Zxid{20, 25, 30}, snapshots)
		require.Equal(t, []zxid.Zxid{16, 21, 26, 31}, logs)
		require.NoError(t, s.Close())
	}
	fault := vfs.NewFault(vfs.NewMem())
	s := snapshotsAt(t, fault, 5, 10, 15, 20)
	fault.Inject(vfs.FailKind(vfs.KindSyncDir, 0, errDisk))
	err := s.Purge(3, checkSnapshot)
	require.ErrorIs(t, err, errDisk)
	require.Equal(t, err, s.Append(txns(23, 23)))
	require.Equal(t, err, s.Close())
}

func TestTruncate(t *testing.T) {
	tests := []struct {
		name            string
		to              zxid.Zxid
		err             error
		snapshots, logs []zxid.Zxid
	}{
		{name: "nothing to cut", to: 22, snapshots: []zxid.Zxid{0, 10, 20}, logs: []zxid.Zxid{1, 11, 21}},
		{name: "in the last log", to: 21, snapshots: []zxid.Zxid{0, 10, 20}, logs: []zxid.Zxid{1, 11, 21}},
		{name: "at a snapshot", to: 20, snapshots: []zxid.Zxid{0, 10, 20}, logs: []zxid.Zxid{1, 11}},
		{name: "in an older log", to: 14, snapshots: []zxid.Zxid{0, 10}, logs: []zxid.Zxid{1, 11}},
		{name: "at the start of a log", to: 11, snapshots: []zxid.Zxid{0, 10}, logs: []zxid.Zxid{1, 11}},
		{name: "everything", to: 0, snapshots: []zxid.Zxid{0}},
		{name: "later than the end", to: 23, err: ErrNotInLog, snapshots: []zxid.Zxid{0, 10, 20}, logs: []zxid.Zxid{1, 11, 21}},
		{name: "never logged", to: zxid.Make(1, 0), err: ErrNotInLog, snapshots: []zxid.Zxid{0, 10, 20}, logs: []zxid.Zxid{1, 11, 21}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := vfs.NewMem()
			s := snapshotsAt(t, m, 10, 20)
			err := s.Truncate(tt.to)
			require.ErrorIs(t, err, tt.err)
			snapshots, logs := contents(t, m)
			require.ElementsMatch(t, tt.snapshots, snapshots)
			require.Equal(t, tt.logs, logs)
			last := tt.to
			if tt.err != nil {
				last = 22
			}
			entries, err := readLog(s, 0)
			require.NoError(t, err)
			require.Equal(t, txnIDs(1, last), zxids(entries))
			var order *OrderError
			require.ErrorAs(t, s.Append(txns(last+2, last+2)), &order)
			appendSync(t, s, txn(last+1, 55, 0))
			s.crash()

			s, entries, err = reopen(t, m, testConfig())
			require.NoError(t, err)
			newest := newestSnapshot(t, s)
			require.Equal(t, txnIDs(newest+1, last+1), zxids(entries))
			require.Equal(t, txn(last+1, 55, 0), entries[len(entries)-1])
			s.crash()
		})
	}
}

// A cut is all or in part there after a crash, and the rest can be cut again.
func TestTruncateCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	s := snapshotsAt(t, fault, 10, 20)
	var disks []*vfs.Mem
	fault.Observe(func(op vfs.Op, err error) {
		for range 10 {
			disks = append(disks, m.CrashClone(rng))
		}
	})
	require.NoError(t, s.Truncate(7))
	fault.Observe(nil)
	s.crash()
	require.Greater(t, len(disks), 100)
	for _, d := range disks {
		s, entries, err := reopen(t, d, testConfig())
		require.NoError(t, err)
		last := newestSnapshot(t, s) + zxid.Zxid(len(entries))
		require.GreaterOrEqual(t, last, zxid.Zxid(7))
		require.NoError(t, s.Begin(last))
		require.NoError(t, s.Truncate(7))
		entries, err = readLog(s, 0)
		require.NoError(t, err)
		require.Equal(t, txnIDs(1, 7), zxids(entries))
		s.crash()
	}
}

// A base that is only a snapshot, with no log before it, can be cut to.
func TestTruncateToASnapshotWithoutOlderLogs(t *testing.T) {
	m := vfs.NewMem()
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	require.NoError(t, writeSnapshot(s, 50, 10))
	require.NoError(t, s.Begin(50))
	appendSync(t, s, txns(51, 60)...)
	require.ErrorIs(t, s.Truncate(49), ErrNotInLog)
	require.NoError(t, s.Truncate(50))
	appendSync(t, s, txns(51, 52)...)
	entries, err := readLog(s, 50)
	require.NoError(t, err)
	require.Equal(t, txnIDs(51, 52), zxids(entries))
	require.NoError(t, s.Close())
}
