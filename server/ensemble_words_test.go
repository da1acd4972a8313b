package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

func ensembleWord(t *testing.T, e *servertest.Ensemble, id int, word string) string {
	t.Helper()
	answer, err := client.Word(t.Context(), e.Server(id).Addr(), word)
	require.NoError(t, err)
	return answer
}

// requireLines sees that each of the lines is there in full.
func requireLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		require.Contains(t, "\n"+text+"\n", "\n"+line+"\n")
	}
}

// What agents read of the members of an ensemble.
func TestEnsembleWords(t *testing.T) {
	e := servertest.StartEnsemble(t, 4, servertest.WithObservers(1), servertest.WithConfig("maxClientCnxns", "7"))
	leader, follower := e.Leader(), e.Follower()
	c := e.Client(t, follower)
	_, err := c.Create(t.Context(), "/e", []byte("data"), wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	until(t, "all members have applied it", func() bool {
		for id := 1; id <= 4; id++ {
			if e.Stats(id).Nodes != 5 {
				return false
			}
		}
		return e.Stats(leader).SyncedLearners == 3
	})
	t.Run("srvr", func(t *testing.T) {
		require.Contains(t, ensembleWord(t, e, leader, "srvr"), "\nMode: leader\nNode count: 6\nProposal sizes last/min/max: ")
		require.Contains(t, ensembleWord(t, e, follower, "srvr"), "\nMode: follower\nNode count: 6\n")
		require.Contains(t, ensembleWord(t, e, 4, "stat"), "\nMode: observer\nNode count: 6\n")
		require.NotContains(t, ensembleWord(t, e, follower, "srvr"), "Proposal sizes")
	})
	t.Run("isro", func(t *testing.T) { require.Equal(t, "rw", ensembleWord(t, e, follower, "isro")) })
	t.Run("mntr", func(t *testing.T) {
		requireLines(t, ensembleWord(t, e, leader, "mntr"), "zk_server_state\tleader", "zk_peer_state\tleading - broadcast", "zk_quorum_size\t3",
			"zk_learners\t3", "zk_followers\t3", "zk_synced_followers\t2", "zk_synced_observers\t1", "zk_synced_non_voting_followers\t0",
			"zk_pending_syncs\t0", "zk_looking_count\t1", "zk_cnt_election_time\t1", "zk_cnt_leader_unavailable_time\t1")
		requireLines(t, ensembleWord(t, e, follower, "mntr"), "zk_server_state\tfollower", "zk_peer_state\tfollowing - broadcast", "zk_quorum_size\t3")
		requireLines(t, ensembleWord(t, e, 4, "mntr"), "zk_server_state\tobserver", "zk_peer_state\tobserving - broadcast")
		require.NotContains(t, ensembleWord(t, e, follower, "mntr"), "zk_synced_followers")
		for _, size := range []string{"last", "min", "max"} {
			require.Regexp(t, fmt.Sprintf(`(?m)^zk_%s_proposal_size\t[1-9]\d+$`, size), ensembleWord(t, e, leader, "mntr"))
		}
	})
	t.Run("conf", func(t *testing.T) {
		text := ensembleWord(t, e, follower, "conf")
		_, quorum, _ := strings.Cut(e.QuorumAddr(follower), ":")
		_, election, _ := strings.Cut(e.ElectionAddr(follower), ":")
		requireLines(t, text, fmt.Sprint("serverId=", follower), "initLimit=20", "syncLimit=4", "electionAlg=3", "electionPort="+election,
			"quorumPort="+quorum, "peerType=0", "membership: ")
		for id := 1; id <= 4; id++ {
			role := "participant"
			if id == 4 {
				role = "observer"
			}
			_, election, _ := strings.Cut(e.ElectionAddr(id), ":")
			require.Contains(t, text, fmt.Sprintf("\nserver.%d=%s:%s:%s", id, e.QuorumAddr(id), election, role))
		}
		require.True(t, strings.HasSuffix(text, "\nversion=0"), "%q", text)
		requireLines(t, ensembleWord(t, e, 4, "conf"), "peerType=1")
		data, _, err := c.GetData(t.Context(), "/zookeeper/config", false)
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(text, "membership: \n"+string(data)))
	})
	t.Run("dump", func(t *testing.T) {
		owner := fmt.Sprintf("\nSessions with Ephemerals (1):\n%v:\n\t/e\n", c.Session())
		text := ensembleWord(t, e, follower, "dump")
		require.True(t, strings.HasPrefix(text, fmt.Sprintf("SessionTracker dump:\nGlobal Sessions(1):\n%v\t10000ms\n", c.Session())), "%q", text)
		require.Contains(t, text, owner)
		require.Contains(t, text, fmt.Sprintf(" sessionId: %v\n", c.Session()))
		text = ensembleWord(t, e, leader, "dump")
		require.Contains(t, text, "\nSession Sets (1)/(1):\n")
		require.Contains(t, text, owner)
	})
	t.Run("srst", func(t *testing.T) {
		require.Equal(t, "Server stats reset.\n", ensembleWord(t, e, leader, "srst"))
		requireLines(t, ensembleWord(t, e, leader, "mntr"), "zk_last_proposal_size\t-1", "zk_looking_count\t0", "zk_cnt_election_time\t0")
	})
}
