package bench

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/client"
	"zabra/server/servertest"
	"zabra/wire"
)

// small is a configuration for the test's server: a known number of requests, no warm-up, everything kept to be looked at.
func small(workload string, addrs ...string) Config {
	c := Default(workload)
	c.Servers, c.Sessions, c.Outstanding, c.Nodes = addrs, 5, 4, 20
	c.Warmup, c.Duration, c.Count, c.Keep = 0, 0, 200, true
	c.SilenceMax = 10 * time.Second
	return c
}

// children returns the paths of a node's children.
func children(t *testing.T, c *client.Client, path string) (paths []string) {
	t.Helper()
	names, err := c.GetChildren(t.Context(), cmp.Or(path, "/"), false)
	require.NoError(t, err)
	for _, name := range names {
		paths = append(paths, path+"/"+name)
	}
	return paths
}

// versions sums up how often the nodes were set, and requires that they have so many bytes.
func versions(t *testing.T, c *client.Client, paths []string, dataBytes int) (sum int) {
	t.Helper()
	for _, path := range paths {
		data, stat, err := c.GetData(t.Context(), path, false)
		require.NoError(t, err)
		require.Len(t, data, dataBytes, path)
		sum += int(stat.Version)
	}
	return sum
}

// ownDir returns the node that belongs to the run alone.
func ownDir(t *testing.T, c *client.Client, root, workload string) string {
	t.Helper()
	for _, path := range children(t, c, root) {
		if strings.HasPrefix(path, root+"/"+workload+"-") {
			return path
		}
	}
	t.Fatalf("no node of %s", workload)
	return ""
}

