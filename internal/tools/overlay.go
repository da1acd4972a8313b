package tools

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"zabra/internal/storage/vfs"
)

// overlay is a file system that shows another one and keeps all changes to itself. So a recovery can be tried on a data
// directory, and what it would have changed be read off afterwards, while not a byte of the directory changes. It takes no
// locks either: whoever runs there is not disturbed.
//
// Writing what is there already is no change and costs no memory.
type overlay struct {
	base vfs.FS
	mu   sync.Mutex
	// files are those that differ from the base: nil for one that is gone.
	files map[string]*shadow
	dirs  map[string]bool
}

var _ vfs.FS = (*overlay)(nil)

func newOverlay(base vfs.FS) *overlay {
	return &overlay{base: base, files: map[string]*shadow{}, dirs: map[string]bool{}}
}

// shadow is the content of a changed file.
type shadow struct {
	origin string // the file of the base that shines through, "" for none
	limit  int64  // up to this offset it does
	was    int64  // its size when it was first opened
	size   int64
	pages  map[int64][]byte
}

// change is something that the user of an overlay did to a file. A kind is one of changeRemoved, changeCreated, changeCut
// and changeWritten.
type change struct {
	path, kind string
	from, to   int64 // sizes before and after
}

const (
	changeRemoved = "removed"
	changeCreated = "created"
	changeCut     = "cut"
	changeWritten = "written"
)

// changes lists what would be different, by path.
func (o *overlay) changes() []change {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []change
	for name, sh := range o.files {
		info, err := o.base.Stat(name)
		switch {
		case sh == nil && err != nil:
		case sh == nil:
			all = append(all, change{path: name, kind: changeRemoved, from: info.Size})
		case err != nil:
			all = append(all, change{path: name, kind: changeCreated, to: sh.size})
		case sh.origin == name && sh.size < sh.was:
			all = append(all, change{path: name, kind: changeCut, from: sh.was, to: sh.size})
		case sh.origin != name || sh.size != sh.was || len(sh.pages) > 0:
			all = append(all, change{path: name, kind: changeWritten, from: info.Size, to: sh.size})
		}
	}
	slices.SortFunc(all, func(a, b change) int { return strings.Compare(a.path, b.path) })
	return all
}

// find returns the changed file of that name; ok is false if the base has the say.
func (o *overlay) find(name string) (sh *shadow, ok bool) {
	sh, ok = o.files[name]
	return sh, ok
}

// own returns the shadow of a file, made when it is not there yet.
func (o *overlay) own(op, name string) (*shadow, error) {
	if sh, ok := o.find(name); ok {
		if sh == nil {
			return nil, notExist(op, name)
		}
		return sh, nil
	}
	info, err := o.base.Stat(name)
	if err != nil {
		return nil, err
	}
	sh := &shadow{origin: name, limit: info.Size, was: info.Size, size: info.Size, pages: map[int64][]byte{}}
	o.files[name] = sh
	return sh, nil
}

