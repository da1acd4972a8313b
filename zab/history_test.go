package zab

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
	"zabra/zab/zxid"
)

// entries makes transactions of so many bytes each.
func entries(bytes int, ids ...zxid.Zxid) (list []Entry) {
	for _, z := range ids {
		list = append(list, Entry{Zxid: z, Payload: make([]byte, bytes)})
	}
	return list
}

func zxids(list []Entry) []zxid.Zxid {
	ids := []zxid.Zxid{}
	for _, e := range list {
		ids = append(ids, e.Zxid)
	}
	return ids
}

func TestHistoryFollows(t *testing.T) {
	cases := []struct {
		prev, next zxid.Zxid
		want       bool
	}{
		{0, zxid.Make(1, 1), true},
		{0, zxid.Make(1, 2), false},
		{0, 1, true},
		{zxid.Make(1, 1), zxid.Make(1, 2), true},
		{zxid.Make(1, 1), zxid.Make(1, 3), false},
		{zxid.Make(1, 1), zxid.Make(1, 1), false},
		{zxid.Make(1, 2), zxid.Make(1, 1), false},
		{zxid.Make(1, 7), zxid.Make(2, 1), true},
		{zxid.Make(1, 7), zxid.Make(5, 1), true},
		{zxid.Make(1, 7), zxid.Make(2, 0), false},
		{zxid.Make(1, 7), zxid.Make(2, 2), false},
		{zxid.Make(2, 1), zxid.Make(1, 1), false},
		{zxid.Make(1, zxid.CounterMax), zxid.Make(1, zxid.CounterMax+1), false},
		{zxid.Make(1, zxid.CounterMax), zxid.Make(2, 1), true},
		{zxid.Make(1, 1), -1, false},
	}
	for _, c := range cases {
		require.Equal(t, c.want, follows(c.prev, c.next), "%v after %v", c.next, c.prev)
	}
}

func TestHistoryAppendAndAfter(t *testing.T) {
	h := newHistory(zxid.Make(1, 2), zxid.Make(1, 1), []zxid.Zxid{zxid.Make(1, 2)})
	require.Equal(t, zxid.Make(1, 2), h.last())
	h.append(entries(1, zxid.Make(1, 3), zxid.Make(1, 4), zxid.Make(3, 1)))
	require.Equal(t, zxid.Make(3, 1), h.last())
	require.Equal(t, []zxid.Zxid{zxid.Make(1, 4), zxid.Make(3, 1)}, h.ends)
	require.Equal(t, 3*(1+entryOverheadBytes), h.bytes)

	cases := []struct {
		name    string
		z, upTo zxid.Zxid
		want    []zxid.Zxid
		ok      bool
	}{
		{"all", zxid.Make(1, 2), zxid.Make(3, 1), []zxid.Zxid{zxid.Make(1, 3), zxid.Make(1, 4), zxid.Make(3, 1)}, true},
		{"beyond the end", zxid.Make(1, 2), zxid.Make(9, 9), []zxid.Zxid{zxid.Make(1, 3), zxid.Make(1, 4), zxid.Make(3, 1)}, true},
		{"a part", zxid.Make(1, 3), zxid.Make(1, 4), []zxid.Zxid{zxid.Make(1, 4)}, true},
		{"up to between two", zxid.Make(1, 3), zxid.Make(2, 5), []zxid.Zxid{zxid.Make(1, 4)}, true},
		{"nothing behind the last", zxid.Make(3, 1), zxid.Make(9, 9), nil, true},
		{"up to before", zxid.Make(1, 4), zxid.Make(1, 2), nil, true},
		{"before memory", zxid.Make(1, 1), zxid.Make(3, 1), nil, false},
		{"between two", zxid.Make(2, 1), zxid.Make(3, 1), nil, false},
		{"after the last", zxid.Make(3, 2), zxid.Make(9, 9), nil, false},
	}
	for _, c := range cases {
		got, ok := h.after(c.z, c.upTo)
		require.Equal(t, c.ok, ok, c.name)
		require.Equal(t, c.ok, h.has(c.z), c.name)
		require.Equal(t, append([]zxid.Zxid{}, c.want...), zxids(got), c.name)
	}
}

// What was handed out does not change, whatever happens to the history.
func TestHistoryHandsOutWhatStays(t *testing.T) {
	h := newHistory(0, 0, nil)
	h.append(entries(1, zxid.Make(1, 1), zxid.Make(1, 2), zxid.Make(1, 3)))
	out, _ := h.after(0, zxid.Make(1, 3))
	h.truncate(zxid.Make(1, 1))
	h.append(entries(1, zxid.Make(2, 1), zxid.Make(2, 2)))
	require.Equal(t, []zxid.Zxid{zxid.Make(1, 1), zxid.Make(1, 2), zxid.Make(1, 3)}, zxids(out))
	part, _ := h.after(0, zxid.Make(1, 1))
	_ = append(part, entries(1, zxid.Make(7, 7))...) // as a careless caller would
	all, _ := h.after(0, zxid.Make(9, 9))
	require.Equal(t, []zxid.Zxid{zxid.Make(1, 1), zxid.Make(2, 1), zxid.Make(2, 2)}, zxids(all))
}

