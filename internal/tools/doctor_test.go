package tools

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/zab"
	"zabra/znode"
)

// testNow is later than any file that a test makes.
var testNow = time.Now().Add(time.Hour)

// startedOn opens a data directory as a server does. It holds the lock until it is closed.
func startedOn(t *testing.T, dir string) *storage.Store {
	t.Helper()
	s, err := storage.Open(vfs.OS{}, storage.Config{SnapDir: dir, PreAllocBytes: 64 << 10, Go: func(f func()) { f() }})
	require.NoError(t, err)
	rec, err := replica.Recover(s, replica.Config{})
	require.NoError(t, err)
	require.NoError(t, s.Begin(rec.LastZxid))
	t.Cleanup(func() { s.Close() })
	return s
}

// appendTxn writes one transaction.
func appendTxn(t *testing.T, s *storage.Store, h znode.TxnHeader) {
	t.Helper()
	h.Type = wire.OpError
	payload := znode.AppendTxn(nil, &h, &znode.Txn{Type: wire.OpError, Err: -101}, nil)
	require.NoError(t, s.Append([]zab.Entry{{Zxid: h.Zxid, Payload: payload}}))
	require.NoError(t, s.Sync())
}

// fingerprint notes every name, content and time below a directory.
func fingerprint(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if !e.IsDir() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		all[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), content)
		return nil
	}))
	return all
}

// diagnosed runs the doctor and sees to it that it has changed nothing, not even a time.
func diagnosed(t *testing.T, dir string) *Diagnosis {
	t.Helper()
	before := fingerprint(t, dir)
	d, err := Diagnose(dir, "", testNow)
	require.NoError(t, err)
	require.Equal(t, before, fingerprint(t, dir))
	return d
}

func (d *Diagnosis) text(t *testing.T) string {
	t.Helper()
	out, err := run(d.Print)
	require.NoError(t, err)
	return out
}

// What the two real servers did with each of these directories is written down beside them.
func TestDoctorForetellsWhatServersDo(t *testing.T) {
	const gone = "because of the error above"
	tests := []struct {
		dir           string
		zabra, apache bool
		last          string
		says          []string // in the report
	}{
		{dir: "standalone-38", zabra: true, apache: true, last: "0x9b", says: []string{"deletes the 3 TTL nodes"}},
		{dir: "standalone-38-nodigest", zabra: true, apache: true, last: "0x96"},
		{dir: "standalone-39", zabra: true, apache: true, last: "0x9b",
			says: []string{"loads snapshot.97 and replays 4 transactions", "Nothing wrong was found."}},
		{dir: "standalone-39-gzip", zabra: true, apache: true, last: "0x9b", says: []string{"snapshot.97.gz"}},
		{dir: "ensemble3-38/n1", zabra: true, apache: true, last: "0x200000065", says: []string{"starts as server 1",
			"accepted 2, current 2"}},
		{dir: "diverged3-39/n3", zabra: true, apache: true, last: "0x100000010"},
		{dir: "reconfig4-39/r4", zabra: true, apache: true, last: "0x200000002"},
		{dir: "truncated-follower-39", zabra: true, apache: true, last: "0x200000001"},
		{dir: "corrupt-none", zabra: true, apache: true, last: "0x18"},
		{dir: "corrupt-crc-bad-last-record", zabra: true, last: "0x17",
			says: []string{"cuts log.f off at offset 974: the 114 bytes", "wrong checksum at offset 974"}},
		{dir: "corrupt-crc-bad-middle-record", says: []string{gone, "log.f is damaged at offset 290", "truncate -s"}},
		{dir: "corrupt-empty-middle-log", zabra: true, last: "0x18", says: []string{"removes log.e (0 bytes)",
			"meets the end of log.e in its header"}},
		{dir: "corrupt-empty-tail-log", zabra: true, apache: true, last: "0x18", says: []string{"deletes the empty log.19"}},
		{dir: "corrupt-eor-missing-middle-record", apache: true, says: []string{gone, "LOSES the transactions behind it"}},
		{dir: "corrupt-header-only-tail-log", zabra: true, apache: true, last: "0x18", says: []string{"removes log.19 (16 bytes)"}},
		{dir: "corrupt-log-bad-magic", says: []string{gone, "magic number"}},
		{dir: "corrupt-log-gap", says: []string{gone, "finds 0xf after 0xd in log.f"}},
		{dir: "corrupt-no-logs", zabra: true, apache: true, last: "0xe"},
		{dir: "corrupt-no-snapshot", zabra: true, last: "0x18", says: []string{"writes a snapshot before it serves",
			"snapshot.trust.empty"}},
		{dir: "corrupt-short-header-tail-log", zabra: true, last: "0x18", says: []string{"removes log.19 (8 bytes)"}},
		{dir: "corrupt-snapshot-bad-checksum", zabra: true, apache: true, last: "0x18", says: []string{"snapshot.e is damaged",
			"loads snapshot.c"}},
		{dir: "corrupt-snapshot-cut", zabra: true, apache: true, last: "0x18", says: []string{"loads snapshot.c and replays 12"}},
		{dir: "corrupt-snapshot-empty", zabra: true, apache: true, last: "0x18", says: []string{"loads snapshot.c"}},
		{dir: "corrupt-tail-cut-mid-record", zabra: true, apache: true, last: "0x17", says: []string{"the 40 bytes behind it"}},
		{dir: "corrupt-tail-garbage-length", zabra: true, last: "0x18", says: []string{"unreasonable length 2147483647",
			"start Zabra once"}},
	}
	for _, tt := range tests {
		t.Run(tt.dir, func(t *testing.T) {
			d := diagnosed(t, copyFixture(t, tt.dir))
			text := d.text(t)
			require.Equal(t, tt.zabra, d.Standalone.Starts, text)
			require.Equal(t, tt.apache, d.Apache.Starts, text)
			require.Equal(t, tt.zabra, d.Sound())
			if tt.zabra {
				require.Equal(t, tt.last, d.Data.LastZxid)
			}
			for _, words := range tt.says {
				require.Contains(t, text, words)
			}
			_, err := os.Stat(filepath.Join(fixture(tt.dir), "myid"))
			require.Equal(t, tt.zabra && err == nil, d.Member.Starts, text)
		})
	}
}

