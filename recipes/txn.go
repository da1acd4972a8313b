package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Txn is a transaction that is being put together: all of its operations happen, or none. It is for one goroutine.
type Txn struct {
	c   *Client
	ops []any
	err error // the first path that cannot be one
}

// TxnError tells which operation made a transaction fail.
type TxnError struct {
	Index int    // from 0
	Op    string // what it was to do
	Err   error  // what the server says of it, such as zk.ErrBadVersion
}

func (e *TxnError) Error() string { return fmt.Sprintf("operation %d, %s: %v", e.Index, e.Op, e.Err) }

func (e *TxnError) Unwrap() error { return e.Err }

// Txn begins a transaction without operations.
func (c *Client) Txn() *Txn { return &Txn{c: c} }

// Check makes the transaction depend on the version of a node's data; -1 asks only that the node exists.
func (t *Txn) Check(path string, version int32) *Txn {
	return t.add(path, &zk.CheckVersionRequest{Path: t.c.Path(path), Version: version})
}

// Create makes a node, with the flags of Client.Create but for containers.
func (t *Txn) Create(path string, data []byte, flags int32) *Txn {
	return t.add(path, &zk.CreateRequest{Path: t.c.Path(path), Data: data, Acl: t.c.opts.ACL, Flags: flags})
}

// Set replaces the data of a node if it has that version; -1 stands for any.
func (t *Txn) Set(path string, data []byte, version int32) *Txn {
	return t.add(path, &zk.SetDataRequest{Path: t.c.Path(path), Data: data, Version: version})
}

// Delete deletes a node without children if its data has that version; -1 stands for any.
func (t *Txn) Delete(path string, version int32) *Txn {
	return t.add(path, &zk.DeleteRequest{Path: t.c.Path(path), Version: version})
}

func (t *Txn) add(path string, op any) *Txn {
	if err := checkPath(path); err != nil && t.err == nil {
		t.err = err
	}
	t.ops = append(t.ops, op)
	return t
}

// Commit sends the transaction, at most once, and returns one result per operation: the path of a node that was made, below
// the namespace, or the stat of one that was set. If it fails because of an operation, the error holds a *TxnError. If the
// reply is lost, it is ErrUnknown.
func (t *Txn) Commit(ctx context.Context) ([]zk.MultiResponse, error) {
	if t.err != nil {
		return nil, t.err
	}
	results, err := sentOnce(ctx, t.c, func(conn *zk.Conn) ([]zk.MultiResponse, error) { return conn.Multi(t.ops...) })
	if failed := t.failed(results); failed != nil {
		return nil, fmt.Errorf("transaction: %w", failed)
	}
	if err != nil {
		return nil, fmt.Errorf("transaction: %w", err)
	}
	for i := range results {
		if results[i].String != "" {
			results[i].String = t.c.below(results[i].String)
		}
	}
	return results, nil
}

// failed returns what the first operation with an error of its own says; the others only say that they did not happen.
func (t *Txn) failed(results []zk.MultiResponse) error {
	for i, r := range results {
		if r.Error != nil && i < len(t.ops) && !rolledBack(r.Error) {
			return &TxnError{Index: i, Op: describe(t.ops[i]), Err: r.Error}
		}
	}
	return nil
}

// rolledBack tells the answers of operations that did not happen because of another one: those before it have no error code
// and those behind it the one of an inconsistency, for which package zk has no name.
func rolledBack(err error) bool {
	return errors.Is(err, zk.ErrAPIError) || err.Error() == "unknown error: -2"
}

func describe(op any) string {
	switch op := op.(type) {
	case *zk.CheckVersionRequest:
		return "check " + op.Path
	case *zk.CreateRequest:
		return "create " + op.Path
	case *zk.SetDataRequest:
		return "set " + op.Path
	case *zk.DeleteRequest:
		return "delete " + op.Path
	}
	return "unknown"
}
