package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// FuzzLogRead gives the reader any two files for logs, with and without the mark that the first is ours. What comes out
// is a contiguous sequence, and io.EOF or a typed error; never a panic. After io.EOF Begin mends the directory so that
// the strict reader sees the same sequence.
func FuzzLogRead(f *testing.F) {
	real, err := os.ReadFile(filepath.Join(datadirs, "corrupt-none", versionDir, "log.f"))
	require.NoError(f, err)
	log := append([]byte(nil), logHeader[:]...)
	for z := zxid.Zxid(1); z < 5; z++ {
		log = appendRecord(log, txn(z, 1, 0).Payload)
	}
	next := appendRecord(append([]byte(nil), logHeader[:]...), txn(5, 1, 0).Payload)
	f.Add(log, next, uint16(0))
	f.Add(append(log, make([]byte, 100)...), next, uint16(30))
	f.Add(log[:len(log)-3], next, uint16(0))
	f.Add(real, []byte{}, uint16(9999))
	f.Add([]byte{}, next, uint16(1))
	f.Fuzz(func(t *testing.T, first, second []byte, mark uint16) {
		m := vfs.NewMem()
		writeFile(t, m, "/data/version-2/snapshot.0", []byte("x"))
		writeFile(t, m, log1, first)
		if len(second) > 0 {
			writeFile(t, m, "/data/version-2/log.5", second)
		}
		if mark > 0 {
			rec := stateRecord{seq: 1, epochs: epochPair{-1, -1}, previous: epochPair{-1, -1},
				log: position{File: 1, End: int64(mark) - 1}, begun: fingerprint{end: 65, crc: crc32c(first[min(16, len(first)):min(65, len(first))])}}
			writeFile(t, m, "/data/version-2/zabra.state", rec.encode())
		}
		s, err := Open(m, testConfig())
		require.NoError(t, err)
		defer s.crash()
		s.batchMax = 200
		r, err := s.OpenLog(0)
		require.NoError(t, err)
		defer r.Close()
		last := zxid.Zxid(0)
		for {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				var corrupt *CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.Error(t, s.Begin(last))
				return
			}
			require.True(t, follows(last, e.Zxid))
			require.Equal(t, e.Zxid, payloadZxid(e.Payload))
			last = e.Zxid
		}
		require.NoError(t, s.Begin(last))
		_, entries, err := referenceLoad(t, m, "/data/version-2")
		if err != nil {
			// The one thing that is left as it was: the torn end of a log that its writer went on from.
			require.Contains(t, err.Error(), "log.1")
			return
		}
		if len(entries) > 0 {
			require.LessOrEqual(t, last, entries[len(entries)-1].Zxid)
		}
	})
}

func FuzzSnapshotName(f *testing.F) {
	for _, name := range []string{"snapshot.0", "snapshot.ff.gz", "snapshot.ff.snappy", "snapshot.ff.tmp", "log.1", "log.10000001c"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if z, compression, ok := parseSnapshotName(name); ok {
			require.Equal(t, name, snapshotName(z, compression))
			require.GreaterOrEqual(t, z, zxid.Zxid(0))
		}
		if z, ok := parseLogName(name); ok {
			require.Equal(t, name, logName(z))
			require.GreaterOrEqual(t, z, zxid.Zxid(0))
		}
	})
}

// FuzzSnappy: any stream decodes or gives an error, within bounds; and any data comes back.
func FuzzSnappy(f *testing.F) {
	f.Add([]byte("hello"))
	f.Add(append(bytes.Clone(snappyHeader[:]), 0, 0, 0, 5, 3, 8, 'a', 'b', 'c'))
	f.Add(append(bytes.Clone(snappyHeader[:]), 0x7f, 0xff, 0xff, 0xff))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, stream := range [][]byte{data, append(bytes.Clone(snappyHeader[:]), data...)} {
			if r, err := newSnappyReader(bytes.NewReader(stream)); err == nil {
				n, _ := io.Copy(io.Discard, r)
				require.LessOrEqual(t, n, int64(len(stream))*snappyBlockBytesMax)
				require.LessOrEqual(t, cap(r.buf), 2*snappyBlockBytesMax)
			}
		}
		var b bytes.Buffer
		w := &snappyWriter{w: &b}
		_, err := w.Write(data)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		r, err := newSnappyReader(&b)
		require.NoError(t, err)
		got, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, got))
	})
}

// FuzzState: any state file opens or is refused with a reason.
func FuzzState(f *testing.F) {
	rec := stateRecord{seq: 3, epochs: epochPair{-1, -1}}
	f.Add(rec.encode(), true)
	f.Add([]byte{}, false)
	rec.install, rec.barrier = installIntent{zxid: 7, newest: 9, suffix: 1}, 5
	f.Add(rec.encode(), true)
	rec.install = noInstall
	f.Add(rec.encode(), true)
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		if seal && len(b) >= stateSlotBytes {
			b = bytes.Clone(b)
			binary.BigEndian.PutUint32(b, stateMagic)
			sealed(b)
		}
		m := vfs.NewMem()
		writeFile(t, m, "/data/version-2/snapshot.0", []byte("x"))
		writeFile(t, m, "/data/version-2/zabra.state", b)
		s, err := Open(m, testConfig())
		if err != nil {
			// A snapshot that is announced is not there.
			require.True(t, errors.Is(err, errStateVersion) || errors.Is(err, fs.ErrNotExist), "%v", err)
			return
		}
		defer s.crash()
		if _, err := readLog(s, 0); err == nil {
			require.NoError(t, s.Begin(0))
			require.NoError(t, s.Append(txns(1, 2)))
			if err := s.Sync(); err != nil { // a barrier behind everything that is there
				require.ErrorIs(t, err, ErrNoSnapshot)
				return
			}
			require.LessOrEqual(t, len(s.History(zab.HistoryRequest{}, 1<<20).Entries), 2)
		}
	})
}
