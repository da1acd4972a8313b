package storage

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func TestKindOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"log.1": KindLog, "log.10000002a": KindLog, "snapshot.0": KindSnapshot, "snapshot.ff.gz": KindSnapshot,
		"snapshot.ff.snappy": KindSnapshot,
		"log.5.bak":          KindForeignData, "log.0A": KindForeignData, "snapshot.ff.tmp": KindForeignData, "snapshot.": KindForeignData,
		"acceptedEpoch": KindEpoch, "currentEpoch": KindEpoch, "zabra.state": KindOwn, "zabra.lock": KindOwn,
		"currentEpoch.tmp": KindLeftover, "zabra.log.tmp": KindLeftover, "zabra.received.info.tmp": KindLeftover,
		"zabra.received": KindLeftover,
		"notes.txt":      KindForeign, "logs": KindForeign,
	} {
		got, _ := KindOf(name)
		require.Equal(t, want, got, name)
	}
	_, z := KindOf("snapshot.1f.gz")
	require.Equal(t, zxid.Zxid(0x1f), z)
}

// A single log is read as the store reads it, records that it would refuse included.
func TestLogFileReadsWhatTheStoreReads(t *testing.T) {
	m := loadFixture(t, "corrupt-crc-bad-middle-record")
	l, err := OpenLogFile(m, "/data/version-2/log.f")
	require.NoError(t, err)
	defer l.Close()
	version, dbid := l.Header()
	require.Equal(t, int32(2), version)
	require.Zero(t, dbid)
	for z := zxid.Zxid(0xf); z <= 0x18; z++ {
		rec, err := l.Next()
		require.NoError(t, err)
		require.Equal(t, z, rec.Zxid)
		require.Equal(t, z != 0x12, rec.ChecksumOK)
		require.True(t, rec.EndOK)
	}
	_, err = l.Next()
	require.ErrorIs(t, err, io.EOF)
	require.Empty(t, l.EndReason())

	m = loadFixture(t, "corrupt-tail-garbage-length")
	l, err = OpenLogFile(m, "/data/version-2/log.f")
	require.NoError(t, err)
	defer l.Close()
	for err == nil {
		_, err = l.Next()
	}
	require.ErrorIs(t, err, io.EOF)
	require.Contains(t, l.EndReason(), "unreasonable length 2147483647")
	require.Equal(t, int64(2147483647), l.EndLength())
}

