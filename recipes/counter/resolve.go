package counter

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// UnknownError is a change of a Long of which it is not known whether it was carried out. For errors.Is it is
// recipes.ErrUnknown, and what has prevented the answer. Resolve finds out, if anybody can.
type UnknownError struct {
	// Before and After are the numbers between which the change was to be.
	Before, After int64

	long    *Long
	cause   error
	at      reading
	data    []byte // of the number after the change
	mark    *mark
	version int32   // of the mark before the change
	name    []byte  // the mark's data after the change
	outcome outcome // guarded by the turn of the Long
}

// outcome is what has become of a change.
type outcome int

const (
	undecided outcome = iota
	done
	notDone // and it never will be
	unknowable
)

// Error tells of the change and what has prevented the answer.
func (u *UnknownError) Error() string {
	return fmt.Sprintf("counter: %s may have been changed from %d to %d: %v", u.long.path, u.Before, u.After, u.cause)
}

// Unwrap returns recipes.ErrUnknown and what has prevented the answer.
func (u *UnknownError) Unwrap() []error { return []error{recipes.ErrUnknown, u.cause} }

// Resolve tells whether the change was carried out. If it returns false without an error, it was not and never will be.
// It fails with this error itself if nobody can tell, now or later; after another error, such as that of the context, it
// may be called again. The next change of the same Long resolves what came before, and Resolve tells the outcome even then.
func (u *UnknownError) Resolve(ctx context.Context) (bool, error) {
	if err := u.long.take(ctx); err != nil {
		return false, err
	}
	defer u.long.give()
	if err := u.long.decide(ctx, u); err != nil {
		return false, err
	}
	if u.outcome == unknowable {
		return false, u
	}
	return u.outcome == done, nil
}

// errNotDone is a change that was not carried out and never will be.
var errNotDone = errors.New("counter: not carried out")

// settle finds out what has become of a change whose answer is lost: nil if it was carried out, errNotDone, or the change
// itself as an error.
func (l *Long) settle(ctx context.Context, u *UnknownError) error {
	l.pending = u
	if l.decide(ctx, u) != nil {
		return u
	}
	switch u.outcome {
	case done:
		return nil
	case notDone:
		return errNotDone
	}
	return u
}

// decide looks until the outcome of a change is known, or that it cannot be.
func (l *Long) decide(ctx context.Context, u *UnknownError) error {
	policy := recipes.Exponential(retryFirst, retryMost)
	for attempt := 0; u.outcome == undecided; attempt++ {
		if err := l.look(ctx, u); err != nil && !errors.Is(err, errAgain) && !noTelling(ctx, err) {
			return err
		}
		if u.outcome != undecided {
			break
		}
		wait, _ := policy(attempt)
		if err := l.c.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	if l.pending == u {
		l.pending = nil
	}
	return nil
}

// look reads the mark, and the number if there is no mark any more. All of that has to be read in one session: a new one
// may begin at a server that is behind.
func (l *Long) look(ctx context.Context, u *UnknownError) error {
	s, err := l.c.AwaitSession(ctx)
	if err != nil {
		return err
	}
	if err := l.c.Sync(ctx, u.mark.path); err != nil {
		return err
	}
	data, stat, err := l.c.Get(ctx, u.mark.path)
	switch {
	case err == nil && stat.Czxid == u.mark.czxid:
		return l.judgeByMark(ctx, u, data, stat.Version)
	case err != nil && !errors.Is(err, zk.ErrNoNode):
		return err
	}
	data, stat, err = l.c.Get(ctx, l.path)
	if errors.Is(err, zk.ErrNoNode) {
		stat, err = nil, nil
	}
	if err != nil {
		return err
	}
	if l.c.Session() != s {
		return errAgain
	}
	if l.mark == u.mark {
		l.mark = nil
	}
	u.outcome = u.judgeByNumber(data, stat)
	return nil
}

// judgeByMark decides by the mark. While the change has not been carried out it may still be on its way, so the mark is
// set from the version on which the change depends: either that comes first, or the change never comes.
func (l *Long) judgeByMark(ctx context.Context, u *UnknownError, data []byte, version int32) error {
	u.mark.version = version
	switch {
	case bytes.Equal(data, u.name):
		u.outcome = done
	case version != u.version:
		u.outcome = notDone
	default:
		stat, err := l.c.Set(ctx, u.mark.path, append([]byte("not "), u.name...), version)
		if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
			return errAgain
		}
		if err != nil {
			return err
		}
		u.mark.version = stat.Version
		u.outcome = notDone
	}
	return nil
}

// judgeByNumber decides by the number, after the mark has gone with its session: the change cannot be carried out any
// more. stat is nil if the number's node is missing.
func (u *UnknownError) judgeByNumber(data []byte, stat *zk.Stat) outcome {
	switch {
	case stat == nil || stat.Czxid != u.at.stat.Czxid: // which holds for a node that did not exist, too
		return unknowable
	case stat.Mzxid == u.at.stat.Mzxid:
		return notDone // nobody has changed it
	case stat.Version == u.at.stat.Version+1 && !bytes.Equal(data, u.data):
		return notDone // the one change since was another one
	}
	return unknowable
}
