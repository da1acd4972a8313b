package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"zabra/internal/storage/vfs"
	"zabra/zab"
	"zabra/zab/zxid"
)

// incoming is the snapshot that another server sends, or what there is of it.
type incoming struct {
	mu sync.Mutex
	// note says what the temporary file holds; without a file name it is nothing.
	note     receivedNote
	current  *Reception // the one that may write, nil if none
	complete bool       // all of it is there, durable and verified
}

// receivedNote is what must be known of a broken-off reception to go on with it. It is kept in a file as text: sender,
// name, size and offset, and the CRC-32C of these as it stands before it.
type receivedNote struct {
	from   zxid.ServerID
	file   zab.SnapshotFile
	size   int64
	offset int64 // so much is there
}

func (n *receivedNote) encode() string {
	text := fmt.Sprintf("%d %s %d %d", n.from, n.file.Name, n.size, n.offset)
	return fmt.Sprintf("%s %08x\n", text, crc32c([]byte(text)))
}

func parseNote(text string) (receivedNote, bool) {
	var n receivedNote
	var sum uint32
	if _, err := fmt.Sscanf(text, "%d %s %d %d %x", &n.from, &n.file.Name, &n.size, &n.offset, &sum); err != nil {
		return receivedNote{}, false
	}
	var ok bool
	n.file.Zxid, _, ok = parseSnapshotName(n.file.Name)
	return n, ok && n.encode() == text && n.offset >= 0 && n.offset <= n.size
}

// suffix returns the number of the file's compression in the state file.
func (n *receivedNote) suffix() uint32 {
	_, compression, _ := parseSnapshotName(n.file.Name)
	for i, c := range suffixes {
		if c == compression {
			return uint32(i)
		}
	}
	panic("storage: a snapshot name with an unknown suffix was accepted: " + n.file.Name)
}

// forget drops what was received; the caller has seen to the files.
func (in *incoming) forget() { in.note, in.current, in.complete = receivedNote{}, nil, false }

// close ends a reception that is under way without another write.
func (in *incoming) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.current != nil && !in.current.sealed {
		in.current.w.f.Close()
	}
	in.current = nil
}

// openIncoming finds what an earlier process has received. Without a valid note it is nothing.
func (s *Store) openIncoming() error {
	note, ok, err := s.readNote()
	if err != nil {
		return &DirError{Dir: s.snapDir, Why: "Cannot read " + receivedInfoName + " in", Err: err}
	}
	info, err := s.fs.Stat(s.snapPath(receivedName))
	if ok && err == nil && info.Size >= note.offset {
		s.incoming.note = note
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &DirError{Dir: s.snapDir, Why: "Cannot read " + receivedName + " in", Err: err}
	}
	if err := s.removeReceived(); err != nil {
		return &DirError{Dir: s.snapDir, Why: "Cannot remove temporary file from", Err: err}
	}
	return nil
}

func (s *Store) readNote() (receivedNote, bool, error) {
	f, err := s.fs.Open(s.snapPath(receivedInfoName))
	if errors.Is(err, fs.ErrNotExist) {
		return receivedNote{}, false, nil
	}
	if err != nil {
		return receivedNote{}, false, err
	}
	defer f.Close()
	b := make([]byte, receivedInfoBytesMax)
	n, err := f.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return receivedNote{}, false, err
	}
	note, ok := parseNote(string(b[:n]))
	return note, ok, nil
}

// removeReceived removes the note and what it is about.
func (s *Store) removeReceived() error {
	if err := s.removeInfo(); err != nil {
		return err
	}
	return ignoreMissing(s.fs.Remove(s.snapPath(receivedName)))
}

