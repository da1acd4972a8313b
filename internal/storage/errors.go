package storage

import (
	"errors"
	"fmt"

	"zabra/zab/zxid"
)

// CorruptError says that acknowledged transactions may be lost: a log is damaged before its end, or a part of it is
// missing. Nothing was changed on disk, and the server must not serve.
type CorruptError struct {
	// File is the damaged file with its path, Offset the first byte that makes no sense.
	File   string
	Offset int64
	// Why says what is wrong, Do what an operator can do about it.
	Why, Do string
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("storage: %s is damaged at offset %d: %s. %s", e.File, e.Offset, e.Why, e.Do)
}

// DirError says that a data directory cannot be used.
type DirError struct {
	Dir, Why string
	Err      error // the cause, nil if Why says all
}

// Error implements error.
func (e *DirError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("storage: %s %s: %v", e.Why, e.Dir, e.Err)
	}
	return fmt.Sprintf("storage: %s (%s)", e.Why, e.Dir)
}

// Unwrap returns the cause.
func (e *DirError) Unwrap() error { return e.Err }

// RecordSizeError refuses a transaction that could not be read back under the record limit. Nothing was written, and the
// store goes on.
type RecordSizeError struct {
	Zxid       zxid.Zxid
	Bytes, Max int
}

// Error implements error.
func (e *RecordSizeError) Error() string {
	return fmt.Sprintf("storage: transaction %v has %d bytes, the limit is below %d", e.Zxid, e.Bytes, e.Max)
}

// OrderError says that a transaction does not follow the last one. It is a mistake of the caller; nothing was written.
type OrderError struct {
	Last, Zxid zxid.Zxid
}

// Error implements error.
func (e *OrderError) Error() string {
	return fmt.Sprintf("storage: transaction %v does not follow %v", e.Zxid, e.Last)
}

var (
	// ErrClosed is the answer of a store that was closed.
	ErrClosed = errors.New("storage: closed")
	// ErrNotBegun is the answer to writing before Begin.
	ErrNotBegun = errors.New("storage: the log is not open for appending")
	// ErrNoSnapshot refuses the first log of a directory without a snapshot: ZooKeeper does not start on one.
	ErrNoSnapshot = errors.New("storage: the directory has no snapshot: one must be durable before the first transaction")
	// ErrNoSnapshotToSend is the answer when another server needs a snapshot and there is none that is whole.
	ErrNoSnapshotToSend = errors.New("storage: no snapshot is whole: none can be handed on")
	// ErrNotInLog refuses to cut the log at a transaction that it does not hold.
	ErrNotInLog = errors.New("storage: the log does not hold the transaction to cut at")

	// errSuperseded ends what went on beside a cut or an installation: it was about a history that does not count any more.
	errSuperseded = errors.New("storage: the history was cut or replaced meanwhile")
	// errTooOld says that the log does not reach back to what was asked for.
	errTooOld = errors.New("storage: the log does not reach back that far")
	// errReceptionEnded is the answer of a reception that was given up or that another one took over.
	errReceptionEnded = errors.New("storage: this reception has ended")
)