// The doctor's promises are kept: a start does what it said.
func TestDoctorSaysWhatAStartChanges(t *testing.T) {
	for _, name := range []string{"corrupt-tail-cut-mid-record", "corrupt-header-only-tail-log", "corrupt-crc-bad-last-record"} {
		dir := copyFixture(t, name)
		d := diagnosed(t, dir)
		require.Len(t, d.Changes, 1)
		require.NoError(t, startedOn(t, dir).Close())
		after := diagnosed(t, dir)
		require.Empty(t, after.Changes)
		require.Equal(t, d.Data.LastZxid, after.Data.LastZxid)
		require.Equal(t, d.Data.Digest, after.Data.Digest)
		require.Equal(t, "a Zabra server", after.WrittenBy)
		require.Equal(t, "A server starts on this directory as it is.", after.Conclusion())
	}
}

func TestDoctorBesideARunningServer(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	s := startedOn(t, dir)
	appendTxn(t, s, znode.TxnHeader{Zxid: 0x9c})
	d := diagnosed(t, dir)
	require.True(t, d.Use.Locked)
	require.False(t, d.Standalone.Starts)
	require.False(t, d.Apache.Starts)
	require.True(t, d.Sound())
	require.Equal(t, "0x9c", d.Data.LastZxid)
	require.Empty(t, d.Changes, "the end of a log that is being written is nothing to mend")
	require.Contains(t, d.text(t), "a second one refuses to start")
	appendTxn(t, s, znode.TxnHeader{Zxid: 0x9d})
	require.NoError(t, s.Close())

	d = diagnosed(t, dir)
	require.False(t, d.Use.live())
	require.Equal(t, "0x9d", d.Data.LastZxid)
	require.True(t, d.Apache.Starts)
}

// What the state file promised and the log does not keep is damage, and no torn end.
func TestDoctorFindsALogThatLostWhatWasDurable(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	s := startedOn(t, dir)
	appendTxn(t, s, znode.TxnHeader{Zxid: 0x9c})
	appendTxn(t, s, znode.TxnHeader{Zxid: 0x9d})
	require.NoError(t, s.Close())
	edit(t, filepath.Join(dir, dataFolder, "log.9c"), func(b []byte) []byte { return b[:len(b)-20] })
	d := diagnosed(t, dir)
	require.False(t, d.Sound())
	require.Contains(t, d.text(t), "but the log was durable up to offset")
	require.Contains(t, d.text(t), "delete zabra.state and start again")
	require.True(t, d.Apache.Starts, "it knows nothing of that promise")
}

