package tools

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage"
	"zabra/zab/zxid"
)

// Every transaction type and every kind of odd data is in these logs, and each line is that of ZooKeeper's tool.
func TestDumpLogPrintsWhatZooKeeperPrints(t *testing.T) {
	for file, want := range map[string]string{
		inStandalone("log.1"):  "dump.standalone-39.log.1.txt",
		inStandalone("log.21"): "dump.standalone-39.log.21.txt",
		fixture("ensemble3-38", "n1", dataFolder, "log.100000036"): "dump.ensemble3-38.n1.log.100000036.txt",
		fixture("reconfig4-39", "r1", dataFolder, "log.100000001"): "dump.reconfig4-39.r1.log.100000001.txt",
		checksumDamage(t): "dump.crc.txt",
	} {
		t.Run(want, func(t *testing.T) {
			got, err := run(func(o Output) error { return DumpLog(o, file) })
			require.NoError(t, err)
			require.Equal(t, golden(t, want), got)
		})
	}
}

func TestDumpLogAsJSON(t *testing.T) {
	lines, err := runJSON(t, func(o Output) error { return DumpLog(o, inStandalone("log.21")) })
	require.NoError(t, err)
	require.Len(t, lines, 27)
	byZxid := map[string]map[string]any{}
	for _, l := range lines {
		byZxid[l["zxid"].(string)] = l
	}
	create := byZxid["0x21"]
	require.Equal(t, "create", create["type"])
	require.Equal(t, "/acl/worldread", create["path"])
	require.Equal(t, "dw==", create["data"])
	require.Equal(t, "2026-11-30T08:04:42", create["time"].(string)[:19])
	require.Equal(t, []any{map[string]any{"perms": 1.0, "scheme": "world", "id": "anyone"}}, create["acl"])
	require.NotEmpty(t, create["digest"])
	multi := byZxid["0x24"]["ops"].([]any)
	require.Len(t, multi, 6)
	require.Equal(t, "delete", multi[5].(map[string]any)["type"])
	require.Equal(t, -110.0, byZxid["0x28"]["err"])

	lines, err = runJSON(t, func(o Output) error { return DumpLog(o, checksumDamage(t)) })
	require.NoError(t, err)
	require.Equal(t, "CRC ERROR", lines[1]["fault"])
	require.Nil(t, lines[2]["fault"])
}

func TestDumpLogOfSomethingElse(t *testing.T) {
	dump := func(file string) error {
		_, err := run(func(o Output) error { return DumpLog(o, file) })
		return err
	}
	var missing *MissingError
	require.ErrorAs(t, dump(filepath.Join(t.TempDir(), "log.1")), &missing)
	var notLog *NotLogError
	require.ErrorAs(t, dump(inStandalone("snapshot.1f")), &notLog)
	empty := filepath.Join(t.TempDir(), "log.5")
	require.NoError(t, os.WriteFile(empty, nil, 0o640))
	require.ErrorAs(t, dump(empty), &notLog)
	require.ErrorContains(t, dump(fixture("corrupt-eor-missing-middle-record", dataFolder, "log.f")), "at offset 290")
	// A payload that is no transaction any more is printed as far as that goes, and the dump goes on.
	got, err := run(func(o Output) error { return DumpLog(o, fixture("corrupt-crc-bad-middle-record", dataFolder, "log.f")) })
	require.NoError(t, err)
	require.Contains(t, got, "CRC ERROR - zxid 0x12 at offset 290 cannot be read")
	require.Contains(t, got, "EOF reached after 10 txns.")
}

// answering gives RecoverLog the answers of a user.
func recovered(t *testing.T, opt RecoverOptions, answers string) (out string, fixed []byte, err error) {
	t.Helper()
	file := checksumDamage(t)
	opt.Answers = strings.NewReader(answers)
	out, err = run(func(o Output) error { return RecoverLog(o, file, opt) })
	fixed, readErr := os.ReadFile(file + ".fixed")
	require.Equal(t, err != nil, readErr != nil, "a file that failed is not left")
	return strings.ReplaceAll(out, file, "log.1"), fixed, err
}

