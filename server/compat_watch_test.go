package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

const (
	created  = wire.EventNodeCreated
	deleted  = wire.EventNodeDeleted
	changed  = wire.EventNodeDataChanged
	children = wire.EventNodeChildrenChanged
)

func TestC56RecursiveWatch(t *testing.T) {
	s := startCompat(t)
	c, w := s.closing(), s.closing()
	a := s.base(c)
	require.NoError(t, w.AddWatch(compatContext(t), a, wire.AddWatchPersistentRecursive))
	s.create(c, a+"/b", nil, 0)
	s.create(c, a+"/b/c", nil, 0)
	s.setData(c, a+"/b/c", "x")
	s.delete(c, a+"/b/c")
	s.delete(c, a+"/b")
	require.Equal(t, []event{{created, a + "/b"}, {created, a + "/b/c"}, {changed, a + "/b/c"}, {deleted, a + "/b/c"}, {deleted, a + "/b"}}, events(t, w))
	s.setData(c, a, "x")
	s.delete(c, a)
	require.Equal(t, []event{{changed, a}, {deleted, a}}, events(t, w))
	s.create(c, a, nil, 0)
	require.Equal(t, []event{{created, a}}, events(t, w), "it stays, also when its own node is gone for a while")
}

func TestC59WatchesEndWithTheConnection(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	before := s.mntr("zk_watch_count")
	for _, end := range []func(*client.Client){
		func(w *client.Client) { require.NoError(t, w.Close(compatContext(t))) },
		func(w *client.Client) { w.Abandon() },
	} {
		w := s.client()
		_, _, err := w.GetData(compatContext(t), base, true)
		require.NoError(t, err)
		_, err = w.Exists(compatContext(t), base+"/none", true)
		require.Equal(t, wire.CodeNoNode, err)
		_, err = w.GetChildren(compatContext(t), base, true)
		require.NoError(t, err)
		require.NoError(t, w.AddWatch(compatContext(t), base+"/p", wire.AddWatchPersistent))
		require.NoError(t, w.AddWatch(compatContext(t), base+"/r", wire.AddWatchPersistentRecursive))
		require.Greater(t, s.mntr("zk_watch_count"), before)
		end(w)
		eventually(t, "no watches", func() bool { return s.mntr("zk_watch_count") == before })
	}
}

func TestC61WatchesOfNodesThatComeAndGo(t *testing.T) {
	s := startCompat(t)
	c := s.closing(client.Options{OnEvent: func(client.Event) {}})
	x := s.base(c) + "/x"
	before := s.mntr("zk_watch_count")
	const rounds = 5000
	var calls []*client.Call
	for range rounds {
		calls = append(calls[:0],
			c.Go(wire.OpExists, &wire.PathWatchRequest{Path: []byte(x), Watch: true}),
			c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte(x), ACL: wire.OpenACL}),
			c.Go(wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte(x), Watch: true}),
			c.Go(wire.OpDelete, &wire.PathVersionRequest{Path: []byte(x), Version: -1}),
		)
	}
	for i, call := range calls {
		err := call.Wait(compatContext(t))
		if i == 0 {
			require.Equal(t, wire.CodeNoNode, err)
			continue
		}
		require.NoError(t, err)
	}
	require.Equal(t, before, s.mntr("zk_watch_count"))
}

func TestC64ChildWatchIsNotForData(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	s.create(c, p+"/c", nil, 0)
	_, err := c.GetChildren(compatContext(t), p, true)
	require.NoError(t, err)
	s.setData(c, p+"/c", "x")
	s.setData(c, p, "x")
	require.Empty(t, events(t, c))
	s.delete(c, p+"/c")
	require.Equal(t, []event{{children, p}}, events(t, c))
}

func TestC65ListWatchIsAChildWatch(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	_, _, err := c.GetChildren2(compatContext(t), p, true)
	require.NoError(t, err)
	s.create(c, p+"/c", nil, 0)
	require.Equal(t, []event{{children, p}}, events(t, c))
	s.create(c, p+"/d", nil, 0)
	require.Empty(t, events(t, c), "it was used up")
}

