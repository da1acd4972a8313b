// Package barrier makes processes wait for each other, on the nodes that Curator uses:
//
//   - Barrier is closed while its node exists: Curator's DistributedBarrier and kazoo's Barrier.
//   - Double lets its members begin together and end together: Curator's DistributedDoubleBarrier. The members of kazoo's
//     DoubleBarrier use the same nodes and can take part.
//
// # The nodes of a double barrier
//
// Each member has an ephemeral node with a name of its own below the barrier's node. Who enters and counts enough members
// makes the node "ready" beside them, which everybody else waits for. Who leaves deletes his node and waits until that with
// the smallest name is gone; the member with the smallest name waits for the one with the largest, as often as it
// takes, and goes last. A member whose session ends counts as one that has left.
//
// Go, Java and Python can stand at one barrier. What the others do differently shows at the edges:
//
//   - A "ready" that a crash left behind lets Curator's members through at once, and counts as a member for kazoo's. A
//     member of this package sees that it is older than itself and that nobody else is there, and deletes it.
//   - Curator waits for everybody who is there when it looks, also for members of the next round who were faster. Here a
//     member waits for those who were there when it began to leave.
//   - kazoo's members delete "ready" when they begin to leave. Who is disconnected at that time may miss that the
//     barrier has opened, and waits until its context ends. Among members of Go and Java, "ready" stays until the last has left.
package barrier
