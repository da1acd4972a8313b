package storage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// longLog returns a store with many logs of one epoch, three snapshots at their ends, and the log purged up to the first.
func longLog(t testing.TB, fsys vfs.FS, cfg Config, size int) *Store {
	t.Helper()
	cfg.Verify = checkSnapshot
	s := newStore(t, fsys, cfg)
	for z := zxid.Zxid(1); z <= 50; z++ {
		require.NoError(t, s.Append([]zab.Entry{txn(z, 1, size)}))
		if z%10 == 0 {
			s.SnapshotStarted()
			require.NoError(t, writeSnapshot(s, z, size))
		}
	}
	appendSync(t, s, txn(51, 1, size))
	require.NoError(t, s.Purge(3, checkSnapshot))
	return s
}

func TestHistoryChoice(t *testing.T) {
	whole := zab.SnapshotFile{Zxid: 50, Name: "snapshot.32"}
	older := zab.SnapshotFile{Zxid: 40, Name: "snapshot.28"}
	tests := []struct {
		name      string
		logServed int64
		factor    float64
		req       zab.HistoryRequest
		snapshot  *zab.SnapshotFile
		offset    int64
		prev      zxid.Zxid
		entries   int
		err       error
	}{
		{name: "level", req: zab.HistoryRequest{After: 51}, prev: 51},
		{name: "ahead", req: zab.HistoryRequest{After: 60}, prev: 51},
		{name: "ahead in another epoch", req: zab.HistoryRequest{After: zxid.Make(4, 2)}, prev: 51},
		{name: "small log", logServed: 1 << 20, req: zab.HistoryRequest{After: 30}, prev: 30, entries: 21},
		{name: "before the first log by one", logServed: 1 << 20, req: zab.HistoryRequest{After: 20}, prev: 20, entries: 31},
		{name: "purged", logServed: 1 << 20, req: zab.HistoryRequest{After: 19}, snapshot: &whole},
		{name: "purged, log only", req: zab.HistoryRequest{After: 19, LogOnly: true}, err: errTooOld},
		{name: "empty disk", req: zab.HistoryRequest{}, snapshot: &whole},
		{name: "long log", req: zab.HistoryRequest{After: 30}, snapshot: &whole},
		{name: "long log, log only", req: zab.HistoryRequest{After: 30, LogOnly: true}, prev: 30, entries: 21},
		{name: "long log, snapshot behind", req: zab.HistoryRequest{After: 50}, prev: 50, entries: 1},
		{name: "never the log", logServed: 1 << 20, factor: -1, req: zab.HistoryRequest{After: 49}, snapshot: &whole},
		{name: "the log, however long", factor: math.Inf(1), req: zab.HistoryRequest{After: 30}, prev: 30, entries: 21},
		{name: "resumed", req: zab.HistoryRequest{After: 3, Resume: zab.SnapshotProgress{From: 5, File: older, Offset: 9}}, snapshot: &older, offset: 9},
		{name: "resumed, of another server", req: zab.HistoryRequest{After: 3, Resume: zab.SnapshotProgress{From: 6, File: older, Offset: 9}}, snapshot: &whole},
		{name: "resumed, purged", req: zab.HistoryRequest{After: 3, Resume: zab.SnapshotProgress{From: 5, File: zab.SnapshotFile{Zxid: 10, Name: "snapshot.a"}, Offset: 9}}, snapshot: &whole},
		{name: "resumed behind the end", req: zab.HistoryRequest{After: 3, Resume: zab.SnapshotProgress{From: 5, File: older, Offset: 1 << 40}}, snapshot: &whole},
	}
	cfg := testConfig()
	cfg.ID = 5
	s := longLog(t, vfs.NewMem(), cfg, 1000)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.logServed, s.cfg.SnapshotSizeFactor = tt.logServed, tt.factor
			if tt.factor == 0 {
				s.cfg.SnapshotSizeFactor = snapshotSizeFactorDefault
			}
			tt.req.Conn = 3
			h := s.History(tt.req, 1<<20)
			require.ErrorIs(t, h.Err, tt.err)
			require.Equal(t, tt.req.After, h.After)
			require.Equal(t, zab.ConnID(3), h.Conn)
			require.Equal(t, tt.snapshot, h.Snapshot)
			require.Equal(t, tt.offset, h.Offset)
			require.Equal(t, tt.prev, h.Prev)
			require.Len(t, h.Entries, tt.entries)
			for i, e := range h.Entries {
				require.Equal(t, txn(tt.prev+zxid.Zxid(i)+1, 1, 1000), e)
			}
			require.Empty(t, s.mu.pins)
		})
	}
	require.NoError(t, s.Close())
}

