package client

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

// opTest is a call of one method with the request that it must send and the reply that it must understand.
type opTest struct {
	op      wire.Op
	request wire.Record
	reply   wire.Record
	call    func(context.Context, *Client) (any, error)
	want    any
}

type pathStat struct {
	path string
	stat wire.Stat
}

type childrenStat struct {
	children []string
	stat     wire.Stat
}

type dataStat struct {
	data []byte
	stat wire.Stat
}

var (
	testStat = wire.Stat{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, CVersion: 6, AVersion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11}
	testACL  = []wire.ACL{{Perms: 3, Scheme: "digest", ID: "a:b"}}
	testData = []byte("data")
	testPath = []byte("/p")
)

func b(s ...string) [][]byte {
	out := [][]byte{}
	for _, x := range s {
		out = append(out, []byte(x))
	}
	return out
}

var writeTests = []opTest{
	{
		wire.OpCreate, &wire.CreateRequest{Path: testPath, Data: testData, ACL: testACL, Flags: 3}, &wire.PathReply{Path: []byte("/p1")},
		func(ctx context.Context, c *Client) (any, error) { return c.Create(ctx, "/p", testData, testACL, 3) }, "/p1",
	},
	{
		wire.OpCreate2, &wire.CreateRequest{Path: testPath, ACL: testACL}, &wire.CreateReply{Path: testPath, Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			p, s, err := c.Create2(ctx, "/p", nil, testACL, 0)
			return pathStat{p, s}, err
		}, pathStat{"/p", testStat},
	},
	{
		wire.OpCreateContainer, &wire.CreateRequest{Path: testPath, Data: []byte{}, ACL: testACL, Flags: 4}, &wire.CreateReply{Path: testPath, Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			p, s, err := c.CreateContainer(ctx, "/p", []byte{}, testACL)
			return pathStat{p, s}, err
		}, pathStat{"/p", testStat},
	},
	{
		wire.OpCreateTTL, &wire.CreateTTLRequest{Path: testPath, Data: testData, ACL: testACL, Flags: 5, TTL: 99}, &wire.CreateReply{Path: testPath, Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			p, s, err := c.CreateTTL(ctx, "/p", testData, testACL, wire.FlagTTL, 99)
			return pathStat{p, s}, err
		}, pathStat{"/p", testStat},
	},
	{
		wire.OpDelete, &wire.PathVersionRequest{Path: testPath, Version: 4}, nil,
		func(ctx context.Context, c *Client) (any, error) { return nil, c.Delete(ctx, "/p", 4) }, nil,
	},
	{
		wire.OpSetData, &wire.SetDataRequest{Path: testPath, Data: testData, Version: -1}, &testStat,
		func(ctx context.Context, c *Client) (any, error) { return c.SetData(ctx, "/p", testData, -1) }, testStat,
	},
	{
		wire.OpSetACL, &wire.SetACLRequest{Path: testPath, ACL: testACL, Version: 2}, &testStat,
		func(ctx context.Context, c *Client) (any, error) { return c.SetACL(ctx, "/p", testACL, 2) }, testStat,
	},
	{
		wire.OpReconfig, &wire.ReconfigRequest{Joining: []byte("j"), ConfigID: -1}, &wire.DataReply{Data: testData, Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			d, s, err := c.Reconfig(ctx, &wire.ReconfigRequest{Joining: []byte("j"), ConfigID: -1})
			return dataStat{d, s}, err
		}, dataStat{testData, testStat},
	},
}

