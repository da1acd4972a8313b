// Package servertest puts a ZooKeeper into a Go test: real servers in the process of the test, which start within
// milliseconds, end with the test, and fail when they are told to. Any client can be tested with them; addresses are those
// of TCP ports. For tests in Java Curator's TestingServer and TestingCluster are the same. The example shows tests of a
// program.
//
//	func TestProgram(t *testing.T) {
//		s := servertest.Start(t)
//		conn, _, err := zk.Connect([]string{s.Addr()}, 10*time.Second)
//		...
//	}
//
// # Servers
//
// Start gives a standalone server on a free port of the loopback interface, with a data directory of its own.
// StartEnsemble gives several that form an ensemble: Ensemble.Leader and Ensemble.Follower tell them apart,
// Ensemble.Server gives each of them. WithConfig sets what stands in a zoo.cfg. Session timeouts may be from 1 to 10 s;
// with WithConfig("tickTime", "100") they are from 200 ms to 2 s.
//
// Server.Client is a client with all operations and no policy, to look and to interfere with.
//
// # Faults
//
//   - Server.Kill is a crash: from one moment on nothing reaches the disk. Server.Stop is an orderly end. Server.Restart
//     starts the server again on the same port and data. Ensemble has the same for its members.
//   - Ensemble.Partition cuts members off from each other, Ensemble.Heal ends that. Clients reach all members meanwhile.
//   - Server.ExpireSession ends a session while its client is alive.
//   - Server.Advance lets time pass: sessions of clients that are gone end, and so do containers and TTL nodes.
//   - Server.Stall stops the disk.
//   - A Proxy is the network between clients and a server. It cuts connections, refuses them, holds them up, makes them
//     slow, and loses single requests and replies. It stands in front of servers of other makes, too.
//
// All of it is durable as in production: what is acknowledged is synced. A disk whose sync takes many milliseconds makes
// for slow tests; a directory in memory, which TMPDIR names, makes for fast ones.
//
// # Rules
//
// Methods of Server and Ensemble are for the test's own goroutine, since they fail the test; those of Proxy, Server.Addr
// and Server.DataDir may be called from any. Servers may be started in parallel tests: they share nothing. Clients are best
// made after their server, so that t.Cleanup ends them before it. When the test is over no goroutine is left.
package servertest
