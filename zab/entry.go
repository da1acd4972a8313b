package zab

import "zabra/zab/zxid"

// Entry is one transaction on its way through log and broadcast.
type Entry struct {
	Zxid zxid.Zxid
	// Payload is the encoded transaction: header, body, optional digest. It is immutable: log, peers and the
	// committed window share it.
	Payload []byte
	// Origin says whose request this is. It travels beside the transaction, never inside it.
	Origin Origin
}

// Origin identifies a request in flight: the server that took it, the connection there, and its place on that connection.
// Session and client xid would not do: clients restart their xids and repeat them. The zero Origin stands for a
// transaction that no client waits for.
type Origin struct {
	Server zxid.ServerID
	Conn   uint64
	Seq    uint64
}

// SnapshotFile names a snapshot on disk.
type SnapshotFile struct {
	Zxid zxid.Zxid
	Name string
}

// LogReader walks over logged transactions in ascending order of zxid.
type LogReader interface {
	// Next returns the next entry, io.EOF at the end of the log, or the error that makes the log unreadable. The
	// payload is valid until the next call.
	Next() (Entry, error)
	Close() error
}
