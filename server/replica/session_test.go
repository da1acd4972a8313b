package replica

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/znode"
)

func TestReattachKeepsTheSessionAndThrowsTheOldConnectionOff(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect()
	a.mustCreate("/e", wire.FlagEphemeral)
	again := w.open()
	resp := again.handshake(wire.ConnectRequest{TimeoutMs: 8000, SessionID: a.id, Password: a.pw, HasReadOnly: true})
	require.Equal(t, a.id, resp.SessionID)
	require.Equal(t, a.pw, resp.Password)
	require.Equal(t, int32(8000), resp.TimeoutMs)
	_, fin := a.c.Output(nil)
	require.True(t, fin, "the connection left behind must end")
	require.Equal(t, wire.CodeOK, again.exists("/e"))
	a.c.Closed() // the socket goes later; that must not unbind the new connection
	w.settle()
	require.Same(t, again.c, w.r.bySession[a.id])
}

func TestWritesOfTheConnectionLeftBehindAreDropped(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect()
	a.send(wire.OpCreate, create("/before"))
	w.step()
	a.send(wire.OpCreate, create("/after")) // read from the socket, but not looked at when the session moves
	again := w.open()
	req := wire.ConnectRequest{TimeoutMs: 5000, SessionID: a.id, Password: a.pw, HasReadOnly: true}
	_, err := again.c.Receive(encode(&req), w.now)
	require.NoError(t, err)
	w.r.inbox.conns[0], w.r.inbox.conns[1] = again.c, a.c
	w.settle()
	require.Equal(t, a.id, again.readConnect().SessionID)
	require.Equal(t, wire.CodeOK, again.exists("/before"))
	require.Equal(t, wire.CodeNoNode, again.exists("/after"))
	require.Zero(t, w.r.outstanding.Load())
}

func TestWrongPasswordIsAnsweredExpiredAndHurtsNobody(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect()
	for _, pw := range [][]byte{make([]byte, 16), nil, a.pw[:15], append(append([]byte{}, a.pw...), 0)} {
		stranger := w.open()
		resp := stranger.handshake(wire.ConnectRequest{TimeoutMs: 8000, SessionID: a.id, Password: pw, HasReadOnly: true})
		require.Equal(t, wire.ConnectResponse{Password: make([]byte, 16), HasReadOnly: true}, resp)
		_, fin := stranger.c.Output(nil)
		require.True(t, fin)
	}
	require.Equal(t, wire.CodeOK, a.exists("/"))
}

func TestOldHandshakeFormIsAnsweredWithoutTheLastByte(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.open()
	req := wire.ConnectRequest{TimeoutMs: 5000, Password: make([]byte, 16)}
	body := encode(&req)
	require.Len(t, body, 44)
	_, err := cl.c.Receive(body, w.now)
	require.NoError(t, err)
	w.settle()
	out, _ := cl.c.Output(nil)
	require.Len(t, out, 4+36)
}

