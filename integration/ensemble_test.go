//go:build interop && linux

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/integration/harness"
)

// envMembers names the members that real clients are run against: leader, follower (the default), or all.
const envMembers = "ZABRA_ENSEMBLE_MEMBERS"

const (
	ensembleCall    = 10 * time.Second // the longest wait for an answer of servers that are well
	ensembleSession = 40000            // ms; no session of these tests may expire
)

// ensembleSettings make faults be noticed soon.
var ensembleSettings = map[string]string{"tickTime": "500", "initLimit": "20", "syncLimit": "4", "maxSessionTimeout": "120000"}

// newEnsemble prepares an ensemble in a temporary folder, which is kept when the test fails.
func newEnsemble(t *testing.T, plan harness.Plan) *harness.Ensemble {
	dir, err := os.MkdirTemp(os.Getenv("ZABRA_INTEROP_KEEP"), strings.ReplaceAll(t.Name(), "/", "_")+"-")
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() || os.Getenv("ZABRA_INTEROP_KEEP") != "" {
			t.Logf("data and logs of the servers are in %s", dir)
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	settings := map[string]string{}
	for _, more := range []map[string]string{ensembleSettings, plan.Settings} {
		for k, v := range more {
			settings[k] = v
		}
	}
	plan.Settings = settings
	if plan.Defines == nil {
		plan.Defines = []string{"-Dznode.container.checkIntervalMs=500"}
	}
	e, err := harness.NewEnsemble(dir, plan)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	for _, m := range e.Members {
		watchOver(t, m.Server)
	}
	return e
}

func startEnsemble(t *testing.T, plan harness.Plan) *harness.Ensemble {
	e := newEnsemble(t, plan)
	require.NoError(t, e.Start())
	return e
}

// clientOf opens a session on one member.
func clientOf(t *testing.T, e *harness.Ensemble, member int) *harness.Client {
	c := &harness.Client{Addrs: e.Addrs(), TimeoutMs: ensembleSession}
	require.NoError(t, c.MoveTo(member, waitTimeout))
	t.Cleanup(c.Drop)
	return c
}

// call sends one request, built for its xid, and expects success.
func call(t *testing.T, c *harness.Client, frame func(xid int32) []byte) harness.Reply {
	t.Helper()
	xid := c.NextXid()
	reply, err := c.Do(xid, frame(xid), ensembleCall)
	require.NoError(t, err)
	require.EqualValues(t, harness.CodeOK, reply.Code)
	return reply
}

func createPath(path string, flags int32) func(int32) []byte {
	return func(xid int32) []byte { return harness.AppendCreate(nil, xid, path, nil, flags) }
}

// TestNoStaleSyncedRead suspends the leader for longer than it may be unheard, lets the others go on under a new one, and
// lets it continue: requests that arrived meanwhile, and those of its first moments, are never answered with old data.
func TestNoStaleSyncedRead(t *testing.T) {
	const suspended, path, readers = 10 * time.Second, "/stale", 8
	e := startEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3})
	leader, err := e.WaitLeader()
	require.NoError(t, err)
	writer := clientOf(t, e, (leader+1)%3)
	call(t, writer, createPath(path, 0))
	write := func(n int) {
		data := []byte(strconv.Itoa(n))
		call(t, writer, func(xid int32) []byte { return harness.AppendSet(nil, xid, path, data) })
	}
	write(0)
	sessions := make([]*harness.Raw, readers)
	for i := range sessions {
		sessions[i], err = harness.DialRaw(e.Members[leader].Addr(), ensembleSession, 0, [16]byte{})
		require.NoError(t, err)
		defer sessions[i].Close()
	}

	require.NoError(t, e.Members[leader].Suspend())
	start := time.Now()
	require.NoError(t, writer.MoveTo((leader+1)%3, waitTimeout), "the others go on")
	least := make([]int, readers) // what was acknowledged when the reader's request was sent
	n := 0
	for i := range sessions {
		for until := start.Add(suspended * time.Duration(i+1) / readers); time.Now().Before(until); time.Sleep(50 * time.Millisecond) { // the pace of the writes
			n++
			write(n)
		}
		least[i] = n
		require.NoError(t, sessions[i].Write(syncedGet(nil, path)))
	}
	require.NoError(t, e.Members[leader].Continue())
	for i, session := range sessions {
		if got, ok := readSynced(t, session); ok {
			require.GreaterOrEqual(t, got, least[i], "a synced read on the leader that was suspended, asked for after write %d", least[i])
		}
	}
	// The writes go on while clients come to the server that has just woken up.
	for fresh := 0; fresh < 20; {
		n++
		write(n)
		session, err := harness.DialRaw(e.Members[leader].Addr(), ensembleSession, 0, [16]byte{})
		if err != nil {
			continue
		}
		require.NoError(t, session.Write(syncedGet(nil, path)))
		if got, ok := readSynced(t, session); ok {
			require.GreaterOrEqual(t, got, n, "a synced read in a new session")
			fresh++
		}
		session.Close()
	}
	require.NoError(t, e.WaitLevel())
	for i := range e.Members {
		reply := call(t, clientOf(t, e, i), func(xid int32) []byte { return harness.AppendGet(nil, xid, path) })
		data, stat, err := harness.ParseGet(reply.Body)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(n), string(data), "the last acknowledged write on server %d", i+1)
		require.EqualValues(t, n+1, stat.Version, "each write happened once")
	}
	t.Logf("%d writes acknowledged", n)
}

