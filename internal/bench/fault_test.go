package bench

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeLoad is a configuration for fake servers, which have no nodes to be looked at.
func fakeLoad(portable bool, fakes ...*fake) Config {
	c := Default(Get)
	c.Servers = nil
	for _, f := range fakes {
		c.Servers = append(c.Servers, f.addr())
	}
	c.Sessions, c.Outstanding, c.Nodes, c.Keep, c.portable = 8, 4, 10, true, portable
	c.Warmup, c.Duration, c.SilenceMax = 0, 0, 10*time.Second
	return c
}

// preparing is how many requests fakeLoad makes on a server before the load.
const preparing = 15

// waitMax bounds everything that the tests wait for.
const waitMax = 30 * time.Second

// await returns when a server has taken so many requests, or the test is over.
func (f *fake) await(ctx context.Context, requests int64) {
	for ; f.requests.Load() < requests && ctx.Err() == nil; time.Sleep(time.Millisecond) {
	}
}

// bounded is the context of a run that must not go on for ever, whatever becomes of it.
func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), waitMax)
	t.Cleanup(cancel)
	return ctx
}

// refusing is an address where connections are refused. Its port stays taken as long as the test runs: it is that of the
// near end of a connection.
func refusing(t *testing.T) string {
	t.Helper()
	conn, err := net.Dial("tcp4", startFake(t).addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

// pollers runs a test with each poller.
func pollers(t *testing.T, f func(t *testing.T, portable bool)) {
	t.Run("own", func(t *testing.T) { f(t, false) })
	t.Run("portable", func(t *testing.T) { f(t, true) })
}

// A server that falls silent ends the run, after a bounded time and with what was measured until then.
func TestStuck(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{0, 5000} {
		f := startFake(t)
		c := fakeLoad(rate > 0, f)
		c.Duration, c.Rate, c.SilenceMax = time.Hour, rate, 500*time.Millisecond
		ctx := bounded(t)
		go func() {
			f.await(ctx, 500)
			f.silent.Store(true)
		}()
		res, err := Run(ctx, c)
		require.ErrorContains(t, err, "no answer for")
		require.GreaterOrEqual(t, res.Operations, int64(500-preparing-c.Sessions*c.Outstanding))
		require.Less(t, res.DurationSeconds, 60.0)
	}
}

// It may also be silent from the start, or not be there, or not be a server of this protocol.
func TestNoServer(t *testing.T) {
	silent := startFake(t)
	silent.silent.Store(true)
	full := startFake(t)
	full.admits.Store(0)
	other, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer other.Close()
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			conn.Close()
		}
	}()
	for _, tc := range []struct{ name, addr, want string }{
		{"silent", silent.addr(), "i/o timeout"},
		{"refusing", full.addr(), "maxClientCnxns"},
		{"gone", refusing(t), "connection refused"},
		{"another protocol", other.Addr().String(), "does not seem to be a ZooKeeper server"},
		{"no port", "127.0.0.1:nonsense", "unknown port"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := fakeLoad(false)
			c.Servers, c.Count = []string{tc.addr}, 10
			if tc.addr == silent.addr() {
				c.SilenceMax = 200 * time.Millisecond
			}
			res, err := Run(t.Context(), c)
			require.ErrorContains(t, err, tc.want)
			require.Zero(t, res.Operations)
			require.NoError(t, c.Check(), "the configuration is not to blame")
		})
	}
}

// The sessions of the load find out by themselves, too.
func TestServerGoesBeforeTheLoad(t *testing.T) {
	pollers(t, func(t *testing.T, portable bool) {
		f := startFake(t)
		f.admits.Store(5) // two sessions prepare
		c := fakeLoad(portable, f)
		c.Count = 10
		_, err := Run(t.Context(), c)
		require.ErrorContains(t, err, "opening the sessions: "+f.addr())
		require.ErrorContains(t, err, "maxClientCnxns may be too low for 8 sessions")
	})
}

// A closed loop ends when a connection does.
func TestConnectionLost(t *testing.T) {
	pollers(t, func(t *testing.T, portable bool) {
		f := startFake(t)
		c := fakeLoad(portable, f)
		c.Duration = time.Hour
		ctx := bounded(t)
		go func() {
			f.await(ctx, 500)
			f.cut()
		}()
		res, err := Run(ctx, c)
		require.ErrorContains(t, err, f.addr())
		require.Positive(t, res.Operations)
	})
}

