package recipes_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"zabra/recipes"
	"zabra/recipes/recipestest"
)

// A wait ends with its time, with its context, or with the client, and says which.
func TestSleep(t *testing.T) {
	c := recipestest.Start(t).Client(t)
	require.NoError(t, c.Sleep(t.Context(), time.Millisecond))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	require.Equal(t, enough, c.Sleep(ctx, time.Hour))
	ended := make(chan error)
	go func() { ended <- c.Sleep(context.Background(), time.Hour) }()
	c.Close()
	require.ErrorIs(t, <-ended, recipes.ErrClosed)
}
