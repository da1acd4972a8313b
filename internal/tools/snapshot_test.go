package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage/vfs"
)

// sections cuts a dump into what stands between its separators, sorted: ZooKeeper prints the nodes in no particular order.
func sections(dump string) []string {
	s := strings.Split(dump, "----\n")
	slices.Sort(s)
	return s
}

// Every node and session is printed exactly as ZooKeeper prints it.
func TestDumpSnapshotPrintsWhatZooKeeperPrints(t *testing.T) {
	tests := []struct {
		file, golden string
		mode         DumpMode
	}{
		{inStandalone("snapshot.1f"), "snapshot.1f.txt", DumpStats},
		{inStandalone("snapshot.1f"), "snapshot.1f.data.txt", DumpData},
		{fixture("ensemble3-38", "n1", dataFolder, "snapshot.200000040"), "snapshot.200000040.txt", DumpStats},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			got, err := run(func(o Output) error { return DumpSnapshot(o, tt.file, tt.mode, 0) })
			require.NoError(t, err)
			want := golden(t, tt.golden)
			require.Equal(t, sections(want), sections(got))
			require.Equal(t, want[:strings.Index(want, "\n")], got[:strings.Index(got, "\n")])
			require.Equal(t, want[strings.LastIndex(want, "----"):], got[strings.LastIndex(got, "----"):])
		})
	}
}

// ncduNode flattens a document for ncdu into the paths with their sizes.
func ncduNode(t *testing.T, v any, above string, into map[string]float64) {
	t.Helper()
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	head := list[0].(map[string]any)
	name := head["name"].(string)
	path := above + "/" + name
	if name == "/" {
		path = ""
	}
	require.Equal(t, head["asize"], head["dsize"])
	into[path] = head["asize"].(float64)
	for _, child := range list[1:] {
		ncduNode(t, child, path, into)
	}
}

func TestDumpSnapshotForNCDU(t *testing.T) {
	got, err := run(func(o Output) error { return DumpSnapshot(o, inStandalone("snapshot.1f"), DumpNCDU, 1234) })
	require.NoError(t, err)
	require.Contains(t, got, `{"progname":"SnapshotFormatter.java","progver":"0.01","timestamp":1234}`)
	sizes := func(text string) map[string]float64 {
		var doc []any
		require.NoError(t, json.Unmarshal([]byte(text), &doc))
		require.Equal(t, []any{1.0, 0.0}, doc[:2])
		into := map[string]float64{}
		ncduNode(t, doc[3], "", into)
		return into
	}
	require.Equal(t, sizes(golden(t, "snapshot.1f.ncdu.json")), sizes(got))
}

func TestDumpSnapshotAsJSON(t *testing.T) {
	lines, err := runJSON(t, func(o Output) error { return DumpSnapshot(o, inStandalone("snapshot.1f"), DumpStats, 0) })
	require.NoError(t, err)
	require.Equal(t, 27.0, lines[0]["nodes"])
	nodes := map[string]map[string]any{}
	sessions := 0
	for _, l := range lines[1:] {
		if path, ok := l["path"].(string); ok {
			nodes[path] = l
		} else {
			sessions++
		}
	}
	require.Len(t, nodes, 27)
	require.Equal(t, lines[0]["sessions"], float64(sessions))
	require.Equal(t, "container", nodes["/cont"]["kind"])
	require.Equal(t, "ttl", nodes["/ttl"]["kind"])
	require.Equal(t, 1e9, nodes["/ttl"]["ttlMs"])
	require.Equal(t, "digest", nodes["/acl/digest"]["acl"].([]any)[0].(map[string]any)["scheme"])
	require.Nil(t, nodes["/nulldata"]["data"])
	require.Equal(t, "", nodes["/emptydata"]["data"])
}

