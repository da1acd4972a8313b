package storage

import (
	"errors"
	"fmt"
	"io"

	"zabra/internal/storage/vfs"
	"zabra/zab/zxid"
)

// Begin ends recovery: the caller has loaded everything up to last. Whatever a crash left behind the last transaction is
// cut off, and everything before, which the process that wrote it may not have synced, is made durable. Then Append may be
// called. The first batch goes to a new log: an old one is never appended to.
//
// Begin refuses a last that is not the end of what is on disk.
func (s *Store) Begin(last zxid.Zxid) error {
	if err := s.err(); err != nil {
		return err
	}
	if s.begun() {
		return errors.New("storage: begun twice")
	}
	t, err := s.findTail(last)
	if err != nil {
		return err
	}
	if t.last != last {
		return fmt.Errorf("storage: the log ends at %v, not at %v", t.last, last)
	}
	if err := s.mend(t); err != nil {
		return s.fail(err)
	}
	end := t.end
	end.Last = last
	if err := s.beginState(t); err != nil {
		return s.fail(err)
	}
	s.appender.last = last
	s.resetCounters()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.begun = true
	s.mu.durable = end
	return nil
}

// findTail returns what the last reader found at the end of the log. If none got there, one is sent.
func (s *Store) findTail(last zxid.Zxid) (*tail, error) {
	s.mu.Lock()
	t := s.mu.tail
	s.mu.Unlock()
	if t != nil {
		return t, nil
	}
	r, err := s.openLog(last)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		if _, err := r.Next(); err == io.EOF {
			return &r.tail, nil
		} else if err != nil {
			return nil, err
		}
	}
}

// mend makes the directory what the reader took it for, durably.
func (s *Store) mend(t *tail) error {
	for _, c := range t.cuts {
		if err := s.cut(c); err != nil {
			return err
		}
	}
	if err := s.mendLogs(t.end.File); err != nil {
		return err
	}
	if err := s.syncSnapshots(t.end); err != nil {
		return err
	}
	for _, dir := range s.dirs() {
		if err := s.fs.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) cut(c cut) error {
	name := s.logPath(logName(c.file))
	if c.remove {
		return s.fs.Remove(name)
	}
	f, err := s.fs.OpenWrite(name)
	if err != nil {
		return err
	}
	err = f.Truncate(c.off)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// mendLogs makes the last two logs up to last durable. An older one cannot be in doubt: this server syncs a log before it
// begins the next, and ZooKeeper syncs and closes it with the first commit of the next. Logs without so much as a header
// are removed on the way: the reader did not need them, but ZooKeeper, which opens one log more, would not start.
//
// A sync alone proves nothing about what the process before us wrote: after a sync of its own failed, the page cache may
// hold what the disk does not, marked clean. So all that may be in doubt is written once more first: what lies behind the
// mark, or the end of the last two logs where there is no mark.
func (s *Store) mendLogs(last zxid.Zxid) error {
	names, err := s.fs.List(s.logDir)
	if err != nil {
		return err
	}
	var whole []string
	for _, z := range s.current(logNames(names)) {
		name := s.logPath(logName(z))
		info, err := s.fs.Stat(name)
		if err != nil {
			return err
		}
		switch {
		case info.Size < fileHeaderBytes:
			if err := s.fs.Remove(name); err != nil {
				return err
			}
		case z <= last:
			whole = append(whole, name)
		}
	}
	marked := s.mark.valid && s.mark.File == last && s.mark.End > 0
	whole = whole[max(0, len(whole)-2):]
	for i, name := range whole {
		switch {
		case !marked:
			err = s.rewrite(name, -1)
		case i == len(whole)-1:
			err = s.rewrite(name, s.mark.End)
		default:
			err = s.syncFile(name) // this server had synced it before it began the last one
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes a log once more from an offset up to its last data, and syncs it. A negative offset stands for
// rewriteBytes before that end.
func (s *Store) rewrite(name string, from int64) error {
	f, err := s.fs.OpenWrite(name)
	if err != nil {
		return err
	}
	err = rewriteTail(f, from)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

func rewriteTail(f vfs.File, from int64) error {
	end, err := f.Size()
	if err != nil {
		return err
	}
	buf := make([]byte, min(end, scanChunkBytes))
	for end > 0 { // behind the data there may be padding, of which nothing can get lost
		b := buf[:min(end, int64(len(buf)))]
		if _, err := f.ReadAt(b, end-int64(len(b))); err != nil {
			return err
		}
		if !allZero(b) {
			break
		}
		end -= int64(len(b))
	}
	if from < 0 {
		from = max(0, end-rewriteBytes)
	}
	for from < end {
		b := buf[:min(end-from, int64(len(buf)))]
		if _, err := f.ReadAt(b, from); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, from); err != nil {
			return err
		}
		from += int64(len(b))
	}
	return nil
}

// syncSnapshots makes the snapshots durable that reach further than the log. ZooKeeper does not sync its own, and behind
// these there is nothing to fall back on.
func (s *Store) syncSnapshots(log position) error {
	files, err := s.listSnapshots()
	if err != nil {
		return err
	}
	for _, f := range files {
		if log.File == noFile || f.Zxid > log.Last {
			if err := s.syncFile(s.snapPath(f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) syncFile(name string) error {
	f, err := s.fs.Open(name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
