package storage

import (
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

// Every directory that a real server left whole gives the same transactions as the reference reader, from the newest
// snapshot and from each older one.
func TestRealDirectories(t *testing.T) {
	for _, name := range fixtures(t) {
		if !isHealthy(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			m := loadFixture(t, name)
			base, want, err := referenceLoad(t, m, "/data/version-2")
			require.NoError(t, err)
			cfg := testConfig()
			s, err := Open(m, cfg)
			require.NoError(t, err)
			files, err := s.Snapshots()
			require.NoError(t, err)
			require.Equal(t, base, files[0].Zxid)
			names, err := m.List("/data/version-2")
			require.NoError(t, err)
			for _, f := range files {
				if f.Zxid == 0 && name == filepath.FromSlash("reconfig4-39/r4") {
					continue // it joined later: its log begins behind the snapshot that it was sent
				}
				want, err := referenceLogs(t, m, "/data/version-2", referenceNames(names, "log"), f.Zxid)
				require.NoError(t, err)
				got, err := readLog(s, f.Zxid)
				require.NoError(t, err, "after %v", f.Zxid)
				require.Equal(t, want, got)
			}
			last := base
			if len(want) > 0 {
				last = want[len(want)-1].Zxid
			}
			require.NoError(t, s.Begin(last))
			appendSync(t, s, txn(last+1, 7, 0))
			require.NoError(t, s.Close())

			_, after, err := referenceLoad(t, m, "/data/version-2")
			require.NoError(t, err)
			require.Equal(t, append(want, txn(last+1, 7, 0)), after)
		})
	}
}

// The gap of a server that was sent a snapshot is damage to whoever tries an older one.
func TestLogDoesNotReachBackToAnOldSnapshot(t *testing.T) {
	m := loadFixture(t, "reconfig4-39/r4")
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	defer s.Close()
	_, err = readLog(s, 0)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, "/data/version-2/log.100000006", corrupt.File)
	require.Contains(t, corrupt.Why, "transaction 0x100000006 comes after 0x0")
}

// Each damaged directory has its documented outcome: the last transaction, or the refusal.
func TestDamagedDirectories(t *testing.T) {
	tests := []struct {
		name  string
		after zxid.Zxid // the snapshot that loads
		last  zxid.Zxid // 0: refused
		file  string    // that the refusal names
		off   int64
		why   string
	}{
		{name: "corrupt-none", after: 0xe, last: 0x18},
		{name: "corrupt-crc-bad-last-record", after: 0xe, last: 0x17},
		{name: "corrupt-crc-bad-middle-record", after: 0xe, file: "log.f", off: 290, why: "wrong checksum"},
		{name: "corrupt-empty-middle-log", after: 0xe, last: 0x18},
		{name: "corrupt-empty-middle-log", after: 0xc, file: "log.e", why: "no header, and there are later logs"},
		{name: "corrupt-empty-tail-log", after: 0xe, last: 0x18},
		{name: "corrupt-eor-missing-middle-record", after: 0xe, file: "log.f", off: 290, why: "without its end byte, but at offset"},
		{name: "corrupt-header-only-tail-log", after: 0xe, last: 0x18},
		{name: "corrupt-log-bad-magic", after: 0xe, file: "log.f", why: "the magic number is 0x584b4c47"},
		{name: "corrupt-log-gap", after: 0, file: "log.f", why: "transaction 0xf comes after 0xd"},
		{name: "corrupt-no-logs", after: 0xe, last: 0xe},
		{name: "corrupt-no-snapshot", after: 0, last: 0x18},
		{name: "corrupt-short-header-tail-log", after: 0xe, last: 0x18},
		{name: "corrupt-snapshot-bad-checksum", after: 0xc, last: 0x18},
		{name: "corrupt-snapshot-cut", after: 0xc, last: 0x18},
		{name: "corrupt-snapshot-empty", after: 0xc, last: 0x18},
		{name: "corrupt-tail-cut-mid-record", after: 0xe, last: 0x17},
		{name: "corrupt-tail-garbage-length", after: 0xe, last: 0x18},
	}
	seen := map[string]bool{}
	for _, tt := range tests {
		seen[tt.name] = true
		t.Run(tt.name, func(t *testing.T) {
			m := loadFixture(t, tt.name)
			s, err := Open(m, testConfig())
			require.NoError(t, err)
			defer s.Close()
			entries, err := readLog(s, tt.after)
			if tt.last == 0 {
				var corrupt *CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.Equal(t, "/data/version-2/"+tt.file, corrupt.File)
				require.Contains(t, corrupt.Why, tt.why)
				require.Equal(t, tt.off, corrupt.Offset)
				require.NotEmpty(t, corrupt.Do)
				require.Error(t, s.Begin(tt.after), "a damaged log must not be opened for appending")
				return
			}
			require.NoError(t, err)
			require.Equal(t, txnIDs(tt.after+1, tt.last), zxids(entries))
			require.NoError(t, s.Begin(tt.last))
			if tt.name == "corrupt-no-snapshot" {
				require.ErrorIs(t, appendAndSync(s, tt.last+1), ErrNoSnapshot)
				return
			}
			if tt.after != newestSnapshot(t, s) { // ZooKeeper reads the broken one's successor
				require.NoError(t, writeSnapshot(s, tt.last, 10))
			}
			require.NoError(t, appendAndSync(s, tt.last+1))
			require.NoError(t, s.Close())
			_, got, err := referenceLoad(t, m, "/data/version-2")
			require.NoError(t, err, "ZooKeeper would not start on what we left")
			require.Equal(t, tt.last+1, got[len(got)-1].Zxid)
		})
	}
	for _, name := range fixtures(t) {
		require.True(t, isHealthy(name) || seen[name], "no outcome stated for %s", name)
	}
}

