package vfs

import (
	"bytes"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// memFile is an open file of Mem.
type memFile struct {
	m      *Mem
	n      *memNode
	name   string
	write  bool
	closed bool
}

var _ File = (*memFile)(nil)

func (f *memFile) checkLocked(op string, write bool) error {
	switch {
	case f.closed:
		return pathError(op, f.name, fs.ErrClosed)
	case write && !f.write:
		return pathError(op, f.name, syscall.EBADF)
	}
	return nil
}

// ReadAt implements io.ReaderAt.
func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.checkLocked("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, syscall.EINVAL)
	}
	if off >= f.n.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), f.n.size-off))
	f.n.read(b[:n], off)
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements io.WriterAt.
func (f *memFile) WriteAt(b []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.checkLocked("write", true); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("write", f.name, syscall.EINVAL)
	}
	f.n.writeAt(b, off)
	return len(b), nil
}

// Size implements File.
func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.n.size, f.checkLocked("size", false)
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.checkLocked("truncate", true); err != nil {
		return err
	}
	f.n.truncate(size)
	return nil
}

// Sync implements File. It does not make the file's name durable.
func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.checkLocked("sync", false); err != nil {
		return err
	}
	f.n.sync()
	return nil
}

// SyncData implements File.
func (f *memFile) SyncData() error { return f.Sync() }

// FlushRange implements File: it promises nothing, so nothing becomes durable.
func (f *memFile) FlushRange(off, n int64, wait bool) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.checkLocked("flush", false)
}

// Close implements io.Closer. Closing makes nothing durable.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.checkLocked("close", false); err != nil {
		return err
	}
	f.closed = true
	return nil
}

func (n *memNode) read(b []byte, off int64) {
	for len(b) > 0 {
		page, in := off/pageBytes, off%pageBytes
		c := min(len(b), int(pageBytes-in))
		if p := n.pages[page]; p != nil && p.now != nil {
			copy(b[:c], p.now[in:])
		} else {
			clear(b[:c])
		}
		b, off = b[c:], off+int64(c)
	}
}

func (n *memNode) writeAt(b []byte, off int64) {
	end := off + int64(len(b))
	for len(b) > 0 {
		page, in := off/pageBytes, off%pageBytes
		c := min(len(b), int(pageBytes-in))
		copy(n.touch(page)[in:], b[:c])
		b, off = b[c:], off+int64(c)
	}
	if end > n.size {
		n.setSize(end)
	}
}

func (n *memNode) setSize(size int64) {
	if n.size != n.durableSize {
		n.sizes = append(n.sizes, n.size)
	}
	n.size = size
}

// touch prepares a page for a change: what it held stays known as a possible outcome of a crash.
func (n *memNode) touch(page int64) []byte {
	p := n.pages[page]
	if p == nil {
		p = &memPage{}
		n.pages[page] = p
	}
	switch {
	case !p.dirty:
		p.dirty = true
		if p.now != nil {
			p.now = bytes.Clone(p.now) // p.durable may be the same slice
		}
	case len(p.older) < pageVersionsMax:
		p.older = append(p.older, bytes.Clone(p.now))
	default:
		p.older = append(slices.Delete(p.older, 0, 1), bytes.Clone(p.now))
	}
	if p.now == nil {
		p.now = make([]byte, pageBytes)
	}
	return p.now
}

// truncate sets the length. What lies beyond reads as zeros when the file grows again.
func (n *memNode) truncate(size int64) {
	if size < n.size {
		for page, p := range n.pages {
			start := page * pageBytes
			if start+pageBytes <= size || p.now == nil {
				continue
			}
			clear(n.touch(page)[max(0, size-start):])
		}
	}
	if size != n.size {
		n.setSize(size)
	}
}

func (n *memNode) sync() {
	for page, p := range n.pages {
		if p.dirty {
			p.dirty, p.older = false, nil
			p.durable = p.now
		}
		if p.now != nil && page*pageBytes >= n.size {
			delete(n.pages, page)
		}
	}
	n.durableSize, n.sizes = n.size, nil
}
