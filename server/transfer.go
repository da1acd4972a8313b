package server

import (
	"errors"
	"fmt"
	"io"

	"go.uber.org/zap"

	"zabra/internal/storage"
	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// history answers a core that needs a part of the log, or a snapshot, for a learner. It runs on a goroutine of its own,
// since it reads the disk.
func (m *member) history(req zab.HistoryRequest) {
	h, err := m.find(req)
	if err != nil {
		h = zab.History{Err: err}
		if m.ctx.Err() == nil && m.conns.get(req.Conn) != nil {
			m.s.log.Error("a learner cannot be brought up to date from this server's data; look at the files that the error names with zabra doctor", zap.Stringer("after", req.After), zap.Error(err))
		}
	}
	h.Conn, h.After = req.Conn, req.After
	m.input(zab.Input{Kind: zab.InputHistory, Conn: req.Conn, History: &h})
}

// find looks for what a request wants. A snapshot stays, and the log behind it, until the learner has it or is gone.
func (m *member) find(req zab.HistoryRequest) (h zab.History, err error) {
	var t *storage.Transfer
	if req.SnapshotOnly {
		t, err = m.snapshotAfter(req.After)
	} else {
		h = m.s.store.History(req, historyBytesMax)
		if h.Err != nil || h.Snapshot == nil {
			return h, h.Err
		}
		t, err = m.s.store.OpenTransferOf(*h.Snapshot)
	}
	if err != nil {
		return h, err
	}
	file := t.File()
	h.Snapshot = &file
	if c := m.conns.get(req.Conn); c == nil || !c.keep(t) {
		t.Close()
		return h, errors.New("the learner is gone")
	}
	return h, nil
}

// snapshotAfter returns a snapshot that is not older than a transaction, and makes one if need be.
func (m *member) snapshotAfter(after zxid.Zxid) (*storage.Transfer, error) {
	t, err := m.s.store.OpenTransfer()
	if err == nil && t.File().Zxid < after {
		t.Close()
		t, err = m.newTransfer(after)
	}
	return t, err
}

// newTransfer takes a new snapshot, which a learner needs to get past what the two logs do not have in common. One that is
// being written already may show an older state, so that a second one follows it.
func (m *member) newTransfer(after zxid.Zxid) (*storage.Transfer, error) {
	for attempt := 1; ; attempt++ {
		if err := m.takeSnapshot(); err != nil {
			return nil, err
		}
		t, err := m.s.store.OpenTransfer()
		if err != nil || t.File().Zxid >= after {
			return t, err
		}
		t.Close()
		if attempt == newSnapshotsMax {
			return nil, fmt.Errorf("the newest snapshot ends at %v, before %v", t.File().Zxid, after)
		}
	}
}

// takeSnapshot begins a snapshot, unless one is being written, and waits until it is written or given up.
func (m *member) takeSnapshot() error {
	if run := m.s.snaps.begin(); run != nil {
		m.s.post(func() { m.s.openSnapshot(run) })
	}
	if run := m.s.snaps.running(); run != nil {
		select {
		case <-run.done:
		case <-m.ctx.Done():
			return ErrServerClosed
		}
	}
	return nil
}

// keep makes t the snapshot of this connection in place of an earlier one.
func (c *quorumConn) keep(t *storage.Transfer) bool {
	c.pinned.Lock()
	defer c.pinned.Unlock()
	if c.pinned.gone {
		return false
	}
	if old := c.pinned.transfer; old != nil {
		old.Close()
	}
	c.pinned.transfer = t
	return true
}

// unpin gives the snapshot back: for good when the connection is gone.
func (c *quorumConn) unpin(gone bool) {
	c.pinned.Lock()
	defer c.pinned.Unlock()
	c.pinned.gone = c.pinned.gone || gone
	if c.pinned.transfer != nil {
		c.pinned.transfer.Close()
		c.pinned.transfer = nil
	}
}

// sendSnapshot streams the bytes of the snapshot that msg has announced. The writer holds the snapshot while it reads: the
// reader's end gives it back only after the connection is closed, which ends the writes.
func (c *quorumConn) sendSnapshot(w *connWriter, msg *zab.Message) error {
	c.pinned.Lock()
	t := c.pinned.transfer
	c.pinned.Unlock()
	if t == nil || t.File() != msg.Snapshot {
		return fmt.Errorf("the snapshot %s is not there to be sent", msg.Snapshot.Name)
	}
	size := t.Size()
	c.m.s.log.Info("Sending snapshot "+msg.Snapshot.Name, zap.Int64("server", int64(c.peer)), zap.Int64("bytes", size), zap.Int64("offset", msg.SnapshotOffset))
	chunk := make([]byte, snapshotChunkBytes)
	for offset := msg.SnapshotOffset; ; {
		part := chunk[:min(int64(len(chunk)), size-offset)]
		if _, err := t.ReadAt(part, offset); err != nil && !(errors.Is(err, io.EOF) && offset+int64(len(part)) == size) {
			return fmt.Errorf("snapshot %s: %w", msg.Snapshot.Name, err)
		}
		piece := peer.Chunk{Offset: offset, Size: size, Data: part}
		var err error
		if w.b, err = w.enc.AppendChunk(w.b, piece); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		c.progress()
		if piece.Last() {
			return nil
		}
		offset += int64(len(part))
	}
}

// incoming is a snapshot that is being received on a connection.
type incoming struct {
	announced *zab.Message       // nil: none
	reception *storage.Reception // nil until the first piece, which tells the size
}

// beginSnapshot prepares for the bytes that follow.
func (c *quorumConn) beginSnapshot(msg *zab.Message) error {
	if c.incoming.announced != nil {
		return fmt.Errorf("snapshot %s is announced in the middle of another", msg.Snapshot.Name)
	}
	c.incoming.announced = msg
	c.m.s.log.Info("Getting a snapshot from leader "+msg.Snapshot.Name, zap.Int64("leader", int64(c.peer)), zap.Int64("offset", msg.SnapshotOffset))
	return nil
}

// receiveChunk writes a piece of the snapshot. Behind the last one the file is made durable and read in full, before the
// core hears of it.
func (c *quorumConn) receiveChunk(chunk peer.Chunk) error {
	msg := c.incoming.announced
	if msg == nil {
		return errors.New("a piece of a snapshot came without an announcement")
	}
	if c.incoming.reception == nil {
		rec, err := c.m.s.store.Receive(c.peer, msg.Snapshot, chunk.Size, msg.SnapshotOffset)
		if err != nil {
			return fmt.Errorf("snapshot %s cannot be received: %w", msg.Snapshot.Name, err)
		}
		c.incoming.reception = rec
	}
	rec := c.incoming.reception
	if chunk.Offset != rec.Offset() {
		return fmt.Errorf("a piece of snapshot %s begins at %d, not at %d", msg.Snapshot.Name, chunk.Offset, rec.Offset())
	}
	if _, err := rec.Write(chunk.Data); err != nil {
		return err
	}
	c.progress()
	if !chunk.Last() {
		return nil
	}
	c.incoming = incoming{}
	verify := func(r io.Reader) error {
		return znode.VerifySnapshot(&progressReader{c, &quitReader{r, c.m.s.quit}}, c.m.s.fieldBytesMax())
	}
	if err := rec.Finish(verify); err != nil {
		return fmt.Errorf("snapshot from the leader: %w", err)
	}
	c.m.input(zab.Input{Kind: zab.InputSnapshot, Conn: c.id})
	return nil
}

// park keeps what has come of a snapshot whose transfer broke off.
func (in *incoming) park() {
	if in.reception != nil {
		in.reception.Abort()
	}
	*in = incoming{}
}

// progressReader tells the core, and the leader, that the snapshot is being looked at.
type progressReader struct {
	c *quorumConn
	r io.Reader
}

func (p *progressReader) Read(b []byte) (int, error) {
	if p.c.progress() {
		p.c.keepAlive()
	}
	return p.r.Read(b)
}
