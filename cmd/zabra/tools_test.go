package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	dataDirs = "../../internal/storage/testdata/datadirs"
	goldens  = "../../internal/tools/testdata/golden"
)

// The command lines of ZooKeeper's scripts work behind the verbs, with ZooKeeper's output and exit codes.
func TestToolsTakeTheOptionsOfZooKeeper(t *testing.T) {
	log1, snap1f, snap3b := dataDirs+"/standalone-39/version-2/log.1", dataDirs+"/standalone-39/version-2/snapshot.1f",
		dataDirs+"/standalone-39/version-2/snapshot.3b"
	tests := []struct {
		line   string
		code   int
		golden string // of the whole output
		stdout string // something in it
		stderr string
	}{
		{line: "txnlog dump --utc " + log1, golden: "dump.standalone-39.log.1.txt"},
		{line: "txnlog dump -d --utc " + log1, golden: "dump.standalone-39.log.1.txt"},
		{line: "txnlog dump -v -y --utc " + log1, golden: "dump.standalone-39.log.1.txt", stderr: "-v and -y do nothing without -r."},
		{line: "txnlog dump -z 5 --utc " + log1, golden: "dump.standalone-39.log.1.txt", stderr: "-z does nothing without -c."},
		{line: "txnlog dump", code: exitConfig, stderr: "accepts 1 arg(s)"},
		{line: "txnlog dump /nowhere", code: 1, stderr: "File doesn't exist or not readable: /nowhere"},
		{line: "txnlog dump " + snap1f, code: exitNotLog, stderr: "Invalid magic number for snapshot.1f"},
		{line: "txnlog dump -c -z abc " + log1, code: exitConfig, stderr: `"abc" is no zxid`},
		{line: "txnlog dump -d -r " + log1, code: exitConfig, stderr: "none of the others can be"},
		{line: "txnlog chop " + log1 + " 0xffff", code: 1, stderr: "Failed to chop log.1"},
		{line: "txnlog verify " + dataDirs + "/standalone-39", stdout: "log.98: OK, 4 transactions"},
		{line: "txnlog verify " + dataDirs + "/corrupt-log-gap", code: exitDamaged, stdout: "GAP", stderr: "1 file is damaged"},
		{line: "txnlog verify --utc " + log1, code: exitConfig, stderr: "unknown flag: --utc"},
		{line: "snapshot dump " + snap1f, stdout: "ZNode Details (count=28):"},
		{line: "snapshot dump -d " + snap1f, stdout: "  data = "},
		{line: "snapshot dump -json " + snap1f, stdout: `[1,0,{"progname":"SnapshotFormatter.java"`},
		{line: "snapshot dump --ncdu " + snap1f, stdout: `[1,0,{"progname":"SnapshotFormatter.java"`},
		{line: "snapshot dump -jfoo " + snap1f, code: exitConfig, stderr: "the option is -json"},
		{line: "snapshot dump /nowhere", code: 1, stderr: "File '/nowhere' does not exist."},
		{line: "snapshot verify " + snap1f, stdout: "OK, zxid 0x1f, 27 nodes"},
		{line: "snapshot verify " + dataDirs + "/corrupt-snapshot-cut", code: exitDamaged, stdout: "DAMAGED"},
		{line: "snapshot compare -l " + snap1f + " -r " + snap3b + " -b 0 -n 0",
			stdout: "Node /big found only in right tree. Descendant size: 20000. Descendant count: 0"},
		{line: "snapshot compare " + snap1f + " " + snap3b, stdout: "All layers compared."},
		{line: "snapshot compare -l " + snap1f, code: exitConfig, stderr: "Missing required options"},
		{line: "snapshot summary " + snap3b + " /zookeeper 1", golden: "summary.zookeeper.txt"},
		{line: "snapshot summary " + snap3b + " / x", code: exitConfig, stderr: `"x" is no depth`},
		{line: "purge", code: 1, stdout: "Usage: zabra purge [--dry-run] dataLogDir [snapDir] -n COUNT"},
		{line: "purge /tmp -n 2", code: 1, stdout: "Usage:", stderr: "count should be greater than or equal to 3"},
		{line: "purge /nowhere -n 3", code: 1, stdout: "Usage:", stderr: "Path '/nowhere' does not exist."},
		{line: "purge /tmp -n x", code: 1, stdout: "Usage:", stderr: "'x' can not be parsed to integer."},
		{line: "purge --dry-run " + dataDirs + "/standalone-39 -n 3", stdout: "snapshot.53"},
		{line: "doctor " + dataDirs + "/standalone-39", stdout: "A server starts on this directory as it is."},
		{line: "doctor " + dataDirs + "/corrupt-log-gap", code: exitDataDir, stdout: "A server does not start"},
		{line: "doctor /nowhere", code: 1, stderr: "no such file"},
		{line: "txnlog", code: exitConfig, stdout: "verify"},
		{line: "snapshot", code: exitConfig, stdout: "compare"},
	}
	for _, tt := range tests {
		t.Run(tt.line, func(t *testing.T) {
			code, stdout, stderr := execute(strings.Fields(tt.line)...)
			require.Equal(t, tt.code, code, stdout+stderr)
			require.Contains(t, stdout, tt.stdout)
			require.Contains(t, stderr, tt.stderr)
			if tt.stderr == "" && tt.code == 0 {
				require.Empty(t, stderr)
			}
			if tt.golden != "" {
				want, err := os.ReadFile(filepath.Join(goldens, tt.golden))
				require.NoError(t, err)
				require.Equal(t, string(want), stdout)
			}
		})
	}
}

