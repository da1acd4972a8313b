package counter

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// ErrVersion is a node whose version has gone round to -1, which the protocol takes for any version: a conditional write is
// impossible. It takes 4,294,967,295 writes to get there. Any unconditional write helps, such as Value.Set.
var ErrVersion = errors.New("counter: the node has the version -1, on which no condition can be put")

// mark is the node that tells whether the last change of a Long was carried out. Nobody else writes it.
type mark struct {
	path    string
	session *recipes.Session
	czxid   int64
	version int32 // as far as is known
	changes int   // that were begun
}

// prepare gets the Long ready for a change: the one before is decided, and there is a mark.
func (l *Long) prepare(ctx context.Context) error {
	if l.pending != nil {
		if err := l.decide(ctx, l.pending); err != nil {
			return fmt.Errorf("counter: the change before has to be decided first: %w", err)
		}
	}
	for l.mark == nil || l.mark.session.Over() {
		l.drop()
		s, err := l.c.AwaitSession(ctx)
		if err != nil {
			return err
		}
		node, err := l.c.CreateProtected(ctx, s, path.Join(l.o.Marks, "mark"), nil, zk.FlagEphemeral)
		if errors.Is(err, recipes.ErrSessionLost) {
			continue
		}
		if err != nil {
			return err
		}
		l.mark = &mark{path: node.Path, session: s, czxid: node.Czxid, version: node.Stat.Version}
	}
	return nil
}

// drop removes the mark.
func (l *Long) drop() {
	if l.mark != nil {
		l.c.DeleteSurely(l.mark.path)
		l.mark = nil
	}
}

// plan computes a change of what was read.
func (l *Long) plan(at reading, f change) (*UnknownError, error) {
	after, err := f(at)
	if err != nil {
		return nil, err
	}
	data, err := l.o.Codec.Encode(after)
	if err != nil {
		return nil, err
	}
	if at.exists && at.stat.Version == -1 {
		return nil, fmt.Errorf("%w: %s", ErrVersion, l.path)
	}
	l.mark.changes++
	name := fmt.Appendf(nil, "%d: %d to %d", l.mark.changes, at.number, after)
	return &UnknownError{Before: at.number, After: after, long: l, at: at, data: data, mark: l.mark, version: l.mark.version, name: name}, nil
}

// errLost is a write without an answer.
var errLost = errors.New("counter: no answer")

// commit sends a change. It fails with errAgain if somebody else was faster, and with errLost if there is no telling.
func (l *Long) commit(ctx context.Context, u *UnknownError) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !u.at.exists {
		if err := l.c.EnsurePath(ctx, path.Dir(l.path)); err != nil {
			return err
		}
	}
	txn := l.c.Txn().Set(u.mark.path, u.name, u.version)
	if u.at.exists {
		txn = txn.Set(l.path, u.data, u.at.stat.Version)
	} else {
		txn = txn.Create(l.path, u.data, zk.FlagPersistent)
	}
	_, err := txn.Commit(ctx)
	var refused *recipes.TxnError
	switch {
	case err == nil:
		l.mark.version = u.version + 1
		return nil
	case !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists):
		if noTelling(ctx, err) {
			u.cause = err
			return errLost
		}
		return err
	case errors.As(err, &refused) && refused.Index == 0:
		l.drop() // the session has ended, or somebody meddles with the mark
	}
	return errAgain
}

// noTelling tells of the error of a write that it may have been carried out all the same.
func noTelling(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, recipes.ErrUnknown) || errors.Is(err, recipes.ErrClosed) ||
		errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}
