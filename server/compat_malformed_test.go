package server_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/jute"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

// length returns the four bytes that announce a frame.
func length(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// connectBody is the body of a ConnectRequest whose password has a length that need not be true.
func connectBody(passwordLength int32, rest ...byte) []byte {
	var e jute.Encoder
	e.Int32(0)
	e.Int64(0)
	e.Int32(4000)
	e.Int64(0)
	e.Int32(passwordLength)
	e.Raw(rest)
	return e.Bytes()
}

func frame(body []byte) []byte { return append(length(int32(len(body))), body...) }

func TestMalformedFirstFrame(t *testing.T) {
	s := startCompat(t)
	for name, sent := range map[string][]byte{
		"negative length":                 length(-1),
		"smallest length":                 length(-1 << 31),
		"above the limit":                 length(wire.FrameBytesMaxDefault + 1),
		"HTTP":                            []byte("GET / HTTP/1.1\r\n\r\n"),
		"TLS":                             {0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		"empty frame":                     length(0),
		"seven bytes":                     frame(make([]byte, 7)),
		"cut before the password":         frame(connectBody(16)[:28]),
		"password cut in its length":      frame(connectBody(16)[:26]),
		"password longer than the frame":  frame(connectBody(17, make([]byte, 16)...)),
		"password of negative length":     frame(connectBody(-2, make([]byte, 16)...)),
		"password longer than any record": frame(connectBody(1<<31-1, make([]byte, 16)...)),
		"zxid from the future": frame(encode(&wire.ConnectRequest{
			LastZxidSeen: 1 << 60, TimeoutMs: 4000, Password: make([]byte, 16), HasReadOnly: true,
		})),
	} {
		t.Run(name, func(t *testing.T) {
			r := s.raw()
			_, err := r.Write(sent)
			require.NoError(t, err)
			r.t = t
			r.closed()
		})
	}
	s.alive()
}

func TestMalformedButAcceptedFirstFrame(t *testing.T) {
	s := startCompat(t)
	for name, tt := range map[string]struct {
		sent   []byte
		answer int
	}{
		"null password":               {connectBody(-1), 36},
		"null password and read-only": {connectBody(-1, 0), 37},
		"short password":              {connectBody(3, 1, 2, 3), 36},
		"bytes behind":                {connectBody(0, 1, 2, 3, 4, 5), 37},
		"odd protocol version":        {encode(&wire.ConnectRequest{ProtocolVersion: 99, Password: make([]byte, 16), HasReadOnly: true}), 37},
		"negative zxid":               {encode(&wire.ConnectRequest{LastZxidSeen: -1, Password: make([]byte, 16)}), 36},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.raw()
			require.NoError(t, r.WriteFrame(tt.sent))
			got, err := r.ReadFrame()
			require.NoError(t, err)
			require.Len(t, got, tt.answer)
			require.Zero(t, binary.BigEndian.Uint32(got), "protocol version")
		})
	}
}

