// Package zab is the atomic broadcast under the servers: it orders transactions and says when each is durable where it
// must be. It is pure: no goroutine, no clock, no file, no socket. Everything that happens to it is an Input, everything
// it wants done is in a Ready.
//
// The way through it: Node.Step takes one Input, Node.Ready hands out what the shell has to do (entries to write, messages
// to send, entries that are committed), the shell answers with InputPersisted. Node.NextZxid tells the id that the next
// proposal must carry, so that the proposer can write it into the transaction before it proposes.
//
// A standalone server runs it in fixed-epoch mode: a quorum of one. There is no election and no discovery, the epoch is
// that of the last transaction in the log, the epoch files stay untouched, and an entry is committed as soon as it is
// durable here.
package zab
