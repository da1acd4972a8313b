// Package replica is one server without its sockets, its disk and its clock: it decides, the shell around it does.
//
// The way through it: Conn.Receive takes a request (on the connection's own goroutine) and answers plain reads at once;
// everything else waits in the connection's FIFO until Replica.Step (one goroutine at a time: the stepping goroutine) makes a transaction
// of it (prepWrite), and, when the broadcast says that it is committed and durable, applies it and answers (applyEntry).
// What Step wants done (entries to write, messages to send, connections to flush) is in the Ready that it returns.
//
// Terms. Clients are served while the core says so, as the leader (a standalone server is one) or as a learner; see term.
// Only a leader makes transactions, decides about the end of sessions and knows which connection a session is bound to. A
// learner sends the writes of its clients on (forward), answers them when it applies the transaction that carries their
// Origin, asks the leader before it takes up a session (revalidate), and tells which sessions it has heard when the leader
// pings (answerPing). A sync asks the core for a proof that this server leads, or the leader for one; all syncs of a step
// share one question (askBarrier). When a term ends, all connections end with it.
//
// Order. The FIFO of a connection decides when a request runs. A read may run on the connection's goroutine only while
// nothing of its connection is queued or in flight; otherwise it waits for its turn and runs on the stepping goroutine,
// between the transactions before and after it. A write behind a sync is looked at when the sync is answered. A read, the watch it sets, the zxid of its reply and the reply's place in
// the outbox are one critical section under the tree's read lock; Step appends events and replies to the same outboxes
// under the tree's write lock. So no event overtakes the reply that set its watch, and none comes after a read of the new
// state.
//
// Locks, in the order in which they may be taken: the tree's lock; then conns.mu or the watch tables' locks; then a
// connection's out.mu. inbox.mu and a connection's in.mu are leaves.
package replica
