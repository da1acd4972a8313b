package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// standIn gives the stand-in for the snapshot of z, in pieces.
func standIn(z zxid.Zxid, size int) func([]byte, int) ([]byte, bool, error) {
	b := append(binary.BigEndian.AppendUint64(nil, uint64(z)), bytes.Repeat([]byte("filler "), size/7)...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return func(buf []byte, budget int) ([]byte, bool, error) {
		n := min(len(b), budget, 1000)
		buf = append(buf, b[:n]...)
		b = b[n:]
		return buf, len(b) == 0, nil
	}
}

// A scratch file holds what was written or received and has no name; whatever its compression, it is read without.
func TestScratch(t *testing.T) {
	for _, compression := range []string{compressionNone, compressionGzip, compressionSnappy} {
		m := vfs.NewMem()
		s := newStore(t, m, testConfig())
		before, err := m.List("/data/version-2")
		require.NoError(t, err)
		out, err := s.WriteScratch(ScratchOut, compression, standIn(7, 50_000))
		require.NoError(t, err)
		sent, err := io.ReadAll(io.NewSectionReader(out, 0, out.Size()))
		require.NoError(t, err)
		require.Len(t, sent, int(out.Size()))
		in, err := s.ReceiveScratch(ScratchIn, bytes.NewReader(sent), int64(len(sent)))
		require.NoError(t, err)
		require.Equal(t, out.Size(), in.Size())
		for range 2 { // as often as one likes
			r, err := in.Open()
			require.NoError(t, err)
			require.NoError(t, checkSnapshot(r, zab.SnapshotFile{Zxid: 7}))
		}
		names, err := m.List("/data/version-2")
		require.NoError(t, err)
		require.Equal(t, before, names)
		require.NoError(t, in.Close())
		require.NoError(t, out.Close())
		require.NoError(t, s.Close())
	}
}

func TestScratchRefuses(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	before, err := m.List("/data/version-2")
	require.NoError(t, err)
	_, err = s.ReceiveScratch(ScratchIn, strings.NewReader("12345"), 4)
	require.EqualError(t, err, "more than 4 bytes")
	boom := errors.New("the client is gone")
	_, err = s.ReceiveScratch(ScratchIn, io.MultiReader(strings.NewReader("1"), readerFunc(func([]byte) (int, error) { return 0, boom })), 4)
	require.ErrorIs(t, err, boom)
	_, err = s.WriteScratch(ScratchOut, "", func(b []byte, _ int) ([]byte, bool, error) { return b, false, boom })
	require.ErrorIs(t, err, boom)
	for _, head := range []string{"", "Z", "\x1f\x8b", "\x1f\x8b\x08 no gzip at all", "\x82SNAPPY\x00", "\x82SNAPPY\x00\x00\x00\x00\x09\x00\x00\x00\x09"} {
		sc, err := s.ReceiveScratch(ScratchIn, strings.NewReader(head), 100)
		require.NoError(t, err)
		r, err := sc.Open()
		if len(head) < 2 {
			require.NoError(t, err)
			require.Error(t, checkSnapshot(r, zab.SnapshotFile{}))
		} else {
			require.Error(t, err, "%q", head)
		}
		require.NoError(t, sc.Close())
	}
	names, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.Equal(t, before, names)
	require.NoError(t, s.Close())
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A disk that fails while a scratch file or a staged snapshot is written costs that and nothing else.
func TestScratchFailsAlone(t *testing.T) {
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	s := newStore(t, fault, testConfig())
	appendSync(t, s, txns(1, 3)...)
	failed := 0
	for at := 0; ; at++ {
		n := 0
		fault.Inject(func(op vfs.Op) error {
			if n++; n == at+1 && op.Kind.Changes() {
				return errDisk
			}
			return nil
		})
		sc, err := s.WriteScratch(ScratchOut, "", standIn(7, 3000))
		if err == nil {
			require.NoError(t, sc.Close())
			err = s.StageSnapshot(7, standIn(7, 3000))
		}
		fault.Inject(nil)
		require.NoError(t, s.err())
		if err == nil {
			require.NoError(t, s.dropIncoming())
			if n <= at {
				break
			}
			continue
		}
		failed++
		require.ErrorIs(t, err, errDisk)
		require.Error(t, s.InstallSnapshot(7), "nothing is there")
		appendSync(t, s, txn(zxid.Zxid(3+failed), 1, 0))
	}
	require.Greater(t, failed, 5)
	require.NoError(t, s.Close())
}

// From a crash at any operation of staging and installing a snapshot beyond all that is there, the directory starts as it
// was before or as it is afterwards, and has no more files than it should.
func TestStageAndInstallCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	cfg := testConfig()
	s := newStore(t, fault, cfg)
	appendSync(t, s, txns(1, 30)...)
	s.SnapshotStarted()
	require.NoError(t, writeSnapshot(s, 30, 50))
	appendSync(t, s, txns(31, 40)...)
	z := zxid.Make(1, 0)
	var disks []*vfs.Mem
	fault.Observe(func(op vfs.Op, err error) {
		if op.Kind.Changes() {
			for range 6 {
				disks = append(disks, m.CrashClone(rng))
			}
			disks = append(disks, m.Clone())
		}
	})
	sc, err := s.ReceiveScratch(ScratchIn, strings.NewReader(strings.Repeat("x", 9000)), 10_000)
	require.NoError(t, err)
	require.NoError(t, sc.Close())
	require.NoError(t, s.StageSnapshot(z, standIn(z, 5000)))
	staged := len(disks)
	require.NoError(t, install(s, z))
	installed := len(disks)
	appendSync(t, s, txn(z+1, 9, 0))
	fault.Observe(nil)
	s.crash()
	before, after := 0, 0
	for i, d := range disks {
		for range 2 { // the start may crash, too
			d = crashInOpen(t, d, rng)
		}
		s, entries, err := reopen(t, d, cfg)
		require.NoError(t, err)
		_, err = d.Stat("/data/version-2/" + receivedName)
		require.Error(t, err)
		if newestSnapshot(t, s) == 30 {
			before++
			require.Less(t, i, installed)
			require.Equal(t, txns(31, 40), entries)
			require.NoError(t, s.Begin(40))
		} else {
			after++
			require.GreaterOrEqual(t, i, staged)
			files, err := s.Snapshots()
			require.NoError(t, err)
			require.Equal(t, []zab.SnapshotFile{{Zxid: z, Name: snapshotName(z, "")}}, files)
			require.NoError(t, s.Begin(z+zxid.Zxid(len(entries))))
		}
		require.NoError(t, s.Close())
	}
	require.NotZero(t, before)
	require.NotZero(t, after)
}

// A directory that is in use for a moment is waited for, one that stays in use is not.
func TestOpenWaitsForTheLock(t *testing.T) {
	m := vfs.NewMem()
	cfg := testConfig()
	newStore(t, m, cfg).crash()
	lock, err := m.Lock("/data/version-2/" + lockName)
	require.NoError(t, err)
	_, err = Open(m, cfg)
	require.ErrorIs(t, err, vfs.ErrLocked)
	cfg.LockWait = 2 * lockRetryPause
	_, err = Open(m, cfg)
	require.ErrorIs(t, err, vfs.ErrLocked)
	var dir *DirError
	require.ErrorAs(t, err, &dir)

	cfg.LockWait = time.Minute
	looked := make(chan struct{})
	fault := vfs.NewFault(m)
	once := false
	fault.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindLock && !once {
			once = true
			close(looked)
		}
		return nil
	})
	opened := make(chan error, 1)
	var s *Store
	go func() {
		var err error
		s, err = Open(fault, cfg)
		opened <- err
	}()
	<-looked
	require.NoError(t, lock.Close())
	require.NoError(t, <-opened)
	require.NoError(t, s.Close())
}
