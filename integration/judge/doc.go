//go:build linux

// Package judge decides whether an ensemble of real processes kept its promises while faults were done to it. Workers write and
// read the nodes of key groups and note every call and answer; then three judges, each independent of the others, go through the
// notes:
//
//   - linearizability, by porcupine, of the writes and of sync()+read as one operation; what happened to a write without an
//     answer is left open;
//   - the promises to one session (promises.go), which hold for plain reads too: no zxid goes back, a session sees its own
//     writes, a watch fires before its session is shown anything as new as the change;
//   - the log (replay.go): every answer, of every read as well, is what the transactions in the servers' log files up to the
//     answer's zxid give; every acknowledged write is there once; the files of all servers agree.
//
// TestJudge, which runs it, has the build tag interop.
package judge
