package client

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"zabra/jute"
	"zabra/wire"
	"zabra/zab/zxid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testContext bounds what a test may wait for. It is far above what is ever needed.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// fake is a server's side of one connection, played by the test.
type fake struct {
	t testing.TB
	*Conn
}

// pair returns a listener's address and a function that takes the connection that was made to it.
func listen(t testing.TB) (addr string, accept func() *fake) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln.Addr().String(), func() *fake {
		nc, err := ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { nc.Close() })
		require.NoError(t, nc.SetDeadline(time.Now().Add(30*time.Second)))
		return &fake{t, NewConn(nc)}
	}
}

var testPassword = []byte("0123456789abcdef")

// connect dials a fake server that grants what is asked for.
func connect(t *testing.T, opt Options) (*Client, *fake) {
	addr, accept := listen(t)
	got := make(chan *fake, 1)
	go func() {
		f := accept()
		req := f.connectRequest()
		f.answer(&wire.ConnectResponse{TimeoutMs: req.TimeoutMs, SessionID: 7, Password: testPassword, HasReadOnly: req.HasReadOnly})
		got <- f
	}()
	c, err := Dial(testContext(t), addr, opt)
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	return c, <-got
}

func (f *fake) connectRequest() *wire.ConnectRequest {
	frame, err := f.ReadFrame()
	require.NoError(f.t, err)
	d := jute.NewDecoder(frame, len(frame))
	var req wire.ConnectRequest
	req.Decode(&d)
	require.NoError(f.t, d.Err())
	return &req
}

func (f *fake) answer(r wire.Record) {
	var e jute.Encoder
	r.Encode(&e)
	require.NoError(f.t, f.WriteFrame(e.Bytes()))
}

// request reads a request and, unless it is nil, its record.
func (f *fake) request(op wire.Op, record wire.Record) (xid int32) {
	frame, err := f.ReadFrame()
	require.NoError(f.t, err)
	d := jute.NewDecoder(frame, len(frame))
	var h wire.RequestHeader
	h.Decode(&d)
	if record != nil {
		record.Decode(&d)
	}
	require.NoError(f.t, d.Err())
	require.Zero(f.t, d.Remaining())
	require.Equal(f.t, op, h.Op)
	return h.Xid
}

// reply answers with a header and, unless it is nil, a record.
func (f *fake) reply(xid int32, z zxid.Zxid, code wire.Code, record wire.Record) {
	var e jute.Encoder
	wire.AppendReplyHeader(&e, xid, z, code)
	if record != nil {
		record.Encode(&e)
	}
	require.NoError(f.t, f.WriteFrame(e.Bytes()))
}

func (f *fake) event(z zxid.Zxid, typ wire.EventType, path string) {
	f.reply(wire.XidNotification, z, 0, &wire.WatcherEvent{Type: typ, State: wire.StateSyncConnected, Path: []byte(path)})
}
