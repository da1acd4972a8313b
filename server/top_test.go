package server_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server"
	"zabra/server/admin"
	"zabra/wire"
	"zabra/znode"
)

func rows(t testing.TB, r *admin.Response, name string) (list []string) {
	t.Helper()
	for _, o := range answered(t, r, name).([]admin.Object) {
		text := ""
		for _, f := range o {
			text += fmt.Sprint(f.Value, " ")
		}
		list = append(list, text)
	}
	return list
}

func TestTop(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c := s.client()
	s.create(c, "/hot", 0)
	s.create(c, "/big", 0)
	_, err := c.SetData(t.Context(), "/big", make([]byte, 5000), -1)
	require.NoError(t, err)
	for i := range 40 {
		s.create(c, fmt.Sprintf("/hot/n%02d", i), 0)
	}
	for i := range 3 {
		w := s.client()
		_, _, err := w.GetData(t.Context(), "/hot", true)
		require.NoError(t, err)
		if i > 0 {
			_, err = w.GetChildren(t.Context(), "/big", true)
			require.NoError(t, err)
		}
	}
	for range 20 * 64 {
		_, _, err := c.GetData(t.Context(), "/hot", false)
		require.NoError(t, err)
	}
	for range 5 * 64 {
		_, err := c.SetData(t.Context(), "/hot/n07", nil, -1)
		require.NoError(t, err)
	}
	r := s.Act("top?n=3", "", "")
	require.Zero(t, r.Status)
	require.Equal(t, int64(64), answered(t, r, "sampled_one_in"))
	require.GreaterOrEqual(t, answered(t, r, "samples"), int64(25))
	require.Len(t, rows(t, r, "busiest_clients"), 1)
	require.Regexp(t, `^127\.0\.0\.1 1[67]\d\d 0 $`, rows(t, r, "busiest_clients")[0])
	require.Regexp(t, `^/hot 1[23]\d\d 0 $`, rows(t, r, "most_read_paths")[0])
	require.Regexp(t, `^/hot/n07 [23]\d\d 0 $`, rows(t, r, "most_written_paths")[0])
	require.Equal(t, []string{"/hot data 3 ", "/big child 2 "}, rows(t, r, "widest_watches"))
	require.Equal(t, "/big 5000 ", rows(t, r, "biggest_znodes")[0])
	require.Len(t, rows(t, r, "biggest_znodes"), 3)
	require.Equal(t, []string{"/hot 40 ", "/ 3 ", "/zookeeper 2 "}, rows(t, r, "largest_children_lists"))

	s.Act("top?reset=true", "", "")
	r = s.Act("top", "", "")
	require.Equal(t, int64(0), answered(t, r, "samples"))
	require.Empty(t, rows(t, r, "busiest_clients"))
	require.Len(t, rows(t, r, "biggest_znodes"), 20)
	for _, bad := range []string{"top?n=0", "top?n=x", "top?n=501", "top?reset=1"} {
		require.Equal(t, http.StatusBadRequest, s.Act(bad, "", "").Status, bad)
	}
}

// topFrame puts a request together: an opcode and what follows, of which texts are written as strings.
func topFrame(op wire.Op, parts ...any) []byte {
	b := binary.BigEndian.AppendUint32(nil, 7)
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func TestTopRequests(t *testing.T) {
	long := "/" + string(make([]byte, 5000))
	tests := []struct {
		frame []byte
		write bool
		path  string
		ok    bool
	}{
		{topFrame(wire.OpGetData, "/a", []byte{0}), false, "/a", true},
		{topFrame(wire.OpSetData, "/a/b", "x"), true, "/a/b", true},
		{topFrame(wire.OpSync, "/s"), false, "/s", true},
		{topFrame(wire.OpMulti, []byte{0, 0, 0, 5, 0, 255, 255, 255, 255}, "/m"), true, "/m", true},
		{topFrame(wire.OpMultiRead, []byte{0, 0, 0, 4, 0, 255, 255, 255, 255}, "/m"), false, "/m", true},
		{topFrame(wire.OpGetData, long), false, long[:1024], true},
		{topFrame(wire.OpSetWatches, []byte{0, 0, 0, 0, 0, 0, 0, 9}), false, "", true},
		{topFrame(wire.OpReconfig, "server.1"), true, "", true},
		{topFrame(wire.OpGetData), false, "", true},
		{topFrame(wire.OpGetData, []byte{255, 255, 255, 255}), false, "", true},
		{topFrame(wire.OpGetData, []byte{127, 255, 255, 255, '/'}), false, "", true},
		{topFrame(wire.OpMulti, []byte{0, 0}), true, "", true},
		{topFrame(wire.OpCloseSession), true, "", true},
		{topFrame(wire.OpPing), false, "", false},
		{topFrame(wire.OpAuth), false, "", false},
		{topFrame(12345), false, "", false},
		{[]byte{1, 2, 3, 4, 5, 6, 7}, false, "", false},
		{nil, false, "", false},
	}
	for _, tt := range tests {
		write, path, ok := server.TopRequests(tt.frame)
		require.Equal(t, []any{tt.write, tt.path, tt.ok}, []any{write, string(path), ok}, "%q", tt.frame)
	}
}

// A survey goes through trees of more nodes than one stretch has, beside writers.
func TestTopSurveysLargeTrees(t *testing.T) {
	s := startShell(t, shellConfig(t))
	c := s.client()
	var ops []wire.MultiOp
	for i := range 9000 {
		ops = append(ops, wire.MultiOp{Op: wire.OpCreate, Create: wire.CreateTTLRequest{Path: []byte(fmt.Sprintf("/n%05d", i)), Data: make([]byte, i%100), ACL: wire.OpenACL, TTL: -1}})
		if len(ops) == 1000 {
			_, err := c.Multi(t.Context(), ops...)
			require.NoError(t, err)
			ops = ops[:0]
		}
	}
	r := s.Act("top?n=1", "", "")
	require.Equal(t, []string{"/ 9001 "}, rows(t, r, "largest_children_lists"))
	require.Equal(t, 9001, s.Replica().Tree().NumChildren(root(s.Replica().Tree())))
}

func root(tree *znode.Tree) znode.Node {
	id, _ := tree.Find([]byte(znode.RootPath))
	return id
}