func TestExpiryEndsTheSessionWithItsEphemeralsAndItsConnection(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect(), w.connect()
	a.mustCreate("/e", wire.FlagEphemeral)
	b.call(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/e"), Watch: true})
	for range 12 { // 6 s in steps shorter than the pause guard's
		w.pass(500)
		b.sendXid(wire.XidPing, wire.OpPing, nil)
		w.settle()
	}
	require.Contains(t, xids(b.replies()), int32(wire.XidNotification))
	require.Equal(t, wire.CodeNoNode, b.exists("/e"))
	require.Equal(t, uint64(1), w.r.Stats().ExpiredSessions)
	_, fin := a.c.Output(nil)
	require.True(t, fin)
	late := w.open()
	resp := late.handshake(wire.ConnectRequest{TimeoutMs: 5000, SessionID: a.id, Password: a.pw, HasReadOnly: true})
	require.Zero(t, resp.SessionID)
	require.Zero(t, resp.TimeoutMs)
}

func TestExpiredIsToldOnlyWhenNothingOfTheSessionIsLeft(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect()
	a.mustCreate("/e", wire.FlagEphemeral)
	for range 11 {
		w.pass(500)
		w.step()
	}
	require.Equal(t, uint64(1), w.r.Stats().ExpiredSessions)
	late := w.open()
	req := wire.ConnectRequest{TimeoutMs: 5000, SessionID: a.id, Password: a.pw, HasReadOnly: true}
	_, err := late.c.Receive(encode(&req), w.now)
	require.NoError(t, err)
	w.step()
	require.False(t, late.c.HasOutput(), "told before the closing transaction was durable")
	w.settle()
	require.Zero(t, late.readConnect().SessionID)
	_, exists := w.r.Tree().Find([]byte("/e"))
	require.False(t, exists)
}

func TestAServerThatWasPausedExpiresNobody(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect()
	w.settle()
	w.pass(60_000)
	w.settle()
	require.Equal(t, wire.CodeOK, a.exists("/"))
	require.Zero(t, w.r.Stats().ExpiredSessions)
}

func TestIdentitiesOfAConnection(t *testing.T) {
	w := newWorld(t, nil)
	cl := w.connect()
	auth := func(scheme, token string) reply {
		cl.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte(scheme), Auth: []byte(token)})
		w.settle()
		list := cl.replies()
		require.Len(t, list, 1)
		return list[0]
	}
	require.Equal(t, reply{ReplyHeader: wire.ReplyHeader{Xid: wire.XidAuth}, body: []byte{}}, auth("digest", "bob:secret"))
	var who wire.WhoAmIReply
	rp := cl.call(wire.OpWhoAmI, nil)
	rp.decode(t, &who)
	require.Equal(t, []wire.ClientInfo{{Scheme: "ip", User: "127.0.0.1"}, {Scheme: "digest", User: "bob"}}, who.Clients)
	creator := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
	require.Equal(t, wire.CodeOK, cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/mine"), ACL: creator}).Err)
	other := w.connect()
	require.Equal(t, wire.CodeNoAuth, other.call(wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/mine")}).Err)
	require.Equal(t, wire.CodeAuthFailed, auth("nonsense", "x").Err)
	_, fin := cl.c.Output(nil)
	require.True(t, fin)
}

func TestUnreadableEventsAreHeldBack(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect(), w.connect()
	a.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("a:a")})
	b.call(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/s"), Watch: true})
	creator := []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}
	a.send(wire.OpCreate, &wire.CreateRequest{Path: []byte("/s"), ACL: creator})
	w.settle()
	require.Empty(t, b.replies())
	require.Zero(t, w.r.Tree().Watches().Total(), "the one-shot watch is used up all the same")
}

func TestContainersAndTTLNodesAreReaped(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ContainerCheckMs = 1000 })
	cl := w.connect()
	cl.call(wire.OpCreateContainer, &wire.CreateRequest{Path: []byte("/c"), ACL: wire.OpenACL, Flags: wire.FlagContainer})
	cl.call(wire.OpCreateContainer, &wire.CreateRequest{Path: []byte("/never"), ACL: wire.OpenACL, Flags: wire.FlagContainer})
	cl.call(wire.OpCreateTTL, &wire.CreateTTLRequest{Path: []byte("/t"), ACL: wire.OpenACL, Flags: wire.FlagTTL, TTL: 1500})
	cl.mustCreate("/c/x", 0)
	tick := func(n int) {
		for range n {
			w.pass(500)
			cl.sendXid(wire.XidPing, wire.OpPing, nil)
			w.settle()
		}
		cl.replies()
	}
	tick(3)
	require.Equal(t, wire.CodeOK, cl.exists("/t"))
	tick(4)
	require.Equal(t, wire.CodeNoNode, cl.exists("/t"))
	require.Equal(t, wire.CodeOK, cl.exists("/c"))
	cl.call(wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/c/x"), Version: -1})
	tick(4)
	require.Equal(t, wire.CodeNoNode, cl.exists("/c"))
	require.Equal(t, wire.CodeOK, cl.exists("/never"))
}

func TestOrphansAreClosedByAnOrdinaryTransaction(t *testing.T) {
	cfg := testConfig(t)
	tree := znode.NewTree(cfg.Tree)
	var res znode.Result
	txn := znode.Txn{Type: wire.OpCreate, Path: []byte("/left"), ACL: wire.OpenACL, Ephemeral: true, ParentCVersion: 1}
	tree.Apply(&znode.TxnHeader{ClientID: 77, Zxid: 5, Type: wire.OpCreate}, &txn, &res)
	w := &world{t: t, now: Now{MonoMs: 1, WallMs: 1}, flushed: map[*Conn]int{}}
	w.r = New(cfg, &Recovered{Tree: tree, LastZxid: 5}, w.now)
	w.settle()
	_, exists := tree.Find([]byte("/left"))
	require.False(t, exists)
	require.Len(t, w.log, 1)
	require.Equal(t, tree.LastZxid(), w.log[0].Zxid)
}

