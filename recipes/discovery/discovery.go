// Package discovery is service discovery in the layout of Curator's x-discovery, so that Java's ServiceDiscovery sees what is
// registered here and the other way round: an instance is the node base/name/id with the JSON of Curator's
// JsonInstanceSerializer.
//
// Discovery.Register makes an instance known and keeps it so: after a lost session it is registered again.
// Discovery.Provider follows the instances of a service and hands them out by turns.
//
// # What it guarantees, and what not
//
// A registered instance is not proof that the server behind it is well: the node lives as long as the session, which survives a
// server that hangs. A Provider shows what its ZooKeeper server has told so far, and while there is no connection it goes on
// with the last contents; callers have to be ready for an instance that does not answer, and tell Provider.NoteError of it.
//
// # Payloads of Java
//
// Jackson writes the class of a payload that is an object into its field "@class" and wants it there to make that class
// again; Options.JavaClass supplies it. An object without a class becomes a java.util.Map there. Strings, booleans, ints and
// doubles need none. Java writes other scalars and lists as an array of class name and value, which json.RawMessage reads.
package discovery

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// Options change how instances are written and what is told about those that cannot be read. The zero value is fine.
type Options struct {
	// JavaClass is the class that payloads written here have in Java.
	JavaClass string
	// Skipped is told about each instance that was left out because it is malformed, too large or one too many, each time it
	// is read. It may be called from any goroutine, several at a time, and must not block.
	Skipped func(path string, err error)
	// Clock is what time is taken from; nil is the system's. Tests put in their own.
	Clock Clock
}

// Clock tells the time and waits.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Discovery registers and finds instances below one path. It holds nothing that has to be closed. Its methods may be called from
// any goroutine.
type Discovery[T any] struct {
	client *recipes.Client
	base   string
	opt    Options

	mu         sync.Mutex
	registered map[string]*Registration[T] // by path
}

// New makes a Discovery on the path base, the same as Java's basePath. Nothing is asked of the server yet.
func New[T any](client *recipes.Client, base string, o Options) (*Discovery[T], error) {
	if !strings.HasPrefix(base, "/") || path.Clean(base) != base {
		return nil, fmt.Errorf("discovery: %q is not an absolute path", base)
	}
	if o.Skipped == nil {
		o.Skipped = func(string, error) {}
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	return &Discovery[T]{client: client, base: base, opt: o, registered: map[string]*Registration[T]{}}, nil
}

// Names returns the names of all services, sorted. One whose last instance has gone stays until the server removes its empty
// container, which takes a minute or more.
func (d *Discovery[T]) Names(ctx context.Context) ([]string, error) {
	return d.list(ctx, d.base)
}

// Instances returns the instances of a service, by the names of their nodes, disabled ones included. Those that are malformed
// are left out: see Options.Skipped. A service that does not exist has no instances.
func (d *Discovery[T]) Instances(ctx context.Context, name string) ([]Instance[T], error) {
	if err := checkName("service name", name); err != nil {
		return nil, err
	}
	dir := path.Join(d.base, name)
	nodes, err := d.list(ctx, dir)
	if err != nil {
		return nil, err
	}
	var instances []Instance[T]
	for _, node := range d.atMost(dir, nodes) {
		i, err := d.read(ctx, dir, node)
		switch {
		case errors.Is(err, ErrNoInstance): // gone since
		case errors.Is(err, ErrMalformed):
			d.opt.Skipped(path.Join(dir, node), err)
		case err != nil:
			return nil, err
		default:
			instances = append(instances, i)
		}
	}
	return instances, nil
}

// Instance returns one instance by the name of its node, which is its id unless it is DynamicSequential. The error is
// ErrNoInstance if it is not there and ErrMalformed if it cannot be read.
func (d *Discovery[T]) Instance(ctx context.Context, name, node string) (Instance[T], error) {
	if err := errors.Join(checkName("service name", name), checkName("instance id", node)); err != nil {
		return Instance[T]{}, err
	}
	return d.read(ctx, path.Join(d.base, name), node)
}

// list returns the children of a node, sorted, and none if it does not exist.
func (d *Discovery[T]) list(ctx context.Context, dir string) ([]string, error) {
	names, _, err := d.client.Children(ctx, dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// atMost cuts a sorted list of nodes to what is read at most.
func (d *Discovery[T]) atMost(dir string, nodes []string) []string {
	if len(nodes) <= instancesMax {
		return nodes
	}
	d.opt.Skipped(dir, fmt.Errorf("discovery: %d instances, only %d are read", len(nodes), instancesMax))
	return nodes[:instancesMax]
}

func (d *Discovery[T]) read(ctx context.Context, dir, node string) (Instance[T], error) {
	at := path.Join(dir, node)
	data, stat, err := d.client.Get(ctx, at)
	if errors.Is(err, zk.ErrNoNode) {
		return Instance[T]{}, fmt.Errorf("%w: %s", ErrNoInstance, at)
	}
	if err != nil {
		return Instance[T]{}, err
	}
	i, err := decode[T](data, node, stat)
	if err != nil {
		return Instance[T]{}, fmt.Errorf("%s: %w", at, err)
	}
	return i, nil
}

// claim takes the path of a registration. Two of them would never agree about the node, so there is one at a time; one that is
// being closed is waited for. Names that the server completes are no one's.
func (d *Discovery[T]) claim(ctx context.Context, r *Registration[T]) error {
	for r.kind != DynamicSequential {
		d.mu.Lock()
		other := d.registered[r.path]
		if other == nil {
			d.registered[r.path] = r
		}
		d.mu.Unlock()
		switch {
		case other == nil:
			return nil
		case other.stopped.Err() == nil:
			return fmt.Errorf("%w, namely this Discovery", ErrTaken)
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (d *Discovery[T]) disclaim(r *Registration[T]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.registered[r.path] == r {
		delete(d.registered, r.path)
	}
}