func syncedGet(b []byte, path string) []byte {
	return harness.AppendGet(harness.AppendSync(b, 1, path), 2, path)
}

// readSynced reads the answers of syncedGet; false when the server closed the connection instead, which it may.
func readSynced(t *testing.T, session *harness.Raw) (n int, ok bool) {
	session.SetReadDeadline(time.Now().Add(ensembleCall))
	for range 2 {
		reply, err := session.ReadReply()
		if err != nil {
			return 0, false
		}
		require.EqualValues(t, harness.CodeOK, reply.Code)
		if reply.Xid == 2 {
			data, _, err := harness.ParseGet(reply.Body)
			require.NoError(t, err)
			n, err = strconv.Atoi(string(data))
			require.NoError(t, err)
		}
	}
	return n, true
}

// TestRollingRestart restarts one member after the other, the leader too, under load. Clients see lost connections and
// nothing else.
func TestRollingRestart(t *testing.T) {
	const clients, sessionMs, between = 6, 6000, 500 * time.Millisecond
	e := startEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3})
	var stop atomic.Bool
	var wg sync.WaitGroup
	rollers := make([]*roller, clients)
	for i := range rollers {
		c := &harness.Client{Addrs: e.Addrs(), TimeoutMs: sessionMs}
		require.NoError(t, c.MoveTo(i%3, waitTimeout))
		t.Cleanup(c.Drop)
		rollers[i] = &roller{client: c, path: fmt.Sprintf("/roll-%d", i)}
		call(t, rollers[i].client, createPath(rollers[i].path, 0))
		call(t, rollers[i].client, createPath(rollers[i].path+"-e", harness.FlagEphemeral))
		wg.Go(func() { rollers[i].err = rollers[i].run(&stop) })
	}
	for _, m := range e.Members {
		time.Sleep(between) // the load goes on for a moment
		require.NoError(t, m.Stop())
		require.NoError(t, m.Launch())
		require.NoError(t, e.WaitServing())
	}
	stop.Store(true)
	wg.Wait()
	losses, writes := 0, 0
	for _, r := range rollers {
		require.NoError(t, r.err)
		require.Zero(t, r.client.Expired, "expired sessions")
		reply := call(t, r.client, func(xid int32) []byte { return harness.AppendGet(nil, xid, r.path) })
		data, _, err := harness.ParseGet(reply.Body)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(r.acked), string(data))
		call(t, r.client, func(xid int32) []byte { return harness.AppendGet(nil, xid, r.path+"-e") })
		losses, writes = losses+r.client.Losses, writes+r.acked
	}
	t.Logf("%d writes, %d connections lost", writes, losses)
	require.GreaterOrEqual(t, losses, clients, "every client's server was restarted once")
}

// roller writes growing numbers. What was asked again after a lost connection may have happened twice.
type roller struct {
	client *harness.Client
	path   string
	acked  int
	err    error
}

