// Package cli is the command line of a ZooKeeper client: the commands of zkCli with their options, output and exit codes,
// and some more for whole subtrees (tree, du, watch, export, import, diff).
//
// The main path is Run: it opens a session, which finds a server and stays connected (session.go), and reads commands from
// its arguments, a terminal or a pipe (run.go). Shell.execute splits a line into words and looks the command up in the
// table (table.go); the files cmd_*.go hold the commands. What they print are facts recorded from zkCli 3.9.5
// (testdata/zkcli.golden); docs/cli.md lists where this package differs on purpose.
package cli
