package server_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/jute"
	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
	"zabra/zab/zxid"
)

func TestC1ReattachKeepsTheSession(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	a := s.closing()
	s.create(a, base+"/e", nil, wire.FlagEphemeral)
	_, err := b.Exists(compatContext(t), base+"/e", true)
	require.NoError(t, err)

	a.Abandon()
	again, err := s.again(a)
	require.NoError(t, err)
	require.Equal(t, a.Session(), again.Session())
	require.Equal(t, a.Password(), again.Password())
	require.Equal(t, a.Timeout(), again.Timeout())
	require.Equal(t, a.Session(), s.stat(again, base+"/e").EphemeralOwner)
	require.Empty(t, events(t, b))
	require.NoError(t, again.Close(compatContext(t)))
	require.Equal(t, event{wire.EventNodeDeleted, base + "/e"}, event{nextEvent(t, b).Type, base + "/e"})
}

// expectExpired requires the answer that tells a client its session is gone, byte by byte.
func expectExpired(t *testing.T, s *compat, id zxid.SessionID, password []byte, field bool) {
	t.Helper()
	r := s.raw()
	require.NoError(t, r.WriteFrame(encode(&wire.ConnectRequest{TimeoutMs: 4000, SessionID: id, Password: password, HasReadOnly: field})))
	frame, err := r.ReadFrame()
	require.NoError(t, err)
	want := make([]byte, 36)
	want[19] = 16 // the length of the password
	if field {
		want = append(want, 0)
	}
	require.Equal(t, want, frame)
	r.closed()
}

func TestC2ExpiredSession(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	a := s.client(client.Options{Timeout: compatTimeoutMin, NoPings: true})
	require.Equal(t, compatTimeoutMin, a.Timeout())
	s.create(a, base+"/e", nil, wire.FlagEphemeral)
	_, err := b.Exists(compatContext(t), base+"/e", true)
	require.NoError(t, err)
	heard := time.Now() // the create may have come earlier, not later
	a.Abandon()
	e := nextEvent(t, b)
	require.Equal(t, event{wire.EventNodeDeleted, base + "/e"}, event{e.Type, e.Path})
	silent := time.Since(heard)
	require.Greater(t, silent, compatTimeoutMin-100*time.Millisecond, "expired too early")

	for _, field := range []bool{true, false} {
		expectExpired(t, s, a.Session(), a.Password(), field)
		expectExpired(t, s, b.Session(), make([]byte, 16), field) // wrong password
		expectExpired(t, s, b.Session(), nil, field)
		expectExpired(t, s, 0x7777, a.Password(), field)
		expectExpired(t, s, -1, make([]byte, 16), field)
	}
	_, err = s.again(a)
	require.Equal(t, wire.CodeSessionExpired, err)
}

func TestC4ManySessionsReconnectAtOnce(t *testing.T) {
	s := startCompat(t)
	const n = 1000
	clients := make([]*client.Client, n)
	each := func(f func(i int)) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { f(i) })
		}
		wg.Wait()
	}
	each(func(i int) { clients[i] = s.client(client.Options{Timeout: compatTimeoutMax, NoPings: true}) })
	seen := map[zxid.SessionID]bool{}
	for _, c := range clients {
		require.NotContains(t, []zxid.SessionID{0, -1}, c.Session())
		require.False(t, seen[c.Session()], "session id given out twice")
		seen[c.Session()] = true
	}
	each(func(i int) { clients[i].Abandon() })
	each(func(i int) {
		again, err := s.again(clients[i])
		if err != nil || again.Session() != clients[i].Session() {
			t.Errorf("session %v: %v", clients[i].Session(), err)
			return
		}
		again.Close(compatContext(t))
	})
}

func TestC9ClientsWithoutTheReadOnlyByte(t *testing.T) {
	logged, logs := observer.New(zap.InfoLevel)
	s := startCompat(t, servertest.WithLog(zap.New(logged)))
	for i := range 1000 {
		r := s.raw()
		var req jute.Encoder
		(&wire.ConnectRequest{TimeoutMs: 4000, Password: make([]byte, 16)}).Encode(&req)
		require.Len(t, req.Bytes(), 44)
		require.NoError(t, r.WriteFrame(req.Bytes()))
		frame, err := r.ReadFrame()
		require.NoError(t, err, i)
		require.Len(t, frame, 36)
		r.Close()
	}
	require.LessOrEqual(t, len(logs.FilterLevelExact(zap.WarnLevel).All()), 1, "the log is flooded")
}

