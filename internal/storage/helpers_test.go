package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errDisk is what injected faults return.
var errDisk = errors.New("disk on fire")

// testConfig is small, and does background work at once so that a run repeats.
func testConfig() Config {
	return Config{SnapDir: "/data", PreAllocBytes: 64 << 10, SnapCount: 100, Rand: rand.New(rand.NewPCG(1, 2)),
		Go: func(f func()) { f() }}
}

// txn returns the entry of an error transaction: header, error code, and filler up to size bytes. tag tells apart
// transactions that carry the same zxid in different lives.
func txn(z zxid.Zxid, tag uint64, size int) zab.Entry {
	b := binary.BigEndian.AppendUint64(nil, tag)            // session
	b = binary.BigEndian.AppendUint32(b, uint32(z))         // cxid
	b = binary.BigEndian.AppendUint64(b, uint64(z))         // zxid
	b = binary.BigEndian.AppendUint64(b, 1_700_000_000_000) // time
	b = binary.BigEndian.AppendUint32(b, 0xffffffff)        // type -1
	b = binary.BigEndian.AppendUint32(b, 0xffffff9b)        // error -101
	for i := 0; len(b) < size; i++ {
		b = append(b, byte(uint64(i)*7+tag+uint64(z)))
	}
	return zab.Entry{Zxid: z, Payload: b}
}

// txns returns small transactions from first to last of one epoch.
func txns(first, last zxid.Zxid) []zab.Entry {
	var entries []zab.Entry
	for z := first; z <= last; z++ {
		entries = append(entries, txn(z, 1, 0))
	}
	return entries
}

func zxids(entries []zab.Entry) []zxid.Zxid {
	var ids []zxid.Zxid
	for _, e := range entries {
		ids = append(ids, e.Zxid)
	}
	return ids
}

// readLog returns copies of all entries after z, and the error other than io.EOF that ended them.
func readLog(s *Store, after zxid.Zxid) ([]zab.Entry, error) {
	r, err := s.OpenLog(after)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var entries []zab.Entry
	for {
		e, err := r.Next()
		if err == io.EOF {
			return entries, nil
		}
		if err != nil {
			return entries, err
		}
		e.Payload = slices.Clone(e.Payload)
		entries = append(entries, e)
	}
}

// writeSnapshot writes a stand-in for a snapshot: zxid, filler, checksum. checkSnapshot verifies it.
func writeSnapshot(s *Store, z zxid.Zxid, size int) error {
	b := binary.BigEndian.AppendUint64(nil, uint64(z))
	for i := range size {
		b = append(b, byte(i*3+int(z)))
	}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return s.WriteSnapshot(z, func(buf []byte, budget int) ([]byte, bool, error) {
		n := min(len(b), budget, 1000)
		buf = append(buf, b[:n]...)
		b = b[n:]
		return buf, len(b) == 0, nil
	})
}

func checkSnapshot(r io.Reader, f zab.SnapshotFile) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	n := len(b) - 4
	if n < 8 || crc32.ChecksumIEEE(b[:n]) != binary.BigEndian.Uint32(b[n:]) {
		return errors.New("bad checksum")
	}
	if z := zxid.Zxid(binary.BigEndian.Uint64(b)); z != f.Zxid {
		return fmt.Errorf("snapshot of %v in the file of %v", z, f.Zxid)
	}
	return nil
}

// snapshotBytes returns the stand-in for a snapshot, compressed.
func snapshotBytes(t testing.TB, z zxid.Zxid, compression string, size int) []byte {
	t.Helper()
	m := vfs.NewMem()
	cfg := testConfig()
	cfg.Compression = compression
	s, err := Open(m, cfg)
	require.NoError(t, err)
	defer s.crash()
	require.NoError(t, writeSnapshot(s, z, size))
	return readFile(t, m, "/data/version-2/"+snapshotName(z, compression))
}

// receive takes a whole snapshot from server 7, in pieces.
func receive(t testing.TB, s *Store, z zxid.Zxid, compression string, size int) zab.SnapshotFile {
	t.Helper()
	b := snapshotBytes(t, z, compression, size)
	f := zab.SnapshotFile{Zxid: z, Name: snapshotName(z, compression)}
	r, err := s.Receive(7, f, int64(len(b)), 0)
	require.NoError(t, err)
	for len(b) > 0 {
		n, err := r.Write(b[:min(len(b), 1000)])
		require.NoError(t, err)
		b = b[n:]
	}
	require.NoError(t, r.Finish(func(r io.Reader) error { return checkSnapshot(r, f) }))
	return f
}

// newStore opens a fresh directory with its first snapshot, ready to append.
func newStore(t testing.TB, fsys vfs.FS, cfg Config) *Store {
	t.Helper()
	s, err := Open(fsys, cfg)
	require.NoError(t, err)
	require.NoError(t, writeSnapshot(s, 0, 100))
	require.NoError(t, s.Begin(0))
	return s
}

func appendSync(t testing.TB, s *Store, entries ...zab.Entry) {
	t.Helper()
	require.NoError(t, s.Append(entries))
	require.NoError(t, s.Sync())
}

// reopen opens the directory again and reads the log after the newest snapshot. The caller closes the store.
func reopen(t testing.TB, fsys vfs.FS, cfg Config) (*Store, []zab.Entry, error) {
	t.Helper()
	s, err := Open(fsys, cfg)
	require.NoError(t, err)
	entries, err := readLog(s, newestSnapshot(t, s))
	return s, entries, err
}

func newestSnapshot(t testing.TB, s *Store) zxid.Zxid {
	t.Helper()
	files, err := s.Snapshots()
	require.NoError(t, err)
	if len(files) == 0 {
		return 0
	}
	return files[0].Zxid
}

func readFile(t testing.TB, fsys vfs.FS, name string) []byte {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	if size > 0 {
		require.NoError(t, err)
	}
	return b
}

// writeFile creates a durable file.
func writeFile(t testing.TB, fsys vfs.FS, name string, b []byte) {
	t.Helper()
	require.NoError(t, fsys.MkdirAll(filepath.Dir(name)))
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	require.NoError(t, fsys.SyncDir(filepath.Dir(name)))
}

// patchFile changes bytes of a file durably.
func patchFile(t testing.TB, fsys vfs.FS, name string, off int64, b []byte) {
	t.Helper()
	f, err := fsys.OpenWrite(name)
	require.NoError(t, err)
	_, err = f.WriteAt(b, off)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

const datadirs = "testdata/datadirs"

// fixtures returns the names below testdata/datadirs of all directories that have a version-2 folder.
func fixtures(t testing.TB) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(datadirs, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == versionDir {
			rel, _ := filepath.Rel(datadirs, filepath.Dir(p))
			names = append(names, rel)
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(names), 25)
	return names
}

// loadFixture puts a copy of a real data directory into memory, all of it durable.
func loadFixture(t testing.TB, name string) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	require.NoError(t, m.MkdirAll("/data/version-2"))
	dir := filepath.Join(datadirs, name, versionDir)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		writeFile(t, m, "/data/version-2/"+e.Name(), b)
	}
	return m
}

func isHealthy(fixture string) bool {
	return !strings.HasPrefix(fixture, "corrupt-") || fixture == "corrupt-none"
}

// acceptAll takes any file for a whole snapshot, once it was read.
func acceptAll(r io.Reader, _ zab.SnapshotFile) error {
	_, err := io.Copy(io.Discard, r)
	return err
}