// Each workload does to the server what its result says, and that many times.
func TestWorkloads(t *testing.T) {
	const count = 60
	nodes := func(t *testing.T, c *client.Client, root string) []string { return children(t, c, root+"/nodes") }
	server := servertest.Start(t)
	for _, tc := range []struct {
		workload string
		change   func(c *Config)
		look     func(t *testing.T, c *client.Client, root string, res *Result)
	}{
		{Get, nil, func(t *testing.T, c *client.Client, root string, res *Result) {
			require.Len(t, nodes(t, c, root), 20)
			require.Zero(t, versions(t, c, nodes(t, c, root), 100))
		}},
		{Exists, nil, func(t *testing.T, c *client.Client, root string, res *Result) { require.Len(t, nodes(t, c, root), 20) }},
		{Set, func(c *Config) { c.DataBytes = 1024 }, func(t *testing.T, c *client.Client, root string, res *Result) {
			require.Equal(t, count, versions(t, c, nodes(t, c, root), 1024))
		}},
		{Mixed, func(c *Config) { c.ReadPercent = 25 }, func(t *testing.T, c *client.Client, root string, res *Result) {
			sets := versions(t, c, nodes(t, c, root), 100)
			require.InDelta(t, count*3/4, sets, count/8, "the choice is seeded")
			require.Positive(t, res.Reads.P50)
			require.Positive(t, res.Writes.P50)
			require.Equal(t, 25, res.ReadPercent)
		}},
		{Multi, func(c *Config) { c.Ops = 3 }, func(t *testing.T, c *client.Client, root string, res *Result) {
			require.Equal(t, 3*count, versions(t, c, nodes(t, c, root), 100))
		}},
		{Children, func(c *Config) { c.ChildrenPerNode = 7 }, func(t *testing.T, c *client.Client, root string, res *Result) {
			folders := ownDir(t, c, root, Children)
			require.Len(t, children(t, c, folders), 3)
			require.Len(t, children(t, c, folders+"/000002"), 7)
		}},
		{Create, nil, func(t *testing.T, c *client.Client, root string, res *Result) {
			var created []string
			parents := children(t, c, ownDir(t, c, root, Create))
			require.Len(t, parents, 5)
			for _, parent := range parents {
				created = append(created, children(t, c, parent)...)
			}
			require.Len(t, created, count)
			require.Zero(t, versions(t, c, created, 100))
		}},
		{Fill, func(c *Config) { c.Nodes, c.DataBytes = 2500, 10 }, func(t *testing.T, c *client.Client, root string, res *Result) {
			require.Len(t, children(t, c, root+"/fill"), 3)
			require.Len(t, children(t, c, root+"/fill/000001"), 1000)
			rest := children(t, c, root+"/fill/000002")
			require.Len(t, rest, 500)
			require.Contains(t, rest, root+"/fill/000002/000499")
			require.Zero(t, versions(t, c, rest, 10))
		}},
		{Lock, nil, func(t *testing.T, c *client.Client, root string, res *Result) {
			stat, err := c.Exists(t.Context(), ownDir(t, c, root, Lock), false)
			require.NoError(t, err)
			require.Zero(t, stat.NumChildren)
			require.EqualValues(t, 2*(5+count), stat.CVersion, "each hand-over is a node less and a node more, and five stood in line")
		}},
		{Watch, func(c *Config) { c.Watches = 3 }, func(t *testing.T, c *client.Client, root string, res *Result) {
			require.Equal(t, 3*count, versions(t, c, children(t, c, ownDir(t, c, root, Watch)), 100))
			require.Equal(t, 15, res.Fanout.Watchers)
			require.LessOrEqual(t, res.Fanout.First.P50, res.Fanout.Last.P50)
			require.Positive(t, res.Fanout.Answer.P50)
		}},
		{Connect, nil, func(t *testing.T, c *client.Client, root string, res *Result) { require.Empty(t, children(t, c, root)) }},
	} {
		for _, portable := range []bool{false, true} {
			if portable && !slices.Contains([]string{Get, Lock, Watch, Connect}, tc.workload) {
				continue // like get, as far as sockets are concerned
			}
			t.Run(fmt.Sprintf("%s portable=%v", tc.workload, portable), func(t *testing.T) {
				cfg := small(tc.workload, server.Addr())
				cfg.portable, cfg.Root, cfg.Count = portable, fmt.Sprintf("/%s-%v", tc.workload, portable), count
				if tc.change != nil {
					tc.change(&cfg)
				}
				res, err := Run(t.Context(), cfg)
				require.NoError(t, err)
				if tc.workload == Fill {
					require.EqualValues(t, cfg.Nodes, res.Operations)
				} else {
					require.EqualValues(t, count, res.Operations)
				}
				require.Zero(t, res.Errors)
				require.Empty(t, res.ErrorCodes)
				require.Positive(t, res.OperationsPerSecond)
				require.Positive(t, res.Latency.P50)
				require.LessOrEqual(t, res.Latency.P50, res.Latency.Max)
				c := server.Client(t)
				tc.look(t, c, cfg.Root, res)
				requireSessions(t, server.Addr(), 1)
				require.NoError(t, c.Close(t.Context()))
			})
		}
	}
}

// requireSessions requires that a server has so many sessions.
func requireSessions(t *testing.T, addr string, n int) {
	t.Helper()
	answer, err := client.Word(t.Context(), addr, "dump")
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`Session Sets \(\d+\)/\(%d\)`, n), answer)
}

// Without Keep nothing remains, whatever the workload.
func TestTidy(t *testing.T) {
	server := servertest.Start(t)
	c := server.Client(t)
	for _, workload := range Workloads {
		if workload == Fill {
			continue // it is there to leave nodes
		}
		cfg := small(workload, server.Addr())
		cfg.Keep, cfg.Count, cfg.Hold, cfg.Root = false, 30, time.Millisecond, "/tests/bench"
		_, err := Run(t.Context(), cfg)
		require.NoError(t, err, workload)
		require.NotContains(t, children(t, c, ""), "/tests", workload)
	}
}

// What is there already is used, with data of the right size, and stays.
func TestNodesThatExist(t *testing.T) {
	server := servertest.Start(t)
	c := server.Client(t)
	cfg := small(Get, server.Addr())
	_, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	cfg.Keep, cfg.DataBytes, cfg.Nodes = false, 33, 25
	_, err = Run(t.Context(), cfg)
	require.NoError(t, err)
	nodes := children(t, c, "/zabra-bench/nodes")
	require.Len(t, nodes, 20)
	require.Equal(t, 20, versions(t, c, nodes, 33))

	fill := small(Fill, server.Addr())
	for _, errors := range []map[string]int64{nil, {"NodeExists": 20}} {
		res, err := Run(t.Context(), fill)
		require.NoError(t, err)
		require.Equal(t, errors, res.ErrorCodes)
		require.EqualValues(t, 20, res.Operations+res.Errors)
	}
}

