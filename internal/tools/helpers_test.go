package tools

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
)

// osFiles are the real files.
var osFiles vfs.FS = vfs.OS{}

// fixtureDir holds data directories that real servers wrote, whole ones and ones damaged on purpose.
const fixtureDir = "../storage/testdata/datadirs"

func fixture(parts ...string) string {
	return filepath.Join(append([]string{fixtureDir}, parts...)...)
}

// inStandalone is a file of a standalone server of version 3.9.
func inStandalone(name string) string { return fixture("standalone-39", dataFolder, name) }

// copyFixture copies a data directory, so that a test may damage it.
func copyFixture(t *testing.T, name string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.CopyFS(to, os.DirFS(fixture(name))))
	require.NoError(t, filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o640)
	}))
	return to
}

// edit changes the content of a file.
func edit(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, change(b), 0o640))
}

// run calls a tool and returns what it printed, in UTC.
func run(tool func(Output) error) (string, error) {
	var out bytes.Buffer
	err := tool(Output{Out: &out, Err: io.Discard, Location: time.UTC})
	return out.String(), err
}

// runJSON calls a tool and returns the objects that it printed.
func runJSON(t *testing.T, tool func(Output) error) ([]map[string]any, error) {
	t.Helper()
	var out bytes.Buffer
	err := tool(Output{Out: &out, Err: io.Discard, JSON: true, Location: time.UTC})
	var objects []map[string]any
	for line := range strings.Lines(out.String()) {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		objects = append(objects, v)
	}
	return objects, err
}

// golden is what ZooKeeper's tool of version 3.9.5 printed, in UTC.
func golden(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "golden", name))
	require.NoError(t, err)
	return string(b)
}

// checksumDamage is a log with two records whose data were changed, as in the golden outputs.
func checksumDamage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(inStandalone("log.1"))
	require.NoError(t, err)
	const end = 3362 // behind the last record
	b = bytes.Replace(b[:end:end], []byte("hello"), []byte("hell0"), 1)
	b = bytes.Replace(b, []byte("hello3"), []byte("hello9"), 1)
	file := filepath.Join(t.TempDir(), "log.1")
	require.NoError(t, os.WriteFile(file, b, 0o640))
	return file
}
