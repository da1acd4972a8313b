package election

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

func TestSelectorRunsWhileItLeads(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	s := NewSelector(c, where, "a", SelectorOptions{})
	require.Equal(t, "a", s.ID())
	why := errors.New("done")
	var token int64
	for range 2 {
		err := s.Run(bounded(t), func(ctx context.Context, term *Term) error {
			require.NoError(t, ctx.Err())
			require.Same(t, term, s.Term())
			require.Greater(t, term.Token(), token)
			token = term.Token()
			require.ErrorIs(t, s.Run(ctx, nil), ErrRunning)
			return why
		})
		require.ErrorIs(t, err, why)
		require.Nil(t, s.Term())
		list, err := Participants(t.Context(), c, where)
		require.NoError(t, err)
		require.Empty(t, list, "the leadership is given back when Run returns")
	}
	require.False(t, s.Interrupt())
}

func TestSelectorGivesBackWhenItsFunctionPanics(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	s := NewSelector(c, where, "a", SelectorOptions{})
	require.Panics(t, func() {
		_ = s.Run(bounded(t), func(context.Context, *Term) error { panic("as planned") })
	})
	lined(t, c)
	require.NoError(t, s.Run(bounded(t), func(context.Context, *Term) error { return nil }))
}

func TestInterrupt(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	s := NewSelector(c, where, "a", SelectorOptions{})
	rounds := 0
	stop := errors.New("stop")
	err := s.RunAgain(bounded(t), func(ctx context.Context, term *Term) error {
		if rounds++; rounds == 3 {
			return stop
		}
		require.True(t, s.Interrupt())
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrRelinquished)
		require.ErrorIs(t, term.Err(), ErrRelinquished)
		require.Nil(t, s.Term())
		stat, err := c.Exists(t.Context(), term.Path())
		require.NoError(t, err)
		require.NotNil(t, stat, "nobody else leads before the function has returned")
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, 3, rounds)
	lined(t, c)
}

// TestRunEndsWithItsContext ends the context of one who waits and of one who leads.
func TestRunEndsWithItsContext(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 2)
	go func() {
		ended <- NewSelector(c, where, "a", SelectorOptions{}).Run(ctx, func(ctx context.Context, _ *Term) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}()
	<-begun
	go func() {
		ended <- NewSelector(c, where, "b", SelectorOptions{}).Run(ctx, func(context.Context, *Term) error {
			return errors.New("b must not lead")
		})
	}()
	lined(t, c, "a", "b")
	cancel(why)
	require.ErrorIs(t, <-ended, why)
	require.ErrorIs(t, <-ended, why)
	lined(t, c)
}

func TestRunOnAClosedClient(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	s := NewSelector(c, where, "a", SelectorOptions{})
	err := s.RunAgain(bounded(t), func(ctx context.Context, term *Term) error {
		c.Close()
		<-ctx.Done()
		require.ErrorIs(t, term.Err(), recipes.ErrSessionLost)
		return nil
	})
	require.ErrorIs(t, err, recipes.ErrClosed)
	require.ErrorIs(t, s.Run(bounded(t), nil), recipes.ErrClosed)
}
