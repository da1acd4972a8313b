package counter

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"zabra/recipes"
)

// ErrContended is a change that met changes of others in each of its tries. Nothing is changed.
var ErrContended = errors.New("counter: others were faster in every try")

// Locker is a lock that all processes share, for changes that meet too many others. Curator's counters take the
// lock of an InterProcessMutex; a lock.Mutex on the same path stands in one line with those.
type Locker interface {
	// Lock returns when the lock is held, with the function that gives it back; or fails, and then it holds nothing.
	Lock(ctx context.Context) (release func(context.Context) error, err error)
}

// LockFunc is a function that serves as a Locker.
type LockFunc func(ctx context.Context) (release func(context.Context) error, err error)

// Lock calls the function.
func (f LockFunc) Lock(ctx context.Context) (func(context.Context) error, error) { return f(ctx) }

// LongOptions are those of a Long. The zero value works.
type LongOptions struct {
	// Codec is how the number lies in its node, Curator64 if it is nil. It has to be the same for all who share the node.
	Codec Codec
	// Retry says how often, and after which pauses, a change is tried again that met the change of somebody else. Without
	// one it is tried until the context ends; if there is a Lock, five times more, and then under the lock.
	Retry recipes.RetryPolicy
	// Lock is what a change asks for when Retry gives up. It makes those who ask for it wait in line, and holds nobody back
	// who does not. It is not needed for a correct count. Without one the change fails with ErrContended.
	Lock Locker
	// LockRetry is like Retry, for the tries under the lock. Without one they go on until the context ends.
	LockRetry recipes.RetryPolicy
	// Marks is the node below which each Long keeps its mark, see the package's text. Without one it is the path of the
	// number with ".marks" at its end. It is made, and removed when nobody has needed it for some time (as a container).
	Marks string
}

func (o LongOptions) withDefaults(path string) LongOptions {
	if o.Codec == nil {
		o.Codec = Curator64
	}
	if o.Retry == nil {
		o.Retry = recipes.Exponential(retryFirst, retryMost)
		if o.Lock != nil {
			o.Retry = recipes.Times(optimisticTries, retryFirst)
		}
	}
	if o.LockRetry == nil {
		o.LockRetry = recipes.Exponential(retryFirst, retryMost)
	}
	if o.Marks == "" {
		o.Marks = path + ".marks"
	}
	return o
}

// Long is a whole number of 64 bits that many processes change at the same time. A node that is missing is 0, and is made
// by the first change, its missing parents as containers. A change reads the number and writes the new one on the
// condition that nobody else has written in between; if somebody has, it is tried again.
//
// Its methods may be called from any goroutine; the changes of one Long are made one after the other.
type Long struct {
	c    *recipes.Client
	path string
	o    LongOptions
	// turn holds a token while somebody uses the rest.
	turn    chan struct{}
	mark    *mark         // nil when there is none yet
	pending *UnknownError // a change that is not decided yet, to be decided before the mark is used again
}

// NewLong returns the number at a path. It asks nothing of the server yet: a path that cannot be one fails in the first call.
func NewLong(c *recipes.Client, path string, o LongOptions) *Long {
	return &Long{c: c, path: path, o: o.withDefaults(path), turn: make(chan struct{}, 1)}
}

// Close waits for the change that is under way and removes the mark. A Long that is not closed leaves its mark to the end of the
// session. It may be used again.
func (l *Long) Close(ctx context.Context) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	if l.pending == nil { // a mark that has something to tell stays as long as the session
		l.drop()
	}
	return nil
}

// Result tells of a change that was made.
type Result struct {
	Before, After int64
	// Optimistic is false when the change was made under the lock.
	Optimistic bool
	// Tries is how often it was tried altogether, at least 1.
	Tries int
}

// Get returns the number, as this client's server knows it: a moment old, but never older than what this client has seen
// before in its session. Call Client.Sync first where that is not enough.
func (l *Long) Get(ctx context.Context) (int64, error) {
	at, err := l.read(ctx)
	return at.number, err
}

// Add adds delta, which may be negative. It fails with ErrOverflow, ErrCorrupt, ErrContended, or as UnknownError if
// nobody can tell whether it was carried out; with any other error it has not been.
func (l *Long) Add(ctx context.Context, delta int64) (Result, error) {
	return l.update(ctx, func(at reading) (int64, error) {
		if at.err != nil {
			return 0, at.err
		}
		return sum(at.number, delta)
	})
}

