// Package lab runs a line of clients that wait for one lock, and counts what each hand-over costs the server: the notifications
// that it sends, and the requests that it gets and that lead nobody to the lock.
//
// The main path is Run, line.round and line.await. A client of the line is a [zabra/recipes.Client] with a session of its own
// on a connection that is looked at (link), so that the line knows when everybody waits again. How many notifications and
// requests there were is asked of the server (Meter), never summed up from the clients; only which of the requests were those
// of the winner and of the one who released is known from their connections, and how many were pings where the server does
// not count these.
//
// One goroutine runs the line. Each client that waits has one more, and two are those of package zk.
package lab
