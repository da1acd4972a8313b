package replica

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/session"
	"zabra/wire"
	"zabra/zab"
	"zabra/zab/zxid"
	"zabra/znode"
)

// world is a replica whose disk and clock are moved by hand.
type world struct {
	t       testing.TB
	r       *Replica
	now     Now
	written zab.Token   // newest token that was handed out
	log     []zab.Entry // everything that was to be persisted
	flushed map[*Conn]int
	audit   []AuditRecord // everything that was to be told
	// rest, if set, takes the place of settle: the replica is one of several.
	rest func()
}

func testConfig(t testing.TB) Config {
	auth, err := znode.NewAuth(znode.AuthConfig{})
	require.NoError(t, err)
	return Config{
		ServerByte: 1, TickMs: 500, MinSessionTimeoutMs: 1000, MaxSessionTimeoutMs: 10000,
		FieldBytesMax: jute.FieldBytesMaxDefault, RecordBytesMax: jute.FieldBytesMaxDefault,
		Tree:             znode.Config{ExtendedTypes: true, Auth: auth},
		ContainerCheckMs: 60000, ContainerMaxPerMinute: 10000,
	}
}

func newWorld(t testing.TB, change func(*Config)) *world {
	cfg := testConfig(t)
	if change != nil {
		change(&cfg)
	}
	w := &world{t: t, now: Now{MonoMs: 1_000_000, WallMs: 1_700_000_000_000}, flushed: map[*Conn]int{}}
	w.r = New(cfg, &Recovered{Tree: znode.NewTree(cfg.Tree)}, w.now)
	return w
}

// step runs one step without confirming anything.
func (w *world) step() Ready { return w.stepWith(0) }

func (w *world) stepWith(tok zab.Token) Ready {
	rd := w.r.Step(w.now, confirmed(tok))
	for _, op := range rd.Persist {
		require.Equal(w.t, zab.PersistAppend, op.Kind)
		w.written = op.Token
		w.log = append(w.log, op.Entries...)
	}
	for _, c := range rd.Flush {
		w.flushed[c]++
	}
	w.audit = append(w.audit, rd.Audit...)
	return rd
}

// confirmed is the input that a standalone server's disk gives.
func confirmed(tok zab.Token) []zab.Input {
	if tok == 0 {
		return nil
	}
	return []zab.Input{{Kind: zab.InputPersisted, Token: tok}}
}

// settle steps and confirms until nothing is left to do, and checks the tree.
func (w *world) settle() {
	w.t.Helper()
	if w.rest != nil {
		w.rest()
		return
	}
	for range 100 {
		rd := w.stepWith(w.written)
		if len(rd.Persist) == 0 && w.r.Idle() {
			require.NoError(w.t, w.r.Tree().Check())
			require.Zero(w.t, w.r.Stats().DigestMismatches)
			return
		}
	}
	w.t.Fatal("the replica does not come to rest")
}

func (w *world) pass(ms int64) {
	w.now.MonoMs += ms
	w.now.WallMs += ms
}

// client is one connection of a test.
type client struct {
	w   *world
	c   *Conn
	xid int32
	id  zxid.SessionID
	pw  []byte
	buf []byte
}

func (w *world) open() *client {
	addr := netip.MustParseAddrPort("127.0.0.1:4711")
	return &client{w: w, c: w.r.Open(nil, addr, w.now)}
}

func (w *world) connect() *client { return w.connectFor(5000) }

func (w *world) connectFor(timeoutMs int32) *client {
	w.t.Helper()
	cl := w.open()
	resp := cl.handshake(wire.ConnectRequest{TimeoutMs: timeoutMs, Password: make([]byte, 16), HasReadOnly: true})
	require.NotZero(w.t, resp.SessionID)
	cl.id, cl.pw = resp.SessionID, resp.Password
	return cl
}

