//go:build complexity

package server_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/conf"
	"zabra/wire"
)

const (
	idleFew, idleMany = 10, 10_000
	// idlePortion is how many connections are opened before their clients' ends are handed on.
	idlePortion = 1000
	// idleFiles is how many files the test needs at once.
	idleFiles = idleFew + idleMany + idlePortion + 500
	// idleBatches is how often a batch of requests is measured, idleBatchMin the CPU time of one. The least of them counts.
	idleBatches  = 8
	idleBatchMin = 4 * time.Millisecond
	// idleFactorMax is how much more a request may cost beside a thousand times as many sessions.
	idleFactorMax = 4
	// idleRest is how long nothing happens, idleRestMax what that may cost.
	idleRest    = 2 * time.Second
	idleRestMax = idleRest / 20
)

// crowdedShell is a server with idle connections, and one that is not idle.
type crowdedShell struct {
	*shell
	c *wireConn
}

func startCrowded(t *testing.T, n int) *crowdedShell {
	s := startShell(t, shellConfig(t, func(cfg *conf.Config) { cfg.MaxSessionTimeoutMs = 600_000 }))
	for have := 0; have < n; have += idlePortion {
		dialIdle(t, s, min(idlePortion, n-have), 1).handOn(t)
	}
	c, _ := s.session()
	for _, path := range []string{"/a", "/small", "/small/1", "/small/2"} {
		c.send(createFrame(1, path, make([]byte, 100)))
		c.reply(1, wire.CodeOK)
	}
	return &crowdedShell{s, c}
}

// handOn gives the connections to another process, which does nothing: so this one needs half as many files.
func (c idleClients) handOn(t *testing.T) {
	holder := exec.Command("sleep", "600")
	for i, fd := range c {
		holder.ExtraFiles = append(holder.ExtraFiles, os.NewFile(uintptr(fd), "client"))
		c[i] = -1
	}
	require.NoError(t, holder.Start())
	for _, f := range holder.ExtraFiles {
		require.NoError(t, f.Close())
	}
	t.Cleanup(func() {
		require.NoError(t, holder.Process.Kill())
		require.Error(t, holder.Wait())
	})
}

// call sends a request and waits for its answer.
func (s *crowdedShell) call(xid int32, op wire.Op, r wire.Record) []byte {
	s.c.send(requestFrame(xid, op, r))
	return s.c.reply(xid, wire.CodeOK)
}

func (s *crowdedShell) createAndDelete(flags int32) {
	body := s.call(3, wire.OpCreate, &wire.CreateRequest{Path: []byte("/small/new-"), ACL: wire.OpenACL, Flags: flags})
	s.call(4, wire.OpDelete, &wire.PathVersionRequest{Path: body[4:], Version: -1})
}

func (s *crowdedShell) openAndClose() {
	c, _ := s.session()
	c.send(requestFrame(1, wire.OpCloseSession, nil))
	c.reply(1, wire.CodeOK)
	require.Empty(s.t, c.rest())
	require.NoError(s.t, c.Close())
}

var idleRequests = []struct {
	name string
	do   func(*crowdedShell)
}{
	{"getData", func(s *crowdedShell) { s.call(2, wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a")}) }},
	{"exists", func(s *crowdedShell) { s.call(2, wire.OpExists, &wire.PathWatchRequest{Path: []byte("/a")}) }},
	{"getChildren", func(s *crowdedShell) { s.call(2, wire.OpGetChildren, &wire.PathWatchRequest{Path: []byte("/small")}) }},
	{"ping", func(s *crowdedShell) { s.call(wire.XidPing, wire.OpPing, nil) }},
	{"setData", func(s *crowdedShell) {
		s.call(2, wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Version: -1})
	}},
	{"create", func(s *crowdedShell) { s.createAndDelete(wire.FlagPersistent) }},
	{"sequential", func(s *crowdedShell) { s.createAndDelete(wire.FlagSequential) }},
	{"watch", func(s *crowdedShell) {
		s.call(2, wire.OpGetData, &wire.PathWatchRequest{Path: []byte("/a"), Watch: true})
		s.c.send(requestFrame(3, wire.OpSetData, &wire.SetDataRequest{Path: []byte("/a"), Version: -1}))
		s.c.reply(wire.XidNotification, wire.CodeOK)
		s.c.reply(3, wire.CodeOK)
	}},
	{"session", (*crowdedShell).openAndClose},
}

// processCPU is what the process has used: the server, and the clients that are not idle.
func processCPU(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (s *crowdedShell) cpuOf(do func(*crowdedShell), n int) time.Duration {
	began := processCPU(s.t)
	for range n {
		do(s)
	}
	return processCPU(s.t) - began
}

// allowFiles lets the process open n files.
func allowFiles(t *testing.T, n uint64) {
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	if before.Cur >= n {
		return
	}
	err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: max(n, before.Max)})
	require.NoError(t, err, "this test opens %d files: raise the limit with `ulimit -n %d`", n, n)
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}

// TestCostDoesNotGrowThroughSockets compares what a request costs beside 10 and beside 10,000 idle connections.
func TestCostDoesNotGrowThroughSockets(t *testing.T) {
	allowFiles(t, idleFiles)
	few, many := startCrowded(t, idleFew), startCrowded(t, idleMany)
	runtime.GC() // and none while it is measured: what it costs depends on when it comes
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for _, req := range idleRequests {
		n := 1
		for few.cpuOf(req.do, n) < idleBatchMin {
			n *= 2
		}
		least := [2]time.Duration{few.cpuOf(req.do, n), many.cpuOf(req.do, n)}
		for range idleBatches {
			least[0], least[1] = min(least[0], few.cpuOf(req.do, n)), min(least[1], many.cpuOf(req.do, n))
		}
		a, b := least[0]/time.Duration(n), least[1]/time.Duration(n)
		t.Logf("%-12s %8v beside %d, %8v beside %d", req.name, a, idleFew, b, idleMany)
		require.LessOrEqual(t, b, idleFactorMax*a, "CPU time of %s", req.name)
	}
	began := processCPU(t)
	time.Sleep(idleRest) // what is measured is time that passes
	rest := processCPU(t) - began
	t.Logf("%v of nothing: %v", idleRest, rest)
	require.LessOrEqual(t, rest, idleRestMax)
	require.Equal(t, idleMany+1, many.Stats().Connections)
}
