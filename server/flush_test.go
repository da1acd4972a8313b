package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/server/replica"
)

func newConns(n int) []*replica.Conn {
	conns := make([]*replica.Conn, n)
	for i := range conns {
		conns[i] = new(replica.Conn)
	}
	return conns
}

// The last connections of a large step, and those of small ones, do not wait behind the rest of it, and the rest is not
// forgotten over them.
func TestFlushQueueOrder(t *testing.T) {
	var q flushQueue
	q.init()
	large, small := newConns(1000), newConns(1)
	q.add(large)
	q.add(small)
	got := q.take(nil)
	require.Equal(t, large[len(large)-flushBatch:], got)
	require.Equal(t, small, q.take(nil))

	seen := map[*replica.Conn]int{}
	for taken := 0; taken < len(large)-flushBatch; {
		q.add(small)
		for _, c := range q.take(nil) {
			if c != small[0] {
				seen[c]++
				taken++
			}
		}
	}
	for _, c := range large[:len(large)-flushBatch] {
		require.Equal(t, 1, seen[c])
	}
	require.True(t, q.bulk.empty())
	q.close()
	require.Nil(t, q.take(nil))
}

func TestConnQueue(t *testing.T) {
	var q connQueue
	conns := newConns(3 * flushQueueKeptMax)
	q.conns = append(q.conns, conns...)
	var got []*replica.Conn
	for !q.empty() {
		got = append(got, q.take(nil, 100)...)
	}
	require.Equal(t, len(conns), len(got))
	for i := range conns {
		require.Same(t, conns[i], got[i])
	}
	require.Nil(t, q.conns, "the memory of a long queue is not kept")
	q.conns = append(q.conns, conns[0])
	require.Len(t, q.take(nil, 100), 1)
	require.NotNil(t, q.conns[:1])
}
