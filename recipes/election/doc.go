// Package election chooses one leader among the processes that take part: [Latch] leads whenever its turn has come, in the
// background; [Selector] runs a function while it leads. Each time of leadership is a [Term] with a fencing token.
//
// The main path is Latch.run, lock.Mutex.Lock, begin and Term.finish.
//
// # What leadership is worth
//
// An election is a lock, and a lock here is a lease; see package lock. Term.Lost is closed when the session is over or the
// connection has been gone for so long that it may be, and nobody else leads before that, as long as the process runs and its
// clock keeps pace. A process that is stopped meanwhile learns of it too late. So whatever the leader writes has to carry
// Term.Token, which is larger than those of all terms before, and what is written to has to refuse smaller ones: see
// lock.Fence.
//
// # When the lease runs out
//
// The term is over then for good, even if the connection comes back in time for the ensemble, and its node is deleted as soon
// as there is a connection. A latch queues again by itself, at the end of the line. So does Selector.RunAgain; Selector.Run
// returns what its function returns. Those who only wait in the line lose their place, too, but nothing else.
//
// # When somebody deletes a node
//
// The ensemble does not tell a leader that its node was deleted by hand, since a watch for that would be a second notification
// at each change of leaders. It looks by itself once in each session timeout. Until then there may be two leaders, of which
// the fence refuses the older one. To have a leader replaced, ask it to relinquish.
//
// # Who else may take part
//
// A latch stands in one line with Curator's LeaderLatch, a selector with Curator's LeaderSelector, which is a lock with the
// participants' ids as data. Election of kazoo is one with kazoo's names: it takes part where all selectors have the option
// Names: lock.Kazoo, or with the names that package lock describes. A path belongs to one kind of election: latches and
// selectors must not be mixed on it.
//
// The path is made when it is missing, as a container: the server removes it some time after the last participant has left.
package election
