package storage

import (
	"errors"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
	"zabra/zab"
)

// cacheFS is a page cache (the embedded Mem) before a disk, as Linux keeps it: when a write-back fails, the pages count as
// clean all the same, so that everybody still reads what the disk does not hold, and each open file is told once. A file
// that is opened after somebody was told hears nothing of it.
type cacheFS struct {
	*vfs.Mem
	disk *vfs.Mem
	mu   struct {
		sync.Mutex
		inodes map[string]*cacheInode
		// failLog fails the next write-back of a log.
		failLog bool
	}
	// wrote and told are called without the lock: after a write, and when an error is about to be reported.
	wrote func(name string, n int)
	told  func()
}

type cacheInode struct {
	dirty   [][2]int64 // offset and length
	resized bool
	errs    int // failed write-backs
	told    int // the last of them that anybody was told of
}

type cacheFile struct {
	vfs.File
	fs    *cacheFS
	disk  vfs.File
	inode *cacheInode
	name  string
	seen  int
}

func newCacheFS() *cacheFS {
	c := &cacheFS{Mem: vfs.NewMem(), disk: vfs.NewMem(), wrote: func(string, int) {}, told: func() {}}
	c.mu.inodes = map[string]*cacheInode{}
	return c
}

func (c *cacheFS) file(name string, f vfs.File, err error, open func(string) (vfs.File, error)) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	disk, err := open(name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.mu.inodes[name]
	if i == nil {
		i = &cacheInode{}
		c.mu.inodes[name] = i
	}
	return &cacheFile{File: f, fs: c, disk: disk, inode: i, name: name, seen: i.told}, nil
}

func (c *cacheFS) Create(name string) (vfs.File, error) {
	f, err := c.Mem.Create(name)
	return c.file(name, f, err, c.disk.Create)
}

func (c *cacheFS) Open(name string) (vfs.File, error) {
	f, err := c.Mem.Open(name)
	return c.file(name, f, err, c.disk.OpenWrite)
}

func (c *cacheFS) OpenWrite(name string) (vfs.File, error) {
	f, err := c.Mem.OpenWrite(name)
	return c.file(name, f, err, c.disk.OpenWrite)
}

func (c *cacheFS) Rename(oldName, newName string) error {
	c.mu.Lock()
	c.mu.inodes[newName] = c.mu.inodes[oldName]
	delete(c.mu.inodes, oldName)
	c.mu.Unlock()
	return errors.Join(c.Mem.Rename(oldName, newName), c.disk.Rename(oldName, newName))
}

func (c *cacheFS) Remove(name string) error {
	if err := c.Mem.Remove(name); err != nil {
		return err
	}
	return c.disk.Remove(name)
}

func (c *cacheFS) MkdirAll(dir string) error {
	return errors.Join(c.Mem.MkdirAll(dir), c.disk.MkdirAll(dir))
}
func (c *cacheFS) SyncDir(dir string) error {
	return errors.Join(c.Mem.SyncDir(dir), c.disk.SyncDir(dir))
}

func (f *cacheFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	f.fs.mu.Lock()
	f.inode.dirty = append(f.inode.dirty, [2]int64{off, int64(n)})
	f.fs.mu.Unlock()
	f.fs.wrote(f.name, n)
	return n, err
}

func (f *cacheFile) Truncate(size int64) error {
	f.fs.mu.Lock()
	f.inode.resized = true
	f.fs.mu.Unlock()
	return f.File.Truncate(size)
}

func (f *cacheFile) Sync() error                         { return f.writeBack() }
func (f *cacheFile) SyncData() error                     { return f.writeBack() }
func (f *cacheFile) FlushRange(int64, int64, bool) error { return f.writeBack() }
func (f *cacheFile) Close() error                        { return errors.Join(f.File.Close(), f.disk.Close()) }

// writeBack sends what is dirty to the disk, whoever wrote it, and tells this open file what it has not heard yet.
func (f *cacheFile) writeBack() error {
	f.fs.mu.Lock()
	i := f.inode
	var err error
	if len(i.dirty) > 0 && f.fs.mu.failLog && strings.Contains(path.Base(f.name), logPrefix) {
		f.fs.mu.failLog = false
		i.errs++
	} else {
		err = f.toDisk()
	}
	i.dirty = nil
	tell := f.seen < i.errs
	if tell {
		f.seen, i.told, err = i.errs, i.errs, errDisk
	}
	f.fs.mu.Unlock()
	if tell {
		f.fs.told()
	}
	return err
}

