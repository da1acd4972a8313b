package znode

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

// A hint that has grown old is noticed: the node may be gone, its place may be another node's, of the same path or not.
func TestOldHints(t *testing.T) {
	type change struct {
		op   wire.Op
		path string
	}
	tests := []struct {
		name string
		// between are what happens between the hint for /a and its use.
		between []change
		want    wire.Code
	}{
		{"still there", nil, wire.CodeOK},
		{"gone", []change{{wire.OpDelete, "/a"}}, wire.CodeNoNode},
		{"another node in its place", []change{{wire.OpDelete, "/a"}, {wire.OpCreate, "/b"}}, wire.CodeNoNode},
		{"created again in its place", []change{{wire.OpDelete, "/a"}, {wire.OpCreate, "/a"}}, wire.CodeOK},
		{"created again elsewhere", []change{{wire.OpDelete, "/a"}, {wire.OpCreate, "/b"}, {wire.OpCreate, "/a"}}, wire.CodeOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tree, last := NewTree(Config{}), zxid.Zxid(0)
			var res Result
			apply := func(op wire.Op, path string, data []byte, hint Hint) {
				last++
				h := TxnHeader{Zxid: last, Type: op}
				txn := Txn{Type: op, Path: []byte(path), Data: data, ACL: wire.OpenACL, Version: 1, ParentCVersion: int32(last)}
				tree.ApplyHinted(&h, &txn, &res, hint)
			}
			apply(wire.OpCreate, "/a", nil, Hint{})
			a, ok := tree.Find([]byte("/a"))
			require.True(t, ok)
			hint := tree.HintOf(a)
			for _, c := range tt.between {
				apply(c.op, c.path, nil, Hint{})
				require.Equal(t, wire.CodeOK, res.Code)
			}
			apply(wire.OpSetData, "/a", []byte("new"), hint)
			require.Equal(t, tt.want, res.Code)
			if a, ok = tree.Find([]byte("/a")); ok {
				require.Equal(t, []byte("new"), tree.Data(a))
			}
			if b, ok := tree.Find([]byte("/b")); ok {
				require.Empty(t, tree.Data(b), "the node that has the place now was left alone")
			}
			require.NoError(t, tree.Check())
		})
	}
}

// The nodes that no transaction has made have czxid 0, as a free place has. Only the root is taken at its word.
func TestHintOfTheRoot(t *testing.T) {
	tree := NewTree(Config{})
	var res Result
	h := TxnHeader{Zxid: 1, Type: wire.OpCreate}
	tree.ApplyHinted(&h, &Txn{Type: wire.OpCreate, Path: []byte("/a"), ACL: wire.OpenACL, ParentCVersion: 1}, &res, tree.HintOf(rootNode))
	require.Equal(t, wire.CodeOK, res.Code)
	zk, _ := tree.Find([]byte(ZookeeperPath))
	h = TxnHeader{Zxid: 2, Type: wire.OpCreate}
	tree.ApplyHinted(&h, &Txn{Type: wire.OpCreate, Path: []byte("/a/b"), ACL: wire.OpenACL, ParentCVersion: 1}, &res, tree.HintOf(zk))
	require.Equal(t, wire.CodeOK, res.Code)
	_, ok := tree.Find([]byte("/a/b"))
	require.True(t, ok, "not below /zookeeper")
	require.NoError(t, tree.Check())
}
