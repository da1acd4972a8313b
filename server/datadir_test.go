package server_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/internal/storage"
	"zabra/internal/storage/vfs"
	"zabra/jute"
	"zabra/server/replica"
	"zabra/wire"
	"zabra/znode"
)

// expectedNode is a node as a client of the real server read it.
type expectedNode struct {
	Path string  `json:"path"`
	Data *string `json:"data"` // base64; null for null data
	ACL  []struct {
		Perms  int32  `json:"perms"`
		Scheme string `json:"scheme"`
		ID     string `json:"id"`
	} `json:"acl"`
	Stat struct {
		Czxid          int64  `json:"czxid"`
		Mzxid          int64  `json:"mzxid"`
		Ctime          int64  `json:"ctime"`
		Mtime          int64  `json:"mtime"`
		Version        int32  `json:"version"`
		CVersion       int32  `json:"cversion"`
		AVersion       int32  `json:"aversion"`
		EphemeralOwner string `json:"ephemeralOwner"`
		DataLength     int32  `json:"dataLength"`
		NumChildren    int32  `json:"numChildren"`
		Pzxid          int64  `json:"pzxid"`
	} `json:"stat"`
}

// TestRealDataDirectories opens directories that real servers wrote, some of them damaged afterwards. Each gives the tree
// that the real server showed, or is refused with a word on what is wrong. Where the real server loses transactions
// without a word, or refuses what is merely torn, the comment says what is done instead.
func TestRealDataDirectories(t *testing.T) {
	tests := []struct {
		dir    string // below the storage's testdata
		want   string // the expected tree, "" when the directory is refused
		refuse string // what the refusal says
	}{
		{dir: "standalone-38", want: "standalone-38/expected.json"},
		{dir: "standalone-38-nodigest", want: "standalone-38-nodigest/expected.json"},
		{dir: "standalone-39", want: "standalone-39/expected.json"},
		{dir: "standalone-39-gzip", want: "standalone-39-gzip/expected.json"},
		{dir: "ensemble3-38/n1", want: "ensemble3-38/expected.json"},
		{dir: "ensemble3-38/n2", want: "ensemble3-38/expected.json"},
		{dir: "reconfig4-39/r1", want: "reconfig4-39/expected.json"},
		{dir: "reconfig4-39/r2", want: "reconfig4-39/expected.json"},
		{dir: "diverged3-39/n1", want: "diverged3-39/expected-A.json"},
		{dir: "diverged3-39/n3", want: "diverged3-39/expected-B.json"},
		{dir: "truncated-follower-39", want: "truncated-follower-39/expected.json"},
		{dir: "corrupt-none", want: "corrupt-none/expected.json"},
		{dir: "corrupt-no-logs", want: "corrupt-no-logs/expected.json"},
		{dir: "corrupt-header-only-tail-log", want: "corrupt-none/expected.json"},
		{dir: "corrupt-empty-tail-log", want: "corrupt-none/expected.json"},
		// A log file whose header is cut was never written to: it is discarded, where Apache refuses.
		{dir: "corrupt-short-header-tail-log", want: "corrupt-none/expected.json"},
		{dir: "corrupt-snapshot-bad-checksum", want: "corrupt-none/expected.json"},
		{dir: "corrupt-snapshot-cut", want: "corrupt-none/expected.json"},
		{dir: "corrupt-snapshot-empty", want: "corrupt-none/expected.json"},
		{dir: "corrupt-tail-cut-mid-record", want: "corrupt-tail-cut-mid-record/expected.json"},
		// The very last record is damaged: a torn tail, where Apache refuses.
		{dir: "corrupt-crc-bad-last-record", want: "corrupt-tail-cut-mid-record/expected.json"},
		{dir: "corrupt-tail-garbage-length", want: "corrupt-none/expected.json"},
		// The log begins at the first transaction, so it is the whole history; Apache refuses.
		{dir: "corrupt-no-snapshot", want: "corrupt-none/expected.json"},
		// The empty file held only what the newest snapshot has, and nothing is missing behind; Apache refuses.
		{dir: "corrupt-empty-middle-log", want: "corrupt-none/expected.json"},
		{dir: "corrupt-crc-bad-middle-record", refuse: "log."},
		// Apache stops reading the file there and loses the seven transactions behind.
		{dir: "corrupt-eor-missing-middle-record", refuse: "log."},
		{dir: "corrupt-log-bad-magic", refuse: "log.f"},
		{dir: "corrupt-log-gap", refuse: "log.f"},
	}
	for _, tt := range tests {
		t.Run(filepath.ToSlash(tt.dir), func(t *testing.T) {
			rec, err := recoverCopy(t, filepath.Join(datadirs, tt.dir))
			if tt.refuse != "" {
				require.ErrorContains(t, err, tt.refuse)
				return
			}
			require.NoError(t, err)
			require.NoError(t, rec.Tree.Check())
			require.Zero(t, rec.DigestMismatches)
			raw, err := os.ReadFile(filepath.Join(datadirs, tt.want))
			require.NoError(t, err)
			var want []expectedNode
			require.NoError(t, json.Unmarshal(raw, &want))
			requireSameTree(t, want, dump(t, rec.Tree))
		})
	}
}

