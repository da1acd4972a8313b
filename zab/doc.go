// Package zab is the atomic broadcast under the servers: it orders transactions, says when each is durable where it must
// be, and elects the leader that does so. It is pure: no goroutine, no clock, no file, no socket. Everything that happens
// to it is an Input, everything it wants done is in a Ready.
//
// The way through it: Node.Step takes one Input and gives it to the role of the moment: stepLooking, stepLearner or
// stepLeading. Only the become methods change the role. Node.Ready hands out what the shell has to do: what goes to disk,
// what is sent, what is committed and to be applied. The shell reports what came of it with further inputs, such as
// InputPersisted. Node.NextZxid tells the id that the next proposal must carry, so that the proposer can write it into
// the transaction before it proposes.
//
// The files in the order of the protocol: election.go (who leads), leader.go and learner.go (the two ends of discovery
// and synchronisation: the epoch is promised, the history handed on), sync.go (what a learner lacks and how it gets it),
// broadcast.go (acknowledgements, commits, and pings, which prove that the leader still leads). history.go is the log as
// far as it is in memory. disk.go keeps the rule that no promise leaves before it is durable. table.go lists which
// messages are expected when; all others are ignored. zabtest runs whole ensembles of Nodes; its testdata has transcripts
// of what is said, line by line, from the first election to a crash in each phase.
//
// A standalone server runs it in fixed-epoch mode (fixed.go): a quorum of one. There is no election and no discovery, the
// epoch is that of the last transaction in the log, the epoch files stay untouched, and an entry is committed as soon as
// it is durable here.
package zab