var readTests = []opTest{
	{
		wire.OpExists, &wire.PathWatchRequest{Path: testPath, Watch: true}, &testStat,
		func(ctx context.Context, c *Client) (any, error) { return c.Exists(ctx, "/p", true) }, testStat,
	},
	{
		wire.OpGetData, &wire.PathWatchRequest{Path: testPath}, &wire.DataReply{Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			d, s, err := c.GetData(ctx, "/p", false)
			return dataStat{d, s}, err
		}, dataStat{nil, testStat},
	},
	{
		wire.OpGetACL, &wire.PathRequest{Path: testPath}, &wire.ACLReply{ACL: testACL, Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			a, _, err := c.GetACL(ctx, "/p")
			return a, err
		}, testACL,
	},
	{
		wire.OpGetChildren, &wire.PathWatchRequest{Path: testPath, Watch: true}, &wire.ChildrenReply{Children: b("x", "y")},
		func(ctx context.Context, c *Client) (any, error) { return c.GetChildren(ctx, "/p", true) }, []string{"x", "y"},
	},
	{
		wire.OpGetChildren2, &wire.PathWatchRequest{Path: testPath}, &wire.Children2Reply{Children: b(), Stat: testStat},
		func(ctx context.Context, c *Client) (any, error) {
			v, s, err := c.GetChildren2(ctx, "/p", false)
			return childrenStat{v, s}, err
		}, childrenStat{[]string{}, testStat},
	},
	{
		wire.OpGetAllChildrenNumber, &wire.PathRequest{Path: testPath}, &wire.CountReply{Total: 12},
		func(ctx context.Context, c *Client) (any, error) { return c.GetAllChildrenNumber(ctx, "/p") }, 12,
	},
	{
		wire.OpGetEphemerals, &wire.PathRequest{Path: testPath}, &wire.ChildrenReply{Children: b("/p/1")},
		func(ctx context.Context, c *Client) (any, error) { return c.GetEphemerals(ctx, "/p") }, []string{"/p/1"},
	},
	{
		wire.OpSync, &wire.PathRequest{Path: testPath}, &wire.PathReply{Path: testPath},
		func(ctx context.Context, c *Client) (any, error) { return c.Sync(ctx, "/p") }, "/p",
	},
	{
		wire.OpCheckWatches, &wire.WatchTypeRequest{Path: testPath, Type: 3}, nil,
		func(ctx context.Context, c *Client) (any, error) { return nil, c.CheckWatches(ctx, "/p", 3) }, nil,
	},
	{
		wire.OpRemoveWatches, &wire.WatchTypeRequest{Path: testPath, Type: 1}, nil,
		func(ctx context.Context, c *Client) (any, error) { return nil, c.RemoveWatches(ctx, "/p", 1) }, nil,
	},
	{
		wire.OpAddWatch, &wire.AddWatchRequest{Path: testPath, Mode: 1}, &wire.ErrorReply{},
		func(ctx context.Context, c *Client) (any, error) { return nil, c.AddWatch(ctx, "/p", 1) }, nil,
	},
	{
		wire.OpSetWatches, v1Record{&wire.SetWatchesRequest{RelativeZxid: 5, Data: b("/d"), Exist: b("/e"), Child: b("/c"), Persistent: b(), Recursive: b()}}, nil,
		func(ctx context.Context, c *Client) (any, error) {
			return nil, c.SetWatches(ctx, &wire.SetWatchesRequest{RelativeZxid: 5, Data: b("/d"), Exist: b("/e"), Child: b("/c")})
		}, nil,
	},
	{
		wire.OpSetWatches2, &wire.SetWatchesRequest{RelativeZxid: 5, Data: b(), Exist: b(), Child: b(), Persistent: b("/p"), Recursive: b("/r")}, nil,
		func(ctx context.Context, c *Client) (any, error) {
			return nil, c.SetWatches2(ctx, &wire.SetWatchesRequest{RelativeZxid: 5, Data: b(), Exist: b(), Child: b(), Persistent: b("/p"), Recursive: b("/r")})
		}, nil,
	},
	{
		wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: testData}, nil,
		func(ctx context.Context, c *Client) (any, error) { return nil, c.AddAuth(ctx, "digest", testData) }, nil,
	},
	{
		wire.OpSASL, &wire.SASLRequest{Token: testData}, &wire.SASLRequest{Token: []byte("next")},
		func(ctx context.Context, c *Client) (any, error) { return c.SASL(ctx, testData) }, []byte("next"),
	},
	{
		wire.OpWhoAmI, nil, &wire.WhoAmIReply{Clients: []wire.ClientInfo{{Scheme: "ip", User: "::1"}}},
		func(ctx context.Context, c *Client) (any, error) { return c.WhoAmI(ctx) }, []wire.ClientInfo{{Scheme: "ip", User: "::1"}},
	},
	{
		wire.OpPing, nil, nil,
		func(ctx context.Context, c *Client) (any, error) { return nil, c.Ping(ctx) }, nil,
	},
}

type v1Record struct{ *wire.SetWatchesRequest }

func (r v1Record) Encode(e *jute.Encoder) { r.EncodeV1(e) }
func (r v1Record) Decode(d *jute.Decoder) { r.DecodeV1(d) }

func TestOperations(t *testing.T) {
	for _, tt := range append(writeTests, readTests...) {
		t.Run(tt.op.String(), func(t *testing.T) {
			c, f := connect(t, Options{NoPings: true})
			serve := func(code wire.Code, reply wire.Record, extra int) (any, error) {
				type outcome struct {
					got any
					err error
				}
				done := make(chan outcome)
				go func() {
					got, err := tt.call(testContext(t), c)
					done <- outcome{got, err}
				}()
				frame, err := f.ReadFrame()
				require.NoError(t, err)
				d := jute.NewDecoder(frame, len(frame))
				var h wire.RequestHeader
				h.Decode(&d)
				require.Equal(t, tt.op, h.Op)
				var want jute.Encoder
				if tt.request != nil {
					tt.request.Encode(&want)
				}
				require.Equal(t, append([]byte{}, want.Bytes()...), append([]byte{}, d.Rest()...))
				var e jute.Encoder
				wire.AppendReplyHeader(&e, h.Xid, 77, code)
				if reply != nil {
					reply.Encode(&e)
				}
				e.Raw(make([]byte, extra))
				require.NoError(t, f.WriteFrame(e.Bytes()))
				o := <-done
				return o.got, o.err
			}
			got, err := serve(wire.CodeOK, tt.reply, 0)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			_, err = serve(wire.CodeNoAuth, nil, 0)
			require.Equal(t, wire.CodeNoAuth, err)
			_, err = serve(wire.CodeOK, tt.reply, 1)
			require.ErrorIs(t, err, ErrProtocol, "a byte too many")
			if tt.reply != nil {
				_, err = serve(wire.CodeOK, nil, 0)
				require.ErrorIs(t, err, ErrProtocol, "no body")
			}
		})
	}
}

