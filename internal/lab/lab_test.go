package lab

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/server/servertest"
)

// The point of the recipe: however many wait, a release is one notification, to the one whose turn it is, and no request is in
// vain. The herd is told each time, all of it, and asks in vain.
func TestNotificationsOfARelease(t *testing.T) {
	for _, waiters := range []int{50, 500} {
		for _, mode := range []Mode{Queue, Herd} {
			t.Run(fmt.Sprint(mode, " ", waiters), func(t *testing.T) {
				s := startServer(t)
				rounds := 5
				if waiters > 50 {
					rounds = 1
				}
				r := runLab(t, configFor(s, mode, waiters, rounds))
				require.Len(t, r.rows, rounds)
				require.Empty(t, r.said)
				for i, row := range r.rows {
					n := int64(waiters)
					want := Row{Round: i + 1, Cause: Released, Waiters: waiters, Winner: row.Winner, HandOverMs: row.HandOverMs}
					if mode == Queue {
						// The release, and the winner's look at the line.
						want.Notifications, want.WakeUps, want.Requests, want.Futile = number(1), 1, number(2), number(0)
						want.Winner = fmt.Sprintf("c%0*d", len(fmt.Sprint(waiters+1)), i+2) // first come, first served
					} else {
						// The release, an attempt each, and those in vain look at the node again.
						want.Notifications, want.WakeUps, want.Requests, want.Futile = number(n), waiters, number(1+n+n-1), number(2*(n-1))
					}
					require.Equal(t, want, row)
					require.Positive(t, row.HandOverMs)
				}
				require.Equal(t, rounds, r.ended.HandOvers)
				require.Equal(t, patient.Milliseconds(), r.ended.SessionTimeoutMs)
				require.Empty(t, r.ended.Note)
				requireClean(t, s)
			})
		}
	}
}

func number(n int64) *int64 { return &n }

// What a kill costs: nothing is handed over before the session has ended. In the queue a waiter's end wakes the one behind it
// for nothing.
func TestKills(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	for _, mode := range []Mode{Queue, Herd} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			c := configFor(s, mode, 4, 2)
			c.SessionTimeout, c.KillHolderEvery, c.KillWaiterEvery = timeout, 2, 2
			r := runLab(t, c)
			require.Len(t, r.rows, 3)
			waiter, holder := r.rows[1], r.rows[2]
			require.Equal(t, []Cause{Released, WaiterKilled, HolderKilled}, []Cause{r.rows[0].Cause, waiter.Cause, holder.Cause})
			require.Empty(t, waiter.Winner)
			require.NotEmpty(t, waiter.Killed)
			require.Equal(t, r.rows[0].Winner, holder.Killed)
			require.NotEqual(t, holder.Killed, holder.Winner)
			require.Equal(t, 4, holder.Waiters, "another one has come for the one that was killed")
			if mode == Queue {
				require.Equal(t, [...]int64{1, 2, 2}, [...]int64{*waiter.Notifications, *waiter.Requests, *waiter.Futile})
				require.Equal(t, [...]int64{1, 1, 0}, [...]int64{*holder.Notifications, *holder.Requests, *holder.Futile})
			} else {
				require.Equal(t, [...]int64{0, 0, 0}, [...]int64{*waiter.Notifications, *waiter.Requests, *waiter.Futile})
				require.Equal(t, [...]int64{4, 7, 6}, [...]int64{*holder.Notifications, *holder.Requests, *holder.Futile})
			}
			// The server hears a client at least every third of its timeout, and keeps the session for all of it.
			for _, row := range r.rows[1:] {
				require.Greater(t, row.HandOverMs, ms(timeout)/2)
			}
			require.Len(t, r.said, 2)
			require.Contains(t, r.said[0], waiter.Killed+", a waiter, is killed: its connection is cut and its session is not closed. The server ends it after 2s of silence.")
			require.Contains(t, r.said[1], holder.Killed+", the holder, is killed")
			require.Equal(t, [...]int{2, 1, 1}, [...]int{r.ended.HandOvers, r.ended.HoldersKilled, r.ended.WaitersKilled})
			requireClean(t, s)
		})
	}
}

