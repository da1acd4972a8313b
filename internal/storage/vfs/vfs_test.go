package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "zabra/internal/seeded"
)

// both runs a test on the real file system and on the one in memory.
func both(t *testing.T, test func(t *testing.T, fsys FS, dir string)) {
	t.Run("os", func(t *testing.T) { test(t, OS{}, t.TempDir()) })
	t.Run("mem", func(t *testing.T) {
		m := NewMem()
		require.NoError(t, m.MkdirAll("/root"))
		test(t, m, "/root")
	})
	t.Run("fault", func(t *testing.T) {
		m := NewMem()
		require.NoError(t, m.MkdirAll("/root"))
		test(t, NewFault(m), "/root")
	})
}

func write(t testing.TB, fsys FS, name, content string) {
	t.Helper()
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func read(t testing.TB, fsys FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	require.Equal(t, int(size), n)
	if err != io.EOF {
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	return string(b)
}

func TestFiles(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "a")
		f, err := fsys.Create(name)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("hello"), 5000)
		require.NoError(t, err)
		size, err := f.Size()
		require.NoError(t, err)
		require.Equal(t, int64(5005), size)
		b := make([]byte, 10)
		n, err := f.ReadAt(b, 4998)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "\x00\x00hello", string(b[:n]))
		_, err = f.ReadAt(b, 6000)
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, f.FlushRange(0, 5005, false))
		require.NoError(t, f.FlushRange(0, 5005, true))
		require.NoError(t, f.SyncData())
		require.NoError(t, f.Truncate(5002))
		require.NoError(t, f.Truncate(6000))
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		require.Error(t, f.Close())
		content := read(t, fsys, name)
		require.Equal(t, string(make([]byte, 5000))+"he"+string(make([]byte, 998)), content)

		f, err = fsys.Open(name)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("x"), 0)
		require.Error(t, err, "opened for reading")
		require.Error(t, f.Truncate(1))
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		f, err = fsys.OpenWrite(name)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("x"), 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		write(t, fsys, name, "new")
		require.Equal(t, "new", read(t, fsys, name))
	})
}

func TestNames(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		for _, err := range []error{
			fsys.Remove(a), fsys.Rename(a, b),
			func() error { _, err := fsys.Open(a); return err }(),
			func() error { _, err := fsys.OpenWrite(a); return err }(),
			func() error { _, err := fsys.Stat(a); return err }(),
			func() error { _, err := fsys.List(a); return err }(),
			func() error { _, err := fsys.Create(filepath.Join(a, "x")); return err }(),
			fsys.SyncDir(a),
		} {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		write(t, fsys, a, "1")
		write(t, fsys, b, "22")
		require.NoError(t, fsys.SyncDir(dir))
		names, err := fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, names)
		require.NoError(t, fsys.Rename(b, a))
		require.Equal(t, "22", read(t, fsys, a))
		info, err := fsys.Stat(a)
		require.NoError(t, err)
		require.EqualValues(t, 2, info.Size)
		require.False(t, info.Dir)
		_, err = fsys.Stat(b)
		require.ErrorIs(t, err, fs.ErrNotExist)

		deep := filepath.Join(dir, "x", "y", "z")
		require.NoError(t, fsys.MkdirAll(deep))
		require.NoError(t, fsys.MkdirAll(deep))
		info, err = fsys.Stat(deep)
		require.NoError(t, err)
		require.True(t, info.Dir)
		require.Error(t, fsys.MkdirAll(a), "a file is in the way")
		require.Error(t, fsys.MkdirAll(filepath.Join(a, "sub")))
		_, err = fsys.Create(deep)
		require.Error(t, err)
		require.NoError(t, fsys.Remove(a))
		names, err = fsys.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, names)
	})
}

// A file that was removed or replaced stays readable for whoever has it open.
func TestOpenFilesOutliveTheirName(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		write(t, fsys, a, "old")
		write(t, fsys, b, "new")
		f, err := fsys.Open(a)
		require.NoError(t, err)
		require.NoError(t, fsys.Rename(b, a))
		require.NoError(t, fsys.Remove(a))
		buf := make([]byte, 3)
		_, err = f.ReadAt(buf, 0)
		require.NoError(t, err)
		require.Equal(t, "old", string(buf))
		require.NoError(t, f.Close())
	})
}

