package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func TestOpenDirectories(t *testing.T) {
	t.Run("two directories", func(t *testing.T) {
		m := vfs.NewMem()
		cfg := testConfig()
		cfg.LogDir = "/logs"
		s := newStore(t, m, cfg)
		appendSync(t, s, txns(1, 3)...)
		require.NoError(t, s.SetAcceptedEpoch(1))
		snap, log := s.Sizes()
		require.Equal(t, int64(113), snap)
		require.Equal(t, int64(16+64<<10)+stateFileBytes, log)
		require.NoError(t, s.Close())
		names, err := m.List("/data/version-2")
		require.NoError(t, err)
		require.Equal(t, []string{"acceptedEpoch", "snapshot.0", "zabra.lock"}, names)
		names, err = m.List("/logs/version-2")
		require.NoError(t, err)
		require.Equal(t, []string{"log.1", "zabra.lock", "zabra.state"}, names)

		swapped := cfg
		swapped.SnapDir, swapped.LogDir = cfg.LogDir, cfg.SnapDir
		_, err = Open(m, swapped)
		var dir *DirError
		require.ErrorAs(t, err, &dir)
		require.ErrorContains(t, err, "Log directory has snapshot files.")
		writeFile(t, m, "/data/version-2/log.5", nil)
		_, err = Open(m, cfg)
		require.ErrorContains(t, err, "Snapshot directory has log files.")
		require.NoError(t, m.Remove("/data/version-2/log.5"))
		s, entries, err := reopen(t, m, cfg)
		require.NoError(t, err)
		require.Len(t, entries, 3)
		require.NoError(t, s.Close())
	})
	t.Run("locked", func(t *testing.T) {
		m := vfs.NewMem()
		s := newStore(t, m, testConfig())
		_, err := Open(m, testConfig())
		var dir *DirError
		require.ErrorAs(t, err, &dir)
		require.ErrorIs(t, err, vfs.ErrLocked)
		require.NoError(t, s.Close())
		s, err = Open(m, testConfig())
		require.NoError(t, err)
		require.NoError(t, s.Close())
	})
	t.Run("not created on request", func(t *testing.T) {
		cfg := testConfig()
		cfg.NoAutocreate = true
		_, err := Open(vfs.NewMem(), cfg)
		require.ErrorContains(t, err, "Missing data directory")
	})
	t.Run("not usable", func(t *testing.T) {
		for _, kind := range []vfs.Kind{vfs.KindMkdir, vfs.KindLock, vfs.KindList} {
			fault := vfs.NewFault(vfs.NewMem())
			fault.Inject(vfs.FailKind(kind, 0, errDisk))
			_, err := Open(fault, testConfig())
			require.ErrorIs(t, err, errDisk)
		}
	})
	t.Run("compression", func(t *testing.T) {
		cfg := testConfig()
		cfg.Compression = "zip"
		_, err := Open(vfs.NewMem(), cfg)
		require.ErrorContains(t, err, `"zip"`)
	})
	t.Run("leftovers", func(t *testing.T) {
		m := killed(t, 2, 0)
		for _, name := range []string{logTmpName, snapshotTmpName, stateTmpName, "snapshot.ff.tmp", "currentEpoch.tmp"} {
			writeFile(t, m, "/data/version-2/"+name, []byte("7"))
		}
		s, entries, err := reopen(t, m, testConfig())
		require.NoError(t, err)
		require.Len(t, entries, 2)
		require.NoError(t, s.Close())
		names, err := m.List("/data/version-2")
		require.NoError(t, err)
		require.Equal(t, []string{"currentEpoch.tmp", "log.1", "snapshot.0", "snapshot.ff.tmp", "zabra.lock", "zabra.state"}, names)
	})
}

