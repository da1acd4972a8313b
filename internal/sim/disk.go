package sim

import (
	"errors"
	"path"
	"strings"

	"zabra/internal/storage/vfs"
	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/zxid"
)

// durable is what a server's disk holds for certain, as follows from what the storage has promised: the ghost of the
// disk. It is compared with the disk at each start.
type durable struct {
	// history is every transaction from the beginning of time, whether it lies in a snapshot or in the log.
	history []zxid.Zxid
	// written was appended after that and is not synced.
	written           []zxid.Zxid
	accepted, current zxid.Epoch
	// limbo is the operation that was under way when the server died: it has happened, or not, or in part.
	limbo *zab.PersistOp
}

func (d *durable) last() zxid.Zxid {
	if n := len(d.history); n > 0 {
		return d.history[n-1]
	}
	return 0
}

// has reports whether a transaction is durable. All that come before it are then, too: see ghost.see.
func (d *durable) has(z zxid.Zxid) bool {
	if z == 0 {
		return true
	}
	i := searchZxid(d.history, z)
	return i < len(d.history) && d.history[i] == z
}

// cut makes z the last transaction.
func (d *durable) cut(z zxid.Zxid) {
	i := searchZxid(d.history, z)
	if i < len(d.history) && d.history[i] == z {
		i++
	}
	d.history = d.history[:i]
}

