package storage

import (
	"fmt"

	"zabra/zab"
	"zabra/zab/zxid"
)

// appender is the writing end of the log. It belongs to the disk goroutine.
type appender struct {
	// last is the last transaction appended, durable or not; batchLast the last of the batch in buf.
	last zxid.Zxid
	// buf is the batch: encoded records that no write has taken yet, the first of them batchFirst.
	buf        []byte
	batchFirst zxid.Zxid
	batchCount uint64
	live       *liveLog // nil: the next batch begins a new log

	// Since the last snapshot: transactions and bytes, and the random parts of the limits for both, which were drawn of drawnOf.
	count, bytes           int64
	countLimit, bytesLimit int64
	drawnOf                *snapLimits
}

// writable tells whether the disk goroutine may write.
func (s *Store) writable() error {
	if err := s.err(); err != nil {
		return err
	}
	if !s.begun() {
		return ErrNotBegun
	}
	return nil
}

// Append takes transactions to be logged. They are durable when the next Sync returns; until then Append may keep them
// in memory. Each must follow the one before (*OrderError) and have fewer bytes than the record limit
// (*RecordSizeError); if one does not, none is taken. The payloads are copied.
func (s *Store) Append(entries []zab.Entry) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.checkEntries(entries); err != nil {
		return err
	}
	a := &s.appender
	for _, e := range entries {
		need := len(e.Payload) + recordOverheadBytes
		if len(a.buf) > 0 && len(a.buf)+need > s.batchMax {
			if err := s.Sync(); err != nil {
				return err
			}
		}
		if len(a.buf) == 0 {
			a.batchFirst = e.Zxid
		}
		a.buf = appendRecord(a.buf, e.Payload)
		a.batchCount++
		a.last = e.Zxid
		a.count++
		a.bytes += int64(need)
	}
	return nil
}

// checkEntries refuses what must never get into a log, before any of it does.
func (s *Store) checkEntries(entries []zab.Entry) error {
	last := s.appender.last
	for _, e := range entries {
		n := len(e.Payload)
		if n >= s.cfg.RecordBytesMax {
			return &RecordSizeError{Zxid: e.Zxid, Bytes: n, Max: s.cfg.RecordBytesMax}
		}
		if n < txnHeaderBytes || payloadZxid(e.Payload) != e.Zxid {
			return fmt.Errorf("storage: the payload of transaction %v is not that of this transaction", e.Zxid)
		}
		if e.Zxid <= 0 || !follows(last, e.Zxid) {
			return &OrderError{Last: last, Zxid: e.Zxid}
		}
		last = e.Zxid
	}
	return nil
}

// Sync makes everything appended durable: one write and one sync of data in the ordinary case.
func (s *Store) Sync() error {
	if err := s.writable(); err != nil {
		return err
	}
	a := &s.appender
	if len(a.buf) == 0 {
		return nil
	}
	if err := s.flush(); err != nil {
		return s.fail(err)
	}
	bytes, count := uint64(len(a.buf)), a.batchCount
	s.stats.add(func(st *Stats) { st.Records += count; st.LogBytes += bytes })
	a.batchCount = 0
	if a.buf = a.buf[:0]; cap(a.buf) > 2*batchBytesMax {
		a.buf = nil // one huge transaction must not hold its memory for ever
	}
	s.setDurable(position{File: a.live.first, End: a.live.end, Last: a.last})
	if s.cfg.LogSizeLimitBytes > 0 && a.live.end > s.cfg.LogSizeLimitBytes {
		return s.roll()
	}
	s.zeroAhead()
	return s.err()
}

// flush writes the batch and syncs it.
func (s *Store) flush() error {
	a := &s.appender
	if a.live == nil {
		live, err := s.createLog(a.batchFirst, a.buf)
		if err != nil {
			return fmt.Errorf("create %s: %w", logName(a.batchFirst), err)
		}
		a.live = live
	} else if err := a.live.write(a.buf, s.cfg.PreAllocBytes); err != nil {
		return err
	} else if !s.cfg.NoForceSync {
		if err := s.timed(a.live.f.SyncData); err != nil {
			return err
		}
	}
	// What failed in the background meanwhile may concern this batch too: no mark and no acknowledgement after that.
	if err := s.err(); err != nil {
		return err
	}
	if s.cfg.NoForceSync {
		return nil // the mark must not promise what no sync made true
	}
	s.state.rec.own = a.last
	return s.setMark(position{File: a.live.first, End: a.live.end, Last: a.last}, false)
}

func (s *Store) setDurable(p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.durable = p
}

// LogFileBytes is the size of the log that is written to, its zeros included; 0 before the first transaction. It belongs to the
// disk goroutine.
func (s *Store) LogFileBytes() int64 {
	if s.appender.live == nil {
		return 0
	}
	return s.appender.live.size
}

// SnapshotDue tells whether enough was logged since the last snapshot began.
func (s *Store) SnapshotDue() bool {
	a := &s.appender
	if limits := s.snapLimits.Load(); limits != a.drawnOf {
		s.drawLimits(limits)
	}
	return a.count > a.countLimit || a.drawnOf.bytes > 0 && a.bytes > a.bytesLimit
}

// SnapshotStarted begins a new log and starts counting anew. Transactions appended but not yet synced still go to the old
// one. It announces the next call of WriteSnapshot: if history is cut or replaced between, that writes nothing. A failure
// ends the store; the next call returns it.
func (s *Store) SnapshotStarted() {
	s.resetCounters()
	if s.writable() != nil {
		return
	}
	s.mu.Lock()
	s.mu.announced = s.generation.Load()
	s.mu.Unlock()
	if s.Sync() == nil {
		_ = s.roll() // the store keeps the failure
	}
}

// snapLimits are when a snapshot is due: Config.SnapCount and Config.SnapSizeLimitBytes.
type snapLimits struct {
	count int
	bytes int64
}

// SetSnapshotLimits changes Config.SnapCount and Config.SnapSizeLimitBytes while the store is in use. They count for what was
// logged since the last snapshot, too. Any goroutine may call it.
func (s *Store) SetSnapshotLimits(count int, bytes int64) {
	limits := snapLimits{max(count, snapCountMin), bytes}
	if *s.snapLimits.Load() != limits {
		s.snapLimits.Store(&limits)
	}
}

// resetCounters starts counting anew.
func (s *Store) resetCounters() {
	s.appender.count, s.appender.bytes = 0, 0
	s.drawLimits(s.snapLimits.Load())
}

// drawLimits draws new random parts for the limits.
func (s *Store) drawLimits(limits *snapLimits) {
	spread := func(limit int64) int64 {
		half := limit / 2
		if half <= 0 {
			return 0
		}
		return half + s.cfg.Rand.Int64N(half)
	}
	a := &s.appender
	a.drawnOf = limits
	a.countLimit = spread(int64(limits.count))
	a.bytesLimit = spread(limits.bytes)
}

// timed measures a sync of the log for the statistics.
func (s *Store) timed(sync func() error) error {
	start := s.cfg.Now()
	err := sync()
	if err == nil {
		s.stats.synced(s.cfg.Now().Sub(start))
	}
	return err
}
