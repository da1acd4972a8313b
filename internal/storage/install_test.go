package storage

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

func list(t testing.TB, fsys vfs.FS, dir string) []string {
	t.Helper()
	names, err := fsys.List(dir)
	require.NoError(t, err)
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasPrefix(n, "zabra.") })
}

func install(s *Store, z zxid.Zxid) error {
	return s.Perform(zab.PersistOp{Kind: zab.PersistInstallSnapshot, Zxid: z})
}

// diverged returns a server whose log has, behind 1:40, transactions of epoch 1 and 2 that no quorum ever had.
func diverged(t testing.TB, fsys vfs.FS, cfg Config) *Store {
	t.Helper()
	s := newStore(t, fsys, cfg)
	appendSync(t, s, txns(zxid.Make(1, 1), zxid.Make(1, 30))...)
	s.SnapshotStarted()
	require.NoError(t, writeSnapshot(s, zxid.Make(1, 30), 50))
	appendSync(t, s, txns(zxid.Make(1, 31), zxid.Make(1, 50))...)
	s.SnapshotStarted()
	require.NoError(t, writeSnapshot(s, zxid.Make(1, 50), 50))
	appendSync(t, s, txns(zxid.Make(2, 1), zxid.Make(2, 5))...)
	return s
}

// The discarded transactions are not replayed, not served and not there any more, wherever the snapshot's point is.
func TestInstallReplacesEverything(t *testing.T) {
	for _, z := range []zxid.Zxid{zxid.Make(1, 20), zxid.Make(1, 30), zxid.Make(1, 40), zxid.Make(1, 50), zxid.Make(2, 0), zxid.Make(2, 3),
		zxid.Make(3, 0), zxid.Make(3, 17)} {
		for _, logDir := range []string{"/data", "/logs"} {
			t.Run(z.String()+logDir, func(t *testing.T) {
				m := vfs.NewMem()
				cfg := testConfig()
				cfg.LogDir = logDir
				s := diverged(t, m, cfg)
				writeFile(t, m, "/data/version-2/snapshot.ff.tmp", []byte("x"))
				writeFile(t, m, logDir+"/version-2/log.5.bak", []byte("x"))
				file := receive(t, s, z, compressionGzip, 3000)
				require.NoError(t, install(s, z))

				next := zxid.Make(3, 1)
				if z.Epoch() == 3 {
					next = z + 1
				}
				require.Equal(t, file.Name, strings.Join(slices.DeleteFunc(list(t, m, "/data/version-2"), func(n string) bool {
					return !strings.HasPrefix(n, snapshotPrefix)
				}), ","))
				_, err := m.Stat(logDir + "/version-2/log.5.bak")
				require.Error(t, err)
				moved := list(t, m, "/data/superseded")
				require.Subset(t, append(moved, list(t, m, logDir+"/superseded")...),
					[]string{"log.100000001", "log.10000001f", "log.200000001", "snapshot.0", "snapshot.ff.tmp", "log.5.bak"})
				appendSync(t, s, txn(next, 9, 0), txn(next+1, 9, 0))
				s.crash()

				s, entries, err := reopen(t, m, cfg)
				require.NoError(t, err)
				require.Equal(t, []zab.Entry{txn(next, 9, 0), txn(next+1, 9, 0)}, entries)
				require.NoError(t, s.Begin(next+1))
				cfg.Verify = checkSnapshot
				s.cfg.Verify = checkSnapshot
				for after, want := range map[zxid.Zxid]zxid.Zxid{zxid.Make(1, 10): 0, z - 1: 0, z: z, next: next} {
					h := s.History(zab.HistoryRequest{After: after}, 1<<20)
					require.NoError(t, h.Err)
					if want == 0 {
						require.Equal(t, &file, h.Snapshot, after)
						continue
					}
					require.Equal(t, want, h.Prev)
					require.Len(t, h.Entries, int(next+2-max(next, after+1)))
				}
				require.ErrorIs(t, s.Truncate(z-1), ErrNotInLog)
				require.NoError(t, s.Truncate(z))
				require.NoError(t, s.Close())
			})
		}
	}
}