// watchKinds are the ways to watch a node.
var watchKinds = map[string]func(context.Context, *client.Client, string) error{
	"data": func(ctx context.Context, w *client.Client, p string) error {
		_, _, err := w.GetData(ctx, p, true)
		return err
	},
	"exists": func(ctx context.Context, w *client.Client, p string) error {
		_, err := w.Exists(ctx, p, true)
		return err
	},
	"list": func(ctx context.Context, w *client.Client, p string) error {
		_, err := w.GetChildren(ctx, p, true)
		return err
	},
	"data+list": func(ctx context.Context, w *client.Client, p string) error {
		_, _, err := w.GetData(ctx, p, true)
		_, err2 := w.GetChildren(ctx, p, true)
		return errors.Join(err, err2)
	},
	"persistent": func(ctx context.Context, w *client.Client, p string) error {
		return w.AddWatch(ctx, p, wire.AddWatchPersistent)
	},
	"recursive": func(ctx context.Context, w *client.Client, p string) error {
		return w.AddWatch(ctx, p, wire.AddWatchPersistentRecursive)
	},
}

// watchTests tell for each change which of the watchKinds see it, and as what.
var watchTests = []struct {
	name string
	have string // what is there before: "", "node" or "child"
	do   func(s *compat, c *client.Client, p string)
	want map[string][]wire.EventType
}{
	{
		"create", "", func(s *compat, c *client.Client, p string) { s.create(c, p, nil, 0) },
		map[string][]wire.EventType{"exists": {created}, "persistent": {created}, "recursive": {created}},
	},
	{
		"set", "node", func(s *compat, c *client.Client, p string) { s.setData(c, p, "x") },
		map[string][]wire.EventType{"data": {changed}, "exists": {changed}, "data+list": {changed}, "persistent": {changed}, "recursive": {changed}},
	},
	{
		"setACL", "node", func(s *compat, c *client.Client, p string) {
			_, err := c.SetACL(compatContext(s.t), p, wire.OpenACL, -1)
			require.NoError(s.t, err)
		},
		nil,
	},
	{
		"delete", "node", func(s *compat, c *client.Client, p string) { s.delete(c, p) },
		map[string][]wire.EventType{
			"data": {deleted}, "exists": {deleted}, "list": {deleted}, "data+list": {deleted}, "persistent": {deleted}, "recursive": {deleted},
		},
	},
	{
		"create child", "node", func(s *compat, c *client.Client, p string) { s.create(c, p+"/child", nil, 0) },
		map[string][]wire.EventType{"list": {children}, "data+list": {children}, "persistent": {children}, "recursive": {created}},
	},
	{
		"set child", "child", func(s *compat, c *client.Client, p string) { s.setData(c, p+"/child", "x") },
		map[string][]wire.EventType{"recursive": {changed}},
	},
	{
		"delete child", "child", func(s *compat, c *client.Client, p string) { s.delete(c, p+"/child") },
		map[string][]wire.EventType{"list": {children}, "data+list": {children}, "persistent": {children}, "recursive": {deleted}},
	},
}

func TestC67WhichWatchSeesWhat(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	for i, tt := range watchTests {
		for name, watch := range watchKinds {
			if tt.have == "" && tt.want[name] == nil {
				continue // cannot be set on a node that is not there
			}
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				p := fmt.Sprintf("%s/%d-%s", base, i, name)
				if tt.have != "" {
					s.create(c, p, nil, 0)
				}
				if tt.have == "child" {
					s.create(c, p+"/child", nil, 0)
				}
				w := s.client()
				defer w.Close(compatContext(t))
				if err := watch(compatContext(t), w, p); err != nil {
					require.Equal(t, []any{"", "exists", wire.CodeNoNode}, []any{tt.have, name, err})
				}
				tt.do(s, c, p)
				want := []event{}
				for _, typ := range tt.want[name] {
					at := p
					if name == "recursive" && strings.HasSuffix(tt.name, "child") {
						at += "/child"
					}
					want = append(want, event{typ, at})
				}
				require.Equal(t, want, events(t, w))
			})
		}
	}
}

// watchList turns paths into the list of a setWatches request, which must not be null.
func watchList(paths ...string) [][]byte {
	out := [][]byte{}
	for _, p := range paths {
		out = append(out, []byte(p))
	}
	return out
}

func setWatches(rel zxid.Zxid, data, exist, child [][]byte) *wire.SetWatchesRequest {
	return &wire.SetWatchesRequest{RelativeZxid: rel, Data: data, Exist: exist, Child: child, Persistent: watchList(), Recursive: watchList()}
}

