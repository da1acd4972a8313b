package storage

import (
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// A commit is one write and one sync of data, plus the write of the mark that nobody waits for.
func TestOperationsOfACommit(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	s := newStore(t, fault, testConfig())
	appendSync(t, s, txns(1, 3)...)
	var ops []string
	fault.Observe(func(op vfs.Op, err error) { ops = append(ops, op.Kind.String()+" "+op.Name) })
	require.NoError(t, s.Append(txns(4, 9)))
	require.Empty(t, ops, "a batch is collected in memory")
	require.NoError(t, s.Sync())
	require.Equal(t, []string{"write " + log1, "syncdata " + log1, "write /data/version-2/zabra.state"}, ops)
	ops = nil
	require.NoError(t, s.Sync())
	require.Empty(t, ops, "nothing to do")
	require.NoError(t, s.Close())
}

// A new log is whole before it has its name.
func TestOperationsOfANewLog(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	cfg := testConfig()
	cfg.PreAllocBytes = 0
	s := newStore(t, fault, cfg)
	var ops []string
	fault.Observe(func(op vfs.Op, err error) {
		ops = append(ops, op.Kind.String()+" "+op.Name[len("/data/version-2"):])
	})
	appendSync(t, s, txns(1, 3)...)
	require.Equal(t, []string{"create /zabra.log.tmp", "write /zabra.log.tmp", "write /zabra.log.tmp", "sync /zabra.log.tmp",
		"write /zabra.state", "syncdata /zabra.state", "rename /log.1", "syncdir ", "write /zabra.state"}, ops)
	require.NoError(t, s.Close())
}

// Never more than one batch, or one large record, is under way without a sync.
func TestBatchesAreBounded(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	cfg := testConfig()
	cfg.PreAllocBytes = 0
	s := newStore(t, fault, cfg)
	appendSync(t, s, txns(1, 1)...)
	unsynced, largest := int64(0), int64(0)
	fault.Observe(func(op vfs.Op, err error) {
		switch {
		case op.Name != log1:
		case op.Kind == vfs.KindWrite:
			unsynced += op.Len
			largest = max(largest, unsynced)
		case op.Kind == vfs.KindSyncData:
			unsynced = 0
		}
	})
	var entries []zab.Entry
	for z := zxid.Zxid(2); z < 40; z++ {
		entries = append(entries, txn(z, 1, 100<<10))
	}
	appendSync(t, s, entries...)
	require.LessOrEqual(t, largest, int64(batchBytesMax))
	require.Greater(t, largest, int64(batchBytesMax-(101<<10)))
	big := txn(41, 1, batchBytesMax+500)
	appendSync(t, s, txn(40, 1, 0), big, txn(42, 1, 0))
	require.Equal(t, int64(len(big.Payload)+recordOverheadBytes), largest, "a large record goes alone")
	require.NoError(t, s.Close())
}

func TestRefusedEntries(t *testing.T) {
	m := vfs.NewMem()
	cfg := testConfig()
	cfg.RecordBytesMax = 1000
	s := newStore(t, m, cfg)
	appendSync(t, s, txns(1, 2)...)

	err := s.Append([]zab.Entry{txn(3, 1, 999), txn(4, 1, 1000)})
	var size *RecordSizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, RecordSizeError{Zxid: 4, Bytes: 1000, Max: 1000}, *size)

	var order *OrderError
	for _, z := range []zxid.Zxid{0, 1, 2, 4, -1, zxid.Make(1, 2)} {
		require.ErrorAs(t, s.Append([]zab.Entry{txn(z, 1, 0)}), &order, "%v", z)
	}
	require.ErrorAs(t, s.Append(append(txns(3, 4), txns(6, 6)...)), &order)
	require.Equal(t, OrderError{Last: 4, Zxid: 6}, *order)

	require.Error(t, s.Append([]zab.Entry{{Zxid: 3, Payload: txn(4, 1, 0).Payload}}), "the payload has another zxid")
	require.Error(t, s.Append([]zab.Entry{{Zxid: 3, Payload: make([]byte, 31)}}))

	// None of that did any harm, and nothing of it was taken.
	appendSync(t, s, txn(3, 1, 999), txn(zxid.Make(2, 1), 1, 0))
	require.NoError(t, s.Close())
	s, entries, err := reopen(t, m, cfg)
	require.NoError(t, err)
	require.Equal(t, []zxid.Zxid{1, 2, 3, zxid.Make(2, 1)}, zxids(entries))
	require.NoError(t, s.Close())
}

// A directory stays readable when the record limit was lowered.
func TestRecordLimitIsForWriting(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	appendSync(t, s, txn(1, 1, 2_000_000), txn(2, 1, 0))
	require.NoError(t, s.Close())
	cfg := testConfig()
	cfg.RecordBytesMax = 1000
	s, entries, err := reopen(t, m, cfg)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, txn(1, 1, 2_000_000), entries[0])
	require.NoError(t, s.Close())
}

