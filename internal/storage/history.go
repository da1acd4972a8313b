package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"zabra/zab"
	"zabra/zab/zxid"
)

// History answers a request for the log after a zxid, for another server. It gives entries while they have up to bytesMax
// bytes in sum, and at least one if there is any; all of them are durable. Or it names a snapshot, when the log does not
// reach back so far, or is longer than a snapshot is worth. Nothing stays pinned: whoever is answered with a snapshot
// calls OpenTransferOf, and asks anew if that has become impossible.
//
// The log does not reach back behind the last snapshot that was installed, nor behind the state that was loaded when
// another server had been at work on the directory: what stands there may have been discarded by the leader of then.
//
// Any goroutine may call it beside the disk goroutine. Where an answer ended is remembered, for as many callers as catch
// up at a time, so that the next one is not looked for from the beginning of the file.
func (s *Store) History(req zab.HistoryRequest, bytesMax int) zab.History {
	h := zab.History{Conn: req.Conn, After: req.After}
	generation := s.generation.Load()
	err := s.history(&h, req, bytesMax)
	if err == nil && s.generation.Load() != generation {
		err = errSuperseded
	}
	if err != nil {
		return zab.History{Conn: req.Conn, After: req.After, Err: err}
	}
	return h
}

func (s *Store) history(h *zab.History, req zab.HistoryRequest, bytesMax int) error {
	if err := s.err(); err != nil {
		return err
	}
	if !s.begun() {
		return ErrNotBegun
	}
	if last := s.durableLast(); req.After >= last {
		h.Prev = last
		return nil
	}
	r, err := s.openHistory(req.After)
	if errors.Is(err, errTooOld) && !req.LogOnly {
		return s.offerSnapshot(h, req)
	}
	if err != nil {
		return fmt.Errorf("storage: the log after %v: %w", req.After, err)
	}
	defer r.Close()
	if req.LogOnly {
		return s.readHistory(h, r, bytesMax)
	}
	long, err := s.tooLong(r, req.After)
	if err != nil {
		return err
	}
	if long {
		if err := s.offerSnapshot(h, req); !errors.Is(err, ErrNoSnapshotToSend) {
			return err
		}
	}
	return s.readHistory(h, r, bytesMax)
}

func (s *Store) durableLast() zxid.Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.durable.Last
}

func (s *Store) floor() zxid.Zxid {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.floor
}

