package storage

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(s))
	require.NoError(t, err)
	return b
}

// A createSession record as a real server wrote it.
func TestFirstRecordByteForByte(t *testing.T) {
	payload := unhex(t, "0100000ed6d90000 00000000 0000000000000001 000001a22b7b9b18 fffffff6 | 00007530 | 00000002 0000000051c6d660")
	record := unhex(t, "00000000d2200aa3 00000030 | 0100000ed6d90000 00000000 0000000000000001 000001a22b7b9b18 fffffff6 | 00007530 | 00000002 0000000051c6d660 | 42")
	require.Equal(t, record, appendRecord(nil, payload))

	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	appendSync(t, s, zab.Entry{Zxid: 1, Payload: payload})
	file := readFile(t, m, "/data/version-2/log.1")
	require.Len(t, file, 16+64<<10)
	require.Equal(t, unhex(t, "5a4b4c47 00000002 0000000000000000"), file[:16])
	require.Equal(t, record, file[16:16+len(record)])
	require.True(t, allZero(file[16+len(record):]))
	require.NoError(t, s.Close())
	require.Len(t, readFile(t, m, "/data/version-2/log.1"), 16+len(record), "a clean close trims the log")
}

// Every undamaged log of the fixtures, written again by us one commit per transaction as its writer did, is the same
// file, padding included.
func TestRealLogsAreWrittenByteForByte(t *testing.T) {
	files := 0
	for _, name := range fixtures(t) {
		if !isHealthy(name) {
			continue
		}
		logs, err := filepath.Glob(filepath.Join(datadirs, name, versionDir, "log.*"))
		require.NoError(t, err)
		for _, file := range logs {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			entries, end, err := referenceLog(want)
			require.NoError(t, err)
			cfg := testConfig()
			cfg.PreAllocBytes = 64 << 10
			if name == "corrupt-none" {
				cfg.PreAllocBytes = 4 << 10
			}
			rewrite(t, cfg, entries, want, end)
			files++
		}
	}
	require.Greater(t, files, 50)
}

// rewrite logs the entries in a fresh directory and compares the log, while it is open and when it is closed.
func rewrite(t *testing.T, cfg Config, entries []zab.Entry, want []byte, end int) {
	t.Helper()
	m := vfs.NewMem()
	s, err := Open(m, cfg)
	require.NoError(t, err)
	first := entries[0].Zxid
	require.NoError(t, writeSnapshot(s, first-1, 0))
	require.NoError(t, s.Begin(first-1))
	for _, e := range entries {
		appendSync(t, s, e)
	}
	name := "/data/version-2/" + logName(first)
	got := readFile(t, m, name)
	if len(want) == end { // its padding was cut off
		require.NoError(t, s.Close())
		got = readFile(t, m, name)
	}
	require.Equal(t, want, got)
	require.NoError(t, s.Close())
	require.Equal(t, want[:end], readFile(t, m, name))
}

func TestNames(t *testing.T) {
	logs := map[string]zxid.Zxid{"log.1": 1, "log.0": 0, "log.10000001c": 0x10000001c, "log.7fffffffffffffff": 1<<63 - 1}
	for name, want := range logs {
		z, ok := parseLogName(name)
		require.True(t, ok, name)
		require.Equal(t, want, z, name)
		require.Equal(t, name, logName(z))
	}
	for _, name := range []string{"log.", "log.g", "log.01", "log.A", "log.1.bak", "log.1.gz", "log.-1", "log.+1", "log.0x1", "log.1_0",
		"log.8000000000000000", "log.10000000000000000", "log", "Log.1", "xlog.1", "log.1 "} {
		_, ok := parseLogName(name)
		require.False(t, ok, name)
	}
	snapshots := []struct {
		name, compression string
		z                 zxid.Zxid
	}{{"snapshot.0", "", 0}, {"snapshot.ff", "", 0xff}, {"snapshot.ff.gz", "gz", 0xff}, {"snapshot.2000000ab.snappy", "snappy", 0x2000000ab}}
	for _, tt := range snapshots {
		z, compression, ok := parseSnapshotName(tt.name)
		require.True(t, ok, tt.name)
		require.Equal(t, tt.z, z)
		require.Equal(t, tt.compression, compression)
		require.Equal(t, tt.name, snapshotName(z, compression))
	}
	for _, name := range []string{"snapshot.ff.tmp", "snapshot.FF", "snapshot.0ff", "snapshot.", "snapshot.ff.", "snapshot.ff.gz.tmp",
		"snapshot.ff.GZ", "snapshot", "snapshot.-1", "snapshot.tmp", "snapshot.ff.snappy.gz", "log.1"} {
		_, _, ok := parseSnapshotName(name)
		require.False(t, ok, name)
	}
}

func TestFollows(t *testing.T) {
	tests := []struct {
		prev, z zxid.Zxid
		want    bool
	}{
		{0, 1, true}, {0, 2, false}, {1, 1, false}, {5, 4, false}, {0xd, 0xf, false},
		{zxid.Make(1, 9), zxid.Make(1, 10), true}, {zxid.Make(1, 9), zxid.Make(2, 1), true}, {zxid.Make(1, 9), zxid.Make(5, 1), true},
		{zxid.Make(1, 9), zxid.Make(2, 2), false}, {zxid.Make(2, 1), zxid.Make(1, 1), false}, {zxid.Make(2, 0), zxid.Make(2, 1), true},
		{zxid.Make(2, 0), zxid.Make(2, 2), false}, {zxid.Make(3, zxid.CounterMax), zxid.Make(4, 1), true},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, follows(tt.prev, tt.z), "%v after %v", tt.z, tt.prev)
	}
}
