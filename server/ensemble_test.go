package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

// createOn creates nodes through one member.
func createOn(t *testing.T, e *servertest.Ensemble, id int, paths ...string) {
	t.Helper()
	c := e.Client(t, id)
	defer c.Abandon()
	for _, path := range paths {
		_, err := c.Create(t.Context(), path, []byte(path), wire.OpenACL, 0)
		require.NoError(t, err, "%s on server %d", path, id)
	}
}

// failoverTimeMax is far below initLimit, in which a leader whose quorum port cannot be reached would be waited for, and
// leaves room for a machine that is busy.
const failoverTimeMax = 5 * time.Second

// requireOn sees that a member has the nodes.
func requireOn(t *testing.T, e *servertest.Ensemble, id int, paths ...string) {
	t.Helper()
	c := e.Client(t, id)
	defer c.Abandon()
	_, err := c.Sync(t.Context(), "/")
	require.NoError(t, err)
	for _, path := range paths {
		data, _, err := c.GetData(t.Context(), path, false)
		require.NoError(t, err, "%s on server %d", path, id)
		require.Equal(t, path, string(data))
	}
}

func requireAbsent(t *testing.T, e *servertest.Ensemble, id int, path string) {
	t.Helper()
	c := e.Client(t, id)
	defer c.Abandon()
	_, err := c.Sync(t.Context(), "/")
	require.NoError(t, err)
	_, err = c.Exists(t.Context(), path, false)
	require.Equal(t, wire.CodeNoNode, err, "%s on server %d", path, id)
}

// requireSame sees that all members have applied the same, and have the same data.
func requireSame(t *testing.T, e *servertest.Ensemble) {
	t.Helper()
	until(t, "all members have applied the same", func() bool {
		for id := 2; id <= e.Size(); id++ {
			if e.Stats(id).Zxid != e.Stats(1).Zxid || e.Stats(id).Nodes != e.Stats(1).Nodes {
				return false
			}
		}
		return true
	})
	digests := map[uint64]bool{}
	for id := 1; id <= e.Size(); id++ {
		digests[e.Digest(id)] = true
	}
	require.Len(t, digests, 1)
}

func manyPaths(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("/%s-%d", prefix, i))
	}
	return list
}

// logged counts the lines of the log that contain text.
func logged(logs *observer.ObservedLogs, text string) int {
	return logs.FilterMessageSnippet(text).Len()
}

func startLogged(t *testing.T, n int, opts ...servertest.Option) (*servertest.Ensemble, *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	return servertest.StartEnsemble(t, n, append(opts, servertest.WithLog(zap.New(core)))...), logs
}

func TestEnsembleWritesAndReadsOnEachMember(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	for id := 1; id <= 3; id++ {
		createOn(t, e, id, fmt.Sprint("/from-", id))
	}
	for id := 1; id <= 3; id++ {
		requireOn(t, e, id, "/from-1", "/from-2", "/from-3")
	}
	requireSame(t, e)
}

// A session that was opened on one member goes on at another, with its ephemeral nodes.
func TestEnsembleSessionMoves(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	a := e.Client(t, 1)
	_, err := a.Create(t.Context(), "/e", nil, wire.OpenACL, wire.FlagEphemeral)
	require.NoError(t, err)
	until(t, "the other member is as far as the client", func() bool { return e.Stats(2).Zxid >= a.LastZxid() })
	b := e.Client(t, 2, client.Options{Session: a.Session(), Password: a.Password(), LastZxidSeen: a.LastZxid(), Timeout: a.Timeout()})
	require.Equal(t, a.Session(), b.Session())
	stat, err := b.Exists(t.Context(), "/e", false)
	require.NoError(t, err)
	require.Equal(t, a.Session(), stat.EphemeralOwner)
	require.NoError(t, b.Close(t.Context()))
	for id := 1; id <= 3; id++ {
		requireAbsent(t, e, id, "/e")
	}
}

