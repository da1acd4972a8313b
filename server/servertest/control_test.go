package servertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
)

func ephemeral(t *testing.T, c *client.Client, path string) {
	t.Helper()
	_, err := c.Create(testContext(t), path, nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
}

func TestExpireSession(t *testing.T) {
	s := Start(t)
	a, b := s.Client(t), s.Client(t)
	ephemeral(t, a, "/a")
	ephemeral(t, b, "/b")
	require.ElementsMatch(t, []int64{int64(a.Session()), int64(b.Session())}, s.Sessions())
	s.ExpireSession(int64(a.Session()))
	require.Equal(t, []int64{int64(b.Session())}, s.Sessions())
	require.False(t, exists(t, b, "/a"))
	require.True(t, exists(t, b, "/b"))
	<-a.Done()
	_, err := client.Dial(testContext(t), s.Addr(), client.Options{Session: a.Session(), Password: a.Password()})
	require.ErrorIs(t, err, wire.CodeSessionExpired)
}

// Whoever is not connected runs out of time; whoever is does not.
func TestAdvanceEndsSessions(t *testing.T) {
	s := Start(t)
	gone, here := s.Client(t), s.Client(t, client.Options{NoPings: true})
	ephemeral(t, gone, "/gone")
	ephemeral(t, here, "/here")
	gone.Abandon()
	require.Eventually(t, func() bool { return s.Connections() == 1 }, waitMax, time.Millisecond)
	s.Advance(gone.Timeout() / 2)
	require.True(t, exists(t, here, "/gone"))
	s.Advance(gone.Timeout())
	require.False(t, exists(t, here, "/gone"))
	s.Advance(2 * time.Hour)
	require.True(t, exists(t, here, "/here"))
	require.Equal(t, []int64{int64(here.Session())}, s.Sessions())
}

// The timer that sees to the next deadline goes by the time that was moved.
func TestAdvanceBringsDeadlinesNearer(t *testing.T) {
	s := Start(t, WithConfig("maxSessionTimeout", "3600000"))
	const hour = time.Hour
	gone, here := s.Client(t, client.Options{Timeout: hour}), s.Client(t)
	ephemeral(t, gone, "/gone")
	gone.Abandon()
	require.Eventually(t, func() bool { return s.Connections() == 1 }, waitMax, time.Millisecond)
	s.Advance(hour - time.Second)
	require.True(t, exists(t, here, "/gone"))
	require.Eventually(t, func() bool { return !exists(t, here, "/gone") }, waitMax, time.Millisecond)
}

func TestAdvanceEndsContainersAndTTLNodes(t *testing.T) {
	s := Start(t, WithConfig("extendedTypesEnabled", "true"))
	c := s.Client(t)
	_, before, err := c.CreateTTL(testContext(t), "/ttl", nil, wire.OpenACL, wire.FlagTTL, time.Hour.Milliseconds())
	require.NoError(t, err)
	_, _, err = c.CreateContainer(testContext(t), "/container", nil, wire.OpenACL)
	require.NoError(t, err)
	_, err = c.Create(testContext(t), "/container/a", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	require.NoError(t, c.Delete(testContext(t), "/container/a", -1))
	s.Advance(30 * time.Minute)
	require.False(t, exists(t, c, "/container"))
	require.True(t, exists(t, c, "/ttl"))
	s.Advance(32 * time.Minute)
	require.False(t, exists(t, c, "/ttl"))
	_, after, err := c.Create2(testContext(t), "/later", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	require.Greater(t, after.Ctime-before.Ctime, time.Hour.Milliseconds())
}

// The time that a server has reached stays, also while it is down.
func TestAdvanceOutlivesTheServer(t *testing.T) {
	s := Start(t)
	_, before, err := s.Client(t).Create2(testContext(t), "/before", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	s.Advance(time.Hour)
	s.Stop()
	s.Advance(time.Hour)
	s.Restart()
	_, after, err := s.Client(t).Create2(testContext(t), "/after", nil, wire.OpenACL, 0)
	require.NoError(t, err)
	require.GreaterOrEqual(t, after.Ctime-before.Ctime, 2*time.Hour.Milliseconds())
}

// In an ensemble it does not matter which member is asked, nor where a client is connected; and its members stay together.
func TestTimeOfAnEnsemble(t *testing.T) {
	e := StartEnsemble(t, 3)
	leader, follower := e.Leader(), e.Follower()
	gone, here := e.Client(t, follower), e.Client(t, follower, client.Options{NoPings: true})
	expired := e.Client(t, leader)
	ephemeral(t, gone, "/gone")
	ephemeral(t, here, "/here")
	ephemeral(t, expired, "/expired")
	e.Server(follower).ExpireSession(int64(expired.Session()))
	require.False(t, exists(t, here, "/expired"))
	gone.Abandon()
	require.Eventually(t, func() bool { return e.Stats(follower).Connections == 1 }, waitMax, time.Millisecond)
	e.Advance(time.Hour)
	require.False(t, exists(t, here, "/gone"))
	require.True(t, exists(t, here, "/here"))
	require.Equal(t, []int64{int64(here.Session())}, e.Sessions())
	require.Equal(t, leader, e.Leader())
	e.ExpireSession(int64(here.Session()))
	require.Empty(t, e.Sessions())
}
