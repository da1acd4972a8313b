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
	PersistInstallSnapshot                        // the received snapshot of Zxid under its final name
	PersistBarrier                                // nothing before Zxid is replayed or served any more
)

// PersistOp is one operation of the FIFO to disk. The shell carries them out in order and confirms a prefix with
// InputPersisted; several may be outstanding.
type PersistOp struct {
	Kind PersistKind
	// Token confirms this operation and all before it.
	Token Token
	// Generation is that of the role which asked; a confirmation for a role that has ended is ignored.
	Generation uint32
	Entries    []Entry    // PersistAppend
	Zxid       zxid.Zxid  // PersistTruncate, PersistInstallSnapshot, PersistBarrier
	Epoch      zxid.Epoch // PersistSetAccepted, PersistSetCurrent
}

// Message goes from one server to another. Fixed-epoch mode has no peers and sends none.
type Message struct {
	To zxid.ServerID
}

// Deferred is a message that promises something about this server's disk: it may leave only when After is persisted.
type Deferred struct {
	After   Token
	Message Message
}

// Ready is what the shell has to do now. Its slices are valid until the next call of Node.Ready.
type Ready struct {
	// Persist goes to disk, in order.
	Persist []PersistOp
	// Send may leave at once.
	Send []Message
	// SendAfterPersist may leave when the named token is durable here.
	SendAfterPersist []Deferred
	// Committed is to be applied, in order. Each entry is durable on a quorum and on this server.
	Committed []Entry
}