// The same on a real disk.
func TestRealDisk(t *testing.T) {
	dir := t.TempDir()
	cfg := testConfig()
	cfg.SnapDir, cfg.Go = filepath.Join(dir, "a", "data"), nil
	cfg.PreAllocBytes = 8 << 20
	cfg.Compression = compressionSnappy
	s := newStore(t, vfs.OS{}, cfg)
	_, err := Open(vfs.OS{}, cfg)
	require.ErrorIs(t, err, vfs.ErrLocked)
	for z := zxid.Zxid(1); z <= 100; z++ {
		appendSync(t, s, txn(z, 1, 3000))
	}
	s.SnapshotStarted()
	require.NoError(t, writeSnapshot(s, 100, 6<<20))
	appendSync(t, s, txns(101, 105)...)
	require.NoError(t, s.SetAcceptedEpoch(3))
	s.crash()

	s, entries, err := reopen(t, vfs.OS{}, cfg)
	require.NoError(t, err)
	require.Equal(t, txns(101, 105), entries)
	require.NoError(t, s.Begin(105))
	e, err := s.Epochs()
	require.NoError(t, err)
	require.Equal(t, Epochs{Accepted: 3, HasAccepted: true}, e)
	for _, f := range []zab.SnapshotFile{{Zxid: 0, Name: "snapshot.0.snappy"}, {Zxid: 100, Name: "snapshot.64.snappy"}} {
		r, err := s.OpenSnapshot(f)
		require.NoError(t, err)
		require.NoError(t, checkSnapshot(r, f))
		require.NoError(t, r.Close())
	}
	appendSync(t, s, txns(106, 106)...)
	require.NoError(t, s.Close())
	fi, err := os.Stat(filepath.Join(cfg.SnapDir, versionDir, "log.6a"))
	require.NoError(t, err)
	require.Equal(t, int64(16+36+13), fi.Size())
	_, err = os.Stat(filepath.Join(cfg.SnapDir, versionDir, snapshotTmpName))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestEpochFiles(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	e, err := s.Epochs()
	require.NoError(t, err)
	require.Equal(t, Epochs{}, e, "a standalone server writes none")
	require.NoError(t, s.SetAcceptedEpoch(7))
	require.NoError(t, s.SetCurrentEpoch(6))
	require.Equal(t, "7", string(readFile(t, m, "/data/version-2/acceptedEpoch")), "no newline")
	require.Equal(t, "6", string(readFile(t, m, "/data/version-2/currentEpoch")))
	require.Error(t, s.SetCurrentEpoch(1<<31))
	require.NoError(t, s.Close())

	writeFile(t, m, "/data/version-2/currentEpoch.tmp", []byte("7\n"))
	s, err = Open(m, testConfig())
	require.NoError(t, err)
	e, err = s.Epochs()
	require.NoError(t, err)
	require.Equal(t, Epochs{Accepted: 7, HasAccepted: true, Current: 6, HasCurrent: true, CurrentTmp: 7, HasCurrentTmp: true}, e)
	writeFile(t, m, "/data/version-2/currentEpoch.tmp", nil)
	e, err = s.Epochs()
	require.NoError(t, err)
	require.False(t, e.HasCurrentTmp, "a torn one never counted")
	for _, bad := range []string{"", "x", "-1", "2147483648", "99999999999999999999", "00000000000000000000000000000000000000001"} {
		writeFile(t, m, "/data/version-2/acceptedEpoch", []byte(bad))
		_, err = s.Epochs()
		require.ErrorContains(t, err, "instead of an epoch", "%q", bad)
	}
	require.NoError(t, s.Close())
}

// At whatever operation a change of epoch is cut off, the file holds the old or the new value, and the mark stays good.
func TestEpochChangeIsOneStep(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	s := newStore(t, fault, testConfig())
	appendSync(t, s, txns(1, 5)...)
	require.NoError(t, s.SetAcceptedEpoch(1))
	clones := 0
	fault.Observe(func(op vfs.Op, err error) {
		if !op.Kind.Changes() {
			return
		}
		for range 20 {
			c := m.CrashClone(rng)
			after, err := Open(c, testConfig())
			require.NoError(t, err)
			e, err := after.Epochs()
			require.NoError(t, err)
			require.Contains(t, []zxid.Epoch{1, 2}, e.Accepted)
			require.True(t, after.mark.valid, "after %v", op)
			after.crash()
			clones++
		}
	})
	require.NoError(t, s.SetAcceptedEpoch(2))
	fault.Observe(nil)
	require.GreaterOrEqual(t, clones, 100)
	require.NoError(t, s.Close())
}

func TestInitializeMarker(t *testing.T) {
	for _, dir := range []string{"/data", "/logs"} {
		m := vfs.NewMem()
		cfg := testConfig()
		cfg.LogDir = "/logs"
		s := newStore(t, m, cfg)
		found, err := s.TakeInitializeMarker()
		require.NoError(t, err)
		require.False(t, found)
		writeFile(t, m, dir+"/initialize", nil)
		found, err = s.TakeInitializeMarker()
		require.NoError(t, err)
		require.True(t, found)
		found, err = s.TakeInitializeMarker()
		require.NoError(t, err)
		require.False(t, found)
		require.NoError(t, s.Close())
	}
}

func TestStateSlots(t *testing.T) {
	rec := stateRecord{seq: 9, epochs: epochPair{3, -1}, previous: epochPair{2, -1},
		log: position{File: 0x10000000a, End: 4711, Last: 0x10000000f}, begun: fingerprint{end: 99, crc: 0xdeadbeef},
		barrier: 0x100000001, floor: 0x100000002, cutFloor: 0x100000003, own: 0x100000004,
		install: installIntent{zxid: 0x100000005, newest: 0x100000006, suffix: 2}, version: stateVersion}
	b := rec.encode()
	require.Len(t, b, stateSlotBytes)
	got, ok, err := decodeSlot(b)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, rec, got)
	for i := range b {
		_, ok, err := decodeSlot(b[:i])
		require.False(t, ok)
		require.NoError(t, err)
		b[i] ^= 0x10
		_, ok, err = decodeSlot(b)
		require.False(t, ok, "byte %d", i)
		require.NoError(t, err)
		b[i] ^= 0x10
	}
	newer := append([]byte(nil), b...)
	binary.BigEndian.PutUint32(newer[4:], stateVersion+1)
	m := killed(t, 1, 0)
	patchFile(t, m, "/data/version-2/zabra.state", 0, sealed(newer))
	_, err = Open(m, testConfig())
	require.ErrorIs(t, err, errStateVersion)
}

