package config

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// written makes a file with {"Max": 1} of /limits.
func written(t *testing.T, w *world) string {
	file := filepath.Join(t.TempDir(), "limits")
	w.put("/limits", `{"Max": 1}`)
	v, err := Open(recipestest.Context(t), w.Client(t), "/limits", Options[limits]{File: file})
	require.NoError(t, err)
	v.Close()
	require.FileExists(t, file)
	return file
}

// The file gives the value while the ensemble cannot be reached, and the ensemble's is taken when it can.
func TestFileInPlaceOfTheEnsemble(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := written(t, w)
	client, proxy := w.Faulty(t)
	proxy.Refuse(true)
	proxy.Cut()
	w.put("/limits", `{"Max": 2}`)
	o, _ := checked()
	o.File, o.FileAfter = file, 1
	v, err := Open(recipestest.Context(t), client, "/limits", o)
	require.NoError(t, err)
	defer v.Close()
	got, has := v.Get()
	require.True(t, has)
	require.Equal(t, limits{Max: 1}, got.Value)
	require.True(t, got.FromFile)
	require.Equal(t, "/limits", got.Path)
	age, known := v.Age()
	require.True(t, known)
	require.Positive(t, age)
	require.WithinDuration(t, time.Now(), got.AsOf, patience)

	proxy.Refuse(false)
	eventually(t, v, limits{Max: 2})
	got, _ = v.Get()
	require.False(t, got.FromFile)
	recipestest.Eventually(t, func() bool {
		stored, err := Load(file, client.Path("/limits"), o)
		return err == nil && stored.Value.Max == 2 && stored.Zxid == got.Zxid
	}, "the file has it, too")
	require.NoError(t, v.Fault())
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no file is left behind")
}

// Nothing to go on with: the error says of both why.
func TestNeitherEnsembleNorFile(t *testing.T) {
	w := newWorld(t)
	client, proxy := w.Faulty(t)
	proxy.Refuse(true)
	proxy.Cut()
	file := filepath.Join(t.TempDir(), "limits")
	require.NoError(t, os.WriteFile(file, []byte("junk"), 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := Open(ctx, client, "/limits", Options[limits]{File: file, FileAfter: 1})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, ErrFile)
}

// A version that is refused, or that was deleted, does not take the one in the file away.
func TestFileInPlaceOfABadVersion(t *testing.T) {
	w := newWorld(t)
	file := written(t, w)
	w.put("/limits", "?")
	v, err := Open(recipestest.Context(t), w.Client(t), "/limits", Options[limits]{File: file})
	require.NoError(t, err)
	defer v.Close()
	got, _ := v.Get()
	require.Equal(t, limits{Max: 1}, got.Value)
	require.ErrorIs(t, v.Fault(), ErrRefused)

	require.NoError(t, w.raw.Delete(w.Abs("/limits"), -1))
	again, err := Open(recipestest.Context(t), w.Client(t), "/limits", Options[limits]{File: file})
	require.NoError(t, err)
	defer again.Close()
	got, _ = again.Get()
	require.Equal(t, limits{Max: 1}, got.Value)
	require.ErrorIs(t, again.Fault(), ErrDeleted)
}

// A damaged file is told and not used, and the next good version replaces it.
func TestDamagedFile(t *testing.T) {
	w := newWorld(t)
	file := written(t, w)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	at := w.Abs("/limits")
	for i := range whole {
		damaged := append([]byte{}, whole...)
		damaged[i] ^= 1
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		_, err := Load(file, at, Options[limits]{})
		require.ErrorIs(t, err, ErrFile, "byte %d", i)
		require.NoError(t, os.WriteFile(file, whole[:i], 0o600))
		_, err = Load(file, at, Options[limits]{})
		require.ErrorIs(t, err, ErrFile, "cut after %d bytes", i)
	}
	o, faults := checked()
	o.File = file
	v, err := Open(recipestest.Context(t), w.Client(t), "/limits", o)
	require.NoError(t, err)
	defer v.Close()
	eventually(t, v, limits{Max: 1})
	require.ErrorIs(t, faults.all()[0], ErrFile)
	recipestest.Eventually(t, func() bool { _, err := Load(file, at, o); return err == nil }, "the file is whole again")
}

func TestLoad(t *testing.T) {
	w := newWorld(t)
	file := written(t, w)
	at := w.Abs("/limits")
	o, _ := checked()
	_, err := Load(file+".none", at, o)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Load(file, at+"2", o)
	require.ErrorIs(t, err, ErrFile)
	require.ErrorContains(t, err, at+"2")
	_, err = Load(file, at, Options[[]int]{})
	require.ErrorIs(t, err, ErrRefused)
	got, err := Load(file, at, o)
	require.NoError(t, err)
	_, stat := w.get("/limits")
	require.Equal(t, stat.Mzxid, got.Zxid)
	require.Equal(t, stat.Mtime, got.Modified.UnixMilli())
}

// A file that cannot be written is a fault, and the value is in force all the same.
func TestFileThatCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.put("/limits", `{"Max": 1}`)
	v, err := Open(recipestest.Context(t), w.Client(t), "/limits", Options[limits]{File: filepath.Join(t.TempDir(), "none", "limits")})
	require.NoError(t, err)
	defer v.Close()
	eventually(t, v, limits{Max: 1})
	require.ErrorIs(t, v.Fault(), fs.ErrNotExist)
	require.NotErrorIs(t, v.Fault(), recipes.ErrUnknown)
}
