// Package sim runs whole ensembles in one goroutine from one seed: servers (server/replica with its zab core, the tree and
// the sessions, the real storage on a file system in memory), the network between them, their disks and clocks, and clients
// that compare what they are told with what is true. Faults strike at random times and at chosen moments of the protocol.
// After each step the invariants are checked; after the faults everything has to work again.
//
// The way in: Run runs one world, Batch.Run many. A world is a list of events in time (schedule.go). server.go, step.go,
// disk.go and transfer.go play the part of the shell around a replica; net.go, electionlink.go and quorumconn.go that of
// the network; client.go and request.go are clients; fault.go says what goes wrong. ghost.go holds what is true: all
// transactions that were ever proposed, the committed sequence, the state that follows from it, and what is durable on
// each disk. The check files compare.
//
// # Assumptions
//
// A world keeps to what the protocol may rely on: connections between servers deliver in order and lose only a suffix, a
// disk keeps what it has synced and may lose or tear everything else (internal/storage/README.md), monotonic clocks do not
// run back and drift by 3 % at most, wall clocks jump, processes may stand still for any time. A disk is emptied only if
// nobody loses a promise by that: see server.maybeWipe.
//
// # Invariants
//
// The numbers are used in docs/bugs.md too.
//
//	E-01  one leadership per epoch                                checkLeadership, checkEstablished
//	E-02  epochs on disk only grow, current <= accepted           checkEpoch, checkRecoveredEpochs
//	E-03  a promise is durable before it is given, and given once checkAckEpoch
//	E-04  an epoch is current only behind its initial history     checkEpochHistory
//	E-05  one payload per zxid, counters contiguous               ghost.checkSame, checkProposed
//	E-06  logs that share a transaction are equal up to it        ghost.checkSame
//	E-07  what is applied was asked for, and proposed by the      ghost.checkProposed, checkRequest, checkApplied
//	      leader of its epoch; nothing is applied twice
//	E-08  what is applied is a beginning of what is committed     checkStatus, checkApplied
//	E-09  in the same order everywhere                            follows from E-06 and E-08
//	E-10  in the order of proposal                                follows from E-06: a leader's log is in that order
//	E-11  older epochs come first                                 follows from E-05 and E-06
//	E-12  a leader proposes behind its initial history            ghost.checkProposed
//	E-13  what is committed is durable on a quorum                ghost.checkCommitQuorum, checkTold
//	E-14  what is acknowledged is durable                         checkSent, checkSynced
//	E-15  what is committed stays                                 ghost.commitUpTo, checkEstablished, checkTruncate, installed
//	E-16  any quorum that starts again has what is committed      world.checkRecoverable, after each change of a disk
//	E-17  clients: success means committed, no zxid goes back,    check_client.go
//	      every read shows the state of the zxid that it names
//	E-18  NEWLEADER is acknowledged behind its history            checkSent, checkEstablished
//	E-19  votes and ACKEPOCH name what is durable                 checkVote, checkAckEpoch
//	E-20  a learner serves behind UPTODATE, with the right state  checkServing, receiveChunk, ghost.historyOf
//	E-21  DIFF, TRUNC and what follows are exact                  checkHeader, checkStream, checkTruncate, checkHistory
//	E-22  what is sent has no gap                                 checkStream
//	E-23  nothing from behind a snapshot barrier is used          checkHistory, checkRecovered
//	E-24  no counter 0 or 0xffffffff                              ghost.checkProposed
//	E-25  loading gives the state of the last transaction         checkReloaded
//	E-26  a crash takes nothing that was durable                  checkRecovered
//	E-27  equal zxid, equal digest                                ghost.apply, checkApplied, world.close
//	E-28  sessions follow from the transactions                   checkSessions, ghost.checkSession, checkHandshake
//	E-29  ephemeral nodes end with their session                  checkApplied, checkSessions, world.close
//	E-30  a new leader gives every session its whole timeout,     ghost.checkExpiry
//	      and no session of a living client is ended in calm
//	E-31  one connection of a session after the other             ghost.checkSession
//	E-34  sequential names rise                                   ghost.checkSequence
//	E-35  stats are in order                                      client.checkRead
//	E-36  observers get a beginning of what is committed          checkStream, checkApplied
//	E-37  sync shows everything committed before it               client.checkReply
//	E-38  after the faults one leader serves and all follow       world.prove
//	E-39  after the faults every client can write, and even while  world.prove, world.close, world.checkBusy
//	      they strike the clients get on
//
// E-32 and E-33 belong to reconfiguration, E-40 to the comparison with ZooKeeper's own servers. Five more have no
// number: WATCH (a client is told of what it watches before it sees anything of it, and of nothing else), LOCAL (nothing is
// applied, and nobody is told anything, that is not on the server's own disk), D-50 (a leader has as much as each of those
// who promised to follow it), WORLD (as many faults strike as a world is to have) and PANIC.
package sim
