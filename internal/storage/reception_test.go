package storage

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func verifyAs(f zab.SnapshotFile) func(io.Reader) error {
	return func(r io.Reader) error { return checkSnapshot(r, f) }
}

func write(t testing.TB, r *Reception, b []byte) {
	t.Helper()
	n, err := r.Write(b)
	require.NoError(t, err)
	require.Equal(t, len(b), n)
}

func TestReceiveRefuses(t *testing.T) {
	s := newStore(t, vfs.NewMem(), testConfig())
	defer s.Close()
	f := zab.SnapshotFile{Zxid: 5, Name: "snapshot.5"}
	r, err := s.Receive(7, f, 100, 0)
	require.NoError(t, err)
	write(t, r, make([]byte, 60))
	r.Abort()
	require.Equal(t, zab.SnapshotProgress{From: 7, File: f, Offset: 60}, s.Resume())
	tests := []struct {
		name         string
		from         zxid.ServerID
		file         zab.SnapshotFile
		size, offset int64
	}{
		{"other name", 7, zab.SnapshotFile{Zxid: 5, Name: "snapshot.6"}, 100, 0},
		{"path", 7, zab.SnapshotFile{Zxid: 5, Name: "../snapshot.5"}, 100, 0},
		{"no snapshot", 7, zab.SnapshotFile{Zxid: 5, Name: "log.5"}, 100, 0},
		{"no size", 7, f, 0, 0},
		{"negative size", 7, f, -1, 0},
		{"absurd size", 7, f, receivedBytesMax + 1, 0},
		{"negative offset", 7, f, 100, -1},
		{"behind the end", 7, f, 100, 101},
		{"further than it got", 7, f, 100, 61},
		{"from another server", 8, f, 100, 60},
		{"of another file", 7, zab.SnapshotFile{Zxid: 6, Name: "snapshot.6"}, 100, 60},
		{"of another form", 7, zab.SnapshotFile{Zxid: 5, Name: "snapshot.5.gz"}, 100, 60},
		{"of another size", 7, f, 99, 60},
	}
	for _, tt := range tests {
		_, err := s.Receive(tt.from, tt.file, tt.size, tt.offset)
		require.Error(t, err, tt.name)
		require.Equal(t, int64(60), s.Resume().Offset, tt.name)
	}
	r, err = s.Receive(7, f, 100, 50)
	require.NoError(t, err)
	require.Equal(t, int64(50), r.Offset())
	require.Error(t, r.Finish(verifyAs(f)), "not all of it is there")
	_, err = r.Write(make([]byte, 51))
	require.Error(t, err)
	require.Equal(t, int64(50), r.Offset())
	write(t, r, make([]byte, 50))
	require.ErrorContains(t, r.Finish(verifyAs(f)), "damaged")
	require.Equal(t, zab.SnapshotProgress{}, s.Resume(), "what is damaged is not gone on with")
	_, err = r.Write(nil)
	require.ErrorIs(t, err, errReceptionEnded)
	require.Error(t, install(s, 5))
}

// What was received serves after a broken connection and after a restart, from the same server. What comes out is the file.
func TestReceptionResumes(t *testing.T) {
	for _, compression := range suffixes {
		for _, end := range []string{"abort", "take over", "close", "kill"} {
			t.Run(compression+end, func(t *testing.T) {
				m := vfs.NewMem()
				cfg := testConfig()
				s := newStore(t, m, cfg)
				f := zab.SnapshotFile{Zxid: 0x99, Name: snapshotName(0x99, compression)}
				b := snapshotBytes(t, 0x99, compression, 200_000)
				size := int64(len(b))
				r, err := s.Receive(7, f, size, 0)
				require.NoError(t, err)
				half := len(b) / 2
				write(t, r, b[:half])
				switch end {
				case "abort":
					r.Abort()
					r.Abort()
				case "close", "kill":
					r.w.off, r.w.buf = r.w.offset(), nil // the point at which a sync is due
					_, err := r.w.f.WriteAt(b[:half], 0)
					require.NoError(t, err)
					require.NoError(t, r.sync())
					if end == "close" {
						require.NoError(t, s.Close())
					} else {
						s.crash()
						s.incoming.close()
					}
					s, _, err = reopen(t, m, cfg)
					require.NoError(t, err)
					require.NoError(t, s.Begin(0))
				}
				require.Equal(t, zab.SnapshotProgress{From: 7, File: f, Offset: int64(half)}, s.Resume())
				again, err := s.Receive(7, f, size, int64(half))
				require.NoError(t, err)
				_, err = r.Write(nil)
				require.Error(t, err)
				write(t, again, b[half:])
				require.NoError(t, again.Finish(verifyAs(f)))
				require.Equal(t, size, s.Resume().Offset)
				again.Abort()
				require.NoError(t, s.Perform(zab.PersistOp{Kind: zab.PersistInstallSnapshot, Zxid: 0x99}))
				require.Equal(t, b, readFile(t, m, "/data/version-2/"+f.Name))
				require.Error(t, install(s, 0x99), "once only")
				require.NoError(t, s.Close())
			})
		}
	}
}