func (s *Store) removeInfo() error {
	return ignoreMissing(s.fs.Remove(s.snapPath(receivedInfoName)))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Reception takes the bytes of a snapshot that another server sends. It belongs to one goroutine. An error of the disk ends
// the store, as everywhere.
type Reception struct {
	s        *Store
	w        *snapshotWriter
	file     zab.SnapshotFile
	size     int64
	syncedTo int64
	sealed   bool // the file is whole, durable and closed
}

// Receive begins to receive the snapshot f, of size bytes, from the server from, or goes on at offset: with the same file of
// the same server as before, and at most as far as Resume told. It takes over from a reception that is still open. With
// offset 0 what was received before is dropped.
func (s *Store) Receive(from zxid.ServerID, f zab.SnapshotFile, size, offset int64) (*Reception, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	if z, _, ok := parseSnapshotName(f.Name); !ok || z != f.Zxid {
		return nil, fmt.Errorf("storage: %q is not the snapshot of %v", f.Name, f.Zxid)
	}
	if size <= 0 || size > receivedBytesMax || offset < 0 || offset > size {
		return nil, fmt.Errorf("storage: cannot receive %s: %d bytes from offset %d", f.Name, size, offset)
	}
	in := &s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := s.endCurrent(); err != nil {
		return nil, err
	}
	n := &in.note
	if offset > 0 && (n.from != from || n.file != f || n.size != size || offset > n.offset) {
		return nil, fmt.Errorf("storage: cannot go on with %s at %d: %d bytes of %q from server %d are there", f.Name, offset, n.offset, n.file.Name, n.from)
	}
	in.note, in.complete = receivedNote{from: from, file: f, size: size, offset: offset}, false
	file, err := s.openReceived()
	if err != nil {
		in.forget()
		return nil, s.fail(fmt.Errorf("receive %s: %w", f.Name, err))
	}
	in.current = &Reception{s: s, w: &snapshotWriter{f: file, off: offset, flushed: offset}, file: f, size: size, syncedTo: offset}
	return in.current, nil
}

// openReceived makes the temporary file end at the offset in the note. The note is durable first, so that it never claims
// what is another file's.
func (s *Store) openReceived() (vfs.File, error) {
	n := &s.incoming.note
	if err := s.replaceFile(receivedInfoName, n.encode()); err != nil {
		return nil, err
	}
	if n.offset == 0 {
		return s.fs.Create(s.snapPath(receivedName))
	}
	f, err := s.fs.OpenWrite(s.snapPath(receivedName))
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(n.offset); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// endCurrent ends the reception that is under way, if there is one. What it has received stays.
func (s *Store) endCurrent() error {
	r := s.incoming.current
	if r == nil {
		return nil
	}
	s.incoming.current = nil
	if r.sealed {
		return nil
	}
	err := r.w.flush()
	s.incoming.note.offset = r.w.off
	if closeErr := r.w.f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		s.incoming.forget()
		return s.fail(fmt.Errorf("receive %s: %w", r.file.Name, err))
	}
	return nil
}

// Resume tells what is there of a snapshot whose reception broke off, in this process or in the one before.
func (s *Store) Resume() zab.SnapshotProgress {
	in := &s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	offset := in.note.offset
	if in.current != nil {
		offset = in.current.w.offset()
	}
	if offset == 0 {
		return zab.SnapshotProgress{}
	}
	return zab.SnapshotProgress{From: in.note.from, File: in.note.file, Offset: offset}
}

// offset is how much was written, what is still in the buffer included.
func (w *snapshotWriter) offset() int64 { return w.off + int64(len(w.buf)) }

// active tells why the reception cannot go on. The caller holds the lock.
func (r *Reception) active() error {
	if err := r.s.err(); err != nil {
		return err
	}
	if r.s.incoming.current != r {
		return errReceptionEnded
	}
	return nil
}

// Offset is where the next Write goes.
func (r *Reception) Offset() int64 {
	r.s.incoming.mu.Lock()
	defer r.s.incoming.mu.Unlock()
	return r.w.offset()
}

// Write takes the next bytes of the file. More than its size are refused, and then none of them is taken.
func (r *Reception) Write(p []byte) (int, error) {
	in := &r.s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := r.active(); err != nil {
		return 0, err
	}
	if int64(len(p)) > r.size-r.w.offset() {
		return 0, fmt.Errorf("storage: receive %s: %d bytes at %d are more than its size of %d", r.file.Name, len(p), r.w.offset(), r.size)
	}
	if _, err := r.w.Write(p); err != nil {
		return 0, r.s.fail(fmt.Errorf("receive %s: %w", r.file.Name, err))
	}
	if r.w.off-r.syncedTo < receivedSyncBytes {
		return len(p), nil
	}
	return len(p), r.sync()
}

// sync makes durable what was received, and then the note of how much that is.
func (r *Reception) sync() error {
	err := r.w.flush()
	if err == nil {
		err = r.w.f.Sync()
	}
	if err == nil {
		r.s.incoming.note.offset = r.w.off
		err = r.s.replaceFile(receivedInfoName, r.s.incoming.note.encode())
	}
	if err != nil {
		return r.s.fail(fmt.Errorf("receive %s: %w", r.file.Name, err))
	}
	r.syncedTo = r.w.off
	return nil
}

// Abort ends the reception and keeps what was received for Resume. After Finish or another Abort it does nothing.
func (r *Reception) Abort() {
	r.s.incoming.mu.Lock()
	defer r.s.incoming.mu.Unlock()
	if r.active() == nil {
		_ = r.s.endCurrent() // the store keeps the failure
	}
}

// Finish ends the reception of a file that is there in full: it is synced and then read by verify, which gets the stream
// without compression and must read it to its end. If verify finds it damaged, nothing of it is kept. Otherwise
// InstallSnapshot can be called.
func (r *Reception) Finish(verify func(io.Reader) error) error {
	if err := r.seal(); err != nil {
		return err
	}
	verifyErr := r.verify(verify)
	in := &r.s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := r.active(); err != nil {
		return err // another reception has the file now
	}
	in.current = nil
	if verifyErr == nil {
		in.complete = true
		return nil
	}
	in.forget()
	if err := r.s.removeReceived(); err != nil {
		return r.s.fail(err)
	}
	return fmt.Errorf("storage: the received %s is damaged: %w", r.file.Name, verifyErr)
}

// seal makes the whole file durable, its temporary name included. The reception stays the current one.
func (r *Reception) seal() error {
	in := &r.s.incoming
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := r.active(); err != nil {
		return err
	}
	if r.sealed {
		return errReceptionEnded
	}
	if r.w.offset() != r.size {
		return fmt.Errorf("storage: receive %s: it has %d bytes of %d", r.file.Name, r.w.offset(), r.size)
	}
	if err := r.sync(); err != nil { // the note's rename has synced the directory, too
		return err
	}
	r.sealed = true
	return r.s.fail(r.w.f.Close())
}

// verify reads the temporary file to its end.
func (r *Reception) verify(verify func(io.Reader) error) error {
	sr, err := r.s.openSnapshotAt(r.s.snapPath(receivedName), r.file)
	if err != nil {
		return err
	}
	err = verify(sr)
	if err == nil {
		var rest strings.Builder
		if n, readErr := io.CopyN(&rest, sr, 1); n > 0 {
			err = errors.New("there is something behind its end")
		} else if readErr != io.EOF {
			err = readErr
		}
	}
	return errors.Join(err, sr.Close())
}
