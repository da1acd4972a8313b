package storage

import (
	"encoding/binary"
	"hash/adler32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

const log1 = "/data/version-2/log.1"

// offsets returns where each record of a log begins, and where the last one ends.
func offsets(t *testing.T, m *vfs.Mem, name string) []int64 {
	entries, _, err := referenceLog(readFile(t, m, name))
	require.NoError(t, err)
	offs := []int64{fileHeaderBytes}
	for _, e := range entries {
		offs = append(offs, offs[len(offs)-1]+int64(len(e.Payload))+recordOverheadBytes)
	}
	return offs
}

// killed makes a directory with log.1 holding n transactions, one commit each, as a killed process leaves it.
func killed(t *testing.T, n int, size int) *vfs.Mem {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	for z := range n {
		appendSync(t, s, txn(zxid.Zxid(z+1), 1, size))
	}
	s.crash()
	return m
}

// forgetMark takes the state file back to what it says before the log has its name.
func forgetMark(t *testing.T, m *vfs.Mem) {
	t.Helper()
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	require.NotNil(t, s.state)
	require.True(t, s.mark.valid)
	s.state.rec.log.End, s.state.rec.log.Last = 0, 0
	require.NoError(t, s.state.f.Sync())
	require.NoError(t, s.writeState(true))
	s.crash()
}

func TestBadRecord(t *testing.T) {
	const records = 10
	// Each case damages record number bad (from 0) of ten in one way; what is then read depends on what is known.
	damages := map[string]func(m *vfs.Mem, off, end int64){
		"checksum": func(m *vfs.Mem, off, end int64) { patchFile(t, m, log1, off+4, []byte{1}) },
		"payload":  func(m *vfs.Mem, off, end int64) { patchFile(t, m, log1, off+30, []byte{0xee}) },
		"end byte": func(m *vfs.Mem, off, end int64) { patchFile(t, m, log1, end-1, []byte{0}) },
		"length":   func(m *vfs.Mem, off, end int64) { patchFile(t, m, log1, off+8, []byte{0x7f, 0xff, 0xff, 0xff}) },
		"negative": func(m *vfs.Mem, off, end int64) { patchFile(t, m, log1, off+8, []byte{0xff, 0xff, 0xff, 0xff}) },
		"zeros":    func(m *vfs.Mem, off, end int64) { patchFile(t, m, log1, off, make([]byte, end-off)) },
	}
	states := []struct {
		name    string
		prepare func(m *vfs.Mem)
		refuses func(bad int) bool
	}{
		{"the mark is exact", func(m *vfs.Mem) {}, func(bad int) bool { return true }},
		{"the mark was lost, the log is ours", func(m *vfs.Mem) { forgetMark(t, m) }, func(bad int) bool { return false }},
		{"somebody else's log", func(m *vfs.Mem) { require.NoError(t, m.Remove("/data/version-2/zabra.state")) },
			func(bad int) bool { return bad < records-1 }},
		{"stale: the epoch files moved", func(m *vfs.Mem) { writeFile(t, m, "/data/version-2/acceptedEpoch", []byte("5")) },
			func(bad int) bool { return bad < records-1 }},
	}
	for damage, apply := range damages {
		for _, st := range states {
			for _, bad := range []int{1, 5, records - 1} {
				m := killed(t, records, 200)
				offs := offsets(t, m, log1)
				st.prepare(m)
				apply(m, offs[bad], offs[bad+1])
				s, entries, err := reopen(t, m, testConfig())
				what := damage + " of record " + string(rune('0'+bad)) + ", " + st.name
				require.Equal(t, txnIDs(1, zxid.Zxid(bad)), zxids(entries), what)
				if st.refuses(bad) {
					var corrupt *CorruptError
					require.ErrorAs(t, err, &corrupt, what)
					require.Equal(t, log1, corrupt.File)
					require.Equal(t, offs[bad], corrupt.Offset, what)
					require.Equal(t, st.name == states[0].name, strings.Contains(corrupt.Why, "durable up to offset"), corrupt.Why)
					s.crash()
					continue
				}
				require.NoError(t, err, what)
				require.NoError(t, s.Begin(zxid.Zxid(bad)))
				rest := readFile(t, m, log1)[offs[bad]:]
				require.True(t, allZero(rest), "the torn tail is cut off")
				s.crash()
			}
		}
	}
}

// Damage of the first batch means that the log is not recognised any more; the careful rule applies then.
func TestBadFirstBatchOfALogWithoutMark(t *testing.T) {
	m := killed(t, 3, 0)
	forgetMark(t, m)
	patchFile(t, m, log1, 40, []byte{0xee})
	s, _, err := reopen(t, m, testConfig())
	defer s.crash()
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt)
}