// The leader's process dies: another one leads at once, and the old one comes back as a follower with what it missed.
func TestEnsembleLeaderDies(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	createOn(t, e, 1, "/before")
	old := e.Leader()
	e.Kill(old)
	began := time.Now()
	leader := e.Leader()
	require.Less(t, time.Since(began), failoverTimeMax)
	e.Await()
	createOn(t, e, leader, "/after")
	for id := 1; id <= 3; id++ {
		if id != old {
			requireOn(t, e, id, "/before", "/after")
		}
	}
	e.Restart(old)
	requireOn(t, e, old, "/before", "/after")
	requireSame(t, e)
}

// Each member dies in turn under a stream of writes. What was acknowledged is there afterwards, on every member.
func TestEnsembleMembersDieUnderLoad(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	var mu sync.Mutex
	var done []string
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				path := fmt.Sprintf("/w%d-%d", w, i)
				if writeOnce(t, e.Server(w+1).Addr(), path) {
					mu.Lock()
					done = append(done, path)
					mu.Unlock()
				}
			}
		})
	}
	for id := 1; id <= 3; id++ {
		before := func() int { mu.Lock(); defer mu.Unlock(); return len(done) }
		n := before()
		until(t, "writes go on", func() bool { return before() > n+50 })
		e.Kill(id)
		n = before()
		until(t, "writes go on without a member", func() bool { return before() > n+50 })
		e.Restart(id)
	}
	close(stop)
	writers.Wait()
	e.Await()
	for id := 1; id <= 3; id++ {
		requireOn(t, e, id, done...)
	}
	requireSame(t, e)
}

// writeOnce creates a node on a connection of its own, and reports whether that was acknowledged.
func writeOnce(t *testing.T, addr, path string) bool {
	c, err := client.Dial(t.Context(), addr, client.Options{})
	if err != nil {
		time.Sleep(time.Millisecond) // the server is down: not in a tight loop
		return false
	}
	defer c.Abandon()
	_, err = c.Create(t.Context(), path, []byte(path), wire.OpenACL, 0)
	return err == nil
}

// A follower that was away for a while gets what it missed, and keeps what it had.
func TestEnsembleFollowerCatchesUpFromTheLog(t *testing.T) {
	e, logs := startLogged(t, 3)
	createOn(t, e, 1, "/before")
	f := e.Follower()
	e.Stop(f)
	missed := manyPaths("missed", 3000)
	createOn(t, e, e.Leader(), missed[:2000]...)
	restartOthers(t, e, f)
	createOn(t, e, e.Leader(), missed[2000:]...)
	e.Restart(f)
	requireOn(t, e, f, append(missed, "/before")...)
	require.Zero(t, logged(logs, "Getting a snapshot from leader"))
	require.Zero(t, logged(logs, "data loaded anew"))
	requireSame(t, e)
}

// A leader dies with a transaction that no other member has. When it comes back its log is cut, and the node that its
// state had at the start is gone.
func TestEnsembleDivergedMemberIsCutBack(t *testing.T) {
	e, logs := startLogged(t, 3)
	createOn(t, e, 1, "/before")
	old := e.Leader()
	c := e.Client(t, old)
	followers := e.Followers(2)
	for _, id := range followers {
		e.Server(id).Stall()
	}
	zxid := e.Stats(old).Zxid
	call := c.Go(wire.OpCreate, &wire.CreateRequest{Path: []byte("/alone"), ACL: wire.OpenACL})
	until(t, "the leader has it in its log", func() bool { return e.Stats(old).Durable > zxid })
	for _, id := range followers {
		e.Kill(id)
	}
	require.Error(t, call.Wait(t.Context()))
	e.Kill(old)
	for _, id := range followers {
		e.Start(id)
	}
	createOn(t, e, e.Leader(), "/after")
	e.Restart(old)
	requireOn(t, e, old, "/before", "/after")
	requireAbsent(t, e, old, "/alone")
	require.Equal(t, 1, logged(logs, "data loaded anew"))
	requireSame(t, e)
	e.Restart(old) // what it has on disk is that, too
	requireAbsent(t, e, old, "/alone")
	requireOn(t, e, old, "/before", "/after")
}