// openHistory returns a reader that begins at or before the transaction after a zxid, or errTooOld.
func (s *Store) openHistory(after zxid.Zxid) (*logReader, error) {
	if after < s.floor() {
		return nil, errTooOld
	}
	s.files.Lock()
	defer s.files.Unlock()
	r, logs, err := s.newReaderLocked(after)
	if err != nil {
		return nil, err
	}
	if err := s.seekHistory(r, logs, after); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// seekHistory decides where the reader begins: where an answer ended before, else in the newest log that begins at or
// before after, else at the first log, if it is certain what came before that.
func (s *Store) seekHistory(r *logReader, logs []zxid.Zxid, after zxid.Zxid) error {
	if c, ok := s.cursorAt(after, r.generation); ok {
		if i, found := slices.BinarySearch(logs, c.File); found {
			r.resume, r.files = c, logs[i:]
			return nil
		}
	}
	i, found := slices.BinarySearch(logs, after)
	if found {
		i++
	}
	switch {
	case i > 0:
		// The file's own first transaction is the point to count from. Any that came before is older than after.
		r.files, r.after = logs[i-1:], logs[i-1]-1
		r.tail.last = r.after
		return nil
	case len(logs) == 0:
		return errTooOld
	}
	before, err := s.pointBefore(logs[0], after)
	if err != nil {
		return err
	}
	r.files, r.after = logs, before
	r.tail.last = before
	return nil
}

// pointBefore returns the point of history directly before the first log, if it is at or before after. Within an epoch that
// is the number before. Where the log begins with an epoch, it is the newest snapshot before: a purge keeps the log that
// follows any snapshot which it keeps.
func (s *Store) pointBefore(first, after zxid.Zxid) (zxid.Zxid, error) {
	if after+1 == first {
		return after, nil
	}
	if first.Counter() != zxid.CounterMin {
		return 0, errTooOld
	}
	snapshots, err := s.listSnapshots()
	if err != nil {
		return 0, err
	}
	for _, f := range snapshots {
		if f.Zxid >= first {
			continue
		}
		if f.Zxid > after || f.Zxid < s.floor() {
			break
		}
		return f.Zxid, nil
	}
	return 0, errTooOld
}

// tooLong tells whether the log from where the reader begins is more than the newest snapshot is worth. One that would lead
// back to before the reader's place is worth nothing: the log would have to follow all the same.
func (s *Store) tooLong(r *logReader, after zxid.Zxid) (bool, error) {
	snapshots, err := s.listSnapshots()
	if err != nil || len(snapshots) == 0 || snapshots[0].Zxid <= after {
		return false, err
	}
	if s.cfg.SnapshotSizeFactor < 0 {
		return true, nil
	}
	sum := -max(r.resume.End, 0)
	for _, first := range r.files {
		if first == r.bound.File {
			sum += r.bound.End
			continue
		}
		info, err := s.fs.Stat(s.logPath(logName(first)))
		if err != nil {
			return false, err
		}
		sum += info.Size
	}
	if sum <= s.logServed {
		return false, nil
	}
	info, err := s.fs.Stat(s.snapPath(snapshots[0].Name))
	return err == nil && float64(sum) > s.cfg.SnapshotSizeFactor*float64(info.Size), ignoreMissing(err)
}

// offerSnapshot answers with a snapshot: the one whose transfer by this server broke off, or else the newest.
func (s *Store) offerSnapshot(h *zab.History, req zab.HistoryRequest) error {
	if p := req.Resume; p.Offset > 0 && p.From == s.cfg.ID {
		t, err := s.OpenTransferOf(p.File)
		if err == nil && p.Offset <= t.Size() {
			h.Snapshot, h.Offset = &p.File, p.Offset
			return t.Close()
		}
		if err == nil {
			err = t.Close()
		}
		if err != nil && !errors.Is(err, ErrNoSnapshotToSend) {
			return err
		}
	}
	t, err := s.OpenTransfer()
	if err != nil {
		return err
	}
	file := t.File()
	h.Snapshot = &file
	return t.Close()
}

// readHistory reads entries, and notes where it stopped.
func (s *Store) readHistory(h *zab.History, r *logReader, bytesMax int) error {
	h.Prev = max(r.after, s.floor())
	if r.resume.File != noFile {
		h.Prev = r.resume.Last
	}
	var mem arena
	end := cursor{position: position{File: noFile}, conn: h.Conn, generation: r.generation}
	for sum := 0; ; {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = errSuperseded
		}
		if err != nil {
			return err
		}
		if e.Zxid <= h.After {
			h.Prev = max(h.Prev, e.Zxid)
			continue
		}
		if sum += len(e.Payload); sum > bytesMax && len(h.Entries) > 0 {
			break
		}
		if h.After == zxid.Make(e.Zxid.Epoch(), 0) && e.Zxid.Counter() == zxid.CounterMin && len(h.Entries) == 0 {
			h.Prev = h.After // who is at the beginning of an epoch has all that came before its first transaction
		}
		h.Entries = append(h.Entries, zab.Entry{Zxid: e.Zxid, Payload: mem.clone(e.Payload)})
		end.position = position{File: r.file.first, End: r.file.off, Last: e.Zxid}
	}
	s.remember(end)
	return nil
}

// cursorAt returns where the answer ended whose last entry is z.
func (s *Store) cursorAt(z zxid.Zxid, generation uint64) (cursor, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.cursors {
		if c.Last == z && c.generation == generation {
			return c, true
		}
	}
	return cursor{}, false
}

// remember keeps where an answer ended, in the place of the one before it on the same connection, or of the oldest.
func (s *Store) remember(end cursor) {
	if end.File == noFile {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.mu.cursors {
		if c := &s.mu.cursors[i]; c.conn == end.conn && c.generation > 0 {
			*c = end
			return
		}
	}
	s.mu.cursors[s.mu.nextCursor] = end
	s.mu.nextCursor = (s.mu.nextCursor + 1) % historyCursors
}

// arena takes memory in larger pieces for many small payloads.
type arena struct{ free []byte }

func (a *arena) clone(b []byte) []byte {
	if len(b) > historyArenaBytes/4 {
		return slices.Clone(b)
	}
	if len(b) > len(a.free) {
		a.free = make([]byte, historyArenaBytes)
	}
	c := a.free[:len(b):len(b)]
	a.free = a.free[len(b):]
	copy(c, b)
	return c
}
