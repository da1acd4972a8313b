package server_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/jute"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

func TestC27Create2(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	path := s.base(c) + "/abc"
	got, stat, err := c.Create2(compatContext(t), path, []byte("data"), wire.OpenACL, wire.FlagPersistent)
	require.NoError(t, err)
	require.Equal(t, path, got)
	require.Equal(t, s.stat(c, path), stat)
	require.Equal(t, wire.Stat{
		Czxid: stat.Czxid, Mzxid: stat.Czxid, Pzxid: stat.Czxid, Ctime: stat.Ctime, Mtime: stat.Ctime, DataLength: 4,
	}, stat)
}

// multiBody encodes sub-operations that need not be allowed in a multi.
func multiBody(ops ...any) []byte {
	var e jute.Encoder
	for i := 0; i < len(ops); i += 2 {
		op := ops[i].(wire.Op)
		h := wire.MultiHeader{Type: op, Err: -1}
		h.Encode(&e)
		ops[i+1].(wire.Record).Encode(&e)
	}
	end := wire.MultiHeader{Type: wire.OpError, Done: true, Err: -1}
	end.Encode(&e)
	return e.Bytes()
}

func TestC29ForeignOperationInMulti(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	create := &wire.CreateRequest{Path: []byte(base + "/a"), ACL: wire.OpenACL}
	r := s.session()
	for i, op := range []wire.Op{wire.OpGetACL, wire.OpSetACL, wire.OpExists, wire.OpDeleteContainer, wire.OpMulti, wire.OpCloseSession, wire.OpCreateSession, wire.OpNotification, 99} {
		r.sendBytes(int32(i), wire.OpMulti, multiBody(wire.OpCreate, create, op, &wire.PathRequest{Path: []byte(base)}))
		_, body := r.expect(int32(i), wire.CodeMarshalling)
		require.Empty(t, body)
	}
	// Reads decode, but a multi is all writes or all reads.
	r.sendBytes(50, wire.OpMulti, multiBody(wire.OpCreate, create, wire.OpGetData, &wire.PathWatchRequest{Path: []byte(base)}))
	r.expect(50, wire.CodeMarshalling)
	r.sendBytes(51, wire.OpMulti, multiBody(wire.OpGetData, &wire.PathWatchRequest{Path: []byte(base)}))
	r.expect(51, wire.CodeMarshalling)
	r.sendBytes(52, wire.OpMultiRead, multiBody(wire.OpGetData, &wire.PathWatchRequest{Path: []byte(base)}, wire.OpCreate, create))
	r.expect(52, wire.CodeMarshalling)

	_, err := c.Exists(compatContext(t), base+"/a", false)
	require.Equal(t, wire.CodeNoNode, err)
	s.restart()
	s.alive()
}

func TestC32Containers(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	_, stat, err := c.CreateContainer(compatContext(t), base+"/unused", nil, wire.OpenACL)
	require.NoError(t, err)
	require.Zero(t, stat.EphemeralOwner, "the mark of a container is the server's own")
	path, stat, err := c.CreateContainer(compatContext(t), base+"/locks", nil, wire.OpenACL)
	require.NoError(t, err)
	require.Equal(t, base+"/locks", path)
	require.Equal(t, s.stat(c, path), stat)
	_, err = c.Exists(compatContext(t), path, true)
	require.NoError(t, err)
	s.create(c, path+"/child", nil, 0)
	s.delete(c, path+"/child")
	e := nextEvent(t, c)
	require.Equal(t, event{wire.EventNodeDeleted, path}, event{e.Type, e.Path})
	require.Equal(t, e.Zxid, s.stat(c, base).Pzxid, "reaping is an ordinary transaction")

	// One more round that reaps something: what was never used stays.
	s.create(c, path, nil, 0)
	s.delete(c, path)
	_, _, err = c.CreateContainer(compatContext(t), path, nil, wire.OpenACL)
	require.NoError(t, err)
	s.create(c, path+"/child", nil, 0)
	s.delete(c, path+"/child")
	eventually(t, "second reaping", func() bool {
		_, err := c.Exists(compatContext(t), path, false)
		return err == wire.CodeNoNode
	})
	s.stat(c, base+"/unused")
}