// What others have made is neither changed nor removed, whatever it is called.
func TestForeignNodes(t *testing.T) {
	server := servertest.Start(t)
	c := server.Client(t)
	var before []wire.Stat
	foreign := []string{"/app", "/app/folders", "/app/folders/000000", "/app/nodes", "/app/nodes/000000"}
	for _, path := range foreign {
		_, err := c.Create(t.Context(), path, []byte("theirs"), wire.OpenACL, 0)
		require.NoError(t, err)
	}
	for _, path := range foreign {
		stat, err := c.Exists(t.Context(), path, false)
		require.NoError(t, err)
		before = append(before, stat)
	}
	for _, workload := range Workloads {
		cfg := small(workload, server.Addr())
		cfg.Root, cfg.Keep = "/app", false
		_, err := Run(t.Context(), cfg)
		require.ErrorContains(t, err, "is not from zabra bench, nothing was changed: choose a --root", workload)
	}
	for i, path := range foreign {
		stat, err := c.Exists(t.Context(), path, false)
		require.NoError(t, err)
		require.Equal(t, before[i], stat, path)
	}

	// One foreign child among our own is enough, and so is one that cannot be read.
	cfg := small(Get, server.Addr())
	_, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	locked := []wire.ACL{{Perms: wire.PermAll, Scheme: "digest", ID: "bob:x"}}
	_, err = c.Create(t.Context(), cfg.Root+"/theirs", []byte(mark), locked, 0)
	require.NoError(t, err)
	_, err = Run(t.Context(), cfg)
	require.ErrorContains(t, err, cfg.Root+"/theirs is not from zabra bench")
	require.NoError(t, c.Delete(t.Context(), cfg.Root+"/theirs", -1))
	_, err = Run(t.Context(), cfg)
	require.NoError(t, err)
}

// A root that is there and empty is used, and stays as it is.
func TestEmptyRoot(t *testing.T) {
	server := servertest.Start(t)
	c := server.Client(t)
	_, err := c.Create(t.Context(), "/mine", []byte("data"), wire.OpenACL, 0)
	require.NoError(t, err)
	for _, workload := range []string{Children, Set, Create} {
		cfg := small(workload, server.Addr())
		cfg.Root, cfg.Keep = "/mine", false
		_, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Empty(t, children(t, c, "/mine"))
	}
	data, stat, err := c.GetData(t.Context(), "/mine", false)
	require.NoError(t, err)
	require.Equal(t, "data", string(data))
	require.Zero(t, stat.Version)
}

// What fill, a kept and an interrupted run leave behind is no obstacle to any workload, on the same server and root.
func TestAfterAnotherRun(t *testing.T) {
	server := servertest.Start(t)
	c := server.Client(t)
	left := small(Fill, server.Addr())
	_, err := Run(t.Context(), left)
	require.NoError(t, err)
	for _, workload := range []string{Children, Set, Create} {
		left.Workload = workload
		_, err := Run(t.Context(), left)
		require.NoError(t, err)
	}
	before := children(t, c, left.Root)
	require.Len(t, before, 4)
	for _, workload := range Workloads {
		cfg := small(workload, server.Addr())
		cfg.Keep, cfg.Count, cfg.Hold = false, 30, time.Millisecond
		_, err := Run(t.Context(), cfg)
		require.NoError(t, err, workload)
		require.ElementsMatch(t, before, children(t, c, left.Root), workload)
	}
	require.Len(t, children(t, c, left.Root+"/nodes"), 20)
}

// The time bounds a run too, and the timeline tells all of it.
func TestDuration(t *testing.T) {
	server := servertest.Start(t)
	for _, workload := range []string{Get, Watch} {
		cfg := small(workload, server.Addr())
		cfg.Count, cfg.Warmup, cfg.Duration, cfg.Timeline = 0, 20*time.Millisecond, 400*time.Millisecond, 40*time.Millisecond
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.Equal(t, 0.4, res.DurationSeconds)
		require.Positive(t, res.Operations)
		require.InDelta(t, res.OperationsPerSecond, float64(res.Operations)/0.4, 1e-6)
		sum, longest := int64(0), 0.0
		for _, i := range res.Timeline {
			sum += i.Operations
			longest = max(longest, i.MaxUs)
		}
		require.Equal(t, res.Operations, sum)
		require.InEpsilon(t, res.Latency.Max, longest, 0.002)
		require.LessOrEqual(t, len(res.Timeline), 10)
	}
}