func TestSnapshotDue(t *testing.T) {
	count := func(cfg Config, size int) int {
		s := newStore(t, vfs.NewMem(), cfg)
		defer s.crash()
		last := zxid.Zxid(0)
		round := func() (n int) {
			for !s.SnapshotDue() {
				last++
				n++
				appendSync(t, s, txn(last, 1, size))
			}
			return n
		}
		first := round()
		s.SnapshotStarted()
		require.False(t, s.SnapshotDue())
		again := round()
		require.NotZero(t, again)
		return first
	}
	seen := map[int]bool{}
	for seed := range uint64(30) {
		cfg := testConfig()
		cfg.Rand = rand.New(rand.NewPCG(seed, 9))
		n := count(cfg, 0)
		require.Greater(t, n, cfg.SnapCount/2)
		require.LessOrEqual(t, n, cfg.SnapCount+1)
		seen[n] = true
	}
	require.Greater(t, len(seen), 5, "the limit is spread")

	cfg := testConfig()
	cfg.SnapSizeLimitBytes = 10000
	n := count(cfg, 1000)
	require.Greater(t, n, 4)
	require.LessOrEqual(t, n, 10)
	cfg.SnapSizeLimitBytes = -1
	require.Greater(t, count(cfg, 1000), 50)
	cfg.SnapCount = -5
	require.Equal(t, 2, count(cfg, 0), "two transactions at least")
}

func TestSnapshotStartedRolls(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	appendSync(t, s, txns(1, 3)...)
	require.NoError(t, s.Append(txns(4, 5)))
	s.SnapshotStarted() // what waits goes to the old log
	appendSync(t, s, txns(6, 7)...)
	s.SnapshotStarted()
	s.SnapshotStarted()
	first, end, err := referenceLog(readFile(t, m, log1))
	require.NoError(t, err)
	require.Equal(t, txnIDs(1, 5), zxids(first))
	require.Len(t, readFile(t, m, log1), end, "a finished log is trimmed")
	second, _, err := referenceLog(readFile(t, m, "/data/version-2/log.6"))
	require.NoError(t, err)
	require.Equal(t, txnIDs(6, 7), zxids(second))
	require.NoError(t, s.Close())
}

func TestLogSizeLimit(t *testing.T) {
	m := vfs.NewMem()
	cfg := testConfig()
	cfg.LogSizeLimitBytes = 1000
	s := newStore(t, m, cfg)
	for z := zxid.Zxid(1); z <= 9; z++ {
		appendSync(t, s, txn(z, 1, 320))
	}
	require.NoError(t, s.Close())
	names, err := m.List("/data/version-2")
	require.NoError(t, err)
	require.Equal(t, []zxid.Zxid{1, 4, 7}, logNames(names), "three records and the header are over the limit")
	require.Equal(t, uint64(3), s.Stats().LogFiles)
}

// Padding grows by ZooKeeper's rule, and real zeros never run over records that were written meanwhile.
func TestPreallocation(t *testing.T) {
	for _, inline := range []bool{true, false} {
		m := vfs.NewMem()
		cfg := testConfig()
		cfg.PreAllocBytes = 3 << 20
		if !inline {
			cfg.Go = nil
		}
		s := newStore(t, m, cfg)
		var want []zab.Entry
		last := zxid.Zxid(0)
		for range 60 {
			last++
			e := txn(last, 3, 150<<10)
			want = append(want, e)
			appendSync(t, s, e)
			info, err := m.Stat(log1)
			require.NoError(t, err)
			require.Zero(t, (info.Size-fileHeaderBytes)%cfg.PreAllocBytes)
			require.GreaterOrEqual(t, info.Size, s.appender.live.end)
		}
		require.Greater(t, s.appender.live.size, 3*cfg.PreAllocBytes)
		s.background.Wait()
		require.GreaterOrEqual(t, s.appender.live.zero.done, min(s.appender.live.end+zeroAheadLowBytes, s.appender.live.size))
		s.crash()
		s, entries, err := reopen(t, m, cfg)
		require.NoError(t, err)
		require.Equal(t, want, entries)
		s.crash()
	}
}

// The appender waits for zeros that are being written where it wants to write.
func TestAppenderWaitsForZeros(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	cfg := testConfig()
	cfg.PreAllocBytes, cfg.Go = 8<<20, nil
	s := newStore(t, fault, cfg)
	var once sync.Once
	entered, started := make(chan struct{}), make(chan *liveLog, 1)
	written := make(chan struct{}) // the second batch is in the file
	fault.Observe(func(op vfs.Op, err error) {
		if op.Kind == vfs.KindWrite && op.Name == log1 && op.Len == 1049 {
			close(written)
		}
	})
	fault.Inject(func(op vfs.Op) error {
		if op.Kind == vfs.KindWrite && op.Name == log1 && op.Len == zeroChunkBytes {
			once.Do(func() {
				// Until the appender is at the door, and a moment longer for one that would not wait there.
				close(entered)
				live := <-started
				for claimed := false; !claimed; runtime.Gosched() {
					live.zero.Lock()
					claimed = live.zero.claimed > op.Off
					live.zero.Unlock()
				}
				select {
				case <-written:
				case <-time.After(30 * time.Millisecond):
				}
			})
		}
		return nil
	})
	appendSync(t, s, txns(1, 1)...)
	started <- s.appender.live
	<-entered
	appendSync(t, s, txn(2, 1, 1036))
	require.NoError(t, s.Close())
	fault.Inject(nil)
	s, entries, err := reopen(t, fault, cfg)
	require.NoError(t, err)
	require.Equal(t, append(txns(1, 1), txn(2, 1, 1036)), entries)
	require.NoError(t, s.Close())
}

