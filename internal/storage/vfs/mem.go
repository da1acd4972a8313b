package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"sync"
	"syscall"
)

// pageBytes is the unit in which unsynced writes reach the disk or get lost. No smaller unit is torn: see the
// assumptions about the disk in the storage package.
const pageBytes = 4096

// pageVersionsMax bounds how many older contents of an unsynced page are kept as possible outcomes of a crash.
const pageVersionsMax = 3

// Mem is a file system in memory that knows what a crash may do to it. Everything synced survives. Of everything else,
// CrashClone keeps or loses each page, each length and each directory entry by itself.
//
// The zero value is not usable; call NewMem.
type Mem struct {
	mu struct {
		sync.Mutex
		// entries is what a running process sees, durable what a crash certainly leaves.
		entries map[string]*memNode
		durable map[string]*memNode
		// pending are the directory operations since the last SyncDir of their directory, in order.
		pending []dirOp
		locks   map[string]bool
	}
}

var _ FS = (*Mem)(nil)

// dirOp is a change of one directory: newName (if any) now leads to node, oldName (if any) is gone.
type dirOp struct {
	dir              string
	oldName, newName string
	node             *memNode
}

// memNode is a file or a directory.
type memNode struct {
	dir  bool
	size int64
	// pages holds the content; a missing page reads as zeros.
	pages map[int64]*memPage
	// durableSize and sizes are the lengths that a crash may leave: the synced one, and those set since.
	durableSize int64
	sizes       []int64
}

// memPage is one page: its content now, what is synced (nil = zeros), and contents in between.
type memPage struct {
	now     []byte
	durable []byte
	older   [][]byte
	dirty   bool
}

// NewMem returns an empty file system with a root directory.
func NewMem() *Mem {
	m := &Mem{}
	root := &memNode{dir: true}
	m.mu.entries = map[string]*memNode{"/": root, ".": root}
	m.mu.durable = map[string]*memNode{"/": root, ".": root}
	m.mu.locks = map[string]bool{}
	return m
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// Open implements FS.
func (m *Mem) Open(name string) (File, error) { return m.open(name, false) }

// OpenWrite implements FS.
func (m *Mem) OpenWrite(name string) (File, error) { return m.open(name, true) }

func (m *Mem) open(name string, write bool) (File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.mu.entries[name]
	switch {
	case n == nil:
		return nil, pathError("open", name, fs.ErrNotExist)
	case n.dir:
		return nil, pathError("open", name, syscall.EISDIR)
	}
	return &memFile{m: m, n: n, name: name, write: write}, nil
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkParentLocked("create", name); err != nil {
		return nil, err
	}
	n := m.mu.entries[name]
	switch {
	case n == nil:
		n = &memNode{pages: map[int64]*memPage{}}
		m.changeLocked(dirOp{dir: path.Dir(name), newName: name, node: n})
	case n.dir:
		return nil, pathError("create", name, syscall.EISDIR)
	default:
		n.truncate(0)
	}
	return &memFile{m: m, n: n, name: name, write: true}, nil
}

func (m *Mem) checkParentLocked(op, name string) error {
	if p := m.mu.entries[path.Dir(name)]; p == nil || !p.dir {
		return pathError(op, name, fs.ErrNotExist)
	}
	return nil
}

// changeLocked carries a directory operation out and remembers it for CrashClone.
func (m *Mem) changeLocked(op dirOp) {
	op.apply(m.mu.entries)
	m.mu.pending = append(m.mu.pending, op)
}

func (op dirOp) apply(entries map[string]*memNode) {
	if op.oldName != "" {
		delete(entries, op.oldName)
	}
	if op.newName != "" {
		entries[op.newName] = op.node
	}
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.mu.entries[name]
	switch {
	case n == nil:
		return pathError("remove", name, fs.ErrNotExist)
	case n.dir:
		return pathError("remove", name, syscall.EISDIR)
	}
	m.changeLocked(dirOp{dir: path.Dir(name), oldName: name})
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	oldName, newName = path.Clean(oldName), path.Clean(newName)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.mu.entries[oldName]
	if n == nil || n.dir {
		return pathError("rename", oldName, fs.ErrNotExist)
	}
	if path.Dir(oldName) != path.Dir(newName) {
		if err := m.checkParentLocked("rename", newName); err != nil {
			return err
		}
		m.changeLocked(dirOp{dir: path.Dir(newName), newName: newName, node: n})
		m.changeLocked(dirOp{dir: path.Dir(oldName), oldName: oldName})
		return nil
	}
	m.changeLocked(dirOp{dir: path.Dir(newName), oldName: oldName, newName: newName, node: n})
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	dir = path.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.mu.entries[dir]; n == nil || !n.dir {
		return nil, pathError("list", dir, fs.ErrNotExist)
	}
	var names []string
	for name := range m.mu.entries {
		if name != dir && path.Dir(name) == dir && name != "." && name != "/" {
			names = append(names, path.Base(name))
		}
	}
	sort.Strings(names)
	return names, nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (Info, error) {
	name = path.Clean(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.mu.entries[name]
	if n == nil {
		return Info{}, pathError("stat", name, fs.ErrNotExist)
	}
	return Info{Size: n.size, Dir: n.dir}, nil
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error {
	dir = path.Clean(dir)
	m.mu.Lock()
	n := m.mu.entries[dir]
	m.mu.Unlock()
	if n != nil {
		if !n.dir {
			return pathError("mkdir", dir, syscall.ENOTDIR)
		}
		return nil
	}
	parent := path.Dir(dir)
	if err := m.MkdirAll(parent); err != nil {
		return err
	}
	m.mu.Lock()
	m.changeLocked(dirOp{dir: parent, newName: dir, node: &memNode{dir: true}})
	m.mu.Unlock()
	return m.SyncDir(parent)
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	dir = path.Clean(dir)
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.mu.entries[dir]; n == nil || !n.dir {
		return pathError("syncdir", dir, fs.ErrNotExist)
	}
	m.mu.pending = slices.DeleteFunc(m.mu.pending, func(op dirOp) bool {
		if op.dir != dir {
			return false
		}
		op.apply(m.mu.durable)
		return true
	})
	return nil
}

// Lock implements FS. Clones start without locks, as after a reboot.
func (m *Mem) Lock(name string) (io.Closer, error) {
	name = path.Clean(name)
	m.mu.Lock()
	locked := m.mu.locks[name]
	m.mu.Unlock()
	if locked {
		return nil, fmt.Errorf("%s: %w", name, ErrLocked)
	}
	f, err := m.open(name, true)
	if err != nil {
		if f, err = m.Create(name); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	m.mu.locks[name] = true
	m.mu.Unlock()
	return &memLock{m: m, name: name, f: f}, nil
}

type memLock struct {
	m    *Mem
	name string
	f    File
}

// Close releases the lock.
func (l *memLock) Close() error {
	l.m.mu.Lock()
	delete(l.m.mu.locks, l.name)
	l.m.mu.Unlock()
	return l.f.Close()
}
