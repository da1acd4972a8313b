package tools

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
)

// names are the files that the random operations work on.
var names = []string{"/d/a", "/d/b", "/d/c"}

func content(t *testing.T, fsys vfs.FS, name string) (string, bool) {
	t.Helper()
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	info, err := fsys.Stat(name)
	require.NoError(t, err)
	require.Equal(t, size, info.Size)
	b := make([]byte, size+1)
	n, err := f.ReadAt(b, 0)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, int(size), n)
	return string(b[:n]), true
}

func contents(t *testing.T, fsys vfs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names {
		if c, ok := content(t, fsys, name); ok {
			all[name] = c
		}
	}
	list, err := fsys.List("/d")
	require.NoError(t, err)
	require.Len(t, list, len(all))
	return all
}

// filled is a file system in memory with two files.
func filled(t *testing.T, seed uint64) *vfs.Mem {
	t.Helper()
	m, rng := vfs.NewMem(), rand.New(rand.NewPCG(seed, 1))
	require.NoError(t, m.MkdirAll("/d"))
	for _, name := range names[:2] {
		mutate(t, m, rng, name, 0)
		mutate(t, m, rng, name, 1)
	}
	return m
}

// mutate does one of the operations; kind 0 creates, 1 writes, 2 truncates, 3 removes, 4 renames.
func mutate(t *testing.T, fsys vfs.FS, rng *rand.Rand, name string, kind int) {
	t.Helper()
	other := names[rng.IntN(len(names))]
	off, n := rng.Int64N(3*overlayPageBytes), rng.IntN(2*overlayPageBytes)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	open := fsys.OpenWrite
	switch kind {
	case 0:
		open = fsys.Create
	case 3:
		ignoreMissing(t, fsys.Remove(name))
		return
	case 4:
		if other != name {
			ignoreMissing(t, fsys.Rename(name, other))
		}
		return
	}
	f, err := open(name)
	if ignoreMissing(t, err); err != nil {
		return
	}
	defer f.Close()
	switch kind {
	case 1:
		_, err = f.WriteAt(b, off)
	case 2:
		err = f.Truncate(off)
	}
	require.NoError(t, err)
}

func ignoreMissing(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
}

// An overlay looks like the file system after the same operations, and what lies below it does not change.
func TestOverlayAgainstARealFileSystem(t *testing.T) {
	for seed := range uint64(25) {
		base, model := filled(t, seed), filled(t, seed)
		before := contents(t, base)
		require.Equal(t, before, contents(t, model))
		over := newOverlay(base)
		for step := range uint64(25) {
			kind, name := rand.New(rand.NewPCG(seed, step)).IntN(5), names[step%3]
			mutate(t, over, rand.New(rand.NewPCG(seed, 100+step)), name, kind)
			mutate(t, model, rand.New(rand.NewPCG(seed, 100+step)), name, kind)
			require.Equal(t, contents(t, model), contents(t, over), "seed %d, step %d", seed, step)
		}
		require.Equal(t, before, contents(t, base), "seed %d", seed)
	}
}

func TestOverlayListsChanges(t *testing.T) {
	base := filled(t, 7)
	over := newOverlay(base)
	f, err := over.OpenWrite("/d/a")
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.Empty(t, over.changes(), "writing what is there is no change")
	require.Empty(t, over.files["/d/a"].pages)
	require.NoError(t, f.Truncate(5))
	require.NoError(t, over.Remove("/d/b"))
	c, err := over.Create("/d/c")
	require.NoError(t, err)
	_, err = c.WriteAt([]byte("new"), 0)
	require.NoError(t, err)
	info, err := base.Stat("/d/b")
	require.NoError(t, err)
	require.Equal(t, []change{
		{path: "/d/a", kind: changeCut, from: size, to: 5},
		{path: "/d/b", kind: changeRemoved, from: info.Size},
		{path: "/d/c", kind: changeCreated, to: 3},
	}, over.changes())
	lock, err := over.Lock("/d/lock")
	require.NoError(t, err)
	require.NoError(t, lock.Close())
	_, err = over.Stat("/d/lock")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