// restartOthers restarts all members but one, so that they know what is on their disks and nothing else.
func restartOthers(t *testing.T, e *servertest.Ensemble, but int) (others []int) {
	t.Helper()
	for id := 1; id <= e.Size(); id++ {
		if id != but {
			e.Kill(id)
			others = append(others, id)
		}
	}
	for _, id := range others {
		e.Start(id)
	}
	e.Await()
	return others
}

// emptyDisk removes the data of a member that is down, not its id.
func emptyDisk(t *testing.T, e *servertest.Ensemble, id int) {
	require.NoError(t, os.RemoveAll(filepath.Join(e.Server(id).DataDir(), "version-2")))
}

// A member with an empty disk gets everything: from the log as long as that has it.
func TestEnsembleEmptyDisk(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	createOn(t, e, 1, manyPaths("n", 300)...)
	f := e.Follower()
	e.Stop(f)
	emptyDisk(t, e, f)
	e.Restart(f)
	requireOn(t, e, f, manyPaths("n", 300)...)
	requireSame(t, e)
}

// When the log does not reach back, the member gets a snapshot, and what came after it. It can lead with that.
func TestEnsembleSnapshot(t *testing.T) {
	e, logs := startLogged(t, 3, servertest.WithConfig("snapCount", "100"), servertest.WithConfig("preAllocSize", "16"))
	f := e.Follower()
	e.Stop(f)
	emptyDisk(t, e, f)
	createOn(t, e, e.Leader(), manyPaths("n", 500)...)
	others := restartOthers(t, e, f)
	for _, id := range others {
		forgetOldLogs(t, e, id)
	}
	e.Start(f)
	writing := manyPaths("meanwhile", 100)
	createOn(t, e, e.Leader(), writing...)
	e.Await()
	require.Equal(t, 1, logged(logs, "Getting a snapshot from leader"))
	require.Equal(t, 1, logged(logs, "data loaded anew"))
	requireOn(t, e, f, append(manyPaths("n", 500), writing...)...)
	requireSame(t, e)
	makeLeader(t, e, f)
	createOn(t, e, f, "/led")
	requireOn(t, e, e.Follower(), append(manyPaths("n", 500), "/led")...)
	requireSame(t, e)
}

// makeLeader makes one of three members lead, because it is the only one with the last transaction and another voter.
func makeLeader(t *testing.T, e *servertest.Ensemble, id int) {
	t.Helper()
	behind, level := id%3+1, (id+1)%3+1
	e.Stop(behind)
	e.Await()
	createOn(t, e, id, fmt.Sprintf("/for-%d-%d", id, e.Stats(id).Zxid))
	e.Stop(level)
	e.Start(behind)
	require.Equal(t, id, e.Leader())
	e.Restart(level)
	e.Await()
}

