// Package tools are the offline tools: they print, check, compare and clean what a data directory holds, without a server.
//
// The way in: DumpLog, RecoverLog, ChopLog and VerifyLogs for transaction logs; DumpSnapshot, CompareSnapshots, Summarize
// and VerifySnapshots for snapshots; Purge; and Diagnose, which tells what state a directory is in and what a start would
// do. The texts are those of ZooKeeper's own tools, so that scripts that read them go on working; with Output.JSON each
// thing is one object on a line.
//
// Only Purge, RecoverLog and ChopLog write, and the latter two only new files. Diagnose runs the real recovery of the
// storage on an overlay (overlay.go), a file system that keeps every change in memory.
package tools