func TestC33StartOfCurator(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	_, _, err := c.GetData(compatContext(t), "/zookeeper/config", true)
	require.NoError(t, err)
	for _, p := range []string{"/app", "/app/services", "/app/services/web"} {
		_, _, err := c.CreateContainer(compatContext(t), base+p, []byte{}, wire.OpenACL)
		require.NoError(t, err)
	}
	prefix := base + "/app/services/web/_c_6a0b5a06-lock-"
	for i := range 2 {
		p, stat, err := c.Create2(compatContext(t), prefix, []byte("x"), wire.OpenACL, wire.FlagEphemeralSequential)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%s%010d", prefix, i), p)
		require.Equal(t, c.Session(), stat.EphemeralOwner)
	}
	require.NoError(t, c.AddWatch(compatContext(t), base+"/app", wire.AddWatchPersistentRecursive))
	children, stat, err := c.GetChildren2(compatContext(t), base+"/app/services/web", true)
	require.NoError(t, err)
	require.Len(t, children, 2)
	require.Equal(t, int32(2), stat.NumChildren)
}

func TestC34AddWatchReply(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	for mode := range int32(2) {
		r.send(7, wire.OpAddWatch, &wire.AddWatchRequest{Path: []byte("/x"), Mode: mode})
		_, body := r.expect(7, wire.CodeOK)
		require.Equal(t, []byte{0, 0, 0, 0}, body)
	}
	r.send(8, wire.OpAddWatch, &wire.AddWatchRequest{Path: []byte("/x"), Mode: 2})
	_, body := r.expect(8, wire.CodeMarshalling)
	require.Empty(t, body)
}

