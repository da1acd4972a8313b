package storage

import (
	"errors"
	"io/fs"

	"zabra/internal/storage/vfs"
	"zabra/zab"
)

// Transfer is a snapshot on its way to another server: the bytes of its file as they are stored, compression included. As
// long as it is open, a purge spares the file and the log behind it.
type Transfer struct {
	s    *Store
	f    vfs.File
	file zab.SnapshotFile
	size int64
	pin  *pin
}

// OpenTransfer opens the newest snapshot that is durable and, read from beginning to end, whole. Reading one for the first
// time takes as long as the disk needs for it. ErrNoSnapshotToSend: there is none. Any goroutine may call it.
func (s *Store) OpenTransfer() (*Transfer, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	files, err := s.listSnapshots()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		t, err := s.OpenTransferOf(f)
		if !errors.Is(err, ErrNoSnapshotToSend) {
			return t, err
		}
	}
	return nil, ErrNoSnapshotToSend
}

// OpenTransferOf opens one certain snapshot, such as History has chosen. ErrNoSnapshotToSend: it is damaged, or not there
// any more, or the log that follows it is not this server's.
func (s *Store) OpenTransferOf(f zab.SnapshotFile) (*Transfer, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	if s.cfg.Verify == nil || f.Zxid < s.floor() {
		return nil, ErrNoSnapshotToSend
	}
	t := &Transfer{s: s, file: f, pin: &pin{after: f.Zxid, snapshot: f.Name}}
	s.files.Lock() // a purge has seen the pin, or is over
	s.mu.Lock()
	s.mu.pins[t.pin] = struct{}{}
	s.mu.Unlock()
	s.files.Unlock()
	err := t.open()
	if err != nil {
		s.unpin(t.pin)
		return nil, err
	}
	return t, nil
}

// open verifies the file and opens it. What is opened is what was verified: a file that gets the name meanwhile is not
// known as verified.
func (t *Transfer) open() error {
	s := t.s
	whole, err := s.verified(t.file, s.cfg.Verify)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.files.Lock()
	defer s.files.Unlock()
	s.mu.Lock()
	whole = whole && s.mu.verified[t.file.Name]
	s.mu.Unlock()
	if !whole {
		return ErrNoSnapshotToSend
	}
	if t.f, err = s.fs.Open(s.snapPath(t.file.Name)); err != nil {
		return err
	}
	if t.size, err = t.f.Size(); err != nil {
		t.f.Close()
	}
	return err
}

// File names the snapshot; its receiver uses the same name, since the suffix tells how to read it.
func (t *Transfer) File() zab.SnapshotFile { return t.file }

// Size is the length of the file in bytes.
func (t *Transfer) Size() int64 { return t.size }

// ReadAt implements io.ReaderAt.
func (t *Transfer) ReadAt(p []byte, off int64) (int, error) { return t.f.ReadAt(p, off) }

// Close gives the file and the log behind it back to the purge. It may be called only once.
func (t *Transfer) Close() error {
	t.s.unpin(t.pin)
	return t.f.Close()
}