func TestDoctorOnEmptyDirectories(t *testing.T) {
	dir := t.TempDir()
	d := diagnosed(t, dir)
	require.True(t, d.Fresh)
	require.True(t, d.Standalone.Starts)
	require.False(t, d.Member.Starts)
	require.Contains(t, d.text(t), "this is a new server")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("7\n"), 0o640))
	d = diagnosed(t, dir)
	require.Equal(t, "7", d.MyID)
	require.True(t, d.Member.Starts)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte(" 7 \n"), 0o640))
	d = diagnosed(t, dir)
	require.True(t, d.Member.Starts, "a server of ours passes over blanks")
	require.Contains(t, d.text(t), "Apache ZooKeeper refuses a number with blanks around it")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("seven"), 0o640))
	require.Contains(t, diagnosed(t, dir).text(t), `the first line of myid is "seven"`)

	_, err := Diagnose(filepath.Join(dir, "nowhere"), "", testNow)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Diagnose(filepath.Join(dir, "myid"), "", testNow)
	require.ErrorContains(t, err, "is no directory")
}

// Each of these is made by hand in a whole directory.
func TestDoctorNotices(t *testing.T) {
	put := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o640))
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, dir string)
		level  Level
		says   string
		member bool
		apache string // in its verdict
	}{
		{"accepted epoch below", put("version-2/acceptedEpoch", "1"), "", "accepted epoch, 1, is less than the current epoch, 2",
			false, "starts standalone"},
		{"current epoch below", put("version-2/currentEpoch", "1"), "", "current epoch, 1, is older than the last zxid", false,
			"starts standalone"},
		{"current epoch below, with its successor", func(t *testing.T, dir string) {
			put("version-2/currentEpoch", "1")(t, dir)
			put("version-2/currentEpoch.tmp", "2")(t, dir)
		}, LevelNote, "interrupted change of the epoch", true, "starts"},
		{"epoch that is none", put("version-2/currentEpoch", "two"), LevelError, `holds "two" instead of an epoch`, false,
			"starts standalone"},
		{"epoch with something behind it", put("version-2/currentEpoch", "2abc"), LevelError, `holds "2abc" instead of an epoch`, false,
			"starts standalone"},
		{"epoch with a blank", put("version-2/currentEpoch", "2 \n"), LevelNote, "refuses a number with blanks", true,
			"currentEpoch has blanks around its number"},
		{"copy of a log", put("version-2/log.5.bak", ""), LevelWarning,
			"log.5.bak has a name that Apache ZooKeeper takes for data", true, "move it away first"},
		{"unfinished snapshot", put("version-2/zabra.snapshot.tmp", "xx"), LevelNote, "the next start removes it", true, "starts"},
		{"snapshot on its way", put("version-2/zabra.received", "xx"), LevelNote, "on its way from another server", true, "starts"},
		{"something else", put("version-2/notes.txt", "xx"), LevelNote, "is ignored", true, "starts"},
		{"replaced history", put("superseded/log.1", "xx"), LevelNote, "that a snapshot from the leader has replaced", true, "starts"},
		{"damage behind a snapshot", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, dataFolder, "log.100000001"), func(b []byte) []byte {
				b[100] ^= 1
				return b
			})
		}, LevelWarning, "a start does not need it", true, "starts"},
		{"state file of a newer version", func(t *testing.T, dir string) {
			require.NoError(t, startedOn(t, dir).Close())
			edit(t, filepath.Join(dir, dataFolder, "zabra.state"), newerState)
		}, LevelError, "newer version", false, "starts"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := copyFixture(t, "ensemble3-38/n2")
			tt.damage(t, dir)
			d := diagnosed(t, dir)
			text := d.text(t)
			require.Contains(t, text, tt.says)
			require.Equal(t, tt.member, d.Member.Starts, text)
			require.True(t, strings.Contains(strings.Join(d.Apache.Says, "; "), tt.apache), text)
			if tt.level != "" {
				require.NotEmpty(t, d.Findings)
				require.Equal(t, tt.level, d.Findings[0].Level, text)
			}
		})
	}
}

