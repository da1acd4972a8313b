package storage

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// Snapshots returns what has the name of a snapshot, newest first. Only the name was looked at: a file may be broken, and
// then the next one is to be tried.
func (s *Store) Snapshots() ([]zab.SnapshotFile, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.listSnapshots()
}

func (s *Store) listSnapshots() ([]zab.SnapshotFile, error) {
	names, err := s.fs.List(s.snapDir)
	if err != nil {
		return nil, err
	}
	var files []zab.SnapshotFile
	for _, name := range names {
		if z, _, ok := parseSnapshotName(name); ok && z >= zxid.Zxid(s.barrier.Load()) {
			files = append(files, zab.SnapshotFile{Zxid: z, Name: name})
		}
	}
	slices.SortFunc(files, func(a, b zab.SnapshotFile) int {
		if a.Zxid != b.Zxid {
			if a.Zxid > b.Zxid {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return files, nil
}

// OpenSnapshot opens a snapshot and undoes its compression. The stream costs bounded memory whatever the file holds; that
// it is a whole snapshot only its reader can tell.
func (s *Store) OpenSnapshot(sf zab.SnapshotFile) (io.ReadCloser, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	sr, err := s.openSnapshot(sf)
	if err != nil {
		return nil, err
	}
	return sr, nil
}

func (s *Store) openSnapshot(sf zab.SnapshotFile) (*snapshotReader, error) {
	return s.openSnapshotAt(s.snapPath(sf.Name), sf)
}

// openSnapshotAt opens a file whatever its name is and reads it as the snapshot sf.
func (s *Store) openSnapshotAt(name string, sf zab.SnapshotFile) (*snapshotReader, error) {
	z, compression, ok := parseSnapshotName(sf.Name)
	if !ok || z != sf.Zxid {
		return nil, fmt.Errorf("storage: %q is not the snapshot of %v", sf.Name, sf.Zxid)
	}
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, err
	}
	sr := &snapshotReader{f: f, buf: make([]byte, min(size, readBufferBytes)), size: size}
	err = sr.decompress(compression)
	switch {
	case sr.failed != nil:
		err = sr.failed
	case err != nil:
		err = &formatError{name: sf.Name, err: err}
	default:
		return sr, nil
	}
	f.Close()
	return nil, err
}

// decompress puts what undoes the compression between the file and the reader.
func (sr *snapshotReader) decompress(compression string) (err error) {
	sr.r = sr.raw()
	switch compression {
	default:
		sr.plain = true
	case compressionGzip:
		sr.r, err = gzip.NewReader(sr.r)
	case compressionSnappy:
		sr.r, err = newSnappyReader(sr.r)
	}
	return err
}

// formatError says that a snapshot's compression is not what its name promises.
type formatError struct {
	name string
	err  error
}

func (e *formatError) Error() string { return fmt.Sprintf("storage: %s: %v", e.name, e.err) }
func (e *formatError) Unwrap() error { return e.err }

// snapshotReader reads a file from its beginning to its end, through a decompressor if need be.
type snapshotReader struct {
	f          vfs.File
	r          io.Reader
	buf        []byte
	start, end int // what buf holds and was not read yet
	off, size  int64
	plain      bool  // not compressed
	failed     error // of the disk, as opposed to what the file holds
}

// Read implements io.Reader.
func (sr *snapshotReader) Read(b []byte) (int, error) { return sr.r.Read(b) }

// Size returns how many bytes Read gives in all, 0 if that is not known before. It is a hint: the file may be damaged.
func (sr *snapshotReader) Size() int64 {
	if !sr.plain {
		return 0
	}
	return sr.size
}

// Close implements io.Closer.
func (sr *snapshotReader) Close() error { return sr.f.Close() }

// rawReader is the file itself, buffered. It has ReadByte, so that no decompressor buffers again.
type rawReader struct{ *snapshotReader }

func (sr *snapshotReader) raw() io.Reader { return rawReader{sr} }

func (r rawReader) fill() error {
	if r.start < r.end {
		return nil
	}
	n, err := r.readAt(r.buf)
	r.start, r.end = 0, n
	return err
}

// readAt reads what follows into b.
func (r rawReader) readAt(b []byte) (int, error) {
	if r.off >= r.size {
		return 0, io.EOF
	}
	n, err := r.f.ReadAt(b[:min(int64(len(b)), r.size-r.off)], r.off)
	r.off += int64(n)
	switch {
	case n > 0:
		return n, nil
	case err == nil || err == io.EOF:
		return 0, io.ErrUnexpectedEOF // it was longer when it was opened
	}
	r.failed = err
	return 0, err
}

// Read implements io.Reader. What is large goes past the buffer.
func (r rawReader) Read(b []byte) (int, error) {
	if r.start == r.end && len(b) >= directReadBytes {
		return r.readAt(b)
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(b, r.buf[r.start:r.end])
	r.start += n
	return n, nil
}

// ReadByte implements io.ByteReader.
func (r rawReader) ReadByte() (byte, error) {
	if err := r.fill(); err != nil {
		return 0, err
	}
	r.start++
	return r.buf[r.start-1], nil
}

// SnapshotPath is the file that a snapshot of the state at z is written to. Any goroutine may ask.
func (s *Store) SnapshotPath(z zxid.Zxid) string {
	return s.snapPath(snapshotName(z, s.cfg.Compression))
}

// WriteSnapshot writes the snapshot of z. It calls next for one piece after the other: next appends about budget bytes
// to b and tells whether that was the last. Everything is written and synced under a temporary name, flushed as it goes
// so that the log's syncs do not wait behind a mountain of dirty pages; when WriteSnapshot returns nil the snapshot is
// durable under its name, that of SnapshotPath. An error of next is returned and leaves nothing behind; one of the disk ends the store.
//
// It runs beside the disk goroutine, one call at a time.
func (s *Store) WriteSnapshot(z zxid.Zxid, next func(b []byte, budget int) ([]byte, bool, error)) error {
	if err := s.err(); err != nil {
		return err
	}
	generation := s.announcedGeneration()
	tmp, name := s.snapPath(snapshotTmpName), snapshotName(z, s.cfg.Compression)
	f, err := s.fs.Create(tmp)
	if err != nil {
		return s.fail(err)
	}
	w := &snapshotWriter{f: f}
	if err := s.writeSnapshot(w, next); err != nil {
		f.Close()
		if w.err != nil {
			return s.fail(fmt.Errorf("write snapshot %s: %w", name, err))
		}
		if s.err() != nil {
			return s.err()
		}
		return s.dropSnapshot(tmp, err) // the caller's own error
	}
	err = f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return s.fail(fmt.Errorf("write snapshot %s: %w", name, err))
	}
	return s.nameSnapshot(tmp, name, generation)
}

// announcedGeneration returns the generation of the history that the snapshot to be written is of: that of now, unless
// SnapshotStarted has announced it earlier.
func (s *Store) announcedGeneration() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	announced := s.mu.announced
	if s.mu.announced = 0; announced == 0 {
		return s.generation.Load()
	}
	return announced
}

// nameSnapshot gives a snapshot its name, unless its history has been cut or replaced meanwhile: then loading it would bring
// back what was discarded.
func (s *Store) nameSnapshot(tmp, name string, generation uint64) error {
	s.files.Lock()
	defer s.files.Unlock()
	if s.generation.Load() != generation {
		return s.dropSnapshot(tmp, fmt.Errorf("snapshot %s: %w", name, errSuperseded))
	}
	err := s.fs.Rename(tmp, s.snapPath(name))
	if err == nil {
		err = s.fs.SyncDir(s.snapDir)
	}
	if err != nil {
		return s.fail(fmt.Errorf("write snapshot %s: %w", name, err))
	}
	s.forgetVerified(name)
	s.hasSnapshot.Store(true)
	s.stats.add(func(st *Stats) { st.Snapshots++ })
	return nil
}

// dropSnapshot removes what was written and returns why.
func (s *Store) dropSnapshot(tmp string, why error) error {
	if err := s.fs.Remove(tmp); err != nil {
		return s.fail(err)
	}
	return why
}

// writeSnapshot pumps the pieces through the compressor that is configured into w.
func (s *Store) writeSnapshot(w *snapshotWriter, next func([]byte, int) ([]byte, bool, error)) error {
	return s.writeCompressed(w, s.cfg.Compression, next)
}

func (s *Store) writeCompressed(w *snapshotWriter, compression string, next func([]byte, int) ([]byte, bool, error)) error {
	var out io.Writer = w
	finish := func() error { return nil }
	switch compression {
	case compressionGzip:
		gz := gzip.NewWriter(w)
		out, finish = gz, gz.Close
	case compressionSnappy:
		sn := &snappyWriter{w: w}
		out, finish = sn, sn.Close
	}
	var buf []byte // it grows to the size of a chunk, if the state is as large as that
	for done := false; !done; {
		if err := s.err(); err != nil {
			return err
		}
		var err error
		if buf, done, err = next(buf[:0], snapshotChunkBytes); err != nil {
			return err
		}
		if _, err := out.Write(buf); err != nil {
			return err
		}
		if cap(buf) > 4*snapshotChunkBytes {
			buf = nil // one huge node must not hold its memory until the end
		}
	}
	if err := finish(); err != nil {
		return err
	}
	return w.flush()
}

// snapshotWriter writes a file from its beginning, in chunks. Each chunk is sent to the device at once, and the writer
// waits when more than snapshotFlushLagBytes are under way.
type snapshotWriter struct {
	f       vfs.File
	buf     []byte
	off     int64
	flushed int64
	err     error // of the disk
}

// Write implements io.Writer.
func (w *snapshotWriter) Write(b []byte) (int, error) {
	w.buf = append(w.buf, b...)
	if len(w.buf) < snapshotChunkBytes {
		return len(b), nil
	}
	return len(b), w.flush()
}

func (w *snapshotWriter) flush() error {
	n := int64(len(w.buf))
	if n == 0 {
		return nil
	}
	_, err := w.f.WriteAt(w.buf, w.off)
	if err == nil {
		err = w.f.FlushRange(w.off, n, false)
	}
	w.off += n
	w.buf = w.buf[:0]
	if lag := w.off - w.flushed; err == nil && lag > snapshotFlushLagBytes {
		err = w.f.FlushRange(w.flushed, lag-snapshotFlushLagBytes, true)
		w.flushed += lag - snapshotFlushLagBytes
	}
	w.err = err
	return err
}

func (s *Store) forgetVerified(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.verified, name)
}
