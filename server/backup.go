package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"zabra/internal/storage"
	"zabra/server/admin"
	"zabra/zab/zxid"
	"zabra/znode"
)

// The headers of a snapshot that is sent. They are written as ZooKeeper writes them.
const (
	headerZxid   = "last_zxid"
	headerBytes  = "snapshot_size"
	headerDigest = "zabra-digest"
)

// runSnapshot takes a snapshot that stays on the server, and sends it unless streaming=false.
func (s *Server) runSnapshot(r *admin.Request) *admin.Response {
	if !s.cfg.Admin.SnapshotEnabled {
		return refusedAction(http.StatusServiceUnavailable, "the command snapshot is switched off (admin.snapshot.enabled)")
	}
	if refused := s.needsZxid(); refused != nil {
		return refused
	}
	stream, ok := flag(r, "streaming", true)
	if !ok {
		return refusedAction(http.StatusBadRequest, "streaming is true or false")
	}
	if refused := s.limited(&s.actions.snapshotRate, &s.meter.snapshotRateLimited); refused != nil {
		return refused
	}
	t, err := s.snapshotFile()
	if err != nil {
		return refusedAction(http.StatusInternalServerError, fmt.Sprintf("no snapshot was taken: %v", err))
	}
	resp := &admin.Response{Header: snapshotHeader(t.File().Zxid, t.Size())}
	if !stream {
		t.Close()
		return resp
	}
	resp.Stream, resp.StreamBytes = &snapshotStream{Reader: io.NewSectionReader(t, 0, t.Size()), close: t.Close}, t.Size()
	return resp
}

func snapshotHeader(z zxid.Zxid, size int64) http.Header {
	return http.Header{headerZxid: {z.String()}, headerBytes: {strconv.FormatInt(size, 10)}}
}

// snapshotStream is a file on its way to a client.
type snapshotStream struct {
	io.Reader
	close func() error // once
}

// Close implements io.Closer.
func (st *snapshotStream) Close() error {
	if st.close == nil {
		return nil
	}
	err := st.close()
	st.close = nil
	return err
}

// snapshotFile takes a snapshot that is not older than the call, and opens its file.
func (s *Server) snapshotFile() (*storage.Transfer, error) {
	run := s.wantSnapshot(nil)
	if run == nil {
		return nil, errSnapshotBusy
	}
	if err := s.awaitRun(run); err != nil {
		return nil, err
	}
	t, err := s.store.OpenTransfer()
	if err == nil && t.File().Zxid < run.zxid {
		t.Close()
		err = errors.New("the file that was written cannot be read")
	}
	return t, err
}

// wantSnapshot begins a snapshot, behind one that is being written: that one may show an older state. It returns nil if the
// place is taken again and again.
func (s *Server) wantSnapshot(write snapshotWrite) *snapshotRun {
	for range snapshotAttemptsMax {
		if run := s.snaps.begin(); run != nil {
			run.write = write
			s.post(func() { s.openSnapshot(run) })
			return run
		}
		if other := s.snaps.running(); other != nil {
			select {
			case <-other.done:
			case <-s.quit:
				return nil
			}
		}
	}
	return nil
}

// awaitRun waits for a snapshot to be written or given up.
func (s *Server) awaitRun(run *snapshotRun) error {
	select {
	case <-run.done:
		return run.err
	case <-s.quit:
		return errSnapshotClosed
	}
}

// runBackup sends the state of the moment. It is first written to a file without a name, so that a client which takes its
// time holds up neither the writers nor the server's own snapshots.
func (s *Server) runBackup(r *admin.Request) *admin.Response {
	if !s.cfg.Admin.SnapshotEnabled {
		return refusedAction(http.StatusServiceUnavailable, "the commands snapshot and backup are switched off (admin.snapshot.enabled)")
	}
	if refused := s.needsZxid(); refused != nil {
		return refused
	}
	compression, ok := map[string]string{"": "", "none": "", "gzip": "gz"}[r.Query.Get("compress")]
	if !ok {
		return refusedAction(http.StatusBadRequest, "compress is gzip or none")
	}
	if !s.actions.backingUp.CompareAndSwap(false, true) {
		return refusedAction(http.StatusConflict, "another backup is being sent; one at a time")
	}
	b, err := s.writeBackup(compression)
	if err != nil {
		s.actions.backingUp.Store(false)
		s.meter.snapshotErrors.Add(1)
		s.log.Warn("a backup was asked for and could not be made", zap.Error(err))
		return refusedAction(http.StatusInternalServerError, fmt.Sprintf("no backup was made: %v", err))
	}
	s.log.Info("a backup is sent", zap.Stringer("remote", r.Remote), zap.Stringer("zxid", b.zxid), zap.Int64("bytes", b.file.Size()))
	header := snapshotHeader(b.zxid, b.file.Size())
	header[headerDigest] = []string{strconv.FormatUint(b.digest, 10)}
	release := func() error {
		defer s.actions.backingUp.Store(false)
		return b.file.Close()
	}
	return &admin.Response{
		Header: header, Stream: &snapshotStream{Reader: io.NewSectionReader(b.file, 0, b.file.Size()), close: release}, StreamBytes: b.file.Size(),
	}
}

// backup is a snapshot in a file without a name.
type backup struct {
	file   *storage.Scratch
	zxid   zxid.Zxid
	digest uint64
}

func (s *Server) writeBackup(compression string) (*backup, error) {
	b := &backup{}
	run := s.wantSnapshot(func(snap *znode.Snapshot, stop <-chan struct{}) (err error) {
		b.zxid, b.digest = snap.Zxid(), snap.Digest()
		b.file, err = s.store.WriteScratch(storage.ScratchOut, compression, s.withRoom(s.pieces(snap, stop)))
		return err
	})
	if run == nil {
		return nil, errSnapshotBusy
	}
	if err := s.awaitRun(run); err != nil {
		if !errors.Is(err, errSnapshotClosed) && b.file != nil { // at the server's end it may be written still
			b.file.Close()
		}
		return nil, err
	}
	return b, nil
}
