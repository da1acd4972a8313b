package tools

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"zabra/internal/storage"
)

// asking answers like a user, and looks around or does something before each answer.
type asking struct{ before func() string }

func (a asking) Read(b []byte) (int, error) { return copy(b, a.before()), nil }

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A copy that is not whole has no name that a server or an operator takes for a log.
func TestCopyHasItsNameOnlyWhenItIsWhole(t *testing.T) {
	file := checksumDamage(t)
	dir := filepath.Dir(file)
	asked := 0
	answers := asking{func() string {
		asked++
		names := namesIn(t, dir)
		require.Len(t, names, 2)
		require.Contains(t, names, "log.1")
		for _, name := range names {
			if kind, _ := storage.KindOf(name); name != "log.1" {
				require.Equal(t, storage.KindForeign, kind)
			}
		}
		return "yes\n"
	}}
	_, err := run(func(o Output) error { return RecoverLog(o, file, RecoverOptions{Answers: answers}) })
	require.NoError(t, err)
	require.Equal(t, 2, asked)
	require.Equal(t, []string{"log.1", "log.1.fixed"}, namesIn(t, dir))
}

// What a killed copy has left does not count, and is gone after the next one.
func TestCopyTakesOverWhatWasInterrupted(t *testing.T) {
	file := checksumDamage(t)
	left := filepath.Join(filepath.Dir(file), makingPrefix+"log.1.fixed")
	require.NoError(t, os.WriteFile(left, bytes.Repeat([]byte("x"), 1<<16), 0o644))
	recoverLog := func() error {
		_, err := run(func(o Output) error { return RecoverLog(o, file, RecoverOptions{Yes: true}) })
		return err
	}
	f, err := os.Open(left)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	require.ErrorContains(t, recoverLog(), "is being written by another process")
	require.NoError(t, f.Close())
	require.NoError(t, recoverLog())
	require.Equal(t, []string{"log.1", "log.1.fixed"}, namesIn(t, filepath.Dir(file)))
	dump, err := run(func(o Output) error { return DumpLog(o, file+".fixed") })
	require.NoError(t, err)
	require.Contains(t, dump, "EOF reached after 32 txns.")
	log, err := os.Stat(file)
	require.NoError(t, err)
	info, err := os.Stat(file + ".fixed")
	require.NoError(t, err)
	require.Equal(t, log.Mode(), info.Mode(), "not that of what was left")
}

// A file that came under the copy's name meanwhile is not overwritten.
func TestCopyDoesNotReplaceWhatCameMeanwhile(t *testing.T) {
	file := checksumDamage(t)
	answers := asking{func() string {
		require.NoError(t, os.WriteFile(file+".fixed", []byte("mine"), 0o640))
		return "yes\n"
	}}
	_, err := run(func(o Output) error { return RecoverLog(o, file, RecoverOptions{Answers: answers}) })
	require.ErrorIs(t, err, os.ErrExist)
	b, err := os.ReadFile(file + ".fixed")
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
	require.Equal(t, []string{"log.1", "log.1.fixed"}, namesIn(t, filepath.Dir(file)))
}

// A copy is as secret as the log, and its owner can write it.
func TestCopyHasThePermissionsOfTheLog(t *testing.T) {
	for mode, want := range map[os.FileMode]os.FileMode{0o600: 0o600, 0o640: 0o640, 0o440: 0o640} {
		b, err := os.ReadFile(inStandalone("log.1"))
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "log.1")
		require.NoError(t, os.WriteFile(file, b, 0o640))
		require.NoError(t, os.Chmod(file, mode))
		_, err = run(func(o Output) error {
			_, err := ChopLog(o, file, 2, "")
			return err
		})
		require.NoError(t, err)
		info, err := os.Stat(file + ".chopped2")
		require.NoError(t, err)
		require.Equal(t, want, info.Mode())
	}
}

// Beside the log, an Apache server would take the copy for data.
func TestCopyInADataDirectoryIsWarnedOf(t *testing.T) {
	dir := filepath.Join(copyFixture(t, "standalone-39"), dataFolder)
	chop := func(out string) string {
		var stderr bytes.Buffer
		_, err := ChopLog(Output{Out: io.Discard, Err: &stderr}, filepath.Join(dir, "log.1"), 2, out)
		require.NoError(t, err)
		return stderr.String()
	}
	require.Contains(t, chop(""), "log.1.chopped2: Apache ZooKeeper takes a file of that name for a log")
	require.Empty(t, chop(filepath.Join(t.TempDir(), "log.1")))
	require.Empty(t, chop(filepath.Join(dir, "copy")))
}

// breakLength gives the record behind n others another length.
func breakLength(t *testing.T, file string, n int, length []byte) {
	t.Helper()
	var offsets []int64
	_, err := storage.CheckLog(osFiles, file, func(rec storage.LogRecord) error {
		offsets = append(offsets, rec.Offset)
		return nil
	})
	require.NoError(t, err)
	edit(t, file, func(b []byte) []byte {
		copy(b[offsets[n]+8:], length)
		return b
	})
}

// A copy must not end where a damaged length hides the rest of the log.
func TestRecoverLogRefusesToLoseTransactions(t *testing.T) {
	for name, length := range map[string][]byte{"too large": {0x40}, "zero": {0, 0, 0, 0}, "negative": {0xff}} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(copyFixture(t, "standalone-39"), dataFolder, "log.1")
			before := namesIn(t, filepath.Dir(file))
			breakLength(t, file, 12, length)
			_, err := run(func(o Output) error { return RecoverLog(o, file, RecoverOptions{Yes: true}) })
			require.ErrorContains(t, err, "there is another valid transaction. A copy would be without it")
			require.Equal(t, before, namesIn(t, filepath.Dir(file)))
			_, err = run(func(o Output) error {
				_, err := ChopLog(o, file, 0x1f, "")
				return err
			})
			require.ErrorContains(t, err, "it has no transaction 0x1f that can be read: at offset")
			var stderr bytes.Buffer
			require.NoError(t, DumpLog(Output{Out: io.Discard, Err: &stderr}, file))
			require.Contains(t, stderr.String(), `Run "zabra txnlog verify"`)
		})
	}
}

// What a crash left behind the last record is no loss; it is left out, and told.
func TestRecoverLogLeavesATornEndOut(t *testing.T) {
	file := filepath.Join(copyFixture(t, "corrupt-tail-garbage-length"), dataFolder, "log.f")
	var stderr bytes.Buffer
	require.NoError(t, RecoverLog(Output{Out: io.Discard, Err: &stderr}, file, RecoverOptions{Yes: true}))
	require.Contains(t, stderr.String(), "behind offset 1088 are no transaction")
	c, err := checkLog(osFiles, file+".fixed")
	require.NoError(t, err)
	require.Equal(t, stateOK, c.State)
	require.Equal(t, 10, c.Records)
}

var errNoDisk = errors.New("no space left")

// A copy that cannot be written in full leaves nothing.
func TestCopyThatFails(t *testing.T) {
	file := checksumDamage(t)
	f, err := createCopy(file, file+".fixed")
	require.NoError(t, err)
	f.write([]byte("half"))
	f.err = errNoDisk
	require.ErrorIs(t, f.keep(), errNoDisk)
	f.discard()
	require.Equal(t, []string{"log.1"}, namesIn(t, filepath.Dir(file)))
}
