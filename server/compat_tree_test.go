package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
)

func TestC74ParentsCountersAndZxids(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	before := s.stat(c, p)
	step := func(cversion int32, z func() int64) {
		t.Helper()
		at := z()
		after := s.stat(c, p)
		want := before
		want.CVersion += cversion
		want.NumChildren = after.NumChildren
		if cversion != 0 {
			want.Pzxid = after.Pzxid
			require.EqualValues(t, at, after.Pzxid)
		}
		require.Equal(t, want, after)
		before = after
	}
	zxidOf := func(op wire.Op, req wire.Record) func() int64 {
		return func() int64 {
			call := c.Go(op, req)
			require.NoError(t, call.Wait(compatContext(t)))
			return int64(call.Zxid)
		}
	}
	child := []byte(p + "/c")
	step(1, zxidOf(wire.OpCreate, &wire.CreateRequest{Path: child, ACL: wire.OpenACL}))
	step(0, zxidOf(wire.OpSetData, &wire.SetDataRequest{Path: child, Data: []byte("x"), Version: -1}))
	step(0, zxidOf(wire.OpSetACL, &wire.SetACLRequest{Path: child, ACL: wire.OpenACL, Version: -1}))
	step(1, zxidOf(wire.OpDelete, &wire.PathVersionRequest{Path: child, Version: -1}))
	require.Equal(t, int32(2), before.CVersion)
	require.Zero(t, before.NumChildren)
}

func TestC75SequenceNumbersCountCreations(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	s.create(c, p+"/a", nil, 0)
	s.create(c, p+"/b", nil, 0)
	require.Equal(t, p+"/c-0000000002", s.create(c, p+"/c-", nil, wire.FlagSequential))
	s.create(c, p+"/d", nil, 0)
	require.Equal(t, p+"/e-0000000004", s.create(c, p+"/e-", nil, wire.FlagEphemeralSequential))
	for _, n := range []string{"/a", "/b", "/c-0000000002", "/d", "/e-0000000004"} {
		s.delete(c, p+n)
	}
	_, err := c.Create(compatContext(t), p+"/x", nil, nil, 0)
	require.Equal(t, wire.CodeInvalidACL, err, "a create that fails does not count")
	require.Equal(t, p+"/0000000005", s.create(c, p+"/", nil, wire.FlagSequential))
	s.restart()
	again := s.closing()
	require.Equal(t, p+"/0000000006", s.create(again, p+"/", nil, wire.FlagSequential))
}

func TestC78OddSequentialPrefixes(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	require.Equal(t, p+"/0000000000", s.create(c, p+"/", nil, wire.FlagSequential))
	require.Equal(t, p+"/..0000000001", s.create(c, p+"/..", nil, wire.FlagSequential))
	require.Equal(t, p+"/0000000002", s.create(c, p+"/", nil, wire.FlagEphemeralSequential))
	_, err := c.Create(compatContext(t), "x", nil, wire.OpenACL, wire.FlagSequential)
	require.Equal(t, wire.CodeBadArguments, err)
	got := s.create(c, "/", nil, wire.FlagSequential)
	require.Regexp(t, `^/\d{10}$`, got)
	s.delete(c, got)
	got = s.create(c, p+"x", nil, wire.FlagSequential)
	require.Regexp(t, `^`+p+`x\d{10}$`, got)
}

func TestC80RetryAfterALostCommit(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	s.create(c, base+"/lock", nil, 0)
	_, err := c.Exists(compatContext(t), base+"/s", true)
	require.Equal(t, wire.CodeNoNode, err)
	multi := func(data string) []wire.MultiOp {
		return []wire.MultiOp{client.CheckOp(base+"/lock", 0), client.CreateOp(base+"/s", []byte(data), wire.OpenACL, 0)}
	}
	a := s.raw()
	session := a.handshake(&wire.ConnectRequest{TimeoutMs: 10_000})
	a.send(1, wire.OpMulti, client.MultiRequest(multi("first")...))
	require.Equal(t, created, nextEvent(t, c).Type)
	a.Reset() // the reply is never read

	again := s.closing(client.Options{Session: session.SessionID, Password: session.Password})
	results, err := again.Multi(compatContext(t), multi("second")...)
	require.Equal(t, &client.MultiError{Index: 1, Code: wire.CodeNodeExists}, err)
	require.Equal(t, []wire.MultiResult{{Op: wire.OpError}, {Op: wire.OpError, Err: wire.CodeNodeExists}}, results)
	data, _, err := again.GetData(compatContext(t), base+"/s", false)
	require.NoError(t, err)
	require.Equal(t, "first", string(data))
}

