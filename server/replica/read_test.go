package replica

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/wire"
)

func TestGetEphemeralsTakesABlankPrefixForAll(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.mustCreate("/e", wire.FlagEphemeral)
	for prefix, want := range map[string]int{
		"/": 1, "": 1, " ": 1, " / ": 1, "\t\n": 1, "\x00/\x1f": 1, "/e": 1, // what Java's trim takes away
		"/ e": 0, " /e": 0, "\u00a0": 0, "\u2003": 0, "\u0085": 0, "\x7f": 0,
	} {
		rp := cl.call(wire.OpGetEphemerals, &wire.PathRequest{Path: []byte(prefix)})
		require.Equal(t, wire.CodeOK, rp.Err)
		var list wire.ChildrenReply
		rp.decode(t, &list)
		require.Len(t, list.Children, want, "%q", prefix)
	}
}

func TestSetWatchesIsDoneUpToANullList(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	cl.mustCreate("/here", 0)
	none, gone := [][]byte{}, [][]byte{[]byte("/gone")}
	for _, req := range []*wire.SetWatchesRequest{
		{Data: nil, Exist: gone, Child: gone, Persistent: none, Recursive: none},
		{Data: gone, Exist: none, Child: nil, Persistent: none, Recursive: none},
		{Data: gone, Exist: [][]byte{[]byte("/here")}, Child: gone, Persistent: gone, Recursive: nil},
	} {
		cl.sendXid(wire.XidSetWatches, wire.OpSetWatches2, req)
		w.settle()
		frames := cl.replies()
		last := frames[len(frames)-1]
		require.Equal(t, wire.CodeMarshalling, last.Err)
		require.Equal(t, int32(wire.XidSetWatches), last.Xid)
		var events []wire.WatcherEvent
		for i := range frames[:len(frames)-1] {
			var e wire.WatcherEvent
			frames[i].decode(t, &e)
			events = append(events, e)
		}
		want := []wire.WatcherEvent{
			{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: []byte("/gone")},
			{Type: wire.EventNodeCreated, State: wire.StateSyncConnected, Path: []byte("/here")},
			{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: []byte("/gone")},
		}
		switch {
		case req.Data == nil:
			want = nil
		case req.Child == nil:
			want = want[:1]
		}
		require.Equal(t, want, events)
	}
	require.Equal(t, 2, w.r.Tree().Watches().Total(), "the persistent watch in front of the last null list is set")
}

func TestSetWatchesIsDoneUpToANullPath(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	for place := range 5 {
		lists := [5][][]byte{{}, {}, {}, {}, {}}
		lists[place] = [][]byte{nil, []byte("/gone")}
		rp := cl.call(wire.OpSetWatches2, &wire.SetWatchesRequest{Data: lists[0], Exist: lists[1], Child: lists[2], Persistent: lists[3], Recursive: lists[4]})
		if place < 3 {
			require.Equal(t, wire.CodeMarshalling, rp.Err)
			require.Zero(t, w.r.Tree().Watches().Total())
			continue
		}
		require.Equal(t, wire.CodeOK, rp.Err, "a persistent watch may be on anything")
	}
}

// A multi that cannot be read uses a zxid, unless it is for a null ACL.
func TestZxidsOfMultisThatCannotBeRead(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	last := cl.call(wire.OpWhoAmI, nil).Zxid
	noACL := &wire.CreateRequest{Path: []byte("/a")}
	ttl := create("/a")
	ttl.Flags = wire.FlagTTL
	odd := create("/a")
	odd.Flags = wire.FlagTTLSequential + 1
	for _, tt := range []struct {
		name string
		body rawRecord
		uses bool
	}{
		{"null ACL", multiBody(wire.OpCreate, noACL), false},
		{"flags of a TTL node", multiBody(wire.OpCreate2, ttl), true},
		{"reads and writes", multiBody(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/a")}, wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/")}), true},
		{"reads only", multiBody(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/")}), true},
		{"unknown flags", multiBody(wire.OpCreate, odd), true},
		{"null path", multiBody(wire.OpDelete, &wire.PathVersionRequest{}), true},
		{"not allowed", multiBody(wire.OpSetACL, &wire.SetACLRequest{Path: []byte("/a"), ACL: wire.OpenACL}), true},
		{"no end", multiBody(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/a")})[:12], true},
	} {
		rp := cl.call(wire.OpMulti, tt.body)
		require.Equal(t, wire.CodeMarshalling, rp.Err, tt.name)
		require.Empty(t, rp.body, tt.name)
		if tt.uses {
			last++
		}
		require.Equal(t, last, rp.Zxid, tt.name)
	}
}

// rawRecord is a request's record as bytes.
type rawRecord []byte

func (r rawRecord) Encode(e *jute.Encoder) { e.Raw(r) }
func (r rawRecord) Decode(*jute.Decoder)   { panic("rawRecord is only sent") }

// multiBody makes the body of a multi of pairs of opcode and record, whether a multi may hold them or not.
func multiBody(pairs ...any) rawRecord {
	var e jute.Encoder
	for i := 0; i < len(pairs); i += 2 {
		head := wire.MultiHeader{Type: pairs[i].(wire.Op), Err: -1}
		head.Encode(&e)
		pairs[i+1].(wire.Record).Encode(&e)
	}
	end := wire.MultiHeader{Type: wire.OpError, Done: true, Err: -1}
	end.Encode(&e)
	return e.Bytes()
}

// A null id is found only when the operation's turn comes, and yet the multi is refused as a whole.
func TestMultiWithANullIDIsRefusedAsAWhole(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	bad := create("/b")
	bad.ACL = []wire.ACL{{Perms: wire.PermAll, Scheme: "digest", NullID: true}}
	rp := cl.call(wire.OpMulti, multiBody(wire.OpCreate, create("/a"), wire.OpCreate, bad))
	require.Equal(t, wire.CodeMarshalling, rp.Err)
	require.Empty(t, rp.body)
	require.Equal(t, wire.CodeNoNode, cl.exists("/a"))
	require.Equal(t, rp.Zxid+1, cl.call(wire.OpCreate, create("/a")).Zxid)
}
