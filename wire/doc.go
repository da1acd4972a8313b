// Package wire holds the client protocol of ZooKeeper 3.9 as data: operations, error codes, records, the framing of
// messages. It decides nothing; what a request means stands in the packages that serve it.
//
// A connection carries frames, both ways: a length of 4 bytes and as many bytes. The first frame of each side is a
// ConnectRequest and a ConnectResponse. All later ones are
//
//	client to server: RequestHeader, then the record of the operation
//	server to client: ReplyHeader, then, if it reports no error, the record that answers the operation
//
// and watch events, which are frames of the server with the xid XidNotification and a WatcherEvent.
//
// Four names lead through the package: [FrameLength] judges what a frame announces, [Op.Info] is the table of operations,
// [Record] is what all records can do, and [DecodeMulti] holds the only decoding rules that go beyond reading fields.
//
// Decoding takes no more memory than a small multiple of the frame. Paths and data alias the frame; only the strings
// of ACLs, which outlive it, are copied. Bytes behind a record are ignored, as ZooKeeper does.
package wire