// A learner whose last transaction is not in the log gets what follows the last one that is; one at the beginning of an
// epoch has everything before that epoch's first transaction.
func TestHistoryAcrossEpochs(t *testing.T) {
	s := newStore(t, vfs.NewMem(), testConfig())
	defer s.Close()
	appendSync(t, s, append(txns(zxid.Make(1, 1), zxid.Make(1, 5)), txns(zxid.Make(4, 1), zxid.Make(4, 3))...)...)
	tests := []struct {
		after, prev zxid.Zxid
		entries     int
	}{
		{0, 0, 8},
		{zxid.Make(1, 0), zxid.Make(1, 0), 8},
		{zxid.Make(1, 4), zxid.Make(1, 4), 4},
		{zxid.Make(1, 9), zxid.Make(1, 5), 3},
		{zxid.Make(2, 0), zxid.Make(1, 5), 3},
		{zxid.Make(3, 7), zxid.Make(1, 5), 3},
		{zxid.Make(4, 0), zxid.Make(4, 0), 3},
		{zxid.Make(4, 3), zxid.Make(4, 3), 0},
		{zxid.Make(4, 4), zxid.Make(4, 3), 0},
		{zxid.Make(5, 0), zxid.Make(4, 3), 0},
	}
	for _, tt := range tests {
		h := s.History(zab.HistoryRequest{After: tt.after}, 1<<20)
		require.NoError(t, h.Err)
		require.Equal(t, tt.prev, h.Prev, tt.after)
		require.Len(t, h.Entries, tt.entries, tt.after)
	}
}

// Catching up in small steps reads each byte of the log once, for several learners at a time, and not from the beginning
// of the file for each step.
func TestHistoryGoesOnWhereItStopped(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	s := newStore(t, fault, testConfig())
	const count, size, learners = 2000, 1000, 3
	for z := zxid.Zxid(1); z <= count; z++ {
		require.NoError(t, s.Append([]zab.Entry{txn(z, 1, size)}))
		if z%500 == 0 {
			s.SnapshotStarted()
		}
	}
	require.NoError(t, s.Sync())
	opened := map[string]int{}
	lowest := map[string]int64{}
	fault.Observe(func(op vfs.Op, err error) {
		switch op.Kind {
		case vfs.KindOpen:
			opened[op.Name]++
		case vfs.KindRead:
			lowest[op.Name] += op.Len
		}
	})
	var after [learners]zxid.Zxid
	steps := 0
	for after != [learners]zxid.Zxid{count, count, count} {
		for i := range after {
			h := s.History(zab.HistoryRequest{Conn: zab.ConnID(i + 1), After: after[i]}, 40_000)
			require.NoError(t, h.Err)
			require.Equal(t, after[i], h.Prev)
			for _, e := range h.Entries {
				after[i]++
				require.Equal(t, after[i], e.Zxid)
			}
			steps++
		}
	}
	read := int64(0)
	for _, n := range lowest {
		read += n
	}
	// Each step reads a buffer ahead of which it uses a part; from the beginning it would be half a log per step.
	require.Less(t, read, int64(steps*(readBufferBytes+1000)))
	require.NoError(t, s.Close())
}

// The answers fit the model while the log grows, rolls over and is purged: nothing that is not durable, nothing missing.
func TestHistoryBesideTheAppender(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { historyBesideTheAppender(t, seed) })
	}
}

// model is what was appended, and up to which index it may be and is durable.
type model struct {
	sync.Mutex
	all              []zab.Entry
	started, durable int
	purged           zxid.Zxid // the oldest snapshot that is kept
}

