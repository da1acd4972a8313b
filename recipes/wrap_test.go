package recipes_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// wrapped connects package zk through a proxy, and counts its connections that were established.
func wrapped(t *testing.T, w *recipestest.World) (*zk.Conn, <-chan zk.Event, *servertest.Proxy, *atomic.Int64) {
	t.Helper()
	_, p := w.Faulty(t)
	var sessions atomic.Int64
	count := zk.WithEventCallback(func(e zk.Event) {
		if e.Type == zk.EventSession && e.State == zk.StateHasSession {
			sessions.Add(1)
		}
	})
	// The same address several times: package zk waits for a second after each round.
	conn, events, err := zk.Connect([]string{p.Addr(), p.Addr(), p.Addr()}, 2*time.Second, zk.WithLogInfo(false), count,
		zk.WithDialer(net.DialTimeout))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	recipestest.Eventually(t, func() bool { return sessions.Load() == 1 }, "package zk has a session")
	return conn, events, p, &sessions
}

// Package zk drops events when nobody has taken those before.
func TestWrapOfAConnectionWhoseEventsNobodyHasTaken(t *testing.T) {
	w := recipestest.Start(t)
	conn, events, p, sessions := wrapped(t, w)
	p.Cut()
	recipestest.Eventually(t, func() bool { return sessions.Load() == 2 }, "package zk has connected again")
	require.Equal(t, zk.StateHasSession, conn.State())

	c, err := recipes.Wrap(conn, events, recipes.Options{SessionTimeout: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	recipestest.Eventually(t, func() bool { return len(events) == 0 }, "the old events are taken")
	time.Sleep(10 * time.Millisecond) // the last one is taken up, if it makes a difference
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, err := c.AwaitSession(ctx)
	require.NoError(t, err, "the connection stands, and has all the time")
	require.Equal(t, conn.SessionID(), s.ID())
}

// Notifications go through the same channel as the changes of the connection, which may not find room in it.
func TestWrapMissesNoDisconnectBehindNotifications(t *testing.T) {
	w := recipestest.Start(t)
	conn, _, p, _ := wrapped(t, w)
	full := make(chan zk.Event) // that of a connection whose events are all dropped
	c, err := recipes.Wrap(conn, full, recipes.Options{SessionTimeout: 2 * time.Second})
	require.NoError(t, err)
	t.Cleanup(func() { close(full); c.Close() })
	s, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	p.Refuse(true)
	p.Cut()
	select {
	case <-s.Done():
	case <-time.After(10 * time.Second):
		require.Fail(t, "the connection is gone, and the session is not given up")
	}
	p.Refuse(false)
	next, err := c.AwaitSession(t.Context())
	require.NoError(t, err)
	require.NotSame(t, s, next)
}
