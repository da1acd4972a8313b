package servertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

// A test should not have to think twice before it starts an ensemble. A machine that is busy with something else gets
// some more attempts.
func TestStartEnsembleIsFast(t *testing.T) {
	const limit, attempts = 500 * time.Millisecond, 10
	var took []time.Duration
	for range attempts {
		began := time.Now()
		StartEnsemble(t, 3)
		took = append(took, time.Since(began))
		if took[len(took)-1] < limit {
			return
		}
	}
	t.Fatalf("three servers never served within %v, but within %v", limit, took)
}

func TestStartEnsemble(t *testing.T) {
	e := StartEnsemble(t, 3)
	leader := e.Leader()
	c := e.Client(t, leader)
	_, err := c.Create(testContext(t), "/a", []byte("x"), wire.OpenACL, 0)
	require.NoError(t, err)
	for id := 1; id <= e.Size(); id++ {
		c := e.Client(t, id)
		_, err := c.Sync(testContext(t), "/")
		require.NoError(t, err)
		data, _, err := c.GetData(testContext(t), "/a", false)
		require.NoError(t, err)
		require.Equal(t, "x", string(data))
	}
}

// Members can be killed, stopped and started again, each on its own.
func TestEnsembleMembersComeAndGo(t *testing.T) {
	e := StartEnsemble(t, 4, WithObservers(1))
	require.Equal(t, 4, e.Size())
	require.Equal(t, "observer", string(e.Stats(4).Mode))
	f := e.Follower()
	e.Kill(f)
	require.False(t, e.Running(f))
	e.Start(f)
	e.Await()
	old := e.Leader()
	e.Stop(old)
	require.NotEqual(t, old, e.Leader())
	e.Restart(old)
	require.Len(t, e.Followers(2), 2)
	require.NotEqual(t, e.QuorumAddr(1), e.ElectionAddr(1))
}

// What stands still on a stalled disk has not happened when the server is killed.
func TestStall(t *testing.T) {
	s := Start(t)
	c := s.Client(t)
	_, err := c.Create(testContext(t), "/before", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	s.Stall()
	call := c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte("/after"), ACL: wire.OpenACL})
	s.Kill()
	require.Error(t, call.Wait(testContext(t)))
	s.Restart()
	names, err := s.Client(t).GetChildren(testContext(t), "/", false)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"before", "zookeeper"}, names)
}
