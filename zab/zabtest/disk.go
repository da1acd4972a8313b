package zabtest

import (
	"cmp"
	"fmt"
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// Disk is what a crash leaves of a server.
type Disk struct {
	// Log follows transaction Start without a gap.
	Log   []zab.Entry
	Start zxid.Zxid
	// Snaps are the snapshots by age. All are of committed states.
	Snaps             []Snapshot
	Accepted, Current zxid.Epoch
	// Hung disks do nothing and answer nothing.
	Hung bool
}

// Snapshot is a whole state.
type Snapshot struct {
	Zxid  zxid.Zxid
	State []zab.Entry
}

// Last is the last transaction on disk.
func (d *Disk) Last() zxid.Zxid {
	if n := len(d.Log); n > 0 {
		return d.Log[n-1].Zxid
	}
	return d.Start
}

// Has reports whether a transaction is on disk, in the log or in a snapshot.
func (d *Disk) Has(z zxid.Zxid) bool {
	if z <= d.Start {
		return true // below the point where the log begins everything is in the snapshot
	}
	_, ok := d.find(z)
	return ok
}

func (d *Disk) find(z zxid.Zxid) (int, bool) {
	return slices.BinarySearchFunc(d.Log, z, func(e zab.Entry, z zxid.Zxid) int { return cmp.Compare(e.Zxid, z) })
}

func (d *Disk) newest() Snapshot {
	if n := len(d.Snaps); n > 0 {
		return d.Snaps[n-1]
	}
	return Snapshot{}
}

func (d *Disk) snapshot(z zxid.Zxid) *Snapshot {
	for i := range d.Snaps {
		if d.Snaps[i].Zxid == z {
			return &d.Snaps[i]
		}
	}
	return nil
}

// recover loads the newest snapshot and what the log has after it.
func (d *Disk) recover() (state []zab.Entry, ends []zxid.Zxid, floor zxid.Zxid) {
	snap := d.newest()
	state, ends = slices.Clone(snap.State), []zxid.Zxid{snap.Zxid}
	for _, e := range d.Log {
		if e.Zxid <= snap.Zxid {
			continue
		}
		if last := len(ends) - 1; ends[last].Epoch() == e.Zxid.Epoch() {
			ends[last] = e.Zxid
		} else {
			ends = append(ends, e.Zxid)
		}
		state = append(state, e)
	}
	return state, ends, snap.Zxid
}

// rollForward is what a start does after a crash in the middle of a synchronisation.
func (d *Disk) rollForward() {
	d.Current = max(d.Current, d.Last().Epoch())
	d.Accepted = max(d.Accepted, d.Current)
}

// perform does one operation. received is the snapshot that the transport has put down.
func (d *Disk) perform(op *zab.PersistOp, received *Snapshot) error {
	switch op.Kind {
	case zab.PersistAppend:
		return d.append(op.Entries)
	case zab.PersistTruncate:
		return d.truncate(op.Zxid)
	case zab.PersistSetAccepted:
		if op.Epoch < d.Accepted {
			return fmt.Errorf("acceptedEpoch goes back from %d to %d", d.Accepted, op.Epoch)
		}
		d.Accepted = op.Epoch
	case zab.PersistSetCurrent:
		if op.Epoch < d.Current || op.Epoch > d.Accepted {
			return fmt.Errorf("currentEpoch goes from %d to %d, accepted is %d", d.Current, op.Epoch, d.Accepted)
		}
		d.Current = op.Epoch
	case zab.PersistInstallSnapshot:
		if received == nil || received.Zxid != op.Zxid {
			return fmt.Errorf("the snapshot of %v is to be installed, and was not received", op.Zxid)
		}
		d.Log, d.Start, d.Snaps = nil, op.Zxid, []Snapshot{*received}
	}
	return nil
}

func (d *Disk) append(entries []zab.Entry) error {
	last := d.Last()
	for _, e := range entries {
		if e.Zxid <= last || e.Zxid.Epoch() == last.Epoch() && e.Zxid != last+1 || e.Zxid.Epoch() != last.Epoch() && e.Zxid.Counter() != zxid.CounterMin {
			return fmt.Errorf("%v is appended to a log that ends at %v", e.Zxid, last)
		}
		last = e.Zxid
		d.Log = append(d.Log, zab.Entry{Zxid: e.Zxid, Payload: e.Payload}) // origins stay in memory
	}
	return nil
}

// truncate is exact: the log must have z.
func (d *Disk) truncate(z zxid.Zxid) error {
	i, ok := d.find(z)
	switch {
	case ok:
		d.Log = d.Log[: i+1 : i+1]
	case z == d.Start:
		d.Log = nil
	default:
		return fmt.Errorf("a log that does not have %v is truncated to it", z)
	}
	if s := d.newest(); s.Zxid > z {
		return fmt.Errorf("the log is truncated to %v, below the snapshot of %v", z, s.Zxid)
	}
	return nil
}

// Snapshot takes a snapshot of what is committed and applied; purge lets the log begin there.
func (s *Server) Snapshot(purge bool) {
	var at zxid.Zxid
	if n := len(s.State); n > 0 {
		at = s.State[n-1].Zxid
	}
	if at > s.Disk.newest().Zxid {
		s.Disk.Snaps = append(s.Disk.Snaps, Snapshot{Zxid: at, State: slices.Clone(s.State)})
	}
	if purge && len(s.Disk.Snaps) > 0 {
		s.Disk.purge()
	}
}

func (d *Disk) purge() {
	snap := d.newest()
	i, found := d.find(snap.Zxid)
	if found {
		i++
	}
	if snap.Zxid > d.Start {
		d.Log, d.Start = slices.Clone(d.Log[i:]), snap.Zxid
	}
	d.Snaps = []Snapshot{snap}
}

// answer answers a request for history.
func (d *Disk) answer(r *zab.HistoryRequest, entriesMax int, preferSnapshot bool) zab.History {
	h := zab.History{Conn: r.Conn, After: r.After}
	if snap := d.newest(); r.SnapshotOnly || !r.LogOnly && (r.After < d.Start || preferSnapshot && snap.Zxid > 0 && snap.Zxid >= r.After) {
		if len(d.Snaps) == 0 || snap.Zxid < r.After {
			h.Err = fmt.Errorf("no snapshot of %v or later", r.After)
			return h
		}
		h.Snapshot = &zab.SnapshotFile{Zxid: snap.Zxid, Name: "snapshot." + snap.Zxid.Hex()}
		return h
	}
	if r.After < d.Start {
		h.Err = fmt.Errorf("the log begins after %v", d.Start)
		return h
	}
	h.Prev = d.Start
	for _, e := range d.Log {
		switch {
		case e.Zxid <= r.After:
			h.Prev = e.Zxid
		case entriesMax == 0 || len(h.Entries) < entriesMax:
			h.Entries = append(h.Entries, e)
		}
	}
	return h
}