// searchZxid returns the place of the first transaction that is not before z.
func searchZxid(list []zxid.Zxid, z zxid.Zxid) int {
	lo, hi := 0, len(list)
	for lo < hi {
		if mid := (lo + hi) / 2; list[mid] < z {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// disk carries out persist operations one after the other, each after a while.
type disk struct {
	s     *server
	queue []zab.PersistOp
	busy  bool
	// slowUntil and hangUntil bound bad phases.
	slowUntil, hangUntil Micros

	// crashIn counts changes of the disk down to a power cut, 0 for none; failSync makes the next sync fail.
	crashIn  int
	failSync bool
	// crashAtSync cuts the power when a batch of the log is written and not synced, the next one that spans pages: only such
	// a one can be torn.
	crashAtSync, spans bool
	failed             bool
	// dead is set when the power went in the middle of an operation; after is what it left.
	dead  bool
	after *vfs.Mem
	// beginning is set while recovery mends the log: what it cuts is counted.
	beginning bool
	unsynced  map[string]bool // logs with writes that no sync has followed
	dirsDirty bool
}

var (
	errPower = errors.New("sim: the power is gone")
	errDisk  = errors.New("sim: input/output error")
)

// newFS puts the faults between the storage and the disk.
func (s *server) newFS() vfs.FS {
	var inner vfs.FS = s.mem
	if s.w.opts.Host&(PlantLostSync|PlantLostDirSync) != 0 {
		inner = &lyingFS{FS: inner, plant: s.w.opts.Host}
	}
	f := vfs.NewFault(inner)
	d := &s.disk
	d.unsynced = map[string]bool{}
	f.Inject(d.inject)
	f.Observe(d.observe)
	return f
}

// inject decides about one call of the file system.
func (d *disk) inject(op vfs.Op) error {
	if d.dead {
		return errPower
	}
	if d.failed && op.Kind.Changes() {
		return errDisk
	}
	if !op.Kind.Changes() {
		return nil
	}
	if d.failSync && (op.Kind == vfs.KindSync || op.Kind == vfs.KindSyncData) {
		d.failSync, d.failed = false, true
		d.s.w.count.FailedSyncs++
		d.s.w.noteText(d.s.id, "cannot sync", "%s", op.Name)
		return errDisk
	}
	if d.crashIn > 0 {
		if d.crashIn--; d.crashIn == 0 {
			return d.powerCut(op)
		}
	}
	if d.crashAtSync && isLog(op.Name) && op.Kind == vfs.KindSyncData && d.spans {
		d.crashAtSync = false
		return d.powerCut(op)
	}
	return nil
}

// powerCut ends everything right before a call.
func (d *disk) powerCut(op vfs.Op) error {
	d.dead = true
	d.after = d.s.mem.CrashClone(d.s.w.diskRnd.Rand)
	d.s.w.noteText(d.s.id, "loses power", "at %v of %s", op.Kind, op.Name)
	return errPower
}

func isLog(name string) bool { return strings.HasPrefix(path.Base(name), "log.") }

// observe keeps account of what no sync has made durable.
func (d *disk) observe(op vfs.Op, err error) {
	if err != nil || !op.Kind.Changes() {
		return
	}
	switch op.Kind {
	case vfs.KindWrite:
		if isLog(op.Name) {
			d.spans = op.Off/pageBytes != (op.Off+op.Len-1)/pageBytes
			d.unsynced[op.Name] = true
		}
	case vfs.KindSync, vfs.KindSyncData:
		delete(d.unsynced, op.Name)
	case vfs.KindRename:
		d.dirsDirty = true
	case vfs.KindSyncDir:
		d.dirsDirty = false
	case vfs.KindTruncate:
		if isLog(op.Name) && d.beginning {
			d.s.w.count.TornTails++
		}
	}
}

// kick begins with the next operations if the disk is idle.
func (d *disk) kick() {
	if d.busy || len(d.queue) == 0 || !d.s.running {
		return
	}
	d.busy = true
	n := len(d.queue)
	if n > 1 && d.s.w.rnd.chance(4) {
		n = 1 + d.s.w.rnd.IntN(n) // the disk goroutine took only what was there then
	}
	d.s.w.afterOn(d.s, d.delay(), func() { d.perform(n) })
}

// delay is how long a batch takes.
func (d *disk) delay() Micros {
	w := d.s.w
	t := w.rnd.longTail(50, 12*millisecond)
	if d.slowUntil > w.queue.now {
		t = w.rnd.between(20*millisecond, 400*millisecond)
	}
	if d.hangUntil > w.queue.now {
		t += d.hangUntil - w.queue.now
	}
	return t
}

// perform carries out the first n operations and confirms them.
func (d *disk) perform(n int) {
	s := d.s
	ops := d.queue[:n]
	var err error
	for i := range ops {
		if err = d.performOne(&ops[i]); err != nil {
			break
		}
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		d.failing(err)
		return
	}
	s.w.checkRecoverable()
	last := ops[n-1]
	d.queue = append(d.queue[:0:0], d.queue[n:]...)
	d.busy = false
	s.w.note(s.id, "has persisted", int64(last.Token), int64(s.durable.last()))
	s.input(zab.Input{Kind: zab.InputPersisted, Token: last.Token})
	d.maybeSnapshot()
	d.kick()
}

// failing ends the server: the power is gone, or the disk is broken. In the latter case the process stops by itself.
func (d *disk) failing(err error) {
	if !d.dead && !errors.Is(err, errDisk) {
		d.s.w.fail("E-14", "s%d cannot carry out an operation on its disk: %v", d.s.id, err)
	}
	s := d.s
	s.crash(d.failed, err.Error())
	s.restartIn(max(s.orders.downFor, 50*millisecond))
	s.orders.downFor = 0
}

// performOne carries out one operation. Appends are durable only after the next sync.
func (d *disk) performOne(op *zab.PersistOp) error {
	s := d.s
	s.durable.limbo = op
	if op.Kind == zab.PersistAppend {
		for i := range op.Entries {
			s.durable.written = append(s.durable.written, op.Entries[i].Zxid)
		}
		s.durable.limbo = nil
		return s.store.Perform(*op)
	}
	before := s.durable.last()
	if op.Kind == zab.PersistTruncate || op.Kind == zab.PersistInstallSnapshot {
		s.giveUpSnapshot()
	}
	if err := s.store.Perform(*op); err != nil {
		return err
	}
	d.synced()
	s.durable.limbo = nil
	switch op.Kind {
	case zab.PersistTruncate:
		s.checkTruncate(op.Zxid)
		s.durable.cut(op.Zxid)
		if op.Reload {
			return d.reload()
		}
	case zab.PersistInstallSnapshot:
		s.installed(op.Zxid, before)
		return d.reload()
	case zab.PersistSetAccepted:
		s.checkEpoch("acceptedEpoch", s.durable.accepted, op.Epoch)
		s.durable.accepted = op.Epoch
	case zab.PersistSetCurrent:
		s.checkEpoch("currentEpoch", s.durable.current, op.Epoch)
		s.durable.current = op.Epoch
		s.checkEpochHistory()
	}
	return nil
}

// sync makes durable what was appended.
func (d *disk) sync() error {
	if len(d.s.durable.written) == 0 {
		return nil
	}
	if err := d.s.store.Sync(); err != nil {
		return err
	}
	d.s.checkSynced()
	d.synced()
	return nil
}

// synced notes that everything written is durable.
func (d *disk) synced() {
	du := &d.s.durable
	du.history = append(du.history, du.written...)
	du.written = du.written[:0]
}

// reload loads the state anew from the disk, after a snapshot was installed or the log was cut below what was applied.
func (d *disk) reload() error {
	s := d.s
	if s.w.opts.Host&PlantNoRestore != 0 || !s.running {
		return nil
	}
	rec, err := replica.Recover(s.store, s.replicaConfig())
	if err != nil {
		return err
	}
	if mark, more := rec.ReserveMore(); more {
		if err := s.store.ReserveSessions(mark); err != nil {
			return err
		}
	}
	s.w.count.Reloads++
	s.checkReloaded(rec)
	if len(s.inputs) > 0 {
		s.step() // what has come in before belongs to the old state
	}
	s.replica.Restore(rec)
	s.applied = rec.LastZxid
	return nil
}

// tear lets a power cut hit what the disk is doing, if it is doing anything: a part of it gets done.
func (d *disk) tear() {
	if !d.busy || d.dead || d.failed || d.s.w.diskRnd.chance(3) {
		return
	}
	d.crashIn = 1 + d.s.w.diskRnd.IntN(8)
	for i := range d.queue {
		if d.performOne(&d.queue[i]) != nil {
			return
		}
	}
	if d.sync() == nil {
		d.dead = true
	}
}

// maybeSnapshot begins a snapshot when enough was logged.
func (d *disk) maybeSnapshot() {
	s := d.s
	if !s.store.SnapshotDue() {
		return
	}
	s.store.SnapshotStarted()
	if s.openSnapshot() {
		s.w.afterOn(s, s.w.rnd.between(millisecond, 80*millisecond), s.snapshotWriter())
	}
}

// openSnapshot fixes the state that a snapshot shows. It is false if one is being written already.
func (s *server) openSnapshot() bool {
	if s.writing != nil || s.replica == nil {
		return false
	}
	snap, err := s.replica.OpenSnapshot()
	if err != nil {
		s.w.fail("E-25", "s%d cannot take a snapshot: %v", s.id, err)
	}
	s.snapshot++
	s.writing = snap
	return true
}

// giveUpSnapshot drops the snapshot that is being written: the state that it shows is being replaced.
func (s *server) giveUpSnapshot() {
	if s.writing == nil {
		return
	}
	s.snapshot++
	s.writing.Close()
	s.writing = nil
}

// snapshotWriter returns what writes the snapshot that was opened, unless it is given up before.
func (s *server) snapshotWriter() func() {
	number := s.snapshot
	return func() {
		if s.snapshot == number && s.writing != nil {
			s.writeSnapshot()
		}
	}
}

func (s *server) writeSnapshot() {
	snap := s.writing
	s.writing = nil
	err := s.store.WriteSnapshot(snap.Zxid(), snap.Next)
	snap.Close()
	if err != nil {
		s.disk.failing(err)
		return
	}
	s.w.count.Snapshots++
	s.w.note(s.id, "has a snapshot of", int64(snap.Zxid()), 0)
	s.w.trigger(s, pointSnapshot)
	if s.w.rnd.chance(2) {
		s.w.afterOn(s, s.w.rnd.between(millisecond, 200*millisecond), s.purge)
	}
}

func (s *server) purge() {
	s.w.count.Purges++
	if err := s.store.Purge(3, verifySnapshot); err != nil {
		s.disk.failing(err)
	}
}
