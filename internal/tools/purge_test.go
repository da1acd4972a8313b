package tools

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
)

// listing returns the data files of a directory.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	names, err := vfs.OS{}.List(filepath.Join(dir, dataFolder))
	require.NoError(t, err)
	return slices.DeleteFunc(names, func(name string) bool {
		kind, _ := storage.KindOf(name)
		return kind != storage.KindLog && kind != storage.KindSnapshot
	})
}

func purgeIn(opt PurgeOptions) (string, error) {
	return run(func(o Output) error { return Purge(o, opt) })
}

var removingFile = regexp.MustCompile(`(?m)^Removing file: [A-Z][a-z]{2} \d{1,2}, \d{4}, \d{1,2}:\d\d:\d\d [AP]M\t(.*)$`)

// What stays is what ZooKeeper's PurgeTxnLog leaves of these directories, and each removal is printed as there.
func TestPurgeLeavesWhatZooKeeperLeaves(t *testing.T) {
	tests := []struct {
		dir    string
		retain int
		stays  []string
	}{
		{"standalone-39", 3, []string{"log.55", "log.7c", "log.96", "log.98", "snapshot.7a", "snapshot.94", "snapshot.97"}},
		{"ensemble3-38/n2", 4, []string{"log.100000016", "log.200000002", "log.200000017", "log.20000003e", "log.200000058",
			"snapshot.200000000", "snapshot.200000015", "snapshot.20000003c", "snapshot.200000057"}},
	}
	for _, tt := range tests {
		t.Run(tt.dir, func(t *testing.T) {
			dir := copyFixture(t, tt.dir)
			before := listing(t, dir)
			would, err := purgeIn(PurgeOptions{LogDir: dir, Retain: tt.retain, DryRun: true})
			require.NoError(t, err)
			require.Equal(t, before, listing(t, dir), "a dry run removes nothing")
			require.NoFileExists(t, filepath.Join(dir, dataFolder, "zabra.lock"))
			out, err := purgeIn(PurgeOptions{LogDir: dir, SnapDir: dir, Retain: tt.retain})
			require.NoError(t, err)
			require.Equal(t, tt.stays, listing(t, dir))
			var gone []string
			for _, m := range removingFile.FindAllStringSubmatch(out, -1) {
				gone = append(gone, filepath.Base(m[1]))
				require.Contains(t, would, m[1])
			}
			slices.Sort(gone)
			require.Equal(t, slices.DeleteFunc(before, func(name string) bool { return slices.Contains(tt.stays, name) }), gone)
			again, err := purgeIn(PurgeOptions{LogDir: dir, Retain: tt.retain})
			require.NoError(t, err)
			require.Empty(t, again)
			d, err := Diagnose(dir, "", testNow)
			require.NoError(t, err)
			require.True(t, d.Standalone.Starts)
			require.True(t, d.Apache.Starts)
		})
	}
}

// A damaged snapshot guards nothing.
func TestPurgeCountsWholeSnapshotsOnly(t *testing.T) {
	dir := copyFixture(t, "corrupt-snapshot-cut")
	before := listing(t, dir)
	out, err := purgeIn(PurgeOptions{LogDir: dir, Retain: 3})
	require.NoError(t, err)
	require.Contains(t, out, "2 whole snapshots found, 3 are to be kept: nothing was removed")
	require.Equal(t, before, listing(t, dir))

	dir = copyFixture(t, "standalone-39")
	edit(t, filepath.Join(dir, dataFolder, "snapshot.94"), func(b []byte) []byte { return b[:len(b)-7] })
	_, err = purgeIn(PurgeOptions{LogDir: dir, Retain: 3})
	require.NoError(t, err)
	require.Contains(t, listing(t, dir), "snapshot.53", "it takes the place of the damaged one")
	require.Contains(t, listing(t, dir), "log.3c")
}

func TestPurgeRefusals(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	before := listing(t, dir)
	var retain *RetainError
	_, err := purgeIn(PurgeOptions{LogDir: dir, Retain: 2})
	require.ErrorAs(t, err, &retain)
	var missing *NoPathError
	_, err = purgeIn(PurgeOptions{LogDir: "/nowhere", Retain: 3})
	require.ErrorAs(t, err, &missing)
	_, err = purgeIn(PurgeOptions{LogDir: t.TempDir(), Retain: 3})
	require.Error(t, err)

	server := startedOn(t, dir)
	var locked *LockedError
	_, err = purgeIn(PurgeOptions{LogDir: dir, Retain: 3})
	require.ErrorAs(t, err, &locked)
	require.Equal(t, before, listing(t, dir))
	would, err := purgeIn(PurgeOptions{LogDir: dir, Retain: 3, DryRun: true})
	require.NoError(t, err, "looking is allowed")
	require.Contains(t, would, "Would remove file: ")
	require.NoError(t, server.Close())
	_, err = purgeIn(PurgeOptions{LogDir: dir, Retain: 3})
	require.NoError(t, err)
	require.NotEqual(t, before, listing(t, dir))
}

func TestPurgeAsJSON(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	purge := func(o Output) error { return Purge(o, PurgeOptions{LogDir: filepath.Join(dir, dataFolder), Retain: 3}) }
	lines, err := runJSON(t, purge)
	require.NoError(t, err)
	require.Len(t, lines, 7)
	for _, l := range lines {
		require.Equal(t, true, l["removed"])
		_, err := os.Stat(l["file"].(string))
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	lines, err = runJSON(t, purge)
	require.NoError(t, err)
	require.Empty(t, lines, "there is nothing to do any more")

	dir = copyFixture(t, "corrupt-snapshot-cut")
	lines, err = runJSON(t, purge)
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Equal(t, "too few whole snapshots", lines[0]["refused"])
	require.Equal(t, 2.0, lines[0]["wholeSnapshots"])
}

// An Apache server's directory gets no file from a purge.
func TestPurgeLeavesNoLockFile(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	_, err := purgeIn(PurgeOptions{LogDir: dir, Retain: 3})
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(dir, dataFolder, "zabra.lock"))
}

// Two names of one directory are one directory.
func TestPurgeUnderTwoNames(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	require.NoError(t, startedOn(t, dir).Close()) // there is a lock to take twice
	alias := filepath.Join(t.TempDir(), "alias")
	require.NoError(t, os.Symlink(dir, alias))
	out, err := purgeIn(PurgeOptions{LogDir: alias, SnapDir: dir, Retain: 3})
	require.NoError(t, err)
	require.Contains(t, out, "snapshot.53")
}

// A dry run beside a server says that the real one would be refused.
func TestPurgeDryRunTellsOfAServer(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	s := startedOn(t, dir)
	dry := func() string {
		var stderr bytes.Buffer
		require.NoError(t, Purge(Output{Out: io.Discard, Err: &stderr}, PurgeOptions{LogDir: dir, Retain: 3, DryRun: true}))
		return stderr.String()
	}
	require.Contains(t, dry(), "A purge without --dry-run would be refused")
	require.NoError(t, s.Close())
	require.Empty(t, dry())
}
