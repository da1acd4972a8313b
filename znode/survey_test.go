package znode

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

// survey returns the paths that a survey in steps of count places sees.
func survey(t *Tree, count int) (paths []string) {
	for at := Node(0); ; {
		at = t.Survey(at, count, func(id Node) { paths = append(paths, string(t.AppendPath(nil, id))) })
		if at == noNode {
			slices.Sort(paths)
			return paths
		}
	}
}

// A survey sees each node once, whatever its steps are, and none that was deleted.
func TestSurvey(t *testing.T) {
	tree := NewTree(Config{})
	want := []string{"/", ConfigPath, QuotaPath, ZookeeperPath}
	var res Result
	for i := range 3000 {
		z := zxid.Zxid(i + 1)
		path := []byte(fmt.Sprintf("/n%04d", i))
		tree.Apply(&TxnHeader{Zxid: z, Type: wire.OpCreate}, &Txn{Type: wire.OpCreate, Path: path, ParentCVersion: int32(i + 1)}, &res)
		if i%3 == 0 {
			tree.Apply(&TxnHeader{Zxid: z, Type: wire.OpDelete}, &Txn{Type: wire.OpDelete, Path: path}, &res)
		} else {
			want = append(want, string(path))
		}
	}
	slices.Sort(want)
	for _, count := range []int{1, 7, 1024, 5000} {
		require.Equal(t, want, survey(tree, count), "%d places at a time", count)
	}
}

func TestVisitWidths(t *testing.T) {
	w := NewWatches()
	for i := range 5 {
		id := w.Attach(&silent{})
		w.Add(id, TableData, []byte("/a"), WatchStandard)
		if i > 1 {
			w.Add(id, TableChild, []byte("/a"), WatchStandard)
			w.Add(id, TableData, []byte("/b"), WatchPersistent)
		}
		if i == 4 {
			w.Detach(id)
		}
	}
	for table, want := range []map[string]int{{"/a": 4, "/b": 2}, {"/a": 2}} {
		got := map[string]int{}
		w.VisitWidths(WatchTable(table), func(path string, watchers int) { got[path] = watchers })
		require.Equal(t, want, got)
	}
}

// A tree without its sessions has the same nodes and digest, and what they own is orphaned.
func TestDropSessions(t *testing.T) {
	tree := NewTree(Config{})
	var res Result
	tree.Apply(&TxnHeader{Zxid: 1, ClientID: 5, Type: wire.OpCreateSession}, &Txn{Type: wire.OpCreateSession, Timeout: 1000}, &res)
	tree.Apply(&TxnHeader{Zxid: 2, ClientID: 5, Type: wire.OpCreate}, &Txn{Type: wire.OpCreate, Path: []byte("/e"), Ephemeral: true, ParentCVersion: 1}, &res)
	digest := tree.Digest()
	require.Empty(t, tree.Orphans())
	tree.DropSessions()
	require.NoError(t, tree.Check())
	require.Zero(t, tree.SessionCount())
	require.Equal(t, []zxid.SessionID{5}, tree.Orphans())
	require.Equal(t, digest, tree.Digest())
}