// Within one batch behind a bad record a valid one is the trace of a torn write, further on it cannot be.
func TestWindowBehindABadRecord(t *testing.T) {
	tests := []struct {
		size    int
		records int
		refuses bool
	}{
		{size: 100 << 10, records: 10}, // the last record begins 900 KiB behind the bad one
		{size: 100 << 10, records: 13, refuses: true},
		{size: batchBytesMax, records: 3, refuses: true},
	}
	for _, tt := range tests {
		m := killed(t, tt.records, tt.size)
		offs := offsets(t, m, log1)
		forgetMark(t, m)
		patchFile(t, m, log1, offs[1]+50, []byte{0xee, 0xee})
		s, entries, err := reopen(t, m, testConfig())
		require.Equal(t, txnIDs(1, 1), zxids(entries))
		var corrupt *CorruptError
		if tt.refuses {
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, offs[1], corrupt.Offset)
		} else {
			require.NoError(t, err)
		}
		s.crash()
	}
}

// A log of the same name that another server created is not taken for ours, although the state file announced one.
func TestLogOfTheSameNameFromAnotherServer(t *testing.T) {
	m := killed(t, 6, 100)
	forgetMark(t, m)
	b := append([]byte(nil), logHeader[:]...)
	for z := zxid.Zxid(1); z <= 6; z++ {
		b = appendRecord(b, txn(z, 99, 100).Payload) // other sessions
	}
	offs := offsets(t, m, log1)
	b[offs[3]+40] ^= 1
	writeFile(t, m, log1, append(b, make([]byte, 1000)...))
	s, entries, err := reopen(t, m, testConfig())
	defer s.crash()
	require.Equal(t, txnIDs(1, 3), zxids(entries))
	var corrupt *CorruptError
	require.ErrorAs(t, err, &corrupt, "its writer may have acknowledged what follows")
}

func TestDurableTransactionsThatAreGone(t *testing.T) {
	t.Run("the last log is missing", func(t *testing.T) {
		m := vfs.NewMem()
		s := newStore(t, m, testConfig())
		appendSync(t, s, txns(1, 5)...)
		s.SnapshotStarted()
		appendSync(t, s, txns(6, 9)...)
		require.NoError(t, s.Close())
		require.NoError(t, m.Remove("/data/version-2/log.6"))
		s, _, err := reopen(t, m, testConfig())
		defer s.crash()
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt)
		require.Contains(t, corrupt.Why, "the log ends at 0x5, but 0x9 was durable")
		require.Contains(t, corrupt.Do, "delete zabra.state")
	})
	t.Run("the log was cut", func(t *testing.T) {
		m := killed(t, 5, 0)
		offs := offsets(t, m, log1)
		f, err := m.OpenWrite(log1)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(offs[3]))
		require.NoError(t, f.Close())
		s, _, err := reopen(t, m, testConfig())
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt)
		s.crash()
		// By another server that followed a new leader: that is no damage.
		writeFile(t, m, "/data/version-2/acceptedEpoch", []byte("1"))
		writeFile(t, m, "/data/version-2/currentEpoch", []byte("1"))
		s, entries, err := reopen(t, m, testConfig())
		require.NoError(t, err)
		require.Equal(t, txnIDs(1, 3), zxids(entries))
		s.crash()
	})
}

// buildLog writes a log file as another server might have.
func buildLog(t *testing.T, m *vfs.Mem, entries []zab.Entry, tail ...byte) {
	b := append([]byte(nil), logHeader[:]...)
	for _, e := range entries {
		b = appendRecord(b, e.Payload)
	}
	writeFile(t, m, "/data/version-2/"+logName(entries[0].Zxid), append(b, tail...))
}

// foreign makes a directory without a state file: snapshot.0 and nothing else.
func foreign(t *testing.T) *vfs.Mem {
	m := vfs.NewMem()
	s := newStore(t, m, testConfig())
	require.NoError(t, s.Close())
	require.NoError(t, m.Remove("/data/version-2/zabra.state"))
	return m
}