func TestRecoverLog(t *testing.T) {
	tests := []struct {
		name, golden, answers string
		opt                   RecoverOptions
		damaged               int // checksums that stay wrong
	}{
		{name: "all", golden: "recover.yes.txt", opt: RecoverOptions{Yes: true}},
		{name: "all, verbose", golden: "recover.verbose.txt", opt: RecoverOptions{Yes: true, Verbose: true}},
		{name: "the first only", golden: "recover.ask.txt", answers: "y\nn\n", damaged: 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, fixed, err := recovered(t, tt.opt, tt.answers)
			require.NoError(t, err)
			require.Equal(t, golden(t, tt.golden), out)
			file := filepath.Join(t.TempDir(), "log.1")
			require.NoError(t, os.WriteFile(file, fixed, 0o640))
			dump, err := run(func(o Output) error { return DumpLog(o, file) })
			require.NoError(t, err)
			require.Equal(t, tt.damaged, strings.Count(dump, "CRC ERROR"))
			require.Contains(t, dump, "EOF reached after 32 txns.")
		})
	}
}

func TestRecoverLogGivesUp(t *testing.T) {
	_, _, err := recovered(t, RecoverOptions{}, "maybe\nabort\n")
	require.ErrorIs(t, err, ErrAborted)
	_, _, err = recovered(t, RecoverOptions{}, "")
	require.ErrorIs(t, err, ErrAborted)

	file := checksumDamage(t)
	require.NoError(t, os.WriteFile(file+".fixed", []byte("mine"), 0o640))
	_, err = run(func(o Output) error { return RecoverLog(o, file, RecoverOptions{Yes: true}) })
	require.ErrorContains(t, err, "already exists or not writable")
	b, err := os.ReadFile(file + ".fixed")
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
}

func TestChopLog(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "log.100000036")
	before, err := os.ReadFile(fixture("ensemble3-38", "n1", dataFolder, "log.100000036"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, before, 0o440))
	chop := func(z zxid.Zxid, out string) (string, error) {
		return run(func(o Output) error {
			_, err := ChopLog(o, file, z, out)
			return err
		})
	}
	out, err := chop(0x100000038, "")
	require.NoError(t, err)
	require.Equal(t, golden(t, "chop.txt"), out)
	got, err := os.ReadFile(file + ".chopped4294967352")
	require.NoError(t, err)
	require.Equal(t, golden(t, "chopped.bin"), string(got))

	_, err = chop(0x100000038, "")
	require.ErrorIs(t, err, os.ErrExist, "an earlier copy is not overwritten")
	_, err = chop(0x100000038, filepath.Join(dir, "copy"))
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "copy"))
	_, err = chop(0x200000099, "")
	require.ErrorContains(t, err, "Failed to chop log.100000036: it has no transaction 0x200000099")
	_, err = chop(0x1fffffff0, "")
	require.ErrorContains(t, err, "it has no transaction 0x1fffffff0")
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, names, 3, "nothing is left of what failed")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}

// Each damaged log has its own verdict; a torn end is no damage.
func TestVerifyLogs(t *testing.T) {
	tests := []struct {
		dir    string
		states map[string]string // by file, those that are not ok
		offset float64
		why    string
	}{
		{dir: "corrupt-none"},
		{dir: "standalone-39"},
		{dir: "standalone-38-nodigest"},
		{dir: "standalone-39-gzip"},
		{dir: "ensemble3-38/n2"},
		{dir: "truncated-follower-39"},
		{dir: "corrupt-crc-bad-last-record", states: map[string]string{"log.f": stateTorn}, offset: 974, why: "wrong checksum"},
		{dir: "corrupt-crc-bad-middle-record", states: map[string]string{"log.f": stateDamaged}, offset: 290,
			why: "at offset 404 there is another"},
		{dir: "corrupt-eor-missing-middle-record", states: map[string]string{"log.f": stateDamaged}, offset: 290,
			why: "without its end byte"},
		{dir: "corrupt-empty-middle-log", states: map[string]string{"log.e": stateEmpty}},
		{dir: "corrupt-short-header-tail-log", states: map[string]string{"log.19": stateEmpty}},
		{dir: "corrupt-log-bad-magic", states: map[string]string{"log.f": stateDamaged}, why: "magic number is 0x584b4c47"},
		{dir: "corrupt-log-gap", states: map[string]string{"log.f": stateGap}, why: "between 0xd and 0xf are missing"},
		{dir: "corrupt-tail-cut-mid-record", states: map[string]string{"log.f": stateTorn}, offset: 974, why: "ends inside a record"},
		{dir: "corrupt-tail-garbage-length", states: map[string]string{"log.f": stateTorn}, offset: 1088, why: "inside a record"},
	}
	for _, tt := range tests {
		t.Run(tt.dir, func(t *testing.T) {
			lines, err := runJSON(t, func(o Output) error { return VerifyLogs(o, []string{fixture(tt.dir)}) })
			bad := false
			for _, l := range lines {
				name := filepath.Base(l["file"].(string))
				want := stateOK
				if s := tt.states[name]; s != "" {
					want = s
				}
				require.Equal(t, want, l["state"], "%v", l)
				if want == stateTorn || want == stateDamaged {
					require.Equal(t, tt.offset, l["offset"])
				}
				if want != stateOK && tt.why != "" {
					require.Contains(t, l["why"], tt.why)
				}
				bad = bad || want == stateDamaged || want == stateGap
			}
			var damaged *DamagedError
			require.Equal(t, bad, err != nil)
			if bad {
				require.ErrorAs(t, err, &damaged)
			}
			text, _ := run(func(o Output) error { return VerifyLogs(o, []string{fixture(tt.dir, dataFolder)}) })
			require.Equal(t, len(lines), strings.Count(text, "\n"))
			require.Equal(t, bad, strings.Contains(text, "DAMAGED") || strings.Contains(text, "GAP"))
		})
	}
	_, err := run(func(o Output) error { return VerifyLogs(o, []string{"/nowhere"}) })
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
}

