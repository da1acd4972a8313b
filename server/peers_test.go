package server_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/conf"
	"zabra/server"
	"zabra/server/servertest"
	"zabra/wire/peer"
	"zabra/zab"
	"zabra/zab/zxid"
)

// dialPeer connects to a port for other servers.
func dialPeer(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, shellWaitMax)
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(shellWaitMax)))
	return nc
}

// requireCutOff reads until the other side ends the connection.
func requireCutOff(t *testing.T, nc net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, nc)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func serverID(id int) zxid.ServerID { return zxid.ServerID(id) }

// Whoever is no member is turned away at both ports, with a line in the log that says why, and once only.
func TestPeerPortsTurnStrangersAway(t *testing.T) {
	e, logs := startLogged(t, 3)
	leader := e.Leader()
	hello := func(from, to int, purpose peer.Purpose) peer.Hello {
		return peer.Hello{From: serverID(from), To: serverID(to), Purpose: purpose}
	}
	other := leader%3 + 1
	for name, c := range map[string]struct {
		election bool
		hello    peer.Hello
		why      string
	}{
		"unknown id":      {true, hello(9, leader, peer.PurposeElection), "not among the members"},
		"the same id":     {true, hello(leader, leader, peer.PurposeElection), "the same id"},
		"another's id":    {true, hello(other, other, peer.PurposeElection), fmt.Sprintf("server %d is meant", other)},
		"wrong purpose":   {true, hello(other, leader, peer.PurposeQuorum), "port for the election"},
		"unknown learner": {false, hello(9, leader, peer.PurposeQuorum), "not among the members"},
	} {
		t.Run(name, func(t *testing.T) {
			addr := e.QuorumAddr(leader)
			if c.election {
				addr = e.ElectionAddr(leader)
			}
			for range 2 {
				nc := dialPeer(t, addr)
				_, err := peer.Greet(nc, c.hello)
				var refused *peer.RefusedError
				require.ErrorAs(t, err, &refused)
				require.Contains(t, refused.Reason, c.why)
				requireCutOff(t, nc)
			}
		})
	}
	nc := dialPeer(t, e.ElectionAddr(leader))
	_, err := nc.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
	require.NoError(t, err)
	requireCutOff(t, nc)
	const told = "a connection of another server was refused"
	// The stranger at two ports is one. The log is written behind the answer.
	until(t, "the log tells of each", func() bool { return logged(logs, told) == 5 })
	createOn(t, e, leader, "/still-there")
}

// A probe that connects and goes leaves no trace in the log.
func TestPeerPortsTakeNoOffenceAtProbes(t *testing.T) {
	e, logs := startLogged(t, 3)
	before := logs.FilterLevelExact(zap.WarnLevel).Len()
	for id := 1; id <= 3; id++ {
		for range 5 {
			require.NoError(t, dialPeer(t, e.ElectionAddr(id)).Close())
		}
	}
	require.NoError(t, dialPeer(t, e.QuorumAddr(e.Leader())).Close())
	createOn(t, e, 1, "/a")
	require.Equal(t, before, logs.FilterLevelExact(zap.WarnLevel).Len())
}

// Connections that say nothing hold up neither an election nor learners.
func TestSilentConnectionsHoldNobodyUp(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	createOn(t, e, 1, "/before")
	for id := 1; id <= 3; id++ {
		for range 80 {
			dialPeer(t, e.ElectionAddr(id))
		}
	}
	old := e.Leader()
	for range 80 {
		dialPeer(t, e.QuorumAddr(old))
	}
	e.Kill(old)
	e.Await()
	e.Restart(old)
	requireOn(t, e, old, "/before")
}

// A learner whose bytes make no sense is cut off, and nobody else notices.
func TestLearnerThatSendsNonsenseIsCutOff(t *testing.T) {
	e, logs := startLogged(t, 3)
	leader, f := e.Leader(), e.Follower()
	e.Stop(f)
	nc := dialPeer(t, e.QuorumAddr(leader))
	_, err := peer.Greet(nc, peer.Hello{From: serverID(f), To: serverID(leader), Purpose: peer.PurposeQuorum})
	require.NoError(t, err)
	var enc peer.Encoder
	frame, err := enc.AppendMessage(nil, &zab.Message{Kind: zab.MessageFollowerInfo, Epoch: 1})
	require.NoError(t, err)
	frame[len(frame)-1] ^= 1
	_, err = nc.Write(frame)
	require.NoError(t, err)
	requireCutOff(t, nc)
	until(t, "the log tells", func() bool {
		return logged(logs, "quorum connection cut off: the other server sent what cannot be read") == 1
	})
	createOn(t, e, leader, "/a")
	e.Restart(f)
	requireOn(t, e, f, "/a")
}

// An election port that somebody else holds is tried again for a while, and then the start fails.
func TestElectionPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	cfg := memberConfig(t, "1", fmt.Sprintf("server.1=127.0.0.1:1:%d\nelectionPortBindRetry=2\n", port))
	core, logs := observer.New(zap.InfoLevel)
	_, err = server.New(cfg, server.Options{Log: zap.New(core)})
	var start *server.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, server.StageElectionPort, start.Stage)
	require.ErrorContains(t, err, fmt.Sprint("127.0.0.1:", port))
	require.Equal(t, 1, logged(logs, "cannot listen on the election port; trying again"))
	requireReleased(t, cfg)

	go func() { // the next attempt finds it free
		until(t, "an attempt failed", func() bool { return logged(logs, "cannot listen on the election port; trying again") == 2 })
		taken.Close()
	}()
	s, err := server.New(cfg, server.Options{Log: zap.New(core)})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// requireReleased sees that a failed start has given everything back.
func requireReleased(t *testing.T, cfg *conf.Config) {
	t.Helper()
	alone := *cfg
	alone.Ensemble = nil
	s, err := server.New(&alone, server.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// memberConfig is the configuration of a member whose peers are not there.
func memberConfig(t *testing.T, myid, lines string) *conf.Config {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "myid"), []byte(myid+"\n"), 0o600))
	text := fmt.Sprintf("dataDir=%s\nclientPort=3\nclientPortAddress=127.0.0.1\nstandaloneEnabled=false\ninitLimit=5\nsyncLimit=2\ntickTime=500\nadmin.enableServer=false\n%s",
		filepath.ToSlash(dir), lines)
	file := filepath.Join(dir, "zoo.cfg")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	cfg, err := conf.Load(file, nil)
	require.NoError(t, err)
	cfg.ClientPort = 0
	return cfg
}

// A member without its own line is told which numbers there are.
func TestUnknownMyID(t *testing.T) {
	cfg := memberConfig(t, "1", "server.1=127.0.0.1:1:2\n")
	cfg.MyID = 9
	_, err := server.New(cfg, server.Options{})
	var start *server.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, server.StageConfig, start.Stage)
	require.True(t, strings.Contains(err.Error(), "My id 9 not in the peer list"), "%v", err)
}
