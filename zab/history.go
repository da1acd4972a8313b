package zab

import (
	"cmp"
	"slices"

	"zabra/zab/zxid"
)

// history is the newest part of the log, held in memory: what is not committed, what is not durable yet, and as many
// older transactions as fit, so that learners can be served without a look at the disk.
//
// Entries are never overwritten in place: messages, persist operations and Ready.Committed hold parts of the same slice.
type history struct {
	// prev is the transaction right before entries.
	prev    zxid.Zxid
	entries []Entry
	bytes   int // of the entries: see entryBytes
	// dropped are the bytes that trim has let go and the slice still holds.
	dropped int
	// room is what a new slice is made for: as many entries as the last one came to hold.
	room int
	// ends are the last transactions of the epochs in the log, as far back as is known, ascending. The last one is the
	// last transaction.
	ends []zxid.Zxid
	// floor is the lowest transaction that the log can be truncated to.
	floor zxid.Zxid
}

func newHistory(last, floor zxid.Zxid, ends []zxid.Zxid) history {
	h := history{prev: last, floor: last, ends: []zxid.Zxid{last}}
	if len(ends) > 0 && ends[len(ends)-1] == last {
		h.floor, h.ends = floor, slices.Clone(ends)
	}
	return h
}

// last is the last transaction of the log.
func (h *history) last() zxid.Zxid {
	if n := len(h.entries); n > 0 {
		return h.entries[n-1].Zxid
	}
	return h.prev
}

// follows reports whether z may come right after prev: the next counter of its epoch, or the first of a later one.
func follows(prev, z zxid.Zxid) bool {
	if z.Epoch() == prev.Epoch() {
		return z == prev+1 && z.Counter() <= zxid.CounterMax
	}
	return z > prev && z.Counter() == zxid.CounterMin
}

// beginning reports whether z stands for the beginning of an epoch later than that of prev. It holds no transaction:
// ZooKeeper names a snapshot so that was taken before the first one of an epoch.
func beginning(prev, z zxid.Zxid) bool { return z.Counter() == 0 && z.Epoch() > prev.Epoch() }

// entryBytes is what a transaction counts in every bound of memory.
func entryBytes(e *Entry) int { return len(e.Payload) + entryOverheadBytes }

// append adds entries that follow the last one.
func (h *history) append(entries []Entry) {
	for i := range entries {
		h.bytes += entryBytes(&entries[i])
		h.noteEnd(entries[i].Zxid)
	}
	if n := len(h.entries) + len(entries); n > cap(h.entries) {
		// By half only, as append does for long slices, a full window would be copied time and again.
		grown := make([]Entry, len(h.entries), max(2*n, h.room))
		copy(grown, h.entries)
		h.entries, h.dropped = grown, 0
	}
	h.entries = append(h.entries, entries...)
}

func (h *history) noteEnd(z zxid.Zxid) {
	if n := len(h.ends); n > 0 && h.ends[n-1].Epoch() == z.Epoch() {
		h.ends[n-1] = z
		return
	}
	h.ends = append(h.ends, z)
	if len(h.ends) > EndsMax {
		h.ends = slices.Delete(h.ends, 0, len(h.ends)-EndsMax)
	}
}

// index returns how many entries are at or before z.
func (h *history) index(z zxid.Zxid) int {
	if len(h.entries) == 0 || z < h.entries[0].Zxid {
		return 0
	}
	// Within an epoch transactions follow one another without a gap.
	if i := int64(z - h.entries[0].Zxid); i < int64(len(h.entries)) && h.entries[i].Zxid == z {
		return int(i) + 1
	}
	i, found := slices.BinarySearchFunc(h.entries, z, func(e Entry, z zxid.Zxid) int { return cmp.Compare(e.Zxid, z) })
	if found {
		i++
	}
	return i
}