func TestMalformedLaterFrame(t *testing.T) {
	s := startCompat(t)
	for name, sent := range map[string][]byte{
		"negative length":  length(-1),
		"above the limit":  length(wire.FrameBytesMaxDefault + 1),
		"four-letter word": []byte("srvr"),
		"empty frame":      length(0),
		"one byte":         frame(make([]byte, 1)),
		"seven bytes":      frame(make([]byte, 7)),
	} {
		t.Run(name, func(t *testing.T) {
			r := s.session()
			r.send(1, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/")})
			r.expect(1, wire.CodeOK)
			_, err := r.Write(sent)
			require.NoError(t, err)
			r.t = t
			r.closed()
		})
	}
	s.alive()
}

func TestMalformedBodiesAreAnswered(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	vector := func(n int32) []byte {
		return append(encode(&wire.PathRequest{Path: []byte("/x")}), append(length(-1), length(n)...)...)
	}
	tests := []struct {
		name string
		op   wire.Op
		body []byte
		want wire.Code
	}{
		{"no body", wire.OpGetData, nil, wire.CodeMarshalling},
		{"cut length", wire.OpGetData, []byte{0, 0}, wire.CodeMarshalling},
		{"string longer than the frame", wire.OpGetData, append(length(9), '/'), wire.CodeMarshalling},
		{"string of negative length", wire.OpGetData, append(length(-2), 0), wire.CodeMarshalling},
		{"string longer than any", wire.OpGetData, append(length(1<<31-1), '/'), wire.CodeMarshalling},
		{"flag missing", wire.OpExists, encode(&wire.PathRequest{Path: []byte("/")}), wire.CodeMarshalling},
		{"any byte is true", wire.OpExists, append(encode(&wire.PathRequest{Path: []byte("/")}), 7), wire.CodeOK},
		{"bytes behind", wire.OpExists, append(encode(&wire.PathWatchRequest{Path: []byte("/")}), 1, 2, 3), wire.CodeOK},
		{"body of a ping", wire.OpPing, []byte{1, 2, 3}, wire.CodeOK},
		{"create cut", wire.OpCreate, vector(1), wire.CodeMarshalling},
		{"huge ACL", wire.OpCreate, vector(1<<31 - 1), wire.CodeMarshalling},
		{"negative ACL count is an empty list", wire.OpCreate, append(vector(-5), 0, 0, 0, 0), wire.CodeInvalidACL},
		{"null ACL", wire.OpCreate, append(vector(-1), 0, 0, 0, 0), wire.CodeInvalidACL},
		{"delete cut", wire.OpDelete, encode(&wire.PathRequest{Path: []byte("/x")}), wire.CodeMarshalling},
		{"setData cut", wire.OpSetData, encode(&wire.PathRequest{Path: []byte("/x")}), wire.CodeMarshalling},
		{"multi without end", wire.OpMulti, nil, wire.CodeMarshalling},
		{"multi with another end", wire.OpMulti, encode(&wire.MultiHeader{Type: 77, Done: true, Err: 5}), wire.CodeOK},
		{"setWatches with null lists", wire.OpSetWatches, encodeV1(&wire.SetWatchesRequest{}), wire.CodeMarshalling},
		{"setWatches2 with too few lists", wire.OpSetWatches2, encodeV1(setWatches(0, watchList(), watchList(), watchList())), wire.CodeMarshalling},
		{"addWatch with a null path", wire.OpAddWatch, encode(&wire.AddWatchRequest{}), wire.CodeOK},
		{"sync with a null path", wire.OpSync, encode(&wire.PathRequest{}), wire.CodeOK},
	}
	for i, tt := range tests {
		xid := int32(i + 1)
		r.sendBytes(xid, tt.op, tt.body)
		if tt.op == wire.OpPing {
			xid = wire.XidPing
		}
		h, _ := r.reply()
		require.Equal(t, []any{xid, tt.want}, []any{h.Xid, h.Err}, tt.name)
	}
	s.alive()
}

func TestMalformedCloseSessionBodyIsIgnored(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	r.sendBytes(3, wire.OpCloseSession, []byte{0xff, 0xff})
	r.expect(3, wire.CodeOK)
	r.closed()
}

func TestRequestsBehindTheConnectRequestAreServed(t *testing.T) {
	s := startCompat(t)
	r := s.raw()
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	(&wire.ConnectRequest{TimeoutMs: 4000, Password: make([]byte, 16), HasReadOnly: true}).Encode(&e)
	wire.EndFrame(&e, start)
	for xid := range int32(3) {
		wire.AppendRequest(&e, wire.RequestHeader{Xid: xid, Op: wire.OpExists}, &wire.PathWatchRequest{Path: []byte("/")})
	}
	_, err := r.Write(e.Bytes())
	require.NoError(t, err)
	got, err := r.ReadFrame()
	require.NoError(t, err)
	require.Len(t, got, 37)
	for xid := range int32(3) {
		r.expect(xid, wire.CodeOK)
	}
}

func TestFramesMayComeInPieces(t *testing.T) {
	s := startCompat(t)
	r := s.raw()
	var e jute.Encoder
	start := wire.BeginFrame(&e)
	(&wire.ConnectRequest{TimeoutMs: 4000, Password: make([]byte, 16), HasReadOnly: true}).Encode(&e)
	wire.EndFrame(&e, start)
	wire.AppendRequest(&e, wire.RequestHeader{Xid: 1, Op: wire.OpExists}, &wire.PathWatchRequest{Path: []byte("/")})
	for _, b := range e.Bytes() {
		_, err := r.Write([]byte{b})
		require.NoError(t, err)
	}
	_, err := r.ReadFrame()
	require.NoError(t, err)
	r.expect(1, wire.CodeOK)
}

func TestFrameThatIsNeverCompleted(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	r := s.raw()
	resp := r.handshake(&wire.ConnectRequest{TimeoutMs: 1})
	r.Write(append(length(100), 1, 2, 3))
	// Part of a frame is no sign of life: the session expires, and its connection goes with it.
	r.closed()
	_, err := client.Dial(compatContext(t), s.addr, client.Options{Session: resp.SessionID, Password: resp.Password})
	require.Equal(t, wire.CodeSessionExpired, err)
	require.NoError(t, b.Ping(compatContext(t)))
}

func TestConnectionWithoutASession(t *testing.T) {
	s := startCompat(t, servertest.WithConfig("nio.sessionlessCnxnTimeout", "100"))
	r := s.raw()
	r.closed()
	r = s.raw()
	r.Write(length(45)[:3])
	r.closed()
}

func TestHalfClosedAndResetConnections(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	for name, end := range map[string]func(*raw){
		"half closed": func(r *raw) { require.NoError(t, r.CloseWrite()); r.closed() },
		"reset":       func(r *raw) { r.Reset() },
	} {
		r := s.raw()
		resp := r.handshake(&wire.ConnectRequest{TimeoutMs: 5000})
		r.send(1, wire.OpCreate, &wire.CreateRequest{Path: []byte(base + "/" + name), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
		r.expect(1, wire.CodeOK)
		end(r)
		again, err := client.Dial(compatContext(t), s.addr, client.Options{Session: resp.SessionID, Password: resp.Password})
		require.NoError(t, err, "%s: the session lives on", name)
		require.Equal(t, resp.SessionID, s.stat(again, base+"/"+name).EphemeralOwner)
		require.NoError(t, again.Close(compatContext(t)))
	}
}

func TestConnectionLimitPerAddress(t *testing.T) {
	s := startCompat(t, servertest.WithConfig("maxClientCnxns", "3"))
	eventually(t, "the probe of the start is gone", func() bool { return s.mntr("zk_num_alive_connections") == 1 })
	var open []*client.Client
	for range 3 {
		open = append(open, s.client())
	}
	if one, err := client.DialConn(compatContext(t), s.addr); err == nil { // the reset may even come while it is made
		require.NoError(t, one.SetDeadline(time.Now().Add(compatWaitMax)))
		(&raw{one, t}).closed()
		one.Close()
	}
	require.NoError(t, open[0].Close(compatContext(t)))
	eventually(t, "room for another", func() bool {
		c, err := client.Dial(compatContext(t), s.addr, client.Options{})
		if err == nil {
			c.Abandon()
		}
		return err == nil
	})
}
