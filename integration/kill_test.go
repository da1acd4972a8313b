//go:build interop && linux

package integration

import (
	"flag"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

var (
	killRounds = flag.Int("kill.rounds", 20, "how often TestKillUnderLoad kills the server")
	killSeed   = flag.Uint64("kill.seed", 0, "seed of TestKillUnderLoad's moments; 0 = another one each time")
)

// TestKillUnderLoad kills the server with SIGKILL in the middle of many writes, again and again. After each restart no
// acknowledged write is missing, none is out of order, and a session goes on with its ephemeral node.
func TestKillUnderLoad(t *testing.T) {
	if n, err := strconv.Atoi(os.Getenv("ZABRA_KILL_ROUNDS")); err == nil {
		*killRounds = n
	}
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("%d rounds, -kill.seed=%d", *killRounds, seed)
	rnd := rand.New(rand.NewPCG(seed, 0))

	// Snapshots and new log files come often, so that the kill meets them too.
	server := newServer(t, serverUnderTest(t), map[string]string{"snapCount": "2000", "preAllocSize": "64"})
	require.NoError(t, server.Start())
	book := newLedger()
	book.prepare(t, server.Addr())
	for round := range *killRounds {
		session := createEphemeralFor(t, server.Addr(), "/ledger/e"+strconv.Itoa(round), 10000)
		run := 100*time.Millisecond + time.Duration(rnd.Int64N(int64(400*time.Millisecond)))
		book.load(t, server.Addr(), run, server.Kill)
		require.NoError(t, server.Start(), "round %d", round)
		book.verify(t, server.Addr())
		resume(t, server.Addr(), session, "/ledger/e"+strconv.Itoa(round))
	}
	require.NoError(t, server.Restart())
	book.verify(t, server.Addr())
	t.Logf("%d acknowledged writes kept over %d kills", book.acked.Load(), *killRounds)
	require.Greater(t, book.acked.Load(), int64(100**killRounds), "the load did its work")
}

// createEphemeralFor makes an ephemeral node and drops the connection, not the session.
func createEphemeralFor(t *testing.T, addr, path string, timeoutMs int32) *harness.Raw {
	raw, err := harness.DialRaw(addr, timeoutMs, 0, [16]byte{})
	require.NoError(t, err)
	defer raw.Close()
	reply, err := raw.Call(harness.AppendCreate(nil, 1, path, nil, harness.FlagEphemeral))
	require.NoError(t, err)
	require.EqualValues(t, harness.CodeOK, reply.Code)
	return raw
}

// resume goes on with a session of before the crash: its node is there, and goes when the session is closed.
func resume(t *testing.T, addr string, session *harness.Raw, path string) {
	raw, err := harness.DialRaw(addr, 10000, session.SessionID, session.Password)
	require.NoError(t, err)
	defer raw.Close()
	require.Equal(t, session.SessionID, raw.SessionID, "the session is still known")
	require.Positive(t, raw.TimeoutMs)
	c := dial(t, addr)
	defer c.Close()
	exists, stat, err := c.Exists(path)
	require.NoError(t, err)
	require.True(t, exists, path)
	require.Equal(t, raw.SessionID, stat.EphemeralOwner)
	reply, err := raw.Call(harness.AppendClose(nil, 2))
	require.NoError(t, err)
	require.EqualValues(t, harness.CodeOK, reply.Code)
	exists, _, err = c.Exists(path)
	require.NoError(t, err)
	require.False(t, exists, path)
}
