package servertest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Ports are taken from below the range that the system gives to outgoing connections: one of those could otherwise hold a
// port while its server is down, even the connection of a client that looks for that very server.
const (
	portMin = 10000
	portMax = 32000
	// portAttemptsMax is how many are tried.
	portAttemptsMax = 1000
)

// freePort returns a port of the loopback interface that nobody uses. It is this test's until its end, also while nothing
// listens there: whoever looks for a port here, in this process or another, has to get the UDP port of that number first.
func freePort(t testing.TB) int {
	t.Helper()
	for range portAttemptsMax {
		port := portMin + rand.IntN(portMax-portMin)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		claim, err := net.ListenPacket("udp4", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp4", addr)
		if err != nil {
			claim.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { claim.Close() })
		return port
	}
	t.Fatalf("servertest: no free port between %d and %d", portMin, portMax)
	return 0
}