// Set makes the number n, whatever it was, and also if the node does not hold a number. It fails as Add does.
func (l *Long) Set(ctx context.Context, n int64) (Result, error) {
	return l.update(ctx, func(reading) (int64, error) { return n, nil })
}

// CompareAndSet makes the number n if it is expected, and tells whether it did. A node that is missing is never as
// expected. It fails as Add does.
func (l *Long) CompareAndSet(ctx context.Context, expected, n int64) (Result, bool, error) {
	return l.conditional(ctx, func(at reading) (int64, error) {
		if at.err != nil {
			return 0, at.err
		}
		if !at.exists || at.number != expected {
			return 0, errNo
		}
		return n, nil
	})
}

// Initialize makes the node with the number n if it is missing, and tells whether it did. It fails as Add does.
func (l *Long) Initialize(ctx context.Context, n int64) (Result, bool, error) {
	return l.conditional(ctx, func(at reading) (int64, error) {
		if at.exists {
			return 0, errNo
		}
		return n, nil
	})
}

func (l *Long) conditional(ctx context.Context, f change) (Result, bool, error) {
	r, err := l.update(ctx, f)
	if errors.Is(err, errNo) {
		r.After = r.Before
		return r, false, nil
	}
	return r, err == nil, err
}

// change computes the new number from what was read, or errNo if there is to be none. Of a reading that holds no number
// it is asked, too.
type change func(at reading) (int64, error)

var (
	errNo    = errors.New("counter: no change is wanted")
	errAgain = errors.New("counter: somebody else was faster")
)

// update makes a change, first without the lock and then under it.
func (l *Long) update(ctx context.Context, f change) (Result, error) {
	r := Result{Optimistic: true}
	if err := l.take(ctx); err != nil {
		return r, err
	}
	defer l.give()
	err := l.tries(ctx, l.o.Retry, f, &r)
	if !errors.Is(err, ErrContended) || l.o.Lock == nil {
		return r, err
	}
	release, err := l.o.Lock.Lock(ctx)
	if err != nil {
		return r, fmt.Errorf("counter: the lock for %s: %w", l.path, err)
	}
	r.Optimistic = false
	err = l.tries(ctx, l.o.LockRetry, f, &r)
	// The count is right without the lock; who cannot give it back loses it with the session. So this error says
	// nothing about the change.
	_ = release(ctx)
	return r, err
}

func (l *Long) tries(ctx context.Context, policy recipes.RetryPolicy, f change, r *Result) error {
	for attempt := 0; ; attempt++ {
		r.Tries++
		if err := l.once(ctx, f, r); !errors.Is(err, errAgain) {
			return err
		}
		wait, again := policy(attempt)
		if !again {
			return fmt.Errorf("%w: %s, tried %d times", ErrContended, l.path, r.Tries)
		}
		if err := l.c.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// once tries a change. It fails with errAgain if somebody else was faster.
func (l *Long) once(ctx context.Context, f change, r *Result) error {
	for {
		if err := l.prepare(ctx); err != nil {
			return err
		}
		at, err := l.read(ctx)
		if err != nil && at.err == nil {
			return err
		}
		r.Before = at.number
		u, err := l.plan(at, f)
		if err != nil {
			return err
		}
		err = l.commit(ctx, u)
		if errors.Is(err, errLost) {
			err = l.settle(ctx, u)
		}
		if errors.Is(err, errNotDone) {
			continue // the request was lost, not the reply
		}
		if err == nil {
			r.After = u.After
		}
		return err
	}
}

// reading is the node of the number at one time.
type reading struct {
	number int64
	exists bool
	stat   zk.Stat
	err    error // ErrCorrupt
}

// read reads the number. A node that holds none is told of in the reading and as an error.
func (l *Long) read(ctx context.Context) (reading, error) {
	data, stat, err := l.c.Get(ctx, l.path)
	if errors.Is(err, zk.ErrNoNode) {
		return reading{}, nil
	}
	if err != nil {
		return reading{}, err
	}
	at := reading{exists: true, stat: *stat}
	if at.number, at.err = l.o.Codec.Decode(data); at.err != nil {
		at.err = fmt.Errorf("%s: %w", l.path, at.err)
	}
	return at, at.err
}

// take waits for the turn.
func (l *Long) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Long) give() { <-l.turn }