// Every tool prints one object per line on request.
func TestToolsPrintJSON(t *testing.T) {
	dir := dataDirs + "/standalone-39"
	for _, line := range []string{
		"txnlog dump " + dir + "/version-2/log.21", "txnlog verify " + dir, "snapshot dump " + dir + "/version-2/snapshot.1f",
		"snapshot verify " + dir,
		"snapshot compare " + dir + "/version-2/snapshot.1f " + dir + "/version-2/snapshot.3b",
		"snapshot summary " + dir + "/version-2/snapshot.1f",
		"purge --dry-run -n 3 " + dir, "doctor " + dir,
	} {
		code, stdout, stderr := execute(append(strings.Fields(line), "--json")...)
		require.Equal(t, 0, code, stderr)
		require.NotEmpty(t, stdout, line)
		for object := range strings.Lines(stdout) {
			var v map[string]any
			require.NoError(t, json.Unmarshal([]byte(object), &v), line)
			require.NotEmpty(t, v)
		}
	}
}

// A log is cut into a new file beside it, or where the user wants it.
func TestToolsChop(t *testing.T) {
	b, err := os.ReadFile(dataDirs + "/ensemble3-38/n1/version-2/log.100000036")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "log.100000036")
	require.NoError(t, os.WriteFile(file, b, 0o640))
	want, err := os.ReadFile(goldens + "/chopped.bin")
	require.NoError(t, err)
	for line, copied := range map[string]string{
		"txnlog dump -c -z 0x100000038 " + file:                   file + ".chopped4294967352",
		"txnlog chop " + file + " 4294967352 -o " + file + ".cut": file + ".cut",
		"txnlog chop -z 0x100000038 -o " + file + ".z " + file:    file + ".z",
	} {
		code, stdout, stderr := execute(strings.Fields(line)...)
		require.Equal(t, 0, code, stderr)
		require.Contains(t, stdout, "Chopping at 100000038 new log has 3 records")
		got, err := os.ReadFile(copied)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// The help and the document say in the same words how a cut log is put in place.
func TestChopRecipeIsInTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/tools.md")
	require.NoError(t, err)
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	require.Contains(t, words(strings.ReplaceAll(string(doc), "`", "")), words(chopRecipe))
	code, help, _ := execute("txnlog", "chop", "--help")
	require.Equal(t, 0, code)
	require.Contains(t, words(help), words(chopRecipe))
}

// A log with a damaged length in its middle is not copied up to there and called repaired.
func TestToolsRecoverRefuseADamagedLength(t *testing.T) {
	b, err := os.ReadFile(dataDirs + "/standalone-39/version-2/log.1")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "log.1")
	const lengthOfTheFirst = 16 + 8
	b[lengthOfTheFirst] = 0x40
	require.NoError(t, os.WriteFile(file, b, 0o640))
	code, _, stderr := execute("txnlog", "dump", "-r", "-y", file)
	require.Equal(t, exitFailure, code)
	require.Contains(t, stderr, "there is another valid transaction")
	require.NoFileExists(t, file+".fixed")
}
