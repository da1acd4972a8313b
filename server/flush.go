package server

import (
	"sync"

	"zabra/server/replica"
)

// flushQueue holds the connections that steps have left output at. A change that thousands watch must not hold up the
// answers to its own and to other writes: from a step with many connections only the last few are urgent, among them the
// writer's, whose answer came after the events; the others are written beside what is urgent.
type flushQueue struct {
	mu           sync.Mutex
	cond         sync.Cond
	urgent, bulk connQueue
	inRow        int // batches of urgent ones since the last one of others
	closed       bool
}

func (q *flushQueue) init() { q.cond.L = &q.mu }

// add queues connections. It never waits; the slice stays the caller's.
func (q *flushQueue) add(conns []*replica.Conn) {
	if len(conns) == 0 {
		return
	}
	urgent := max(len(conns)-flushBatch, 0)
	q.mu.Lock()
	q.bulk.conns = append(q.bulk.conns, conns[:urgent]...)
	q.urgent.conns = append(q.urgent.conns, conns[urgent:]...)
	q.mu.Unlock()
	if urgent > 0 {
		q.cond.Broadcast()
	} else {
		q.cond.Signal()
	}
}

// take waits for connections and moves the oldest of them to batch. It returns none when the server is being closed.
func (q *flushQueue) take(batch []*replica.Conn) []*replica.Conn {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.urgent.empty() && q.bulk.empty() && !q.closed {
		q.cond.Wait()
	}
	switch {
	case q.closed:
		return nil
	case q.urgent.empty(), !q.bulk.empty() && q.inRow >= flushUrgentInRow:
		q.inRow = 0
		return q.bulk.take(batch, flushBatch)
	default:
		q.inRow++
		return q.urgent.take(batch, flushBatch)
	}
}

func (q *flushQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cond.Broadcast()
}

// connQueue is first in, first out.
type connQueue struct {
	conns []*replica.Conn
	head  int // index of the oldest
}

func (q *connQueue) empty() bool { return q.head == len(q.conns) }

// take moves up to n to batch.
func (q *connQueue) take(batch []*replica.Conn, n int) []*replica.Conn {
	taken := q.conns[q.head:min(q.head+n, len(q.conns))]
	batch = append(batch[:0], taken...)
	clear(taken)
	if q.head += len(taken); q.empty() {
		q.conns, q.head = q.conns[:0], 0
		if cap(q.conns) > flushQueueKeptMax {
			q.conns = nil
		}
	}
	return batch
}

// flushLoop is one flusher: it writes what steps have left to be written, without waiting for any client.
func (s *Server) flushLoop() {
	var batch []*replica.Conn
	for {
		batch = s.flush.take(batch)
		if batch == nil {
			return
		}
		for _, rc := range batch {
			rc.Owner().(*conn).flush()
		}
		clear(batch)
	}
}