// Sessions that do nothing are kept alive, and say so.
func TestIdle(t *testing.T) {
	t.Parallel()
	server := servertest.Start(t)
	cfg := small(Idle, server.Addr())
	cfg.SessionTimeout, cfg.Hold, cfg.PIDs = 2*time.Second, time.Second, []int{os.Getpid()} // pings are due every 2/3 s
	res, err := Run(t.Context(), cfg)
	require.NoError(t, err)
	require.GreaterOrEqual(t, res.Operations, int64(cfg.Sessions))
	require.Zero(t, res.Errors)
	require.Positive(t, res.Server.RSSMiB)
}

// Sessions are dealt out to the servers, and a write on one is there on the others before the load begins. The death of the
// leader is in the picture of an open loop, and not its end.
func TestEnsemble(t *testing.T) {
	e := servertest.StartEnsemble(t, 3)
	leader := e.Leader()
	addrs := []string{e.Server(leader).Addr()}
	for _, id := range e.Followers(2) {
		addrs = append(addrs, e.Server(id).Addr())
	}
	cfg := small(Get, addrs...)
	cfg.Sessions, cfg.Keep, cfg.Count = 6, false, 60
	for _, workload := range []string{Get, Lock, Watch} {
		cfg.Workload = workload
		res, err := Run(t.Context(), cfg)
		require.NoError(t, err)
		require.EqualValues(t, 60, res.Operations)
		require.Zero(t, res.Errors)
	}

	cfg.Workload, cfg.Rate, cfg.Count, cfg.SessionTimeout = Set, 500, 400, 10*time.Second
	c := e.Client(t, e.Follower())
	done := make(chan struct{})
	var res *Result
	var err error
	go func() {
		defer close(done)
		res, err = Run(t.Context(), cfg)
	}()
	for written := false; !written; time.Sleep(time.Millisecond) {
		stat, err := c.Exists(t.Context(), "/zabra-bench/nodes/000007", false)
		written = err == nil && stat.Version > 0
	}
	e.Kill(leader)
	<-done
	require.NoError(t, err)
	require.EqualValues(t, 400, res.Operations+res.Errors)
	require.Positive(t, res.Operations)
	require.Equal(t, res.Errors, res.ErrorCodes["ConnectionLoss"])
	e.Await()
	require.NotContains(t, children(t, e.Client(t, e.Follower()), ""), "/zabra-bench")
}

// Who interrupts a run gets what was measured, and a server without its nodes.
func TestInterrupted(t *testing.T) {
	server := servertest.Start(t)
	cfg := small(Set, server.Addr())
	cfg.Count, cfg.Duration, cfg.Keep = 0, time.Hour, false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := server.Client(t)
	go func() {
		for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if stat, err := c.Exists(ctx, "/zabra-bench/nodes/000000", false); err == nil && stat.Version > 0 {
				cancel()
			}
		}
	}()
	res, err := Run(ctx, cfg)
	require.ErrorIs(t, err, ErrInterrupted)
	require.Positive(t, res.Operations)
	require.Less(t, res.DurationSeconds, 60.0)
	require.NotContains(t, children(t, c, ""), "/zabra-bench")
}

// Whoever watches is told how far the run is.
func TestProgress(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	c := fakeLoad(false, f)
	c.Duration, c.Rate, c.progressPeriod = 500*time.Millisecond, 1000, 20*time.Millisecond
	var seen []Progress
	c.Progress = func(p Progress) { seen = append(seen, p) }
	res, err := Run(t.Context(), c)
	require.NoError(t, err)
	require.NotEmpty(t, seen)
	for _, p := range seen {
		require.Positive(t, p.Seconds)
		require.LessOrEqual(t, p.Operations, res.Operations)
	}
	require.Positive(t, seen[len(seen)-1].Operations)
}