// after returns the entries behind z, at most up to and including upTo, and false if z is not in memory.
func (h *history) after(z, upTo zxid.Zxid) ([]Entry, bool) {
	if z < h.prev {
		return nil, false
	}
	i, j := h.index(z), h.index(upTo)
	begins := z.Counter() == 0 && i < len(h.entries) && h.entries[i].Zxid == z+1
	if z != h.prev && !begins && (i == 0 || h.entries[i-1].Zxid != z) {
		return nil, false
	}
	if j <= i {
		return nil, true
	}
	return h.entries[i:j:j], true
}

// has reports whether z is in memory, or right before it.
func (h *history) has(z zxid.Zxid) bool {
	_, ok := h.after(z, z)
	return ok
}

// holds reports whether z is in the log, as far as memory tells: what is older than entries is known by the ends of the
// epochs.
func (h *history) holds(z zxid.Zxid) bool {
	if z >= h.prev {
		return h.has(z)
	}
	for _, end := range h.ends {
		if end.Epoch() == z.Epoch() {
			return z <= end
		}
	}
	return false
}

// truncate makes z the last transaction. It must be at least floor.
func (h *history) truncate(z zxid.Zxid) {
	if z < h.prev {
		h.prev, h.entries, h.bytes = z, nil, 0
	} else {
		i := h.index(z)
		for j := i; j < len(h.entries); j++ {
			h.bytes -= entryBytes(&h.entries[j])
		}
		h.entries = h.entries[:i:i] // the next append makes a new slice
	}
	for len(h.ends) > 0 && h.ends[len(h.ends)-1] > z {
		h.ends = h.ends[:len(h.ends)-1]
	}
	h.noteEnd(z)
}

// reset forgets everything: the log begins after the snapshot of z.
func (h *history) reset(z zxid.Zxid) { *h = newHistory(z, z, nil) }

// trim forgets the oldest entries up to and including z, as long as more than countMin of them or more than bytesMax
// bytes are held.
func (h *history) trim(z zxid.Zxid, countMin, bytesMax int) {
	n, limit := 0, h.index(z)
	for n < limit && (h.bytes > 4*bytesMax && bytesMax > 0 || len(h.entries)-n > countMin && h.bytes > bytesMax) {
		size := entryBytes(&h.entries[n])
		h.bytes, h.dropped = h.bytes-size, h.dropped+size
		n++
	}
	if n == 0 {
		return
	}
	h.prev = h.entries[n-1].Zxid
	live := h.entries[n:]
	// Others may hold the slice, so what is dropped cannot be cleared: it goes when the slice is left behind.
	switch {
	case len(live) == 0:
		h.room = min(len(h.entries), roomEntriesMax)
		live, h.dropped = nil, 0
	case h.dropped > max(windowDroppedBytesMax, len(live)*entryOverheadBytes):
		live, h.dropped = slices.Clone(live), 0
	}
	h.entries = live
}

// shared says where two logs part.
type shared struct {
	// point is the last transaction that both have, if exact; otherwise they part there or before.
	point zxid.Zxid
	exact bool
	// onDisk: whether point itself is shared can be looked up in this server's log.
	onDisk bool
}

// common finds the last transaction that this log shares with one whose epochs end at ends. Where it is found it is
// exact, because what two logs hold of one epoch are prefixes of the same sequence.
func (h *history) common(ends []zxid.Zxid) shared {
	for i := len(ends) - 1; i >= 0; i-- {
		theirs := ends[i]
		if theirs.Epoch() < h.ends[0].Epoch() {
			return shared{point: theirs, onDisk: true}
		}
		for _, ours := range h.ends {
			if ours.Epoch() == theirs.Epoch() {
				return shared{point: min(ours, theirs), exact: true}
			}
		}
	}
	bound := h.ends[0] // no epoch of theirs that is known is one of ours
	for _, ours := range h.ends {
		if len(ends) > 0 && ours < ends[0] {
			bound = ours
		}
	}
	return shared{point: bound}
}