func TestReattachNegotiatesTheTimeoutAnew(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect() // 5 s
	again := w.open()
	again.handshake(wire.ConnectRequest{TimeoutMs: 1000, SessionID: a.id, Password: a.pw, HasReadOnly: true})
	for range 4 {
		w.pass(500)
		w.settle()
	}
	require.Equal(t, uint64(1), w.r.Stats().ExpiredSessions, "the shorter timeout of the re-attach counts")
}

func TestTTLNodeWrittenWhileItWaitsForItsTurnStays(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ContainerCheckMs, c.ContainerMaxPerMinute = 1000, 60 })
	cl := w.connect()
	for _, p := range []string{"/t1", "/t2", "/t3"} {
		cl.call(wire.OpCreateTTL, &wire.CreateTTLRequest{Path: []byte(p), ACL: wire.OpenACL, Flags: wire.FlagTTL, TTL: 400})
	}
	w.pass(1100) // all three are outlived, one goes now, the others wait a second each
	cl.sendXid(wire.XidPing, wire.OpPing, nil)
	w.settle()
	cl.replies()
	left := w.r.Tree().NodeCount()
	require.Equal(t, 3+3, left, "two of three are left beside the built-in ones")
	for _, p := range []string{"/t1", "/t2", "/t3"} {
		if cl.exists(p) == wire.CodeOK {
			cl.call(wire.OpSetData, &wire.SetDataRequest{Path: []byte(p), Version: -1})
		}
	}
	w.r.reaper.nextDeleteMs = w.now.MonoMs // its turn comes before its time to live is over again
	w.settle()
	require.Equal(t, left, w.r.Tree().NodeCount())
}

func TestSessionWithTooManyEphemeralsIsClosedWithoutTheList(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.RecordBytesMax = 600 })
	a, b := w.connect(), w.connect()
	for i := range 30 {
		a.mustCreate("/a-rather-long-name-of-a-node-"+string(rune('a'+i)), wire.FlagEphemeral)
	}
	a.call(wire.OpCloseSession, nil)
	w.settle()
	require.Equal(t, wire.CodeNoNode, b.exists("/a-rather-long-name-of-a-node-a"))
	require.Equal(t, 4, w.r.Tree().NodeCount())
	for _, e := range w.log {
		require.Less(t, len(e.Payload), 600)
	}
}

// Characters beyond U+FFFF grow when they are stored. A request with them is refused before it could grow out of bounds.
func TestTransactionsThatWouldGrowTooLargeAreRefused(t *testing.T) {
	var refused []Refusal
	w := newWorld(t, func(c *Config) {
		c.RecordBytesMax = 5000
		c.Refused = func(r Refusal) { refused = append(refused, r) }
	})
	cl := w.connect()
	cl.sendXid(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte(strings.Repeat("\U0001F600", 250) + ":p")})
	var acl []wire.ACL
	for i := range 4 {
		acl = append(acl, wire.ACL{Perms: int32(i), Scheme: "auth"})
	}
	rp := cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/a"), ACL: acl})
	require.Equal(t, wire.CodeMarshalling, rp.Err)
	require.Len(t, refused, 1)
	require.Equal(t, "/a", refused[0].Path)
	rp = cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte("/a"), ACL: acl[:2]})
	require.Equal(t, wire.CodeOK, rp.Err)
	for _, e := range w.log {
		require.Less(t, len(e.Payload), 5000)
	}
}

// TestReattachmentWaitsForWritesOnTheirWay: a client that lost its connection with a write on its way looks for it with its
// next read, and believes what it finds.
func TestReattachmentWaitsForWritesOnTheirWay(t *testing.T) {
	w := newWorld(t, nil)
	a := w.connect()
	a.send(wire.OpCreate, create("/way"))
	w.step() // proposed, and not durable yet
	a.c.Closed()
	again := w.open()
	req := wire.ConnectRequest{TimeoutMs: 5000, SessionID: a.id, Password: a.pw, HasReadOnly: true}
	_, err := again.c.Receive(encode(&req), w.now)
	require.NoError(t, err)
	w.step()
	require.False(t, again.c.HasOutput(), "the session goes on before a write of its former connection")
	w.settle()
	require.Equal(t, a.id, again.readConnect().SessionID)
	require.Equal(t, wire.CodeOK, again.exists("/way"))
}
