package discovery

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// follower reads one instance again and again.
type follower struct {
	node string
	ctx  context.Context // ends when the node has left the list
	stop context.CancelFunc
	kick chan struct{} // the node is in the list that has just been read
	read bool          // it has been read once; guarded by the provider
}

// run keeps the list of nodes, until the provider or the client is closed.
//
// A watch tells once, and that something has changed, not what: so the list is read again, with the next watch, and compared
// with the followers. Nothing else is read again, but for reconnections, since each reading leaves another watch.
func (p *Provider[T]) run() {
	for failures := 0; p.ctx.Err() == nil; {
		again := p.resync()
		nodes, watch, err := p.list()
		if err == nil {
			failures = 0
			p.follow(nodes)
			p.await(watch, again)
			continue
		}
		if errors.Is(err, recipes.ErrClosed) {
			p.refused(err)
			return
		}
		if !passing(err) {
			p.refused(err)
		}
		pause(p.ctx, p.d.client, failures)
		failures++
	}
}

// followConnection has everything read again after each reconnection: when connections break one after the other, package zk may
// set its watches again as of too late a moment, and what has changed before is never told.
func (p *Provider[T]) followConnection() {
	for state := range p.states {
		if state != recipes.Reconnected {
			continue
		}
		p.mu.Lock()
		close(p.mu.resync)
		p.mu.resync = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *Provider[T]) resync() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.resync
}

// refused tells the caller of Discovery.Provider, if it is still waiting.
func (p *Provider[T]) refused(err error) {
	select {
	case p.failed <- err:
	default:
	}
}

// list reads the nodes. The watch also fires when a service that does not exist is made.
func (p *Provider[T]) list() ([]string, <-chan zk.Event, error) {
	for {
		nodes, _, watch, err := p.d.client.ChildrenW(p.ctx, p.dir)
		if !errors.Is(err, zk.ErrNoNode) {
			slices.Sort(nodes)
			return p.d.atMost(p.dir, nodes), watch, err
		}
		stat, watch, err := p.d.client.ExistsW(p.ctx, p.dir)
		if err != nil || stat == nil {
			return nil, watch, err
		}
	}
}

// await returns when the list has to be read again. Meanwhile it lets go the instances whose time has come.
func (p *Provider[T]) await(watch <-chan zk.Event, again <-chan struct{}) {
	for {
		var timer <-chan time.Time
		if wait, waiting := p.letGo(); waiting {
			timer = p.d.opt.Clock.After(wait)
		}
		select {
		case <-timer:
		case <-p.wake:
		case <-watch:
			return
		case <-again:
			return
		case <-p.d.client.Closed():
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// follow makes the followers those of the listed nodes.
func (p *Provider[T]) follow(nodes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, f := range p.mu.followers {
		if _, listed := slices.BinarySearch(nodes, node); !listed {
			f.stop()
			delete(p.mu.followers, node)
			delete(p.mu.skipped, node)
			p.readLocked(f)
			p.vanishLocked(node)
		}
	}
	for _, node := range nodes {
		f, followed := p.mu.followers[node]
		if !followed {
			f = &follower{node: node, kick: make(chan struct{}, 1)}
			f.ctx, f.stop = context.WithCancel(p.ctx)
			p.mu.followers[node] = f
			p.mu.unread++
			p.work.Go(func() { p.runFollower(f) })
		}
		select {
		case f.kick <- struct{}{}:
		default:
		}
	}
	p.mu.listed = true
	p.checkReadyLocked()
}

// runFollower reads the instance whenever it has changed, until it leaves the list. If the node is gone before the list
// shows that, it waits: the list that is about to be read says whether it has come back.
func (p *Provider[T]) runFollower(f *follower) {
	defer f.stop()
	for failures := 0; f.ctx.Err() == nil; {
		again := p.resync()
		watch, gone, err := p.readOnce(f)
		switch {
		case errors.Is(err, recipes.ErrClosed):
			return
		case err != nil:
			pause(f.ctx, p.d.client, failures)
			failures++
			continue
		}
		failures = 0
		kick := f.kick
		if !gone {
			kick = nil
		}
		select {
		case <-watch:
		case <-again:
		case <-kick:
		case <-p.d.client.Closed():
			return
		case <-f.ctx.Done():
		}
	}
}

// readOnce reads the instance and takes over what it says.
func (p *Provider[T]) readOnce(f *follower) (watch <-chan zk.Event, gone bool, err error) {
	at := path.Join(p.dir, f.node)
	data, stat, watch, err := p.d.client.GetW(f.ctx, at)
	if errors.Is(err, zk.ErrNoNode) {
		p.update(f, func() {
			delete(p.mu.skipped, f.node)
			p.vanishLocked(f.node)
		})
		return nil, true, nil
	}
	if err != nil {
		if f.ctx.Err() == nil && !passing(err) && !errors.Is(err, recipes.ErrClosed) {
			p.skip(f, at, err)
		}
		return nil, false, err
	}
	i, bad := decode[T](data, f.node, stat)
	if bad != nil {
		p.skip(f, at, bad)
		return watch, false, nil
	}
	p.update(f, func() { p.putLocked(i) })
	return watch, false, nil
}

// skip leaves out an instance that cannot be read. What was known of it waits like that of one that has vanished.
func (p *Provider[T]) skip(f *follower, at string, err error) {
	p.update(f, func() {
		p.mu.skipped[f.node] = err
		p.vanishLocked(f.node)
	})
	p.d.opt.Skipped(at, err)
}

// update changes what is known of the follower's node, unless it has left the list meanwhile.
func (p *Provider[T]) update(f *follower, change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.followers[f.node] != f {
		return
	}
	change()
	p.readLocked(f)
	p.checkReadyLocked()
}

func (p *Provider[T]) putLocked(i Instance[T]) {
	if old, known := p.mu.known[i.node]; known && old.czxid != i.czxid {
		p.mu.downs.forget(old.incarnation())
	}
	p.mu.known[i.node] = i
	p.mu.dampener.appear(i.node)
	delete(p.mu.skipped, i.node)
	p.changedLocked()
}

// vanishLocked drops an instance, now or when the dampening allows it.
func (p *Provider[T]) vanishLocked(node string) {
	i, known := p.mu.known[node]
	switch {
	case !known:
	case i.Disabled || p.mu.dampener.Dampening == Dampening{}:
		p.dropLocked(node)
	default:
		p.mu.dampener.vanish(node, p.d.opt.Clock.Now())
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// letGo drops the instances whose time has come, and tells how long it is to the next.
func (p *Provider[T]) letGo() (wait time.Duration, waiting bool) {
	now := p.d.opt.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes, next := p.mu.dampener.due(now)
	for _, node := range nodes {
		p.dropLocked(node)
	}
	return next.Sub(now), !next.IsZero()
}

func (p *Provider[T]) dropLocked(node string) {
	p.mu.downs.forget(p.mu.known[node].incarnation())
	p.mu.dampener.appear(node)
	delete(p.mu.known, node)
	p.changedLocked()
}

func (p *Provider[T]) changedLocked() {
	p.mu.order = nil
	close(p.mu.changed)
	p.mu.changed = make(chan struct{})
}

// readLocked notes that the follower has read its node once.
func (p *Provider[T]) readLocked(f *follower) {
	if !f.read {
		f.read = true
		p.mu.unread--
	}
}

func (p *Provider[T]) checkReadyLocked() {
	if p.mu.listed && p.mu.unread == 0 {
		select {
		case <-p.ready:
		default:
			close(p.ready)
		}
	}
}
