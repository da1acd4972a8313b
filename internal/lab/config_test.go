package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDefaultIsGood(t *testing.T) {
	c := Default()
	require.NoError(t, c.Check())
}

// All faults are told together, in the words of the command line.
func TestFaultsOfAConfiguration(t *testing.T) {
	c := Config{Mode: "mob", Waiters: 1001, Rounds: 100_001, Hold: -time.Second, SessionTimeout: 2 * time.Minute, KillHolderEvery: -1, KillWaiterEvery: 100_001}
	err := c.Check()
	require.Error(t, err)
	require.Equal(t, []string{
		`--mode "mob": choose one of queue, herd`,
		"--waiters 1001: it must be between 1 and 1000",
		"--rounds 100001: it must be between 1 and 100000",
		"--kill-holder-every -1: it must be between 0 and 100000",
		"--kill-waiter-every 100001: it must be between 0 and 100000",
		"--hold -1s: it must be between 0s and 1m0s",
		"--session-timeout 2m0s: it must be between 200ms and 1m0s",
	}, strings.Split(err.Error(), "\n"))
	c = Default()
	c.Waiters, c.Rounds, c.SessionTimeout = 0, 0, 0
	require.Equal(t, 3, len(strings.Split(c.Check().Error(), "\n")))
}

func TestAddressOfAServer(t *testing.T) {
	for _, good := range []string{"localhost:2181", "[::1]:1", "10.0.0.1:65535"} {
		require.NoError(t, CheckServer(good), good)
	}
	for _, bad := range []string{"", "localhost", ":2181", "localhost:0", "localhost:65536", "a:1,b:2", "localhost:port", "localhost:-1"} {
		require.ErrorContains(t, CheckServer(bad), "--server", bad)
	}
}
