package storage

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// A scenario is a sequence of calls on a store; it stops at the first error. acked is what it was told is durable.
type scenario struct {
	acked zxid.Zxid
	last  zxid.Zxid
}

func (sc *scenario) commit(s *Store, n int, size int) error {
	for range n {
		sc.last++
		if err := s.Append([]zab.Entry{txn(sc.last, 1, size)}); err != nil {
			return err
		}
	}
	if err := s.Sync(); err != nil {
		return err
	}
	sc.acked = sc.last
	return nil
}

// run appends, rolls, takes snapshots, purges, changes epochs and closes.
func (sc *scenario) run(fsys vfs.FS) error {
	cfg := testConfig()
	cfg.LogSizeLimitBytes = 20000
	s, err := Open(fsys, cfg)
	if err != nil {
		return err
	}
	defer s.crash()
	if _, err := readLog(s, 0); err != nil {
		return err
	}
	if err := writeSnapshot(s, 0, 3000); err != nil {
		return err
	}
	if err := s.Begin(0); err != nil {
		return err
	}
	if err := s.SetAcceptedEpoch(1); err != nil {
		return err
	}
	for range 5 {
		if err := sc.commit(s, 3, 2000); err != nil {
			return err
		}
		if err := sc.commit(s, 1, 30000); err != nil {
			return err
		}
		s.SnapshotStarted()
		if err := s.err(); err != nil {
			return err
		}
		if err := writeSnapshot(s, sc.acked, 2000); err != nil {
			return err
		}
	}
	if err := s.SetCurrentEpoch(1); err != nil {
		return err
	}
	if err := s.Purge(3, checkSnapshot); err != nil {
		return err
	}
	if err := sc.commit(s, 2, 0); err != nil {
		return err
	}
	return s.Close()
}

// Every operation of the scenario fails once. Each time the error surfaces, and what a crash then leaves is all that was
// acknowledged, and at most what was appended.
func TestEveryOperationFails(t *testing.T) {
	total := vfs.NewFault(vfs.NewMem())
	require.NoError(t, (&scenario{}).run(total))
	require.Greater(t, total.Ops(), 200)
	rng := rand.New(rand.NewPCG(4, 4))
	for i := range total.Ops() {
		m := vfs.NewMem()
		fault := vfs.NewFault(m)
		var failed vfs.Op
		fault.Inject(func(op vfs.Op) error {
			if op.Index != i {
				return nil
			}
			failed = op
			return errDisk
		})
		sc := &scenario{}
		err := sc.run(fault)
		what := failed.Kind.String() + " " + failed.Name
		if err == nil {
			require.True(t, forgiven(failed), "operation %d (%s) failed and nobody noticed", i, what)
		} else {
			require.ErrorIs(t, err, errDisk, what)
		}
		for range 3 {
			survives(t, m.CrashClone(rng), sc, what)
		}
		survives(t, m.Clone(), sc, what)
	}
}

// forgiven lists the failures that need not surface: closing a file that is durable or was only read, and looking for a
// directory that is then created.
func forgiven(op vfs.Op) bool {
	return op.Kind == vfs.KindClose || op.Kind == vfs.KindStat
}

func survives(t *testing.T, m *vfs.Mem, sc *scenario, what string) {
	t.Helper()
	s, entries, err := reopen(t, m, testConfig())
	defer s.crash()
	require.NoError(t, err, what)
	last := newestSnapshot(t, s) + zxid.Zxid(len(entries))
	require.GreaterOrEqual(t, last, sc.acked, what)
	require.LessOrEqual(t, last, sc.last, what)
	require.Equal(t, txnIDs(newestSnapshot(t, s)+1, last), append([]zxid.Zxid(nil), zxids(entries)...), what)
	_, err = s.Epochs()
	require.NoError(t, err, what)
}

// After a failed sync or write nothing works any more, and the answer is always the same.
func TestFailureIsFinal(t *testing.T) {
	for _, kind := range []vfs.Kind{vfs.KindSyncData, vfs.KindWrite} {
		m := vfs.NewMem()
		fault := vfs.NewFault(m)
		s := newStore(t, fault, testConfig())
		appendSync(t, s, txns(1, 3)...)
		fault.Inject(vfs.FailKind(kind, 0, errDisk))
		require.NoError(t, s.Append(txns(4, 4)))
		err := s.Sync()
		require.ErrorIs(t, err, errDisk)
		fault.Inject(nil) // the disk is well again
		ops := fault.Ops()
		calls := map[string]func() error{
			"Append":           func() error { return s.Append(txns(5, 5)) },
			"Sync":             s.Sync,
			"SetAcceptedEpoch": func() error { return s.SetAcceptedEpoch(1) },
			"SetCurrentEpoch":  func() error { return s.SetCurrentEpoch(1) },
			"Truncate":         func() error { return s.Truncate(1) },
			"WriteSnapshot":    func() error { return writeSnapshot(s, 3, 10) },
			"Purge":            func() error { return s.Purge(3, checkSnapshot) },
			"Snapshots":        func() error { _, err := s.Snapshots(); return err },
			"OpenSnapshot":     func() error { _, err := s.OpenSnapshot(zab.SnapshotFile{Name: "snapshot.0"}); return err },
			"OpenLog":          func() error { _, err := s.OpenLog(0); return err },
			"Epochs":           func() error { _, err := s.Epochs(); return err },
			"Begin":            func() error { return s.Begin(3) },
			"Perform":          func() error { return s.Perform(zab.PersistOp{Kind: zab.PersistTruncate, Zxid: 1}) },
			"InstallSnapshot":  func() error { return s.InstallSnapshot(1) },
			"EpochsForStart":   func() error { _, _, err := s.EpochsForStart(1); return err },
			"History":          func() error { return s.History(zab.HistoryRequest{}, 1).Err },
			"OpenTransfer":     func() error { _, err := s.OpenTransfer(); return err },
			"Receive":          func() error { _, err := s.Receive(1, zab.SnapshotFile{Name: "snapshot.0"}, 1, 0); return err },
			"Initialize":       func() error { _, err := s.TakeInitializeMarker(); return err },
		}
		for name, call := range calls {
			require.Equal(t, err, call(), name)
		}
		s.SnapshotStarted()
		require.Equal(t, ops, fault.Ops(), "a failed store leaves the disk alone")
		require.Equal(t, err, s.Close())
		require.NoError(t, s.Close())
		require.ErrorIs(t, s.Sync(), ErrClosed)

		s, entries, err := reopen(t, m, testConfig())
		require.NoError(t, err)
		require.Equal(t, txnIDs(1, 3), zxids(entries)[:3])
		require.NoError(t, s.Close())
	}
}

// The failure of the background writer ends the store too.
func TestFailureInTheBackground(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	cfg := testConfig()
	cfg.PreAllocBytes = 16 << 20
	cfg.Go = nil
	s := newStore(t, fault, cfg)
	fault.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindWrite && op.Len == zeroChunkBytes {
			return errDisk
		}
		return nil
	})
	appendSync(t, s, txns(1, 1)...)
	s.background.Wait()
	require.ErrorIs(t, s.Append(txns(2, 2)), errDisk)
	require.ErrorIs(t, s.Close(), errDisk)
}
