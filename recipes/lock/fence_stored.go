package lock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Store keeps the largest token beside a resource, where all who use it see the same: a column of a row, say.
type Store interface {
	// Load returns the token that is kept, 0 if there is none yet.
	Load(ctx context.Context) (int64, error)
	// CompareAndSet replaces the token if it is old, in one step, and tells whether it was.
	CompareAndSet(ctx context.Context, old, new int64) (bool, error)
}

// CheckStored is Fence.Check for a token that is kept in a Store. As there, what is done afterwards may be overtaken. A store
// that can do it had better compare the token and change the resource in one step:
//
//	UPDATE account SET balance = $1, token = $2 WHERE id = $3 AND token <= $2
func CheckStored(ctx context.Context, store Store, token int64) error {
	for {
		seen, err := store.Load(ctx)
		if err != nil {
			return err
		}
		if err := refuse(token, seen); err != nil || token == seen {
			return err
		}
		if done, err := store.CompareAndSet(ctx, seen, token); err != nil || done {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// NodeFence is a fence for nodes in ZooKeeper. It keeps the largest token, as a decimal number, in a node of its own, so that
// all processes share it and it outlives them. Who deletes that node opens the fence.
type NodeFence struct {
	c    *recipes.Client
	path string
}

// NewNodeFence returns the fence that keeps its token at path, which is below the client's namespace. The node is made by the
// first check; missing parents are made, too.
func NewNodeFence(c *recipes.Client, path string) *NodeFence { return &NodeFence{c: c, path: path} }

// Check refuses the token with ErrFenced if a larger one has been presented. What is done afterwards may be overtaken by a
// younger holder; what is done by Commit is not.
func (f *NodeFence) Check(ctx context.Context, token int64) error {
	_, err := f.raise(ctx, token)
	return err
}

// Commit carries out a transaction if no larger token has been presented; the check is part of the transaction. change adds
// the operations to it, and may be called again when another holder comes in between. Of the responses, the first one
// belongs to the check. It fails with ErrFenced, or as Txn.Commit does: with recipes.ErrUnknown if the reply is lost.
func (f *NodeFence) Commit(ctx context.Context, token int64, change func(*recipes.Txn)) ([]zk.MultiResponse, error) {
	for {
		version, err := f.raise(ctx, token)
		if err != nil {
			return nil, err
		}
		txn := f.c.Txn().Check(f.path, version)
		change(txn)
		responses, err := txn.Commit(ctx)
		var failed *recipes.TxnError
		if !errors.As(err, &failed) || failed.Index != 0 || !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) {
			return responses, err
		}
		// Another token came in between. The next look tells whether it is a larger one.
	}
}

// raise makes the token the one that is kept, unless a larger one is, and returns the version of its node.
func (f *NodeFence) raise(ctx context.Context, token int64) (version int32, err error) {
	for {
		data, stat, err := f.c.Get(ctx, f.path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			version, err = 0, f.make(ctx, token)
		case err != nil:
			return 0, err
		default:
			version, err = f.advance(ctx, data, stat.Version, token)
		}
		again := errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) ||
			errors.Is(err, recipes.ErrUnknown) // the next look tells
		if !again {
			return version, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// make makes the node, with the first token. It is no container: it must stay.
func (f *NodeFence) make(ctx context.Context, token int64) error {
	if err := refuse(token, 0); err != nil {
		return err
	}
	if err := f.c.EnsurePath(ctx, path.Dir(f.path)); err != nil {
		return err
	}
	_, err := f.c.Create(ctx, f.path, strconv.AppendInt(nil, token, 10), zk.FlagPersistent)
	return err
}

// advance is raise for a node that exists.
func (f *NodeFence) advance(ctx context.Context, data []byte, version int32, token int64) (int32, error) {
	seen, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("fence %s holds no token: %w", f.path, err)
	}
	if err := refuse(token, seen); err != nil || token == seen {
		return version, err
	}
	stat, err := f.c.Set(ctx, f.path, strconv.AppendInt(nil, token, 10), version)
	if err != nil {
		return 0, err
	}
	return stat.Version, nil
}