const datadirs = "../internal/storage/testdata/datadirs"

// recoverCopy opens a copy of a data directory.
func recoverCopy(t *testing.T, dir string) (*replica.Recovered, error) {
	t.Helper()
	copied := t.TempDir()
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	store, err := storage.Open(vfs.OS{}, storage.Config{SnapDir: copied, LogDir: copied, RecordBytesMax: jute.FieldBytesMaxDefault})
	if err != nil {
		return nil, err
	}
	defer func() { require.NoError(t, store.Close()) }()
	auth, err := znode.NewAuth(znode.AuthConfig{})
	require.NoError(t, err)
	rec, err := replica.Recover(store, replica.Config{
		ServerByte: 1, FieldBytesMax: jute.FieldBytesMaxDefault,
		Tree: znode.Config{ExtendedTypes: true, Auth: auth},
	})
	if err != nil {
		return nil, err
	}
	return rec, store.Begin(rec.LastZxid)
}

func dump(t *testing.T, tree *znode.Tree) []expectedNode {
	t.Helper()
	var nodes []expectedNode
	var visit func(path string)
	visit = func(path string) {
		n, ok := tree.Find([]byte(path))
		require.True(t, ok, path)
		var e expectedNode
		e.Path = path
		if data := tree.Data(n); data != nil {
			text := base64.StdEncoding.EncodeToString(data)
			e.Data = &text
		}
		for _, a := range tree.ACL(n).Entries() {
			e.ACL = append(e.ACL, struct {
				Perms  int32  `json:"perms"`
				Scheme string `json:"scheme"`
				ID     string `json:"id"`
			}{a.Perms, a.Scheme, a.ID})
		}
		fillStat(&e, tree.Stat(n))
		nodes = append(nodes, e)
		var children []string
		tree.VisitChildren(n, func(name []byte) bool {
			children = append(children, string(name))
			return true
		})
		for _, name := range children {
			visit(joinPath(path, name))
		}
	}
	visit("/")
	return nodes
}

func joinPath(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

func fillStat(e *expectedNode, st wire.Stat) {
	s := &e.Stat
	s.Czxid, s.Mzxid, s.Pzxid = int64(st.Czxid), int64(st.Mzxid), int64(st.Pzxid)
	s.Ctime, s.Mtime = st.Ctime, st.Mtime
	s.Version, s.CVersion, s.AVersion = st.Version, st.CVersion, st.AVersion
	s.EphemeralOwner = "0x" + strconv.FormatUint(uint64(st.EphemeralOwner), 16)
	s.DataLength, s.NumChildren = st.DataLength, st.NumChildren
}

// requireSameTree compares node by node. The text and the time of /zookeeper/config are each server's own, not replicated.
func requireSameTree(t *testing.T, want, got []expectedNode) {
	t.Helper()
	byPath := func(list []expectedNode) func(i, j int) bool {
		return func(i, j int) bool { return list[i].Path < list[j].Path }
	}
	sort.Slice(want, byPath(want))
	sort.Slice(got, byPath(got))
	paths := func(list []expectedNode) (p []string) {
		for _, n := range list {
			p = append(p, n.Path)
		}
		return p
	}
	require.Equal(t, paths(want), paths(got))
	for i := range want {
		if want[i].Path == "/zookeeper/config" {
			got[i].Data, got[i].Stat.Mtime = want[i].Data, want[i].Stat.Mtime
		}
		require.Equal(t, want[i], got[i])
	}
}