func (r *roller) run(stop *atomic.Bool) error {
	for next := 1; !stop.Load(); {
		if err := r.client.Connect(waitTimeout); err != nil {
			return err
		}
		xid := r.client.NextXid()
		reply, err := r.client.Do(xid, harness.AppendSet(nil, xid, r.path, []byte(strconv.Itoa(next))), ensembleCall)
		if err != nil {
			continue
		}
		if reply.Code != harness.CodeOK {
			return fmt.Errorf("set %s: code %d", r.path, reply.Code)
		}
		r.acked = next
		next++
		time.Sleep(2 * time.Millisecond) // the pace of the load
	}
	return r.client.Connect(waitTimeout)
}

// TestRejoin stops a follower, writes a lot, and lets it come back under load: once with what it has, once with an empty disk.
// `bench rejoin` measures the same at full size.
func TestRejoin(t *testing.T) {
	const away, rate, stallMax = 5000, 300, 10 * time.Second
	e := startEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3, Settings: map[string]string{"snapCount": "2000", "preAllocSize": "1024"}})
	require.NoError(t, harness.Fill(e.Members[0].Addr(), 100, 0))
	for _, empty := range []bool{false, true} {
		leader, err := e.WaitLeader()
		require.NoError(t, err)
		follower := (leader + 1) % 3
		require.NoError(t, e.Members[follower].Stop())
		if empty {
			require.NoError(t, e.Members[follower].Wipe())
		}
		require.NoError(t, harness.Fill(e.Members[leader].Addr(), 100, away))
		load, err := harness.StartOpenLoop([]string{e.Members[leader].Addr(), e.Members[(leader+2)%3].Addr()}, 10, rate)
		require.NoError(t, err)
		require.NoError(t, e.Members[follower].Start())
		stats, err := load.Stop()
		require.NoError(t, err)
		require.Less(t, stats.Longest, stallMax)
		require.NoError(t, e.WaitLevel())
		t.Logf("empty disk %v: %d writes meanwhile, the longest took %v", empty, stats.Writes, stats.Longest.Round(time.Millisecond))
	}
	requireEqualTrees(t, e)
}

// requireEqualTrees dumps every member and compares; nobody may write meanwhile.
func requireEqualTrees(t *testing.T, e *harness.Ensemble) map[string]nodeDump {
	t.Helper()
	require.NoError(t, e.WaitLevel())
	first := dumpTree(t, e.Members[0].Addr())
	delete(first, configNode)
	for _, m := range e.Members[1:] {
		other := dumpTree(t, m.Addr())
		delete(other, configNode)
		requireSameTree(t, first, other, fmt.Sprintf("server %d beside server 1", m.ID))
	}
	return first
}

// configNode is written by each server for itself, at its own time.
const configNode = "/zookeeper/config"

// TestInteropEnsemble runs each real client's program against members of an ensemble. A client that asks for a restart gets
// one of its own server, whatever part that plays.
func TestInteropEnsemble(t *testing.T) {
	t.Setenv("INTEROP_ENSEMBLE", "1") // the programs know what differs from a standalone server
	for _, role := range membersToTest(t) {
		t.Run(role.name+"/go", func(t *testing.T) { goAtWork(t, role.member(t)) })
		for _, program := range clientPrograms() {
			t.Run(role.name+"/"+program.name, func(t *testing.T) { runClient(t, program, role.member(t)) })
		}
	}
}

// member starts an ensemble and returns the server that has the role.
func (r memberRole) member(t *testing.T) *harness.Server {
	// The clients expect the bounds of session timeouts that follow from the tick.
	e := startEnsemble(t, harness.Plan{Kind: serverUnderTest(t), Servers: 3, Settings: map[string]string{"enforceQuota": "true", "maxSessionTimeout": ""}})
	leader, err := e.WaitLeader()
	require.NoError(t, err)
	return e.Members[(leader+r.behind)%3].Server
}

// memberRole is a member by its distance from the leader.
type memberRole struct {
	name   string
	behind int
}

func membersToTest(t *testing.T) []memberRole {
	all := []memberRole{{"leader", 0}, {"follower", 1}, {"other-follower", 2}}
	switch which := os.Getenv(envMembers); which {
	case "all":
		return all
	case "leader":
		return all[:1]
	case "", "follower":
		return all[1:2]
	default:
		t.Fatalf("%s=%q", envMembers, which)
	}
	return nil
}

// dataDirectories are where the storage tests keep data that the reference server wrote.
func dataDirectories() string {
	return filepath.Join(harness.Root(), "internal", "storage", "testdata", "datadirs")
}
