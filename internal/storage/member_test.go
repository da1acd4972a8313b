package storage

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// memberLife is what a member of an ensemble does to its directory: it logs, is cut back, changes epochs, receives a
// snapshot that replaces everything, and goes on. It stops at the first error. What it was promised stands in the world.
func memberLife(w *world, fsys vfs.FS) error {
	s, err := Open(fsys, w.config())
	if err != nil {
		return err
	}
	defer s.crash()
	defer s.incoming.close()
	if _, err := readLog(s, 0); err != nil {
		return err
	}
	if err := writeSnapshot(s, 0, 100); err != nil {
		return err
	}
	if err := s.Begin(0); err != nil {
		return err
	}
	if _, _, err := s.EpochsForStart(0); err != nil {
		return err
	}
	log := func(first, last zxid.Zxid) error {
		w.history = append(w.history, txns(first, last)...)
		if err := s.Perform(zab.PersistOp{Kind: zab.PersistAppend, Entries: txns(first, last)}); err != nil {
			return err
		}
		if err := s.Sync(); err != nil {
			return err
		}
		w.acked = len(w.history)
		return nil
	}
	if err := s.Perform(zab.PersistOp{Kind: zab.PersistSetAccepted, Epoch: 1}); err != nil {
		return err
	}
	if err := s.Perform(zab.PersistOp{Kind: zab.PersistSetCurrent, Epoch: 1}); err != nil {
		return err
	}
	if err := log(zxid.Make(1, 1), zxid.Make(1, 9)); err != nil {
		return err
	}
	s.SnapshotStarted()
	if err := writeSnapshot(s, zxid.Make(1, 9), 100); err != nil {
		return err
	}
	if err := log(zxid.Make(1, 10), zxid.Make(1, 19)); err != nil {
		return err
	}
	w.acked = 6
	if err := s.Perform(zab.PersistOp{Kind: zab.PersistTruncate, Zxid: zxid.Make(1, 6)}); err != nil {
		return err
	}
	w.history = w.history[:6:6]
	if err := log(zxid.Make(2, 1), zxid.Make(2, 4)); err != nil {
		return err
	}
	if h := s.History(zab.HistoryRequest{After: zxid.Make(1, 2)}, 1<<20); h.Err != nil {
		return h.Err
	}
	if err := receiveQuietly(w.t, s, zxid.Make(2, 2)); err != nil {
		return err
	}
	w.replacing = &past{base: zxid.Make(2, 2)}
	if err := s.Perform(zab.PersistOp{Kind: zab.PersistInstallSnapshot, Zxid: zxid.Make(2, 2)}); err != nil {
		return err
	}
	w.past, w.replacing = *w.replacing, nil
	if err := log(zxid.Make(3, 1), zxid.Make(3, 4)); err != nil {
		return err
	}
	tr, err := s.OpenTransfer()
	if err != nil {
		return err
	}
	if err := tr.Close(); err != nil {
		return err
	}
	return s.Close()
}

func receiveQuietly(t testing.TB, s *Store, z zxid.Zxid) error {
	b := snapshotBytes(t, z, "", 2000)
	f := zab.SnapshotFile{Zxid: z, Name: snapshotName(z, "")}
	r, err := s.Receive(7, f, int64(len(b)), 0)
	if err != nil {
		return err
	}
	if _, err := r.Write(b[:1000]); err != nil {
		return err
	}
	if err := r.sync(); err != nil {
		return err
	}
	if _, err := r.Write(b[1000:]); err != nil {
		return err
	}
	return r.Finish(verifyAs(f))
}

// Every operation fails once: the error surfaces, and from what a crash leaves all that was promised is recovered.
func TestEveryOperationOfAMemberFails(t *testing.T) {
	total := vfs.NewFault(vfs.NewMem())
	newWorld := func(i int) *world {
		return &world{t: t, seed: 3 * 5, life: uint64(i), rng: rand.New(rand.NewPCG(uint64(i), 5)), epochs: promisedEpochs{{}}}
	}
	require.NoError(t, memberLife(newWorld(0), total))
	require.Greater(t, total.Ops(), 200)
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
		w := newWorld(i)
		err := memberLife(w, fault)
		what := failed.Kind.String() + " " + failed.Name
		if err == nil {
			require.True(t, forgiven(failed) || failed.Name == "/data/superseded", "operation %d (%s) failed and nobody noticed", i, what)
		} else {
			require.ErrorIs(t, err, errDisk, what)
		}
		for range 3 {
			s, _ := w.recovered(m.CrashClone(w.rng), w.past)
			s.crash()
		}
		s, found := w.recovered(m, w.past)
		require.NoError(t, s.Begin(found.lastZxid()), what)
		_, _, err = s.EpochsForStart(found.lastZxid())
		require.NoError(t, err, what)
		s.crash()
	}
}

