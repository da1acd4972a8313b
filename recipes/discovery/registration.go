package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Registration keeps one instance registered until it or the client is closed: when the session is lost, or somebody has
// deleted the node, it is made again. Its methods may be called from any goroutine.
type Registration[T any] struct {
	d    *Discovery[T]
	path string // of the node, without the number of DynamicSequential
	kind ServiceType

	stop    context.CancelFunc
	stopped context.Context // ends with Close
	done    chan struct{}   // closed when the background work has ended
	wake    chan struct{}   // the wanted data has changed
	states  <-chan recipes.State

	// Only the background work uses these.
	node   string         // of DynamicSequential: the node made last
	owners map[int64]bool // sessions of ours that may have made the node; 0 stands for a node without an owner
	tried  bool           // something may have been made
	held   bool           // the node has been ours once

	mu struct {
		sync.Mutex
		instance Instance[T]
		data     []byte
		wanted   int           // counts the changes of data
		written  int           // the last of them that is known to be in the node
		present  bool          // the node is there, in a session that counts
		err      error         // why it is not
		changed  chan struct{} // closed and replaced when one of these changes
	}
}

// Register makes the instance known and returns when it is. A node of the same name and id is replaced, as Curator does: it may be
// left from an earlier life of this server. If somebody else replaces ours later, it is left alone until it goes: ids have to
// be unique. If ctx ends first, or the server refuses, the error says so and no node is left behind.
func (d *Discovery[T]) Register(ctx context.Context, i Instance[T]) (*Registration[T], error) {
	if err := i.complete(d.opt.Clock.Now()); err != nil {
		return nil, err
	}
	data, err := encode(i, d.opt.JavaClass)
	if err != nil {
		return nil, err
	}
	if !d.claim(i) {
		return nil, fmt.Errorf("%w: %s, by this Discovery", ErrTaken, i.ID)
	}
	r := &Registration[T]{
		d: d, path: path.Join(d.base, i.Name, i.ID), kind: i.Type, owners: map[int64]bool{},
		done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.states = d.client.States(r.stopped)
	r.mu.instance, r.mu.data, r.mu.wanted, r.mu.changed = i, data, 1, make(chan struct{})
	go r.run()
	if err := r.await(ctx, 1, true); err != nil {
		r.stop()
		return nil, fmt.Errorf("discovery: register %s: %w", r.path, err)
	}
	return r, nil
}

// Instance returns what is registered, or is about to be.
func (r *Registration[T]) Instance() Instance[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.instance
}

// Registered tells whether the node is known to be there and the session to be alive, and if not, why: nil while that is
// being worked on, ErrTaken, or what the server said.
func (r *Registration[T]) Registered() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.present, r.mu.err
}

// Update changes address, ports, payload, URI spec and Disabled of the instance, and returns when the change is in the node.
// If ctx ends before, the change is still made as soon as possible. Name, ID and type stay as they are; empty ones are filled in.
func (r *Registration[T]) Update(ctx context.Context, i Instance[T]) error {
	wanted, err := r.want(i)
	if err != nil {
		return err
	}
	if err := r.await(ctx, wanted, false); err != nil {
		return fmt.Errorf("discovery: update %s: %w", r.path, err)
	}
	return nil
}

func (r *Registration[T]) want(i Instance[T]) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.mu.instance
	if i.Name == "" {
		i.Name = old.Name
	}
	if i.ID == "" {
		i.ID = old.ID
	}
	if i.Registered.IsZero() {
		i.Registered = old.Registered
	}
	if i.Name != old.Name || i.ID != old.ID || i.Type != old.Type {
		return 0, fmt.Errorf("discovery: update %s: name, id and type cannot be changed", r.path)
	}
	if err := i.complete(old.Registered); err != nil {
		return 0, err
	}
	data, err := encode(i, r.d.opt.JavaClass)
	if err != nil {
		return 0, err
	}
	r.mu.instance, r.mu.data = i, data
	r.mu.wanted++
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return r.mu.wanted, nil
}

// Close unregisters the instance and returns when its node is gone. If ctx ends before, the node is still deleted as soon as
// possible; if the client is closed before, a node of a session goes with that and any other stays.
func (r *Registration[T]) Close(ctx context.Context) error {
	r.stop()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("discovery: unregister %s: %w", r.path, context.Cause(ctx))
	}
}

// await returns when the change is in the node. If first is set, a refusal is the end; afterwards it may be lifted.
func (r *Registration[T]) await(ctx context.Context, wanted int, first bool) error {
	for {
		r.mu.Lock()
		written, err, changed := r.mu.written, r.mu.err, r.mu.changed
		r.mu.Unlock()
		switch {
		case written >= wanted:
			return nil
		case first && err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.done:
			_, err := r.Registered()
			return err
		}
	}
}

// note changes what others see.
func (r *Registration[T]) note(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.mu.changed)
	r.mu.changed = make(chan struct{})
}

// run is the background work, until the registration or the client is closed.
func (r *Registration[T]) run() {
	defer close(r.done)
	defer r.d.disclaim(r.Instance())
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
		pause(r.d.client.Closed(), r.stopped.Done(), failures)
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
	case stat.EphemeralOwner == owner && (r.held || r.tried):
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
		pause(r.d.client.Closed(), nil, failures)
	}
}

func (r *Registration[T]) removeOnce() (done bool, err error) {
	node := r.path
	if r.kind == DynamicSequential {
		node = r.node
	}
	if node == "" || r.kind != DynamicSequential && !r.tried {
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
	for _, e := range []error{recipes.ErrUnknown, recipes.ErrSessionLost, zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
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

// pause waits between two failures, longer with each, or until one of the channels is closed.
func pause(closed, stopped <-chan struct{}, failures int) {
	timer := time.NewTimer(min(retryWaitFirst<<min(failures, 16), retryWaitMax))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-closed:
	case <-stopped:
	}
}
