package admin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/zab/zxid"
)

func TestEnsembleConfigurationText(t *testing.T) {
	c := Configuration{ServerID: 3, Ensemble: &EnsembleConfiguration{
		InitLimitTicks: 10, SyncLimitTicks: 5, ElectionAlg: 3, ElectionPorts: []int{3888, 3889}, QuorumPorts: []int{2888, 2889},
		Observer: true, Membership: "server.3=h:2888:3888:observer\nversion=0",
	}}
	text := string(c.AppendText(nil))
	require.Contains(t, text, "\nserverId=3\ninitLimit=10\nsyncLimit=5\nelectionAlg=3\nelectionPort=3888|3889\nquorumPort=2888|2889\n"+
		"peerType=1\nmembership: \nserver.3=h:2888:3888:observer\nversion=0")
	require.NotContains(t, string(Configuration{}.AppendText(nil)), "membership")
}

func TestDumpOfALearner(t *testing.T) {
	d := Dump{Learner: true, Global: []GlobalSession{{zxid.SessionID(0x100000ba4e30000), 30000}, {zxid.SessionID(0x300000ba4f90000), 10000}}}
	require.Equal(t, "SessionTracker dump:\nGlobal Sessions(2):\n0x100000ba4e30000\t30000ms\n0x300000ba4f90000\t10000ms\n"+
		"ephemeral nodes dump:\nSessions with Ephemerals (0):\nConnections dump:\nConnections Sets (0)/(0):\n", string(d.AppendText(nil)))
}