// What the state file of a directory says is told without touching it.
func TestReadState(t *testing.T) {
	m := loadFixture(t, "standalone-39")
	cfg := testConfig()
	st, err := ReadState(m, cfg)
	require.NoError(t, err)
	require.Equal(t, State{}, st)
	s, err := Open(m, cfg)
	require.NoError(t, err)
	require.NoError(t, s.Begin(0x9b))
	appendSync(t, s, txn(0x9c, 7, 0))
	require.NoError(t, s.Close())
	st, err = ReadState(m, cfg)
	require.NoError(t, err)
	require.True(t, st.Present && st.Holds)
	require.Equal(t, zxid.Zxid(0x9c), st.DurableLog)
	require.Equal(t, zxid.Zxid(0x9c), st.DurableLast)
	require.False(t, st.Installing)

	f, err := m.Create("/data/version-2/currentEpoch") // another server was here
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("7"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	st, err = ReadState(m, cfg)
	require.NoError(t, err)
	require.True(t, st.Present)
	require.False(t, st.Holds)
}

func TestPurgeOffline(t *testing.T) {
	m := loadFixture(t, "standalone-39")
	cfg := testConfig()
	s, err := Open(m, cfg)
	require.NoError(t, err)
	var bad *DirError
	require.ErrorAs(t, PurgeOffline(m, cfg, 3, acceptAll), &bad)
	require.ErrorIs(t, bad, vfs.ErrLocked)
	require.NoError(t, s.Close())
	require.NoError(t, PurgeOffline(m, cfg, 3, acceptAll))
	names, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.Contains(t, names, "snapshot.7a")
	require.NotContains(t, names, "snapshot.53")
	require.Contains(t, names, "log.55")
	require.NotContains(t, names, "log.3c")

	require.ErrorAs(t, PurgeOffline(m, Config{SnapDir: "/nowhere"}, 3, acceptAll), &bad)
	_, err = m.Stat("/nowhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Old snapshots do not count, and nothing is purged while an installation waits to be finished.
func TestPurgeOfflineKnowsInstallations(t *testing.T) {
	m := loadFixture(t, "standalone-39")
	cfg := testConfig()
	s, err := Open(m, cfg)
	require.NoError(t, err)
	require.NoError(t, s.Begin(0x9b))
	s.state.rec.barrier = 0x94
	require.NoError(t, s.writeState(true))
	require.NoError(t, s.Close())
	before, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.NoError(t, PurgeOffline(m, cfg, 3, acceptAll))
	after, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.Equal(t, before, after, "only two snapshots count")

	s, err = Open(m, cfg)
	require.NoError(t, err)
	require.NoError(t, s.Begin(0x9b))
	s.state.rec.install = installIntent{zxid: 0x97, newest: 0x9b}
	require.NoError(t, s.writeState(true))
	s.unlock()
	var bad *DirError
	require.ErrorAs(t, PurgeOffline(m, cfg, 3, acceptAll), &bad)
	require.Contains(t, bad.Why, "start the server once")
}

// Reading the snapshots takes its time. A server may start and stop meanwhile; one that stays ends the purge.
func TestPurgeOfflineLocksOnlyWhileItRemoves(t *testing.T) {
	m := loadFixture(t, "standalone-39")
	cfg := testConfig()
	s, err := Open(m, cfg)
	require.NoError(t, err)
	require.NoError(t, s.Close()) // there is a lock file now
	before, err := m.List("/data/version-2")
	require.NoError(t, err)
	starts := 0
	err = PurgeOffline(m, cfg, 3, func(r io.Reader, f zab.SnapshotFile) error {
		if s, err = Open(m, cfg); err != nil {
			return err
		}
		starts++
		if starts == 3 {
			return nil
		}
		return s.Close()
	})
	require.Equal(t, 3, starts)
	require.ErrorIs(t, err, vfs.ErrLocked)
	after, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.Equal(t, before, after)

	require.NoError(t, s.Close())
	require.NoError(t, PurgeOffline(m, cfg, 3, func(io.Reader, zab.SnapshotFile) error {
		s, err := Open(m, cfg)
		if err != nil {
			return err
		}
		return s.Close()
	}))
	after, err = m.List("/data/version-2")
	require.NoError(t, err)
	require.NotContains(t, after, "snapshot.53")
}

// What was read must still be there when older snapshots go, and what came later does not count.
func TestPurgeOfflineLooksAgain(t *testing.T) {
	put := func(m *vfs.Mem, name, content string) error {
		f, err := m.Create("/data/version-2/" + name)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte(content), 0)
		return errors.Join(err, f.Close())
	}
	tests := []struct {
		name   string
		change func(m *vfs.Mem) error
		why    string
	}{
		{"replaced", func(m *vfs.Mem) error { return put(m, "snapshot.97", "short") }, "snapshot.97 changed"},
		{"removed", func(m *vfs.Mem) error { return m.Remove("/data/version-2/snapshot.97") }, "snapshot.97 changed"},
		{"a new one", func(m *vfs.Mem) error { return put(m, "snapshot.99", "ZKSN") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := loadFixture(t, "standalone-39")
			read := 0
			err := PurgeOffline(m, testConfig(), 3, func(io.Reader, zab.SnapshotFile) error {
				if read++; read < 3 {
					return nil
				}
				return tt.change(m)
			})
			names, listErr := m.List("/data/version-2")
			require.NoError(t, listErr)
			if tt.why != "" {
				require.ErrorContains(t, err, tt.why)
				require.Contains(t, names, "snapshot.53")
				return
			}
			require.NoError(t, err)
			require.NotContains(t, names, "snapshot.53")
			require.Contains(t, names, "snapshot.7a", "the new one does not take the place of one that was read")
		})
	}
}

// Where no server of ours was there is no lock file, and none is left for the wrong user.
func TestPurgeOfflineLeavesNoLockFile(t *testing.T) {
	m := loadFixture(t, "standalone-39")
	require.NoError(t, PurgeOffline(m, testConfig(), 3, acceptAll))
	names, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.NotContains(t, names, "snapshot.53")
	require.NotContains(t, names, lockName)
}

// Behind the place where the reading ends there is padding, a torn end, or records that were missed.
func TestLogFileRest(t *testing.T) {
	const file = "/data/version-2/log.f"
	lengthOf := func(record int, length uint32) func(*testing.T, *vfs.Mem) {
		return func(t *testing.T, m *vfs.Mem) {
			l, err := OpenLogFile(m, file)
			require.NoError(t, err)
			defer l.Close()
			var rec LogRecord
			for range record {
				rec, err = l.Next()
				require.NoError(t, err)
			}
			f, err := m.OpenWrite(file)
			require.NoError(t, err)
			_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, length), rec.Offset+8)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	tests := []struct {
		name, fixture string
		damage        func(*testing.T, *vfs.Mem)
		torn, valid   bool
		why           string
	}{
		{name: "padding", fixture: "corrupt-none"},
		{name: "torn end", fixture: "corrupt-tail-garbage-length", torn: true, why: "unreasonable length"},
		{name: "length too large", fixture: "corrupt-none", damage: lengthOf(3, 1<<30), torn: true, valid: true, why: "unreasonable length"},
		{name: "length zero", fixture: "corrupt-none", damage: lengthOf(3, 0), torn: true, valid: true, why: "there is no record"},
		{name: "length of the last record", fixture: "corrupt-none", damage: lengthOf(10, 1<<30), torn: true, why: "unreasonable length"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := loadFixture(t, tt.fixture)
			if tt.damage != nil {
				tt.damage(t, m)
			}
			l, err := OpenLogFile(m, file)
			require.NoError(t, err)
			defer l.Close()
			for err == nil {
				_, err = l.Next()
			}
			require.ErrorIs(t, err, io.EOF)
			rest, err := l.Rest()
			require.NoError(t, err)
			require.Equal(t, tt.torn, rest.Torn > 0)
			require.Equal(t, tt.valid, rest.Next > rest.Offset)
			require.Contains(t, rest.Why, tt.why)
			require.Equal(t, tt.torn, rest.Why != "")
		})
	}
}
