package queue

import (
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// claimed is how a claim ended. Without entry and error somebody else was faster.
type claimed struct {
	entry *Entry
	err   error
}

// claim locks an entry. It is not given up halfway when ctx ends: what it locks then is released.
func (t *Taker) claim(ctx context.Context, c candidate) (*Entry, error) {
	r, err := detach(ctx, func() claimed { return t.claimNow(ctx, c) }, func(r claimed) {
		if r.entry != nil {
			r.entry.releaseNow()
		}
		t.again()
	})
	if err != nil {
		return nil, err
	}
	return r.entry, r.err
}

// claimNow makes the lock and raises the version of the entry, in one transaction.
func (t *Taker) claimNow(ctx context.Context, c candidate) claimed {
	session, err := t.client.AwaitSession(ctx)
	if err != nil {
		return claimed{err: err}
	}
	e := &Entry{Name: c.name, Priority: c.priority, t: t, session: session}
	e.path, e.lock = path.Join(t.entries, c.name), path.Join(t.locks, c.name)
	if c.dueMs != 0 {
		e.Due = c.due()
	}
	data, stat, err := t.client.Get(ctx, e.path)
	if errors.Is(err, zk.ErrNoNode) {
		return claimed{}
	}
	if err != nil {
		return claimed{err: err}
	}
	e.czxid, e.version, e.Deliveries = stat.Czxid, stat.Version+1, int(stat.Version)+1
	if e.Items, err = t.items(data); err != nil {
		t.skip(c.name, err)
		return claimed{}
	}
	e.owner = newGUID()
	lock := t.client.Txn().Create(e.lock, []byte(e.owner), zk.FlagEphemeral).Set(e.path, data, stat.Version)
	_, err = lock.Commit(context.Background())
	switch {
	case err == nil:
	case errors.Is(err, recipes.ErrClosed):
		return claimed{err: err}
	case errors.Is(err, ErrUnknown):
		if err := t.client.Sync(context.Background(), e.path); err != nil {
			return claimed{err: err}
		}
	case errors.Is(err, zk.ErrNoNode): // the entry is gone, or the parent of the locks
		return claimed{err: t.ensure(ctx)}
	case errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrBadVersion):
		return claimed{}
	case passing(err): // it was refused together with the session
		t.again()
		return claimed{}
	default:
		return claimed{err: err}
	}
	return t.prove(e)
}

// prove looks at the lock: after a lost reply it may not have been made, and a request that waited while the session expired
// was carried out under the next one.
func (t *Taker) prove(e *Entry) claimed {
	data, stat, err := t.client.Get(context.Background(), e.lock)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && string(data) != e.owner:
		t.again()
		return claimed{}
	case err != nil:
		return claimed{err: err}
	case stat.EphemeralOwner != e.session.ID() || e.session.Over():
		e.releaseNow()
		t.again()
		return claimed{}
	}
	e.token = stat.Czxid
	return claimed{entry: e}
}

// items are what the data of an entry holds.
func (t *Taker) items(data []byte) ([][]byte, error) {
	if t.layout.framed {
		return unframe(data)
	}
	return [][]byte{data}, nil
}

// skip remembers an entry that cannot be read: it would come first again and again.
func (t *Taker) skip(name string, err error) {
	t.mu.Lock()
	t.bad[name] = true
	t.mu.Unlock()
	t.opt.Skipped(path.Join(t.entries, name), err)
}
