// Package recipes is what the coordination recipes for Go stand on: a client that knows how far its session can be relied
// on. They speak to any ZooKeeper through github.com/go-zookeeper/zk, and use the same nodes as Curator and kazoo where those have
// the recipe, so that processes in Go, Java and Python can wait in one line. The recipes are in the packages below:
//
//   - [zabra/recipes/lock]: mutexes, locks for readers and writers, semaphores, and fences
//   - [zabra/recipes/election]: one leader among many
//   - [zabra/recipes/node], [zabra/recipes/group]: a node that is kept in place, and members that know of each other
//   - [zabra/recipes/cache]: copies of nodes in memory
//   - [zabra/recipes/config]: typed configuration, with versions and cohorts
//   - [zabra/recipes/discovery]: instances of services
//   - [zabra/recipes/queue], [zabra/recipes/counter], [zabra/recipes/barrier]: work, numbers, and waiting for each other
//   - [zabra/recipes/schema]: rules for what a program does with its nodes
//
// A program makes one Client with Connect, and gives it to all recipes. zabra/server/servertest has servers to test it with.
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
