package servertest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
	"zabra/zab/zxid"
)

// through connects through a proxy, without the pings that would be counted.
func through(t *testing.T, p *Proxy, opts ...client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(testContext(t), p.Addr(), append(opts, client.Options{NoPings: true})[0])
	require.NoError(t, err)
	t.Cleanup(c.Abandon)
	return c
}

func create(c *client.Client, path string) *client.Call {
	return c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte(path), ACL: wire.OpenACL})
}

func exists(t *testing.T, c *client.Client, path string) bool {
	t.Helper()
	_, err := c.Exists(testContext(t), path, false)
	if err != nil {
		require.Equal(t, wire.CodeNoNode, err)
	}
	return err == nil
}

func TestProxyPassesAndCounts(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := through(t, p)
	_, err := c.Exists(testContext(t), "/a", true)
	require.Equal(t, wire.CodeNoNode, err)
	require.NoError(t, create(c, "/a").Wait(testContext(t)))
	e := <-c.Events()
	require.Equal(t, "/a", e.Path)
	require.Equal(t, 1, p.Requests(OpConnect))
	require.Equal(t, 1, p.Requests(OpCreate))
	require.Equal(t, 1, p.Requests(OpExists))
	require.Zero(t, p.Requests(OpDelete))
	require.Equal(t, 1, p.Notifications())
	require.NoError(t, c.Close(testContext(t)))
	require.Equal(t, 1, p.Requests(OpCloseSession))
}

// The reply to one request is lost, whatever else is under way.
func TestProxyDropsTheReplyToThatRequest(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := through(t, p)
	before := []*client.Call{create(c, "/before"), c.Go(wire.OpPing, nil)}
	for _, call := range before {
		require.NoError(t, call.Wait(testContext(t)))
	}
	p.DropReply(OpCreate)
	read := c.Go(wire.OpExists, &wire.PathWatchRequest{Path: []byte("/before")})
	ping := c.Go(wire.OpPing, nil)
	lost, after := create(c, "/lost"), create(c, "/after")
	require.NoError(t, read.Wait(testContext(t)))
	require.NoError(t, ping.Wait(testContext(t)))
	require.ErrorIs(t, lost.Wait(testContext(t)), wire.CodeConnectionLoss)
	require.ErrorIs(t, after.Wait(testContext(t)), wire.CodeConnectionLoss)
	require.True(t, exists(t, s.Client(t), "/lost"))

	again := through(t, p)
	require.NoError(t, create(again, "/again").Wait(testContext(t)))
}

func TestProxyDropsTheRequest(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := through(t, p)
	p.DropRequest(OpCreate)
	require.True(t, exists(t, c, "/"))
	require.ErrorIs(t, create(c, "/lost").Wait(testContext(t)), wire.CodeConnectionLoss)
	require.Zero(t, p.Requests(OpCreate))
	direct := s.Client(t)
	_, err := direct.Sync(testContext(t), "/")
	require.NoError(t, err)
	require.False(t, exists(t, direct, "/lost"))
	require.NoError(t, create(through(t, p), "/lost").Wait(testContext(t)))
}

// The answer to a handshake can be lost as well: then there is a session that nobody knows of.
func TestProxyDropsTheHandshake(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	p.DropReply(OpConnect)
	_, err := client.Dial(testContext(t), p.Addr(), client.Options{})
	require.Error(t, err)
	require.Len(t, s.Sessions(), 1)
	c := through(t, p)
	require.Contains(t, s.Sessions(), int64(c.Session()))
	require.Len(t, s.Sessions(), 2)
}

func TestProxyCutsAndRefuses(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	a, b := through(t, p), through(t, p)
	p.Refuse(true)
	require.True(t, exists(t, a, "/"), "connections that exist stay")
	_, err := client.Dial(testContext(t), p.Addr(), client.Options{})
	require.Error(t, err)
	p.Cut()
	<-a.Done()
	<-b.Done()
	p.Refuse(false)
	again := through(t, p, client.Options{Session: a.Session(), Password: a.Password(), NoPings: true})
	require.Equal(t, a.Session(), again.Session())
	p.Cut()
	<-again.Done()
	through(t, p)
}

// Nothing passes while the proxy is frozen, and everything after that, in order; also what a new connection has to say,
// and the end of one.
func TestProxyFreezes(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c, gone := through(t, p), through(t, p)
	p.Freeze()
	first, second := create(c, "/a"), create(c, "/a/b")
	gone.Abandon()
	connected := make(chan error, 1)
	go func() {
		late, err := client.Dial(testContext(t), p.Addr(), client.Options{NoPings: true})
		if err == nil {
			late.Abandon()
		}
		connected <- err
	}()
	direct := s.Client(t)
	for range 200 { // time enough for what would pass
		require.False(t, exists(t, direct, "/a"))
	}
	require.Zero(t, p.Requests(OpCreate))
	require.Equal(t, 2, p.Requests(OpConnect))
	p.Thaw()
	require.NoError(t, first.Wait(testContext(t)))
	require.NoError(t, second.Wait(testContext(t)))
	require.NoError(t, <-connected)

	p.Freeze()
	third := create(c, "/c")
	p.Cut()
	require.ErrorIs(t, third.Wait(testContext(t)), wire.CodeConnectionLoss)
	p.Thaw()
	require.False(t, exists(t, through(t, p), "/c"))
}

