package znode

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerifySnapshotJudgesAsReadSnapshot(t *testing.T) {
	s := newScript(t, Config{ExtendedTypes: true})
	s.create("/a", "data")
	s.create("/a/b", "")
	s.create("/a/b/c", "more")
	s.create("/z", "x")
	whole := writeSnapshot(t, s.tree, SnapshotOptions{Digest: true, LastZxid: true}, 1<<20)
	require.NoError(t, VerifySnapshot(bytes.NewReader(whole), 0))
	for i := range whole {
		broken := bytes.Clone(whole)
		broken[i] ^= 1
		_, _, err := ReadSnapshot(bytes.NewReader(broken), Config{ExtendedTypes: true}, 0, 1)
		require.ErrorIs(t, err, ErrSnapshot, "flipped bit at %d", i)
		require.ErrorIs(t, VerifySnapshot(bytes.NewReader(broken), 0), ErrSnapshot, "flipped bit at %d", i)
	}
	for n := range whole {
		_, _, err := ReadSnapshot(bytes.NewReader(whole[:n]), Config{ExtendedTypes: true}, 0, 1)
		require.Equal(t, err == nil, VerifySnapshot(bytes.NewReader(whole[:n]), 0) == nil, "cut to %d bytes", n)
	}
	for _, dir := range apacheDirs(t) {
		for _, file := range apacheFiles(t, dir, "snapshot") {
			tree, _ := readApacheSnapshot(t, file)
			require.NoError(t, VerifySnapshot(bytes.NewReader(writeSnapshot(t, tree, SnapshotOptions{Digest: true}, 1<<20)), 0), file.path)
		}
	}
}