// A reply that is missing is noticed, not counted for another.
func TestOrder(t *testing.T) {
	f := startFake(t)
	f.skip.Store(200)
	c := fakeLoad(false, f)
	c.Count = 1000
	_, err := Run(t.Context(), c)
	require.ErrorContains(t, err, "where that with xid")
}

// In an open loop a stall shows in every request that was due meanwhile, however few can be outstanding, and all that were
// due are made.
func TestStallShows(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	f := startFake(t)
	c := fakeLoad(false, f)
	c.Sessions, c.Outstanding = 2, 2
	c.Rate, c.Duration = 1000, 600*time.Millisecond
	ctx := bounded(t)
	go func() {
		f.await(ctx, 200)
		f.stall(stall)
	}()
	res, err := Run(ctx, c)
	require.NoError(t, err)
	require.EqualValues(t, 600, res.Operations)
	require.Zero(t, res.Errors)
	require.GreaterOrEqual(t, res.Latency.Max, float64((stall - 10*time.Millisecond).Microseconds()))
	// 200 of 600 were delayed, by 0 to 200 ms.
	require.GreaterOrEqual(t, res.Latency.P90, 100_000.0)
	require.GreaterOrEqual(t, res.Latency.Mean, 25_000.0)
	require.Equal(t, 1000.0, res.RatePerSecond)
}

// In an open loop sessions survive their connections, on the next server. What was outstanding counts as lost.
func TestReconnect(t *testing.T) {
	t.Parallel()
	pollers(t, func(t *testing.T, portable bool) {
		a, b := startFake(t), startFake(t)
		c := fakeLoad(portable, a, b)
		c.Rate, c.Count = 2000, 1000
		ctx := bounded(t)
		go func() {
			a.await(ctx, 200)
			a.listener.Close()
			a.gate.Lock() // what is on its way stays unanswered
			defer a.gate.Unlock()
			a.await(ctx, a.requests.Load()+4)
			a.cut()
		}()
		res, err := Run(ctx, c)
		require.NoError(t, err)
		require.EqualValues(t, 1000, res.Operations+res.Errors)
		require.Positive(t, res.Errors)
		require.Equal(t, map[string]int64{"ConnectionLoss": res.Errors}, res.ErrorCodes)
		errors := int64(0)
		for _, i := range res.Timeline {
			errors += i.Errors
		}
		require.Equal(t, res.Errors, errors)
		require.EqualValues(t, 4, b.sessions.Load()-1, "sessions move, they are not opened anew; one was for the preparation")
	})
}

// What servers use is told, also of one that ends during the run.
func TestUsage(t *testing.T) {
	t.Parallel()
	child := exec.Command("sleep", "60")
	require.NoError(t, child.Start())
	f := startFake(t)
	c := fakeLoad(false, f)
	c.Duration, c.PIDs = 100*time.Millisecond, []int{os.Getpid(), child.Process.Pid}
	c.Warmup = 20 * time.Millisecond
	ctx := bounded(t)
	go func() {
		f.await(ctx, 100)
		child.Process.Kill()
		child.Wait()
	}()
	res, err := Run(ctx, c)
	require.NoError(t, err)
	require.Positive(t, res.Server.RSSMiB)
	require.GreaterOrEqual(t, res.Server.CPUSeconds, 0.0)
	require.Positive(t, res.GeneratorCPUSeconds)

	c.PIDs = []int{child.Process.Pid}
	_, err = Run(t.Context(), c)
	require.ErrorContains(t, err, "--pid")
}

// Who interrupts a run hears of the nodes that could not be removed, with what was measured.
func TestInterruptedAndLeft(t *testing.T) {
	f := startFake(t)
	c := fakeLoad(false, f)
	c.Duration, c.Keep = time.Hour, false
	ctx, cancel := context.WithCancel(bounded(t))
	go func() {
		f.await(ctx, 500)
		f.admits.Store(0) // the session that would clean up is refused
		cancel()
	}()
	res, err := Run(ctx, c)
	require.NotErrorIs(t, err, ErrInterrupted)
	require.ErrorContains(t, err, "nodes of this run stay below /zabra-bench")
	require.Positive(t, res.Operations)

	// One that has made nothing yet has nothing to tell.
	const admits = 10
	f.silent.Store(true)
	f.admits.Store(admits)
	again, cancelAgain := context.WithCancel(bounded(t))
	go func() {
		for ; f.admits.Load() == admits && again.Err() == nil; time.Sleep(time.Millisecond) {
		}
		cancelAgain()
	}()
	_, err = Run(again, c)
	require.ErrorIs(t, err, ErrInterrupted)
}
