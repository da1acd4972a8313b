package vfs

import (
	"io"
	"sync"
)

// Kind names a call, so that injectors can choose by it.
type Kind uint8

// The kinds of operations that Fault counts. Reads are among them: a disk fails there too.
const (
	KindOpen Kind = iota
	KindCreate
	KindRemove
	KindRename
	KindList
	KindStat
	KindMkdir
	KindSyncDir
	KindLock
	KindRead
	KindWrite
	KindTruncate
	KindSync
	KindSyncData
	KindFlush
	KindSize
	KindClose
	kindCount
)

var kindNames = [kindCount]string{"open", "create", "remove", "rename", "list", "stat", "mkdir", "syncdir", "lock", "read",
	"write", "truncate", "sync", "syncdata", "flush", "size", "close"}

// String returns the call's name.
func (k Kind) String() string { return kindNames[k] }

// Changes tells whether the call changes what is on disk or what is durable.
func (k Kind) Changes() bool {
	switch k {
	case KindCreate, KindRemove, KindRename, KindMkdir, KindSyncDir, KindWrite, KindTruncate, KindSync, KindSyncData:
		return true
	}
	return false
}

// Op is one call on its way through Fault.
type Op struct {
	// Index counts all calls from 0.
	Index int
	Kind  Kind
	Name  string
	// Off and Len are set for reads, writes and flushes; Len is the new size for truncations.
	Off, Len int64
}

// Fault wraps a file system: it counts calls, tells hooks about them, and fails those that an injector chooses. A write
// that is failed has written the first half of its bytes, as a full disk does.
type Fault struct {
	fs FS
	mu struct {
		sync.Mutex
		next   int
		counts [kindCount]int
		before func(Op) error
		after  func(Op, error)
		open   map[*faultFile]string // by current name: files are renamed while they are open
	}
}

var _ FS = (*Fault)(nil)

// NewFault wraps inner.
func NewFault(inner FS) *Fault {
	f := &Fault{fs: inner}
	f.mu.open = map[*faultFile]string{}
	return f
}

