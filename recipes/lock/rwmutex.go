package lock

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// RWMutex is a lock that many readers or one writer hold, among all processes that use the same path. It is granted in the
// order of arrival: a reader waits for the writers before it, a writer for all before it, so nobody starves. A Mutex on the
// same path counts as a writer.
//
// A writer may take the read lock as well, by Share or Downgrade. A reader who calls Lock waits for itself.
type RWMutex struct {
	line  line
	names Names
}

// NewRWMutex returns the lock of that path, which is below the client's namespace. It does not talk to the server.
func NewRWMutex(c *recipes.Client, path string, o Options) *RWMutex {
	return &RWMutex{line: line{c: c, dir: path, identity: o.Identity}, names: o.Names}
}

// Lock waits for the write lock; see Mutex.Lock.
func (m *RWMutex) Lock(ctx context.Context) (*Guard, error) {
	return m.line.lock(ctx, m.names.write(), m.line.await)
}

// TryLock takes the write lock if nobody holds any lock or waits for one, and fails with ErrHeld otherwise.
func (m *RWMutex) TryLock(ctx context.Context) (*Guard, error) {
	return m.line.try(ctx, m.names.write())
}

// RLock waits for a read lock. When a writer leaves, all readers behind it up to the next writer are woken at once: they all
// get in.
func (m *RWMutex) RLock(ctx context.Context) (*Guard, error) {
	return m.line.lock(ctx, m.names.read(), m.line.await)
}

// TryRLock takes a read lock if no writer holds the lock or waits for it, and fails with ErrHeld otherwise.
func (m *RWMutex) TryRLock(ctx context.Context) (*Guard, error) {
	return m.line.try(ctx, m.names.read())
}

// Share takes a read lock for the holder of the write lock, without waiting: others cannot come in between. Both are held
// then and are unlocked in any order. The reader stands at its writer's place in the line and has the writer's token. Share
// fails with ErrNotWriter if the guard is not a write lock of this path, and otherwise like Guard.Again; the write lock is
// kept in any case.
func (m *RWMutex) Share(ctx context.Context, writer *Guard) (*Guard, error) {
	dir, name := path.Split(writer.Path())
	at := strings.LastIndex(name, m.names.write())
	if writer.hold.c != m.line.c || dir != m.line.dir+"/" || at < 0 {
		return nil, fmt.Errorf("%s: %w", writer.Path(), ErrNotWriter)
	}
	held, err := writer.Again() // so that the writer stays in the line until its reader stands there
	if err != nil {
		return nil, err
	}
	defer held.Unlock(ctx) //nolint:errcheck // the outcome is for information only
	session := writer.hold.node.Session
	creating, cancel := during(ctx, session)
	defer cancel()
	// The node's number is not the server's choice, but the writer's: so it is in nobody's way who came before the writer's end.
	node, err := m.line.c.CreateProtected(creating, session, m.line.path(m.names.read()+name[at+len(m.names.write()):]),
		m.line.identity, zk.FlagEphemeral)
	if err != nil {
		return nil, err
	}
	return newGuard(m.line.c, node, writer.Token()), nil
}

// Downgrade takes a read lock for the holder of the write lock and unlocks the write lock, so that other readers come in, but
// no writer in between. When it fails, the write lock is kept; see Share.
func (m *RWMutex) Downgrade(ctx context.Context, writer *Guard) (*Guard, error) {
	reader, err := m.Share(ctx, writer)
	if err != nil {
		return nil, err
	}
	_ = writer.Unlock(ctx) // what remains is done in the background; the reader is granted in any case
	return reader, nil
}

// Participants returns who holds the lock and who waits for it, readers and writers, in their order. By the time it returns
// that may have changed.
func (m *RWMutex) Participants(ctx context.Context) ([]Participant, error) {
	return m.line.participants(ctx)
}

// RLocker returns a Locker whose Lock and TryLock are RLock and TryRLock.
func (m *RWMutex) RLocker() Locker { return reading{m} }

// reading is an RWMutex as its readers see it.
type reading struct{ *RWMutex }

func (r reading) Lock(ctx context.Context) (*Guard, error)    { return r.RLock(ctx) }
func (r reading) TryLock(ctx context.Context) (*Guard, error) { return r.TryRLock(ctx) }

func (m *RWMutex) place() (*recipes.Client, string) { return m.line.c, m.line.dir }
