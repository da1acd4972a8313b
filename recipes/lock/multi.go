package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"zabra/recipes"
)

// Locker is a lock that can be one of several: a Mutex, an RWMutex as its writers see it, or RWMutex.RLocker.
type Locker interface {
	Lock(context.Context) (*Guard, error)
	TryLock(context.Context) (*Guard, error)
	place() (c *recipes.Client, dir string)
}

// Multi is several locks that are taken together: all or none. They are taken in the order of their paths, whatever the order
// in the list, and given back in reverse. So those who take the same locks, by a Multi each, do not block each other for
// good. (Curator's InterProcessMultiLock takes them as listed: list them in the order of their paths there.)
type Multi struct {
	locks []Locker
	err   error
}

// NewMulti returns the locks as one. They must be of one client and of different paths: else Lock fails with ErrLocks.
func NewMulti(locks ...Locker) *Multi {
	m := &Multi{locks: slices.Clone(locks)}
	slices.SortStableFunc(m.locks, func(a, b Locker) int { return strings.Compare(dirOf(a), dirOf(b)) })
	m.err = m.check()
	return m
}

func dirOf(l Locker) string {
	_, dir := l.place()
	return dir
}

// check tells why the locks cannot be taken together.
func (m *Multi) check() error {
	if len(m.locks) == 0 {
		return fmt.Errorf("%w: there are none", ErrLocks)
	}
	client, last := m.locks[0].place()
	for _, l := range m.locks[1:] {
		c, dir := l.place()
		if c != client {
			return fmt.Errorf("%w: %s and %s are of different clients", ErrLocks, last, dir)
		}
		if dir == last {
			return fmt.Errorf("%w: %s is listed twice", ErrLocks, dir)
		}
		last = dir
	}
	return nil
}

// Lock waits for one lock after the other, while it holds those before. When ctx ends, or a lock cannot be had, it gives back
// what it has and fails. If the session is lost while it waits it begins again.
func (m *Multi) Lock(ctx context.Context) (Guards, error) { return m.lock(ctx, Locker.Lock) }

// TryLock takes all locks if each of them is free, and fails with ErrHeld otherwise.
func (m *Multi) TryLock(ctx context.Context) (Guards, error) { return m.lock(ctx, Locker.TryLock) }

func (m *Multi) lock(ctx context.Context, one func(Locker, context.Context) (*Guard, error)) (Guards, error) {
	if m.err != nil {
		return nil, m.err
	}
	for {
		guards, err := m.all(ctx, one)
		if err == nil {
			return guards, nil
		}
		_ = guards.Unlock(ctx) // what remains is done in the background
		if !lostPlace(err) || ctx.Err() != nil {
			return nil, err
		}
	}
}

// all takes the locks in one session. With an error it returns those that it had got.
func (m *Multi) all(ctx context.Context, one func(Locker, context.Context) (*Guard, error)) (guards Guards, err error) {
	for _, l := range m.locks {
		guard, err := one(l, ctx)
		if err != nil {
			return guards, err
		}
		guards = append(guards, guard)
		if len(guards) == 1 {
			// A lock that is lost would not be held together with the others: then there is no use in waiting for them.
			var cancel context.CancelFunc
			ctx, cancel = guard.Context(ctx)
			defer cancel()
		}
	}
	for _, g := range guards {
		if !g.Held() || g.hold.node.Session != guards[0].hold.node.Session {
			return guards, recipes.ErrSessionLost
		}
	}
	return guards, nil
}