func (cl *client) handshake(req wire.ConnectRequest) wire.ConnectResponse {
	cl.w.t.Helper()
	var e jute.Encoder
	req.Encode(&e)
	v, err := cl.c.Receive(e.Bytes(), cl.w.now)
	require.NoError(cl.w.t, err)
	require.Equal(cl.w.t, Wait, v)
	cl.w.settle()
	<-cl.c.Resumed()
	return cl.readConnect()
}

func (cl *client) readConnect() (resp wire.ConnectResponse) {
	cl.w.t.Helper()
	frame := cl.nextFrame()
	require.NotNil(cl.w.t, frame, "no answer to the handshake")
	d := jute.NewDecoder(frame, 1<<20)
	resp.Decode(&d)
	require.NoError(cl.w.t, d.Err())
	return resp
}

// send hands a request over and returns its xid.
func (cl *client) send(op wire.Op, req wire.Record) int32 {
	cl.w.t.Helper()
	cl.xid++
	cl.sendXid(cl.xid, op, req)
	return cl.xid
}

func (cl *client) sendXid(xid int32, op wire.Op, req wire.Record) Verdict {
	cl.w.t.Helper()
	var e jute.Encoder
	e.Int32(xid)
	e.Int32(int32(op))
	if req != nil {
		req.Encode(&e)
	}
	v, err := cl.c.Receive(e.Bytes(), cl.w.now)
	require.NoError(cl.w.t, err)
	return v
}

// reply is a frame that came back.
type reply struct {
	wire.ReplyHeader
	body []byte
}

func (rp *reply) decode(t testing.TB, rec wire.Record) {
	t.Helper()
	d := jute.NewDecoder(rp.body, 1<<20)
	rec.Decode(&d)
	require.NoError(t, d.Err())
	require.Zero(t, d.Remaining())
}

func (cl *client) nextFrame() []byte {
	if len(cl.buf) == 0 {
		cl.buf, _ = cl.c.Output(nil)
	}
	if len(cl.buf) == 0 {
		return nil
	}
	d := jute.NewDecoder(cl.buf, 64<<20)
	frame := d.Buffer()
	require.NoError(cl.w.t, d.Err())
	cl.buf = d.Rest()
	return frame
}

// replies returns everything that has come since the last call.
func (cl *client) replies() []reply {
	cl.w.t.Helper()
	var list []reply
	for frame := cl.nextFrame(); frame != nil; frame = cl.nextFrame() {
		d := jute.NewDecoder(frame, 64<<20)
		var rp reply
		rp.ReplyHeader.Decode(&d)
		require.NoError(cl.w.t, d.Err())
		rp.body = d.Rest()
		list = append(list, rp)
	}
	return list
}

// call sends one request, lets everything settle and returns the one reply.
func (cl *client) call(op wire.Op, req wire.Record) reply {
	cl.w.t.Helper()
	xid := cl.send(op, req)
	cl.w.settle()
	list := cl.replies()
	require.NotEmpty(cl.w.t, list, "no reply")
	rp := list[len(list)-1]
	require.Equal(cl.w.t, xid, rp.Xid)
	return rp
}

func (cl *client) mustCreate(path string, flags int32) string {
	cl.w.t.Helper()
	rp := cl.call(wire.OpCreate, &wire.CreateRequest{Path: []byte(path), ACL: wire.OpenACL, Flags: flags})
	require.Equal(cl.w.t, wire.CodeOK, rp.Err)
	var created wire.PathReply
	rp.decode(cl.w.t, &created)
	return string(created.Path)
}

func (cl *client) exists(path string) wire.Code {
	cl.w.t.Helper()
	return cl.call(wire.OpExists, &wire.PathWatchRequest{Path: []byte(path)}).Err
}

func create(path string) *wire.CreateRequest {
	return &wire.CreateRequest{Path: []byte(path), Data: []byte("d"), ACL: wire.OpenACL}
}

func passwordOf(id zxid.SessionID) []byte {
	pw := session.Password(id)
	return pw[:]
}