// A hole is harmless when a snapshot covers it.
func TestVerifyLogsWithAHoleBehindASnapshot(t *testing.T) {
	dir := copyFixture(t, "corrupt-none")
	require.NoError(t, os.Remove(filepath.Join(dir, dataFolder, "log.e")))
	_, err := run(func(o Output) error { return VerifyLogs(o, []string{dir}) })
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, dataFolder, "snapshot.e")))
	_, err = run(func(o Output) error { return VerifyLogs(o, []string{dir}) })
	require.EqualError(t, err, "1 file is damaged")
}

// Whoever follows the help of chop gets a directory that starts, with the log ending where it was cut.
func TestChoppedLogInItsPlace(t *testing.T) {
	dir := copyFixture(t, "ensemble3-38/n2")
	require.NoError(t, startedOn(t, dir).Close())
	version := filepath.Join(dir, dataFolder)
	const last = zxid.Zxid(0x200000010)
	file := filepath.Join(version, "log.200000002")
	_, err := run(func(o Output) error {
		_, err := ChopLog(o, file, last, "")
		return err
	})
	require.NoError(t, err)
	logs, snapshots := []string{}, []string{}
	for _, name := range namesIn(t, version) {
		switch kind, z := storage.KindOf(name); {
		case kind == storage.KindLog && z >= 0x200000002:
			logs = append(logs, name)
		case kind == storage.KindSnapshot && z > last:
			snapshots = append(snapshots, name)
		}
	}
	for _, name := range append(logs, snapshots...) {
		require.NoError(t, os.Remove(filepath.Join(version, name)))
	}
	require.NoError(t, os.Rename(file+fmt.Sprintf(".chopped%d", int64(last)), file))
	require.Contains(t, diagnosed(t, dir).text(t), "delete zabra.state", "it still promises the old end")
	require.NoError(t, os.Remove(filepath.Join(version, "zabra.state")))
	d := diagnosed(t, dir)
	require.True(t, d.Standalone.Starts && d.Member.Starts && d.Apache.Starts, d.text(t))
	require.Equal(t, last.String(), d.Data.LastZxid)
	require.Empty(t, d.Changes)
}

// A file that the running server purges between the listing and the look is passed over; one that was named is missed.
func TestVerifyPassesOverWhatWentAway(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	for _, name := range []string{"log.2", "snapshot.2"} {
		require.NoError(t, os.Symlink("gone", filepath.Join(dir, dataFolder, name)))
	}
	lines, err := runJSON(t, func(o Output) error { return VerifyLogs(o, []string{dir}) })
	require.NoError(t, err)
	require.Len(t, lines, 7)
	lines, err = runJSON(t, func(o Output) error { return VerifySnapshots(o, []string{dir}, "") })
	require.NoError(t, err)
	require.NotEmpty(t, lines)
	_, err = run(func(o Output) error { return VerifyLogs(o, []string{filepath.Join(dir, dataFolder, "log.2")}) })
	require.Error(t, err)
	_, err = run(func(o Output) error {
		return VerifySnapshots(o, []string{filepath.Join(dir, dataFolder, "snapshot.2")}, "")
	})
	require.Error(t, err)
}