func notExist(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

// Open implements vfs.FS.
func (o *overlay) Open(name string) (vfs.File, error) { return o.open("open", name) }

// OpenWrite implements vfs.FS.
func (o *overlay) OpenWrite(name string) (vfs.File, error) { return o.open("open", name) }

func (o *overlay) open(op, name string) (vfs.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sh, err := o.own(op, name)
	if err != nil {
		return nil, err
	}
	f := &overlayFile{o: o, sh: sh}
	if sh.origin != "" {
		if f.base, err = o.base.Open(sh.origin); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Create implements vfs.FS.
func (o *overlay) Create(name string) (vfs.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sh := &shadow{pages: map[int64][]byte{}}
	o.files[name] = sh
	return &overlayFile{o: o, sh: sh}, nil
}

// Remove implements vfs.FS.
func (o *overlay) Remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.own("remove", name); err != nil {
		return err
	}
	o.files[name] = nil
	return nil
}

// Rename implements vfs.FS.
func (o *overlay) Rename(oldName, newName string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	sh, err := o.own("rename", oldName)
	if err != nil {
		return err
	}
	o.files[oldName], o.files[newName] = nil, sh
	return nil
}

// List implements vfs.FS.
func (o *overlay) List(dir string) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	names, err := o.base.List(dir)
	if err != nil && !o.dirs[dir] {
		return nil, err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		sh, ok := o.find(path.Join(dir, name))
		return ok && sh == nil
	})
	for name, sh := range o.files {
		if sh != nil && path.Dir(name) == path.Clean(dir) && !slices.Contains(names, path.Base(name)) {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stat implements vfs.FS.
func (o *overlay) Stat(name string) (vfs.Info, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if sh, ok := o.find(name); ok {
		if sh == nil {
			return vfs.Info{}, notExist("stat", name)
		}
		return vfs.Info{Size: sh.size}, nil
	}
	if o.dirs[name] {
		return vfs.Info{Dir: true}, nil
	}
	return o.base.Stat(name)
}

// MkdirAll implements vfs.FS.
func (o *overlay) MkdirAll(dir string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if info, err := o.base.Stat(dir); err != nil || !info.Dir {
		o.dirs[dir] = true
	}
	return nil
}

// SyncDir implements vfs.FS.
func (o *overlay) SyncDir(string) error { return nil }

// Lock implements vfs.FS without locking anything.
func (o *overlay) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// overlayFile is an open file of an overlay.
type overlayFile struct {
	o    *overlay
	sh   *shadow
	base vfs.File // nil if nothing of the base is in it
}

// ReadAt implements vfs.File.
func (f *overlayFile) ReadAt(b []byte, off int64) (int, error) {
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	return f.readAt(b, off)
}

func (f *overlayFile) readAt(b []byte, off int64) (int, error) {
	n := int(min(int64(len(b)), max(f.sh.size-off, 0)))
	out := b[:n]
	clear(out)
	if through := min(int64(n), max(f.sh.limit-off, 0)); through > 0 && f.base != nil {
		if got, err := f.base.ReadAt(out[:through], off); err != nil && (err != io.EOF || int64(got) < through) {
			return got, err
		}
	}
	for done := 0; done < n && len(f.sh.pages) > 0; {
		page, in := (off+int64(done))/overlayPageBytes, int((off+int64(done))%overlayPageBytes)
		step := min(overlayPageBytes-in, n-done)
		if p := f.sh.pages[page]; p != nil {
			copy(out[done:done+step], p[in:])
		}
		done += step
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements vfs.File.
func (f *overlayFile) WriteAt(b []byte, off int64) (int, error) {
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	now := make([]byte, len(b))
	n, err := f.readAt(now, off)
	if err != nil && err != io.EOF {
		return 0, err
	}
	if n == len(b) && bytes.Equal(now, b) {
		return n, nil
	}
	f.sh.size = max(f.sh.size, off+int64(len(b)))
	for done := 0; done < len(b); {
		page, in := (off+int64(done))/overlayPageBytes, int((off+int64(done))%overlayPageBytes)
		p := f.sh.pages[page]
		if p == nil {
			p = make([]byte, overlayPageBytes)
			if _, err := f.readAt(p, page*overlayPageBytes); err != nil && err != io.EOF {
				return done, err
			}
			f.sh.pages[page] = p
		}
		done += copy(p[in:], b[done:])
	}
	return len(b), nil
}

// Size implements vfs.File.
func (f *overlayFile) Size() (int64, error) {
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	return f.sh.size, nil
}

// Truncate implements vfs.File.
func (f *overlayFile) Truncate(size int64) error {
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	sh := f.sh
	for page, p := range sh.pages {
		if from := max(size-page*overlayPageBytes, 0); from < overlayPageBytes {
			clear(p[from:])
		}
	}
	sh.limit, sh.size = min(sh.limit, size), size
	return nil
}

// Close implements vfs.File.
func (f *overlayFile) Close() error {
	if f.base == nil {
		return nil
	}
	return f.base.Close()
}

// Sync implements vfs.File.
func (f *overlayFile) Sync() error { return nil }

// SyncData implements vfs.File.
func (f *overlayFile) SyncData() error { return nil }

// FlushRange implements vfs.File.
func (f *overlayFile) FlushRange(int64, int64, bool) error { return nil }