func TestDumpSnapshotOfSomethingElse(t *testing.T) {
	dump := func(file string) error {
		_, err := run(func(o Output) error { return DumpSnapshot(o, file, DumpStats, 0) })
		return err
	}
	require.EqualError(t, dump("/nowhere/snapshot.1"), "File '/nowhere/snapshot.1' does not exist.")
	require.ErrorContains(t, dump(fixture("corrupt-snapshot-cut", dataFolder, "snapshot.e")), "is damaged")
	require.Error(t, dump(inStandalone("log.1")))
	// Under another name it is a snapshot all the same.
	b, err := os.ReadFile(fixture("standalone-39-gzip", dataFolder, "snapshot.21.gz"))
	require.NoError(t, err)
	for _, name := range []string{"backup.gz", "snapshot.21.gz"} {
		file := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(file, b, 0o640))
		require.NoError(t, dump(file))
	}
}

// inSeconds are the measured times in the output of a comparison.
var inSeconds = regexp.MustCompile(`in [0-9.]+ seconds`)

func TestCompareSnapshotsPrintsWhatZooKeeperPrints(t *testing.T) {
	tests := []struct {
		left, right, golden, answers string
		opt                          CompareOptions
	}{
		{left: "1f", right: "3b", golden: "compare.1f3b-b0-n0.txt"},
		{left: "3b", right: "1f", golden: "compare.3b1f-b0-n0.txt"},
		{left: "1f", right: "3b", golden: "compare.1f3b-b10-n5-d.txt", opt: CompareOptions{Bytes: 10, Nodes: 5, Debug: true}},
		{left: "1f", right: "3b", golden: "compare.interactive.txt", opt: CompareOptions{Bytes: 10, Nodes: 1, Interactive: true},
			answers: "\n1\n/a\n/nope\nx\n\n99\n/zookeeper/quota/a\n\n\n\n\n\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			opt := tt.opt
			opt.Left, opt.Right = inStandalone("snapshot."+tt.left), inStandalone("snapshot."+tt.right)
			opt.Answers = strings.NewReader(tt.answers)
			got, err := run(func(o Output) error { return CompareSnapshots(o, opt) })
			require.NoError(t, err)
			require.Equal(t, inSeconds.ReplaceAllString(golden(t, tt.golden), ""), inSeconds.ReplaceAllString(got, ""))
		})
	}
}

func TestCompareSnapshotsAsJSON(t *testing.T) {
	opt := CompareOptions{Left: inStandalone("snapshot.1f"), Right: inStandalone("snapshot.3b"), Bytes: 10, Nodes: 1}
	lines, err := runJSON(t, func(o Output) error { return CompareSnapshots(o, opt) })
	require.NoError(t, err)
	require.Equal(t, map[string]any{"path": "/", "in": "both", "bytes": 20055.0, "nodes": 10.0}, lines[0])
	require.Contains(t, lines, map[string]any{"path": "/big", "in": "right", "bytes": 20000.0, "nodes": 0.0})
	opt.Right = opt.Left
	opt.Bytes, opt.Nodes = 0, 0
	lines, err = runJSON(t, func(o Output) error { return CompareSnapshots(o, opt) })
	require.NoError(t, err)
	require.Empty(t, lines, "a snapshot does not differ from itself")
}

func TestCompareOptionsCheck(t *testing.T) {
	good := CompareOptions{Left: "a", Right: "b"}
	require.NoError(t, good.Check(Output{}))
	require.Error(t, CompareOptions{Left: "a"}.Check(Output{}))
	require.Error(t, CompareOptions{Left: "a", Right: "b", Bytes: -1}.Check(Output{}))
	require.Error(t, CompareOptions{Left: "a", Right: "b", Interactive: true}.Check(Output{JSON: true}))
}

// summaries cuts the output into nodes, sorted as ZooKeeper's order is none.
func summaries(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var nodes []string
	for chunk := range slices.Chunk(lines, 3) {
		nodes = append(nodes, strings.TrimSpace(strings.Join(chunk, "\n")))
	}
	slices.Sort(nodes)
	return nodes
}