func txnIDs(first, last zxid.Zxid) (ids []zxid.Zxid) {
	for z := first; z <= last; z++ {
		ids = append(ids, z)
	}
	return ids
}

func appendAndSync(s *Store, z zxid.Zxid) error {
	if err := s.Append(txns(z, z)); err != nil {
		return err
	}
	return s.Sync()
}

// A log that begins later than the first transaction is taken without a snapshot only on request.
func TestLogWithoutSnapshotMustBeginAtTheFirstTransaction(t *testing.T) {
	m := loadFixture(t, "corrupt-no-snapshot")
	require.NoError(t, m.Remove("/data/version-2/log.1"))
	cfg := testConfig()
	s, err := Open(m, cfg)
	require.NoError(t, err)
	_, err = readLog(s, 0)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Contains(t, corrupt.Why, "no snapshot, and the log begins at 0xe")
	require.NoError(t, s.Close())

	cfg.TrustEmpty = true
	s, err = Open(m, cfg)
	require.NoError(t, err)
	entries, err := readLog(s, 0)
	require.NoError(t, err)
	require.Equal(t, txnIDs(0xe, 0x18), zxids(entries))
	require.NoError(t, s.Close())
}

// The compressed snapshots of a real server, and ours.
func TestRealGzipSnapshotsOpen(t *testing.T) {
	m := loadFixture(t, "standalone-39-gzip")
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	defer s.Close()
	files, err := s.Snapshots()
	require.NoError(t, err)
	require.Len(t, files, 8)
	sizes := map[zxid.Zxid]int{0: 478, 0x21: 2829, 0x36: 23953, 0x3b: 23768, 0x58: 25207, 0x6f: 26263, 0x88: 27511, 0x97: 27595}
	for _, f := range files {
		r, err := s.OpenSnapshot(f)
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Len(t, b, sizes[f.Zxid])
		require.Equal(t, "ZKSN", string(b[:4]))
	}
}

// A snapshot that ZooKeeper left unsynced and that reaches further than the log is durable before anybody relies on it.
func TestUnsyncedSnapshotBeyondTheLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	m := loadFixture(t, "corrupt-no-logs")
	b := readFile(t, m, "/data/version-2/snapshot.e")
	require.NoError(t, m.Remove("/data/version-2/snapshot.e"))
	require.NoError(t, m.SyncDir("/data/version-2"))
	f, err := m.Create("/data/version-2/snapshot.e")
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	require.NoError(t, s.Begin(0xe))
	for range 10 {
		require.Equal(t, b, readFile(t, m.CrashClone(rng), "/data/version-2/snapshot.e"))
	}
	require.NoError(t, s.Close())
}
