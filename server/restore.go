package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"zabra/internal/storage"
	"zabra/server/admin"
	"zabra/server/replica"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// restoreEnsemble tells what to do instead.
const restoreEnsemble = "a member of an ensemble cannot be restored while it runs: the others would go on from other data. Stop all members; on each of them move the folder " +
	"version-2 of dataDir and of dataLogDir away; on each of them run: zabra restore FILE --config zoo.cfg; start them. The old folders may be deleted when all is well"

// restoreError is why a snapshot was not put in the state's place, with the status of the answer.
type restoreError struct {
	status int
	err    error
}

func (e *restoreError) Error() string { return e.err.Error() }
func (e *restoreError) Unwrap() error { return e.err }

func badBackup(format string, args ...any) error {
	return &restoreError{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

// runRestore puts the snapshot in the request's body in the place of a standalone server's state.
func (s *Server) runRestore(r *admin.Request) *admin.Response {
	switch {
	case !s.cfg.Admin.RestoreEnabled:
		return refusedAction(http.StatusServiceUnavailable, "the command restore is switched off (admin.restore.enabled)")
	case s.member != nil:
		return refusedAction(http.StatusConflict, restoreEnsemble)
	}
	if refused := s.needsZxid(); refused != nil {
		return refused
	}
	if r.Body == nil {
		return refusedAction(http.StatusBadRequest, "the body is missing: POST the bytes of a snapshot file")
	}
	if !s.actions.restoring.CompareAndSwap(false, true) {
		return refusedAction(http.StatusConflict, "another restore is under way")
	}
	defer s.actions.restoring.Store(false)
	if refused := s.limited(&s.actions.restoreRate, &s.meter.restoreRateLimited); refused != nil {
		return refused
	}
	began := time.Now()
	done, err := s.restoreFrom(r.Body)
	if err != nil {
		s.meter.restoreErrors.Add(1)
		s.log.Warn("a snapshot was to be restored and was refused; nothing has changed", zap.Stringer("remote", r.Remote), zap.Error(err))
		status := http.StatusInternalServerError
		var refused *restoreError
		if errors.As(err, &refused) {
			status = refused.status
		}
		return refusedAction(status, err.Error())
	}
	s.meter.restore.Add(time.Since(began).Milliseconds())
	return &admin.Response{Fields: admin.Object{
		{Name: "last_zxid", Value: int64(done.zxid)},
		{Name: "snapshot_zxid", Value: done.from.String()},
		{Name: "digest", Value: done.digest},
	}}
}

// restored is a snapshot that has become the state.
type restored struct {
	from, zxid zxid.Zxid
	digest     string
}

// restoreFrom receives a snapshot, checks all of it, and only then replaces the state. Until the storage has announced that
// durably, a crash leaves the old state, from then on the new one (storage.InstallSnapshot).
func (s *Server) restoreFrom(body io.Reader) (*restored, error) {
	file, err := s.receiveBackup(body)
	if err != nil {
		return nil, err
	}
	tree, done, err := s.readBackup(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if err := s.stage(tree); err != nil {
		return nil, fmt.Errorf("the snapshot cannot be written: %w", err)
	}
	s.log.Warn("the state of this server is being replaced by a snapshot; clients are cut off and their sessions end", zap.Stringer("snapshot", done.from), zap.Stringer("zxid", done.zxid))
	return done, s.replaceState(done.zxid)
}

// receiveBackup takes the body in. It is a fault of the request if it breaks off.
func (s *Server) receiveBackup(body io.Reader) (*storage.Scratch, error) {
	from := &bodyReader{r: &quitReader{body, s.quit}}
	file, err := s.store.ReceiveScratch(storage.ScratchIn, &roomReader{r: from, check: roomCheck{s: s}}, restoreBytesMax)
	switch {
	case from.err != nil:
		return nil, badBackup("the body broke off: %v", from.err)
	case err != nil:
		return nil, fmt.Errorf("the snapshot cannot be received: %w", err)
	case file.Size() == 0:
		file.Close()
		return nil, badBackup("the body is missing: POST the bytes of a snapshot file")
	}
	return file, nil
}

// bodyReader remembers an error of what it reads from.
type bodyReader struct {
	r   io.Reader
	err error
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// readBackup checks a snapshot without building its tree, so that damage costs no memory, and then builds it.
func (s *Server) readBackup(file *storage.Scratch) (*znode.Tree, *restored, error) {
	info, err := s.inspectBackup(file)
	if err != nil {
		return nil, nil, badBackup("the body is not a whole snapshot: %w", err)
	}
	if !info.HasLastZxid {
		return nil, nil, badBackup("the snapshot does not say which transaction it ends at: it was written without serializeLastProcessedZxid.enabled. " +
			"zabra restore can take that from the file's name, with the server stopped")
	}
	done := &restored{from: info.LastZxid}
	if done.zxid, err = replica.RestoredZxid(info.LastZxid, s.replica.Stats().LastZxid); err != nil {
		return nil, nil, &restoreError{http.StatusConflict, err}
	}
	r, err := file.Open()
	if err != nil {
		return nil, nil, err
	}
	tree, err := replica.ReadRestored(&quitReader{r, s.quit}, s.treeConfig, s.fieldBytesMax(), info, done.zxid)
	if err != nil {
		return nil, nil, badBackup("the snapshot cannot be restored: %w", err)
	}
	done.digest = strconv.FormatUint(tree.Digest(), 10)
	return tree, done, nil
}

func (s *Server) inspectBackup(file *storage.Scratch) (znode.SnapshotInfo, error) {
	r, err := file.Open()
	if err != nil {
		return znode.SnapshotInfo{}, err
	}
	r = &quitReader{r, s.quit}
	info, err := znode.InspectSnapshot(r, s.fieldBytesMax())
	if err != nil {
		return info, err
	}
	var rest [1]byte
	if n, err := r.Read(rest[:]); n > 0 {
		return info, errors.New("there is something behind its end")
	} else if !errors.Is(err, io.EOF) {
		return info, err
	}
	return info, nil
}

// stage writes the state that is to be installed.
func (s *Server) stage(tree *znode.Tree) error {
	snap, err := tree.OpenSnapshot(s.snapshotOptions())
	if err != nil {
		return err
	}
	defer snap.Close()
	return s.store.StageSnapshot(snap.Zxid(), s.withRoom(s.pieces(snap, nil)))
}

// replaceState has what was staged installed and loaded, and waits for it. Meanwhile nobody is served. Requests that were
// under way get no answer, as when a server ends.
func (s *Server) replaceState(z zxid.Zxid) error {
	s.actions.maintenance.Store(true)
	defer s.actions.maintenance.Store(false)
	done := s.actions.awaitRestored()
	s.steps.input(zab.Input{Kind: zab.InputRestore, Zxid: z})
	select {
	case <-done:
		return nil
	case <-s.quit:
		return errors.New("the server ends before it is known what has become of it")
	}
}
