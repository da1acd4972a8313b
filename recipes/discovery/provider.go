package discovery

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"zabra/recipes"
)

// ProviderOptions change what a Provider hands out. The zero value hands out one after the other and keeps nothing that has
// vanished.
type ProviderOptions[T any] struct {
	// Strategy chooses; nil is RoundRobin. It must not be shared between providers.
	Strategy  Strategy
	Dampening Dampening
	Down      DownPolicy
	// Filter leaves out instances for which it returns false; nil leaves out none. It is called from any goroutine.
	Filter func(Instance[T]) bool
}

// Provider follows the instances of one service. It answers from memory: while there is no connection it goes on with what it
// knows. Its methods may be called from any goroutine.
type Provider[T any] struct {
	d   *Discovery[T]
	dir string
	opt ProviderOptions[T]

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	states <-chan recipes.State
	wake   chan struct{} // something has begun to wait for its removal
	ready  chan struct{} // closed when all instances have been read once
	failed chan error    // takes the first refusal

	mu struct {
		sync.Mutex
		known     map[string]Instance[T] // by node, with those kept though they have vanished
		order     []Instance[T]          // known, sorted; replaced and never changed, nil if it has to be made
		followers map[string]*follower
		skipped   map[string]error
		dampener  dampener
		downs     *downs
		listed    bool          // the nodes have been listed once
		unread    int           // followers that have not read yet
		resync    chan struct{} // closed and replaced when everything has to be read again
		changed   chan struct{}
	}
}

// Status tells how a Provider is doing.
type Status struct {
	// Instances is how many are known. Of these, Kept have vanished and wait for their removal, and Down are not
	// handed out because of errors that were noted.
	Instances, Kept, Down int
	// Skipped are the nodes that cannot be read, and why.
	Skipped map[string]error
	// Connected tells whether changes are seen at the moment.
	Connected bool
}

// Provider begins to follow a service and returns when its instances have been read once. The service need not exist.
func (d *Discovery[T]) Provider(ctx context.Context, name string, o ProviderOptions[T]) (*Provider[T], error) {
	if err := checkName("service name", name); err != nil {
		return nil, err
	}
	if o.Strategy == nil {
		o.Strategy = RoundRobin()
	}
	p := &Provider[T]{
		d: d, dir: path.Join(d.base, name), opt: o,
		wake: make(chan struct{}, 1), ready: make(chan struct{}), failed: make(chan error, 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.mu.known, p.mu.followers, p.mu.skipped = map[string]Instance[T]{}, map[string]*follower{}, map[string]error{}
	p.mu.dampener = dampener{Dampening: o.Dampening, vanished: map[string]time.Time{}}
	p.mu.downs, p.mu.resync, p.mu.changed = newDowns(o.Down), make(chan struct{}), make(chan struct{})
	p.states = d.client.States(p.ctx)
	p.work.Go(p.followConnection)
	p.work.Go(p.run)
	var err error
	select {
	case <-p.ready:
		return p, nil
	case err = <-p.failed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.Close()
	return nil, fmt.Errorf("discovery: provider of %s: %w", name, err)
}

// Close ends the following. What is known stays and is still handed out.
func (p *Provider[T]) Close() {
	p.cancel()
	p.work.Wait()
}

// Pick returns one instance for one use: ask again for the next use. The error is ErrNoInstance if there is none that is neither
// disabled, nor down, nor left out by the filter.
func (p *Provider[T]) Pick() (Instance[T], error) {
	instances := p.Instances()
	if len(instances) > 0 {
		nodes := make([]string, len(instances))
		for i := range instances {
			nodes[i] = instances[i].node
		}
		if i := p.opt.Strategy.Pick(nodes); i >= 0 && i < len(instances) {
			return instances[i], nil
		}
	}
	return Instance[T]{}, fmt.Errorf("%w: %s", ErrNoInstance, p.dir)
}

// Instances returns all that Pick could return at the moment, by the names of their nodes.
func (p *Provider[T]) Instances() []Instance[T] {
	instances := p.usable()
	if p.opt.Filter == nil {
		return instances
	}
	return slices.DeleteFunc(instances, func(i Instance[T]) bool { return !p.opt.Filter(i) })
}

// usable are the instances that are neither disabled nor down.
func (p *Provider[T]) usable() []Instance[T] {
	now := p.d.opt.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	var instances []Instance[T]
	for _, i := range p.sortedLocked() {
		if !i.Disabled && !p.mu.downs.down(i.incarnation(), now) {
			instances = append(instances, i)
		}
	}
	return instances
}

func (p *Provider[T]) sortedLocked() []Instance[T] {
	if p.mu.order == nil {
		p.mu.order = make([]Instance[T], 0, len(p.mu.known))
		for _, i := range p.mu.known {
			p.mu.order = append(p.mu.order, i)
		}
		slices.SortFunc(p.mu.order, func(a, b Instance[T]) int { return cmp.Compare(a.node, b.node) })
	}
	return p.mu.order
}

// NoteError tells that an instance, one that Pick returned, did not do its work. When that has happened often enough, it is
// not handed out for a while: see DownPolicy. What is noted is known to this Provider only.
func (p *Provider[T]) NoteError(i Instance[T]) {
	now := p.d.opt.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, here := p.mu.known[i.node]; here && known.czxid == i.czxid {
		p.mu.downs.note(i.incarnation(), now)
	}
}

// Changed returns a channel that is closed when the instances change the next time. Take it before looking at them.
func (p *Provider[T]) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.changed
}

// Status tells how the provider is doing.
func (p *Provider[T]) Status() Status {
	now, state := p.d.opt.Clock.Now(), p.d.client.State()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Instances: len(p.mu.known), Kept: len(p.mu.dampener.vanished), Skipped: make(map[string]error, len(p.mu.skipped)),
		Connected: p.ctx.Err() == nil && (state == recipes.Connected || state == recipes.Reconnected),
	}
	for node, err := range p.mu.skipped {
		s.Skipped[node] = err
	}
	for _, i := range p.mu.known {
		if p.mu.downs.down(i.incarnation(), now) {
			s.Down++
		}
	}
	return s
}

func (i Instance[T]) incarnation() incarnation { return incarnation{i.node, i.czxid} }
