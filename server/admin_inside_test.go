package server

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"zabra/conf"
	"zabra/server/admin"
	"zabra/wire"
)

// fakeConn is a connection of which only the end matters.
type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

// With one connection too many, the one that has been quiet longest makes way. If all are busy it is the new one.
func TestAdminConnectionsMakeWay(t *testing.T) {
	l := &adminListener{open: make(map[*adminConn]struct{})}
	var sockets []*fakeConn
	var conns []*adminConn
	admit := func() *adminConn {
		sockets = append(sockets, &fakeConn{})
		c := l.admit(sockets[len(sockets)-1])
		conns = append(conns, c)
		return c
	}
	for range adminConnsMax {
		require.NotNil(t, admit())
	}
	l.setBusy(conns[0], true)
	l.setBusy(conns[1], true)
	l.setBusy(conns[1], false) // quiet again, but not for as long as the others
	require.NotNil(t, admit())
	require.True(t, sockets[2].closed)
	require.Len(t, l.open, adminConnsMax)
	for c := range l.open {
		l.setBusy(c, true)
	}
	require.Nil(t, admit())
	require.True(t, sockets[len(sockets)-1].closed)
	require.False(t, sockets[0].closed || sockets[1].closed)

	require.NoError(t, conns[0].Close())
	require.NotNil(t, admit())
	require.NoError(t, conns[2].Close(), "it was closed before")
	l.closed = true
	require.Nil(t, admit())
}

func TestAliveAndReady(t *testing.T) {
	s := &Server{failed: make(chan struct{})}
	requireProbe := func(probe func() (bool, string), want string) {
		t.Helper()
		ok, why := probe()
		require.Equal(t, want == "", ok)
		require.Equal(t, want, why)
	}
	requireProbe(s.alive, "")
	requireProbe(s.ready, "starting")
	s.phase.Store(phaseServing)
	requireProbe(s.ready, "")
	s.phase.Store(phaseDraining)
	requireProbe(s.ready, "stopping")
	requireProbe(s.alive, "")
	close(s.failed)
	requireProbe(s.alive, "failed")
	requireProbe(s.ready, "failed")
}

// What changes something is for programs on this machine.
func TestLocalCommands(t *testing.T) {
	s := &Server{}
	s.live.Store(conf.Default())
	for name, r := range map[string]*admin.Request{
		"elsewhere": {Remote: netip.MustParseAddrPort("10.0.0.1:5")},
		"nowhere":   {},
		"a browser": {Remote: netip.MustParseAddrPort("127.0.0.1:5"), Header: http.Header{"Origin": {"http://evil"}}},
	} {
		require.Equal(t, http.StatusForbidden, s.runReload(nil, r).Status, name)
		require.Equal(t, http.StatusForbidden, s.runPurge(nil, r).Status, name)
	}
	here := &admin.Request{Remote: netip.MustParseAddrPort("[::1]:5"), Query: url.Values{}}
	require.Equal(t, http.StatusNotImplemented, s.runReload(nil, here).Status)
	for _, cmd := range s.adminCommands() {
		require.NotEmpty(t, cmd.Purpose)
		require.Equal(t, cmd.Name == "reload" || cmd.Name == "purge", cmd.Post)
	}
}

// What is kept of refusals is bounded, in number and in length, and what repeats is counted.
func TestRecentRefusals(t *testing.T) {
	var r refusals
	r.init(zap.NewNop())
	list, total := r.recent.newest()
	require.Empty(t, list)
	require.Zero(t, total)
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port) }
	long := make([]byte, 2*refusalTextBytesMax)
	r.note(1, refusal{kind: "k", remote: at(1), why: "first " + string(long)})
	r.note(2, refusal{kind: "k", remote: at(2), why: "second"})
	r.note(3, refusal{kind: "k", remote: at(3), why: "third", path: "/p", op: wire.OpCreate})
	list, total = r.recent.newest()
	require.EqualValues(t, 3, total)
	require.Len(t, list, 2)
	require.Equal(t, recentRefusal{refusal{kind: "k", remote: at(3), why: "third", path: "/p", op: wire.OpCreate}, 3, 1}, list[0])
	require.Equal(t, recentRefusal{refusal{kind: "k", remote: at(2), why: "second"}, 2, 2}, list[1])
	r.note(4, refusal{kind: "l", remote: at(1), why: string(long), detail: string(long)})
	list, _ = r.recent.newest()
	require.Less(t, len(list[0].why), 5*refusalTextBytesMax)
	require.Less(t, len(list[0].detail), 5*refusalTextBytesMax)

	for i := range 3*refusalsRecentMax + 7 {
		r.note(int64(100+i), refusal{kind: "n", remote: at(1), path: "/" + string(rune('a'+i%26))})
	}
	list, total = r.recent.newest()
	require.EqualValues(t, 4+3*refusalsRecentMax+7, total)
	require.Len(t, list, refusalsRecentMax)
	for i := range list {
		require.EqualValues(t, 100+3*refusalsRecentMax+7-1-i, list[i].nowMs)
	}
}