func (f *cacheFile) toDisk() error {
	for _, d := range f.inode.dirty {
		b := make([]byte, d[1])
		n, _ := f.ReadAt(b, d[0])
		if _, err := f.disk.WriteAt(b[:n], d[0]); err != nil {
			return err
		}
	}
	size, err := f.Size()
	if err == nil && f.inode.resized {
		err = f.disk.Truncate(size)
	}
	return errors.Join(err, f.disk.Sync())
}

// The write-back of a batch fails, and the background writer is the first to be told. The appender is told nevertheless.
func TestZeroWriterDoesNotTakeTheAppendersError(t *testing.T) {
	c := newCacheFS()
	cfg := testConfig()
	cfg.PreAllocBytes = 16 << 20
	start, told, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	cfg.Go = func(f func()) { go func() { <-start; f() }() }
	var failures atomic.Int32
	cfg.Failed = func(error) { failures.Add(1) }
	s := newStore(t, c, cfg)
	appendSync(t, s, txns(1, 1)...)
	require.True(t, s.appender.live.zero.running)

	var once, onceTold sync.Once
	c.wrote = func(name string, n int) {
		if n != zeroChunkBytes {
			once.Do(func() { // the batch
				c.mu.Lock()
				c.mu.failLog = true
				c.mu.Unlock()
				close(start)
				<-told
			})
		}
	}
	c.told = func() { // the first one is not scheduled again before the appender has answered
		first := false
		onceTold.Do(func() { first = true; close(told) })
		if first {
			<-release
		}
	}
	require.NoError(t, s.Append(txns(2, 2)))
	err := s.Sync()
	close(release)
	s.background.Wait()
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, s.Close(), errDisk)
	require.Equal(t, int32(1), failures.Load(), "told once")
}

// The background writer fails while the appender's own sync succeeds: no acknowledgement, no mark.
func TestBackgroundFailureDuringASync(t *testing.T) {
	fault := vfs.NewFault(vfs.NewMem())
	cfg := testConfig()
	cfg.PreAllocBytes = 16 << 20
	var zero func()
	cfg.Go = func(f func()) { zero = f }
	var failures []error
	cfg.Failed = func(err error) { failures = append(failures, err) }
	s := newStore(t, fault, cfg)
	appendSync(t, s, txns(1, 1)...)
	require.NotNil(t, zero)
	fault.Inject(func(op vfs.Op) error {
		switch {
		case op.Kind == vfs.KindWrite && op.Len == zeroChunkBytes:
			return errDisk
		case op.Kind == vfs.KindSyncData && op.Name == log1 && zero != nil:
			f := zero
			zero = nil
			f()
		}
		return nil
	})
	require.NoError(t, s.Append(txns(2, 2)))
	err := s.Sync()
	require.ErrorIs(t, err, errDisk)
	require.EqualValues(t, 1, s.mu.durable.Last)
	require.EqualValues(t, 1, s.state.rec.log.Last)
	require.Equal(t, []error{err}, failures)
	require.Equal(t, err, s.Append(txns(3, 3)))
	require.Equal(t, err, s.Close())
	require.Len(t, failures, 1)
}

// A sync fails, the process ends, and the next one reads from the cache what the disk never got. What it loads and goes on
// from is on the disk when Begin returns.
func TestBeginWritesAgainWhatOnlyTheCacheHolds(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(c *cacheFS)
	}{
		{"behind the mark", func(*cacheFS) {}},
		{"without a mark", func(c *cacheFS) { require.NoError(t, c.Remove("/data/version-2/zabra.state")) }},
		{"in the log before the last, without a mark", func(c *cacheFS) {
			require.NoError(t, c.Remove("/data/version-2/zabra.state"))
			f, err := c.Create("/data/version-2/log.5")
			require.NoError(t, err)
			_, err = f.WriteAt(appendRecord(append([]byte(nil), logHeader[:]...), txn(5, 1, 0).Payload), 0)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCacheFS()
			s := newStore(t, c, testConfig())
			appendSync(t, s, txns(1, 3)...)
			c.mu.failLog = true
			require.NoError(t, s.Append([]zab.Entry{txn(4, 1, 9000)}))
			require.ErrorIs(t, s.Sync(), errDisk)
			s.crash()
			tt.prepare(c)

			s, entries, err := reopen(t, c, testConfig())
			require.NoError(t, err)
			last := entries[len(entries)-1].Zxid
			require.GreaterOrEqual(t, int(last), 4, "the cache still holds it")
			lost, err := Open(c.disk.Clone(), testConfig())
			require.NoError(t, err)
			onDisk, _ := readLog(lost, 0)
			require.Len(t, onDisk, 3, "the disk does not")
			lost.crash()

			require.NoError(t, s.Begin(last))
			after, kept, err := reopen(t, c.disk.Clone(), testConfig())
			require.NoError(t, err)
			require.Equal(t, entries, kept)
			after.crash()
			s.crash()
		})
	}
}