// From a crash at any operation of receiving, installing and going on, the directory starts as it was before or as it is
// afterwards, here and, if it was at rest, on ZooKeeper.
func TestInstallCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	cfg := testConfig()
	s := diverged(t, fault, cfg)
	const z = zxid.Zxid(1<<32 | 40)
	var disks []*vfs.Mem
	fault.Observe(func(op vfs.Op, err error) {
		if op.Kind.Changes() {
			for range 8 {
				disks = append(disks, m.CrashClone(rng))
			}
			disks = append(disks, m.Clone())
		}
	})
	receive(t, s, z, "", 5000)
	beforeInstall := len(disks)
	require.NoError(t, install(s, z))
	afterInstall := len(disks)
	appendSync(t, s, txn(zxid.Make(3, 1), 9, 0))
	fault.Observe(nil)
	s.crash()
	require.Greater(t, len(disks), 200)
	before, after := 0, 0
	for i, d := range disks {
		for range 3 { // the start may crash, too
			d = crashInOpen(t, d, rng)
		}
		s, entries, err := reopen(t, d, cfg)
		require.NoError(t, err)
		if newestSnapshot(t, s) == zxid.Make(1, 50) {
			before++
			require.Less(t, i, afterInstall)
			require.Equal(t, txns(zxid.Make(2, 1), zxid.Make(2, 5)), entries)
			require.NoError(t, s.Begin(zxid.Make(2, 5)))
		} else {
			after++
			require.GreaterOrEqual(t, i, beforeInstall)
			files, err := s.Snapshots()
			require.NoError(t, err)
			require.Equal(t, []zab.SnapshotFile{{Zxid: z, Name: snapshotName(z, "")}}, files)
			for _, e := range entries {
				require.Equal(t, txn(zxid.Make(3, 1), 9, 0), e)
			}
			last := z
			if len(entries) > 0 {
				last = zxid.Make(3, 1)
			}
			require.Less(t, len(list(t, d, "/data/version-2")), 3)
			require.NoError(t, s.Begin(last))
			require.Equal(t, zab.SnapshotProgress{}, s.Resume())
		}
		_, _, err = referenceLoad(t, d, "/data/version-2")
		require.NoError(t, err)
		s.crash()
	}
	require.Greater(t, before, 20)
	require.Greater(t, after, 20)
}

// crashInOpen opens a directory and returns what a crash at a random moment of that leaves.
func crashInOpen(t testing.TB, m *vfs.Mem, rng *rand.Rand) *vfs.Mem {
	t.Helper()
	fault := vfs.NewFault(m)
	crashed, at := m, rng.IntN(12)
	fault.Observe(func(op vfs.Op, err error) {
		if op.Kind.Changes() {
			if at--; at == 0 {
				crashed = m.CrashClone(rng)
			}
		}
	})
	s, err := Open(fault, testConfig())
	require.NoError(t, err)
	s.crash()
	return crashed
}

// interrupted returns a directory on which an installation of 1:40 was announced and broke off, with so many operations
// after the announcement done.
func interrupted(t testing.TB, operations int) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	s := diverged(t, fault, testConfig())
	require.NoError(t, s.SetAcceptedEpoch(2))
	require.NoError(t, s.SetCurrentEpoch(2))
	receive(t, s, zxid.Make(1, 40), "", 100)
	announced := false
	fault.Inject(func(op vfs.Op) error {
		if announced {
			if operations--; operations < 0 {
				return errDisk
			}
		}
		announced = announced || op.Kind == vfs.KindSyncData && strings.HasSuffix(op.Name, stateName)
		return nil
	})
	require.ErrorIs(t, install(s, zxid.Make(1, 40)), errDisk)
	require.True(t, announced)
	s.crash()
	return m
}

