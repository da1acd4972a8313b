package lock

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
	"zabra/server/servertest"
)

// waitersVariable is how many stand in the line of TestOneReleaseWakesOne, 50 without it.
const waitersVariable = "ZABRA_LOCK_WAITERS"

// queue is a line of clients with a proxy each.
type queue struct {
	t       *testing.T
	w       *recipestest.World
	clients []*recipes.Client
	proxies []*servertest.Proxy
	granted chan ticket
}

// ticket is a grant to one of the clients.
type ticket struct {
	client int
	guard  *Guard
}

// TestOneReleaseWakesOne counts, at every waiter's connection and at the server, what one release of the lock costs.
func TestOneReleaseWakesOne(t *testing.T) {
	waiters, releases := 50, 10
	if text := os.Getenv(waitersVariable); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		waiters = n
	}
	q := newQueue(t, waiters)
	ctx := recipestest.Context(t)
	holder, err := NewMutex(q.w.Client(t), "/herd", Options{}).Lock(ctx)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(ctx)
	var lines sync.WaitGroup
	defer lines.Wait()
	defer cancel()
	q.lineUp(ctx, &lines)
	winner := -1
	for range min(releases, waiters-1) {
		notifications, reads := q.notifications(), q.reads()
		told := deletionsTold(t, q.w)
		require.NoError(t, holder.Unlock(ctx))
		next := <-q.granted
		require.Greater(t, next.guard.Token(), holder.Token())
		q.settle(ctx)
		require.Equal(t, 1, total(q.notifications())-total(notifications), "notifications of one release")
		require.Equal(t, 1, q.notifications()[next.client]-notifications[next.client], "the one that was told got the lock")
		require.Equal(t, 1, total(q.reads())-total(reads), "waiters that looked at the line")
		if told >= 0 {
			require.EqualValues(t, 1, deletionsTold(t, q.w)-told, "watchers told by the server's own count")
		}
		holder, winner = next.guard, next.client
	}
	require.GreaterOrEqual(t, winner, 0)
	require.NoError(t, holder.Unlock(context.WithoutCancel(ctx)))
}

func newQueue(t *testing.T, waiters int) *queue {
	q := &queue{t: t, w: recipestest.Start(t), granted: make(chan ticket, waiters)}
	for range waiters {
		c, proxy := q.w.Faulty(t, timeout(patience)) // the server gives what it can
		q.clients, q.proxies = append(q.clients, c), append(q.proxies, proxy)
	}
	return q
}

// lineUp has all clients wait, and returns when the server knows all their watches.
func (q *queue) lineUp(ctx context.Context, lines *sync.WaitGroup) {
	for i, c := range q.clients {
		lines.Go(func() {
			guard, err := NewMutex(c, "/herd", Options{}).Lock(ctx)
			if err == nil {
				q.granted <- ticket{i, guard}
			} else if ctx.Err() == nil {
				q.t.Error(err)
			}
		})
	}
	recipestest.Eventually(q.t, func() bool {
		for _, p := range q.proxies {
			if p.Requests(servertest.OpGetData) == 0 {
				return false
			}
		}
		return true
	}, "all waiters watch")
	q.settle(ctx)
}

// settle returns when each client has had everything that the server had for it before: replies and events of a connection
// come in order, so an answer is behind all of them.
func (q *queue) settle(ctx context.Context) {
	for _, c := range q.clients {
		_, err := c.Exists(ctx, "/herd")
		require.NoError(q.t, err)
	}
}

func (q *queue) notifications() (counts []int) {
	for _, p := range q.proxies {
		counts = append(counts, p.Notifications())
	}
	return counts
}

func (q *queue) reads() (counts []int) {
	for _, p := range q.proxies {
		counts = append(counts, p.Requests(servertest.OpGetChildren2))
	}
	return counts
}

func total(counts []int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// deletionsTold returns how many watchers the server has told of deletions, by its own count, and -1 if it does not say.
func deletionsTold(t *testing.T, w *recipestest.World) int {
	conn, err := net.Dial("tcp", w.Raw(t).Server())
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprint(conn, "mntr")
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "zk_sum_node_deleted_watch_count\t"); found {
			n, err := strconv.Atoi(value)
			require.NoError(t, err)
			return n
		}
	}
	return -1
}