func TestHistoryTruncate(t *testing.T) {
	full := func() history {
		h := newHistory(zxid.Make(2, 1), zxid.Make(1, 2), []zxid.Zxid{zxid.Make(1, 5), zxid.Make(2, 1)})
		h.append(entries(10, zxid.Make(2, 2), zxid.Make(4, 1), zxid.Make(4, 2)))
		return h
	}
	cases := []struct {
		to    zxid.Zxid
		left  int
		ends  []zxid.Zxid
		after bool // whether memory still begins before
	}{
		{zxid.Make(4, 2), 3, []zxid.Zxid{zxid.Make(1, 5), zxid.Make(2, 2), zxid.Make(4, 2)}, true},
		{zxid.Make(4, 1), 2, []zxid.Zxid{zxid.Make(1, 5), zxid.Make(2, 2), zxid.Make(4, 1)}, true},
		{zxid.Make(2, 2), 1, []zxid.Zxid{zxid.Make(1, 5), zxid.Make(2, 2)}, true},
		{zxid.Make(2, 1), 0, []zxid.Zxid{zxid.Make(1, 5), zxid.Make(2, 1)}, true},
		{zxid.Make(1, 5), 0, []zxid.Zxid{zxid.Make(1, 5)}, false},
		{zxid.Make(1, 2), 0, []zxid.Zxid{zxid.Make(1, 2)}, false},
	}
	for _, c := range cases {
		h := full()
		h.truncate(c.to)
		require.Equal(t, c.to, h.last(), "to %v", c.to)
		require.Len(t, h.entries, c.left, "to %v", c.to)
		require.Equal(t, c.left*(10+entryOverheadBytes), h.bytes, "to %v", c.to)
		require.Equal(t, c.ends, h.ends, "to %v", c.to)
		require.Equal(t, c.after, h.has(zxid.Make(2, 1)), "to %v", c.to)
		h.append(entries(1, zxid.Make(9, 1)))
		require.Equal(t, zxid.Make(9, 1), h.last())
	}
}

func TestHistoryReset(t *testing.T) {
	h := newHistory(0, 0, nil)
	h.append(entries(5, zxid.Make(1, 1)))
	h.reset(zxid.Make(3, 4))
	require.Equal(t, zxid.Make(3, 4), h.last())
	require.Equal(t, zxid.Make(3, 4), h.floor)
	require.Equal(t, []zxid.Zxid{zxid.Make(3, 4)}, h.ends)
	require.Zero(t, h.bytes)
	require.False(t, h.has(zxid.Make(1, 1)))
}

func TestHistoryTrim(t *testing.T) {
	cases := []struct {
		name            string
		bytes           int // of each payload
		upTo            uint32
		countMin, limit int
		left            int
	}{
		{"few and small", 1, 10, 3, 10 * (1 + entryOverheadBytes), 10},
		{"many, and too many bytes for that", 10, 10, 3, 5 * (10 + entryOverheadBytes), 5},
		{"few, and far too many bytes", 100, 10, 20, 5 * (100 + entryOverheadBytes) / 4, 5},
		{"down to the fewest", 10, 10, 8, 3 * (10 + entryOverheadBytes), 8},
		{"not what is still needed", 100, 4, 0, 10, 6},
		{"by number alone", 1, 10, 3, 0, 3},
		{"everything", 1, 10, 0, 0, 0},
		{"everything, though the payloads are empty", 0, 10, 0, 0, 0},
	}
	for _, c := range cases {
		h := newHistory(0, 0, nil)
		for i := range uint32(10) {
			h.append(entries(c.bytes, zxid.Make(1, i+1)))
		}
		held, _ := h.after(0, zxid.Make(1, 10))
		h.trim(zxid.Make(1, c.upTo), c.countMin, c.limit)
		require.Len(t, h.entries, c.left, c.name)
		require.Equal(t, c.left*(c.bytes+entryOverheadBytes), h.bytes, c.name)
		require.Equal(t, zxid.Make(1, 10), h.last(), c.name)
		require.Equal(t, []zxid.Zxid{zxid.Make(1, 10)}, h.ends[len(h.ends)-1:], c.name)
		_, ok := h.after(h.prev, zxid.Make(1, 10))
		require.True(t, ok, c.name)
		require.Len(t, held, 10, c.name)
		require.Equal(t, zxid.Make(1, 1), held[0].Zxid, c.name)
	}
}