func TestC81Root(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	for _, path := range []string{"/", ""} {
		_, err := c.Exists(compatContext(t), path, false)
		require.NoError(t, err)
		data, stat, err := c.GetData(compatContext(t), path, false)
		require.NoError(t, err)
		require.Len(t, data, int(stat.DataLength))
		names, err := c.GetChildren(compatContext(t), path, false)
		require.NoError(t, err)
		require.Contains(t, names, "zookeeper")
	}
	_, err := c.Create(compatContext(t), "/", nil, wire.OpenACL, 0)
	require.Equal(t, wire.CodeNodeExists, err)
	_, err = c.Create(compatContext(t), "", nil, wire.OpenACL, 0)
	require.Equal(t, wire.CodeBadArguments, err)
	require.Equal(t, wire.CodeBadArguments, c.Delete(compatContext(t), "/", -1))
	stat := s.setData(c, "/", "")
	require.Equal(t, stat, s.stat(c, "/"))
}

func TestC83SetDataKeepsAnEphemeralEphemeral(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	a := s.client()
	s.create(a, base+"/e", []byte("1"), wire.FlagEphemeral)
	require.Equal(t, a.Session(), s.setData(b, base+"/e", "22").EphemeralOwner)
	_, err := a.Create(compatContext(t), base+"/e/c", nil, wire.OpenACL, 0)
	require.Equal(t, wire.CodeNoChildrenForEphemerals, err)
	require.Equal(t, a.Session(), s.stat(b, base+"/e").EphemeralOwner)
	require.NoError(t, a.Close(compatContext(t)))
	_, err = b.Exists(compatContext(t), base+"/e", false)
	require.Equal(t, wire.CodeNoNode, err)
}

func TestC84ParentOfAnExpiredEphemeral(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	p := s.base(b) + "/p"
	s.create(b, p, nil, 0)
	a := s.client(client.Options{Timeout: compatTimeoutMin, NoPings: true})
	s.create(a, p+"/e", nil, wire.FlagEphemeral)
	require.Equal(t, wire.CodeNotEmpty, b.Delete(compatContext(t), p, -1))
	_, err := b.Exists(compatContext(t), p+"/e", true)
	require.NoError(t, err)
	require.Equal(t, deleted, nextEvent(t, b).Type)
	s.delete(b, p)
	<-a.Done() // the server cuts the connection of a session that has expired
}

func TestC85TimesAreMilliseconds(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	p := s.base(c)
	stat := s.stat(c, p)
	require.WithinDuration(t, time.Now(), time.UnixMilli(stat.Ctime), 5*time.Second)
	require.Equal(t, stat.Ctime, stat.Mtime)
	after := s.setData(c, p, "x")
	require.Equal(t, stat.Ctime, after.Ctime)
	require.GreaterOrEqual(t, after.Mtime, stat.Mtime)
	require.WithinDuration(t, time.Now(), time.UnixMilli(after.Mtime), 5*time.Second)
}

func TestC88ExistsNeedsRead(t *testing.T) {
	s := startCompat(t)
	owner, other := s.closing(), s.closing()
	base := s.base(owner)
	require.NoError(t, owner.AddAuth(compatContext(t), "digest", []byte("u:p")))
	_, err := owner.Create(compatContext(t), base+"/secret", nil, wire.CreatorAllACL, 0)
	require.NoError(t, err)
	_, err = owner.Exists(compatContext(t), base+"/secret", false)
	require.NoError(t, err)

	_, err = other.Exists(compatContext(t), base+"/secret", true)
	require.Equal(t, wire.CodeNoAuth, err)
	require.Equal(t, wire.CodeNoWatcher, other.CheckWatches(compatContext(t), base+"/secret", wire.WatchTypeAny), "and no watch is set")
	_, err = other.Exists(compatContext(t), base+"/none", false)
	require.Equal(t, wire.CodeNoNode, err, "the parent's ACL does not count")
}