func TestC35CheckAndRemoveWatchesReplies(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	r.send(1, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/zookeeper"), Watch: true})
	r.expect(1, wire.CodeOK)
	armed := func(typ int32) *wire.WatchTypeRequest {
		return &wire.WatchTypeRequest{Path: []byte("/zookeeper"), Type: typ}
	}
	for _, tt := range []struct {
		op   wire.Op
		req  *wire.WatchTypeRequest
		want wire.Code
	}{
		{wire.OpCheckWatches, armed(wire.WatchTypeData), wire.CodeOK},
		{wire.OpCheckWatches, armed(wire.WatchTypeAny), wire.CodeOK},
		{wire.OpCheckWatches, armed(wire.WatchTypeChildren), wire.CodeNoWatcher},
		{wire.OpCheckWatches, armed(wire.WatchTypePersistent), wire.CodeNoWatcher},
		{wire.OpCheckWatches, &wire.WatchTypeRequest{Path: []byte("/none"), Type: wire.WatchTypeAny}, wire.CodeNoWatcher},
		{wire.OpCheckWatches, armed(6), wire.CodeMarshalling},
		{wire.OpRemoveWatches, armed(0), wire.CodeMarshalling},
		{wire.OpRemoveWatches, armed(wire.WatchTypeChildren), wire.CodeNoWatcher},
		{wire.OpRemoveWatches, armed(wire.WatchTypeData), wire.CodeOK},
		{wire.OpRemoveWatches, armed(wire.WatchTypeData), wire.CodeNoWatcher},
		{wire.OpCheckWatches, armed(wire.WatchTypeAny), wire.CodeNoWatcher},
	} {
		r.send(9, tt.op, tt.req)
		_, body := r.expect(9, tt.want)
		require.Empty(t, body)
	}
}

func TestC37MultiReply(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	s.create(c, base+"/epoch", nil, 0)
	s.create(c, base+"/x", nil, 0)
	r := s.session()
	r.send(3, wire.OpMulti, client.MultiRequest(
		client.CheckOp(base+"/epoch", 0),
		client.CreateOp(base+"/controller", []byte("1"), wire.OpenACL, wire.FlagEphemeral),
		client.SetDataOp(base+"/epoch", []byte("2"), 0),
		client.DeleteOp(base+"/x", -1),
	))
	z, body := r.expect(3, wire.CodeOK)
	stat := s.stat(c, base+"/epoch")
	require.Equal(t, z, stat.Mzxid)
	want := encode(
		&wire.MultiHeader{Type: wire.OpCheck},
		&wire.MultiHeader{Type: wire.OpCreate}, &wire.PathReply{Path: []byte(base + "/controller")},
		&wire.MultiHeader{Type: wire.OpSetData}, &stat,
		&wire.MultiHeader{Type: wire.OpDelete},
		&wire.MultiHeader{Type: wire.OpError, Done: true, Err: -1},
	)
	require.Equal(t, want, body)

	// The same again fails at its first operation: no result but codes, each of them twice.
	r.send(4, wire.OpMulti, client.MultiRequest(
		client.CheckOp(base+"/epoch", 1), client.CheckOp(base+"/epoch", 0), client.DeleteOp(base+"/epoch", -1),
	))
	_, body = r.expect(4, wire.CodeOK)
	want = nil
	for _, code := range []wire.Code{wire.CodeOK, wire.CodeBadVersion, wire.CodeRuntimeInconsistency} {
		want = append(want, encode(&wire.MultiHeader{Type: wire.OpError, Err: code}, &wire.ErrorReply{Err: code})...)
	}
	require.Equal(t, append(want, encode(&wire.MultiHeader{Type: wire.OpError, Done: true, Err: -1})...), body)

	r.send(5, wire.OpMulti, client.MultiRequest())
	_, body = r.expect(5, wire.CodeOK)
	require.Equal(t, encode(&wire.MultiHeader{Type: wire.OpError, Done: true, Err: -1}), body)
}

func TestC38Create2InMulti(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	results, err := c.Multi(compatContext(t),
		client.Create2Op(base+"/a", []byte("abc"), wire.OpenACL, wire.FlagPersistent),
		client.CreateContainerOp(base+"/c", nil, wire.OpenACL),
		client.CreateTTLOp(base+"/t", nil, wire.OpenACL, wire.FlagTTL, 1<<39),
	)
	require.NoError(t, err)
	for i, name := range []string{"/a", "/c", "/t"} {
		require.Equal(t, wire.MultiResult{Op: wire.OpCreate2, Path: []byte(base + name), Stat: s.stat(c, base+name)}, results[i])
	}
}

func TestC41MultiRead(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	s.create(c, base+"/ok", []byte("v"), 0)
	s.create(c, base+"/ok/child", nil, 0)
	results, err := c.MultiRead(compatContext(t), client.GetDataOp(base+"/ok"), client.GetDataOp(base+"/none"), client.GetChildrenOp(base+"/ok"))
	require.NoError(t, err)
	require.Equal(t, []wire.MultiResult{
		{Op: wire.OpGetData, Data: []byte("v"), Stat: s.stat(c, base+"/ok")},
		{Op: wire.OpError, Err: wire.CodeNoNode},
		{Op: wire.OpGetChildren, Children: [][]byte{[]byte("child")}},
	}, results)
	none, err := c.MultiRead(compatContext(t))
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestC44OldOperationsGiveOldCodes(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	s.create(c, base+"/n", nil, 0)
	s.create(c, base+"/n/child", nil, 0)
	s.create(c, base+"/e", nil, wire.FlagEphemeral)
	_, err := c.Create(compatContext(t), base+"/secret", nil, digestACL("u:fpTZgCQKMdtTlgKvWtxFiUVjYts="), 0)
	require.NoError(t, err)
	create := func(path string, acl []wire.ACL, flags int32) *wire.CreateRequest {
		return &wire.CreateRequest{Path: []byte(path), ACL: acl, Flags: flags}
	}
	path := func(p string) *wire.PathWatchRequest { return &wire.PathWatchRequest{Path: []byte(p)} }
	tests := []struct {
		op   wire.Op
		req  wire.Record
		want wire.Code
	}{
		{wire.OpCreate, create(base+"/n", wire.OpenACL, 0), wire.CodeNodeExists},
		{wire.OpCreate, create(base+"/none/x", wire.OpenACL, 0), wire.CodeNoNode},
		{wire.OpCreate, create(base+"/e/x", wire.OpenACL, 0), wire.CodeNoChildrenForEphemerals},
		{wire.OpCreate, create(base+"/secret/x", wire.OpenACL, 0), wire.CodeNoAuth},
		{wire.OpCreate, create(base+"/x", nil, 0), wire.CodeInvalidACL},
		{wire.OpCreate, create(base+"/x", []wire.ACL{}, 0), wire.CodeInvalidACL},
		{wire.OpCreate, create(base+"/x", []wire.ACL{{Perms: 31, Scheme: "nobody", ID: "x"}}, 0), wire.CodeInvalidACL},
		{wire.OpCreate, create(base+"/x", wire.CreatorAllACL, 0), wire.CodeInvalidACL},
		{wire.OpCreate, create(base+"/./x", wire.OpenACL, 0), wire.CodeNoNode},
		{wire.OpCreate, create(base+"/..", wire.OpenACL, 0), wire.CodeBadArguments},
		{wire.OpCreate, create("x", wire.OpenACL, 0), wire.CodeBadArguments},
		{wire.OpCreate, create("", wire.OpenACL, 0), wire.CodeBadArguments},
		{wire.OpCreate, create(base+"/x", wire.OpenACL, 7), wire.CodeBadArguments},
		{wire.OpCreate, create(base+"/x", wire.OpenACL, -1), wire.CodeBadArguments},
		{wire.OpDelete, &wire.PathVersionRequest{Path: []byte(base + "/none")}, wire.CodeNoNode},
		{wire.OpDelete, &wire.PathVersionRequest{Path: []byte(base + "/n"), Version: 5}, wire.CodeBadVersion},
		{wire.OpDelete, &wire.PathVersionRequest{Path: []byte(base + "/n")}, wire.CodeNotEmpty},
		{wire.OpDelete, &wire.PathVersionRequest{Path: []byte(base + "/secret/x")}, wire.CodeNoAuth},
		{wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/zookeeper")}, wire.CodeBadArguments},
		{wire.OpSetData, &wire.SetDataRequest{Path: []byte(base + "/none")}, wire.CodeNoNode},
		{wire.OpSetData, &wire.SetDataRequest{Path: []byte(base + "/n"), Version: -2}, wire.CodeBadVersion},
		{wire.OpSetData, &wire.SetDataRequest{Path: []byte(base + "/n/"), Version: -1}, wire.CodeBadArguments},
		{wire.OpSetData, &wire.SetDataRequest{Path: []byte(base + "/secret"), Version: -1}, wire.CodeNoAuth},
		{wire.OpSetACL, &wire.SetACLRequest{Path: []byte(base + "/none"), ACL: wire.OpenACL}, wire.CodeNoNode},
		{wire.OpSetACL, &wire.SetACLRequest{Path: []byte(base + "/n"), ACL: wire.OpenACL, Version: 3}, wire.CodeBadVersion},
		{wire.OpSetACL, &wire.SetACLRequest{Path: []byte(base + "/n"), ACL: nil, Version: -1}, wire.CodeInvalidACL},
		{wire.OpSetACL, &wire.SetACLRequest{Path: []byte(base + "/secret"), ACL: wire.OpenACL, Version: -1}, wire.CodeNoAuth},
		{wire.OpExists, path(base + "/none"), wire.CodeNoNode},
		{wire.OpExists, path(base + "/secret"), wire.CodeNoAuth},
		{wire.OpExists, &wire.PathWatchRequest{}, wire.CodeMarshalling},
		{wire.OpGetData, path(base + "/none"), wire.CodeNoNode},
		{wire.OpGetData, path(base + "/secret"), wire.CodeNoAuth},
		{wire.OpGetData, &wire.PathWatchRequest{}, wire.CodeMarshalling},
		{wire.OpGetACL, &wire.PathRequest{Path: []byte(base + "/none")}, wire.CodeNoNode},
		{wire.OpGetACL, &wire.PathRequest{Path: []byte(base + "/secret")}, wire.CodeNoAuth},
		{wire.OpGetChildren, path(base + "/none"), wire.CodeNoNode},
		{wire.OpGetChildren, path(base + "/secret"), wire.CodeNoAuth},
		{wire.OpGetChildren2, path(base + "/none"), wire.CodeNoNode},
		{wire.OpGetChildren2, path(base + "/secret"), wire.CodeNoAuth},
		{wire.OpSetWatches, &wire.PathRequest{}, wire.CodeMarshalling},
		{wire.OpMulti, &wire.PathRequest{}, wire.CodeMarshalling},
	}
	old := []wire.Code{-1, -2, -3, -4, -5, -6, -7, -8, -100, -101, -102, -103, -108, -110, -111, -112, -113, -114, -115, -118, -119}
	r := s.session()
	for i, tt := range tests {
		r.send(int32(i), tt.op, tt.req)
		h, body := r.reply()
		require.Equal(t, []any{int32(i), tt.want}, []any{h.Xid, h.Err}, "%v %q", tt.op, encode(tt.req))
		require.Empty(t, body)
		require.Contains(t, old, h.Err)
	}
}

func TestC45OperationsOfOthers(t *testing.T) {
	s := startCompat(t)
	for _, op := range []wire.Op{500, 507, 10, 23, 99, 108, wire.OpCheck, wire.OpError, wire.OpNotification} {
		r := s.session()
		r.send(6, op, &wire.PathVersionRequest{Path: []byte("/"), Version: -1})
		z, body := r.expect(6, wire.CodeUnimplemented)
		require.EqualValues(t, -1, z, op)
		require.Empty(t, body)
		r.closed()
	}
	c := s.closing()
	for _, p := range []string{"/keeper/api_version", "/keeper/feature_flags"} {
		_, _, err := c.GetData(compatContext(t), p, false)
		require.Equal(t, wire.CodeNoNode, err)
	}
}

func TestC47ConfigNodeOfAStandaloneServer(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	data, stat, err := c.GetData(compatContext(t), "/zookeeper/config", true)
	require.NoError(t, err)
	require.Empty(t, data)
	require.Equal(t, wire.Stat{AVersion: -1}, stat)
	acl, _, err := c.GetACL(compatContext(t), "/zookeeper/config")
	require.NoError(t, err)
	require.Equal(t, wire.ReadACL, acl)
	_, err = c.SetData(compatContext(t), "/zookeeper/config", nil, -1)
	require.Equal(t, wire.CodeNoAuth, err)
	require.Equal(t, wire.CodeBadArguments, c.Delete(compatContext(t), "/zookeeper/config", -1))
	_, _, err = c.Reconfig(compatContext(t), &wire.ReconfigRequest{Joining: []byte("server.2=h:1:2;3"), ConfigID: -1})
	require.Equal(t, wire.CodeReconfigDisabled, err)
	require.Empty(t, events(t, c))
}

func TestC49RepliesLargerThanTheRequestLimit(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	const children, nameBytes = 30_000, 40
	names := make([]string, children)
	var calls []*client.Call
	for i := 0; i < children; i += 500 {
		var ops []wire.MultiOp
		for k := i; k < i+500; k++ {
			names[k] = fmt.Sprintf("%0*d", nameBytes, k)
			ops = append(ops, client.CreateOp(base+"/"+names[k], nil, wire.OpenACL, 0))
		}
		calls = append(calls, c.Go(wire.OpMulti, client.MultiRequest(ops...)))
	}
	for _, call := range calls {
		require.NoError(t, call.Wait(compatContext(t)))
	}
	read := c.Go(wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte(base)})
	require.NoError(t, read.Wait(compatContext(t)))
	require.Greater(t, len(read.Body), wire.FrameBytesMaxDefault)
	require.Len(t, read.Body, 4+children*(4+nameBytes))
	var reply wire.ChildrenReply
	require.NoError(t, read.Decode(&reply))
	got := make([]string, 0, children)
	for _, name := range reply.Children {
		got = append(got, string(name))
	}
	slices.Sort(got)
	require.Equal(t, names, got)
	// A server that others use as well is left as it was.
	for i := 0; i < children; i += 500 {
		var ops []wire.MultiOp
		for k := i; k < i+500; k++ {
			ops = append(ops, client.DeleteOp(base+"/"+names[k], -1))
		}
		_, err := c.Multi(compatContext(t), ops...)
		require.NoError(t, err)
	}
}

// setDataOfFrame makes a setData request whose frame has exactly so many bytes.
func setDataOfFrame(path string, frameBytes int) *wire.SetDataRequest {
	req := &wire.SetDataRequest{Path: []byte(path), Data: []byte{}, Version: -1}
	req.Data = bytes.Repeat([]byte{'x'}, frameBytes-wire.RequestHeaderBytes-len(encode(req)))
	return req
}

func TestC50RequestsAtTheLimit(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	r := s.session()
	r.send(1, wire.OpSetData, setDataOfFrame(base, wire.FrameBytesMaxDefault))
	r.expect(1, wire.CodeOK)
	r.WriteRequest(2, wire.OpSetData, setDataOfFrame(base, wire.FrameBytesMaxDefault+1)) // may fail, as it is not read
	r.closed()
	require.Equal(t, int32(1), s.stat(c, base).Version)
}

func TestC50TheLogTellsWhoAskedTooMuch(t *testing.T) {
	logged, logs := observer.New(zap.InfoLevel)
	s := startCompat(t, servertest.WithLog(zap.New(logged)))
	c := s.client()
	require.ErrorIs(t, c.Go(wire.OpSetData, setDataOfFrame("/n", wire.FrameBytesMaxDefault+1)).Wait(compatContext(t)), wire.CodeConnectionLoss)
	eventually(t, "a line in the log", func() bool {
		for _, entry := range logs.All() {
			line := entry.Message + fmt.Sprint(entry.ContextMap())
			if strings.Contains(line, c.Session().String()) && strings.Contains(line, "1048576") && strings.Contains(line, "1048575") {
				return true
			}
		}
		return false
	})
}

type aclRecord []wire.ACL

func (a aclRecord) Encode(e *jute.Encoder) { wire.AppendACLs(e, a) }
func (a aclRecord) Decode(*jute.Decoder)   { panic("aclRecord is only sent") }

func TestC52Unicode(t *testing.T) {
	s := startCompat(t)
	c := s.closing()
	base := s.base(c)
	for name, want := range map[string]wire.Code{
		"plain":                   wire.CodeOK,
		"grüße":                   wire.CodeOK,
		"日本語":                     wire.CodeOK,
		"\u00a0 \u2028":           wire.CodeOK,
		"\uf900":                  wire.CodeOK,
		"\uffef":                  wire.CodeOK,
		".a":                      wire.CodeOK,
		"...":                     wire.CodeOK,
		"a..b":                    wire.CodeOK,
		".":                       wire.CodeBadArguments,
		"..":                      wire.CodeBadArguments,
		"\x01":                    wire.CodeBadArguments,
		"\x1f":                    wire.CodeBadArguments,
		"a\x00b":                  wire.CodeBadArguments,
		"\u007f":                  wire.CodeBadArguments,
		"\u009f":                  wire.CodeBadArguments,
		"\ue000":                  wire.CodeBadArguments,
		"\uf8ff":                  wire.CodeBadArguments,
		"\ufff0":                  wire.CodeBadArguments,
		"\ufffd":                  wire.CodeBadArguments,
		"\U0001f600":              wire.CodeBadArguments,
		"\xff":                    wire.CodeBadArguments, // not UTF-8
		"\xc0\x80":                wire.CodeBadArguments, // over-long NUL
		"\xe6\x97":                wire.CodeBadArguments, // cut
		"\xed\xa0\xbd":            wire.CodeBadArguments, // half of a surrogate pair
		"\xf0\x9f\x98":            wire.CodeBadArguments,
		"\xf8\x88\x80\x80\x80":    wire.CodeBadArguments,
		strings.Repeat("n", 5000): wire.CodeOK,
	} {
		req := encode(bytesRecord(rawString(base+"/"+name)), bytesRecord(rawString("data")))
		req = append(req, encode(aclRecord(wire.OpenACL), bytesRecord{0, 0, 0, 0})...)
		call := c.Go(wire.OpCreate, bytesRecord(req))
		err := call.Wait(compatContext(t))
		if want != wire.CodeOK {
			require.Equal(t, want, err, "%q", name)
			continue
		}
		require.NoError(t, err, "%q", name)
		require.Equal(t, rawString(base+"/"+name), call.Body)
		s.stat(c, base+"/"+name)
	}
	echoes := map[string]string{
		"/grüße":      "/grüße",
		"/\U0001f600": "/\xed\xa0\xbd\xed\xb8\x80", // as two surrogates, the way Java's units are written
		"/\xff":       "/\ufffd",
		"\x00":        "\x00",
		"":            "",
	}
	for path, want := range echoes {
		call := c.Go(wire.OpSync, bytesRecord(rawString(path)))
		require.NoError(t, call.Wait(compatContext(t)))
		require.Equal(t, want, string(call.Body[4:]), "%q", path)
	}
	s.alive()
}

func TestC55AuthReplies(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	r.send(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("u:p")})
	z, body := r.expect(wire.XidAuth, wire.CodeOK)
	require.Zero(t, z)
	require.Empty(t, body)
	r.send(1, wire.OpWhoAmI, nil)
	_, body = r.expect(1, wire.CodeOK)
	var who wire.WhoAmIReply
	decode(t, body, &who)
	require.ElementsMatch(t, []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "digest", User: "u"}}, who.Clients)

	for name, req := range map[string]*wire.AuthRequest{
		"unknown scheme": {Scheme: []byte("kerberos"), Auth: []byte("x")},
		"empty scheme":   {Scheme: []byte{}, Auth: []byte("x")},
		"null scheme":    {Auth: []byte("x")},
		"null token":     {Scheme: []byte("digest")},
	} {
		r := s.session()
		r.send(wire.XidAuth, wire.OpAuth, req)
		h, body := r.reply()
		require.Equal(t, wire.ReplyHeader{Xid: wire.XidAuth, Err: wire.CodeAuthFailed}, h, name)
		require.Empty(t, body)
		r.closed()
	}
}