// Readers of a running store see what is durable, and only that, while it goes on.
func TestReadWhileAppending(t *testing.T) {
	m := vfs.NewMem()
	cfg := testConfig()
	cfg.Go = nil
	cfg.LogSizeLimitBytes = 20000
	s := newStore(t, m, cfg)
	entries, err := readLog(s, 0)
	require.NoError(t, err)
	require.Empty(t, entries)
	var durable struct {
		sync.Mutex
		z zxid.Zxid
	}
	read := func() zxid.Zxid {
		durable.Lock()
		defer durable.Unlock()
		return durable.z
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for z := zxid.Zxid(1); z <= 400; z++ {
			if s.Append([]zab.Entry{txn(z, 1, 500)}) != nil || s.Sync() != nil {
				return
			}
			durable.Lock()
			durable.z = z
			durable.Unlock()
		}
	}()
	for before := zxid.Zxid(0); before < 400; {
		before = read()
		after := zxid.Zxid(0)
		if before > 50 {
			after = before - 50
		}
		r, err := s.OpenLog(after)
		require.NoError(t, err)
		last := after
		for {
			e, err := r.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			require.Equal(t, last+1, e.Zxid)
			last = e.Zxid
		}
		require.NoError(t, r.Close())
		require.GreaterOrEqual(t, last, before)
		require.LessOrEqual(t, last, read()+1)
	}
	<-done
	require.NoError(t, s.err())
	require.NoError(t, s.Close())
}

// Damage in the durable part of the log is noticed by readers of a running store.
func TestReadDamageWhileRunning(t *testing.T) {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	appendSync(t, s, txns(1, 5)...)
	offs := offsets(t, m, log1)
	patchFile(t, m, log1, offs[4]+30, []byte{0xee})
	_, err := readLog(s, 2)
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, offs[4], corrupt.Offset)
	require.NoError(t, s.Close())
}

// With syncs switched off nothing is synced for a commit, and the mark promises nothing.
func TestNoForceSync(t *testing.T) {
	m := vfs.NewMem()
	fault := vfs.NewFault(m)
	cfg := testConfig()
	cfg.NoForceSync = true
	s := newStore(t, fault, cfg)
	appendSync(t, s, txns(1, 1)...)
	before := fault.Syncs()
	for z := zxid.Zxid(2); z < 50; z++ {
		appendSync(t, s, txns(z, z)...)
	}
	require.Equal(t, before, fault.Syncs())
	require.Zero(t, s.state.rec.log.End)
	require.NoError(t, s.Close())
	s, entries, err := reopen(t, m, cfg)
	require.NoError(t, err)
	require.Equal(t, txnIDs(1, 49), zxids(entries))
	require.NoError(t, s.Close())
}

func TestStats(t *testing.T) {
	now := time.Unix(0, 0)
	cfg := testConfig()
	cfg.SyncWarn = 50 * time.Millisecond
	cfg.Now = func() time.Time { now = now.Add(10 * time.Millisecond); return now }
	s := newStore(t, vfs.NewMem(), cfg)
	appendSync(t, s, txns(1, 3)...)
	cfg.Now = nil
	appendSync(t, s, txns(4, 4)...)
	st := s.Stats()
	require.Equal(t, uint64(2), st.Syncs)
	require.Equal(t, 20*time.Millisecond, st.SyncTotal)
	require.Equal(t, 10*time.Millisecond, st.SyncMax)
	require.Equal(t, uint64(2), st.SyncHistogram[14], "10 ms are between 8,192 and 16,384 microseconds")
	require.Zero(t, st.SyncsSlow)
	require.Equal(t, uint64(4), st.Records)
	require.Equal(t, uint64(4*(36+13)), st.LogBytes)
	require.Equal(t, uint64(1), st.Snapshots)

	s.stats.synced(50 * time.Millisecond)
	s.stats.synced(time.Hour)
	require.Equal(t, uint64(2), s.Stats().SyncsSlow)
	require.Equal(t, uint64(1), s.Stats().SyncHistogram[syncBuckets-1])
	s.ResetSlowSyncs()
	require.Zero(t, s.Stats().SyncsSlow)
	s.SetSyncWarn(2 * time.Hour)
	s.stats.synced(time.Hour)
	require.Zero(t, s.Stats().SyncsSlow)
	s.SetSyncWarn(0)
	s.stats.synced(time.Second)
	require.Equal(t, uint64(1), s.Stats().SyncsSlow, "0 is the default of a second")
	snap, log := s.Sizes()
	require.Equal(t, snap, log)
	require.Equal(t, int64(16+64<<10)+stateFileBytes+112, snap, "log, state file, snapshot")
	require.NoError(t, s.Close())
}
