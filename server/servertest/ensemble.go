package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"zabra/server"
	"zabra/server/client"
)

// Ensemble is a number of servers with the ids 1, 2, and so on. Its methods are for the test's own goroutine.
type Ensemble struct {
	t       testing.TB
	servers []*Server // by id, from 1
	quorum  []string  // addresses of the quorum ports, by id
	elect   []string  // and of the election ports
	net     peerNet
}

// ensembleDefaults are the limits of a test's ensemble, in ticks. A short syncLimit makes for short tests of silence.
var ensembleDefaults = []Option{WithConfig("initLimit", "20"), WithConfig("syncLimit", "4"), WithConfig("standaloneEnabled", "false")}

// WithObservers makes the last n members of an ensemble observers.
func WithObservers(n int) Option { return func(s *Server) { s.observers = n } }

// StartEnsemble starts n servers with a client port each and returns when all of them serve. The options hold for each
// of them. If that fails, so does the test.
func StartEnsemble(t testing.TB, n int, opts ...Option) *Ensemble {
	t.Helper()
	e := &Ensemble{t: t, net: peerNet{groups: make(map[int]int)}}
	for id := 1; id <= n; id++ {
		s := newServer(t, append(append([]Option{}, ensembleDefaults...), opts...))
		s.ensemble, s.id = e, id
		e.servers = append(e.servers, s)
	}
	lines := e.lines()
	for i, s := range e.servers {
		for _, line := range lines {
			WithConfig(line[0], line[1])(s)
		}
		if err := writeMyID(s.dataDir, i+1); err != nil {
			t.Fatalf("servertest: %v", err)
		}
		s.launch()
	}
	for _, s := range e.servers {
		s.awaitServing()
	}
	return e
}

// lines are the server lines, on free ports.
func (e *Ensemble) lines() [][2]string {
	var lines [][2]string
	for i, s := range e.servers {
		quorum, election := freePort(e.t), freePort(e.t)
		e.quorum = append(e.quorum, fmt.Sprint("127.0.0.1:", quorum))
		e.elect = append(e.elect, fmt.Sprint("127.0.0.1:", election))
		line := fmt.Sprintf("127.0.0.1:%d:%d", quorum, election)
		if i >= len(e.servers)-s.observers {
			line += ":observer"
		}
		lines = append(lines, [2]string{"server." + strconv.Itoa(i+1), line})
	}
	return lines
}

func writeMyID(dir string, id int) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "myid"), []byte(strconv.Itoa(id)+"\n"), 0o600)
}

// Size is the number of members, those that are down included.
func (e *Ensemble) Size() int { return len(e.servers) }

// Server returns the member with that id, from 1.
func (e *Ensemble) Server(id int) *Server { return e.servers[id-1] }

// QuorumAddr and ElectionAddr are where other members reach the one with that id.
func (e *Ensemble) QuorumAddr(id int) string   { return e.quorum[id-1] }
func (e *Ensemble) ElectionAddr(id int) string { return e.elect[id-1] }

// Client connects to the member with that id, as soon as it serves.
func (e *Ensemble) Client(t testing.TB, id int, opts ...client.Options) *client.Client {
	t.Helper()
	e.await(fmt.Sprintf("member %d serves", id), func() bool {
		s := e.Server(id)
		return s.running == nil || s.running.Stats().Mode != ""
	})
	return e.Server(id).Client(t, opts...)
}

// Kill stops a member as a crash of its process would, see Server.Kill.
func (e *Ensemble) Kill(id int) {
	e.t.Helper()
	e.Server(id).Kill()
}

// Stop shuts a member down as an operator would, see Server.Stop.
func (e *Ensemble) Stop(id int) {
	e.t.Helper()
	e.Server(id).Stop()
}

// Start starts a member that is down, without waiting until it serves: it may need others for that.
func (e *Ensemble) Start(id int) {
	e.t.Helper()
	e.Server(id).launch()
}

// Restart starts a member again, on the same ports and data directory, and returns when it serves. If it is running, it
// is shut down first.
func (e *Ensemble) Restart(id int) {
	e.t.Helper()
	e.Server(id).Restart()
}

// Await returns when every member that is running serves, and agrees on the leader.
func (e *Ensemble) Await() {
	e.t.Helper()
	e.await("all members serve under one leader", func() bool {
		leader := e.leader()
		if leader == 0 {
			return false
		}
		for _, s := range e.servers {
			if s.running == nil {
				continue
			}
			if st := s.running.Stats(); st.Mode == "" || int(st.Leader) != leader {
				return false
			}
		}
		return true
	})
}

// Leader returns the id of the member that leads. It waits for one.
func (e *Ensemble) Leader() int {
	e.t.Helper()
	e.await("a member leads", func() bool { return e.leader() != 0 })
	return e.leader()
}

// leader is the running member that serves as the leader; 0 if none does.
func (e *Ensemble) leader() int {
	for i, s := range e.servers {
		if s.running != nil && s.running.Stats().Mode == "leader" {
			return i + 1
		}
	}
	return 0
}

// Follower returns the id of a running follower that serves. It waits for one.
func (e *Ensemble) Follower() int {
	e.t.Helper()
	return e.Followers(1)[0]
}

// Followers returns the ids of all running followers that serve, as soon as there are n at least.
func (e *Ensemble) Followers(n int) (ids []int) {
	e.t.Helper()
	e.await(fmt.Sprintf("%d members follow", n), func() bool {
		ids = ids[:0]
		for i, s := range e.servers {
			if s.running != nil && s.running.Stats().Mode == "follower" {
				ids = append(ids, i+1)
			}
		}
		return len(ids) >= n
	})
	return ids
}

// Stats tells the state of a running member.
func (e *Ensemble) Stats(id int) server.Stats { return e.Server(id).running.Stats() }

// Running tells whether a member is running.
func (e *Ensemble) Running(id int) bool { return e.Server(id).running != nil }

// Digest is the digest of a running member's tree.
func (e *Ensemble) Digest(id int) uint64 { return e.Server(id).running.Digest() }

func (e *Ensemble) await(what string, cond func() bool) {
	e.t.Helper()
	await(e.t, e.servers, what, cond)
}