// When ZooKeeper ran on a directory in the middle of an installation, what it made of it is what counts.
func TestInterruptedInstallAndAnotherServer(t *testing.T) {
	tests := []struct {
		name  string
		other func(t *testing.T, m *vfs.Mem)
	}{
		{"a standalone server logs", func(t *testing.T, m *vfs.Mem) {
			b := append(slices.Clone(logHeader[:]), appendRecord(nil, txn(zxid.Make(2, 6), 77, 0).Payload)...)
			writeFile(t, m, "/data/version-2/log.200000006", b)
		}},
		{"a member takes part in an epoch", func(t *testing.T, m *vfs.Mem) {
			writeFile(t, m, "/data/version-2/acceptedEpoch", []byte("3"))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := interrupted(t, 0)
			tt.other(t, m)
			base, want, err := referenceLoad(t, m, "/data/version-2")
			require.NoError(t, err)
			s, entries, err := reopen(t, m, testConfig())
			require.NoError(t, err)
			require.Equal(t, zxid.Make(1, 50), base)
			require.Equal(t, want, entries)
			last := want[len(want)-1].Zxid
			require.NoError(t, s.Begin(last))
			require.Equal(t, noInstall, s.state.rec.install)
			h := s.History(zab.HistoryRequest{After: base - 1, LogOnly: true}, 1)
			require.ErrorIs(t, h.Err, errTooOld)
			require.NoError(t, s.Close())
		})
	}
	// Nobody was there, or nobody who did anything: it is finished.
	for operations := range 20 {
		m := interrupted(t, operations)
		s, entries, err := reopen(t, m, testConfig())
		require.NoError(t, err)
		require.Empty(t, entries)
		require.Equal(t, zxid.Make(1, 40), newestSnapshot(t, s))
		s.crash()
	}
}

// Without the snapshot nothing is moved away, whatever the state file announces.
func TestAnnouncedSnapshotIsMissing(t *testing.T) {
	m := interrupted(t, 0)
	require.NoError(t, m.Remove("/data/version-2/"+receivedName))
	names := list(t, m, "/data/version-2")
	_, err := Open(m, testConfig())
	var dir *DirError
	require.ErrorAs(t, err, &dir)
	require.Equal(t, names, list(t, m, "/data/version-2"))
}

// A directory in which ZooKeeper, following a leader, has left the log that this leader had discarded: below the snapshot
// that was loaded nothing is handed on, and nothing is cut.
func TestForeignLogIsNotHandedOn(t *testing.T) {
	m := vfs.NewMem()
	stale := slices.Clone(logHeader[:])
	for _, e := range txns(zxid.Make(1, 1), zxid.Make(1, 50)) {
		stale = appendRecord(stale, e.Payload)
	}
	writeFile(t, m, "/data/version-2/log.100000001", stale)
	writeFile(t, m, "/data/version-2/log.300000001", appendRecord(slices.Clone(logHeader[:]), txn(zxid.Make(3, 1), 5, 0).Payload))
	writeFile(t, m, "/data/version-2/snapshot.0", snapshotBytes(t, 0, "", 10))
	writeFile(t, m, "/data/version-2/snapshot.300000000", snapshotBytes(t, zxid.Make(3, 0), "", 10))
	cfg := testConfig()
	cfg.Verify = checkSnapshot
	for life := range 3 {
		s, entries, err := reopen(t, m, cfg)
		require.NoError(t, err)
		require.Len(t, entries, 1+life)
		last := zxid.Make(3, 1) + zxid.Zxid(life)
		require.NoError(t, s.Begin(last))
		require.ErrorIs(t, s.Truncate(zxid.Make(3, 0)), map[bool]error{true: ErrNotInLog}[last > zxid.Make(3, 0)])
		for _, after := range []zxid.Zxid{0, zxid.Make(1, 10), zxid.Make(1, 50), zxid.Make(2, 7)} {
			h := s.History(zab.HistoryRequest{After: after}, 1<<20)
			require.NoError(t, h.Err)
			require.Equal(t, &zab.SnapshotFile{Zxid: zxid.Make(3, 0), Name: "snapshot.300000000"}, h.Snapshot)
		}
		h := s.History(zab.HistoryRequest{After: zxid.Make(3, 0)}, 1<<20)
		require.NoError(t, h.Err)
		require.Equal(t, zxid.Make(3, 0), h.Prev)
		require.Len(t, h.Entries, 1+life)
		appendSync(t, s, txn(last+1, 5, 0))
		s.crash()
	}
}