func TestEpochsForStart(t *testing.T) {
	const none = -1
	tests := []struct {
		name              string
		accepted, current int
		tmp               string
		last              zxid.Zxid
		foreign           bool
		wantA, wantC      zxid.Epoch
		why               string
	}{
		{name: "fresh", accepted: none, current: none, wantA: 0, wantC: 0},
		{name: "a standalone server's", accepted: none, current: none, last: zxid.Make(2, 1), foreign: true, wantA: 2, wantC: 2},
		{name: "as it should be", accepted: 5, current: 4, last: zxid.Make(3, 1), foreign: true, wantA: 5, wantC: 4},
		{name: "accepted missing", accepted: none, current: 3, last: zxid.Make(3, 1), wantA: 3, wantC: 3},
		{name: "accepted missing, current higher", accepted: none, current: 4, last: zxid.Make(3, 1), why: "accepted epoch, 3, is less"},
		{name: "current missing", accepted: 4, current: none, last: zxid.Make(3, 1), wantA: 4, wantC: 3},
		{name: "accepted below current", accepted: 2, current: 3, last: zxid.Make(3, 1), why: "accepted epoch, 2, is less"},
		{name: "current behind our log", accepted: 4, current: 1, last: zxid.Make(3, 1), wantA: 4, wantC: 3},
		{name: "both behind our log", accepted: 1, current: 1, last: zxid.Make(3, 1), wantA: 3, wantC: 3},
		{name: "current behind another's log", accepted: 4, current: 1, last: zxid.Make(3, 1), foreign: true, why: "not this server"},
		{name: "tmp says so", accepted: 4, current: 1, tmp: "3", last: zxid.Make(3, 1), foreign: true, wantA: 4, wantC: 3},
		{name: "tmp is further", accepted: 4, current: 1, tmp: "4", last: zxid.Make(3, 1), foreign: true, wantA: 4, wantC: 3},
		{name: "tmp is older", accepted: 4, current: 1, tmp: "2", last: zxid.Make(3, 1), foreign: true, why: "not this server"},
		{name: "tmp is torn", accepted: 4, current: 1, tmp: "x", last: zxid.Make(3, 1), foreign: true, why: "not this server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := vfs.NewMem()
			s := newStore(t, m, testConfig())
			if tt.last > 0 {
				appendSync(t, s, txn(zxid.Make(1, 1), 1, 0), txn(tt.last, 1, 0))
			}
			// As ZooKeeper has them, or as this server left them at a crash.
			if tt.foreign {
				s.crash()
				require.NoError(t, m.Remove("/data/version-2/"+stateName))
			}
			for name, e := range map[string]int{acceptedName: tt.accepted, currentName: tt.current} {
				if e == none {
					continue
				}
				if tt.foreign {
					writeFile(t, m, "/data/version-2/"+name, []byte{byte('0' + e)})
				} else {
					require.NoError(t, s.setEpoch(name, zxid.Epoch(e), func(p *epochPair) {
						if name == acceptedName {
							p.accepted = int64(e)
						} else {
							p.current = int64(e)
						}
					}))
				}
			}
			s.crash()
			if tt.tmp != "" {
				writeFile(t, m, "/data/version-2/"+currentName+tmpSuffix, []byte(tt.tmp))
			}
			for start := range 3 { // what was refused is refused again
				s, _, err := reopen(t, m, testConfig())
				require.NoError(t, err)
				_, _, err = s.EpochsForStart(tt.last)
				require.ErrorIs(t, err, ErrNotBegun)
				require.NoError(t, s.Begin(tt.last))
				accepted, current, err := s.EpochsForStart(tt.last)
				if tt.why != "" {
					require.ErrorContains(t, err, tt.why, start)
				} else {
					require.NoError(t, err)
					require.Equal(t, [2]zxid.Epoch{tt.wantA, tt.wantC}, [2]zxid.Epoch{accepted, current})
					e, err := s.Epochs()
					require.NoError(t, err)
					require.Equal(t, [2]zxid.Epoch{tt.wantA, tt.wantC}, [2]zxid.Epoch{e.Accepted, e.Current})
					require.True(t, e.HasAccepted && e.HasCurrent)
				}
				s.crash()
			}
		})
	}
}