func TestC10BothFormsOfTheConnectResponse(t *testing.T) {
	s := startCompat(t)
	for _, without := range []bool{false, true} {
		c := s.closing(client.Options{NoReadOnlyField: without})
		require.Equal(t, !without, c.Connected().HasReadOnly)
		require.Len(t, c.Password(), 16)
		require.NoError(t, c.Ping(compatContext(t)))
		again, err := client.Dial(compatContext(t), s.addr, client.Options{Session: c.Session(), Password: c.Password(), NoReadOnlyField: !without})
		require.NoError(t, err)
		require.Equal(t, without, again.Connected().HasReadOnly, "the choice is the connection's")
		require.NoError(t, again.Close(compatContext(t)))
	}
}

func TestC11ReadOnlyClientOnAnOrdinaryServer(t *testing.T) {
	s := startCompat(t)
	c := s.closing(client.Options{ReadOnly: true})
	require.True(t, c.Connected().HasReadOnly)
	require.False(t, c.Connected().ReadOnly)
	s.create(c, s.base(c)+"/n", nil, 0)
}

func TestC14TimeoutBounds(t *testing.T) {
	s := startCompat(t)
	tests := []struct {
		ask  int32
		want time.Duration
	}{
		{1, compatTimeoutMin},
		{0, compatTimeoutMin},
		{-5, compatTimeoutMin},
		{math.MinInt32, compatTimeoutMin},
		{1000, compatTimeoutMin},
		{1001, 1001 * time.Millisecond},
		{9999, 9999 * time.Millisecond},
		{10_000, compatTimeoutMax},
		{3_600_000, compatTimeoutMax},
		{math.MaxInt32, compatTimeoutMax},
	}
	for _, tt := range tests {
		r := s.raw()
		resp := r.handshake(&wire.ConnectRequest{TimeoutMs: tt.ask})
		require.Equal(t, int32(tt.want.Milliseconds()), resp.TimeoutMs, tt.ask)
		for _, again := range tests[3:] {
			r := s.raw()
			resp2 := r.handshake(&wire.ConnectRequest{TimeoutMs: again.ask, SessionID: resp.SessionID, Password: resp.Password})
			require.Equal(t, resp.SessionID, resp2.SessionID)
			require.Equal(t, int32(again.want.Milliseconds()), resp2.TimeoutMs, "re-attach asking for %d", again.ask)
			r.Close()
		}
	}
}

func TestC14DefaultBounds(t *testing.T) {
	s := startCompat(t, servertest.WithConfig("tickTime", "2000"))
	for _, tt := range [][2]time.Duration{{time.Millisecond, 4 * time.Second}, {time.Hour, 40 * time.Second}, {8 * time.Second, 8 * time.Second}} {
		require.Equal(t, tt[1], s.client(client.Options{Timeout: tt[0]}).Timeout())
	}
}

