package zab

import "zabra/zab/zxid"

// Token numbers persist operations. Tokens grow by one; confirming a token confirms all before it.
type Token uint64

// PersistKind says what a PersistOp wants on disk.
type PersistKind uint8

// The kinds of persist operations. Fixed-epoch mode uses PersistAppend only.
const (
	PersistAppend          PersistKind = iota + 1 // Entries at the end of the log
	PersistTruncate                               // the log ends exactly at Zxid
	PersistSetAccepted                            // acceptedEpoch := Epoch
	PersistSetCurrent                             // currentEpoch := Epoch
	PersistInstallSnapshot                        // the received snapshot of Zxid is all there is: it gets its name, nothing older is replayed or served any more
)

// PersistOp is one operation of the FIFO to disk. The shell carries them out in order and confirms a prefix with
// InputPersisted; several may be outstanding.
type PersistOp struct {
	Kind PersistKind
	// Token confirms this operation and all before it. A confirmation counts whatever the role is by then: no role begins
	// to vote before the disk has done what the one before gave it.
	Token   Token
	Entries []Entry   // PersistAppend
	Zxid    zxid.Zxid // PersistTruncate, PersistInstallSnapshot
	// Reload, of PersistTruncate, says that the state has applied more than is left: the shell loads it anew from disk
	// after the truncation, as after PersistInstallSnapshot, and hands it over before it confirms the token.
	Reload bool
	Epoch  zxid.Epoch // PersistSetAccepted, PersistSetCurrent
}

// Hangup asks the shell to close a connection, after what was sent on it before.
type Hangup struct {
	Conn ConnID
	Why  string
}

// HistoryRequest asks for a part of the log that is not in memory, for the learner on Conn. It is answered with
// InputHistory; one request per connection is outstanding at a time.
type HistoryRequest struct {
	Conn  ConnID
	After zxid.Zxid
	// Resume is what the learner has of a snapshot whose transfer broke off.
	Resume SnapshotProgress
	// LogOnly forbids the answer with a snapshot: the learner is in the middle of the log already.
	LogOnly bool
	// SnapshotOnly forbids the answer with entries: the learner's log and this one part at an unknown point. The snapshot
	// must not be older than After; if there is none, the answer is an error.
	SnapshotOnly bool
}

// History answers a HistoryRequest: a part of the log, or a snapshot to be transferred.
type History struct {
	Conn ConnID
	// After is that of the request.
	After zxid.Zxid
	// Prev is the last transaction at or before After that the log has, or the point of the snapshot that the log begins
	// at. It equals After when the log has that one.
	Prev zxid.Zxid
	// Entries follow Prev without a gap. They are durable. There is at least one unless the log ends at Prev.
	Entries []Entry
	// Snapshot is set, and Prev and Entries are not, when the log does not reach back to After, or is longer than a
	// snapshot is worth. The shell keeps the file, and the log after it, until the connection is gone or moves on.
	Snapshot *SnapshotFile
	// Offset is where a transfer that broke off is to go on.
	Offset int64
	// Err is set when neither can be had.
	Err error
}

// Barrier is a sync that has been proven: a quorum has answered this leader after the barrier was asked for. Whoever
// asked must have applied everything up to Zxid.
type Barrier struct {
	ID   uint64
	Zxid zxid.Zxid
}

// Ready is what the shell has to do now. Its slices are valid until the next call of Node.Ready; what the entries and
// messages point to is immutable.
type Ready struct {
	// Persist goes to disk, in order.
	Persist []PersistOp
	// Send goes out, in order per connection (and per peer on the election links, where only the newest notification
	// counts). It holds no promise that the disk does not keep already: what waits for the disk comes later.
	Send []Message
	// Hangup closes connections.
	Hangup []Hangup
	// History asks for parts of the log.
	History []HistoryRequest

	// Restored is set when the state is replaced by what the shell has loaded after PersistInstallSnapshot, or after
	// PersistTruncate with Reload. Its last transaction is that Zxid. It happens before Committed.
	Restored *SnapshotFile
	// Committed is to be applied, in order. Each entry is durable on a quorum and on this server.
	Committed []Entry
	// Delivered holds the messages for the layer above: REQUEST, SYNC, REVALIDATE and touches (PONG) at the leader,
	// REFUSED, SYNCED and REVALIDATED at a learner, PING when it is time to answer with touches.
	Delivered []Message
	// Barriers holds the syncs that are proven, in the order in which they were asked for.
	Barriers []Barrier
}