// newerState gives both slots of a state file a version that this server does not know.
func newerState(b []byte) []byte {
	const slotBytes, stride = 512, 4096
	for off := 0; off < len(b); off += stride {
		slot := b[off : off+slotBytes]
		if binary.BigEndian.Uint32(slot) == 0 {
			continue
		}
		binary.BigEndian.PutUint32(slot[4:], 9)
		binary.BigEndian.PutUint32(slot[slotBytes-4:], crc32.Checksum(slot[:slotBytes-4], crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

// With directories of their own, logs and snapshots must not be mixed up.
func TestDoctorWithTwoDirectories(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	logDir := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.MkdirAll(filepath.Join(logDir, dataFolder), 0o750))
	d, err := Diagnose(dir, logDir, testNow)
	require.NoError(t, err)
	require.False(t, d.Sound())
	require.Contains(t, d.text(t), "is a log in the directory for snapshots")
	logs, err := filepath.Glob(filepath.Join(dir, dataFolder, "log.*"))
	require.NoError(t, err)
	for _, l := range logs {
		require.NoError(t, os.Rename(l, filepath.Join(logDir, dataFolder, filepath.Base(l))))
	}
	d, err = Diagnose(dir, logDir, testNow)
	require.NoError(t, err)
	require.True(t, d.Sound(), d.text(t))
	require.Equal(t, "0x9b", d.Data.LastZxid)
	require.Contains(t, d.text(t), logDir)
}

func TestDoctorAsJSON(t *testing.T) {
	d := diagnosed(t, copyFixture(t, "corrupt-tail-cut-mid-record"))
	lines, err := runJSON(t, d.Print)
	require.NoError(t, err)
	require.Len(t, lines, 1)
	require.Equal(t, true, lines[0]["standalone"].(map[string]any)["starts"])
	require.Equal(t, "0x17", lines[0]["data"].(map[string]any)["lastZxid"])
	require.Len(t, lines[0]["logs"], 3)
	require.True(t, strings.HasSuffix(lines[0]["snapshots"].([]any)[0].(map[string]any)["modified"].(string), "Z"), "in UTC")
}

// refusing is the file system of a user who may not read the files of which one of the words is in the name.
func refusing(words ...string) vfs.FS {
	fsys := vfs.NewFault(vfs.OS{})
	fsys.Inject(func(op vfs.Op) error {
		for _, word := range words {
			if op.Kind == vfs.KindOpen && strings.Contains(filepath.Base(op.Name), word) {
				return &fs.PathError{Op: "open", Path: op.Name, Err: fs.ErrPermission}
			}
		}
		return nil
	})
	return fsys
}

// Data that cannot be read are data: a server that may not read them does not start with nothing.
func TestDoctorThatMayNotRead(t *testing.T) {
	tests := []struct {
		name          string
		words         []string
		zabra, apache bool
		says          []string
	}{
		{"anything", []string{"snapshot.", "log."}, false, false, []string{"log.98 cannot be read: permission denied; nor can 13 other files",
			"finds no valid snapshot", "chown",
			"A server does not start on this directory as it is."}},
		{"the newest log", []string{"log.98"}, false, false, []string{"cannot read log.98: permission denied"}},
		{"the snapshots", []string{"snapshot."}, false, false, []string{"none of the"}},
		{"an old snapshot", []string{"snapshot.1f"}, true, true, []string{"permission denied; a start goes on without that"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := diagnose(refusing(tt.words...), copyFixture(t, "standalone-39"), "", testNow)
			require.NoError(t, err)
			text := d.text(t)
			require.False(t, d.Fresh)
			require.Equal(t, tt.zabra, d.Standalone.Starts, text)
			require.Equal(t, tt.apache, d.Apache.Starts, text)
			require.Equal(t, tt.zabra, d.Sound())
			for _, says := range tt.says {
				require.Contains(t, text, says)
			}
			require.NotContains(t, text, "this is a new server")
		})
	}
}

// A folder in the place of the only log is no empty directory either.
func TestDoctorOnAFolderWithTheNameOfALog(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, dataFolder, "log.5"), 0o750))
	d := diagnosed(t, dir)
	require.False(t, d.Fresh)
	require.False(t, d.Sound())
	require.Contains(t, d.text(t), "log.5 cannot be read: it is no regular file")
}

// Another name of dataDir is not a second directory for logs.
func TestDoctorUnderTwoNames(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	alias := filepath.Join(t.TempDir(), "alias")
	require.NoError(t, os.Symlink(dir, alias))
	d, err := Diagnose(dir, alias, testNow)
	require.NoError(t, err)
	require.True(t, d.Standalone.Starts, d.text(t))
	require.Len(t, d.Logs, 7)
	require.Contains(t, d.text(t), "is another name of")
}
