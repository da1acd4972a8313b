package sim

import (
	"errors"
	"io"

	"zabra/internal/storage"
	"zabra/zab"
	"zabra/znode"
)

// stream is a snapshot on its way to a learner.
type stream struct {
	transfer *storage.Transfer
	offset   int64
}

// chunk is a piece of a snapshot.
type chunk struct {
	file   zab.SnapshotFile
	size   int64
	offset int64
	data   []byte
	last   bool
}

// receiver is what a learner does with the pieces that come in.
type receiver struct {
	end       *connEnd
	reception *storage.Reception
}

// readHistory has a part of the log read, beside everything else.
func (s *server) readHistory(req zab.HistoryRequest) {
	s.w.afterOn(s, s.w.rnd.longTail(50, 20*millisecond), func() { s.answerHistory(req, true) })
}

// answerHistory answers the core. A snapshot stays, and the log behind it, until the learner has it or is gone. If the one
// that is there is too old, a new one is taken first.
func (s *server) answerHistory(req zab.HistoryRequest, again bool) {
	h := zab.History{Conn: req.Conn, After: req.After}
	var t *storage.Transfer
	if req.SnapshotOnly {
		s.w.note(s.id, "is to offer a snapshot not before", int64(req.After), 0)
		if again {
			s.w.count.SnapOnly++
		}
		t, h.Err = s.store.OpenTransfer()
		if h.Err == nil && t.File().Zxid < req.After && s.w.opts.Core&zab.PlantSnapshotTooOld == 0 {
			t.Close()
			t = nil
			if again && s.openSnapshot() {
				write := s.snapshotWriter()
				s.w.afterOn(s, s.w.rnd.between(millisecond, 30*millisecond), func() { write(); s.answerAgain(req) })
				return
			}
			h.Err = errTooOld
		}
	} else if h = s.store.History(req, historyBytesMax); h.Snapshot != nil {
		t, h.Err = s.store.OpenTransferOf(*h.Snapshot)
	}
	e := s.conns[req.Conn]
	if t != nil {
		file := t.File()
		h.Snapshot = &file
		if e == nil {
			t.Close()
			h = zab.History{Conn: req.Conn, After: req.After, Err: errGone}
		} else {
			e.releaseStreams()
			e.pinned = &stream{transfer: t}
		}
	}
	s.tellHistory(&req, &h)
}

func (s *server) answerAgain(req zab.HistoryRequest) {
	if s.running && s.store != nil {
		s.answerHistory(req, false)
	}
}

var (
	errTooOld = errors.New("sim: the snapshots are too old")
	errGone   = errors.New("sim: the learner is gone")
)

func (s *server) tellHistory(req *zab.HistoryRequest, h *zab.History) {
	s.checkHistory(req, h)
	switch {
	case h.Err != nil:
		s.w.noteText(s.id, "cannot read its history", "after %v: %v", req.After, h.Err)
		if s.disk.dead || s.disk.failed {
			s.disk.failing(h.Err)
			return
		}
	case h.Snapshot != nil:
		s.w.note(s.id, "offers snapshot", int64(h.Snapshot.Zxid), h.Offset)
	default:
		s.w.count.FromLog++
		s.w.note(s.id, "has read its log after", int64(req.After), int64(len(h.Entries)))
	}
	s.input(zab.Input{Kind: zab.InputHistory, Conn: req.Conn, History: h})
}

func (e *connEnd) releaseStreams() {
	for _, st := range []*stream{e.stream, e.pinned} {
		if st != nil {
			st.transfer.Close()
		}
	}
	e.stream, e.pinned = nil, nil
	e.backlog = nil
}

// beginStream sends the bytes of the snapshot that was just announced; what else is sent waits behind them.
func (e *connEnd) beginStream(m *zab.Message) {
	w := e.c.n.w
	if e.pinned == nil {
		w.fail("E-21", "s%d announces a snapshot that nobody has opened", e.srv.id)
	}
	e.stream, e.pinned = e.pinned, nil
	e.stream.offset = m.SnapshotOffset
	w.count.Snap++
	if m.SnapshotOffset > 0 {
		w.count.Resumed++
	}
	e.planChunk()
}

func (e *connEnd) planChunk() {
	st := e.stream
	w := e.c.n.w
	w.afterOn(e.srv, w.netRnd.longTail(100, 40*millisecond), func() {
		if e.stream == st && !e.closed {
			e.sendChunk()
		}
	})
}

// sendChunk reads and sends the next piece. Behind the last one goes what has waited.
func (e *connEnd) sendChunk() {
	st := e.stream
	t := st.transfer
	data := make([]byte, min(chunkBytes, t.Size()-st.offset))
	if n, err := t.ReadAt(data, st.offset); err != nil && (err != io.EOF || n < len(data)) {
		e.srv.disk.failing(err)
		return
	}
	c := &chunk{file: t.File(), size: t.Size(), offset: st.offset, data: data}
	st.offset += int64(len(data))
	c.last = st.offset >= t.Size()
	if e.c.broken {
		e.sentIntoNothing()
		return
	}
	e.out.put(parcel{chunk: c})
	e.srv.input(zab.Input{Kind: zab.InputProgress, Conn: e.num})
	if !c.last {
		e.planChunk()
		return
	}
	backlog := e.backlog
	e.releaseStreams()
	for _, m := range backlog {
		e.send(m)
	}
}

// receiveChunk writes a piece of a snapshot. When the last one is there, the whole is verified, and the core is told.
func (e *connEnd) receiveChunk(c *chunk) {
	s := e.srv
	if s.receiving == nil || s.receiving.end != e {
		s.dropReception()
		r, err := s.store.Receive(e.other().srv.id, c.file, c.size, c.offset)
		if err != nil && (s.disk.dead || s.disk.failed) {
			s.disk.failing(err)
			return
		}
		if err != nil {
			s.w.fail("E-21", "s%d cannot receive %s from offset %d: %v", s.id, c.file.Name, c.offset, err)
		}
		s.receiving = &receiver{end: e, reception: r}
	}
	r := s.receiving.reception
	if _, err := r.Write(c.data); err != nil {
		s.disk.failing(err)
		return
	}
	s.input(zab.Input{Kind: zab.InputProgress, Conn: e.num})
	s.w.trigger(s, pointChunk)
	if s.orders.breakAtChunk > 0 && !c.last {
		if s.orders.breakAtChunk--; s.orders.breakAtChunk == 0 {
			s.w.count.Breaks++
			e.c.cut(true)
		}
	}
	if !c.last && s.w.opts.Host&PlantPartSnapshot == 0 {
		return
	}
	s.receiving = nil
	err := r.Finish(func(in io.Reader) error { return znode.VerifySnapshot(in, fieldBytesMax) })
	if err != nil {
		if s.disk.dead || s.disk.failed {
			s.disk.failing(err)
			return
		}
		s.w.fail("E-20", "s%d has received a snapshot that cannot be used: %v", s.id, err)
	}
	s.w.note(s.id, "has received snapshot", int64(c.file.Zxid), c.size)
	s.input(zab.Input{Kind: zab.InputSnapshot, Conn: e.num})
}

// dropReception gives up on a transfer that broke off. What has come may be kept for the next attempt.
func (s *server) dropReception() {
	if s.receiving == nil {
		return
	}
	s.receiving.reception.Abort()
	s.receiving = nil
}
