// Package lock has locks that processes on many machines share: [Mutex], [RWMutex], [Semaphore], and [Multi] for several at
// once. What they hand out is a [Guard] with a fencing token, for a resource that is protected by a [Fence].
//
// The main path is Mutex.Lock, line.queue, line.await and Guard.Unlock.
//
// # What a lock is worth
//
// A lock here is a lease. It is held while the holder's session lives, and whether it does is decided by the ensemble.
// Guard.Lost is closed as soon as the session is over or the connection has been gone for so long that it may be; nobody
// else is granted the lock before that, as long as the process runs and its clock keeps pace. But a process can be stopped
// for a minute between its last look at Lost and its write, and then another one holds the lock already. No lock service can
// prevent that. The resource can: each grant has a token that is larger than those of all grants before it, the resource is
// given the token with each access, and refuses what is older than the youngest it has seen. [Fence] does that for a resource
// in this process, [NodeFence] for nodes in ZooKeeper, and [CheckStored] for what can be compared and set elsewhere.
//
// The ensemble does not tell a holder when somebody deletes the lock's node by hand. Don't.
//
// # The line
//
// Contenders make a sequential ephemeral node each below the path of the lock, and each waits for the one directly before it
// only. So one release wakes one waiter, however many there are, and the lock is granted in the order of arrival. A cancelled
// waiter leaves no node behind: what it may have made is deleted in the background if need be.
//
// A waiter whose session ends has lost its place but nothing else. Lock then lines up again, at the end, by itself.
//
// # Who else may stand in the line
//
// The nodes are called as Curator calls those of InterProcessMutex, InterProcessReadWriteLock and InterProcessSemaphoreV2, so
// programs with Curator stand in the same line as they are. go-zookeeper/zk's own Lock does, too. A kazoo Lock does not know
// the names of others by itself. There are two ways to let it in:
//
//   - With [Kazoo] in the options the nodes here are called as kazoo calls those of Lock, ReadLock and WriteLock. Then kazoo's
//     programs stay as they are, but Curator must stay away: it would take kazoo's names for any order.
//   - For a line of all three languages, kazoo's side is a subclass of Lock whose _NODE_NAME is "-lock-" with the same text as
//     extra_lock_patterns. For readers and writers these are "__READ__" and "__WRIT__".
//
// A name below the path that does not end in a sequence number is a stranger: it is nobody's contender and is ignored. (Curator
// counts it, so don't put any there.) A name with a number counts whatever it begins with: as a reader if it is called like
// Curator's or kazoo's, else as one that excludes all others.
//
// A lock's path is made when missing, as a container: ZooKeeper removes it some time after the last contender has left.
package lock