// Somebody at the keyboard pauses, kills, goes on and quits.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := configFor(s, Queue, 3, roundsMax)
	c.SessionTimeout = 2 * time.Second
	keys := make(chan Key)
	c.Keys = keys
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	press := func(key Key) {
		select {
		case keys <- key:
		case <-ctx.Done():
		}
	}
	var once sync.Once
	began, paused := make(chan struct{}), make(chan Now, 1)
	r := &recorder{onRow: func(Row) { once.Do(func() { close(began) }) }, onNow: func(n Now) {
		if n.Paused {
			select {
			case paused <- n:
			default:
			}
		}
	}}
	type outcome struct {
		s   *Summary
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		s, err := Run(ctx, c, r)
		done <- outcome{s, err}
	}()
	press('x')                      // means nothing
	for waiting := true; waiting; { // the first row
		select {
		case <-began:
			waiting = false
		case keys <- 'x':
		}
	}
	press(KeyPause)
	n := <-paused
	require.Equal(t, 3, n.Waiting)
	press(KeyKillWaiter)
	press(KeyKillHolder)
	press(KeyPause)
	for { // until both have come to their end
		r.mu.Lock()
		causes := map[Cause]int{}
		for _, row := range r.rows {
			causes[row.Cause]++
		}
		r.mu.Unlock()
		if causes[WaiterKilled] == 1 && causes[HolderKilled] == 1 && causes[Released] > 0 {
			break
		}
		press('x')
	}
	press(KeyQuit)
	got := <-done
	require.NoError(t, got.err)
	require.Equal(t, 1, got.s.HoldersKilled)
	require.Equal(t, 1, got.s.WaitersKilled)
	require.Equal(t, got.s, r.ended)
}

// Ctrl-C is no failure: what was counted is told.
func TestInterrupted(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{onRow: func(Row) { cancel() }}
	sum, err := Run(ctx, configFor(s, Herd, 2, roundsMax), r)
	require.NoError(t, err)
	require.Equal(t, 1, sum.HandOvers)
	requireClean(t, s)
}

// A server that does not let its counters be read, or not all of them.
func TestServerThatDoesNotTell(t *testing.T) {
	s := startServer(t, servertest.WithConfig("4lw.commands.whitelist", "srvr"))
	r := runLab(t, configFor(s, Queue, 2, 1))
	note := "The server's counters cannot be read (mntr is not in the server's 4lw.commands.whitelist): notifications and requests are not shown."
	require.Equal(t, []string{note}, r.said)
	require.Equal(t, note, r.ended.Note)
	row := r.rows[0]
	require.Nil(t, row.Notifications)
	require.Nil(t, row.Requests)
	require.Nil(t, row.Futile)
	require.Equal(t, 1, row.WakeUps, "that is seen on the connections")
	require.Nil(t, r.ended.Requests)
}

func TestCountersOfPrometheus(t *testing.T) {
	s := startServer(t, servertest.WithConfig("metricsProvider.className", "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider"),
		servertest.WithConfig("metricsProvider.httpHost", "127.0.0.1"), servertest.WithConfig("metricsProvider.httpPort", "0"))
	c := configFor(s, Herd, 3, 2)
	c.Meter = Prometheus("http://" + s.MetricsAddr() + "/metrics")
	r := runLab(t, c)
	for _, row := range r.rows {
		require.Equal(t, [...]int64{3, 6, 4}, [...]int64{*row.Notifications, *row.Requests, *row.Futile})
	}
	c.Meter = Prometheus("http://" + s.MetricsAddr() + "/nothing")
	require.Contains(t, runLab(t, c).ended.Note, "404")
}

// When the server goes, so does the run, and it says why.
func TestServerGoes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	c := configFor(s, Queue, 2, roundsMax)
	c.SessionTimeout = time.Second
	r := &recorder{onRow: func(row Row) {
		if row.Round == 2 {
			s.Kill()
		}
	}}
	_, err := Run(context.Background(), c, r)
	require.Error(t, err) // of the session or of the connection, whichever is noticed first
	require.Nil(t, r.ended)

	_, err = Run(context.Background(), c, r)
	require.ErrorContains(t, err, "connection refused")
}

// A limit on the connections of one address is told with its name.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t, servertest.WithConfig("maxClientCnxns", "3"))
	c := configFor(s, Queue, 5, 1)
	c.connectTime = 2 * time.Second
	_, err := Run(context.Background(), c, &recorder{})
	require.ErrorContains(t, err, "no session within 2s; the server may admit no more connections from one address: see maxClientCnxns")
	requireClean(t, s)
}
