package tools

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

// restored runs Restore into a fresh directory and returns the snapshot that is there then.
func restored(t *testing.T, opt RestoreOptions) (*snapshot, string) {
	t.Helper()
	dir := t.TempDir()
	opt.SnapDir = dir
	out, err := run(func(o Output) error { return Restore(o, opt) })
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join(dir, dataFolder))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if e.Name() != "zabra.lock" {
			names = append(names, e.Name())
		}
	}
	require.Len(t, names, 1)
	s, err := readSnapshot(osFiles, filepath.Join(dir, dataFolder, names[0]))
	require.NoError(t, err)
	return s, out
}

// The nodes stay, the sessions go, the zxid is that of a new epoch.
func TestRestore(t *testing.T) {
	file := inStandalone("snapshot.1f")
	from, err := readSnapshot(osFiles, file)
	require.NoError(t, err)
	require.NotZero(t, from.tree.SessionCount())
	s, out := restored(t, RestoreOptions{File: file})
	require.Equal(t, zxid.Make(1, 0), s.named)
	require.Equal(t, zxid.Make(1, 0), s.info.LastZxid)
	require.Equal(t, from.tree.Digest(), s.tree.Digest())
	require.Equal(t, s.tree.Digest(), s.info.Digest)
	require.Equal(t, from.tree.NodeCount(), s.tree.NodeCount())
	require.Zero(t, s.tree.SessionCount())
	require.Contains(t, out, fmt.Sprintf("digest %d", s.tree.Digest()))
	require.Contains(t, out, "snapshot.100000000, to start at zxid 0x100000000")

	s, _ = restored(t, RestoreOptions{File: file, Epoch: 77, Compression: "gz"})
	require.Equal(t, zxid.Make(77, 0), s.named)
	require.Equal(t, ".gz", filepath.Ext(s.file))
	s, _ = restored(t, RestoreOptions{File: file, NoLastZxid: true})
	require.True(t, s.info.HasDigestBlock)
	require.False(t, s.info.HasLastZxid)
	s, _ = restored(t, RestoreOptions{File: file, NoDigest: true})
	require.False(t, s.info.HasDigestBlock || s.info.HasLastZxid)
}

// A backup may have any name, and be compressed whatever the name says.
func TestRestoreOfABackup(t *testing.T) {
	b, err := os.ReadFile(inStandalone("snapshot.3b"))
	require.NoError(t, err)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(b)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	file := filepath.Join(t.TempDir(), "sunday.bak")
	require.NoError(t, os.WriteFile(file, packed.Bytes(), 0o600))
	s, _ := restored(t, RestoreOptions{File: file})
	require.Equal(t, zxid.Make(1, 0), s.named)
	out, err := run(func(o Output) error { return VerifySnapshots(o, []string{file}, "") })
	require.NoError(t, err)
	require.Equal(t, file+": OK, zxid 0x3b, 37 nodes, 0 sessions, digest right\n", out)
}

func TestRestoreRefuses(t *testing.T) {
	whole, err := os.ReadFile(inStandalone("snapshot.3b"))
	require.NoError(t, err)
	const zxidBlockBytes = 21
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(name, b, 0o600))
		return name
	}
	s, _ := restored(t, RestoreOptions{File: inStandalone("snapshot.3b")})
	later := s.file
	tests := []struct {
		name string
		opt  RestoreOptions
		want string
	}{
		{"missing", RestoreOptions{File: filepath.Join(dir, "nowhere")}, "no such file"},
		{"cut", RestoreOptions{File: write("snapshot.3b", whole[:len(whole)-30])}, "snapshot"},
		{"longer", RestoreOptions{File: write("longer", append(bytes.Clone(whole), 0))}, "bad snapshot"},
		{"no zxid", RestoreOptions{File: write("backup", whole[:len(whole)-zxidBlockBytes])}, "which transaction it ends at"},
		{"old epoch", RestoreOptions{File: later, Epoch: 1}, "must be a later one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "data")
			tt.opt.SnapDir = to
			_, err := run(func(o Output) error { return Restore(o, tt.opt) })
			require.ErrorContains(t, err, tt.want)
			_, err = os.Stat(to)
			require.Error(t, err, "nothing is made")
		})
	}
	named := write("snapshot.3b", whole[:len(whole)-zxidBlockBytes])
	s, _ = restored(t, RestoreOptions{File: named})
	require.Equal(t, zxid.Make(1, 0), s.named)
}

// Whatever a server has left there stays.
func TestRestoreNeedsAnEmptyDirectory(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	var notEmpty *NotEmptyError
	for _, opt := range []RestoreOptions{{SnapDir: dir}, {SnapDir: t.TempDir(), LogDir: dir}, {SnapDir: filepath.Join(dir, dataFolder)}} {
		opt.File = inStandalone("snapshot.3b")
		_, err := run(func(o Output) error { return Restore(o, opt) })
		require.ErrorAs(t, err, &notEmpty)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(dir, dataFolder)))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, dataFolder), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, dataFolder, "currentEpoch"), []byte("3"), 0o600))
	_, err := run(func(o Output) error {
		return Restore(o, RestoreOptions{File: inStandalone("snapshot.3b"), SnapDir: dir})
	})
	require.ErrorAs(t, err, &notEmpty)
}
