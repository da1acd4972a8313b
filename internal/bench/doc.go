// Package bench loads servers that speak the ZooKeeper protocol and measures how they answer. It is a client of its own,
// made to cost little: usually it shares the machine with the server, and what it uses itself cannot be measured any more.
//
// A few threads drive all sessions. Each has its poller (poll.go): non-blocking sockets, one system call to read and one
// to write per bunch of replies, no goroutine in between. Requests are frames that were encoded once and are patched
// (template.go); of replies, only the header is looked at; the clock is read once per read.
//
// The main path is [Run], thread.turn, thread.read, stream.refill. What a session does is its work (thread.go): stream for
// everything that is request and reply, the others in lock.go, watch.go and connect.go, which has idle, too.
//
// Servers under test may be somebody's own, so nothing is overwritten or removed that this package has not made: see
// run.claim.
package bench
