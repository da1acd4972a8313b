package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/wire"
)

// startMembers starts an ensemble of which the test knows everything.
func startMembers(t *testing.T, n int) []*shell {
	t.Helper()
	var lines strings.Builder
	for id := range n {
		fmt.Fprintf(&lines, "server.%d=127.0.0.1:%d:%d\n", id+1, unusedPort(t), unusedPort(t))
	}
	var members []*shell
	for id := range n {
		cfg := memberConfig(t, fmt.Sprint(id+1), lines.String())
		cfg.FourLetterWords, cfg.AutopurgePurgeIntervalHours = []string{"*"}, 0
		members = append(members, startShell(t, cfg))
	}
	awaitLeader(t, members)
	return members
}

// awaitLeader waits until all members serve under one leader that is level with all others, and returns its id.
func awaitLeader(t *testing.T, members []*shell) (leader int) {
	t.Helper()
	until(t, "all members serve", func() bool {
		leader = 0
		for id, m := range members {
			st := m.Stats()
			if st.Mode == "leader" && st.SyncedLearners == len(members)-1 {
				leader = id + 1
			}
		}
		for _, m := range members {
			if st := m.Stats(); st.Mode == "" || int(st.Leader) != leader {
				return false
			}
		}
		return leader != 0
	})
	return leader
}

// The leader hands over and goes on as a follower. Its clients' sessions go on.
func TestHandOverCommand(t *testing.T) {
	members := startMembers(t, 3)
	leader := awaitLeader(t, members)
	old := members[leader-1]
	c := old.client()
	old.create(c, "/e", wire.FlagEphemeral)
	follower := members[leader%3]
	r := follower.Act("handover", anyone, "")
	require.Equal(t, http.StatusConflict, r.Status)
	require.Contains(t, r.Error, fmt.Sprintf("ask the leader, server %d", leader))
	r = old.Act("handover?to=1", anyone, "")
	require.Equal(t, http.StatusBadRequest, r.Status)

	r = old.Act("handover", anyone, "")
	require.Zero(t, r.Status, r.Error)
	require.Equal(t, int64(leader), answered(t, r, "old_leader"))
	next := answered(t, r, "new_leader").(int64)
	require.NotEqual(t, int64(leader), next)
	require.EqualValues(t, "follower", old.Stats().Mode)
	<-c.Done()
	require.Equal(t, int(next), awaitLeader(t, members))
	c, err := client.Dial(t.Context(), old.Addr().String(), client.Options{Session: c.Session(), Password: c.Password(), LastZxidSeen: c.LastZxid()})
	require.NoError(t, err)
	defer c.Abandon()
	_, err = c.Exists(t.Context(), "/e", false)
	require.NoError(t, err)

	// And back, as often as one likes: with two members, each of them has to give way to the other.
	require.NoError(t, members[third(leader, int(next))-1].Close())
	r = members[next-1].Act("handover", anyone, "")
	require.Zero(t, r.Status, r.Error)
	require.Equal(t, int64(leader), answered(t, r, "new_leader"))
	old.create(old.client(), "/after", 0)
}

func third(a, b int) int { return 6 - a - b }
