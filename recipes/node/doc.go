// Package node keeps a znode in place: it makes the node, and makes it again whenever it has gone, with the session that held
// it or by somebody else's hand. That is what membership and registration stand on.
//
// The main path is Node.run, Node.round, Node.create and Node.write.
//
// What is guaranteed: while the client is connected, the node stands, but for the time between its end and the moment at which
// this process hears of it and has made it again; and it has the data that was set last. What is not: an ephemeral node goes
// with its session, so there is a gap after each loss of the session; and data that somebody else writes into the node stays,
// until the next Set or until the node is made again.
//
// # A node that is there already
//
// It is taken over as it is, gets the data, and is watched; ours is made when it goes. That is how the ephemeral node of the
// process that ran here before is followed until its session ends. It also means that two processes that keep a node at the
// same path write into the same node, so paths must differ. Own tells whether the node is of this client's session. A
// node of the other kind, persistent where an ephemeral one is to be or the other way round, is not touched: the node waits
// until it has gone.
//
// # Names
//
// They are those of Curator's PersistentNode. With Options.Protect the name begins with a GUID, by which a node is found again
// whose reply was lost ("_c_<guid>-member"); each time that the node is made it has another one. A sequential node keeps its
// number when it is made again. It has to be protected: without a GUID nobody could tell which of several nodes with
// different numbers is the one whose reply was lost, and it would stay behind.
//
// Missing parents are made as containers: the server removes them some time after their last child has gone.
package node
