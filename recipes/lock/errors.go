package lock

import "errors"

var (
	// ErrHeld is what TryLock and TryAcquire fail with when somebody else is before.
	ErrHeld = errors.New("lock: held by another")
	// ErrUnlocked is a use of a guard that has been unlocked.
	ErrUnlocked = errors.New("lock: unlocked already")
	// ErrNotWriter is an attempt to share or downgrade what is not a write lock of that RWMutex.
	ErrNotWriter = errors.New("lock: the guard is not a write lock of this RWMutex")
	// ErrPermits is a number of permits that can never be had.
	ErrPermits = errors.New("lock: impossible number of permits")
	// ErrLocks is a list of locks that cannot be taken together.
	ErrLocks = errors.New("lock: locks that cannot be taken together")
	// ErrFenced is an access with a token that is older than one that the resource has seen, or no token at all.
	ErrFenced = errors.New("lock: fenced off")
	// errGone means that the own node is missing from the line: its session has ended, or somebody has deleted it.
	errGone = errors.New("lock: the node is gone")
)
