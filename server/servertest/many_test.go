package servertest

import (
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
)

// Fifty servers in one process, with a client each, have nothing to do with each other, and leave nothing behind.
func TestManyServersAtOnce(t *testing.T) {
	const servers = 50
	before := runtime.NumGoroutine()
	t.Run("servers", func(t *testing.T) {
		var clients []*client.Client
		addrs := map[string]bool{}
		for i := range servers {
			s := Start(t)
			addrs[s.Addr()] = true
			c := s.Client(t)
			require.NoError(t, create(c, fmt.Sprintf("/only-%d", i)).Wait(testContext(t)))
			clients = append(clients, c)
		}
		require.Len(t, addrs, servers)
		for i, c := range clients {
			names, err := c.GetChildren(testContext(t), "/", false)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"zookeeper", fmt.Sprintf("only-%d", i)}, names)
		}
	})
	requireNoMore(t, before)
}

// Ensembles, proxies, partitions and killed members leave nothing behind either.
func TestFaultsLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("ensembles", func(t *testing.T) {
		e, other := StartEnsemble(t, 3), StartEnsemble(t, 3)
		p := NewProxy(t, e.Server(e.Follower()).Addr())
		p.Delay(time.Millisecond)
		c := through(t, p)
		p.Freeze()
		create(c, "/a")
		e.Partition(1)
		other.Kill(other.Leader())
	})
	requireNoMore(t, before)
}

// requireNoMore waits for goroutines that are about to end.
func requireNoMore(t *testing.T, before int) {
	t.Helper()
	await(t, nil, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// A port stays taken while its server is down, so that it finds it again.
func TestPortsAreKept(t *testing.T) {
	port := freePort(t)
	_, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	require.ErrorIs(t, err, syscall.EADDRINUSE)
}