// changedBehindTheBack makes nodes, some of which changed after the zxid that it returns.
func (s *compat) changedBehindTheBack(c *client.Client) (base string, rel zxid.Zxid) {
	base = s.base(c)
	for _, n := range []string{"/same", "/set", "/gone", "/parent-same", "/parent-changed"} {
		s.create(c, base+n, nil, 0)
	}
	s.create(c, base+"/parent-changed/old", nil, 0)
	rel = s.stat(c, base+"/parent-changed").Pzxid
	s.setData(c, base+"/set", "x")
	s.delete(c, base+"/gone")
	s.create(c, base+"/new", nil, 0)
	s.delete(c, base+"/parent-changed/old")
	s.setData(c, base+"/parent-same", "x")
	return base, rel
}

func TestC68SetWatches(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	for name, call := range map[string]func(*client.Client, *wire.SetWatchesRequest) error{
		"setWatches": func(w *client.Client, r *wire.SetWatchesRequest) error { return w.SetWatches(compatContext(t), r) },
		"setWatches2": func(w *client.Client, r *wire.SetWatchesRequest) error {
			return w.SetWatches2(compatContext(t), r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			base, rel := s.changedBehindTheBack(c)
			w := s.client()
			defer w.Close(compatContext(t))
			last := s.stat(c, base).Pzxid
			require.NoError(t, call(w, setWatches(rel,
				watchList(base+"/same", base+"/set", base+"/gone"),
				watchList(base+"/gone", base+"/new"),
				watchList(base+"/parent-same", base+"/parent-changed", base+"/gone"))))
			require.GreaterOrEqual(t, w.LastZxid(), last)
			want := []client.Event{
				{Type: changed, Path: base + "/set"},
				{Type: deleted, Path: base + "/gone"},
				{Type: created, Path: base + "/new"},
				{Type: children, Path: base + "/parent-changed"},
				{Type: deleted, Path: base + "/gone"},
			}
			for i := range want {
				want[i].State, want[i].Zxid = wire.StateSyncConnected, -1
				require.Equal(t, want[i], <-w.Events(), "they come before the reply")
			}
			require.Empty(t, events(t, w))

			// What gave no event is armed, and nothing else is.
			for _, n := range []string{"/same", "/set", "/new"} {
				s.setData(c, base+n, "y")
			}
			s.create(c, base+"/gone", nil, 0)
			s.create(c, base+"/parent-same/c", nil, 0)
			s.create(c, base+"/parent-changed/c", nil, 0)
			require.Equal(t, []event{{changed, base + "/same"}, {created, base + "/gone"}, {children, base + "/parent-same"}}, events(t, w))

		})
	}
}

func TestC68PersistentWatchesAreSetAgain(t *testing.T) {
	s := startCompat(t)
	c, w := s.closing(), s.closing()
	base := s.base(c)
	req := setWatches(0, watchList(), watchList(), watchList())
	req.Persistent, req.Recursive = watchList(base+"/p"), watchList(base+"/r")
	require.NoError(t, w.SetWatches2(compatContext(t), req))
	require.Empty(t, events(t, w), "never at once")
	for _, n := range []string{"/p", "/p/c", "/r", "/r/c"} {
		s.create(c, base+n, nil, 0)
	}
	require.Equal(t, []event{{created, base + "/p"}, {children, base + "/p"}, {created, base + "/r"}, {created, base + "/r/c"}}, events(t, w))
}

func TestC70DeletionWhileAway(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	p := s.base(b)
	s.create(b, p+"/c", nil, 0)
	a := s.closing()
	_, err := a.GetChildren(compatContext(t), p, true)
	require.NoError(t, err)
	a.Abandon()
	s.delete(b, p+"/c")
	again, err := s.again(a)
	require.NoError(t, err)
	require.NoError(t, again.SetWatches(compatContext(t), setWatches(a.LastZxid(), watchList(), watchList(), watchList(p))))
	require.Equal(t, []event{{children, p}}, events(t, again))
	require.NoError(t, again.Close(compatContext(t)))
}

func TestC72OverlappingWatchLists(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	rel := s.stat(c, p).Czxid
	r := s.session()
	req := setWatches(rel, watchList(p), watchList(p+"/none"), watchList(p))
	r.sendBytes(wire.XidSetWatches, wire.OpSetWatches, encodeV1(req))
	_, body := r.expect(wire.XidSetWatches, wire.CodeOK)
	require.Empty(t, body)

	s.delete(c, p)
	h, body := r.reply()
	var e wire.WatcherEvent
	decode(t, body, &e)
	require.Equal(t, int32(wire.XidNotification), h.Xid)
	require.Equal(t, wire.WatcherEvent{Type: deleted, State: wire.StateSyncConnected, Path: []byte(p)}, e)
	r.send(2, wire.OpPing, nil)
	r.expect(wire.XidPing, wire.CodeOK) // and no second event
}