func TestLock(t *testing.T) {
	both(t, func(t *testing.T, fsys FS, dir string) {
		name := filepath.Join(dir, "lock")
		l, err := fsys.Lock(name)
		require.NoError(t, err)
		_, err = fsys.Lock(name)
		require.ErrorIs(t, err, ErrLocked)
		require.NoError(t, l.Close())
		l, err = fsys.Lock(name)
		require.NoError(t, err)
		require.NoError(t, l.Close())
		_, err = fsys.Lock(filepath.Join(dir, "missing", "lock"))
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

// Whatever is written, truncated and synced: after a crash each page shows a content that it had since the last sync,
// and the file a length that it had since then.
func TestCrashKeepsWhatWasSynced(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := NewMem()
		f, err := m.Create("/f")
		require.NoError(rt, err)
		require.NoError(rt, m.SyncDir("/"))
		const pages = 4
		now := []byte{}
		versions := [][]byte{{}} // every content since the last sync
		for range rapid.IntRange(1, 20).Draw(rt, "ops") {
			switch rapid.IntRange(0, 5).Draw(rt, "op") {
			case 0:
				require.NoError(rt, f.SyncData())
				versions = [][]byte{bytes.Clone(now)}
				continue
			case 1:
				size := rapid.IntRange(0, pages*pageBytes).Draw(rt, "size")
				require.NoError(rt, f.Truncate(int64(size)))
				now = append(bytes.Clone(now[:min(size, len(now))]), make([]byte, max(0, size-len(now)))...)
			default:
				off := rapid.IntRange(0, (pages-1)*pageBytes).Draw(rt, "off")
				data := bytes.Repeat([]byte{rapid.Byte().Draw(rt, "byte")}, rapid.IntRange(1, pageBytes).Draw(rt, "len"))
				_, err := f.WriteAt(data, int64(off))
				require.NoError(rt, err)
				now = append(bytes.Clone(now), make([]byte, max(0, off+len(data)-len(now)))...)
				copy(now[off:], data)
			}
			versions = append(versions, bytes.Clone(now))
		}
		require.Equal(rt, string(now), read(t, m, "/f"))
		require.Equal(rt, string(now), read(t, m.Clone(), "/f"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		for range 5 {
			crashed := []byte(read(t, m.CrashClone(rng), "/f"))
			checkCrashed(rt, crashed, versions)
		}
		require.Equal(rt, string(now), read(t, m, "/f"), "a clone shares nothing")
		require.NoError(rt, f.Sync())
		require.Equal(rt, string(now), read(t, m.CrashClone(rng), "/f"))
	})
}

func checkCrashed(rt *rapid.T, crashed []byte, versions [][]byte) {
	sized := false
	for _, v := range versions {
		sized = sized || len(v) == len(crashed)
	}
	require.True(rt, sized, "a length that the file never had")
	for start := 0; start < len(crashed); start += pageBytes {
		got := crashed[start:min(start+pageBytes, len(crashed))]
		known := false
		for _, v := range versions {
			page := make([]byte, pageBytes)
			if start < len(v) {
				copy(page, v[start:])
			}
			known = known || bytes.Equal(page[:len(got)], got)
		}
		require.True(rt, known, "a page content that the file never had")
	}
}

// Each outcome of an unsynced change does occur.
func TestCrashOutcomes(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	m := NewMem()
	require.NoError(t, m.MkdirAll("/d"))
	write(t, m, "/d/kept", "1")
	write(t, m, "/d/removed", "2")
	write(t, m, "/d/old", "3")
	write(t, m, "/d/target", "4")
	require.NoError(t, m.SyncDir("/d"))
	require.NoError(t, m.Remove("/d/removed"))
	require.NoError(t, m.Rename("/d/old", "/d/target"))
	write(t, m, "/d/created", "5")
	f, err := m.OpenWrite("/d/kept")
	require.NoError(t, err)
	_, err = f.WriteAt(bytes.Repeat([]byte("x"), 2*pageBytes), 0)
	require.NoError(t, err)
	seen := map[string]int{}
	for range 300 {
		c := m.CrashClone(rng)
		names, err := c.List("/d")
		require.NoError(t, err)
		for _, n := range names {
			seen[n]++
		}
		switch target := read(t, c, "/d/target"); target {
		case "3", "4":
			seen["target="+target]++
		default:
			t.Fatalf("target is %q", target)
		}
		kept := read(t, c, "/d/kept")
		switch {
		case kept == "1":
			seen["kept old length"]++
		case len(kept) == 2*pageBytes:
			seen["first page "+kept[:1]]++
			seen["second page "+kept[pageBytes:pageBytes+1]]++
		default:
			require.Len(t, kept, 1)
		}
	}
	require.Equal(t, 300, seen["kept"])
	require.Equal(t, 300, seen["target"])
	for _, k := range []string{"removed", "old", "created", "target=3", "target=4", "kept old length", "first page 1", "first page x",
		"second page \x00", "second page x"} {
		require.Greater(t, seen[k], 20, k)
		require.Less(t, seen[k], 280, k)
	}
}

// Between directories a rename has two parts, and each waits for the sync of its own directory.
func TestCrashOfRenameAcrossDirectories(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	m := NewMem()
	require.NoError(t, m.MkdirAll("/a"))
	require.NoError(t, m.MkdirAll("/b"))
	write(t, m, "/a/f", "1")
	write(t, m, "/b/g", "2")
	require.NoError(t, m.SyncDir("/a"))
	require.NoError(t, m.SyncDir("/b"))
	require.Error(t, m.Rename("/a/f", "/c/f"))
	require.NoError(t, m.Rename("/a/f", "/b/g"))
	outcomes := func() map[string]int {
		seen := map[string]int{}
		for range 200 {
			c := m.CrashClone(rng)
			names, err := c.List("/a")
			require.NoError(t, err)
			seen[fmt.Sprint(len(names))+read(t, c, "/b/g")]++
		}
		return seen
	}
	seen := outcomes()
	for _, k := range []string{"11", "12", "01", "02"} {
		require.Greater(t, seen[k], 20, k)
	}
	require.NoError(t, m.SyncDir("/b"))
	seen = outcomes()
	require.Equal(t, 200, seen["11"]+seen["01"])
	require.Greater(t, seen["11"], 20)
	require.NoError(t, m.SyncDir("/a"))
	require.Equal(t, map[string]int{"01": 200}, outcomes())
}

// A directory that was not made durable takes along what is in it; MkdirAll makes it durable.
func TestCrashOfDirectories(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	m := NewMem()
	require.NoError(t, m.MkdirAll("/a/b"))
	for range 20 {
		_, err := m.CrashClone(rng).List("/a/b")
		require.NoError(t, err)
	}
	m.mu.Lock()
	m.changeLocked(dirOp{dir: "/a", newName: "/a/c", node: &memNode{dir: true}})
	m.mu.Unlock()
	write(t, m, "/a/c/f", "1")
	require.NoError(t, m.SyncDir("/a/c"))
	there, gone := 0, 0
	for range 50 {
		c := m.CrashClone(rng)
		if _, err := c.Stat("/a/c/f"); err == nil {
			there++
			continue
		}
		_, err := c.Stat("/a/c")
		require.ErrorIs(t, err, fs.ErrNotExist)
		gone++
	}
	require.Positive(t, there)
	require.Positive(t, gone)
}

// What a killed process leaves is all there, but not durable.
func TestCloneIsNotDurable(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	m := NewMem()
	write(t, m, "/f", "old")
	require.NoError(t, m.SyncDir("/"))
	f, err := m.OpenWrite("/f")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("new"), 0)
	require.NoError(t, err)
	write(t, m, "/g", "1")
	c := m.Clone()
	require.Equal(t, "new", read(t, c, "/f"))
	require.Equal(t, "1", read(t, c, "/g"))
	old, lost := 0, 0
	for range 50 {
		d := c.CrashClone(rng)
		if read(t, d, "/f") == "old" {
			old++
		}
		if _, err := d.Stat("/g"); err != nil {
			lost++
		}
	}
	require.Positive(t, old)
	require.Positive(t, lost)
	_, err = c.Lock("/lock")
	require.NoError(t, err)
}

func TestCrashRepeats(t *testing.T) {
	m := NewMem()
	f, err := m.Create("/f")
	require.NoError(t, err)
	for i := range 30 {
		_, err := f.WriteAt(bytes.Repeat([]byte{byte(i)}, 3000), int64(i*2000))
		require.NoError(t, err)
		write(t, m, "/g"+string(rune('a'+i)), "x")
	}
	image := func() string {
		c := m.CrashClone(rand.New(rand.NewPCG(1, 2)))
		names, err := c.List("/")
		require.NoError(t, err)
		s := ""
		for _, n := range names {
			s += n + "=" + read(t, c, "/"+n) + "\n"
		}
		return s
	}
	want := image()
	for range 10 {
		require.Equal(t, want, image())
	}
}

func TestFault(t *testing.T) {
	errDisk := errors.New("disk")
	f := NewFault(NewMem())
	var seen []string
	f.Observe(func(op Op, err error) {
		require.Equal(t, len(seen), op.Index)
		s := op.Kind.String() + " " + op.Name
		if err != nil {
			s += " " + err.Error()
		}
		seen = append(seen, s)
	})
	write(t, f, "/a", "hello")
	require.NoError(t, f.Rename("/a", "/b"))
	require.NoError(t, f.SyncDir("/"))
	require.Equal(t, []string{"create /a", "write /a", "sync /a", "close /a", "rename /b", "syncdir /"}, seen)
	require.Equal(t, 6, f.Ops())
	require.Equal(t, 1, f.Syncs())
	require.Equal(t, 1, f.Count(KindRename))

	f.Inject(FailAt(7, false, errDisk))
	file, err := f.OpenWrite("/b")
	require.NoError(t, err)
	n, err := file.WriteAt([]byte("world!"), 0)
	require.ErrorIs(t, err, errDisk)
	require.Equal(t, 3, n, "a failed write has written its first half")
	f.Inject(nil)
	require.Equal(t, "worlo", read(t, f, "/b"))

	require.NoError(t, f.Rename("/b", "/c"))
	f.Inject(FailKind(KindSyncData, 1, errDisk))
	require.NoError(t, file.SyncData())
	require.ErrorIs(t, file.SyncData(), errDisk)
	require.Equal(t, "syncdata /c disk", seen[len(seen)-1], "an open file is known by its new name")
	require.NoError(t, file.SyncData())
	f.Inject(FailAt(f.Ops(), true, errDisk))
	require.ErrorIs(t, file.Close(), errDisk)
	_, err = f.List("/")
	require.ErrorIs(t, err, errDisk)
	require.ErrorIs(t, f.MkdirAll("/x"), errDisk)
	for k := range kindCount {
		require.NotEmpty(t, k.String())
	}
	require.True(t, KindWrite.Changes())
	require.False(t, KindRead.Changes())
}