// A reception that was received in full, but not installed, is verified anew; one that another took over while it was
// verified counts for nothing.
func TestReceptionEndsAnew(t *testing.T) {
	s := newStore(t, vfs.NewMem(), testConfig())
	defer s.Close()
	f := receive(t, s, 5, "", 100)
	size := s.Resume().Offset
	r, err := s.Receive(7, f, size, size)
	require.NoError(t, err)
	require.Error(t, install(s, 5), "it is being received again")
	var other *Reception
	require.ErrorIs(t, r.Finish(func(io.Reader) error {
		other, err = s.Receive(7, f, size, size)
		return err
	}), errReceptionEnded)
	require.NoError(t, other.Finish(verifyAs(f)))
	require.ErrorIs(t, other.Finish(verifyAs(f)), errReceptionEnded)
	require.NoError(t, install(s, 5))
	// Trailing bytes are damage, and so is what verify does not like.
	for name, verify := range map[string]func(io.Reader) error{
		"trailing": func(r io.Reader) error { _, err := io.ReadFull(r, make([]byte, 50)); return err },
		"bad":      func(io.Reader) error { return errors.New("bad") },
	} {
		b := snapshotBytes(t, 9, "", 100)
		r, err := s.Receive(7, zab.SnapshotFile{Zxid: 9, Name: "snapshot.9"}, int64(len(b)), 0)
		require.NoError(t, err)
		write(t, r, b)
		require.ErrorContains(t, r.Finish(verify), "damaged", name)
	}
}

// The note never claims more than is durable, and never another file's bytes.
func TestReceptionCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	s := newStore(t, fault, testConfig())
	contents := map[string][]byte{}
	resumed := 0
	fault.Observe(func(op vfs.Op, err error) {
		if !op.Kind.Changes() {
			return
		}
		after, err := Open(m.CrashClone(rng), testConfig())
		require.NoError(t, err)
		defer after.crash()
		if p := after.Resume(); p.Offset > 0 {
			resumed++
			got := readFile(t, after.fs, "/data/version-2/"+receivedName)
			require.Equal(t, contents[p.File.Name][:p.Offset], got[:p.Offset])
		}
	})
	for z := zxid.Zxid(1); z < 8; z++ {
		b := snapshotBytes(t, z, "", 3<<20)
		f := zab.SnapshotFile{Zxid: z, Name: snapshotName(z, "")}
		contents[f.Name] = b
		r, err := s.Receive(7, f, int64(len(b)), 0)
		require.NoError(t, err)
		for i := 0; i < len(b); i += 600_000 {
			write(t, r, b[i:min(i+600_000, len(b))])
			if rng.IntN(3) == 0 {
				require.NoError(t, r.sync())
			}
		}
		if z%2 == 0 {
			require.NoError(t, r.Finish(verifyAs(f)))
		}
	}
	fault.Observe(nil)
	s.crash()
	s.incoming.close()
	require.Greater(t, resumed, 10)
}

func TestReceivedNote(t *testing.T) {
	n := receivedNote{from: -3, file: zab.SnapshotFile{Zxid: 0x10a, Name: "snapshot.10a.snappy"}, size: 99, offset: 98}
	text := n.encode()
	got, ok := parseNote(text)
	require.True(t, ok)
	require.Equal(t, n, got)
	for i := range text {
		_, ok := parseNote(text[:i])
		require.False(t, ok)
		b := []byte(text)
		b[i] ^= 1
		_, ok = parseNote(string(b))
		require.False(t, ok, string(b))
	}
	n.offset = 100
	_, ok = parseNote(n.encode())
	require.False(t, ok)
}

// A transfer keeps its file, and the log behind it, from a purge.
func TestTransferIsPinned(t *testing.T) {
	m := vfs.NewMem()
	cfg := testConfig()
	cfg.Verify = checkSnapshot
	s := newStore(t, m, cfg)
	add := func(z zxid.Zxid) {
		appendSync(t, s, txns(z-1, z)...)
		s.SnapshotStarted()
		require.NoError(t, writeSnapshot(s, z, 2000))
	}
	add(2)
	add(4)
	tr, err := s.OpenTransfer()
	require.NoError(t, err)
	require.Equal(t, zab.SnapshotFile{Zxid: 4, Name: "snapshot.4"}, tr.File())
	for z := zxid.Zxid(6); z < 14; z += 2 {
		add(z)
	}
	require.NoError(t, s.Purge(3, checkSnapshot))
	require.Equal(t, []string{"log.3", "log.5", "log.7", "log.9", "log.b", "snapshot.4", "snapshot.8", "snapshot.a", "snapshot.c"}, list(t, m, "/data/version-2"))
	b := make([]byte, tr.Size())
	_, err = tr.ReadAt(b, 0)
	require.NoError(t, err)
	require.Equal(t, readFile(t, m, "/data/version-2/snapshot.4"), b)
	h := s.History(zab.HistoryRequest{After: 4, LogOnly: true}, 1<<20)
	require.Len(t, h.Entries, 8)
	require.NoError(t, tr.Close())
	require.NoError(t, s.Purge(3, checkSnapshot))
	require.Equal(t, []string{"log.7", "log.9", "log.b", "snapshot.8", "snapshot.a", "snapshot.c"}, list(t, m, "/data/version-2"))

	// A damaged one is passed over; one that is gone cannot be had; without a verifier none can.
	patchFile(t, m, "/data/version-2/snapshot.c", 100, []byte("damage"))
	s.forgetVerified("snapshot.c")
	tr, err = s.OpenTransfer()
	require.NoError(t, err)
	require.Equal(t, zxid.Zxid(0xa), tr.File().Zxid)
	require.NoError(t, tr.Close())
	_, err = s.OpenTransferOf(zab.SnapshotFile{Zxid: 4, Name: "snapshot.4"})
	require.ErrorIs(t, err, ErrNoSnapshotToSend)
	s.cfg.Verify = nil
	_, err = s.OpenTransfer()
	require.ErrorIs(t, err, ErrNoSnapshotToSend)
	require.Empty(t, s.mu.pins)
	require.NoError(t, s.Close())
}
