package client

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/wire"
	"zabra/zab/zxid"
)

func TestHandshakeBothForms(t *testing.T) {
	tests := []struct {
		name             string
		hasField, server bool // client sends the field, server is read-only
		requestBytes     int
		hasAnswer        bool // server answers with the field
	}{
		{"with the field", true, false, 45, true},
		{"read-only server", true, true, 45, true},
		{"without", false, false, 44, false},
		{"server leaves it out", true, false, 45, false},
		{"server adds it", false, false, 44, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr, accept := listen(t)
			frames := make(chan []byte, 1)
			go func() {
				f := accept()
				frame, _ := f.ReadFrame()
				frames <- frame
				f.answer(&wire.ConnectResponse{
					TimeoutMs: 5000, SessionID: -9, Password: testPassword, ReadOnly: tt.server, HasReadOnly: tt.hasAnswer,
				})
			}()
			c, err := Dial(testContext(t), addr, Options{Timeout: 12 * time.Second, NoReadOnlyField: !tt.hasField, LastZxidSeen: 0x77})
			require.NoError(t, err)
			defer c.Abandon()
			require.Len(t, <-frames, tt.requestBytes)
			require.Equal(t, zxid.SessionID(-9), c.Session())
			require.Equal(t, testPassword, c.Password())
			require.Equal(t, 5*time.Second, c.Timeout())
			require.Equal(t, tt.server, c.Connected().ReadOnly)
			require.Equal(t, tt.hasAnswer, c.Connected().HasReadOnly)
			require.Equal(t, zxid.Zxid(0x77), c.LastZxid())
		})
	}
}

func TestConnectRequestFields(t *testing.T) {
	tests := []struct {
		opt  Options
		want wire.ConnectRequest
	}{
		{Options{}, wire.ConnectRequest{TimeoutMs: 10_000, Password: make([]byte, 16), HasReadOnly: true}},
		{Options{Timeout: -time.Second}, wire.ConnectRequest{TimeoutMs: -1000, Password: make([]byte, 16), HasReadOnly: true}},
		{Options{Timeout: math.MaxInt64}, wire.ConnectRequest{TimeoutMs: math.MaxInt32, Password: make([]byte, 16), HasReadOnly: true}},
		{
			Options{Timeout: time.Second, Session: 3, Password: []byte("pw"), ReadOnly: true, LastZxidSeen: 9},
			wire.ConnectRequest{TimeoutMs: 1000, SessionID: 3, Password: []byte("pw"), ReadOnly: true, HasReadOnly: true, LastZxidSeen: 9},
		},
		{Options{ReadOnly: true, NoReadOnlyField: true}, wire.ConnectRequest{TimeoutMs: 10_000, Password: make([]byte, 16), ReadOnly: true}},
	}
	for _, tt := range tests {
		require.Equal(t, &tt.want, (&Client{opt: tt.opt}).connectRequest())
	}
}

