package discovery

import (
	"context"
	"fmt"
	"path"
	"sync"

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

// Register makes the instance known and returns when it is. A node of the same name and id is replaced, as Curator does: it
// may be left from an earlier life of this server. If somebody else replaces ours later, it is left alone until it goes: ids
// have to be unique. If ctx ends first, or the server refuses, the error says so and no node is left behind.
func (d *Discovery[T]) Register(ctx context.Context, i Instance[T]) (*Registration[T], error) {
	if err := i.complete(d.opt.Clock.Now()); err != nil {
		return nil, err
	}
	data, err := encode(i, d.opt.JavaClass)
	if err != nil {
		return nil, err
	}
	r := &Registration[T]{
		d: d, path: path.Join(d.base, i.Name, i.ID), kind: i.Type, owners: map[int64]bool{},
		done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.states = d.client.States(r.stopped)
	r.mu.instance, r.mu.data, r.mu.wanted, r.mu.changed = i, data, 1, make(chan struct{})
	if err := d.claim(ctx, r); err != nil {
		r.stop()
		return nil, fmt.Errorf("discovery: register %s: %w", r.path, err)
	}
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
