package storage

import (
	"errors"
	"fmt"
	"io"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// Scratch is a temporary file in the folder of the snapshots that holds a snapshot on its way to a client or from one. It has no
// name any more once it is complete, so that nothing of it is left when it is closed or the process ends; what a crash
// leaves of an incomplete one, the next Open removes.
//
// An error of it is its own: unlike all else that is written here it promises nothing, so that a full disk or a failed write
// does not end the store.
type Scratch struct {
	f    vfs.File
	size int64
}

// ScratchUse says what a scratch file is for. There may be one file per use at a time.
type ScratchUse uint8

// The uses.
const (
	ScratchOut ScratchUse = iota // a snapshot that is sent
	ScratchIn                    // one that was received
)

var scratchNames = [...]string{ScratchOut: backupTmpName, ScratchIn: restoreTmpName}

// Size is its length in bytes.
func (sc *Scratch) Size() int64 { return sc.size }

// ReadAt implements io.ReaderAt.
func (sc *Scratch) ReadAt(p []byte, off int64) (int, error) { return sc.f.ReadAt(p, off) }

// Close gives its room on the disk back.
func (sc *Scratch) Close() error { return sc.f.Close() }

// WriteScratch writes what next gives, as WriteSnapshot does, to a scratch file: with the compression "gz", "snappy" or "".
func (s *Store) WriteScratch(use ScratchUse, compression string, next func(b []byte, budget int) ([]byte, bool, error)) (*Scratch, error) {
	return s.scratch(use, func(w *snapshotWriter) error { return s.writeCompressed(w, compression, next) })
}

// ReceiveScratch writes what r gives, to its end, to a scratch file. More than bytesMax are refused.
func (s *Store) ReceiveScratch(use ScratchUse, r io.Reader, bytesMax int64) (*Scratch, error) {
	return s.scratch(use, func(w *snapshotWriter) error {
		n, err := io.CopyBuffer(onlyWriter{w}, io.LimitReader(r, bytesMax+1), make([]byte, readBufferBytes))
		switch {
		case err != nil:
			return err
		case n > bytesMax:
			return fmt.Errorf("more than %d bytes", bytesMax)
		}
		return w.flush()
	})
}

// onlyWriter keeps io.CopyBuffer from looking for other methods.
type onlyWriter struct{ io.Writer }

func (s *Store) scratch(use ScratchUse, write func(*snapshotWriter) error) (*Scratch, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	name := s.snapPath(scratchNames[use])
	f, err := s.fs.Create(name)
	if err != nil {
		return nil, err
	}
	w := &snapshotWriter{f: f}
	err = write(w)
	if removeErr := s.fs.Remove(name); err == nil {
		err = removeErr
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Scratch{f: f, size: w.off}, nil
}

// Open reads the file from its beginning, without its compression, which is told from its first bytes. What is no compressed
// file is taken for a plain one.
func (sc *Scratch) Open() (io.Reader, error) {
	sr, err := openSniffed(sc.f, sc.size)
	if err != nil {
		return nil, err
	}
	return sr, nil
}

func openSniffed(f vfs.File, size int64) (*snapshotReader, error) {
	var head [len(snappyMagic)]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	sr := &snapshotReader{f: f, buf: make([]byte, min(size, readBufferBytes)), size: size}
	if err := sr.decompress(compressionOf(head[:n])); err != nil {
		return nil, err
	}
	return sr, nil
}

// compressionOf tells how a file is compressed by how it begins.
func compressionOf(head []byte) string {
	switch {
	case len(head) > 1 && head[0] == 0x1f && head[1] == 0x8b:
		return compressionGzip
	case string(head) == snappyMagic:
		return compressionSnappy
	}
	return compressionNone
}

// StageSnapshot writes the snapshot of z in its place for InstallSnapshot, as if another server had sent it, and makes it
// durable under its temporary name. An error of next, or of writing, leaves nothing and does not end the store. It must not
// run beside a reception, nor twice at a time; one that comes to nothing before InstallSnapshot is removed by the next Open.
func (s *Store) StageSnapshot(z zxid.Zxid, next func(b []byte, budget int) ([]byte, bool, error)) error {
	if err := s.dropIncoming(); err != nil {
		return err
	}
	name := s.snapPath(receivedName)
	f, err := s.fs.Create(name)
	if err != nil {
		return err
	}
	w := &snapshotWriter{f: f}
	err = s.writeSnapshot(w, next)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = s.fs.SyncDir(s.snapDir)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(s.fs.Remove(name)))
	}
	in := &s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	file := zab.SnapshotFile{Zxid: z, Name: snapshotName(z, s.cfg.Compression)}
	in.note, in.complete = receivedNote{from: s.cfg.ID, file: file, size: w.off, offset: w.off}, true
	return nil
}

// dropIncoming makes place for a snapshot that nobody sends: the note of an earlier reception must not stay beside it.
func (s *Store) dropIncoming() error {
	if err := s.err(); err != nil {
		return err
	}
	in := &s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.current != nil {
		return errors.New("storage: a snapshot is being received")
	}
	in.forget()
	if err := s.removeReceived(); err != nil {
		return err
	}
	return s.fs.SyncDir(s.snapDir)
}