func TestSummarizePrintsWhatZooKeeperPrints(t *testing.T) {
	for _, tt := range []struct {
		start, golden string
		depth         int
	}{{"/", "summary.all.txt", 0}, {"/", "summary.1.txt", 1}, {"/zookeeper", "summary.zookeeper.txt", 1}} {
		t.Run(tt.golden, func(t *testing.T) {
			got, err := run(func(o Output) error { return Summarize(o, inStandalone("snapshot.3b"), tt.start, tt.depth) })
			require.NoError(t, err)
			require.Equal(t, summaries(golden(t, tt.golden)), summaries(got))
		})
	}
	_, err := run(func(o Output) error { return Summarize(o, inStandalone("snapshot.3b"), "/nope", 0) })
	require.EqualError(t, err, "the snapshot has no node /nope")
	lines, err := runJSON(t, func(o Output) error { return Summarize(o, inStandalone("snapshot.3b"), "/acl", 0) })
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"path": "/acl", "depth": 0.0, "children": 5.0, "data": 5.0}}, lines)
}

// Every snapshot of a real server is right, those included that it wrote while the tree changed.
func TestVerifySnapshots(t *testing.T) {
	for _, name := range []string{"standalone-38", "standalone-38-nodigest", "standalone-39", "standalone-39-gzip",
		"ensemble3-38/n2", "reconfig4-39/r1"} {
		t.Run(name, func(t *testing.T) {
			got, err := run(func(o Output) error { return VerifySnapshots(o, []string{fixture(name)}, "") })
			require.NoError(t, err)
			require.NotContains(t, got, "DAMAGED")
			require.NotContains(t, got, "do not reach")
			require.Equal(t, name == "standalone-38-nodigest", strings.Contains(got,
				"no digest to compare\n") && !strings.Contains(got, "digest right"))
		})
	}
	got, err := run(func(o Output) error { return VerifySnapshots(o, []string{inStandalone("snapshot.7a")}, "") })
	require.NoError(t, err)
	require.Contains(t, got, "replayed up to 0x7b")
}

func TestVerifySnapshotsFindsDamage(t *testing.T) {
	for _, name := range []string{"corrupt-snapshot-bad-checksum", "corrupt-snapshot-cut", "corrupt-snapshot-empty"} {
		t.Run(name, func(t *testing.T) {
			lines, err := runJSON(t, func(o Output) error { return VerifySnapshots(o, []string{fixture(name)}, "") })
			require.EqualError(t, err, "1 file is damaged")
			require.Len(t, lines, 3)
			require.Equal(t, []any{stateOK, stateOK, stateDamaged}, []any{lines[0]["state"], lines[1]["state"], lines[2]["state"]})
		})
	}
	var missing *NoFileError
	_, err := run(func(o Output) error { return VerifySnapshots(o, []string{"/nowhere"}, "") })
	require.ErrorAs(t, err, &missing)
}

// A snapshot whose content was changed and its checksums with it is found by its digest alone.
func TestVerifySnapshotComparesTheDigest(t *testing.T) {
	s, err := readSnapshot(vfs.OS{}, inStandalone("snapshot.97"))
	require.NoError(t, err)
	require.Equal(t, s.named, s.info.DigestZxid)
	note, err := s.verifyTree("")
	require.NoError(t, err)
	require.Equal(t, "digest right", note)
	s.info.Digest++
	_, err = s.verifyTree("")
	require.ErrorContains(t, err, fmt.Sprintf("its digest is %d", s.info.Digest))
}

// A snapshot that was written while the tree changed needs the log for its digest.
func TestVerifySnapshotWithoutItsLog(t *testing.T) {
	dir := copyFixture(t, "standalone-39")
	logs, err := filepath.Glob(filepath.Join(dir, dataFolder, "log.*"))
	require.NoError(t, err)
	for _, l := range logs {
		require.NoError(t, os.Remove(l))
	}
	file := filepath.Join(dir, dataFolder, "snapshot.7a")
	got, err := run(func(o Output) error { return VerifySnapshots(o, []string{file}, "") })
	require.NoError(t, err)
	require.Contains(t, got, "which the logs at hand do not reach")
	logDir := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.MkdirAll(filepath.Join(logDir, dataFolder), 0o750))
	for _, l := range logs {
		b, err := os.ReadFile(inStandalone(filepath.Base(l)))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(logDir, dataFolder, filepath.Base(l)), b, 0o640))
	}
	got, err = run(func(o Output) error { return VerifySnapshots(o, []string{file}, logDir) })
	require.NoError(t, err)
	require.Contains(t, got, "digest right after the log was replayed")
}
