package election

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"zabra/recipes"
	"zabra/recipes/lock"
)

// Lead is what a selector runs while it leads. Its context ends with the term: when the leadership is lost, when it is
// interrupted, and when the context of Run ends. It has to return soon then. The leadership is given back when it returns.
type Lead func(ctx context.Context, term *Term) error

// SelectorOptions are those of a selector. The zero value is for elections with Curator.
type SelectorOptions struct {
	// Names says who else may take part. All participants must agree on it.
	Names lock.Names
}

// Selector runs a function while it leads. Its methods may be called from any goroutine.
type Selector struct {
	c     *recipes.Client
	mutex *lock.Mutex
	id    string

	mu struct {
		sync.Mutex
		running bool
		term    *Term // nil while the function does not run
	}
}

// NewSelector returns a participant in the election at path, under an id that others can see: see Participants. Ids need not
// differ. It does not talk to the server before Run does.
func NewSelector(c *recipes.Client, path, id string, o SelectorOptions) *Selector {
	mutex := lock.NewMutex(c, path, lock.Options{Identity: []byte(id), Names: o.Names})
	return &Selector{c: c, mutex: mutex, id: id}
}

// Run queues once. When it leads, it calls lead and returns what that returns, with the leadership given back. If ctx ends
// before, it fails with its cause and leaves no node behind; if ctx ends while lead runs, it waits for lead. It goes on
// through lost connections, and queues again if the session is lost before its turn has come. If the leadership is lost while
// lead runs, that is for lead to say: context.Cause of its context tells why.
//
// A selector runs once at a time: otherwise Run fails with ErrRunning.
func (s *Selector) Run(ctx context.Context, lead Lead) error {
	if err := s.start(); err != nil {
		return err
	}
	defer s.stop()
	_, err := s.once(ctx, lead)
	return err
}

// RunAgain is Run again and again: after each term it queues anew, behind all others. It returns the cause of ctx when that
// ends, recipes.ErrClosed when the client is closed, and the error of lead if the term was not over when lead returned it.
// What keeps it from taking part for other reasons is tried again after a pause, except for a path that cannot be one.
func (s *Selector) RunAgain(ctx context.Context, lead Lead) error {
	if err := s.start(); err != nil {
		return err
	}
	defer s.stop()
	policy := recipes.Exponential(retryFirst, retryMost)
	for attempt := 0; ctx.Err() == nil; {
		how, err := s.once(ctx, lead)
		switch {
		case how == missed && (errors.Is(err, recipes.ErrClosed) || errors.Is(err, recipes.ErrPath)), how == led && err != nil:
			return err
		case how == missed:
			wait, _ := policy(attempt)
			_ = s.c.Sleep(ctx, wait) // the next round tells why
			attempt++
		default:
			attempt = 0
		}
	}
	return context.Cause(ctx)
}

// outcome is how one round has ended.
type outcome int

const (
	missed outcome = iota // lead was not called
	led                   // lead returned while the term lasted
	lost                  // the term was over when lead returned
)

// once queues, and calls lead with the term if there is one.
func (s *Selector) once(ctx context.Context, lead Lead) (outcome, error) {
	term, err := s.win(ctx)
	if err != nil {
		return missed, err
	}
	s.leads(term)
	defer func() { // also when lead panics
		s.leads(nil)
		term.finish(ctx)
	}()
	err = lead(term.Context(), term)
	if term.Leads() {
		return led, err
	}
	return lost, err
}

// win waits for a term that is not over.
func (s *Selector) win(ctx context.Context) (*Term, error) {
	for {
		guard, err := s.mutex.Lock(ctx)
		if err != nil {
			return nil, err
		}
		term := begin(ctx, s.c, guard)
		if term.Leads() {
			return term, nil
		}
		term.finish(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Selector) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.id) > idBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrID, len(s.id), idBytesMax)
	}
	if s.mu.running {
		return ErrRunning
	}
	s.mu.running = true
	return nil
}

func (s *Selector) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.running = false
}

func (s *Selector) leads(term *Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.term = term
}

// Interrupt ends the present term, and with it the context of the function that leads; Run goes on when that has returned.
// It tells whether there was a term to end.
func (s *Selector) Interrupt() bool {
	term := s.Term()
	if term == nil {
		return false
	}
	term.Relinquish()
	return true
}

// Term returns the present term, or nil if this selector does not lead.
func (s *Selector) Term() *Term {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.term == nil || !s.mu.term.Leads() {
		return nil
	}
	return s.mu.term
}

// ID is what the selector is called among the participants.
func (s *Selector) ID() string { return s.id }