// A server that is closed between a history and its epoch leaves files that ZooKeeper accepts.
func TestCloseLevelsTheEpoch(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	require.NoError(t, s.SetAcceptedEpoch(3))
	require.NoError(t, s.SetCurrentEpoch(1))
	appendSync(t, s, txn(zxid.Make(2, 1), 1, 0))
	require.NoError(t, s.Close())
	require.Equal(t, "2", string(readFile(t, m, "/data/version-2/currentEpoch")))
	require.Equal(t, "3", string(readFile(t, m, "/data/version-2/acceptedEpoch")))
}

// A state file of the first version counts as before; what it does not know is taken for another server's.
func TestStateOfVersion1(t *testing.T) {
	m := killed(t, 20, 100)
	b := readFile(t, m, "/data/version-2/"+stateName)
	best, err := readState(memFile(t, m, "/data/version-2/"+stateName))
	require.NoError(t, err)
	old := best.slot[:stateSlotBytesV1:stateSlotBytesV1]
	binary.BigEndian.PutUint32(old[4:], stateVersion1)
	binary.BigEndian.PutUint32(old[stateSlotBytesV1-4:], crc32c(old[:stateSlotBytesV1-4]))
	clear(b)
	copy(b, old)
	patchFile(t, m, "/data/version-2/"+stateName, 0, b)
	s, entries, err := reopen(t, m, testConfig())
	require.NoError(t, err)
	require.Equal(t, txnIDs(1, 20), zxids(entries))
	require.True(t, s.mark.valid)
	require.Equal(t, best.rec.log.Last, s.mark.own)
	require.NoError(t, s.Begin(20))
	require.ErrorIs(t, s.Truncate(19), ErrNotInLog)
	appendSync(t, s, txns(21, 22)...)
	require.NoError(t, s.Truncate(21))
	s.crash()
	s, _, err = reopen(t, m, testConfig())
	require.NoError(t, err)
	require.Equal(t, uint32(stateVersion), s.state.rec.version)
	require.Equal(t, zxid.Zxid(20), s.state.rec.cutFloor)
	s.crash()
}

func memFile(t testing.TB, m *vfs.Mem, name string) vfs.File {
	t.Helper()
	f, err := m.OpenWrite(name)
	require.NoError(t, err)
	return f
}

// The files of real servers load, serve what was logged since, and nothing before.
func TestHistoryOfRealDirectories(t *testing.T) {
	for _, name := range fixtures(t) {
		if !isHealthy(name) {
			continue
		}
		m := loadFixture(t, name)
		cfg := testConfig()
		cfg.Verify = acceptAll
		s, entries, err := reopen(t, m, cfg)
		require.NoError(t, err, name)
		base := newestSnapshot(t, s)
		last := base
		if len(entries) > 0 {
			last = entries[len(entries)-1].Zxid
		}
		require.NoError(t, s.Begin(last), name)
		accepted, current, err := s.EpochsForStart(last)
		require.NoError(t, err, name)
		require.True(t, accepted >= current && current >= last.Epoch(), name)
		appendSync(t, s, txns(zxid.Make(last.Epoch()+1, 1), zxid.Make(last.Epoch()+1, 2))...)
		h := s.History(zab.HistoryRequest{After: base}, 64<<20)
		require.NoError(t, h.Err, name)
		require.Equal(t, base, h.Prev, name)
		require.Len(t, h.Entries, len(entries)+2, name)
		if base > 0 {
			h = s.History(zab.HistoryRequest{After: base - 1}, 64<<20)
			require.NoError(t, h.Err, name)
			require.Equal(t, base, h.Snapshot.Zxid, name)
		}
		require.NoError(t, s.Close(), name)
	}
}
