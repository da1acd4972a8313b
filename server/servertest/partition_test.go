package servertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/wire"
)

// awaitMode waits until a member is what it has to become; "" is one that serves nobody.
func awaitMode(t *testing.T, e *Ensemble, id int, modes ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, mode := range modes {
			if string(e.Stats(id).Mode) == mode {
				return true
			}
		}
		return false
	}, waitMax, time.Millisecond, "member %d becomes %q", id, modes)
}

// A leader that is cut off serves no longer, the others go on without it, and it comes back to their state.
func TestPartitionOfTheLeader(t *testing.T) {
	e := StartEnsemble(t, 3)
	old := e.Leader()
	e.Partition(old)
	awaitMode(t, e, old, "")
	next := e.Leader()
	require.NotEqual(t, old, next)
	_, err := e.Client(t, next).Create(testContext(t), "/a", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	e.Heal()
	awaitMode(t, e, old, "follower")
	c := e.Client(t, old)
	_, err = c.Sync(testContext(t), "/")
	require.NoError(t, err)
	require.True(t, exists(t, c, "/a"))
}

// Each call makes one more group. None of them is a majority here, so that nobody serves; those that are put together
// again do.
func TestPartitionIntoThree(t *testing.T) {
	e := StartEnsemble(t, 3)
	e.Partition(1)
	e.Partition(2)
	for id := 1; id <= 3; id++ {
		awaitMode(t, e, id, "")
	}
	e.Partition(1, 3)
	awaitMode(t, e, 1, "leader", "follower")
	awaitMode(t, e, 3, "leader", "follower")
	require.Empty(t, e.Stats(2).Mode)
	e.Heal()
	e.Await()
}

// A member that was killed finds the network as it is when it comes back.
func TestPartitionHoldsForMembersThatComeBack(t *testing.T) {
	e := StartEnsemble(t, 3)
	f := e.Follower()
	e.Kill(f)
	e.Partition(f)
	e.Start(f)
	for i := range 20 { // time enough to find a leader
		_, err := e.Client(t, e.Leader()).Create(testContext(t), "/a", []byte{byte(i)}, wire.OpenACL, wire.FlagSequential)
		require.NoError(t, err)
	}
	require.Empty(t, e.Stats(f).Mode)
	e.Heal()
	e.Await()
	require.Equal(t, e.Digest(e.Leader()), e.Digest(f))
}
