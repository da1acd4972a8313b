package logfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// TestSetAside: old files move up, the oldest goes, and a file that was there before is gone on with.
func TestSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o600))
	l, err := Open(path, 8, 2)
	require.NoError(t, err)
	require.Equal(t, path, l.Path())
	for _, line := range []string{"a\n", "bb\n", "ccc\n", "dddd\n", "a line that is longer than a file may be\n"} {
		n, err := l.Write([]byte(line))
		require.NoError(t, err)
		require.Equal(t, len(line), n)
	}
	require.NoError(t, l.Sync())
	require.NoError(t, l.Close())
	require.Equal(t, "a line that is longer than a file may be\n", content(t, path))
	require.Equal(t, "dddd\n", content(t, path+".1"))
	require.Equal(t, "bb\nccc\n", content(t, path+".2"))
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 3, "what was there first is the oldest, and gone")
}

// TestReopen: after something else has moved the file, a new one is begun when that is asked for.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l, err := Open(path, 0, 0)
	require.NoError(t, err)
	defer l.Close()
	write := func(line string) {
		t.Helper()
		_, err := l.Write([]byte(line))
		require.NoError(t, err)
	}
	write("1\n")
	require.NoError(t, os.Rename(path, path+".moved"))
	write("2\n")
	require.NoError(t, l.Reopen())
	write("3\n")
	require.Equal(t, "1\n2\n", content(t, path+".moved"))
	require.Equal(t, "3\n", content(t, path))
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	require.Error(t, l.Reopen())
	write("4\n") // into the file that has no name any more
}

// TestCannotBeSetAside: the lines are written all the same, and the trouble is told once in a while.
func TestCannotBeSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	require.NoError(t, os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700))
	l, err := Open(path, 4, 1)
	require.NoError(t, err)
	defer l.Close()
	failures := 0
	for range 12 {
		n, err := l.Write([]byte("x\n"))
		require.Equal(t, 2, n)
		if err != nil {
			failures++
		}
	}
	require.Equal(t, strings.Repeat("x\n", 12), content(t, path))
	require.Equal(t, 5, failures)
}

func TestOpenFails(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "missing", "audit.log"), 0, 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}
