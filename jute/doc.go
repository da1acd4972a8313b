// Package jute is the record codec of ZooKeeper: the encoding of everything that its clients send and receive, and of
// the transactions and snapshots on its disk.
//
// The encoding has no tags and no framing. Numbers are big-endian two's complement; a string, a buffer and a vector each
// begin with a 32-bit count, in bytes for the first two and in elements for the third; -1 stands for null, which is not
// the same as empty. A record is its fields in order.
//
//	bool    1 byte, written as 0 or 1; any other value reads as true
//	int     4 bytes
//	long    8 bytes
//	buffer  int length, bytes
//	ustring int length, bytes of UTF-8
//	vector  int count, elements
//
// Four names lead through the package: [Encoder] appends values to a byte slice, [NewDecoder] starts to consume one,
// [Decoder.UString] and [Encoder.UString] hold the only rules that are not obvious, those of strings.
//
// Neither side uses reflection, and neither allocates in steady state: the encoder grows one slice, which its owner may
// recycle, and what the decoder returns aliases its input.
package jute
