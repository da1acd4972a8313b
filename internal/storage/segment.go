package storage

import (
	"sync"

	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// liveLog is the log that is being written. All of it up to end is records; behind that come zeros up to size: really
// written ones first, because overwriting them needs no change of metadata that a sync would have to wait for, then a
// hole.
type liveLog struct {
	f     vfs.File
	first zxid.Zxid
	end   int64
	size  int64

	// zero says who may write where: the appender below claimed, the background writer the chunk that it took.
	zero struct {
		sync.Mutex
		idle    *sync.Cond
		claimed int64 // the appender has written or writes everything below
		done    int64 // real zeros (or records) stand below
		chunkTo int64 // end of the chunk being zeroed, 0 if none
		running bool
	}
}

// createLog makes a new log whose first batch is already in it: everything is synced under a temporary name before the
// file gets its own. So a log never lacks its header or its first transaction, and a reader that finds the name knows
// what the file begins with. The state file says first whose log it is.
func (s *Store) createLog(first zxid.Zxid, batch []byte) (*liveLog, error) {
	if !s.hasSnapshot.Load() {
		return nil, ErrNoSnapshot
	}
	f, err := s.fs.Create(s.logPath(logTmpName))
	if err != nil {
		return nil, err
	}
	live := &liveLog{f: f, first: first, end: fileHeaderBytes, size: fileHeaderBytes}
	live.zero.idle = sync.NewCond(&live.zero.Mutex)
	if _, err = f.WriteAt(logHeader[:], 0); err == nil {
		err = live.write(batch, s.cfg.PreAllocBytes)
	}
	if err == nil {
		err = s.timed(f.Sync)
	}
	if err == nil {
		// The mark promises nothing of the new file yet, since its name may get lost. The checksum of the first
		// batch tells later whether the file under that name is this one.
		s.state.rec.begun = fingerprint{end: live.end, crc: crc32c(batch)}
		err = s.setMark(position{File: first, Last: s.state.rec.log.Last}, true)
	}
	if err == nil {
		err = s.fs.Rename(s.logPath(logTmpName), s.logPath(logName(first)))
	}
	if err == nil {
		err = s.fs.SyncDir(s.logDir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s.stats.add(func(st *Stats) { st.LogFiles++ })
	return live, nil
}

// write puts a batch at the end, and lengthens the file first by ZooKeeper's rule when it runs full.
func (l *liveLog) write(batch []byte, preAlloc int64) error {
	end := l.end + int64(len(batch))
	if preAlloc > 0 && (l.end+padSlackBytes >= l.size || end > l.size) {
		l.size += preAlloc
		for l.size < end { // a batch that is larger than the step
			l.size += preAlloc
		}
		if err := l.f.Truncate(l.size); err != nil {
			return err
		}
	}
	l.claim(end)
	if _, err := l.f.WriteAt(batch, l.end); err != nil {
		return err
	}
	l.end = end
	l.size = max(l.size, end)
	return nil
}

// claim waits until no zeros are being written below end, and keeps later ones away from there.
func (l *liveLog) claim(end int64) {
	z := &l.zero
	z.Lock()
	defer z.Unlock()
	z.claimed = end
	for z.chunkTo != 0 && z.done < end {
		z.idle.Wait()
	}
	z.done = max(z.done, end)
}

// zeroAhead sees to it that real zeros lie ahead of the log's end. It runs in the background; its failure ends the store.
func (s *Store) zeroAhead() {
	l := s.appender.live
	target := min(l.end+zeroAheadBytes, l.size)
	z := &l.zero
	z.Lock()
	start := !z.running && z.done < min(l.end+zeroAheadLowBytes, target)
	z.running = z.running || start
	z.Unlock()
	if !start {
		return
	}
	s.background.Add(1)
	s.cfg.Go(func() {
		defer s.background.Done()
		// The store must know of a failure before settle lets the appender go on.
		_ = s.fail(s.openAndZero(l, target))
		z.Lock()
		z.running, z.chunkTo = false, 0
		z.idle.Broadcast()
		z.Unlock()
	})
}

// openAndZero writes zeros through a file handle of its own. The kernel reports a failed write-back once per open file:
// if the zeros shared the appender's handle, their sync could be the one that is told of an error in the appender's
// pages, and the appender's own sync would then succeed.
func (s *Store) openAndZero(l *liveLog, target int64) error {
	f, err := s.fs.OpenWrite(s.logPath(logName(l.first)))
	if err != nil {
		return err
	}
	err = l.writeZeros(f, target, !s.cfg.NoForceSync)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// writeZeros writes zeros up to target, in chunks so that the appender never waits for long.
func (l *liveLog) writeZeros(f vfs.File, target int64, sync bool) error {
	z := &l.zero
	for {
		z.Lock()
		from := max(z.done, z.claimed)
		to := min(from+zeroChunkBytes, target)
		if from < to {
			z.done, z.chunkTo = from, to
		}
		z.Unlock()
		if from >= to {
			break
		}
		if err := l.zeroChunk(f, from, to); err != nil {
			return err
		}
	}
	if sync {
		return f.SyncData()
	}
	return nil
}

func (l *liveLog) zeroChunk(f vfs.File, from, to int64) error {
	_, err := f.WriteAt(zeroChunk[:to-from], from)
	if err == nil {
		err = f.FlushRange(from, to-from, true)
	}
	z := &l.zero
	z.Lock()
	z.done, z.chunkTo = to, 0
	z.idle.Broadcast()
	z.Unlock()
	return err
}

var zeroChunk [zeroChunkBytes]byte

// settle waits until nobody writes zeros.
func (l *liveLog) settle() {
	z := &l.zero
	z.Lock()
	defer z.Unlock()
	for z.running {
		z.idle.Wait()
	}
}

// roll ends the live log: trimmed to its last record, durable, closed. The next batch begins a new one.
func (s *Store) roll() error {
	l := s.appender.live
	if l == nil {
		return nil
	}
	s.appender.live = nil
	l.settle()
	if err := s.err(); err != nil {
		l.f.Close()
		return err
	}
	err := l.f.Truncate(l.end)
	if err == nil {
		err = s.timed(l.f.Sync)
	}
	if closeErr := l.f.Close(); err == nil {
		err = closeErr
	}
	return s.fail(err)
}

// drop gives the live log up without another write.
func (a *appender) drop() {
	if a.live != nil {
		a.live.settle()
		a.live.f.Close()
		a.live = nil
	}
}