func TestC15ZombieEphemeralOfABroker(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	path := base + "/1"
	_, err := b.Exists(compatContext(t), path, true)
	require.Equal(t, wire.CodeNoNode, err)

	a := s.raw()
	session := a.handshake(&wire.ConnectRequest{TimeoutMs: 1}).SessionID
	a.send(1, wire.OpCreate, &wire.CreateRequest{Path: []byte(path), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
	require.Equal(t, wire.EventNodeCreated, nextEvent(t, b).Type)
	a.Reset() // the reply is never read

	_, err = b.Create(compatContext(t), path, nil, wire.OpenACL, wire.FlagEphemeral)
	require.Equal(t, wire.CodeNodeExists, err)
	_, stat, err := b.GetData(compatContext(t), path, true)
	require.NoError(t, err)
	require.Equal(t, session, stat.EphemeralOwner)

	e := nextEvent(t, b)
	require.Equal(t, event{wire.EventNodeDeleted, path}, event{e.Type, e.Path})
	_, stat, err = b.Create2(compatContext(t), path, nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	require.Equal(t, b.Session(), stat.EphemeralOwner)
	require.Less(t, e.Zxid, stat.Czxid)
}

func TestC17XidsAreEchoed(t *testing.T) {
	s := startCompat(t)
	r := s.session()
	for _, xid := range []int32{math.MaxInt32, 1, 0, -100, math.MinInt32, -3, 1, 1} {
		r.send(xid, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/")})
		r.expect(xid, wire.CodeOK)
		r.send(xid, wire.OpDelete, &wire.PathVersionRequest{Path: []byte("/none/x")})
		r.expect(xid, wire.CodeNoNode)
	}
	for _, xid := range []int32{wire.XidPing, 5, 0, -1} {
		r.send(xid, wire.OpPing, nil)
		r.expect(wire.XidPing, wire.CodeOK)
	}
	for _, xid := range []int32{wire.XidAuth, 77} {
		r.send(xid, wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte("u:p")})
		z, body := r.expect(xid, wire.CodeOK)
		require.Zero(t, z)
		require.Empty(t, body)
	}
	for _, xid := range []int32{wire.XidSetWatches, 78} {
		r.send(xid, wire.OpSetWatches2, &wire.SetWatchesRequest{Data: [][]byte{}, Exist: [][]byte{}, Child: [][]byte{}, Persistent: [][]byte{}, Recursive: [][]byte{}})
		r.expect(xid, wire.CodeOK)
	}
	r.send(-1, wire.OpCloseSession, nil)
	r.expect(-1, wire.CodeOK)
	r.closed()
}

func TestC20Close(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	a := s.session()
	a.send(1, wire.OpCreate, &wire.CreateRequest{Path: []byte(base + "/e"), ACL: wire.OpenACL, Flags: wire.FlagEphemeral})
	a.expect(1, wire.CodeOK)
	_, err := b.Exists(compatContext(t), base+"/e", true)
	require.NoError(t, err)
	a.send(2, wire.OpCloseSession, nil)
	a.send(3, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/")}) // is dropped
	z, body := a.expect(2, wire.CodeOK)
	require.Empty(t, body)
	a.closed()
	require.Equal(t, []event{{wire.EventNodeDeleted, base + "/e"}}, events(t, b), "within one round trip")
	require.Equal(t, z, s.stat(b, base).Pzxid)
}

func TestC25SessionsThatCloseDoNotDisturbOthers(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	s.create(b, base+"/open", nil, 0)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 50 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			for i := 0; ; i++ {
				c, err := client.Dial(compatContext(t), s.addr, client.Options{})
				if err != nil {
					t.Errorf("dial: %v", err)
					return
				}
				user := fmt.Sprintf("u%d:p", g)
				c.Go(wire.OpAuth, &wire.AuthRequest{Scheme: []byte("digest"), Auth: []byte(user)})
				c.Go(wire.OpCreate, &wire.CreateRequest{Path: fmt.Appendf(nil, "%s/s%d-%d", base, g, i), ACL: wire.CreatorAllACL, Flags: wire.FlagEphemeral})
				for range rng.IntN(5) {
					c.Go(wire.OpPing, nil)
				}
				if rng.IntN(3) == 0 {
					c.Abandon()
				} else if err := c.Close(compatContext(t)); err != nil {
					t.Errorf("close: %v", err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	var calls []*client.Call
	for i := range 10_000 {
		calls = append(calls, b.Go(wire.OpSetData, &wire.SetDataRequest{Path: []byte(base + "/open"), Data: fmt.Appendf(nil, "%d", i), Version: int32(i)}))
		if i >= 100 {
			require.NoError(t, calls[i-100].Wait(compatContext(t)))
		}
	}
	for i, call := range calls {
		require.NoError(t, call.Wait(compatContext(t)), i)
	}
	close(stop)
	wg.Wait()
	require.Equal(t, int32(10_000), s.stat(b, base+"/open").Version)
}

func TestC26OverloadDoesNotBlockOthers(t *testing.T) {
	s := startCompat(t)
	b := s.closing()
	base := s.base(b)
	for _, p := range paths(base+"/n%d", 10) {
		s.create(b, p, nil, 0)
	}
	// Well over the limit of outstanding requests (1000), from clients that do not wait for replies.
	const flooders, each = 4, 5000
	var flood [flooders][]*client.Call
	var clients [flooders]*client.Client
	var wg sync.WaitGroup
	for g := range flood {
		clients[g] = s.closing()
		wg.Go(func() {
			for i := range each {
				req := &wire.SetDataRequest{Path: fmt.Appendf(nil, "%s/n%d", base, g), Data: bytes.Repeat([]byte{'x'}, 100), Version: int32(i)}
				flood[g] = append(flood[g], clients[g].Go(wire.OpSetData, req))
			}
		})
	}
	for i := range 4 {
		c := s.client()
		require.NoError(t, c.Ping(compatContext(t)))
		_, err := c.Sync(compatContext(t), base)
		require.NoError(t, err)
		_, _, err = c.GetData(compatContext(t), base, false)
		require.NoError(t, err)
		s.delete(c, fmt.Sprintf("%s/n%d", base, 9-i))
		require.NoError(t, c.Close(compatContext(t)))
	}
	wg.Wait()
	for g := range flood {
		for i, call := range flood[g] {
			require.NoError(t, call.Wait(compatContext(t)), i)
		}
		require.Equal(t, int32(each), s.stat(b, fmt.Sprintf("%s/n%d", base, g)).Version)
	}
}
