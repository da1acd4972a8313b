package lock

import (
	"context"

	"zabra/recipes"
)

// Options are those of a lock. The zero value is for a line with Curator and anonymous contenders.
type Options struct {
	// Identity is the data of the nodes that this process makes in the line, for people and for Participants: what kazoo calls
	// identifier and Curator lock node bytes.
	Identity []byte
	// Names says who else may stand in the line. All who share a lock must agree on it.
	Names Names
}

// Mutex is a lock that one holder at a time has, among all processes that use the same path. Its methods may be called from
// any goroutine; each call of Lock is a contender of its own, also against others of the same process. Who holds the lock
// already and calls Lock again therefore waits for itself: pass the guard on, and use Guard.Again.
type Mutex struct {
	line line
	name string
}

// NewMutex returns the mutex of that path, which is below the client's namespace. It does not talk to the server. A path that
// cannot be one is told by the first call.
func NewMutex(c *recipes.Client, path string, o Options) *Mutex {
	return &Mutex{line: line{c: c, dir: path, identity: o.Identity}, name: o.Names.mutex()}
}

// Lock waits until the lock is granted, in the order of arrival, or ctx ends: then it fails with ctx's cause and leaves no
// node behind. It goes on through lost connections. If the session is lost while it waits, it lines up again at the end.
func (m *Mutex) Lock(ctx context.Context) (*Guard, error) {
	return m.line.lock(ctx, m.name, m.line.await)
}

// TryLock takes the lock if nobody holds it or waits for it, and fails with ErrHeld otherwise. It does not wait for other
// contenders, but for the server it does, until ctx ends.
func (m *Mutex) TryLock(ctx context.Context) (*Guard, error) { return m.line.try(ctx, m.name) }

// Participants returns who holds the lock and who waits for it, in their order. By the time it returns that may have changed.
func (m *Mutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.line.participants(ctx)
}

func (m *Mutex) place() (*recipes.Client, string) { return m.line.c, m.line.dir }