// Only the newest ends are kept; they are still the true ones.
func TestHistoryKeepsTheNewestEnds(t *testing.T) {
	h := newHistory(0, 0, nil)
	for e := range zxid.Epoch(EndsMax + 20) {
		h.append(entries(1, zxid.Make(e+1, 1), zxid.Make(e+1, 2)))
	}
	require.Len(t, h.ends, EndsMax)
	require.Equal(t, zxid.Make(EndsMax+20, 2), h.ends[EndsMax-1])
	require.Equal(t, zxid.Make(21, 2), h.ends[0])
}

// zabLogs draws the logs of a few servers as ZAB can leave them: a leader of a new epoch begins with the whole log of
// one server and adds to it; the others get a prefix of that, by a synchronisation that may break off at any point.
func zabLogs(t *rapid.T) [][]zxid.Zxid {
	logs := make([][]zxid.Zxid, 3)
	epoch := zxid.Epoch(0)
	for range rapid.IntRange(0, 12).Draw(t, "reigns") {
		epoch += zxid.Epoch(rapid.IntRange(1, 3).Draw(t, "epochs skipped"))
		leader := rapid.IntRange(0, 2).Draw(t, "leader")
		log := slices.Clone(logs[leader])
		for c := range uint32(rapid.IntRange(0, 4).Draw(t, "proposals")) {
			log = append(log, zxid.Make(epoch, c+1))
		}
		logs[leader] = log
		for i := range logs {
			if i == leader || rapid.Bool().Draw(t, "absent") {
				continue
			}
			// A synchronisation cuts what is not shared and then only adds.
			from := prefix(logs[i], log)
			logs[i] = slices.Clone(log[:rapid.IntRange(from, len(log)).Draw(t, "reached")])
		}
	}
	return logs
}

// prefix is how many transactions two logs have in common, found by comparing them.
func prefix(a, b []zxid.Zxid) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func endsOf(base zxid.Zxid, log []zxid.Zxid) []zxid.Zxid {
	h := history{ends: []zxid.Zxid{base}}
	for _, z := range log {
		h.noteEnd(z)
	}
	return h.ends
}

// common finds exactly the point where two logs part, from the ends of their epochs, when both are known from the
// beginning.
func TestHistoryCommonIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logs := zabLogs(t)
		ours, theirs := logs[0], logs[1]
		h := history{prev: 0, ends: endsOf(0, ours)}
		h.append(entries(0, ours...))
		got := h.common(endsOf(0, theirs))
		require.Equal(t, shared{point: pointOf(ours, prefix(ours, theirs)), exact: true}, got, "ours %v, theirs %v", ours, theirs)
	})
}

func pointOf(log []zxid.Zxid, n int) zxid.Zxid {
	if n == 0 {
		return 0
	}
	return log[n-1]
}

// When one of them or both begin at a snapshot, the answer is exact, or says that the disk knows, or bounds the point
// from above; a snapshot at least as new as the bound holds all that is shared.
func TestHistoryCommonOfCutLogs(t *testing.T) {
	answers := map[shared]int{}
	rapid.Check(t, func(t *rapid.T) {
		logs := zabLogs(t)
		ours, theirs := logs[0], logs[1]
		point := pointOf(ours, prefix(ours, theirs))
		cutOurs, cutTheirs := rapid.IntRange(0, len(ours)).Draw(t, "cut ours"), rapid.IntRange(0, len(theirs)).Draw(t, "cut theirs")
		h := newHistory(pointOf(ours, len(ours)), pointOf(ours, cutOurs), endsOf(pointOf(ours, cutOurs), ours[cutOurs:]))
		got := h.common(endsOf(pointOf(theirs, cutTheirs), theirs[cutTheirs:]))
		answers[shared{exact: got.exact, onDisk: got.onDisk}]++
		switch {
		case got.exact:
			require.Equal(t, point, got.point, "ours %v from %d, theirs %v from %d", ours, cutOurs, theirs, cutTheirs)
		case got.onDisk:
			// Of that epoch the other log has everything up to the point, and this one's disk tells how far it goes along.
			require.Contains(t, append(theirs, 0), got.point)
			require.GreaterOrEqual(t, got.point, point)
			require.Equal(t, diskPoint(ours, got.point), min(point, diskPoint(ours, got.point)), "what the disk finds is shared")
		default:
			require.GreaterOrEqual(t, got.point, point, "ours %v from %d, theirs %v from %d", ours, cutOurs, theirs, cutTheirs)
		}
	})
	require.Len(t, answers, 3, "all kinds of answers were seen: %v", answers)
}

// diskPoint is what startOnDisk makes of the log on disk: the last transaction at or before z, if it is of the same
// epoch; else nothing is known, which 0 stands for.
func diskPoint(log []zxid.Zxid, z zxid.Zxid) zxid.Zxid {
	i, found := slices.BinarySearch(log, z)
	if found {
		return z
	}
	if i > 0 && log[i-1].Epoch() == z.Epoch() {
		return log[i-1]
	}
	return 0
}