// Inject sets the function that is asked before each call; a non-nil error becomes the call's result. It may be called
// from several goroutines and must not call back. Nil removes it.
func (f *Fault) Inject(before func(Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.before = before
}

// Observe sets the function that is told each call with its result, after it happened. Nil removes it.
func (f *Fault) Observe(after func(Op, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.after = after
}

// Count returns how many calls of a kind there were.
func (f *Fault) Count(k Kind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.counts[k]
}

// Ops returns how many calls there were.
func (f *Fault) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.next
}

// Syncs returns how many calls made file content durable.
func (f *Fault) Syncs() int { return f.Count(KindSync) + f.Count(KindSyncData) }

// FailAt returns an injector that fails the call with the given index, and if last is set all later ones.
func FailAt(index int, last bool, err error) func(Op) error {
	return func(op Op) error {
		if op.Index == index || last && op.Index > index {
			return err
		}
		return nil
	}
}

// FailKind returns an injector that fails the nth call (from 0) of a kind.
func FailKind(k Kind, nth int, err error) func(Op) error {
	var mu sync.Mutex
	seen := 0
	return func(op Op) error {
		if op.Kind != k {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		seen++
		if seen-1 == nth {
			return err
		}
		return nil
	}
}

// do counts op, asks the injector, makes the call and tells the observer.
func (f *Fault) do(op Op, call func() error) error {
	f.mu.Lock()
	op.Index = f.mu.next
	f.mu.next++
	f.mu.counts[op.Kind]++
	before, after := f.mu.before, f.mu.after
	f.mu.Unlock()
	var err error
	if before != nil {
		err = before(op)
	}
	if err == nil {
		err = call()
	}
	if after != nil {
		after(op, err)
	}
	return err
}

func (f *Fault) file(k Kind, name string, open func(string) (File, error)) (File, error) {
	var file File
	err := f.do(Op{Kind: k, Name: name}, func() (err error) {
		file, err = open(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	ff := &faultFile{f: f, file: file}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.open[ff] = name
	return ff, nil
}

// Open implements FS.
func (f *Fault) Open(name string) (File, error) { return f.file(KindOpen, name, f.fs.Open) }

// OpenWrite implements FS.
func (f *Fault) OpenWrite(name string) (File, error) { return f.file(KindOpen, name, f.fs.OpenWrite) }

// Create implements FS.
func (f *Fault) Create(name string) (File, error) { return f.file(KindCreate, name, f.fs.Create) }

// Remove implements FS.
func (f *Fault) Remove(name string) error {
	return f.do(Op{Kind: KindRemove, Name: name}, func() error { return f.fs.Remove(name) })
}

// Rename implements FS. The Op carries the new name.
func (f *Fault) Rename(oldName, newName string) error {
	return f.do(Op{Kind: KindRename, Name: newName}, func() error {
		err := f.fs.Rename(oldName, newName)
		if err == nil {
			f.renamed(oldName, newName)
		}
		return err
	})
}

func (f *Fault) renamed(oldName, newName string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ff, name := range f.mu.open {
		if name == oldName {
			f.mu.open[ff] = newName
		}
	}
}

// List implements FS.
func (f *Fault) List(dir string) (names []string, err error) {
	err = f.do(Op{Kind: KindList, Name: dir}, func() (err error) {
		names, err = f.fs.List(dir)
		return err
	})
	return names, err
}

// Stat implements FS.
func (f *Fault) Stat(name string) (info Info, err error) {
	err = f.do(Op{Kind: KindStat, Name: name}, func() (err error) {
		info, err = f.fs.Stat(name)
		return err
	})
	return info, err
}

// MkdirAll implements FS.
func (f *Fault) MkdirAll(dir string) error {
	return f.do(Op{Kind: KindMkdir, Name: dir}, func() error { return f.fs.MkdirAll(dir) })
}

// SyncDir implements FS.
func (f *Fault) SyncDir(dir string) error {
	return f.do(Op{Kind: KindSyncDir, Name: dir}, func() error { return f.fs.SyncDir(dir) })
}

// Lock implements FS.
func (f *Fault) Lock(name string) (lock io.Closer, err error) {
	err = f.do(Op{Kind: KindLock, Name: name}, func() (err error) {
		lock, err = f.fs.Lock(name)
		return err
	})
	return lock, err
}

type faultFile struct {
	f    *Fault
	file File
}

// op returns an Op with the name that the file has now.
func (ff *faultFile) op(k Kind, off, n int64) Op {
	ff.f.mu.Lock()
	defer ff.f.mu.Unlock()
	return Op{Kind: k, Name: ff.f.mu.open[ff], Off: off, Len: n}
}

var _ File = (*faultFile)(nil)

// ReadAt implements io.ReaderAt.
func (ff *faultFile) ReadAt(b []byte, off int64) (n int, err error) {
	err = ff.f.do(ff.op(KindRead, off, int64(len(b))), func() (err error) {
		n, err = ff.file.ReadAt(b, off)
		return err
	})
	return n, err
}

// WriteAt implements io.WriterAt.
func (ff *faultFile) WriteAt(b []byte, off int64) (n int, err error) {
	called := false
	err = ff.f.do(ff.op(KindWrite, off, int64(len(b))), func() (err error) {
		called = true
		n, err = ff.file.WriteAt(b, off)
		return err
	})
	if !called {
		n, _ = ff.file.WriteAt(b[:len(b)/2], off)
	}
	return n, err
}

// Size implements File.
func (ff *faultFile) Size() (size int64, err error) {
	err = ff.f.do(ff.op(KindSize, 0, 0), func() (err error) {
		size, err = ff.file.Size()
		return err
	})
	return size, err
}

// Truncate implements File.
func (ff *faultFile) Truncate(size int64) error {
	return ff.f.do(ff.op(KindTruncate, 0, size), func() error { return ff.file.Truncate(size) })
}

// Sync implements File.
func (ff *faultFile) Sync() error { return ff.f.do(ff.op(KindSync, 0, 0), ff.file.Sync) }

// SyncData implements File.
func (ff *faultFile) SyncData() error {
	return ff.f.do(ff.op(KindSyncData, 0, 0), ff.file.SyncData)
}

// FlushRange implements File.
func (ff *faultFile) FlushRange(off, n int64, wait bool) error {
	return ff.f.do(ff.op(KindFlush, off, n), func() error {
		return ff.file.FlushRange(off, n, wait)
	})
}

// Close implements io.Closer. A failed close has closed the file all the same, as on Linux.
func (ff *faultFile) Close() error {
	called := false
	err := ff.f.do(ff.op(KindClose, 0, 0), func() error {
		called = true
		return ff.file.Close()
	})
	if !called {
		ff.file.Close()
	}
	ff.f.mu.Lock()
	defer ff.f.mu.Unlock()
	delete(ff.f.mu.open, ff)
	return err
}
