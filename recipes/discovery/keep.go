package discovery

import (
	"bytes"
	"context"
	"errors"
	"path"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// run is the background work, until the registration or the client is closed.
func (r *Registration[T]) run() {
	defer close(r.done)
	defer r.d.disclaim(r)
	for failures := 0; r.stopped.Err() == nil; {
		err := r.keep()
		if err == nil {
			failures = 0
			continue
		}
		r.note(func() {
			r.mu.present = false
			if r.mu.err = err; passing(err) {
				r.mu.err = nil
			}
		})
		if errors.Is(err, recipes.ErrClosed) {
			return // nothing can be deleted any more
		}
		pause(r.stopped, r.d.client, failures)
		failures++
	}
	r.remove()
	r.note(func() { r.mu.present, r.mu.err = false, ErrUnregistered })
}

// keep waits for a session, brings the node into the wanted state, and returns when something may have changed.
func (r *Registration[T]) keep() error {
	session, err := r.d.client.AwaitSession(r.stopped)
	if err != nil {
		return err
	}
	settle := r.settlePlain
	if r.kind == DynamicSequential {
		settle = r.settleSequential
	}
	watch, err := settle(session)
	if err != nil || watch == nil {
		return err
	}
	r.idle(session, watch)
	return nil
}

// idle returns when there may be something to do. That is so after a reconnection too: when connections break one after the
// other, package zk may set its watches again as of too late a moment, and what has changed before is never told.
func (r *Registration[T]) idle(session *recipes.Session, watch <-chan zk.Event) {
	for {
		select {
		case <-watch:
			return
		case <-r.wake:
			return
		case <-r.stopped.Done():
			return
		case <-session.Done():
			r.note(func() { r.mu.present = r.mu.present && !r.kind.ephemeral() })
			return
		case state, open := <-r.states:
			if state == recipes.Reconnected || !open {
				return
			}
		}
	}
}

// settlePlain looks at the node and does the next thing about it. It returns a watch if there is nothing left to do, and
// nil if it has to be called again.
//
// Nothing is concluded from the reply of a write: it may be lost, or the write carried out for the next session. What the
// node says counts, and who owns it.
func (r *Registration[T]) settlePlain(session *recipes.Session) (<-chan zk.Event, error) {
	owner := r.owner(session)
	data, stat, watch, err := r.d.client.GetW(r.stopped, r.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil, r.create(owner)
	case err != nil:
		return nil, err
	case stat.EphemeralOwner == owner:
		return r.settleData(r.path, data, stat, watch)
	case stat.EphemeralOwner != owner && stat.EphemeralOwner == r.owner(r.d.client.Session()):
		return nil, nil // the session has changed meanwhile
	case !r.held || r.owners[stat.EphemeralOwner]:
		return nil, r.replace(owner, stat.Version)
	}
	r.note(func() { r.mu.present, r.mu.err = false, ErrTaken })
	return watch, nil
}

// owner is what the node's stat says if it belongs to the session.
func (r *Registration[T]) owner(session *recipes.Session) int64 {
	if !r.kind.ephemeral() || session == nil {
		return 0
	}
	return session.ID()
}

// settleData writes the wanted data into a node that is ours, if it is not there yet.
func (r *Registration[T]) settleData(node string, data []byte, stat *zk.Stat, watch <-chan zk.Event) (<-chan zk.Event, error) {
	wanted, number := r.wanted()
	if !bytes.Equal(data, wanted) {
		_, err := r.d.client.Set(context.Background(), node, wanted, stat.Version)
		return nil, unless(err, zk.ErrBadVersion, zk.ErrNoNode)
	}
	r.held = true
	r.note(func() {
		r.mu.present, r.mu.err = true, nil
		r.mu.written = max(r.mu.written, number)
	})
	return watch, nil
}

func (r *Registration[T]) wanted() (data []byte, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.data, r.mu.wanted
}

// create makes the node. It is not given up when the registration is closed: a request that was given up could still be
// carried out, after the node was looked for and not found.
func (r *Registration[T]) create(owner int64) error {
	data, _ := r.wanted()
	r.owners[owner], r.tried = true, true
	_, err := r.d.client.Create(context.Background(), r.path, data, r.flags())
	if errors.Is(err, zk.ErrNoNode) {
		return r.d.client.EnsurePath(r.stopped, path.Dir(r.path))
	}
	return unless(err, zk.ErrNodeExists)
}

// replace puts our node into the place of another in one step, so that nobody sees the service without it.
func (r *Registration[T]) replace(owner int64, version int32) error {
	data, _ := r.wanted()
	r.owners[owner], r.tried = true, true
	_, err := r.d.client.Txn().Delete(r.path, version).Create(r.path, data, r.flags()).Commit(context.Background())
	return unless(err, zk.ErrBadVersion, zk.ErrNoNode)
}

func (r *Registration[T]) flags() int32 {
	if r.kind.ephemeral() {
		return zk.FlagEphemeral
	}
	return 0
}

// settleSequential is settlePlain for a node whose name the server completes, one for each session.
func (r *Registration[T]) settleSequential(session *recipes.Session) (<-chan zk.Event, error) {
	if r.node != "" {
		data, stat, watch, err := r.d.client.GetW(r.stopped, r.node)
		switch {
		case err == nil && stat.EphemeralOwner == session.ID():
			return r.settleData(r.node, data, stat, watch)
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
		r.node = ""
	}
	data, _ := r.wanted()
	node, err := r.d.client.CreateProtected(r.stopped, session, r.path, data, zk.FlagEphemeralSequential)
	if err == nil {
		r.node = node.Path
	}
	return nil, unless(err, recipes.ErrSessionLost)
}

// remove deletes what was made, and nothing else. It ends with the client at the latest.
func (r *Registration[T]) remove() {
	for failures := 0; ; failures++ {
		done, err := r.removeOnce()
		if done || errors.Is(err, recipes.ErrClosed) {
			return
		}
		pause(context.Background(), r.d.client, failures)
	}
}

func (r *Registration[T]) removeOnce() (done bool, err error) {
	node := r.path
	if r.kind == DynamicSequential {
		node = r.node
	}
	if node == "" || r.kind != DynamicSequential && !r.tried && !r.held {
		return true, nil
	}
	stat, err := r.d.client.Exists(context.Background(), node)
	if err != nil || stat == nil {
		return err == nil, err
	}
	mine := r.owners[stat.EphemeralOwner] || stat.EphemeralOwner == r.owner(r.d.client.Session())
	if r.kind != DynamicSequential && !mine {
		return true, nil
	}
	err = r.d.client.Delete(context.Background(), node, stat.Version)
	if errors.Is(err, zk.ErrNoAuth) {
		return true, err // it will not be different next time
	}
	return err == nil || errors.Is(err, zk.ErrNoNode), err
}

// passing tells whether an error says nothing about the request itself, so that it is simply tried again.
func passing(err error) bool {
	return unless(err, recipes.ErrUnknown, recipes.ErrSessionLost, zk.ErrConnectionClosed, zk.ErrNoServer,
		zk.ErrSessionExpired, zk.ErrSessionMoved) == nil
}

// unless returns the error, or nil if it is one of those that only say that somebody else was faster.
func unless(err error, harmless ...error) error {
	for _, e := range harmless {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

var retryWaits = recipes.Exponential(retryWaitFirst, retryWaitMax)

// pause waits between two failures, longer with each, or until ctx ends or the client is closed.
func pause(ctx context.Context, client *recipes.Client, failures int) {
	wait, _ := retryWaits(failures)
	_ = client.Sleep(ctx, wait) // the next attempt tells why
}
