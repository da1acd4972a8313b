// Package group has members that know of each other: each has an id and a payload, and everybody can see who is there.
//
// The main path is Join, node.Start and Watch.
//
// A member is an ephemeral node, called like the id, with the payload as data: what Curator's GroupMember makes, so members in
// Java and in Go are in one group. It is made again after the session was lost or somebody has deleted it; see package node.
//
// What is guaranteed: a member whose process has died is gone from the group after its session timeout at the latest. What
// is not: that a member which is listed is alive, or that one which is not listed is dead. A process without a connection is
// listed until its session ends, and one that has lost its session is missing until it has been heard of again. Two processes
// with the same id write into the same node, so ids must differ. The id of a process that was killed and starts again stays
// in the group, with the new payload; there is a moment without it when the old session ends.
package group
