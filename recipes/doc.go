// Package recipes is what the coordination recipes for Go stand on: a client that knows how far its session can be relied
// on. The recipes are in the packages below: [zabra/recipes/lock], [zabra/recipes/election], [zabra/recipes/cache], and so on.
// They speak to any ZooKeeper through github.com/go-zookeeper/zk, and use the same nodes as Curator and kazoo, so that
// processes in Go, Java and Python can wait in one line.
//
// # What a session is worth
//
// An ephemeral node proves something only while its session lives, and only the ensemble knows whether it does. A client
// that hears nothing has to guess, and a guess that errs must err to the safe side. Connect therefore looks at the frames
// of its connection: each reply proves that the server had the request, so the server keeps the session at least for the
// negotiated timeout after that request was sent. When this lease runs out, Session.Done is closed, whether the ensemble
// has ended the session or not. If the connection returns in time after all, the same session goes on as a new Session.
//
// That is the best that a client can know, and it is not enough to protect a resource outside of ZooKeeper: a process can
// be stopped for a minute between its look at Done and its write. What a lock or an election hands out is a lease with a
// number, the fencing token. A resource that refuses smaller tokens than it has seen is safe; see lock.Fence.
//
// # Errors
//
// Errors of the server are those of package zk, such as zk.ErrNoNode; errors.Is finds them. A write whose reply is lost
// fails with ErrUnknown: it may have been carried out or not. Calls end at once when their context does.
package recipes