// forgetOldLogs removes what a purge would: logs and snapshots before the newest snapshot.
func forgetOldLogs(t *testing.T, e *servertest.Ensemble, id int) {
	dir := filepath.Join(e.Server(id).DataDir(), "version-2")
	var newest string
	until(t, "there is a snapshot", func() bool {
		for _, name := range names(t, dir, "snapshot.") {
			if len(name) > len(newest) || len(name) == len(newest) && name > newest {
				newest = name
			}
		}
		return newest != "snapshot.0" && newest != ""
	})
	limit := strings.TrimPrefix(newest, "snapshot.")
	for _, name := range append(names(t, dir, "snapshot."), names(t, dir, "log.")...) {
		_, hex, _ := strings.Cut(name, ".")
		if older := len(hex) < len(limit) || len(hex) == len(limit) && hex < limit; older && !holds(t, dir, hex, limit, name) {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
}

// holds reports whether a log is the newest that begins at or before a zxid: it may hold what follows that.
func holds(t *testing.T, dir, hex, limit, name string) bool {
	if !strings.HasPrefix(name, "log.") {
		return false
	}
	for _, other := range names(t, dir, "log.") {
		_, o, _ := strings.Cut(other, ".")
		after := len(o) > len(hex) || len(o) == len(hex) && o > hex
		before := len(o) < len(limit) || len(o) == len(limit) && o <= limit
		if after && before {
			return false
		}
	}
	return true
}

func names(t *testing.T, dir, prefix string) (list []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && !strings.HasSuffix(e.Name(), ".tmp") {
			list = append(list, e.Name())
		}
	}
	return list
}

// A leader that is shut down hands over: nothing that was acknowledged is lost, nobody waits for a timeout.
func TestEnsembleLeaderIsShutDown(t *testing.T) {
	e, logs := startLogged(t, 3)
	for range 3 {
		old := e.Leader()
		createOn(t, e, old, fmt.Sprintf("/by-%d-%d", old, logs.Len()))
		began := time.Now()
		stopped := make(chan struct{})
		go func() { defer close(stopped); e.Stop(old) }()
		until(t, "another member leads", func() bool {
			for id := 1; id <= 3; id++ {
				if id != old && e.Stats(id).Mode == "leader" {
					return true
				}
			}
			return false
		})
		require.Less(t, time.Since(began), failoverTimeMax)
		<-stopped
		e.Restart(old)
	}
	requireSame(t, e)
}

// One server with standaloneEnabled=false is an ensemble of one.
func TestEnsembleOfOne(t *testing.T) {
	e := servertest.StartEnsemble(t, 1)
	createOn(t, e, 1, "/a")
	e.Kill(1)
	e.Restart(1)
	requireOn(t, e, 1, "/a")
	e.Restart(1)
	requireOn(t, e, 1, "/a")
	require.Equal(t, "leader", string(e.Stats(1).Mode))
}

// An observer has everything and decides nothing.
func TestEnsembleObserver(t *testing.T) {
	e := servertest.StartEnsemble(t, 4, servertest.WithObservers(1))
	createOn(t, e, 4, "/through-the-observer")
	for id := 1; id <= 4; id++ {
		requireOn(t, e, id, "/through-the-observer")
	}
	require.Equal(t, "observer", string(e.Stats(4).Mode))
	for _, id := range e.Followers(2) {
		e.Kill(id)
	}
	until(t, "nobody serves", func() bool { return e.Stats(4).Mode == "" })
	for id := 1; id <= 3; id++ {
		if !e.Running(id) {
			e.Start(id)
		}
	}
	e.Await()
	createOn(t, e, 4, "/again")
	requireSame(t, e)
}

// Without a quorum clients are refused as by ZooKeeper: the port is open, the words say so, a connect request ends the
// connection.
func TestEnsembleWithoutQuorum(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	left := e.Leader()
	c := e.Client(t, left)
	for _, id := range e.Followers(2) {
		e.Stop(id)
	}
	<-c.Done()
	until(t, "the leader has given up", func() bool { return e.Stats(left).Mode == "" })
	addr := e.Server(left).Addr()
	const sorry = "This ZooKeeper instance is not currently serving requests\n"
	for word, want := range map[string]string{"srvr": sorry, "mntr": sorry, "conf": sorry, "ruok": "imok", "isro": "null"} {
		answer, err := client.Word(t.Context(), addr, word)
		require.NoError(t, err)
		require.Equal(t, want, answer, word)
	}
	_, err := client.Dial(t.Context(), addr, client.Options{})
	require.Error(t, err)
}

// Every way to end a member leaves no goroutine behind.
func TestEnsembleLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("run", func(t *testing.T) {
		e := servertest.StartEnsemble(t, 3)
		createOn(t, e, 1, "/a")
		e.Stop(e.Follower())
		e.Kill(e.Leader())
	})
	goleak.VerifyNone(t, before)
}
