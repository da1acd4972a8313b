package servertest_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// register is the program under test: it announces a worker as long as its session lives.
func register(conn *zk.Conn, name string) error {
	_, err := conn.Create("/worker-"+name, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	return err
}

// A server of its own for a test, and the end of a session.
func testWorkerIsGone(t *testing.T) {
	s := servertest.Start(t)
	worker, observer := connect(t, s.Addr()), connect(t, s.Addr())
	require.NoError(t, register(worker, "a"))

	s.ExpireSession(worker.SessionID())

	found, _, err := observer.Exists("/worker-a")
	require.NoError(t, err)
	require.False(t, found)
}

// The reply to a create is lost: the node is there, and the program does not know.
func testReplyIsLost(t *testing.T) {
	s := servertest.Start(t)
	p := servertest.NewProxy(t, s.Addr())
	worker := connect(t, p.Addr())

	p.DropReply(servertest.OpCreate)
	require.ErrorIs(t, register(worker, "a"), zk.ErrConnectionClosed)

	found, _, err := connect(t, s.Addr()).Exists("/worker-a")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 1, p.Requests(servertest.OpCreate))
}

// A session lives for its timeout when its client is gone. That need not be waited for.
func testTimePasses(t *testing.T) {
	s := servertest.Start(t)
	p := servertest.NewProxy(t, s.Addr())
	require.NoError(t, register(connect(t, p.Addr()), "a"))

	p.Refuse(true)
	p.Cut()
	require.Eventually(t, func() bool { return s.Connections() == 0 }, 10*time.Second, time.Millisecond)
	s.Advance(time.Minute)

	require.Empty(t, s.Sessions())
}

// An ensemble whose leader crashes, and whose next leader is cut off from the others.
func testEnsembleGoesOn(t *testing.T) {
	e := servertest.StartEnsemble(t, 5)
	killed := e.Leader()
	e.Kill(killed)
	isolated := e.Leader()
	e.Partition(isolated)

	require.NoError(t, register(connect(t, e.Server(e.Followers(2)[0]).Addr()), "a"))

	e.Heal()
	e.Restart(killed)
	e.Await()
	require.Equal(t, e.Digest(isolated), e.Digest(killed))
}

// connect is package zk's own connection, closed with the test.
func connect(t *testing.T, addr string) *zk.Conn {
	conn, events, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

// Tests of a program that uses ZooKeeper look like these functions, but for the names, which begin with Test.
func Example() {
	_ = []func(*testing.T){testWorkerIsGone, testReplyIsLost, testTimePasses, testEnsembleGoesOn}
}
