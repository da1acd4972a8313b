package server

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"zabra/server/replica"
	"zabra/zab"
)

// disk is the queue of the disk goroutine.
type disk struct {
	mu     sync.Mutex
	cond   sync.Cond
	ops    []zab.PersistOp
	since  time.Time // when the first of them came
	closed bool
}

func (d *disk) init() { d.cond.L = &d.mu }

// add queues operations behind those that wait. It never waits itself; how many wait is bounded by how many requests the
// replica lets in, and at a learner by how much the leader sends before it is acknowledged.
func (d *disk) add(ops []zab.PersistOp) {
	if len(ops) == 0 {
		return
	}
	d.mu.Lock()
	if len(d.ops) == 0 {
		d.since = time.Now()
	}
	d.ops = append(d.ops, ops...)
	d.mu.Unlock()
	d.cond.Signal()
}

// take waits for operations and returns all that wait, and since when; spare becomes the empty queue. It returns none when
// the server is being closed.
func (d *disk) take(spare []zab.PersistOp) (ops []zab.PersistOp, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.ops) == 0 && !d.closed {
		d.cond.Wait()
	}
	if d.closed {
		return nil, since
	}
	ops = d.ops
	d.ops = spare[:0]
	return ops, d.since
}

// waits tells whether there are operations that nobody has taken.
func (d *disk) waits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops) > 0
}

func (d *disk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cond.Broadcast()
}

// diskLoop is the disk goroutine. It makes durable what waits with as few syncs as the bound on a batch allows: usually
// one, however many requests came in while the last one ran.
func (s *Server) diskLoop() {
	var spare []zab.PersistOp
	for {
		ops, since := s.disk.take(spare)
		if ops == nil {
			return
		}
		s.meter.log.took(ops, since)
		if err := s.persist(ops); err != nil {
			s.diskFailed(fmt.Errorf("the transaction log cannot be written: %w", err))
			return
		}
		clear(ops)
		spare = ops
	}
}

// persist carries out operations in order and confirms each batch as soon as it is durable.
func (s *Server) persist(ops []zab.PersistOp) error {
	entries, bytes, first := 0, 0, 0
	for i := range ops {
		op := &ops[i]
		if op.Kind != zab.PersistAppend {
			if err := s.perform(op); err != nil {
				return err
			}
			first = i + 1
			continue
		}
		if err := s.store.Append(op.Entries); err != nil {
			return err
		}
		entries += len(op.Entries)
		for _, e := range op.Entries {
			bytes += len(e.Payload)
		}
		if i < len(ops)-1 && ops[i+1].Kind == zab.PersistAppend && bytes < syncBatchBytesMax {
			continue
		}
		if err := s.sync(entries); err != nil {
			return err
		}
		if s.member != nil {
			s.member.durable(ops[first : i+1])
		}
		s.steps.confirm(op, entries, nil)
		s.stepAfterDisk(entries, i == len(ops)-1)
		s.maybeSnapshot()
		entries, bytes, first = 0, 0, i+1
	}
	return nil
}

// perform carries out an operation that is not an append. Where it changes what the state is made of, no snapshot of the
// state before may get its name afterwards. A received snapshot that has become all there is is loaded at once.
func (s *Server) perform(op *zab.PersistOp) (err error) {
	var state *replica.Recovered
	replaces := op.Kind == zab.PersistInstallSnapshot || op.Kind == zab.PersistTruncate && op.Reload
	if replaces || op.Kind == zab.PersistTruncate {
		s.barSnapshots()
	}
	if err := s.store.Perform(*op); err != nil {
		return err
	}
	if replaces {
		began := time.Now()
		if state, err = replica.Recover(s.store, s.replicaConfig()); err != nil {
			return fmt.Errorf("the state that replaces this server's cannot be loaded: %w", err)
		}
		if mark, more := state.ReserveMore(); more {
			if err := s.store.ReserveSessions(mark); err != nil {
				return err
			}
		}
		s.log.Info("data loaded anew", zap.Stringer("zxid", state.LastZxid),
			zap.Int("nodes", state.Tree.NodeCount()+1), zap.Int64("ms", time.Since(began).Milliseconds()))
	} else if op.Kind == zab.PersistTruncate {
		s.allowSnapshots()
	}
	s.steps.confirm(op, 0, state)
	s.steps.wakeUp()
	return nil
}

// stepAfterDisk has a step taken for what has become durable. Where that is little and the disk has nothing else to do (last,
// and nothing waits) it is taken here: then the answer is out before another goroutine would have been woken. A snapshot that
// is due is no reason to be quick: it rolls the log.
func (s *Server) stepAfterDisk(entries int, last bool) {
	if entries > directEntriesMax || !last || s.disk.waits() || s.store.SnapshotDue() {
		s.steps.wakeUp()
		return
	}
	s.advance(1)
}

// sync makes durable what was appended.
func (s *Server) sync(entries int) error {
	began := time.Now()
	if err := s.store.Sync(); err != nil {
		return err
	}
	took := time.Since(began)
	s.meter.log.synced(began, took)
	s.noteSync(took, entries)
	return nil
}

// noteSync counts a sync of the log and tells of a slow one, in the words that alert rules look for.
func (s *Server) noteSync(took time.Duration, entries int) {
	ms := took.Milliseconds()
	s.meter.fsync.Add(ms)
	s.meter.fsyncUs.Add(took.Microseconds())
	s.meter.batch.Add(int64(entries))
	s.meter.logged.Add(int64(entries))
	if limit := s.live.Load().FsyncWarningThresholdMs; limit > 0 && ms >= limit {
		s.log.Warn(fmt.Sprintf("fsync-ing the write ahead log in SyncThread:%d took %dms which will adversely effect operation latency."+
			"File size is %d bytes. See the ZooKeeper troubleshooting guide; give dataLogDir a disk of its own, or a faster one",
			max(int64(s.cfg.MyID), 0), ms, s.store.LogFileBytes()), zap.Int("transactions", entries))
	}
}

// diskFailed ends the server after a failed write or sync, also one that the storage made on its own account. What a
// failed sync leaves on the disk is unknown, and trying again proves nothing, so that going on could acknowledge a write
// that is lost. Any goroutine may call it; it neither blocks nor logs. While the server is being closed it does nothing:
// Close returns what went wrong.
func (s *Server) diskFailed(err error) {
	if s.phase.Load() != phaseClosed {
		s.fail(err)
	}
}

// logFailure tells why the server ends.
func (s *Server) logFailure() {
	s.log.Error("Severe unrecoverable error, from thread : SyncThread. The server stops; every acknowledged write is safe. "+
		"Check free space and health of the device, then start the server again",
		zap.String("dataDir", s.cfg.DataDir), zap.String("dataLogDir", s.cfg.LogDir()), zap.Error(s.failure))
}

var (
	errSnapshotClosed  = errors.New("the server is being closed")
	errSnapshotStopped = errors.New("the state that the snapshot shows is being replaced")
	errSnapshotBusy    = errors.New("other snapshots are being written; try again")
)
