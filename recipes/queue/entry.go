package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Entry is an entry that was taken. Its methods are for one goroutine at a time.
type Entry struct {
	// Name is that of its node.
	Name string
	// Items is what it holds: one item, unless Java has put several at once (putMulti).
	Items [][]byte
	// Priority is 0 in queues without priorities.
	Priority int32
	// Due is zero in queues without times.
	Due time.Time
	// Deliveries is how often it was handed out by this package, this time included. An entry that comes again and again may
	// be the reason that its takers die.
	Deliveries int

	t          *Taker
	session    *recipes.Session
	path, lock string
	czxid      int64 // of the entry
	version    int32 // of the entry while it is ours
	token      int64
	owner      string // what the lock says
	doubtful   bool   // a reply of Done was lost
	ended      bool
	outcome    error // of Done, once ended
}

// Data returns the first item, which is the only one unless Java has put several at once; nil if there is none.
func (e *Entry) Data() []byte {
	if len(e.Items) == 0 {
		return nil
	}
	return e.Items[0]
}

// Token is a number that grows each time an entry is handed out: a fencing token.
func (e *Entry) Token() int64 { return e.token }

// Lost is closed when the session is over, or may be: from then on another taker may get the entry.
func (e *Entry) Lost() <-chan struct{} { return e.session.Done() }

// Done removes the entry. It fails with ErrLost if somebody else has taken it, or may have, which then works on it too, or has
// done so. If it fails for another reason, it may be called again, and finds out whether the entry is removed already.
func (e *Entry) Done(ctx context.Context) error {
	if e.ended {
		return e.outcome
	}
	for {
		_, err := e.t.client.Txn().Delete(e.path, e.version).Delete(e.lock, -1).Commit(ctx)
		if errors.Is(err, zk.ErrNoNode) {
			err = e.doneUnlocked(ctx)
		}
		switch {
		case err == nil:
			e.ended = true
			return nil
		case errors.Is(err, ErrLost), errors.Is(err, zk.ErrBadVersion):
			e.ended, e.outcome = true, fmt.Errorf("%w: %s", ErrLost, e.path)
			go e.unlock() // ends with the client at the latest
			return e.outcome
		case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrSessionMoved): // it was refused
			if _, err = e.t.client.AwaitSession(ctx); err == nil {
				continue
			}
		case errors.Is(err, ErrUnknown):
			e.doubtful = true
			if ctx.Err() == nil && !errors.Is(err, recipes.ErrClosed) && e.t.client.Sync(ctx, e.path) == nil {
				continue
			}
		}
		return fmt.Errorf("queue: done with %s: %w", e.path, err)
	}
}

// doneUnlocked removes the entry when it or its lock is not there. If only the lock has gone, with the session, and nobody
// has taken the entry since, it still is this taker's to remove.
func (e *Entry) doneUnlocked(ctx context.Context) error {
	stat, err := e.t.client.Exists(ctx, e.path)
	switch {
	case err != nil:
		return err
	case stat == nil && e.doubtful && !e.session.Over():
		return nil // the request whose reply was lost has done it: nobody else could
	case stat == nil, stat.Czxid != e.czxid:
		return ErrLost
	}
	locked, err := e.t.client.Exists(ctx, e.lock)
	if err != nil {
		return err
	}
	if locked != nil { // by a taker that does not raise the version
		return ErrLost
	}
	err = e.t.client.Delete(ctx, e.path, e.version)
	if errors.Is(err, zk.ErrNoNode) {
		return ErrLost
	}
	return err
}

// Release gives the entry back, so that it is handed out again. If ctx ends first, this goes on in the background.
func (e *Entry) Release(ctx context.Context) error {
	if e.ended {
		return nil
	}
	e.ended, e.outcome = true, fmt.Errorf("%w: %s was released", ErrLost, e.path)
	released, err := detach(ctx, e.releaseNow, func(error) {})
	if err == nil {
		err = released
	}
	if err != nil {
		return fmt.Errorf("queue: release of %s: %w", e.path, err)
	}
	return nil
}

// releaseNow deletes the lock, if it still is this taker's, which the version of the entry says. It tries until it has an answer.
func (e *Entry) releaseNow() error {
	for failures := 0; ; failures++ {
		_, err := e.t.client.Txn().Check(e.path, e.version).Delete(e.lock, -1).Commit(context.Background())
		switch {
		case err == nil, errors.Is(err, zk.ErrBadVersion):
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return e.unlock()
		case errors.Is(err, recipes.ErrClosed) || !passing(err):
			return err
		}
		pause(e.t.client, failures)
	}
}

// unlock deletes the lock of an entry that is gone, if it says that it is this taker's.
func (e *Entry) unlock() error {
	for failures := 0; ; failures++ {
		data, stat, err := e.t.client.Get(context.Background(), e.lock)
		if err == nil && string(data) == e.owner {
			err = e.t.client.Delete(context.Background(), e.lock, stat.Version)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion):
			return nil
		case errors.Is(err, recipes.ErrClosed) || !passing(err):
			return err
		}
		pause(e.t.client, failures)
	}
}

// passing tells whether an error says nothing about the request itself, so that it is simply tried again.
func passing(err error) bool {
	for _, e := range []error{ErrUnknown, zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