func TestProxyDelays(t *testing.T) {
	const delay = 30 * time.Millisecond
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := through(t, p)
	p.Delay(delay)
	began := time.Now()
	var calls []*client.Call
	for i := range 50 {
		calls = append(calls, create(c, fmt.Sprintf("/%d", i)))
	}
	last := zxid.Zxid(0)
	for _, call := range calls {
		require.NoError(t, call.Wait(testContext(t)))
		require.Greater(t, call.Zxid, last)
		last = call.Zxid
	}
	require.GreaterOrEqual(t, time.Since(began), 2*delay)
	slow := create(c, "/slow")
	p.Delay(0)
	require.NoError(t, slow.Wait(testContext(t)))
}

// A client whose session the proxy ends finds out as it would after a timeout.
func TestProxyExpires(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	var again []string
	for range 3 { // package zk waits for a second when it has tried all addresses
		again = append(again, p.Addr())
	}
	expired := make(chan struct{}, 10)
	conn, _, err := zk.Connect(again, 10*time.Second, zk.WithLogInfo(false), zk.WithEventCallback(func(e zk.Event) {
		if e.State == zk.StateExpired {
			expired <- struct{}{}
		}
	}))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	_, err = conn.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	session := conn.SessionID()
	p.Expire()
	require.False(t, exists(t, s.Client(t), "/e"))
	require.NotContains(t, s.Sessions(), session)
	<-expired
	require.Eventually(t, func() bool { return conn.State() == zk.StateHasSession }, waitMax, time.Millisecond)
	require.NotEqual(t, session, conn.SessionID())
	p.Expire() // the new one
	require.NotContains(t, s.Sessions(), session)
}

// The proxy needs no server to begin with, and ends a client's connection when there is none.
func TestProxyWithoutServer(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := through(t, p)
	s.Stop()
	<-c.Done()
	_, err := client.Dial(testContext(t), p.Addr(), client.Options{})
	require.Error(t, err)
	s.Restart()
	through(t, p)
}

// What is no frame, or one beyond all bounds, costs its sender the connection, and nobody else.
func TestProxyCutsStrangersOff(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := through(t, p)
	for _, sent := range []string{"ruok", "\xff\xff\xff\xff", "\x7f\xff\xff\xff"} {
		nc, err := net.Dial("tcp", p.Addr())
		require.NoError(t, err)
		_, err = nc.Write([]byte(sent))
		require.NoError(t, err)
		require.NoError(t, nc.SetReadDeadline(time.Now().Add(waitMax)))
		_, err = nc.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		nc.Close()
	}
	require.True(t, exists(t, c, "/"))
}

// Frames that are too short to be requests are passed on: the server ends such a connection.
func TestProxyPassesShortFrames(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	raw, err := client.DialConn(testContext(t), p.Addr())
	require.NoError(t, err)
	defer raw.Close()
	_, err = raw.Handshake(&wire.ConnectRequest{TimeoutMs: 5000, Password: make([]byte, 16)})
	require.NoError(t, err)
	require.NoError(t, raw.WriteFrame([]byte{1, 2}))
	_, err = raw.ReadFrame()
	require.Error(t, err)
}

// Clients that use one request number for several requests, as auth does, get their own replies.
func TestProxyWithNumbersUsedTwice(t *testing.T) {
	s := Start(t)
	p := NewProxy(t, s.Addr())
	raw, err := client.DialConn(testContext(t), p.Addr())
	require.NoError(t, err)
	defer raw.Close()
	_, err = raw.Handshake(&wire.ConnectRequest{TimeoutMs: 5000, Password: make([]byte, 16)})
	require.NoError(t, err)
	p.DropReply(OpExists)
	require.NoError(t, raw.WriteRequest(wire.XidAuth, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("a:b")}))
	require.NoError(t, raw.WriteRequest(wire.XidPing, wire.OpPing, nil))
	require.NoError(t, raw.WriteRequest(wire.XidSetWatches, wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/")}))
	require.NoError(t, raw.WriteRequest(wire.XidSetWatches, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/")}))
	seen := map[int32]bool{}
	for range 3 {
		h, _, err := raw.ReadReply()
		require.NoError(t, err)
		seen[h.Xid] = true
	}
	require.Equal(t, map[int32]bool{wire.XidAuth: true, wire.XidPing: true, wire.XidSetWatches: true}, seen)
	_, _, err = raw.ReadReply()
	require.Error(t, err)
}