func TestSequenceOfLogs(t *testing.T) {
	record := func(z zxid.Zxid) []byte { return appendRecord(nil, txn(z, 1, 0).Payload) }
	bad := func(z zxid.Zxid) []byte { b := record(z); b[len(b)-1] = 0; return b }
	e1, e2 := zxid.Make(1, 0), zxid.Make(2, 0)
	tests := []struct {
		name  string
		build func(m *vfs.Mem)
		want  []zxid.Zxid
		why   string
	}{
		{name: "one log over two epochs", build: func(m *vfs.Mem) {
			buildLog(t, m, append(txns(e1+1, e1+3), txns(e2+1, e2+2)...))
		}, want: []zxid.Zxid{e1 + 1, e1 + 2, e1 + 3, e2 + 1, e2 + 2}},
		{name: "an epoch without transactions between", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 2))
			buildLog(t, m, txns(e2+1, e2+1))
		}, want: []zxid.Zxid{1, 2, e2 + 1}},
		{name: "an epoch that does not begin at 1", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 2))
			buildLog(t, m, txns(e2+2, e2+2))
		}, want: []zxid.Zxid{1, 2}, why: "0x200000002 comes after 0x2"},
		{name: "hole inside a log", build: func(m *vfs.Mem) {
			buildLog(t, m, append(txns(1, 2), txns(4, 5)...))
		}, want: []zxid.Zxid{1, 2}, why: "0x4 comes after 0x2"},
		{name: "torn tail, and its writer went on in a new log", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), bad(4)...)
			buildLog(t, m, txns(4, 6))
		}, want: txnIDs(1, 6)},
		{name: "lost records, and their writer went on in a new log", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), append(bad(4), record(5)...)...)
			buildLog(t, m, txns(4, 6))
		}, want: txnIDs(1, 6)},
		{name: "lost records, and a new epoch", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), append(bad(4), record(5)...)...)
			buildLog(t, m, txns(e1+1, e1+1))
		}, want: txnIDs(1, 3), why: "another valid transaction"},
		{name: "lost records and a hole", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), append(bad(4), record(5)...)...)
			buildLog(t, m, txns(6, 7))
		}, want: txnIDs(1, 3), why: "another valid transaction"},
		{name: "zeros in the middle", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), append(make([]byte, 5000), record(4)...)...)
		}, want: txnIDs(1, 3), why: "no more records, but at offset"},
		{name: "an old record behind the end", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), append(bad(4), record(2)...)...)
		}, want: txnIDs(1, 3)},
		{name: "overlapping logs", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 6))
			buildLog(t, m, txns(4, 8))
		}, want: txnIDs(1, 8)},
		{name: "a log inside another", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 6))
			buildLog(t, m, txns(4, 5))
		}, want: txnIDs(1, 6)},
		{name: "overlap with a hole behind", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 6))
			buildLog(t, m, append(txns(4, 5), txns(8, 8)...))
		}, want: txnIDs(1, 6), why: "0x8 comes after 0x6"},
		{name: "repeated transaction", build: func(m *vfs.Mem) {
			buildLog(t, m, append(txns(1, 3), txns(3, 4)...))
		}, want: txnIDs(1, 4)},
		{name: "a copy under another name", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3))
			writeFile(t, m, "/data/version-2/log.4", readFile(t, m, log1))
		}, want: txnIDs(1, 3), why: "the first transaction is 0x1"},
		{name: "empty last log whose predecessors are missing", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3))
			writeFile(t, m, "/data/version-2/log.9", nil)
		}, want: txnIDs(1, 3), why: "0x9 comes after 0x3"},
		{name: "last log of zeros only", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3))
			writeFile(t, m, "/data/version-2/log.4", make([]byte, 9000))
		}, want: txnIDs(1, 3)},
		{name: "last log without its first page", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3))
			writeFile(t, m, "/data/version-2/log.4", append(make([]byte, 4096), record(5)...))
		}, want: txnIDs(1, 3), why: "the file has no header, but at offset 4096"},
		{name: "other files", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3))
			for _, name := range []string{"log.2.bak", "log.0004", "snapshot.ff.tmp", "log.xyz", "readme"} {
				writeFile(t, m, "/data/version-2/"+name, []byte("garbage"))
			}
		}, want: txnIDs(1, 3)},
		{name: "impossible zxid", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), appendRecord(nil, txn(-5, 1, 0).Payload)...)
		}, want: txnIDs(1, 3), why: "impossible zxid"},
		{name: "record too short for a transaction", build: func(m *vfs.Mem) {
			buildLog(t, m, txns(1, 3), appendRecord(nil, []byte("short"))...)
		}, want: txnIDs(1, 3), why: "too short for a transaction"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := foreign(t)
			tt.build(m)
			s, entries, err := reopen(t, m, testConfig())
			defer s.crash()
			require.Equal(t, tt.want, zxids(entries))
			if tt.why != "" {
				var corrupt *CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.Contains(t, corrupt.Why, tt.why)
				require.Error(t, s.Begin(tt.want[len(tt.want)-1]))
				return
			}
			require.NoError(t, err)
			last := tt.want[len(tt.want)-1]
			require.NoError(t, s.Begin(last))
			appendSync(t, s, txn(last+1, 1, 0))
			if tt.name == "other files" {
				return // ZooKeeper takes some of them for its own
			}
			_, got, err := referenceLoad(t, m, "/data/version-2")
			require.NoError(t, err)
			require.Equal(t, last+1, got[len(got)-1].Zxid)
		})
	}
}

