package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mode returns the permissions of a file.
func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// numberedLines are n lines "line FIRST" and so on.
func numberedLines(first, n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf("line %d", first+i))
	}
	return lines
}

// The file is its owner's alone, however long it is and however it was made.
func TestHistoryFile(t *testing.T) {
	for name, count := range map[string]int{"short": 3, "full": historyFileLinesMax, "too long": historyFileLinesMax + 1} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "history")
			require.NoError(t, os.WriteFile(path, []byte("\n"+strings.Join(numberedLines(0, count), "\n")+"\n"), 0o644))
			require.NoError(t, os.Chmod(path, 0o644))
			link := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.Symlink(path, link))

			h, lines := openHistory(link)
			kept := min(count, historyFileLinesMax)
			require.Equal(t, numberedLines(count-kept, kept), lines)
			require.EqualValues(t, 0o600, mode(t, path))
			h.add(lines[len(lines)-1]) // no line stands behind itself
			h.add("one more")
			h.add("one more")
			h.close()
			require.EqualValues(t, 0o600, mode(t, path))
			info, err := os.Lstat(link)
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&os.ModeSymlink)

			again, lines := openHistory(link)
			again.close()
			require.Equal(t, "one more", lines[len(lines)-1])
			require.Len(t, lines, min(kept+1, historyFileLinesMax))
			names, err := os.ReadDir(filepath.Dir(path))
			require.NoError(t, err)
			require.Len(t, names, 1, "no temporary file is left")
		})
	}
}

// Of a huge file only the end is read.
func TestHistoryFileHuge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	long := strings.Repeat("x", historyFileBytesMax/2-10)
	require.NoError(t, os.WriteFile(path, []byte("a"+long+"\nb"+long+"\nc"+long+"\n"), 0o600))
	h, lines := openHistory(path)
	h.close()
	require.Equal(t, []string{"c" + long}, lines[len(lines)-1:])
	require.Len(t, lines, 1+1)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(historyFileBytesMax))
}

// Where there can be no file there is no history, and nothing is harmed.
func TestHistoryFileUnusable(t *testing.T) {
	before := mode(t, os.DevNull)
	for _, path := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "none", "history"), os.DevNull} {
		h, lines := openHistory(path)
		require.Empty(t, lines, path)
		h.add("line")
		h.close()
	}
	require.Equal(t, before, mode(t, os.DevNull))
}
