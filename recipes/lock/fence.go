package lock

import (
	"fmt"
	"sync"
)

// Fence protects a resource in this process from holders of a lock that are late: it remembers the largest token that was
// presented, and refuses smaller ones with ErrFenced. Its zero value has seen none. Its methods may be called from any
// goroutine.
//
// A holder has to present its token with its first access, even if that only reads: a late write of an older holder, before
// the fence has seen the younger one, is let through, and it would come between that read and what is written because of it.
//
// A fence is for the tokens of one lock. Tokens of different ensembles, or from before an ensemble lost its data, mean nothing
// to each other. It forgets everything with its process: a resource that outlives the process keeps the token beside its data,
// see CheckStored and NodeFence.
type Fence struct {
	mu sync.Mutex
	// exclusive and shared are the largest tokens seen of those who exclude others, and of readers.
	exclusive, shared int64
}

// Check refuses the token if a larger one has been presented. What is done after Check may be overtaken by a younger holder;
// with Do it is not.
func (f *Fence) Check(token int64) error {
	return f.Do(token, func() error { return nil })
}

// Do runs an access if no larger token has been presented, and returns its error. Meanwhile other accesses wait, so that none
// with a younger token can come in between the check and the access.
func (f *Fence) Do(token int64, access func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := refuse(token, max(f.exclusive, f.shared)); err != nil {
		return err
	}
	f.exclusive = token
	return access()
}

// CheckShared is Check for read locks, which are held together, in any order of their tokens: a reader is refused if a younger
// writer has been here, not because of other readers. Writers older than the reader are refused from now on.
func (f *Fence) CheckShared(token int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := refuse(token, f.exclusive); err != nil {
		return err
	}
	f.shared = max(f.shared, token)
	return nil
}

// Token returns the largest token that has been presented, 0 if none.
func (f *Fence) Token() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.exclusive, f.shared)
}

// refuse tells why a token may not come after the largest one that was seen.
func refuse(token, seen int64) error {
	if token <= 0 {
		return fmt.Errorf("%w: %d is no token", ErrFenced, token)
	}
	if token < seen {
		return fmt.Errorf("%w: token %d, but %d was here", ErrFenced, token, seen)
	}
	return nil
}