// What a snapshot covers may be missing from the logs.
func TestHolesBelowTheSnapshot(t *testing.T) {
	m := foreign(t)
	buildLog(t, m, txns(1, 3))
	buildLog(t, m, txns(8, 12))
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	defer s.crash()
	for after := zxid.Zxid(7); after <= 14; after++ {
		entries, err := readLog(s, after)
		require.NoError(t, err)
		require.Equal(t, txnIDs(after+1, 12), zxids(entries))
	}
	for after := zxid.Zxid(0); after < 7; after++ {
		_, err := readLog(s, after)
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt)
	}
	require.ErrorContains(t, s.Begin(11), "the log ends at")
}

// A server that begins writes nothing that was not read, and reads what it was not told to.
func TestBeginReadsWhatNobodyRead(t *testing.T) {
	m := killed(t, 5, 0)
	s, err := Open(m, testConfig())
	require.NoError(t, err)
	require.ErrorIs(t, s.Append(txns(6, 6)), ErrNotBegun)
	require.ErrorIs(t, s.Sync(), ErrNotBegun)
	require.ErrorContains(t, s.Begin(3), "the log ends at 0x5, not at 0x3")
	require.NoError(t, s.Begin(5))
	require.ErrorContains(t, s.Begin(5), "twice")
	appendSync(t, s, txns(6, 6)...)
	require.NoError(t, s.Close())
	s, entries, err := reopen(t, m, testConfig())
	require.NoError(t, err)
	require.Equal(t, txnIDs(1, 6), zxids(entries))
	require.NoError(t, s.Close())
}

// largeRecord writes a log whose last record is larger than any that is read, mostly zeros so that memory stays small. The
// checksum is right if xor is 0; before are bytes in front of it.
func largeRecord(t *testing.T, m *vfs.Mem, before []byte, xor uint32) (size int64) {
	t.Helper()
	const n = recordReadBytesMax + 1
	head := txn(4, 1, 0).Payload
	sum := adler32.New()
	sum.Write(head)
	for left := n - len(head); left > 0; {
		k := min(left, len(zeros))
		sum.Write(zeros[:k])
		left -= k
	}
	b := append([]byte(nil), logHeader[:]...)
	for _, e := range txns(1, 3) {
		b = appendRecord(b, e.Payload)
	}
	b = append(b, before...)
	off := int64(len(b))
	b = binary.BigEndian.AppendUint64(b, uint64(sum.Sum32()^xor))
	b = binary.BigEndian.AppendUint32(b, n)
	writeFile(t, m, log1, append(b, head...))
	size = off + n + recordOverheadBytes
	patchFile(t, m, log1, size-1, []byte{recordEndByte})
	return size
}

// An intact record above the limit was acknowledged by somebody with a higher one: it is refused, not cut off.
func TestRecordAboveTheLimit(t *testing.T) {
	tests := []struct {
		name   string
		before []byte
		xor    uint32
		why    string
	}{
		{name: "intact", why: "limit of 67108864 bytes (jute.maxbuffer)"},
		{name: "torn", xor: 1},
		{name: "intact behind a bad place", before: make([]byte, 50), why: "another valid transaction"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := foreign(t)
			size := largeRecord(t, m, tt.before, tt.xor)
			s, entries, err := reopen(t, m, testConfig())
			defer s.crash()
			require.Equal(t, txnIDs(1, 3), zxids(entries))
			info, statErr := m.Stat(log1)
			require.NoError(t, statErr)
			require.Equal(t, size, info.Size)
			if tt.why == "" {
				require.NoError(t, err)
				require.NoError(t, s.Begin(3))
				return
			}
			var corrupt *CorruptError
			require.ErrorAs(t, err, &corrupt)
			require.Contains(t, corrupt.Why, tt.why)
			require.Error(t, s.Begin(3))
			info, err = m.Stat(log1)
			require.NoError(t, err)
			require.Equal(t, size, info.Size, "nothing was cut")
		})
	}
}