func TestAddWatchBodyMayCarryAnError(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	done := make(chan error)
	go func() { done <- c.AddWatch(testContext(t), "/a", 0) }()
	f.reply(f.request(wire.OpAddWatch, new(wire.AddWatchRequest)), 1, 0, &wire.ErrorReply{Err: wire.CodeMarshalling})
	require.Equal(t, wire.CodeMarshalling, <-done)
}

func TestMulti(t *testing.T) {
	ops := []wire.MultiOp{
		CreateOp("/a", testData, testACL, 0),
		Create2Op("/b", nil, testACL, 1),
		CreateContainerOp("/c", nil, testACL),
		CreateTTLOp("/d", nil, testACL, wire.FlagTTL, 500),
		DeleteOp("/e", 1),
		SetDataOp("/f", testData, 2),
		CheckOp("/g", 3),
	}
	results := []wire.MultiResult{
		{Op: wire.OpCreate, Path: []byte("/a")},
		{Op: wire.OpCreate2, Path: []byte("/b"), Stat: testStat},
		{Op: wire.OpCreate2, Path: []byte("/c"), Stat: testStat},
		{Op: wire.OpCreate2, Path: []byte("/d"), Stat: testStat},
		{Op: wire.OpDelete},
		{Op: wire.OpSetData, Stat: testStat},
		{Op: wire.OpCheck},
	}
	failed := make([]wire.MultiResult, len(ops))
	for i := range failed {
		failed[i] = wire.MultiResult{Op: wire.OpError, Err: [...]wire.Code{0, 0, 0, wire.CodeNoAuth, -2, -2, -2}[i]}
	}
	tests := []struct {
		name string
		sent []wire.MultiResult
		want error
	}{
		{"success", results, nil},
		{"failure", failed, &MultiError{3, wire.CodeNoAuth}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f := connect(t, Options{NoPings: true})
			go func() {
				frame, _ := f.ReadFrame()
				d := jute.NewDecoder(frame, len(frame))
				var h wire.RequestHeader
				h.Decode(&d)
				got, err := wire.DecodeMulti(&d, nil)
				if err != nil || h.Op != wire.OpMulti || len(got) != len(ops) || string(got[6].Path) != "/g" || got[3].Create.TTL != 500 {
					f.Close()
					return
				}
				f.reply(h.Xid, 5, 0, &multiReply{tt.sent})
			}()
			got, err := c.Multi(testContext(t), ops...)
			require.Equal(t, tt.want, err)
			require.Equal(t, tt.sent, got)
		})
	}
	require.ErrorIs(t, &MultiError{3, wire.CodeNoAuth}, wire.CodeNoAuth)
}

func TestMultiRead(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	sent := []wire.MultiResult{
		{Op: wire.OpGetData, Data: testData, Stat: testStat},
		{Op: wire.OpError, Err: wire.CodeNoNode},
		{Op: wire.OpGetChildren, Children: b("x")},
	}
	serve := func(n int) {
		frame, _ := f.ReadFrame()
		d := jute.NewDecoder(frame, len(frame))
		var h wire.RequestHeader
		h.Decode(&d)
		f.reply(h.Xid, 5, 0, &multiReply{sent[:n]})
	}
	ops := []wire.MultiOp{GetDataOp("/a"), GetDataOp("/none"), GetChildrenOp("/a")}
	var served sync.WaitGroup
	served.Go(func() { serve(3) })
	got, err := c.MultiRead(testContext(t), ops...)
	served.Wait()
	require.NoError(t, err)
	require.Equal(t, sent, got)
	served.Go(func() { serve(2) })
	_, err = c.MultiRead(testContext(t), ops...)
	served.Wait()
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorIs(t, err, errMultiCount)

	call := c.Go(wire.OpMultiRead, MultiRequest(ops...))
	serve(3)
	require.NoError(t, call.Wait(testContext(t)))
	got, err = MultiResults(call.Body)
	require.NoError(t, err)
	require.Equal(t, sent, got)
}