// What ran beside an installation or a cut, and is about the history before, comes to nothing.
func TestBesideInstallAndTruncate(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *Store){
		"install":  func(t *testing.T, s *Store) { require.NoError(t, install(s, zxid.Make(1, 40))) },
		"truncate": func(t *testing.T, s *Store) { require.NoError(t, s.Truncate(zxid.Make(1, 30))) },
	} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMem()
			s := diverged(t, m, testConfig())
			receive(t, s, zxid.Make(1, 40), "", 100)
			r, err := s.OpenLog(zxid.Make(1, 30))
			require.NoError(t, err)
			_, err = r.Next()
			require.NoError(t, err)

			s.SnapshotStarted()
			started := false
			purged := make(chan error)
			err = s.WriteSnapshot(zxid.Make(2, 5), func(b []byte, _ int) ([]byte, bool, error) {
				if started {
					return append(b, 1), true, nil
				}
				started = true
				go func() {
					called := false
					purged <- s.Purge(3, func(r io.Reader, f zab.SnapshotFile) error {
						if !called {
							called = true
							change(t, s)
						}
						return checkSnapshot(r, f)
					})
				}()
				require.NoError(t, <-purged)
				return append(b, 1), false, nil
			})
			require.ErrorIs(t, err, errSuperseded)
			for err = nil; err == nil; {
				_, err = r.Next()
			}
			require.ErrorIs(t, err, errSuperseded)
			require.NoError(t, r.Close())
			require.NoError(t, s.err())

			// A snapshot announced before and begun afterwards comes too late as well.
			receive(t, s, zxid.Make(1, 41), "", 100)
			s.SnapshotStarted()
			require.NoError(t, install(s, zxid.Make(1, 41)))
			require.ErrorIs(t, writeSnapshot(s, zxid.Make(2, 5), 1), errSuperseded)
			require.NoError(t, writeSnapshot(s, zxid.Make(1, 41), 1))
			require.NoError(t, s.Close())
			for _, n := range list(t, m, "/data/version-2") {
				require.NotContains(t, n, "snapshot.200000005")
			}
		})
	}
}

// The folder holds what the last installation replaced; a purge empties it. A version-2 that is a file system of its own
// has no such folder beside it.
func TestSuperseded(t *testing.T) {
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	s := diverged(t, fault, testConfig())
	writeFile(t, m, "/data/superseded/keep", []byte("x"))
	receive(t, s, zxid.Make(1, 40), "", 100)
	require.NoError(t, install(s, zxid.Make(1, 40)))
	require.Contains(t, list(t, m, "/data/superseded"), "snapshot.100000032")
	appendSync(t, s, txns(zxid.Make(1, 41), zxid.Make(1, 42))...)
	receive(t, s, zxid.Make(1, 60), "", 100)
	require.NoError(t, install(s, zxid.Make(1, 60)))
	require.Equal(t, []string{"keep", "log.100000029", "snapshot.100000028"}, list(t, m, "/data/superseded"))
	for z := zxid.Make(1, 61); z < zxid.Make(1, 64); z++ {
		appendSync(t, s, txns(z, z)...)
		s.SnapshotStarted()
		require.NoError(t, writeSnapshot(s, z, 10))
	}
	require.NoError(t, s.Purge(3, checkSnapshot))
	require.Equal(t, []string{"keep"}, list(t, m, "/data/superseded"))

	receive(t, s, zxid.Make(1, 70), "", 100)
	fault.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindRename && strings.Contains(op.Name, supersededDir) {
			return syscall.EXDEV
		}
		return nil
	})
	require.NoError(t, install(s, zxid.Make(1, 70)))
	require.Equal(t, []string{"snapshot.100000046"}, list(t, m, "/data/version-2"))
	require.Equal(t, []string{"keep"}, list(t, m, "/data/superseded"))
	require.NoError(t, s.Close())
}
