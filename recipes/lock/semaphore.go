package lock

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// The children of a semaphore's node and the names below, as Curator's InterProcessSemaphoreV2 has them.
const (
	semaphoreGate   = "locks"
	semaphoreLeases = "leases"
	leaseName       = "lease-"
)

// Semaphore has a number of permits, which are given out to all processes that use the same path, in the order of arrival.
// They hold them as long as they like or their sessions live. Its layout is that of Curator's InterProcessSemaphoreV2 (kazoo's
// Semaphore has another one).
//
// Who wants a permit takes the mutex of the semaphore, makes a node among the leases, waits until these are not more than
// there are permits, and passes the mutex on. So only the first in the line looks at the leases.
//
// How many permits there are is not stored: it is what each process says, and all should say the same. Every child of the
// leases' node counts as one, whatever its name, since Curator counts so.
type Semaphore struct {
	gate   Mutex
	leases line

	mu      sync.Mutex
	permits int
	changed chan struct{} // closed and replaced when permits changes
}

// NewSemaphore returns the semaphore of that path with a number of permits. It does not talk to the server. The names in
// the options do not count.
func NewSemaphore(c *recipes.Client, path string, permits int, o Options) *Semaphore {
	return &Semaphore{
		gate:    Mutex{line: line{c: c, dir: path + "/" + semaphoreGate}, name: curatorLock},
		leases:  line{c: c, dir: path + "/" + semaphoreLeases, identity: o.Identity},
		permits: permits,
		changed: make(chan struct{}),
	}
}

// SetPermits changes the number of permits, for this object alone: if all processes watch one number, as of a shared counter,
// they call this when it changes. Fewer permits take none away, but nobody gets another one until enough are back. More
// permits are given to those who wait.
func (s *Semaphore) SetPermits(permits int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permits = permits
	close(s.changed)
	s.changed = make(chan struct{})
}

// limit returns the number of permits, and what is closed when it changes.
func (s *Semaphore) limit() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.permits, s.changed
}

// Acquire waits for a permit, or until ctx ends: then it fails with ctx's cause and leaves no node behind. If the session is
// lost while it waits, it lines up again at the end. The guard is the permit; Unlock gives it back.
func (s *Semaphore) Acquire(ctx context.Context) (*Guard, error) {
	return first(s.AcquireN(ctx, 1))
}

// AcquireN waits for several permits at once: all or none. Nobody behind gets one before; so two who want all permits each
// do not block each other. It fails with ErrPermits if n is not positive or more than there are at the time of the call.
func (s *Semaphore) AcquireN(ctx context.Context, n int) (Guards, error) {
	return s.acquire(ctx, n, s.gate.Lock, s.await)
}

// TryAcquire takes a permit if there is one and nobody waits for one or is just taking one, and fails with ErrHeld otherwise.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Guard, error) {
	return first(s.acquire(ctx, 1, s.gate.TryLock, s.refuse))
}

func first(guards Guards, err error) (*Guard, error) {
	if err != nil {
		return nil, err
	}
	return guards[0], nil
}

// acquire tries until an attempt does not fail for the sake of its session.
func (s *Semaphore) acquire(ctx context.Context, n int, lock func(context.Context) (*Guard, error),
	turn func(context.Context, []string) error) (Guards, error) {
	if permits, _ := s.limit(); n < 1 || n > permits {
		return nil, fmt.Errorf("%w: %d of %d", ErrPermits, n, permits)
	}
	for {
		gate, err := lock(ctx)
		if err != nil {
			return nil, err
		}
		guards, err := s.enter(ctx, gate, n, turn)
		if err != nil {
			_ = guards.Unlock(ctx) // while nobody else looks at the leases
		}
		_ = gate.Unlock(ctx) // what remains is done in the background
		if err == nil {
			return guards, nil
		}
		if !lostPlace(err) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// enter makes the leases, under the gate, and returns when turn lets them in. With an error it returns those it has made.
func (s *Semaphore) enter(ctx context.Context, gate *Guard, n int, turn func(context.Context, []string) error) (guards Guards, err error) {
	ctx, cancel := gate.Context(ctx)
	defer cancel()
	var names []string
	for range n {
		node, err := s.leases.c.CreateProtected(ctx, gate.hold.node.Session, s.leases.path(leaseName), s.leases.identity,
			zk.FlagEphemeralSequential)
		if err != nil {
			return guards, err
		}
		guards = append(guards, newGuard(s.leases.c, node, node.Czxid))
		names = append(names, path.Base(node.Path))
	}
	if err := turn(ctx, names); err != nil {
		return guards, err
	}
	if ctx.Err() != nil {
		return guards, context.Cause(ctx)
	}
	return guards, nil
}

// fits tells whether the leases, the own ones among them, are not more than the permits.
func (s *Semaphore) fits(children, own []string, err error) (bool, error) {
	if errors.Is(err, zk.ErrNoNode) {
		return false, errGone
	}
	if err != nil {
		return false, err
	}
	for _, name := range own {
		if !slices.Contains(children, name) {
			return false, errGone
		}
	}
	permits, _ := s.limit()
	return len(children) <= permits, nil
}

// refuse is await for those who do not want to wait.
func (s *Semaphore) refuse(ctx context.Context, own []string) error {
	children, _, err := s.leases.c.Children(ctx, s.leases.dir)
	fits, err := s.fits(children, own, err)
	if err == nil && !fits {
		err = ErrHeld
	}
	return err
}

// await returns when there are no more leases than permits. It looks without a watch first: mostly there is a permit, and a
// watch could not be taken back.
func (s *Semaphore) await(ctx context.Context, own []string) error {
	for {
		if err := s.refuse(ctx, own); !errors.Is(err, ErrHeld) {
			return err
		}
		_, permits := s.limit()
		children, _, changed, err := s.leases.c.ChildrenW(ctx, s.leases.dir)
		if fits, err := s.fits(children, own, err); err != nil || fits {
			return err
		}
		select {
		case <-changed:
		case <-permits:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Participants returns who holds a permit, in the order of the grants; one who is about to is among them. Who waits is not.
// Revoke and Guard.Revoked work for permits, too.
func (s *Semaphore) Participants(ctx context.Context) ([]Participant, error) {
	return s.leases.participants(ctx)
}