func historyBesideTheAppender(t *testing.T, seed uint64) {
	cfg := testConfig()
	cfg.LogSizeLimitBytes, cfg.Verify, cfg.Go = 20_000, checkSnapshot, nil
	s := newStore(t, vfs.NewMem(), cfg)
	m := &model{}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for i := range uint64(3) {
		readers.Add(1)
		go func() {
			defer readers.Done()
			rng := rand.New(rand.NewPCG(seed, i))
			after, chained := zxid.Zxid(0), false
			for {
				select {
				case <-done:
					return
				default:
				}
				if !chained || rng.IntN(50) == 0 {
					after = m.anyZxid(rng)
				}
				after, chained = m.ask(t, s, zab.HistoryRequest{Conn: zab.ConnID(i), After: after, LogOnly: rng.IntN(4) > 0}, rng.IntN(5000))
			}
		}()
	}
	m.grow(t, s, rand.New(rand.NewPCG(seed, 100)))
	close(done)
	readers.Wait()
	require.NoError(t, s.Close())
}

func (m *model) grow(t *testing.T, s *Store, rng *rand.Rand) {
	last := zxid.Zxid(0)
	var snapshots []zxid.Zxid
	for step := range 400 {
		var entries []zab.Entry
		for range 1 + rng.IntN(5) {
			if last++; rng.IntN(40) == 0 {
				last = zxid.Make(last.Epoch()+1+zxid.Epoch(rng.IntN(2)), 1)
			}
			entries = append(entries, txn(last, 1, rng.IntN(2000)))
		}
		m.Lock()
		m.all = append(m.all, entries...)
		m.started = len(m.all)
		m.Unlock()
		appendSync(t, s, entries...)
		m.Lock()
		m.durable = len(m.all)
		m.Unlock()
		if step%40 != 39 {
			continue
		}
		s.SnapshotStarted()
		require.NoError(t, writeSnapshot(s, last, 100))
		if snapshots = append(snapshots, last); len(snapshots) >= 3 {
			m.Lock()
			m.purged = snapshots[len(snapshots)-3]
			m.Unlock()
			require.NoError(t, s.Purge(3, checkSnapshot))
		}
	}
}

// anyZxid returns one that was appended, or one near it that was not.
func (m *model) anyZxid(rng *rand.Rand) zxid.Zxid {
	m.Lock()
	defer m.Unlock()
	if len(m.all) == 0 {
		return 0
	}
	z := m.all[rng.IntN(len(m.all))].Zxid
	if rng.IntN(3) == 0 {
		z += zxid.Zxid(rng.IntN(20))
	}
	return z
}

// ask compares one answer and returns where to go on.
func (m *model) ask(t *testing.T, s *Store, req zab.HistoryRequest, bytesMax int) (zxid.Zxid, bool) {
	m.Lock()
	durable := m.durable
	m.Unlock()
	h := s.History(req, bytesMax)
	m.Lock()
	defer m.Unlock()
	if h.Err != nil || h.Snapshot != nil {
		if h.Err != nil && !(req.LogOnly && req.After < m.purged) || h.Snapshot != nil && req.After >= m.purged {
			t.Errorf("after %v: %v, %v, though everything behind %v is kept", req.After, h.Snapshot, h.Err, m.purged)
		}
		return 0, false
	}
	next := 0 // index of the first entry after req.After
	for next < len(m.all) && m.all[next].Zxid <= req.After {
		next++
	}
	begin := 0 // where the answer begins; before next only if the log ended there at that moment
	for begin < len(m.all) && m.all[begin].Zxid <= h.Prev {
		begin++
	}
	if begin > 0 && m.all[begin-1].Zxid != h.Prev || begin == 0 && h.Prev != 0 || begin > next ||
		begin < next && (begin < durable || len(h.Entries) > 0) {
		t.Errorf("after %v: the answer goes on behind %v with %d entries", req.After, h.Prev, len(h.Entries))
		return 0, false
	}
	if len(h.Entries) == 0 && next < durable || next+len(h.Entries) > m.started {
		t.Errorf("after %v: %d entries, of %d durable and %d begun", req.After, len(h.Entries), durable-next, m.started-next)
		return 0, false
	}
	sum := 0
	for i, e := range h.Entries {
		want := m.all[next+i]
		sum += len(e.Payload)
		if e.Zxid != want.Zxid || string(e.Payload) != string(want.Payload) || i > 0 && sum > bytesMax {
			t.Errorf("after %v: entry %v in the place of %v", req.After, e.Zxid, want.Zxid)
			return 0, false
		}
	}
	if len(h.Entries) == 0 {
		return 0, false
	}
	return h.Entries[len(h.Entries)-1].Zxid, true
}