// sealed gives a slot the right checksum.
func sealed(b []byte) []byte {
	n := stateSlotBytes - 4
	binary.BigEndian.PutUint32(b[n:], crc32c(b[:n]))
	return b
}

// A write of the mark that is not synced never touches the slot that was synced last, and what another process wrote is
// synced before anything is overwritten: so one whole slot is durable at any time, even on a disk that tears a sector.
func TestStateAlwaysHasADurableSlot(t *testing.T) {
	m := killed(t, 5, 0)
	fault := vfs.NewFault(m)
	s, _, err := reopen(t, fault, testConfig())
	require.NoError(t, err)
	durable := map[int64]bool{}
	unsynced := map[int64]bool{0: true, stateSlotStride: true}
	writes := 0
	content := map[int64][]byte{}
	slot := func(off int64) []byte {
		return readFile(t, m, "/data/version-2/zabra.state")[off : off+stateSlotBytes]
	}
	for off := range unsynced {
		content[off] = slot(off)
	}
	fault.Observe(func(op vfs.Op, err error) {
		same := false
		if op.Name == "/data/version-2/zabra.state" && op.Kind == vfs.KindWrite {
			b := slot(op.Off)
			same = bytes.Equal(b, content[op.Off])
			content[op.Off] = b
		}
		switch {
		case op.Name != "/data/version-2/zabra.state":
		case same: // a write of what is there endangers nothing
			unsynced[op.Off] = true
		case op.Kind == vfs.KindWrite:
			writes++
			unsynced[op.Off], durable[op.Off] = true, false
			require.True(t, durable[stateSlotStride-op.Off], "write %d at %d", writes, op.Off)
		case op.Kind == vfs.KindSync || op.Kind == vfs.KindSyncData:
			for off := range unsynced {
				durable[off] = true
			}
			clear(unsynced)
		}
	})
	require.NoError(t, s.Begin(5))
	for z := zxid.Zxid(6); z < 30; z++ {
		appendSync(t, s, txns(z, z)...)
		if z%7 == 0 {
			s.SnapshotStarted()
		}
	}
	require.NoError(t, s.SetAcceptedEpoch(1))
	appendSync(t, s, txns(30, 31)...)
	require.NoError(t, s.Close())
	require.Greater(t, writes, 25)
}

// A torn state file is no state file; a missing one is written again.
func TestStateFileLost(t *testing.T) {
	for _, damage := range []func(m *vfs.Mem){
		func(m *vfs.Mem) { require.NoError(t, m.Remove("/data/version-2/zabra.state")) },
		func(m *vfs.Mem) { patchFile(t, m, "/data/version-2/zabra.state", 0, make([]byte, stateFileBytes)) },
		func(m *vfs.Mem) { writeFile(t, m, "/data/version-2/zabra.state", nil) },
	} {
		m := killed(t, 5, 0)
		damage(m)
		s, entries, err := reopen(t, m, testConfig())
		require.NoError(t, err)
		require.False(t, s.mark.valid)
		require.Equal(t, txnIDs(1, 5), zxids(entries))
		require.NoError(t, s.Begin(5))
		appendSync(t, s, txns(6, 6)...)
		require.NoError(t, s.Close())
		s, err = Open(m, testConfig())
		require.NoError(t, err)
		require.True(t, s.mark.valid)
		require.Equal(t, zxid.Zxid(6), s.mark.Last)
		require.NoError(t, s.Close())
	}
}

// The first log of a directory needs a snapshot.
func TestNoLogWithoutSnapshot(t *testing.T) {
	s, err := Open(vfs.NewMem(), testConfig())
	require.NoError(t, err)
	require.NoError(t, s.Begin(0))
	require.NoError(t, s.Append(txns(1, 1)))
	err = s.Sync()
	require.ErrorIs(t, err, ErrNoSnapshot)
	require.True(t, errors.Is(s.Close(), ErrNoSnapshot))
}