func TestDialFails(t *testing.T) {
	serve := func(t *testing.T, answer func(*fake)) error {
		addr, accept := listen(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			f := accept()
			f.connectRequest()
			answer(f)
		}()
		_, err := Dial(testContext(t), addr, Options{Session: 5})
		<-done
		return err
	}
	t.Run("expired", func(t *testing.T) {
		err := serve(t, func(f *fake) { f.answer(&wire.ConnectResponse{HasReadOnly: true}) })
		require.Equal(t, wire.CodeSessionExpired, err)
	})
	t.Run("closed", func(t *testing.T) {
		require.ErrorIs(t, serve(t, func(f *fake) { f.Close() }), io.EOF)
	})
	t.Run("cut", func(t *testing.T) {
		err := serve(t, func(f *fake) { f.Write([]byte{0, 0, 0, 37, 1}); f.Close() })
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
	t.Run("too short", func(t *testing.T) {
		require.ErrorContains(t, serve(t, func(f *fake) { f.WriteFrame(make([]byte, 11)) }), "connect response")
	})
	t.Run("nobody there", func(t *testing.T) {
		addr, _ := listen(t)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := Dial(ctx, addr, Options{}) // the system accepts, but nobody answers
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestPipelinedCalls(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	const n = 1000
	calls := make([]*Call, n)
	for i := range calls {
		calls[i] = c.Go(wire.OpSync, &wire.PathRequest{Path: fmt.Appendf(nil, "/%d", i)})
	}
	for i := range calls {
		var req wire.PathRequest
		xid := f.request(wire.OpSync, &req)
		require.Equal(t, int32(i+1), xid)
		code := wire.CodeOK
		if i%3 == 1 {
			code = wire.CodeThrottled
		}
		var body wire.Record = &wire.PathReply{Path: req.Path}
		if code != wire.CodeOK {
			body = nil
		}
		f.reply(xid, zxid.Zxid(100+i), code, body)
	}
	for i, call := range calls {
		err := call.Wait(testContext(t))
		require.Equal(t, zxid.Zxid(100+i), call.Zxid)
		if i%3 == 1 {
			require.Equal(t, wire.CodeThrottled, err)
			continue
		}
		var reply wire.PathReply
		require.NoError(t, err)
		require.NoError(t, call.Decode(&reply))
		require.Equal(t, fmt.Appendf(nil, "/%d", i), reply.Path)
	}
	require.Equal(t, zxid.Zxid(100+n-1), c.LastZxid())
}

func TestReplyOutOfOrderEndsTheConnection(t *testing.T) {
	for name, xids := range map[string][]int32{"swapped": {2}, "repeated": {1, 1}, "unknown": {99}, "ping unasked": {wire.XidPing}} {
		t.Run(name, func(t *testing.T) {
			c, f := connect(t, Options{NoPings: true})
			first, second := c.Go(wire.OpWhoAmI, nil), c.Go(wire.OpWhoAmI, nil)
			f.request(wire.OpWhoAmI, nil)
			f.request(wire.OpWhoAmI, nil)
			for _, xid := range xids {
				f.reply(xid, 5, 0, nil)
			}
			<-c.Done()
			require.ErrorIs(t, c.Err(), ErrProtocol)
			require.ErrorIs(t, second.Wait(testContext(t)), ErrProtocol)
			require.ErrorIs(t, second.Err, wire.CodeConnectionLoss)
			if name != "repeated" {
				require.ErrorIs(t, first.Wait(testContext(t)), wire.CodeConnectionLoss)
			}
			require.ErrorIs(t, c.Ping(testContext(t)), wire.CodeConnectionLoss)
		})
	}
}

func TestPingAuthAndSASLMayOvertake(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	slow := c.Go(wire.OpSync, &wire.PathRequest{Path: []byte("/")})
	auth := c.Go(wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("a:b")})
	auth2 := c.Go(wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("c:d")})
	sasl := c.Go(wire.OpSASL, &wire.SASLRequest{})
	ping := c.Go(wire.OpPing, nil)
	require.Equal(t, int32(1), f.request(wire.OpSync, new(wire.PathRequest)))
	require.Equal(t, int32(wire.XidAuth), f.request(wire.OpAuth, new(wire.AuthRequest)))
	require.Equal(t, int32(wire.XidAuth), f.request(wire.OpAuth, new(wire.AuthRequest)))
	require.Equal(t, int32(2), f.request(wire.OpSASL, new(wire.SASLRequest)))
	require.Equal(t, int32(wire.XidPing), f.request(wire.OpPing, nil))
	f.reply(wire.XidPing, 4, 0, nil)
	f.reply(2, 0, 0, &wire.SASLRequest{Token: []byte("t")})
	f.reply(wire.XidAuth, 0, 0, nil)
	f.reply(wire.XidAuth, 0, wire.CodeAuthFailed, nil)
	f.reply(1, 4, 0, &wire.PathReply{Path: []byte("/")})
	for _, call := range []*Call{ping, sasl, auth, slow} {
		require.NoError(t, call.Wait(testContext(t)), call.Op)
	}
	require.Equal(t, wire.CodeAuthFailed, auth2.Wait(testContext(t)))
}

func TestEventsComeBeforeTheReplyBehindThem(t *testing.T) {
	t.Run("channel", func(t *testing.T) {
		c, f := connect(t, Options{NoPings: true})
		call := c.Go(wire.OpWhoAmI, nil)
		xid := f.request(wire.OpWhoAmI, nil)
		f.event(8, wire.EventNodeCreated, "/a")
		f.event(-1, wire.EventNodeDeleted, "/b")
		f.reply(xid, 9, 0, nil)
		require.NoError(t, call.Wait(testContext(t)))
		require.Len(t, c.Events(), 2)
		require.Equal(t, Event{wire.EventNodeCreated, wire.StateSyncConnected, "/a", 8}, <-c.Events())
		require.Equal(t, Event{wire.EventNodeDeleted, wire.StateSyncConnected, "/b", -1}, <-c.Events())
	})
	t.Run("function", func(t *testing.T) {
		var order []string
		c, f := connect(t, Options{NoPings: true, OnEvent: func(e Event) { order = append(order, e.Path) }})
		done := make(chan struct{})
		c.Send(wire.OpWhoAmI, nil, func(call *Call) {
			order = append(order, call.Op.String())
			close(done)
		})
		xid := f.request(wire.OpWhoAmI, nil)
		f.event(8, wire.EventNodeCreated, "/a")
		f.reply(xid, 9, 0, nil)
		<-done
		require.Equal(t, []string{"/a", "whoAmI"}, order)
	})
}

func TestUnreadEventsEndTheConnection(t *testing.T) {
	c, f := connect(t, Options{NoPings: true, EventsQueuedMax: 2})
	for range 3 {
		f.event(1, wire.EventNodeCreated, "/a")
	}
	<-c.Done()
	require.ErrorIs(t, c.Err(), ErrEventsOverflow)
	require.Len(t, c.Events(), 2, "those that came stay readable")
}

func TestMalformedEventEndsTheConnection(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	f.reply(wire.XidNotification, 1, 0, &wire.PathReply{Path: []byte("/a")})
	<-c.Done()
	require.ErrorIs(t, c.Err(), ErrProtocol)
}

func TestPingsKeepASilentSessionAlive(t *testing.T) {
	c, f := connect(t, Options{Timeout: 60 * time.Millisecond})
	for i := range 5 {
		require.Equal(t, int32(wire.XidPing), f.request(wire.OpPing, nil))
		f.reply(wire.XidPing, zxid.Zxid(i), 0, nil)
	}
	require.NoError(t, c.Err())
}

func TestSilentServerIsNoticed(t *testing.T) {
	c, _ := connect(t, Options{Timeout: 30 * time.Millisecond})
	call := c.Go(wire.OpWhoAmI, nil)
	<-c.Done()
	require.ErrorIs(t, c.Err(), ErrSilent)
	require.ErrorIs(t, call.Wait(testContext(t)), ErrSilent)
}

func TestLostConnectionFailsAllCalls(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	calls := []*Call{c.Go(wire.OpWhoAmI, nil), c.Go(wire.OpPing, nil), c.Go(wire.OpSASL, nil)}
	f.request(wire.OpWhoAmI, nil)
	f.Close()
	for _, call := range calls {
		require.ErrorIs(t, call.Wait(testContext(t)), wire.CodeConnectionLoss)
	}
	after := false
	c.Send(wire.OpWhoAmI, nil, func(call *Call) { after = errors.Is(call.Err, wire.CodeConnectionLoss) })
	require.True(t, after)
}

func TestContextDoesNotTakeTheRequestBack(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	require.ErrorIs(t, c.Delete(ctx, "/a", 0), context.Canceled)
	xid := f.request(wire.OpDelete, new(wire.PathVersionRequest))
	next := c.Go(wire.OpWhoAmI, nil)
	f.reply(xid, 1, 0, nil) // nobody waits for it any more
	f.reply(f.request(wire.OpWhoAmI, nil), 1, 0, nil)
	require.NoError(t, next.Wait(testContext(t)))
}

func TestCallsWaitForAServerThatDoesNotRead(t *testing.T) {
	c, f := connect(t, Options{NoPings: true})
	big := make([]byte, writeBytesMax)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	sent := 0
	for ; ctx.Err() == nil; sent++ {
		c.SetData(ctx, "/a", big, -1)
		c.mu.Lock()
		waiting := c.mu.out.Len()
		c.mu.Unlock()
		require.Less(t, waiting, 3*writeBytesMax)
		cancelled, stop := context.WithCancel(context.Background())
		stop()
		c.SetData(cancelled, "/a", big, -1)
	}
	require.Greater(t, sent, 0)
	require.NoError(t, c.Err())
	f.Close()
	<-c.Done()
}

func TestClose(t *testing.T) {
	c, f := connect(t, Options{Timeout: time.Second})
	done := make(chan error)
	go func() { done <- c.Close(testContext(t)) }()
	f.reply(f.request(wire.OpCloseSession, nil), 3, 0, nil)
	require.NoError(t, <-done)
	require.Equal(t, ErrClosed, c.Err())
	_, err := f.ReadFrame()
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, c.Close(testContext(t)), ErrClosed)
}

func TestAbandonResets(t *testing.T) {
	c, f := connect(t, Options{})
	c.Abandon()
	_, err := f.ReadFrame()
	require.ErrorContains(t, err, "connection reset")
}

func TestFrameLimits(t *testing.T) {
	head := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	tests := []struct {
		name string
		sent []byte
		want string
	}{
		{"above the limit", head(1001), "frame of 1001 bytes, at most 1000"},
		{"negative", head(math.MaxUint32), "frame of -1 bytes"},
		{"cut off", append(head(1000), 1, 2), "frame of 1000 bytes: unexpected EOF"},
		{"shorter than a header", append(head(15), make([]byte, 15)...), "reply header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, f := connect(t, Options{NoPings: true, FrameBytesMax: 1000})
			f.Write(tt.sent)
			f.Close()
			<-c.Done()
			require.ErrorContains(t, c.Err(), tt.want)
		})
	}
}

func TestLargeFrame(t *testing.T) {
	addr, accept := listen(t)
	body := make([]byte, 3*readStepBytes+17)
	for i := range body {
		body[i] = byte(i * 31)
	}
	go func() { accept().WriteFrame(body) }()
	c, err := DialConn(testContext(t), addr)
	require.NoError(t, err)
	defer c.Close()
	got, err := c.ReadFrame()
	require.NoError(t, err)
	require.Equal(t, body, got)
}

func TestXidsStayPositive(t *testing.T) {
	var c Client
	c.mu.xid = math.MaxInt32 - 1
	require.Equal(t, int32(math.MaxInt32), c.nextXidLocked())
	require.Equal(t, int32(1), c.nextXidLocked())
}

func TestCallQueue(t *testing.T) {
	var q callQueue
	next, expect := int32(0), int32(0)
	for round := range 200 {
		for range round % 7 {
			next++
			q.push(&Call{Xid: next})
		}
		for range round % 5 {
			if q.head() == nil {
				break
			}
			expect++
			require.Equal(t, expect, q.pop().Xid)
		}
	}
	rest := q.takeAll()
	require.Len(t, rest, int(next-expect))
	require.Equal(t, expect+1, rest[0].Xid)
	require.Nil(t, q.head())
}

func TestWord(t *testing.T) {
	addr, accept := listen(t)
	go func() {
		f := accept()
		var word [4]byte
		io.ReadFull(f, word[:])
		f.Write(append([]byte("you said "), word[:]...))
		f.Close()
	}()
	answer, err := Word(testContext(t), addr, "ruok")
	require.NoError(t, err)
	require.Equal(t, "you said ruok", answer)
}
