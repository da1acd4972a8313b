// Package storage keeps one server's data on disk, in ZooKeeper's own formats: stop either server, start the other one
// on the same directory. README.md holds the assumptions about the disk and the rules that follow from them.
//
// The way in: Open, OpenSnapshot and OpenLog to load, Begin, then Append and Sync for ever. WriteSnapshot and Purge run
// beside. A member of an ensemble has more to do: EpochsForStart, then Perform for whatever the core wants on disk; History
// and OpenTransfer bring another server level, Receive and InstallSnapshot are that server's side.
//
// # Transaction log
//
// log.<zxid> is named after its first transaction, in hex. All integers are big-endian.
//
//	offset  bytes
//	0       4    magic "ZKLG"
//	4       4    version 2
//	8       8    dbid 0
//	16      ...  records
//	...     ...  zeros up to 16 + n * preAllocSize, cut off when the log is finished
//
// A record:
//
//	8    Adler-32 of the payload, of the payload only; the upper half is zero
//	4    length n of the payload, at least 32: a zero length is no record
//	n    payload: the encoded transaction, which begins with session (8), cxid (4), zxid (8), time (8), type (4)
//	1    0x42
//
// # Snapshot
//
// snapshot.<zxid>, with .gz or .snappy when it is compressed. The stream inside belongs to package znode, checksums
// included. gz is plain gzip. snappy has the framing of the Java library:
//
//	16   82 'S' 'N' 'A' 'P' 'P' 'Y' 00, version 1 (4), compatible version 1 (4)
//	then per block of at most 32 KiB: length (4), raw snappy block
//
// # Small files
//
// acceptedEpoch and currentEpoch hold a decimal number. zabra.state is drawn in state.go. zabra.lock is empty and locked
// while a server runs. zabra.received is a snapshot on its way from another server, zabra.received.info the note about it:
// one line of text, see receivedNote. zabra.*.tmp are unfinished and removed at start.
//
// superseded, beside version-2, holds what the last installed snapshot has replaced. It is never read.
package storage
